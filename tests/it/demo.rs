//! The demo, as a newcomer runs it.

use regex::Regex;

use crate::support::*;

/// The numbers in a line of what is printed at the end.
#[track_caller]
fn numbers<const N: usize>(run: &Run, line: &str) -> [i64; N] {
    let pattern = Regex::new(&format!("(?m)^{line}$")).expect("a good pattern");
    let found = pattern.captures(&run.stdout).unwrap_or_else(|| panic!("no line {line}\n{run}"));
    std::array::from_fn(|i| found[i + 1].parse().expect("digits"))
}

#[test]
fn the_demo_leaves_a_table_that_has_everything() {
    let scratch = Scratch::new();
    let table = Table::at(scratch.path("lake/bikes"));
    let run = Streamer::bare()
        .switch("demo")
        .flag("--seconds", "5")
        .flag("--rate", "200")
        .flag("--target-base-path", &table.path)
        .run()
        .ok();
    let [events, trips, twice, late] =
        numbers(&run, r"produced +(\d+) events of (\d+) trips; (\d+) told twice, (\d+) late");
    let [rows, _updates, commits] = numbers(&run, r"table +(\d+) rows, (\d+) updates, (\d+) commits");
    assert!(events >= 200 && twice > 0 && late > 0, "{run}");
    assert_eq!(rows, trips, "a row a trip\n{run}");
    assert!(commits > 1 && commits == table.commits().len() as i64, "{run}");
    let checkpoint = table.checkpoint();
    let read: i64 = checkpoint
        .split(',')
        .skip(1)
        .map(|p| p.split_once(':').expect("a pair").1.parse::<i64>().expect("an offset"))
        .sum();
    assert_eq!(read, events, "{checkpoint}\n{run}");
    assert!(run.stdout.contains(&checkpoint) && run.stdout.contains(table.str()), "{run}");
    assert!(run.stdout.contains("--source-class JsonKafkaSource"), "the same as an ordinary job\n{run}");
    if peers_enabled() {
        assert_eq!(oracle(HUDI_RS).read(table.str()).len() as i64, trips);
    }

    let again = Streamer::bare().switch("demo").flag("--target-base-path", &table.path).run();
    again.fails_with(2, &["demo-table-exists", table.str(), "--target-base-path"]);
    Streamer::bare().switch("demo").flag("--rate", "0").run().fails_with(2, &["--rate"]);
}

#[test]
fn a_demo_that_is_stopped_says_what_it_did() {
    let scratch = Scratch::new();
    let table = Table::at(scratch.path("bikes"));
    let running = Streamer::bare().switch("demo").flag("--target-base-path", &table.path).start();
    wait_for("two commits", || table.commits().len() >= 2);
    running.signal("INT");
    let run = running.finish().ok();
    let [_rows, _updates, commits] = numbers(&run, r"table +(\d+) rows, (\d+) updates, (\d+) commits");
    assert_eq!(commits, table.commits().len() as i64, "{run}");
    assert!(table.pending().is_empty());
}
