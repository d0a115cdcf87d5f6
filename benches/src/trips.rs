//! The trips of `tests/peers/gen`, the same keys and values, made fast: as JSON lines and as Arrow.

use std::fmt::Write;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray, StructArray,
};
use arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef};

/// What `tests/peers/gen --avro-schema` prints.
pub const AVRO: &str = r#"{"type":"record","name":"Trip","namespace":"bench","fields":[{"name":"trip_id","type":"string"},{"name":"dt","type":"string"},{"name":"ts","type":"long"},{"name":"rider","type":"string"},{"name":"driver","type":"string"},{"name":"city","type":"string"},{"name":"status","type":"string"},{"name":"fare","type":"double"},{"name":"distance","type":"double"},{"name":"passengers","type":"int"},{"name":"paid","type":"boolean"},{"name":"pickup","type":{"type":"record","name":"Point","fields":[{"name":"lat","type":"double"},{"name":"lon","type":"double"},{"name":"zone","type":"string"}]}}]}"#;

/// Rows in a batch, as the program itself has them.
pub const BATCH: usize = 8192;

const SEED: u64 = 42;
const CITIES: [&str; 12] = [
    "amsterdam",
    "berlin",
    "cairo",
    "delhi",
    "lagos",
    "lima",
    "osaka",
    "paris",
    "quito",
    "rome",
    "são paulo",
    "warsaw",
];
const STATUS: [&str; 8] =
    ["requested", "accepted", "started", "completed", "completed", "completed", "cancelled", "disputed"];

/// One event.
#[derive(Debug, Clone, Copy)]
pub struct Trip {
    /// These two follow from the number of the trip.
    a: u64,
    b: u64,
    /// The rest.
    h: u64,
    batch: u64,
}

fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

fn trip(number: u64, h: u64, batch: u64) -> Trip {
    let a = mix(mix(SEED).wrapping_add(number));
    Trip { a, b: mix(a), h, batch }
}

/// New trips: `gen N --files K` gives those from 0.
pub fn fresh(numbers: Range<u64>) -> impl Iterator<Item = Trip> {
    numbers.map(|number| trip(number, mix(mix(SEED) ^ number), 0))
}

/// `count` trips, half of them updates of the first `existing`: `gen COUNT --existing EXISTING --batch BATCH`.
pub fn changed(count: u64, existing: u64, batch: u64) -> impl Iterator<Item = Trip> {
    let mut next = existing;
    (0..count).map(move |i| {
        let h = mix(mix(SEED) ^ (batch << 40) ^ i);
        let number = if h >> 63 == 0 {
            (existing as f64 * ((mix(h) >> 11) as f64 / (1u64 << 53) as f64)) as u64
        } else {
            next += 1;
            next - 1
        };
        trip(number, h, batch)
    })
}

impl Trip {
    fn id(&self) -> String {
        let u = format!("{:016x}{:016x}", self.a, self.b);
        format!("{}-{}-4{}-a{}-{}", &u[..8], &u[8..12], &u[13..16], &u[17..20], &u[20..])
    }

    fn dt(&self) -> String {
        format!("2024-03-{:02}", self.a % 10 + 1)
    }

    fn ts(&self) -> i64 {
        (1_709_251_200_000 + self.batch * 1_000_000 + (self.h & 0xF_FFFF)) as i64
    }

    fn rider(&self) -> String {
        format!("rider-{:06}", self.b & 0x3_FFFF)
    }

    fn driver(&self) -> String {
        format!("driver-{:05}", self.h >> 20 & 0x7FFF)
    }

    fn city(&self) -> &'static str {
        CITIES[(self.b % 12) as usize]
    }

    fn status(&self) -> &'static str {
        STATUS[(self.h >> 40 & 7) as usize]
    }

    fn fare(&self) -> f64 {
        ((self.h >> 8) % 9000 + 250) as f64 / 100.0
    }

    fn distance(&self) -> f64 {
        ((self.h >> 24) % 40_000) as f64 / 1000.0
    }

    fn passengers(&self) -> i32 {
        ((self.h >> 44) % 4 + 1) as i32
    }

    fn paid(&self) -> bool {
        self.h & 1 == 1
    }

    fn lat(&self) -> f64 {
        (((self.a >> 20) % 170_000) as f64 - 85_000.0) / 1000.0
    }

    fn lon(&self) -> f64 {
        (((self.b >> 20) % 359_000) as f64 - 179_000.0) / 1000.0
    }

    fn zone(&self) -> String {
        format!("z{:03}", self.a >> 8 & 0xFF)
    }

    /// Appends the line of the event.
    pub fn json(&self, out: &mut String) {
        let (id, dt, ts, rider, driver) = (self.id(), self.dt(), self.ts(), self.rider(), self.driver());
        let (city, status, fare, distance) = (self.city(), self.status(), self.fare(), self.distance());
        let (passengers, paid, lat, lon, zone) = (self.passengers(), self.paid(), self.lat(), self.lon(), self.zone());
        let written = writeln!(
            out,
            r#"{{"trip_id":"{id}","dt":"{dt}","ts":{ts},"rider":"{rider}","driver":"{driver}","city":"{city}","status":"{status}","fare":{fare:?},"distance":{distance:?},"passengers":{passengers},"paid":{paid},"pickup":{{"lat":{lat:?},"lon":{lon:?},"zone":"{zone}"}}}}"#
        );
        written.expect("a string takes all");
    }
}

/// The columns, as our reader of [`AVRO`] types them.
pub fn schema() -> SchemaRef {
    let field = |name: &str, kind: DataType| Field::new(name, kind, false);
    Arc::new(Schema::new(vec![
        field("trip_id", DataType::Utf8),
        field("dt", DataType::Utf8),
        field("ts", DataType::Int64),
        field("rider", DataType::Utf8),
        field("driver", DataType::Utf8),
        field("city", DataType::Utf8),
        field("status", DataType::Utf8),
        field("fare", DataType::Float64),
        field("distance", DataType::Float64),
        field("passengers", DataType::Int32),
        field("paid", DataType::Boolean),
        field("pickup", DataType::Struct(point())),
    ]))
}

fn point() -> Fields {
    vec![
        Field::new("lat", DataType::Float64, false),
        Field::new("lon", DataType::Float64, false),
        Field::new("zone", DataType::Utf8, false),
    ]
    .into()
}

/// Trips in batches of [`BATCH`] rows.
pub fn batches(trips: impl Iterator<Item = Trip>) -> Vec<RecordBatch> {
    let trips: Vec<Trip> = trips.collect();
    trips.chunks(BATCH).map(batch).collect()
}

fn batch(trips: &[Trip]) -> RecordBatch {
    let text =
        |of: &dyn Fn(&Trip) -> String| -> ArrayRef { Arc::new(StringArray::from_iter_values(trips.iter().map(of))) };
    let double =
        |of: &dyn Fn(&Trip) -> f64| -> ArrayRef { Arc::new(Float64Array::from_iter_values(trips.iter().map(of))) };
    let pickup = vec![double(&Trip::lat), double(&Trip::lon), text(&Trip::zone)];
    let columns: Vec<ArrayRef> = vec![
        text(&Trip::id),
        text(&Trip::dt),
        Arc::new(Int64Array::from_iter_values(trips.iter().map(Trip::ts))),
        text(&Trip::rider),
        text(&Trip::driver),
        text(&|t| t.city().to_owned()),
        text(&|t| t.status().to_owned()),
        double(&Trip::fare),
        double(&Trip::distance),
        Arc::new(Int32Array::from_iter_values(trips.iter().map(Trip::passengers))),
        Arc::new(BooleanArray::from_iter(trips.iter().map(|t| Some(t.paid())))),
        Arc::new(StructArray::new(point(), pickup, None)),
    ];
    RecordBatch::try_new(schema(), columns).expect("columns of the schema")
}
