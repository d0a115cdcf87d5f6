//! Bicycle trips as a fleet's backend might tell of them: states of a trip one after the other, some told twice, some late.

use serde_json::json;
use std::collections::VecDeque;

/// Avro schema of the events.
pub(super) const SCHEMA: &str = r#"{
  "type": "record",
  "name": "BikeTrip",
  "fields": [
    {"name": "trip_id", "type": "string"},
    {"name": "ts", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    {"name": "status", "type": "string"},
    {"name": "city", "type": "string"},
    {"name": "station", "type": "string"},
    {"name": "bike", "type": "string"},
    {"name": "metres", "type": "int"},
    {"name": "battery", "type": ["null", "double"], "default": null}
  ]
}
"#;

const STATIONS: [(&str, [&str; 3]); 4] = [
    ("Aarhus", ["Harbour", "Botanical Garden", "Latin Quarter"]),
    ("Freiburg", ["Minster", "Seepark", "Wiehre"]),
    ("Ghent", ["Belfry", "Dampoort", "Citadel Park"]),
    ("Utrecht", ["Dom", "Griftpark", "Science Park"]),
];
/// Of 100 events so many begin a trip, and so many are sent a second time at once.
const BEGIN: u64 = 30;
const TWICE: u64 = 8;
/// Of 100 later states of a trip so many are held back, for at most so many events.
const HELD_BACK: u64 = 10;
const LONGEST_HOLD: u64 = 200;
/// A trip ends with one in so many of its states.
const END: u64 = 4;

/// A message: the trip's id, and its state as JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Event {
    pub key: String,
    pub json: String,
}

/// Makes events for ever, the same ones for the same seed and clock.
#[derive(Debug)]
pub(super) struct Trips {
    random: SplitMix,
    riding: Vec<Trip>,
    /// Late ones, with the number of the event to come after.
    held: VecDeque<(u64, Event)>,
    last: Option<Event>,
    told: u64,
    /// Trips begun so far: the table has a row of each.
    pub begun: u64,
    pub twice: u64,
    pub late: u64,
}

#[derive(Debug)]
struct Trip {
    id: u64,
    ts: i64,
    city: usize,
    bike: u64,
    metres: u64,
}

impl Trips {
    pub fn new(seed: u64) -> Trips {
        Trips {
            random: SplitMix(seed),
            riding: Vec::new(),
            held: VecDeque::new(),
            last: None,
            told: 0,
            begun: 0,
            twice: 0,
            late: 0,
        }
    }

    /// The next event, at `now` in epoch milliseconds.
    pub fn next(&mut self, now: i64) -> Event {
        self.told += 1;
        if let Some((_, late)) = self.held.pop_front_if(|(due, _)| *due <= self.told) {
            self.late += 1;
            return late;
        }
        if let Some(again) = self.last.take_if(|_| self.random.below(100) < TWICE) {
            self.twice += 1;
            return again;
        }
        let event = loop {
            if self.riding.is_empty() || self.random.below(100) < BEGIN {
                break self.begin(now);
            }
            let state = self.go_on(now);
            if self.random.below(100) >= HELD_BACK {
                break state;
            }
            let due = self.told + 1 + self.random.below(LONGEST_HOLD);
            let at = self.held.partition_point(|(other, _)| *other <= due);
            self.held.insert(at, (due, state));
        };
        self.last = Some(event.clone());
        event
    }

    fn begin(&mut self, now: i64) -> Event {
        self.begun += 1;
        let city = self.random.below(STATIONS.len() as u64) as usize;
        let trip = Trip { id: self.begun, ts: now, city, bike: self.random.below(400), metres: 0 };
        let event = self.tell(&trip, "unlocked");
        self.riding.push(trip);
        event
    }

    /// The next state of one of the trips.
    fn go_on(&mut self, now: i64) -> Event {
        let which = self.random.below(self.riding.len() as u64) as usize;
        let mut trip = self.riding.swap_remove(which);
        // A later state is later also when a millisecond has several.
        trip.ts = now.max(trip.ts + 1);
        trip.metres += 50 + self.random.below(900);
        if self.random.below(END) == 0 {
            return self.tell(&trip, "returned");
        }
        let event = self.tell(&trip, "riding");
        self.riding.push(trip);
        event
    }

    fn tell(&mut self, trip: &Trip, status: &str) -> Event {
        let (city, stations) = STATIONS[trip.city];
        let battery = (self.random.below(4) > 0).then(|| self.random.below(101) as f64 / 100.0);
        let key = format!("trip-{:07}", trip.id);
        let json = json!({
            "trip_id": key,
            "ts": trip.ts,
            "status": status,
            "city": city,
            "station": stations[self.random.below(stations.len() as u64) as usize],
            "bike": format!("bike-{:03}", trip.bike),
            "metres": trip.metres,
            "battery": battery,
        });
        Event { key, json: json.to_string() }
    }
}

/// The SplitMix64 generator (Steele, Lea, Flood 2014): events need variety, not chance.
#[derive(Debug)]
struct SplitMix(u64);

impl SplitMix {
    /// From 0 to just below `bound`.
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % bound
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, BTreeSet};

    #[test]
    fn trips_have_states_duplicates_and_late_ones() {
        let mut trips = Trips::new(7);
        let events: Vec<Event> = (0..5_000).map(|i| trips.next(1_700_000_000_000 + i / 3)).collect();
        let (mut newest, mut statuses, mut repeated, mut overtaken) = (BTreeMap::new(), BTreeSet::new(), 0, 0);
        for event in &events {
            let row: serde_json::Value = serde_json::from_str(&event.json).unwrap();
            assert_eq!(row["trip_id"], event.key.as_str());
            statuses.insert(row["status"].as_str().unwrap().to_string());
            let ts = row["ts"].as_i64().unwrap();
            match newest.get(&event.key) {
                Some((before, json)) if *before == ts => {
                    assert_eq!(json, &event.json, "two states of a trip at one time");
                    repeated += 1;
                }
                Some((before, _)) if *before > ts => overtaken += 1,
                _ => {
                    newest.insert(event.key.clone(), (ts, event.json.clone()));
                }
            }
        }
        assert_eq!(newest.len() as u64, trips.begun, "a trip that nobody heard of");
        assert_eq!(statuses.into_iter().collect::<Vec<_>>(), ["returned", "riding", "unlocked"]);
        assert!(repeated > 100 && overtaken > 10, "{repeated} told twice, {overtaken} late");
        assert!(repeated >= trips.twice && overtaken <= trips.late);
    }
}
