//! `hudi-streamer table …`: what an operator sees of a table, and that no damage goes unnamed.

mod damage;

use std::fs;
use std::path::Path;

use crate::support::*;

/// `table <words> <table> --json`
fn ask(words: &[&str], table: &Table) -> Run {
    let words: Vec<&str> = ["table"].iter().chain(words).copied().chain([table.str()]).collect();
    Streamer::bare().after(&words).switch("--json").run()
}

#[track_caller]
fn answer(words: &[&str], table: &Table) -> Value {
    let run = ask(words, table).ok();
    serde_json::from_str(&run.stdout).unwrap_or_else(|e| panic!("{e}\n{run}"))
}

/// One JSON object a line.
#[track_caller]
fn lines(words: &[&str], table: &Table) -> Vec<Value> {
    let run = ask(words, table).ok();
    run.stdout.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}\n{run}"))).collect()
}

/// What `verify` finds, as `code path`; the exit code must agree.
#[track_caller]
fn faults(words: &[&str], table: &Table) -> Vec<String> {
    let words: Vec<&str> = ["verify"].iter().chain(words).copied().collect();
    let run = ask(&words, table);
    let report: Value = serde_json::from_str(&run.stdout).unwrap_or_else(|e| panic!("{e}\n{run}"));
    let text = |finding: &Value, field: &str| finding[field].as_str().expect("text").to_owned();
    let found: Vec<String> = report["faults"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|finding| format!("{} {}", text(finding, "code"), text(finding, "path")))
        .collect();
    assert_eq!(run.code, Some(i32::from(!found.is_empty())), "{run}");
    assert_eq!(report["whole"], found.is_empty(), "{run}");
    assert_eq!(report["faults_total"], found.len(), "{run}");
    found
}

/// Every table of version 6 that Hudi made here.
fn golden_names() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tables");
    let files = fs::read_dir(folder).expect("list the golden tables");
    let names = files.map(|file| file.expect("list").file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.filter_map(|name| Some(name.strip_suffix(".tar.zst")?.to_owned())).collect();
    names.retain(|name| name.contains("v6_"));
    names.sort();
    names
}

#[test]
fn tables_that_hudi_made_are_whole_and_all_their_rows_are_met() {
    let names = golden_names();
    assert!(names.len() > 30, "{names:?}");
    for name in names {
        let golden = Golden::open(&name);
        for words in [&["verify"][..], &["verify", "--all-columns", "--unique", "table"]] {
            // A key may be in two partitions.
            let run = ask(words, &golden.table);
            let report: Value = serde_json::from_str(&run.stdout).unwrap_or_else(|e| panic!("{name}: {e}\n{run}"));
            assert_eq!((run.code, &report["whole"]), (Some(0), &json!(true)), "{name}\n{run}");
            let rows = golden.rows().len();
            assert_eq!(report["looked_at"]["rows"], rows, "{name}\n{run}");
        }
    }
}

#[test]
fn keys_are_unique_within_what_the_operator_says() {
    let call = |call: Streamer| call.partitioned("dt").op("INSERT").conf("hoodie.parquet.small.file.limit", "0");
    let mut job = Job::new(TRIPS, Model::new(&TRIP_COLUMNS), call);
    job.feed(&[trip(1, 1), trip(2, 1)]);
    job.call.run().ok();
    assert_eq!(faults(&[], &job.table), [""; 0]);
    // The same key in another partition.
    let mut moved = trip(1, 2);
    moved.insert("dt".into(), "2024-01-03".into());
    job.feed(&[moved]);
    job.call.run().ok();
    assert_eq!(faults(&[], &job.table), [""; 0]);
    let found = faults(&["--unique", "table"], &job.table);
    assert!(found.len() == 1 && found[0].starts_with("duplicate-key 2024-01-0"), "{found:?}");
    // And in the same one: plain inserts look nobody up.
    job.feed(&[trip(2, 3)]);
    job.call.run().ok();
    let found = faults(&[], &job.table);
    assert!(found.len() == 1 && found[0].starts_with("duplicate-key 2024-01-03/"), "{found:?}");
    assert_eq!(faults(&["--partition", "2024-01-02"], &job.table), [""; 0]);
    assert_eq!(faults(&["--unique", "nowhere"], &job.table), [""; 0]);
    let text = Streamer::bare().after(&["table", "verify", job.table.str()]).run();
    assert_eq!(text.code, Some(1), "{text}");
    assert!(text.stdout.contains("\"k002\" is there 2 times") && text.stdout.contains("DAMAGED: 1 fault"), "{text}");
}

#[test]
fn a_table_is_shown_as_it_is() {
    let call =
        |call: Streamer| call.partitioned("dt").flag("--table-type", "MERGE_ON_READ").switch("--disable-compaction");
    let mut job = Job::new(TRIPS, Model::new(&TRIP_COLUMNS), call);
    for round in 0..3 {
        job.feed(&trips(0..30, round));
        job.call.run().ok();
    }
    let deltas = job.table.delta_commits();
    let shown = answer(&["show"], &job.table);
    for (field, want) in [
        ("table_name", json!("trips")),
        ("table_type", json!("MERGE_ON_READ")),
        ("partitions", json!(3)),
        ("file_groups", json!(3)),
        ("base_files", json!(3)),
        ("log_files", json!(6)),
        ("small_files", json!(3)),
        ("unseen_files", json!(0)),
        ("completed_writes", json!(3)),
        ("pending", json!([])),
        ("last_compaction", json!(null)),
    ] {
        assert_eq!(shown[field], want, "{field} of {shown:#}");
    }
    let size = |names: &std::collections::BTreeSet<String>| -> u64 {
        names.iter().map(|name| fs::metadata(job.table.path.join(name)).expect("a file").len()).sum()
    };
    assert_eq!(shown["base_bytes"], size(&job.table.base_files()));
    assert_eq!(shown["log_bytes"], size(&job.table.log_files()));
    let last = &shown["last_write"];
    assert_eq!((&last["instant"], &last["rows_updated"]), (&json!(deltas[2]), &json!(30)), "{shown:#}");

    let timeline = answer(&["timeline"], &job.table);
    let entries = timeline["instants"].as_array().expect("instants");
    let told: Vec<&str> = entries.iter().map(|e| e["instant"].as_str().expect("text")).collect();
    assert_eq!(told, deltas.iter().rev().collect::<Vec<_>>());
    assert_eq!((&entries[2]["rows_inserted"], &entries[2]["operation"]), (&json!(30), &json!("UPSERT")));
    assert_eq!(answer(&["timeline", "--limit", "1"], &job.table)["older_instants"], 2);

    let files = lines(&["files"], &job.table);
    let partitions: Vec<(&Value, &Value, &Value)> =
        files.iter().map(|f| (&f["partition"], &f["file_groups"], &f["log_files"])).collect();
    let want = ["2024-01-01", "2024-01-02", "2024-01-03"].map(|p| (json!(p), json!(1), json!(2)));
    assert_eq!(partitions, want.iter().map(|(p, g, l)| (p, g, l)).collect::<Vec<_>>());
    let slices = lines(&["files", "--partition", "2024-01-02/"], &job.table);
    assert_eq!(slices.len(), 1, "{slices:?}");
    assert_eq!(
        (&slices[0]["base_instant"], slices[0]["log_files"].as_array().map(Vec::len)),
        (&json!(deltas[0]), Some(2))
    );
    assert_eq!(lines(&["files", "--slices"], &job.table).len(), 3);

    assert_eq!(faults(&["--all-columns"], &job.table), [""; 0]);
    let checkpoint = answer(&["checkpoint"], &job.table);
    assert_eq!(checkpoint["position"]["checkpoint"], job.table.checkpoint(), "{checkpoint:#}");
    for key in CHECKPOINT_KEYS {
        assert_eq!(checkpoint["position"]["keys"][key], job.table.checkpoint(), "{checkpoint:#}");
    }
}

#[test]
fn a_table_is_looked_at_while_others_write() {
    let call = |call: Streamer| {
        call.partitioned("dt").switch("--continuous").flag("--min-sync-interval-seconds", "0").switch("--no-progress")
    };
    let mut job = Job::new(TRIPS, Model::new(&TRIP_COLUMNS), call);
    job.feed(&trips(0..60, 0));
    let daemon = job.call.start();
    wait_for("a first commit", || !job.table.commits().is_empty());
    let mut fed = 0;
    while job.table.commits().len() < 8 {
        fed += 1;
        job.feed(&trips(0..60, fed));
        assert_eq!(faults(&[], &job.table), [""; 0]);
        for words in [&["show"][..], &["timeline"], &["files", "--slices"], &["checkpoint"]] {
            ask(words, &job.table).ok();
        }
    }
    daemon.signal("TERM");
    daemon.finish().ok();
}

#[test]
fn what_cannot_be_looked_at_is_said_by_another_exit_code() {
    let scratch = Scratch::new();
    let nothing = Table::at(scratch.path("nothing"));
    for words in [&["show"][..], &["timeline"], &["files"], &["verify"], &["checkpoint"]] {
        ask(words, &nothing).fails_with(2, &["no-table", nothing.str()]);
    }
    let golden = Golden::open("v8_cow_part");
    ask(&["verify"], &golden.table).fails_with(2, &["table-version", "8"]);
    drop(golden);
    let golden = Golden::open("v6_cow_part");
    ask(&["verify", "--partition", "2024"], &golden.table).fails_with(2, &["inspect-no-partition", "2024"]);
    ask(&["files", "--partition", "no/such"], &golden.table).fails_with(2, &["inspect-no-partition", "no/such"]);
    Streamer::bare().after(&["table", "verify"]).run().fails_with(2, &["TABLE"]);
}

#[test]
fn archived_instants_are_told_of_on_demand() {
    let golden = Golden::open("v6_cow_archived");
    let instants = |words: &[&str]| -> Vec<(String, bool)> {
        let told = answer(words, &golden.table);
        let entries = told["instants"].as_array().expect("instants").iter();
        entries.map(|e| (e["instant"].as_str().expect("text").to_owned(), e["archived"] == true)).collect()
    };
    let active = instants(&["timeline"]);
    assert!(active.iter().all(|(_, archived)| !archived), "{active:?}");
    let all = instants(&["timeline", "--archived", "--limit", "1000"]);
    assert!(all.len() > active.len() && all.is_sorted_by(|a, b| a.0 > b.0), "{all:?}");
    assert_eq!(all[..active.len()], active);
    assert!(all[active.len()..].iter().all(|(_, archived)| *archived), "{all:?}");
    let some = instants(&["timeline", "--archived", "--limit", &(active.len() + 2).to_string()]);
    assert_eq!(some, all[..active.len() + 2]);
    assert_eq!(instants(&["timeline", "--archived", "--limit", "2"]), active[..2]);
    let clean = &answer(&["show"], &golden.table)["last_clean"];
    assert!(clean["note"].as_str().is_some_and(|note| note.ends_with("deleted")), "{clean:#}");
}
