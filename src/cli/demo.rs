//! `hudi-streamer demo`.

use crate::config::DemoOptions;
use clap::{Arg, ArgMatches, Command, value_parser};
use std::path::PathBuf;
use std::time::Duration;

pub(super) const NAME: &str = "demo";

/// The cluster inside the process keeps 5 MiB of a partition (`rdkafka_mock.c`, 2.12), which is some ten seconds at this rate.
const HIGHEST_RATE: u64 = 5_000;

pub(super) fn command() -> Command {
    let flag = |long: &'static str, value: &'static str| Arg::new(long).long(long).value_name(value);
    Command::new(NAME)
        .about("A continuous Kafka job in one command: live events, a Kafka cluster inside the process, a table")
        .arg(
            flag("rate", "EVENTS")
                .help("Events a second")
                .value_parser(value_parser!(u64).range(1..=HIGHEST_RATE))
                .default_value("100"),
        )
        .arg(
            flag("seconds", "SECONDS")
                .help("How long events are produced; the job then ends once the table has them all [default: until Ctrl-C]")
                .value_parser(value_parser!(u64).range(1..)),
        )
        .arg(
            flag("target-base-path", "PATH")
                .help("Folder of the table, not there yet [default: a new one below the working directory]")
                .value_parser(value_parser!(PathBuf)),
        )
}

pub(super) fn options(matches: &ArgMatches) -> DemoOptions {
    DemoOptions {
        rate: matches.get_one("rate").copied().unwrap_or(1),
        time: matches.get_one("seconds").copied().map(Duration::from_secs),
        table: matches.get_one("target-base-path").cloned(),
    }
}
