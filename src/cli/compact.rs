//! `hudi-streamer compact …`: compaction by a process of its own, spelled as Hudi's `HoodieCompactor` (0.15) or as a job.

use super::{Command, flags_of, with_job_flags};
use crate::config::{CompactCommand, CompactMode, Error};
use clap::{Arg, ArgAction, ArgMatches, value_parser};
use std::ffi::OsString;

pub(super) const NAME: &str = "compact";

/// Flags of a job that count here.
const COUNT: &[&str] = &["target-base-path", "target-table", "props", "hoodie-conf", "payload-class", "log-json"];

/// JCommander's short names have two letters, which clap would take for two flags.
const SHORT: &[(&str, &str)] = &[
    ("-sp", "--target-base-path"),
    ("--base-path", "--target-base-path"),
    ("-tn", "--target-table"),
    ("--table-name", "--target-table"),
    ("-it", "--instant-time"),
    ("-st", "--strategy"),
    ("-m", "--mode"),
    ("-sc", "--schedule"),
    ("-rt", "--retry"),
    ("-pl", "--parallelism"),
    ("-sf", "--schema-file"),
    ("-ms", "--spark-master"),
    ("-sm", "--spark-memory"),
];

/// Flags of `HoodieCompactor` that change nothing here, and why.
const IDLE: &[(&str, &str)] = &[
    ("parallelism", "hoodie.streamer.workers says how many threads work"),
    ("schema-file", "the table's own schema counts"),
    ("spark-memory", "there is no Spark here"),
];

/// Hudi's spellings, as those that clap is told of.
pub(super) fn spelled(args: Vec<OsString>) -> Vec<OsString> {
    if args.first().is_none_or(|first| first != NAME) {
        return args;
    }
    let long = |arg: OsString| match SHORT.iter().find(|(short, _)| arg == *short) {
        Some((_, long)) => OsString::from(long),
        None => arg,
    };
    args.into_iter().map(long).collect()
}

/// Reads what stands behind the word `compact`.
pub(super) fn read(found: &ArgMatches) -> Result<Command, Error> {
    let text = |id: &str| found.get_one::<String>(id).cloned();
    let word = text("mode").map(|mode| mode.to_ascii_lowercase().replace('-', ""));
    let mode = match (word.as_deref(), found.get_flag("schedule")) {
        (Some("schedule"), _) | (None, true) => CompactMode::Schedule,
        (Some("execute"), false) | (None, false) => CompactMode::Execute,
        (Some("scheduleandexecute"), _) => CompactMode::ScheduleAndExecute,
        (Some(word), _) => {
            let told =
                format!("--mode {word}: it is schedule, execute or scheduleAndExecute, and --schedule is the first");
            return Err(Error::new("config-bad-value", told));
        }
    };
    let mut raw = flags_of(found)?;
    if let Some(class) = text("strategy") {
        let conf = format!("hoodie.compaction.strategy={class}");
        raw.values.entry("--hoodie-conf").or_default().push(conf);
    }
    for (flag, why) in IDLE.iter().filter(|(flag, _)| found.contains_id(flag)) {
        raw.warnings.push(format!("--{flag} has no effect: {why}"));
    }
    let retries = found.get_one::<u32>("retry").copied().unwrap_or_default();
    Ok(Command::Compact(raw, CompactCommand { mode, instant: text("instant-time"), retries }))
}

pub(super) fn command() -> clap::Command {
    let value = |long: &'static str, name: &'static str| Arg::new(long).long(long).value_name(name);
    let command = clap::Command::new(NAME)
        .about("Compacts a merge-on-read table that another job ingests")
        .long_about(
            "Compacts a merge-on-read table that another job ingests.\n\n\
             execute is safe beside a job that writes: it touches no open write, and new log files of that job go where \
             the plan says. schedule is safe while no write is open, and refuses otherwise; a plan that came to be beside a \
             write that cannot know of it is taken back. A job of Spark does not look for plans right before it commits: \
             stop it for a plan, or let it make the plans. A job of this program looks. Simplest is to let the ingesting job \
             make the plans (--disable-compaction with hoodie.compact.schedule.inline=true) and to execute them here.",
        )
        .arg(value("mode", "MODE").help(
            "schedule (make a plan, if one is due), execute (the plans that wait, oldest first) or scheduleAndExecute \
             [default: execute]",
        ))
        .arg(
            value("instant-time", "INSTANT")
                .help("execute: this plan alone; schedule: the instant of the plan, newer than all of the timeline"),
        )
        .arg(value("strategy", "CLASS").help("What a plan takes: hoodie.compaction.strategy"))
        .arg(
            value("retry", "COUNT")
                .value_parser(value_parser!(u32))
                .help("Tries more, where a failure may pass [default: 0]"),
        )
        .arg(Arg::new("schedule").long("schedule").action(ArgAction::SetTrue).help("The same as --mode schedule"));
    let idle = IDLE.iter().map(|(long, _)| value(long, "VALUE").hide(true));
    with_job_flags(command.args(idle), COUNT, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(args: &[&str]) -> Result<Command, Error> {
        super::super::parse(std::iter::once(&NAME).chain(args).map(OsString::from))
    }

    #[test]
    fn hudis_spelling_and_the_streamers_are_understood() {
        let ours = ["--target-base-path", "/t", "--mode", "execute", "--instant-time", "20260101000000000"];
        let hudis = ["-sp", "/t", "-m", "EXECUTE", "-it", "20260101000000000"];
        let both = [ours, hudis].map(|args| with(&args).expect("understood"));
        assert_eq!(both[0], both[1]);
        let instant = Some("20260101000000000".to_string());
        let Command::Compact(_, command) = &both[0] else { panic!("{both:?}") };
        assert_eq!(*command, CompactCommand { mode: CompactMode::Execute, instant, retries: 0 });

        let args = ["--base-path", "/t", "-tn", "trips", "-st", "a.b.UnBounded", "-sc", "-rt", "2", "-sm", "1g"];
        let Ok(Command::Compact(raw, command)) = with(&args) else { panic!("{args:?}") };
        assert_eq!(command, CompactCommand { mode: CompactMode::Schedule, instant: None, retries: 2 });
        assert_eq!(raw.value("--target-table"), Some("trips"));
        assert_eq!(raw.list("--hoodie-conf"), ["hoodie.compaction.strategy=a.b.UnBounded"]);
        assert!(raw.warnings.iter().any(|w| w.contains("--spark-memory")), "{:?}", raw.warnings);
    }

    #[test]
    fn a_job_s_own_command_line_can_stand_behind_it() {
        let args =
            ["-sp", "/t", "--table-type", "MERGE_ON_READ", "--op", "UPSERT", "--continuous", "--target-table", "t"];
        let Ok(Command::Compact(_, command)) = with(&args) else { panic!("{args:?}") };
        assert_eq!(command.mode, CompactMode::Execute, "as Hudi's compactor without a mode");
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (args, words) in [
            (&["-m", "both", "-sp", "/t"][..], &["both", "scheduleAndExecute"][..]),
            (&["-m", "execute", "-sc", "-sp", "/t"], &["--schedule"]),
            (&["-m", "schedule"], &["--target-base-path"]),
            (&["-sp", "/t", "--retry", "x"], &["--retry"]),
        ] {
            let error = with(args).expect_err(words[0]).to_string();
            assert!(words.iter().all(|w| error.contains(w)) && !error.contains('\n'), "{args:?}: {error}");
        }
        let Ok(Command::Print(help)) = with(&["--help"]) else { panic!("no help") };
        assert!(help.contains("--instant-time") && !help.contains("--continuous"), "{help}");
    }
}
