//! Values of every type, as they go in and as readers get them back.

use crate::support::*;

#[test]
fn every_type_goes_in_and_comes_back_equal() {
    needs_peers!();
    const SCHEMA: &str = r#"{"type":"record","name":"T","namespace":"types","fields":[{"name":"id","type":"string"},{"name":"ts","type":"long"},
 {"name":"bo","type":["null","boolean"],"default":null},{"name":"i","type":["null","int"],"default":null},
 {"name":"l","type":["null","long"],"default":null},{"name":"f","type":["null","float"],"default":null},
 {"name":"d","type":["null","double"],"default":null},{"name":"s","type":["null","string"],"default":null},
 {"name":"de","type":["null",{"type":"bytes","logicalType":"decimal","precision":10,"scale":2}],"default":null},
 {"name":"db","type":["null",{"type":"fixed","name":"Big","size":16,"logicalType":"decimal","precision":38,"scale":18}],"default":null},
 {"name":"bi","type":["null","bytes"],"default":null},{"name":"da","type":["null",{"type":"int","logicalType":"date"}],"default":null},
 {"name":"tu","type":["null",{"type":"long","logicalType":"timestamp-micros"}],"default":null},
 {"name":"ar","type":["null",{"type":"array","items":"string"}],"default":null},
 {"name":"ai","type":["null",{"type":"array","items":"int"}],"default":null},
 {"name":"m","type":["null",{"type":"map","values":["null","long"]}],"default":null},
 {"name":"st","type":["null",{"type":"record","name":"S","fields":[{"name":"a","type":["null","int"],"default":null},{"name":"b","type":["null","string"],"default":null},
   {"name":"n","type":["null",{"type":"record","name":"N","fields":[{"name":"x","type":["null","double"],"default":null},{"name":"y","type":["null",{"type":"array","items":"string"}],"default":null}]}],"default":null}]}],"default":null},
 {"name":"am","type":["null",{"type":"array","items":{"type":"record","name":"E","fields":[{"name":"k","type":["null","string"],"default":null},
   {"name":"v","type":["null",{"type":"fixed","name":"Small","size":3,"logicalType":"decimal","precision":6,"scale":3}],"default":null}]}}],"default":null},
 {"name":"mm","type":["null",{"type":"map","values":{"type":"record","name":"Q","fields":[{"name":"q","type":["null","int"],"default":null}]}}],"default":null}]}"#;
    let columns =
        ["id", "ts", "bo", "i", "l", "f", "d", "s", "de", "db", "bi", "da", "tu", "ar", "ai", "m", "st", "am", "mm"];
    // As it is written, and as it must be read.
    let pair = |i: i64, ts: i64| {
        let written = row! {"id": format!("k{i}"), "ts": ts, "bo": i % 2 == 0, "i": -70000 - i, "l": (1i64 << 53) + i, "f": 0.1, "d": i as f64 / 3.0,
        "s": format!("Grüße {i} 数 \"\\\n"), "de": i as f64 + 0.25, "db": format!("-{i}.123456789012345678"), "bi": "ab", "da": "1969-12-30",
        "tu": "2024-02-29T23:59:59.123456Z", "ar": ["a", format!("x{i}")], "ai": [i, 2], "m": {"one": 1, "none": null},
        "st": {"a": i, "b": null, "n": {"x": 0.5, "y": []}}, "am": [{"k": "p", "v": 1.5}, {"k": null, "v": null}], "mm": {"z": {"q": i}}};
        let mut read = written.clone();
        read.insert("f".into(), json!(0.1f32 as f64));
        read.insert("de".into(), json!(format!("{i}.25")));
        read.insert("bi".into(), json!("YWI="));
        read["am"][0]["v"] = json!("1.500");
        (written, read)
    };
    let bare = |id: &str| row! {"id": id, "ts": 1};
    for table_type in TABLE_TYPES {
        let mut job = Job::new(SCHEMA, Model::new(&columns), |call| call.flag("--table-type", table_type));
        let (written, read): (Vec<_>, Vec<_>) = (0..4).map(|i| pair(i, 1)).chain([(bare("k9"), bare("k9"))]).unzip();
        job.feed(&written);
        let instant = job.round("BULK_INSERT");
        job.model.insert(&instant, &read);
        job.check();

        let (written, read): (Vec<_>, Vec<_>) = [pair(1, 2), pair(5, 2), (bare("k2"), bare("k2"))].into_iter().unzip();
        job.feed(&written);
        let instant = job.round("UPSERT");
        job.model.upsert(&instant, &read);
        job.check();

        let rows = [pair(3, 3).1, pair(6, 3).1];
        let file = job.scratch.lines("spark.json", &rows);
        let instant = oracle(SPARK_0_15).write(job.table.str(), "upsert", &file, &[]);
        job.model.upsert(&instant, &rows);
        job.check();
        let (written, read) = pair(0, 4);
        job.feed(&[written]);
        let instant = job.round("UPSERT");
        job.model.upsert(&instant, &[read]);
        job.check_through_compaction();
    }
}

#[test]
fn time_stamps_keep_their_value_and_their_unit() {
    needs_peers!();
    let sql = |call: Streamer| {
        call.flag("--transformer-class", "SqlQueryBasedTransformer")
            .conf("hoodie.streamer.transformer.sql", "SELECT * FROM <SRC>")
    };
    for transformed in [false, true] {
        let mut job = Job::new(TICKS, Model::new(&TICK_COLUMNS), |call| if transformed { sql(call) } else { call });
        job.feed(&ticks_written(1));
        let instant = job.round("UPSERT");
        job.model.upsert(&instant, &ticks_read(1));
        job.check();
        for file in job.table.base_files() {
            assert_eq!(unit(&job.table, &file, "tm"), "MILLIS", "of tm in {file}");
            assert_eq!(unit(&job.table, &file, "tu"), "MICROS", "of tu in {file}");
        }
        job.feed(&ticks_written(2)[..1]);
        let instant = job.round("UPSERT");
        job.model.upsert(&instant, &ticks_read(2)[..1]);
        job.check();
        job.feed(&[tick_written("r6", 3)]);
        let instant = job.round("BULK_INSERT");
        job.model.insert(&instant, &[tick_read("r6", 3)]);
        job.check();
    }
}

/// The unit of a time stamp column in a file's own schema.
pub fn unit(table: &Table, file: &str, column: &str) -> String {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    let file = std::fs::File::open(table.path.join(file)).expect("open a base file");
    let reader = SerializedFileReader::new(file).expect("a parquet file");
    let schema = reader.metadata().file_metadata().schema_descr();
    let field = schema.columns().iter().find(|c| c.name() == column).expect("the column is in the file");
    format!("{:?}", field.logical_type_ref().expect("a logical type"))
        .to_uppercase()
        .split("UNIT: ")
        .nth(1)
        .expect("a unit")[..6]
        .trim_matches(|c: char| !c.is_alphabetic())
        .to_owned()
}
