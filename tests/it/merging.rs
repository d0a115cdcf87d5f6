//! Which of several rows of one key stays.

use crate::support::*;

/// Case 06: ties, late events and disorder.
#[test]
fn each_payload_class_keeps_the_row_that_hudi_0_15_keeps() {
    needs_peers!();
    let rules = [
        (
            "org.apache.hudi.common.model.DefaultHoodieRecordPayload",
            Rule::EventTime,
            ["s5", "in5", "in7", "second", "nine", "s5"],
        ),
        (
            "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload",
            Rule::Arrival,
            ["in3", "in5", "in7", "second", "nine", "x4"],
        ),
    ];
    let event = |id: &str, ts: i64, v: &str| row! {"id": id, "ts": ts, "v": v};
    for ((class, rule, want), table_type) in rules.into_iter().flat_map(|rule| TABLE_TYPES.map(|kind| (rule, kind))) {
        let mut job = Job::new(BASE_SCHEMA, Model::new(&["id", "ts", "v"]).rule(rule), |call| {
            call.flag("--payload-class", class).flag("--table-type", table_type)
        });
        job.upsert(&[1, 2, 3, 4, 5, 6].map(|i| event(&format!("k{i}"), 5, "s5")));
        job.upsert(&[
            event("k1", 3, "in3"),
            event("k2", 5, "in5"),
            event("k3", 7, "in7"),
            event("k4", 7, "first"),
            event("k4", 7, "second"),
            event("k5", 9, "nine"),
            event("k5", 8, "eight"),
            event("k6", 3, "x3"),
            event("k6", 4, "x4"),
        ]);
        job.check_through_compaction();
        let mut rows = oracle(SPARK_0_15).read(job.table.str());
        rows.sort_by_key(|r| r["id"].to_string());
        assert_eq!(
            rows.iter().map(|r| r["v"].as_str().expect("text")).collect::<Vec<_>>(),
            want,
            "{class}, {table_type}"
        );

        // The table has recorded its rule: a call that names none keeps it.
        job.call = job.call.without("--payload-class");
        job.upsert(&[event("k1", 1, "late")]);
        job.check();
    }
}

/// Case 05, without Kafka's tombstones.
#[test]
fn a_row_flagged_as_deleted_deletes() {
    needs_peers!();
    const SCHEMA: &str = r#"{"type":"record","name":"R","fields":[{"name":"id","type":"string"},{"name":"ts","type":"long"},{"name":"qty","type":["null","int"],"default":null},
 {"name":"_hoodie_is_deleted","type":["null","boolean"],"default":null}]}"#;
    for table_type in TABLE_TYPES {
        let model = Model::new(&["id", "ts", "qty", "_hoodie_is_deleted"]).rule(Rule::EventTime);
        let mut job = Job::new(SCHEMA, model, |call| {
            call.flag("--payload-class", "org.apache.hudi.common.model.DefaultHoodieRecordPayload")
                .flag("--table-type", table_type)
        });
        job.upsert(&[
            row! {"id": "a", "ts": 1, "qty": 5},
            row! {"id": "b", "ts": 1, "qty": 7},
            row! {"id": "b", "ts": 2, "_hoodie_is_deleted": true},
            row! {"id": "d", "ts": 1, "qty": 1, "_hoodie_is_deleted": false},
        ]);
        job.check();
        job.upsert(&[
            row! {"id": "a", "ts": 2, "_hoodie_is_deleted": true},
            row! {"id": "d", "ts": 0, "_hoodie_is_deleted": true},
        ]);
        job.check();
        job.upsert(&[row! {"id": "z", "ts": 1, "_hoodie_is_deleted": true}]);
        job.check();
        job.upsert(&[row! {"id": "a", "ts": 9, "qty": 3}]);
        assert_eq!(job.model.len(), 2);
        job.check_through_compaction();
    }
}

#[test]
fn filter_dupes_drops_what_the_table_has() {
    needs_peers!();
    let mut job = Job::new(TRIPS, Model::new(&TRIP_COLUMNS).partitioned("dt"), |call| {
        call.partitioned("dt").switch("--filter-dupes")
    });
    job.insert(&trips(0..5, 1));
    job.feed(&[trip(3, 2), trip(7, 2), trip(7, 3), trip(8, 2)]);
    let instant = job.round("INSERT");
    job.model.insert(&instant, &[trip(7, 3), trip(8, 2)]);
    job.check();
    oracle(SPARK_0_15).validate(job.table.str(), false);
}

#[test]
fn insert_keeps_equal_keys() {
    needs_peers!();
    let mut job = Job::new(TRIPS, Model::new(&TRIP_COLUMNS), |call| call);
    job.insert(&[trip(1, 1), trip(1, 2)]);
    job.insert(&[trip(1, 3), trip(2, 3)]);
    job.check();
    assert_eq!(job.model.len(), 4);
    oracle(SPARK_0_15).validate(job.table.str(), true);
}
