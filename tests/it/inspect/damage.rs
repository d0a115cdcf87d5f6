//! Tables that are damaged on purpose: each damage is named, and nothing else.

use std::fs;
use std::path::PathBuf;

use super::{ask, faults};
use crate::support::*;

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
        table: "v6_cow_part",
        what: "a file that a savepoint holds is gone",
        by: |table| {
            let old = table.commits().into_iter().next().expect("a commit");
            let create = ["savepoint", "create", "--target-base-path", table.str(), "--instant-time", &old];
            Streamer::bare().after(&create).run().ok();
            let held = |name: &String| name.starts_with("2024-01-01/") && name.contains(&old);
            let name = table.base_files().into_iter().find(held).expect("a base file of the first commit");
            fs::remove_file(path(table, &name)).expect("removed");
            name
        },
        codes: &["savepoint-file"],
    },
    Damage {
        table: "v6_cow_part",
        what: "a savepoint is torn",
        by: |table| {
            let create = ["savepoint", "create", "--target-base-path", table.str()];
            Streamer::bare().after(&create).run().ok();
            let name = format!(".hoodie/{}.savepoint", table.last_commit());
            change(table, &name, |bytes| bytes.truncate(bytes.len() / 2));
            name
        },
        codes: &["timeline-file"],
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
