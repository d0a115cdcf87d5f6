//! `hudi-streamer checkpoint …`: positions, for operators.
//!
//! Takes every flag of a job, so that the job's own command line can be put behind it, and requires none but the table.

use super::{Command, flags_of, with_job_flags};
use crate::config::{Error, PositionsCommand, SetHow, StartFrom};
use clap::{Arg, ArgAction, ArgMatches, value_parser};

/// Flags of a job that count here; the others are taken without a word of help.
const COUNT: &[&str] = &[
    "target-base-path",
    "target-table",
    "props",
    "hoodie-conf",
    "source-class",
    "checkpoint",
    "ignore-checkpoint",
    "log-json",
];

/// Milliseconds since 1970 that are less than this are seconds by mistake: it is 1973, when there was nothing to read.
const LEAST_MILLIS: i64 = 100_000_000_000;

pub(super) const NAME: &str = "checkpoint";

/// Reads what stands behind the word `checkpoint`.
pub(super) fn read(matches: &ArgMatches) -> Result<Command, Error> {
    let Some((word, found)) = matches.subcommand() else {
        return Ok(Command::Print(command().render_long_help().to_string()));
    };
    let command = match word {
        "show" => PositionsCommand::Show {
            history: found.get_one::<u64>("history").map_or(0, |n| usize::try_from(*n).unwrap_or(usize::MAX)),
            json: text(found, "output") == "json",
        },
        "set" => PositionsCommand::Set { checkpoint: text(found, "position"), how: how(found) },
        "from-timestamp" => from(found, StartFrom::Timestamp(millis(&text(found, "time"))?)),
        "from-group" => from(found, StartFrom::Group(text(found, "group"))),
        _ => from(found, StartFrom::Earliest),
    };
    Ok(Command::Checkpoint(flags_of(found)?, command))
}

fn text(found: &ArgMatches, id: &str) -> String {
    found.get_one::<String>(id).cloned().unwrap_or_default()
}

fn how(found: &ArgMatches) -> SetHow {
    SetHow { dry_run: found.get_flag("dry-run"), force: found.get_flag("force") }
}

fn from(found: &ArgMatches, start: StartFrom) -> PositionsCommand {
    PositionsCommand::From { start, set: found.get_flag("set").then(|| how(found)) }
}

/// RFC 3339, or milliseconds since 1970.
fn millis(text: &str) -> Result<i64, Error> {
    let wrong = |why: &str| {
        let told =
            format!("from-timestamp {text}: {why}: give milliseconds since 1970, or a time like 2026-01-31T12:00:00Z");
        Error::new("config-bad-value", told)
    };
    match text.parse::<i64>() {
        Ok(millis) if millis < LEAST_MILLIS => Err(wrong("that is before 1973, and looks like seconds")),
        Ok(millis) => Ok(millis),
        Err(_) => match chrono::DateTime::parse_from_rfc3339(text) {
            Ok(time) => Ok(time.timestamp_millis()),
            Err(_) => Err(wrong("not a time with its zone")),
        },
    }
}

pub(super) fn command() -> clap::Command {
    let set = |required: bool| {
        [
            Arg::new("dry-run").long("dry-run").action(ArgAction::SetTrue).help("Say what would change, and write nothing"),
            Arg::new("force").long("force").action(ArgAction::SetTrue).help(
                "Set it in spite of doubts: another topic, partitions that are missing or do not exist, offsets beyond the \
                 end, a write of another process that is open",
            ),
        ]
        .map(|arg| if required { arg } else { arg.requires("set") })
    };
    let or_set = || {
        let arg = Arg::new("set").long("set").action(ArgAction::SetTrue).requires("target-base-path");
        std::iter::once(arg.help("Set the position as `checkpoint set` does, in place of printing it"))
            .chain(set(false))
    };
    let positional = |id: &'static str, name: &'static str, help: &'static str| {
        Arg::new(id).value_name(name).help(help).required(true).allow_negative_numbers(true)
    };
    let history = Arg::new("history").long("history").value_name("COUNT").default_value("10");
    let output = Arg::new("output").long("output").value_name("FORM").default_value("text");
    clap::Command::new(NAME)
        .about("Where the job of a table stands, and how to put it elsewhere. Stop the job before a position is set.")
        .disable_help_subcommand(true)
        .arg_required_else_help(true)
        .subcommands([
            with_flags(
                clap::Command::new("show")
                    .about("The position in force, how far the source is ahead of it, and the commits that led there")
                    .arg(history.value_parser(value_parser!(u64)).help("How many commits to tell of, newest first"))
                    .arg(output.value_parser(["text", "json"]).help("Form of the answer")),
                true,
            ),
            with_flags(
                clap::Command::new("set")
                    .about("Commits no rows and this position, in both of Hudi's spellings: the next run goes on from it")
                    .arg(positional("position", "POSITION", "`topic,0:17,1:4` of a Kafka source (the next offsets to read), epoch milliseconds of a DFS source"))
                    .args(set(true)),
                true,
            ),
            with_flags(
                clap::Command::new("from-timestamp")
                    .about("Prints the position of the first records that are not older than a time")
                    .arg(positional("time", "TIME", "Like 2026-01-31T12:00:00Z, or milliseconds since 1970"))
                    .args(or_set()),
                false,
            ),
            with_flags(
                clap::Command::new("from-group")
                    .about("Prints the position that a consumer group of Kafka has committed")
                    .arg(positional("group", "GROUP", "Its group.id"))
                    .args(or_set()),
                false,
            ),
            with_flags(
                clap::Command::new("from-earliest")
                    .about("Prints the position of the oldest records that the source still has")
                    .args(or_set()),
                false,
            ),
        ])
}

fn with_flags(command: clap::Command, needs_table: bool) -> clap::Command {
    with_job_flags(command, COUNT, needs_table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsString;

    fn with(args: &[&str]) -> Result<Command, Error> {
        super::super::parse(std::iter::once(&NAME).chain(args).map(OsString::from))
    }

    #[track_caller]
    fn command_of(args: &[&str]) -> PositionsCommand {
        match with(args) {
            Ok(Command::Checkpoint(_, command)) => command,
            other => panic!("{args:?}: {other:?}"),
        }
    }

    #[test]
    fn each_question_is_understood() {
        let none = SetHow::default();
        let set = |checkpoint: &str, how| PositionsCommand::Set { checkpoint: checkpoint.into(), how };
        let from = |start, set| PositionsCommand::From { start, set };
        let cases: [(&[&str], PositionsCommand); 9] = [
            (&["show"], PositionsCommand::Show { history: 10, json: false }),
            (&["show", "--history", "0", "--output", "json"], PositionsCommand::Show { history: 0, json: true }),
            (&["set", "t,0:1"], set("t,0:1", none)),
            (
                &["set", "-9223372036854775808", "--dry-run"],
                set("-9223372036854775808", SetHow { dry_run: true, ..none }),
            ),
            (&["set", "--force", "5"], set("5", SetHow { force: true, ..none })),
            (&["from-earliest"], from(StartFrom::Earliest, None)),
            (&["from-group", "g", "--set"], from(StartFrom::Group("g".into()), Some(none))),
            (&["from-timestamp", "1700000000000"], from(StartFrom::Timestamp(1_700_000_000_000), None)),
            (&["from-timestamp", "2023-11-14T23:13:20+01:00"], from(StartFrom::Timestamp(1_700_000_000_000), None)),
        ];
        for (args, want) in cases {
            let args: Vec<&str> = args.iter().chain(&["--target-base-path", "/t"]).copied().collect();
            assert_eq!(command_of(&args), want, "{args:?}");
        }
        command_of(&["from-earliest", "--props", "p"]);
    }

    #[test]
    fn a_job_s_own_command_line_can_stand_behind_it() {
        let job = [
            "--table-type",
            "COPY_ON_WRITE",
            "--op",
            "UPSERT",
            "--continuous",
            "--target-table",
            "t",
            "--checkpoint",
            "5",
        ];
        let args: Vec<&str> = ["show", "--target-base-path", "/t"].iter().chain(&job).copied().collect();
        let Ok(Command::Checkpoint(raw, _)) = with(&args) else { panic!("{args:?}") };
        assert_eq!((raw.value("--target-table"), raw.value("--checkpoint")), (Some("t"), Some("5")));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let cases: [(&[&str], &[&str]); 9] = [
            (&["shwo"], &["shwo", "show"]),
            (&["show"], &["--target-base-path"]),
            (&["set", "--target-base-path", "/t"], &["POSITION"]),
            (&["show", "--target-base-path", "/t", "--output", "xml"], &["xml", "json"]),
            (&["show", "--target-base-path", "/t", "--history", "ten"], &["--history"]),
            (&["from-group", "g", "--force"], &["--set"]),
            (&["from-earliest", "--set"], &["--target-base-path"]),
            (&["from-timestamp", "1700000000"], &["1700000000", "seconds"]),
            (&["from-timestamp", "2023-11-14"], &["2023-11-14", "zone"]),
        ];
        for (args, words) in cases {
            let error = with(args).expect_err(words[0]).to_string();
            assert!(words.iter().all(|w| error.contains(w)) && !error.contains('\n'), "{args:?}: {error}");
        }
    }

    #[test]
    fn help_is_printed() {
        for args in [&[][..], &["--help"], &["show", "--help"], &["from-timestamp", "--help"]] {
            assert!(matches!(with(args), Ok(Command::Print(_))), "{args:?}");
        }
    }
}
