//! `hudi-streamer table …`: what an operator sees of a table, and that no damage goes unnamed.

use std::fs;
use std::path::{Path, PathBuf};

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

/// A damage: what it is done to, and the faults that must be named, as `code` of the damaged file or `code path`.
struct Damage {
    table: &'static str,
    what: &'static str,
    /// Gives the damaged file, below the table.
    by: fn(&Table) -> String,
    codes: &'static [&'static str],
}

fn path(table: &Table, name: &str) -> PathBuf {
    table.path.join(name)
}

/// The newest base file of a partition that has rows in every table that is damaged.
fn newest_base(table: &Table) -> String {
    let files = table.base_files();
    let of = |commit: String| files.iter().find(|name| name.starts_with("2024-01-01/") && name.contains(&commit));
    table.commits().into_iter().rev().find_map(of).expect("a base file").clone()
}

/// The commit that wrote a base file.
fn commit_of(table: &Table, name: &str) -> String {
    let instant = table.commits().into_iter().find(|commit| name.contains(commit)).expect("a completed commit");
    format!(".hoodie/{instant}.commit")
}

fn first_log(table: &Table) -> String {
    table.log_files().into_iter().find(|name| !name.ends_with(".crc")).expect("a log file")
}

fn change(table: &Table, name: &str, by: impl FnOnce(&mut Vec<u8>)) {
    let path = path(table, name);
    let mut bytes = fs::read(&path).expect("read what is to be damaged");
    by(&mut bytes);
    fs::write(path, bytes).expect("damage");
}

/// A copy under another name in the same folder.
fn copy(table: &Table, name: &str, to: impl FnOnce(&str) -> String) -> String {
    let (folder, file) = name.rsplit_once('/').unwrap_or(("", name));
    let to = format!("{folder}/{}", to(file));
    fs::copy(path(table, name), path(table, &to)).expect("copy a file");
    to
}

fn last_commit_file(table: &Table) -> String {
    let last = table.last_commit();
    let name = table.timeline().into_iter().find(|name| name.starts_with(&last) && name.ends_with("commit"));
    format!(".hoodie/{}", name.expect("a completed commit"))
}

const DAMAGES: &[Damage] = &[
    Damage {
        table: "v6_cow_part",
        what: "a base file is gone",
        by: |table| {
            let name = newest_base(table);
            fs::remove_file(path(table, &name)).expect("removed");
            name
        },
        codes: &["file-missing"],
    },
    Damage {
        table: "v6_cow_part",
        what: "a base file is torn",
        by: |table| {
            let name = newest_base(table);
            change(table, &name, |bytes| bytes.truncate(bytes.len() / 2));
            name
        },
        codes: &["base-file", "file-size"],
    },
    Damage {
        table: "v6_cow_part",
        what: "a base file is empty",
        by: |table| {
            let name = newest_base(table);
            change(table, &name, Vec::clear);
            name
        },
        codes: &["base-file", "file-size"],
    },
    Damage {
        table: "v6_cow_part",
        what: "the pages of a base file are overwritten",
        by: |table| {
            let name = newest_base(table);
            change(table, &name, |bytes| bytes[4..60].fill(0xff));
            name
        },
        codes: &["base-file"],
    },
    Damage {
        table: "v6_cow_part",
        what: "the length of a footer is overwritten",
        by: |table| {
            let name = newest_base(table);
            change(table, &name, |bytes| {
                let end = bytes.len();
                bytes[end - 8..end - 4].fill(0x7f);
            });
            name
        },
        codes: &["base-file"],
    },
    Damage {
        table: "v6_cow_part",
        what: "a partition's metafile is gone",
        by: |table| {
            let name = "2024-01-01/.hoodie_partition_metadata";
            fs::remove_file(path(table, name)).expect("removed");
            name.into()
        },
        codes: &["partition-metafile"],
    },
    Damage {
        table: "v6_cow_part",
        what: "a partition's metafile is empty",
        by: |table| {
            let name = "2024-01-01/.hoodie_partition_metadata";
            change(table, name, Vec::clear);
            name.into()
        },
        codes: &["partition-metafile"],
    },
    Damage {
        table: "v6_cow_part",
        what: "a commit is torn",
        by: |table| {
            let name = last_commit_file(table);
            change(table, &name, |bytes| bytes.truncate(bytes.len() / 2));
            name
        },
        codes: &["timeline-file"],
    },
    Damage {
        table: "v6_cow_part",
        what: "a commit is empty, as after a power cut",
        by: |table| {
            let name = last_commit_file(table);
            change(table, &name, Vec::clear);
            name
        },
        codes: &["timeline-file"],
    },
    Damage {
        table: "v6_cow_rollback",
        what: "a rollback is torn",
        by: |table| {
            let name = table.timeline().into_iter().find(|name| name.ends_with(".rollback")).expect("a rollback");
            let name = format!(".hoodie/{name}");
            change(table, &name, |bytes| bytes.truncate(bytes.len() / 2));
            name
        },
        codes: &["timeline-file"],
    },
    Damage {
        table: "v6_cow_part",
        what: "hoodie.properties is torn, and its backup is there",
        by: |table| {
            let name = ".hoodie/hoodie.properties";
            fs::copy(path(table, name), path(table, ".hoodie/hoodie.properties.backup")).expect("a backup");
            change(table, name, |bytes| bytes.truncate(100));
            name.into()
        },
        codes: &["table-properties"],
    },
    Damage {
        table: "v6_cow_part",
        what: "a commit counts other rows than its file has",
        by: |table| {
            let name = newest_base(table);
            let commit = commit_of(table, &name);
            let text = fs::read_to_string(path(table, &commit)).expect("read a commit");
            let stat = text.find(&name).expect("the file's statistics");
            let rows = stat + text[stat..].find("\"numWrites\" : ").expect("rows") + "\"numWrites\" : ".len();
            change(table, &commit, |bytes| bytes[rows] = if bytes[rows] == b'9' { b'8' } else { b'9' });
            name
        },
        codes: &["file-rows"],
    },
    Damage {
        table: "v6_cow_part",
        what: "the least key of a footer is another one",
        by: |table| {
            let name = newest_base(table);
            change(table, &name, |bytes| {
                let key = b"hoodie_min_record_key";
                let at = bytes.windows(key.len()).rposition(|w| w == key).expect("the key of the footer");
                let value = at + key.len() + bytes[at + key.len()..].iter().position(|b| *b == b'k').expect("a key");
                bytes[value] = b'l';
            });
            name
        },
        codes: &["key-range"],
    },
    Damage {
        table: "v6_cow_part",
        what: "a bloom filter has lost its bits",
        by: |table| {
            let name = newest_base(table);
            change(table, &name, |bytes| {
                let key = b"org.apache.hudi.bloomfilter";
                let at = bytes.windows(key.len()).rposition(|w| w == key).expect("the filter of the footer");
                // Behind its header, which is as long as 100 letters at most.
                bytes[at + 200..at + 400_000].fill(b'A');
            });
            name
        },
        codes: &["bloom-filter"],
    },
    Damage {
        table: "v6_cow_part",
        what: "rows are there twice, in a copy of a base file",
        by: |table| {
            let name = newest_base(table);
            copy(table, &name, |file| format!("00000000{}", &file[8..]))
        },
        codes: &["duplicate-key", "meta-columns"],
    },
    Damage {
        table: "v6_cow_part",
        what: "a slice has two base files",
        by: |table| {
            let name = newest_base(table);
            let token = regex::Regex::new(r"_(\d+-\d+-\d+)_").expect("a good pattern");
            copy(table, &name, |file| token.replace(file, "_9-9-9_").into_owned())
        },
        codes: &["meta-columns", "slice-twice"],
    },
    Damage {
        table: "v6_cow_part",
        what: "a file is left by a write that nobody knows of",
        by: |table| {
            let instant = regex::Regex::new(r"\d{17}").expect("a good pattern");
            let other = |file: &str| format!("00000000{}", &instant.replace(file, "29990101000000000")[8..]);
            copy(table, &newest_base(table), other)
        },
        codes: &["orphan-file"],
    },
    Damage {
        table: "v6_mor_logs",
        what: "a log file is gone",
        by: |table| {
            let name = first_log(table);
            fs::remove_file(path(table, &name)).expect("removed");
            name
        },
        codes: &["file-missing"],
    },
    Damage {
        table: "v6_mor_logs",
        what: "a log file is torn",
        by: |table| {
            let name = first_log(table);
            change(table, &name, |bytes| bytes.truncate(bytes.len() - 10));
            name
        },
        codes: &["file-size", "log-block"],
    },
    Damage {
        table: "v6_mor_logs",
        what: "a log file is empty",
        by: |table| {
            let name = first_log(table);
            change(table, &name, Vec::clear);
            name
        },
        codes: &["file-size", "log-block"],
    },
    Damage {
        table: "v6_mor_logs",
        what: "a log file begins with other bytes",
        by: |table| {
            let name = first_log(table);
            change(table, &name, |bytes| bytes[..6].fill(b'#'));
            name
        },
        codes: &["log-block"],
    },
    Damage {
        table: "v6_mor_logs",
        what: "the records of a log block are overwritten",
        by: |table| {
            let name = first_log(table);
            change(table, &name, |bytes| {
                let end = bytes.len();
                bytes[end - 60..end - 20].fill(0xff);
            });
            name
        },
        codes: &["log-block"],
    },
    Damage {
        table: "v6_mor_logs",
        what: "a base file under logs is gone",
        by: |table| {
            let log = first_log(table);
            let (folder, log) = log.rsplit_once('/').expect("in a partition");
            let group = log[1..].split_once('_').expect("a log's name").0;
            let base = table.base_files().into_iter().find(|name| name.starts_with(&format!("{folder}/{group}")));
            let name = base.expect("a base file of the group");
            fs::remove_file(path(table, &name)).expect("removed");
            name
        },
        codes: &["file-missing"],
    },
];

#[test]
fn each_damage_is_named() {
    let mut wrong = Vec::new();
    for Damage { table, what, by, codes } in DAMAGES {
        let golden = Golden::open(table);
        let damaged = by(&golden.table);
        let found = faults(&[], &golden.table);
        // A key that is there twice is told of a file group.
        let is_named = |code: &str| match code {
            "duplicate-key" => found.iter().any(|fault| fault.starts_with(code)),
            _ => found.contains(&format!("{code} {damaged}")),
        };
        let is_wanted = |fault: &String| codes.iter().any(|code| fault.starts_with(&format!("{code} ")));
        if !codes.iter().all(|code| is_named(code)) || !found.iter().all(is_wanted) {
            wrong.push(format!("{what}: want {codes:?} of {damaged}, found {found:#?}"));
        }
        // Nothing else that is asked of a table needs it whole.
        for words in ["show", "timeline", "files"] {
            ask(&[words], &golden.table).ok();
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn pages_of_any_column_are_looked_at_on_demand() {
    let golden = Golden::open("v6_cow_part");
    let name = newest_base(&golden.table);
    // The page of `qty`, between two columns that nobody asks for either.
    change(&golden.table, &name, |bytes| bytes[664..718].fill(0xff));
    assert_eq!(faults(&[], &golden.table), [""; 0], "the column is not read");
    let found = faults(&["--all-columns"], &golden.table);
    assert_eq!(found, [format!("base-file {name}")]);
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
        names.iter().map(|name| fs::metadata(path(&job.table, name)).expect("a file").len()).sum()
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

/// The instrument against Hudi's own classes, on tables that are whole and on tables that are not.
#[test]
fn hudis_own_classes_agree() {
    needs_peers!();
    for (name, damage) in [
        ("v6_mor_compacted", None),
        ("v6_cow_part", Some("a base file is torn")),
        ("v6_mor_logs", Some("a log file is torn")),
    ] {
        let golden = Golden::open(name);
        if let Some(what) = damage {
            let damage = DAMAGES.iter().find(|damage| damage.what == what).expect("a damage");
            (damage.by)(&golden.table);
        }
        let is_whole = faults(&[], &golden.table).is_empty();
        assert_eq!(is_whole, damage.is_none(), "{name}");
        assert_eq!(oracle(SPARK_0_15).finds_whole(golden.table.str()), is_whole, "{name}");
    }
}
