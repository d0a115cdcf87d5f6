//! Avro messages with the id of their schema before them.

use super::*;

/// Case 09's two schemas: the second adds `note` and `zip` and widens `qty`.
const OLD: &str = r#"{"type":"record","name":"Trip","namespace":"demo","fields":[{"name":"id","type":"string"},{"name":"ts","type":"long"},{"name":"qty","type":"int"},{"name":"addr","type":{"type":"record","name":"Addr","fields":[{"name":"city","type":"string"}]}}]}"#;
const NEW: &str = r#"{"type":"record","name":"Trip","namespace":"demo","fields":[{"name":"id","type":"string"},{"name":"ts","type":"long"},{"name":"note","type":["null","string"],"default":null},{"name":"qty","type":"long"},{"name":"addr","type":{"type":"record","name":"Addr","fields":[{"name":"city","type":"string"},{"name":"zip","type":["null","string"],"default":null}]}}]}"#;
/// t0 to t3, of schema 11, 12, 11, 12.
const MESSAGES: [&str; 4] = [
    "000000000b047430020e064f7275",
    "000000000c0474310402086c61746580c8afa0250656657802043430",
    "000000000b0474320601064f7275",
    "000000000c047433080000064c696d00",
];

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u32> = hex.chars().map(|c| c.to_digit(16).expect("hex")).collect();
    digits.chunks(2).map(|pair| (pair[0] * 16 + pair[1]) as u8).collect()
}

fn rows() -> [Row; 4] {
    let trip = |id: &str, ts: i64, note: Option<&str>, qty: i64, city: &str, zip: Option<&str>| {
        row! {"id": id, "ts": ts, "note": note, "qty": qty, "addr": {"city": city, "zip": zip}}
    };
    [
        trip("t0", 1, None, 7, "Oru", None),
        trip("t1", 2, Some("late"), 5_000_000_000, "Vex", Some("40")),
        trip("t2", 3, None, -1, "Oru", None),
        trip("t3", 4, None, 0, "Lim", None),
    ]
}

struct Trips {
    job: KafkaJob,
    registry: Stub,
}

/// A registry that has both schemas, of which `latest` says which is the subject's.
fn trips(latest: u32) -> Trips {
    trips_of(latest, "COPY_ON_WRITE")
}

fn trips_of(latest: u32, table_type: &str) -> Trips {
    let registry = Stub::start();
    let text = |schema: &str| json!({ "schema": schema }).to_string();
    registry.answer("/schemas/ids/11", text(OLD));
    registry.answer("/schemas/ids/12", text(NEW));
    let model = Model::new(&["id", "ts", "note", "qty", "addr"]);
    let job = KafkaJob::new(Broker::shared().topic("trip", 1), NEW, model, |call| {
        call.registered_avro(registry.url(), "trip-value").flag("--table-type", table_type)
    });
    let trips = Trips { job, registry };
    trips.latest_is(latest);
    trips
}

impl Trips {
    fn latest_is(&self, id: u32) {
        let schema = if id == 11 { OLD } else { NEW };
        let answer = json!({ "subject": "trip-value", "version": id - 10, "id": id, "schema": schema }).to_string();
        self.registry.answer("/subjects/trip-value/versions/latest", answer);
    }

    /// Reads its schema from a file instead.
    fn with_file(&mut self, schema: &str) {
        let file = self.job.scratch.file("reader.avsc", schema);
        let call = self.job.call.clone().flag("--schemaprovider-class", "FilebasedSchemaProvider");
        self.job.call = call
            .without("hoodie.streamer.schemaprovider.registry.url")
            .conf("hoodie.streamer.schemaprovider.source.schema.file", file);
    }
}

/// Case 09.
#[test]
fn old_and_new_messages_become_rows_of_one_schema() {
    needs_peers!();
    TABLE_TYPES.into_iter().for_each(one_schema);
}

fn one_schema(table_type: &str) {
    let Trips { mut job, registry } = trips_of(12, table_type);
    job.topic.send(0, MESSAGES.map(bytes));
    job.commits(&job.call.clone().flag("--source-limit", "2"));
    let instant = job.table.last_commit();
    job.model.upsert(&instant, &rows()[..2]);
    job.stands_at(&[2]);
    let mut asked = registry.asked();
    asked.sort();
    assert_eq!(asked, ["/schemas/ids/11", "/schemas/ids/12", "/subjects/trip-value/versions/latest"], "each once");

    let instant = job.round("UPSERT");
    job.model.upsert(&instant, &rows()[2..]);
    job.stands_at(&[4]);
    job.check();
    // The old message changes a row that a new one made.
    job.topic.send(0, [bytes("000000000b047431040e064f7275")]);
    let instant = job.round("UPSERT");
    job.model
        .upsert(&instant, &[row! {"id": "t1", "ts": 2, "note": null, "qty": 7, "addr": {"city": "Oru", "zip": null}}]);
    job.check_through_compaction();
}

#[test]
fn a_reader_schema_that_narrows_a_field_is_refused_and_one_that_leaves_fields_out_is_not() {
    needs_peers!();
    let mut trips = trips(12);
    trips.with_file(OLD);
    trips.job.topic.send(0, MESSAGES.map(bytes));
    trips.job.call.run().fails_with(1, &["qty", &place(&trips.job.topic, 0, 1)]);
    assert!(trips.job.table.commits().is_empty());

    trips.with_file(&OLD.replace(r#""qty","type":"int""#, r#""qty","type":"long""#));
    let instant = trips.job.round("UPSERT");
    let mut model = Model::new(&["id", "ts", "qty", "addr"]);
    let narrow = rows().map(|mut row| {
        row.remove("note");
        row["addr"].as_object_mut().expect("a record").remove("zip");
        row
    });
    model.upsert(&instant, &narrow);
    trips.job.model = model;
    trips.job.check();
}

#[test]
fn a_table_grows_with_the_subjects_newest_schema() {
    needs_peers!();
    let trips = trips(11);
    let [first, rest @ ..] = MESSAGES;
    trips.job.topic.send(0, [bytes(first)]);
    trips.job.commits(&trips.job.call);
    trips.latest_is(12);
    trips.job.topic.send(0, rest.map(bytes));
    trips.job.call.run().ok().says(&["note"]);
    let mut job = trips.job;
    let commits = job.table.commits();
    job.model.upsert(&commits[0], &rows()[..1]);
    job.model.upsert(&commits[1], &rows()[1..]);
    job.check();
}

#[test]
fn a_message_that_cannot_be_read_is_named() {
    needs_peers!();
    for (bad, why) in [
        ("00000000630474340a02064f7275", "99"), // an id that the registry does not know
        ("010000000b047430020e064f7275", ""),   // no schema id
        ("000000000b04", ""),                   // cut short
        ("00", ""),
    ] {
        let Trips { job, registry: _registry } = trips(12);
        job.topic.send(0, [bytes(MESSAGES[0]), bytes(bad)]);
        job.call.run().fails_with(1, &[&place(&job.topic, 0, 1), why]);
        assert!(job.table.commits().is_empty(), "{bad}");
    }
}

#[test]
fn a_registry_that_is_away_is_named_without_its_password() {
    needs_peers!();
    let mut trips = trips(12);
    trips.with_file(NEW);
    trips.job.topic.send(0, [bytes(MESSAGES[0])]);
    let call = trips.job.call.clone().conf("schema.registry.url", "http://user:secret-word@127.0.0.1:9");
    let run = call.run().fails_with_any(&["127.0.0.1:9"]);
    assert!(!run.stderr.contains("secret-word"), "a password is shown\n{run}");
}

/// The same against a real registry, which asks for a password.
#[test]
fn a_registry_behind_a_password_gives_its_schemas() {
    needs_peers!();
    let registry = Registry::shared();
    let Trips { mut job, registry: _registry } = trips(12);
    let subject = format!("{}-value", job.topic.name());
    let url = registry.url_with_password();
    let versions = format!("{url}/subjects/{subject}/versions/latest");
    for (schema, message, row) in [(OLD, MESSAGES[0], &rows()[0]), (NEW, MESSAGES[1], &rows()[1])] {
        let id = registry.register(&subject, schema);
        let mut message = bytes(message);
        message[1..5].copy_from_slice(&id.to_be_bytes());
        job.topic.send(0, [message]);
        let call = job.call.clone().conf("schema.registry.url", url);
        let instant = job.commits(&call.conf("hoodie.streamer.schemaprovider.registry.url", &versions));
        job.model.upsert(&instant, std::slice::from_ref(row));
    }
    job.check();
}
