//! Many messages of all kinds through a continuous job: the table is what a map says.
//!
//! `HUDI_STREAMER_VOLUME` sets how many messages with a row each of the two jobs reads.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::*;

const MESSAGES: u64 = 20_000;
/// Partitions at the beginning; one more comes on the way.
const PARTITIONS: usize = 7;
const PHASES: u64 = 8;
/// Messages of a key, about.
const AGAIN: u64 = 8;

const OLD: &str = r#"{"type":"record","name":"R","fields":[{"name":"id","type":"string"},{"name":"ts","type":"long"},
 {"name":"amount","type":"long"}]}"#;
const NEW: &str = r#"{"type":"record","name":"R","fields":[{"name":"id","type":"string"},{"name":"ts","type":"long"},
 {"name":"amount","type":"long"},{"name":"note","type":["null","string"],"default":null}]}"#;

/// The `n`th of `count` messages: keys come again anywhere, and `ts`, unlike any other's, goes up and down.
struct Event {
    n: u64,
    key: u64,
    ts: u64,
}

impl Event {
    fn new(n: u64, count: u64) -> Event {
        let mixed = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        // An odd factor gives each number below a power of two another one.
        let ts = n.wrapping_mul(0x2545_f491_4f6c_dd1d) % count.next_power_of_two();
        Event { n, key: (mixed >> 33) % (count / AGAIN), ts }
    }

    fn id(&self) -> String {
        format!("k{}", self.key)
    }

    fn note(&self) -> Option<String> {
        (!self.n.is_multiple_of(3)).then(|| format!("note {}", self.n))
    }

    fn row(&self) -> Row {
        row! {"id": self.id(), "ts": self.ts, "amount": self.n, "note": self.note()}
    }
}

/// How an event becomes the value of a message.
type Encode = dyn Fn(&Event) -> Vec<u8>;

fn json_of(event: &Event) -> Vec<u8> {
    Value::Object(event.row()).to_string().into_bytes()
}

/// An event without a note comes from a writer that knows none.
fn avro_of(event: &Event, old: u32, new: u32) -> Vec<u8> {
    let note = event.note();
    let mut value = vec![0];
    value.extend(if note.is_some() { new } else { old }.to_be_bytes());
    text(&mut value, &event.id());
    number(&mut value, event.ts);
    number(&mut value, event.n);
    if let Some(note) = note {
        number(&mut value, 1);
        text(&mut value, &note);
    }
    value
}

/// Avro's long, of one that is not negative.
fn number(value: &mut Vec<u8>, n: u64) {
    let mut left = n << 1;
    while left > 0x7f {
        value.push(left as u8 | 0x80);
        left >>= 7;
    }
    value.push(left as u8);
}

fn text(value: &mut Vec<u8>, text: &str) {
    number(value, text.len() as u64);
    value.extend(text.as_bytes());
}

/// Sends `count` events, with tombstones, aborted and committed transactions between them, and adds a partition half way.
fn feed(topic: &Topic, count: u64, encode: &Encode) {
    let mut partitions = PARTITIONS as u64;
    for phase in 0..PHASES {
        if phase == PHASES / 2 {
            topic.grow(PARTITIONS + 1);
            partitions += 1;
        }
        let events: Vec<u64> = (count * phase / PHASES..count * (phase + 1) / PHASES).collect();
        for partition in 0..partitions {
            let mine = || events.iter().copied().filter(move |n| n % partitions == partition);
            // Transactions are slow to set up: a partition has them in one phase.
            let committed = |n: &u64| partition == phase && n % 100 < 5;
            let plain = mine().filter(|n| !committed(n)).flat_map(|n| {
                let tombstone = n.is_multiple_of(50).then(|| Message::tombstone("gone"));
                [Some(Message::from(encode(&Event::new(n, count)))), tombstone]
            });
            topic.send(partition as i32, plain.flatten());
            if partition == phase {
                let committed = mine().filter(committed).map(|n| encode(&Event::new(n, count)));
                topic.send_in_transaction(partition as i32, committed, End::Commit);
                // Were they read, they would win: nothing has a greater `ts`.
                let never = |n| Event { ts: u64::from(u32::MAX) + n, ..Event::new(n, count) };
                let aborted = mine().filter(|n| n % 100 < 5).map(|n| encode(&never(n)));
                topic.send_in_transaction(partition as i32, aborted, End::Abort);
            }
        }
    }
}

fn becomes_a_table(name: &str, encode: &Encode, with: impl FnOnce(Streamer) -> Streamer) {
    let count = from_env("HUDI_STREAMER_VOLUME").unwrap_or(MESSAGES);
    let job = KafkaJob::new(Broker::shared().topic(name, PARTITIONS), NEW, Model::new(&[]), |call| {
        let call = call.switch("--continuous").conf("isolation.level", "read_committed");
        let call = call.flag("--payload-class", "org.apache.hudi.common.model.DefaultHoodieRecordPayload");
        with(call.flag("--source-limit", (count / PHASES).to_string()))
    });
    let begun = Instant::now();
    let running = job.call.start();
    feed(&job.topic, count, encode);
    let fed = begun.elapsed();
    let end = job.topic.position(&job.topic.ends());
    let deadline = Instant::now() + Duration::from_secs(120 + count / 500);
    while job.table.commits().is_empty() || job.table.checkpoint() != end {
        assert!(Instant::now() < deadline, "{name}: the end of the topic is not reached\n{}", running.said());
        std::thread::sleep(Duration::from_millis(20));
    }
    println!("{name}: {count} messages fed in {fed:.1?}, all committed after {:.1?}", begun.elapsed());
    running.signal("TERM");
    let said = running.finish().ok().stderr;
    assert!(!said.contains("ERROR"), "{said}");
    let commits = job.table.commits().len() as u64;
    assert!(commits >= PHASES, "{commits} rounds read {count} messages");

    let mut model: HashMap<String, Event> = HashMap::new();
    for event in (0..count).map(|n| Event::new(n, count)) {
        if model.get(&event.id()).is_none_or(|seen| seen.ts < event.ts) {
            model.insert(event.id(), event);
        }
    }
    for reader in [SPARK_0_15, HUDI_RS] {
        let rows = oracle(reader).read(job.table.str());
        for row in &rows {
            let id = row["id"].as_str().expect("text");
            let want = model.get(id).unwrap_or_else(|| panic!("{reader:?}: {id} was never sent")).row();
            for (column, value) in want {
                assert_eq!(row.get(&column).unwrap_or(&Value::Null), &value, "{reader:?}: {column} of {id}");
            }
        }
        assert_eq!(rows.len(), model.len(), "{reader:?}: rows");
    }
    oracle(SPARK_0_15).validate(job.table.str(), false);
}

#[test]
fn json_messages_of_all_kinds_become_a_table() {
    needs_peers!();
    becomes_a_table("volume-json", &json_of, |call| call);
}

#[test]
fn avro_messages_of_all_kinds_become_a_table() {
    needs_peers!();
    let (registry, subject) = (Registry::shared(), "volume-value");
    let [old, new] = [OLD, NEW].map(|schema| registry.register(subject, schema));
    becomes_a_table("volume-avro", &move |event| avro_of(event, old, new), |call| {
        call.registered_avro(registry.url(), subject)
    });
}
