//! `hudi-streamer clean|archive|savepoint|rollback|restore …`: services that an operator asks for.
//!
//! Each takes every flag of a job, so that the job's own command line can be put behind it, and requires none but the
//! table. Instants are spelled `--instant`, and as Hudi's own tools spell them.

use super::{Command, flags_of, with_job_flags};
use crate::config::{Error, SavepointCommand, ServiceCommand, ServiceOptions};
use clap::{Arg, ArgAction, ArgMatches};

/// Flags of a job that count here.
const COUNT: &[&str] = &["target-base-path", "target-table", "props", "hoodie-conf", "log-json"];

/// `Some` when the word is one of these commands.
pub(super) fn read(word: &str, found: &ArgMatches) -> Option<Result<Command, Error>> {
    let (found, command) = match word {
        "clean" => (found, ServiceCommand::Clean),
        "archive" => (found, ServiceCommand::Archive),
        "rollback" => (found, ServiceCommand::Rollback { instant: text(found, "instant") }),
        "restore" => (found, ServiceCommand::Restore { instant: text(found, "instant") }),
        "savepoint" => match found.subcommand() {
            Some((word, found)) => (found, ServiceCommand::Savepoint(savepoint(word, found))),
            None => return Some(Ok(Command::Print(savepoint_command().render_long_help().to_string()))),
        },
        _ => return None,
    };
    let switch = |id: &str| found.try_get_one::<bool>(id).ok().flatten().copied().unwrap_or_default();
    let options = ServiceOptions { dry_run: switch("dry-run"), json: switch("json") };
    Some(flags_of(found).map(|raw| Command::Service(raw, command, options)))
}

fn savepoint(word: &str, found: &ArgMatches) -> SavepointCommand {
    let or_empty = |id: &str| text(found, id).unwrap_or_default();
    match word {
        "create" => SavepointCommand::Create {
            instant: text(found, "instant"),
            user: or_empty("user"),
            comments: or_empty("comments"),
        },
        "delete" => SavepointCommand::Delete { instant: or_empty("instant") },
        _ => SavepointCommand::List,
    }
}

fn text(found: &ArgMatches, id: &str) -> Option<String> {
    found.get_one::<String>(id).cloned()
}

pub(super) fn commands() -> [clap::Command; 5] {
    let clean = clap::Command::new("clean").about("Removes files that no reader within the table's window needs");
    let archive =
        clap::Command::new("archive").about("Moves old instants of the active timeline into the archived one");
    let rollback = clap::Command::new("rollback")
        .about("Takes back the newest write of a table, completed or not")
        .arg(instant("The write [default: the newest one]"));
    let restore = clap::Command::new("restore")
        .about("Brings a table back to a savepoint: whatever was written after it is gone, its checkpoints too")
        .arg(instant("The savepoint, or a completed write [default: the newest savepoint]"));
    [acting(clean), acting(archive), savepoint_command(), acting(rollback), acting(restore)]
}

fn savepoint_command() -> clap::Command {
    let value = |long: &'static str, name: &'static str| Arg::new(long).long(long).value_name(name);
    let create = clap::Command::new("create")
        .about("Keeps all files of a completed write from the cleaner, so that the table can be restored to it")
        .arg(instant("The write [default: the newest completed one]"))
        .arg(value("user", "NAME").help("Who makes it: kept with the savepoint"))
        .arg(value("comments", "TEXT").help("What it is for: kept with the savepoint"));
    let delete = clap::Command::new("delete")
        .about("Forgets a savepoint: its files are the cleaner's again")
        .arg(instant("The savepoint").required(true));
    let list = clap::Command::new("list").about("The savepoints of a table, newest first");
    clap::Command::new("savepoint")
        .about("Points of a table that it can be restored to")
        .disable_help_subcommand(true)
        .arg_required_else_help(true)
        .subcommands([acting(create), acting(delete), with_job_flags(list.arg(json()), COUNT, true)])
}

/// `--instant-time` is the spelling of Hudi's procedures and utilities, the others those of its shell.
fn instant(help: &'static str) -> Arg {
    Arg::new("instant")
        .long("instant")
        .visible_alias("instant-time")
        .aliases(["commit", "savepoint"])
        .value_name("INSTANT")
        .help(help)
}

fn json() -> Arg {
    Arg::new("json").long("json").action(ArgAction::SetTrue).help("The answer as JSON")
}

fn acting(command: clap::Command) -> clap::Command {
    let dry_run = Arg::new("dry-run").long("dry-run").action(ArgAction::SetTrue);
    let command = command.arg(json()).arg(dry_run.help("Say what would be done, and write nothing"));
    with_job_flags(command, COUNT, true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsString;

    fn with(args: &[&str]) -> Result<Command, Error> {
        super::super::parse(args.iter().map(OsString::from))
    }

    #[test]
    fn each_service_is_understood() {
        let create = |instant: Option<&str>, user: &str, comments: &str| {
            let (instant, user, comments) = (instant.map(str::to_string), user.to_string(), comments.to_string());
            ServiceCommand::Savepoint(SavepointCommand::Create { instant, user, comments })
        };
        let t = || Some("20260101000000000".to_string());
        let cases: [(&[&str], ServiceCommand); 9] = [
            (&["clean"], ServiceCommand::Clean),
            (&["archive"], ServiceCommand::Archive),
            (&["savepoint", "create"], create(None, "", "")),
            (
                &["savepoint", "create", "--commit", "20260101000000000", "--user", "me", "--comments", "before x"],
                create(Some("20260101000000000"), "me", "before x"),
            ),
            (
                &["savepoint", "delete", "--instant", "20260101000000000"],
                ServiceCommand::Savepoint(SavepointCommand::Delete { instant: "20260101000000000".into() }),
            ),
            (&["savepoint", "list"], ServiceCommand::Savepoint(SavepointCommand::List)),
            (&["rollback"], ServiceCommand::Rollback { instant: None }),
            (&["rollback", "--instant-time", "20260101000000000"], ServiceCommand::Rollback { instant: t() }),
            (&["restore", "--savepoint", "20260101000000000"], ServiceCommand::Restore { instant: t() }),
        ];
        for (args, wanted) in cases {
            let job = ["--target-base-path", "/t", "--table-type", "MERGE_ON_READ", "--continuous", "--json"];
            let Ok(Command::Service(raw, command, options)) = with(&[args, &job].concat()) else { panic!("{args:?}") };
            assert_eq!((command, raw.value("--target-base-path")), (wanted, Some("/t")));
            assert_eq!(options, ServiceOptions { dry_run: false, json: true });
        }
        let Ok(Command::Service(_, _, options)) = with(&["clean", "--target-base-path", "/t", "--dry-run"]) else {
            panic!("clean")
        };
        assert_eq!(options, ServiceOptions { dry_run: true, json: false });
    }

    #[test]
    fn what_is_missing_is_named() {
        for (args, word) in [
            (&["clean"][..], "--target-base-path"),
            (&["savepoint", "delete", "--target-base-path", "/t"], "--instant"),
            (&["savepoint", "drop", "--target-base-path", "/t"], "drop"),
        ] {
            let error = with(args).expect_err(word).to_string();
            assert!(error.contains(word) && !error.contains('\n'), "{args:?}: {error}");
        }
        let Ok(Command::Print(help)) = with(&["savepoint"]) else { panic!("no help") };
        assert!(help.contains("create") && help.contains("delete") && help.contains("list"), "{help}");
    }
}
