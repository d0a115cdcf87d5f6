//! `hudi-streamer table …`: a table, for a person who looks at it and for a script.
//!
//! Takes every flag of a job, so that the job's own command line can be put behind it, and requires none but the table.

use super::{Command, flags_of, with_job_flags};
use crate::config::{Error, FilesCommand, RawArgs, TableCommand, UniqueKeys, VerifyCommand};
use clap::{Arg, ArgAction, ArgMatches, value_parser};
use std::path::PathBuf;

pub(super) const NAME: &str = "table";

/// Flags of a job that count here.
const COUNT: &[&str] = &["target-base-path", "props", "hoodie-conf", "log-json"];
/// The same of `table checkpoint`, which may ask a broker.
const COUNT_OF_POSITIONS: &[&str] =
    &["target-base-path", "props", "hoodie-conf", "source-class", "checkpoint", "ignore-checkpoint", "log-json"];
/// The same of `table verify`.
const COUNT_OF_VERIFY: &[&str] = &["target-base-path", "props", "hoodie-conf", "no-progress", "log-json"];

const TABLE_FLAG: &str = "target-base-path";

/// Reads what stands behind the word `table`.
pub(super) fn read(matches: &ArgMatches) -> Result<Command, Error> {
    let Some((word, found)) = matches.subcommand() else {
        return Ok(Command::Print(command().render_long_help().to_string()));
    };
    let count = |id: &str| found.get_one::<u64>(id).map_or(0, |n| usize::try_from(*n).unwrap_or(usize::MAX));
    let text = |id: &str| found.get_one::<String>(id).cloned();
    let command = match word {
        "show" => TableCommand::Show,
        "timeline" => TableCommand::Timeline { limit: count("limit"), archived: found.get_flag("archived") },
        "checkpoint" => TableCommand::Checkpoint { history: count("history") },
        "files" => TableCommand::Files(FilesCommand { partition: text("partition"), slices: found.get_flag("slices") }),
        _ => TableCommand::Verify(VerifyCommand {
            partition: text("partition"),
            unique: match text("unique").as_deref() {
                Some("table") => UniqueKeys::Table,
                Some("nowhere") => UniqueKeys::Nowhere,
                _ => UniqueKeys::Partition,
            },
            all_columns: found.get_flag("all-columns"),
            spill: found.get_one::<PathBuf>("spill").cloned(),
        }),
    };
    Ok(Command::Table { raw: raw(found)?, command, json: found.get_flag("json") })
}

/// The flags, with the table's folder under its first name.
fn raw(found: &ArgMatches) -> Result<RawArgs, Error> {
    let mut raw = flags_of(found)?;
    if let Some(table) = found.get_one::<String>("table") {
        raw.values.insert("--target-base-path", vec![table.clone()]);
    }
    Ok(raw)
}

pub(super) fn command() -> clap::Command {
    let number = |id: &'static str, default: &'static str, help: &'static str| {
        let arg = Arg::new(id).long(id).value_name("COUNT").default_value(default).help(help);
        arg.value_parser(value_parser!(u64))
    };
    let switch = |id: &'static str, help: &'static str| Arg::new(id).long(id).action(ArgAction::SetTrue).help(help);
    let partition = |help: &'static str| {
        Arg::new("partition").long("partition").value_name("PATH").allow_hyphen_values(true).help(help)
    };
    let verify = clap::Command::new("verify")
        .about("Reads the table and names what is wrong with it; exit code 1 if anything is")
        .long_about(VERIFY)
        .arg(partition("This partition alone, by its path below the table"))
        .arg(
            Arg::new("unique")
                .long("unique")
                .value_name("WHERE")
                .default_value("partition")
                .value_parser(["partition", "table", "nowhere"])
                .help("Within what a record key is to be there once: `table` suits a global index, `nowhere` a table of plain inserts"),
        )
        .arg(switch("all-columns", "Decode every column of every base file, not only Hudi's own"))
        .arg(
            Arg::new("spill")
                .long("spill")
                .value_name("FOLDER")
                .value_parser(value_parser!(PathBuf))
                .help("Where keys go that do not fit into memory: 16 bytes a row [default: the folder for temporary files]"),
        );
    clap::Command::new(NAME)
        .about("Looks at a table, of this program or of Spark, also while others write; changes nothing")
        .disable_help_subcommand(true)
        .arg_required_else_help(true)
        .subcommands([
            with_flags(
                clap::Command::new("show")
                    .about("The table at a glance: what it is, how large, what was done to it last, what is open"),
                COUNT,
            ),
            with_flags(
                clap::Command::new("timeline")
                    .about("What was done to the table, newest first")
                    .arg(number("limit", "20", "How many instants to tell of"))
                    .arg(switch("archived", "Tell of archived instants, too, which are older than the others")),
                COUNT,
            ),
            with_flags(
                clap::Command::new("checkpoint")
                    .about("Where the job stands that feeds the table; with its brokers, how far behind it is")
                    .arg(number("history", "10", "How many commits to tell of, newest first")),
                COUNT_OF_POSITIONS,
            ),
            with_flags(
                clap::Command::new("files")
                    .about("A line a partition, or a line a file group; as JSON, an object a line")
                    .arg(partition("This partition alone, a line a file group"))
                    .arg(switch("slices", "A line a file group, for every partition")),
                COUNT,
            ),
            with_flags(verify, COUNT_OF_VERIFY),
        ])
}

const VERIFY: &str = "Reads the table and names what is wrong with it.\n\n\
    Looked at: hoodie.properties and every file of the active timeline; that the files which commits wrote are there, with the \
    sizes and rows that the commits say; partition metafiles; footers, bloom filters and key ranges of base files against their \
    keys; Hudi's own columns of every row; every block of every log file; record keys that are there twice once logs are merged; \
    data files that no instant explains. Only what readers see now is read, and older slices are not. Files that a writer \
    replaces meanwhile are looked at again.\n\n\
    Memory: 256 MiB for keys, whatever the number of rows (more of them go to --spill, 16 bytes each, and are read back in 1024 \
    parts); besides, for each file read at a time, the keys of its logs; and about 200 bytes a file group that the active timeline \
    wrote.\n\n\
    Exit code: 0 the table is whole, 1 it is not, 2 it could not be looked at.";

fn with_flags(command: clap::Command, count: &[&str]) -> clap::Command {
    let table = Arg::new("table")
        .value_name("TABLE")
        .required_unless_present(TABLE_FLAG)
        .help("Folder of the table (or --target-base-path)");
    let json = Arg::new("json").long("json").action(ArgAction::SetTrue).help("The answer as JSON, for scripts");
    with_job_flags(command.arg(table).arg(json), count, false)
        .mut_arg(TABLE_FLAG, |flag| flag.visible_alias("base-path").conflicts_with("table").hide(true))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsString;

    fn with(args: &[&str]) -> Result<Command, Error> {
        super::super::parse(std::iter::once(&NAME).chain(args).map(OsString::from))
    }

    #[test]
    fn each_question_is_understood() {
        let files = |partition: Option<&str>, slices| {
            TableCommand::Files(FilesCommand { partition: partition.map(str::to_string), slices })
        };
        let cases: [(&[&str], TableCommand, bool); 8] = [
            (&["show", "/t"], TableCommand::Show, false),
            (&["show", "--target-base-path", "/t", "--json"], TableCommand::Show, true),
            (&["timeline", "/t"], TableCommand::Timeline { limit: 20, archived: false }, false),
            (
                &["timeline", "/t", "--limit", "0", "--archived"],
                TableCommand::Timeline { limit: 0, archived: true },
                false,
            ),
            (&["checkpoint", "/t"], TableCommand::Checkpoint { history: 10 }, false),
            (&["files", "--base-path", "/t"], files(None, false), false),
            (&["files", "/t", "--partition", "", "--slices"], files(Some(""), true), false),
            (
                &["verify", "/t", "--unique", "table", "--all-columns", "--spill", "/s", "--partition", "p=1"],
                TableCommand::Verify(VerifyCommand {
                    partition: Some("p=1".into()),
                    unique: UniqueKeys::Table,
                    all_columns: true,
                    spill: Some("/s".into()),
                }),
                false,
            ),
        ];
        for (args, want, in_json) in cases {
            let Ok(Command::Table { raw, command, json }) = with(args) else { panic!("{args:?}: {:?}", with(args)) };
            assert_eq!((command, json, raw.value("--target-base-path")), (want, in_json, Some("/t")), "{args:?}");
        }
    }

    #[test]
    fn a_job_s_own_command_line_can_stand_behind_it() {
        let job = ["--table-type", "COPY_ON_WRITE", "--op", "UPSERT", "--continuous", "--target-base-path", "/t"];
        for word in ["show", "timeline", "checkpoint", "files", "verify"] {
            let args: Vec<&str> = [word].iter().chain(&job).copied().collect();
            let Ok(Command::Table { raw, .. }) = with(&args) else { panic!("{args:?}: {:?}", with(&args)) };
            assert_eq!(raw.value("--target-base-path"), Some("/t"));
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        let cases: [(&[&str], &[&str]); 6] = [
            (&["shwo", "/t"], &["shwo", "show"]),
            (&["show"], &["TABLE"]),
            (&["show", "/t", "--target-base-path", "/u"], &["--target-base-path", "TABLE"]),
            (&["timeline", "/t", "--limit", "many"], &["--limit"]),
            (&["verify", "/t", "--unique", "yes"], &["yes", "nowhere"]),
            (&["files", "/t", "--archived"], &["--archived"]),
        ];
        for (args, words) in cases {
            let error = with(args).expect_err(args[0]).to_string();
            assert!(words.iter().all(|w| error.contains(w)) && !error.contains('\n'), "{args:?}: {error}");
        }
        for args in [&[][..], &["--help"], &["verify", "--help"]] {
            assert!(matches!(with(args), Ok(Command::Print(_))), "{args:?}");
        }
    }
}
