//! Flags, spelled as Hudi's Streamer spells them, parsed by clap from one table (`flags.rs`).
//!
//! Checks form only; what values mean is `config`'s. Look at [`parse`] first. Invariant: a flag of Hudi that is not done yet
//! is refused by name; none is ignored without a word.

mod checkpoint;
mod compact;
mod demo;
mod flags;
mod service;
mod table;

use crate::config::{CompactCommand, DemoOptions, Error, PositionsCommand, RawArgs};
use crate::config::{ServiceCommand, ServiceOptions, TableCommand};
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches};
use flags::{FLAGS, Flag, Kind, State};
use std::ffi::OsString;

/// What the user asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// A job.
    Run(RawArgs),
    /// A job that brings its own Kafka.
    Demo(DemoOptions),
    /// A look at a table's positions, or a change of them.
    Checkpoint(RawArgs, PositionsCommand),
    /// A table's compaction.
    Compact(RawArgs, CompactCommand),
    /// A service of a table.
    Service(RawArgs, ServiceCommand, ServiceOptions),
    /// A look at a table.
    Table { raw: RawArgs, command: TableCommand, json: bool },
    /// Text for standard output: help, version, the reference of keys.
    Print(String),
}

/// Reads the arguments (without the program's name). No arguments at all is a call for help.
pub fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Command, Error> {
    let args = compact::spelled(expand_files(args)?);
    if args.is_empty() {
        return Ok(Command::Print(command().render_long_help().to_string()));
    }
    if args.iter().any(|a| a == "--help-keys") {
        return Ok(Command::Print(crate::config::reference()));
    }
    let program = OsString::from("hudi-streamer");
    let matches = match command().try_get_matches_from(std::iter::once(program).chain(args)) {
        Ok(matches) => matches,
        Err(e) if PRINTED.contains(&e.kind()) => return Ok(Command::Print(e.to_string())),
        Err(e) => return Err(Error::new("config-flag", told(&e))),
    };
    match matches.subcommand() {
        Some((demo::NAME, matches)) => Ok(Command::Demo(demo::options(matches))),
        Some((checkpoint::NAME, matches)) => checkpoint::read(matches),
        Some((compact::NAME, matches)) => compact::read(matches),
        Some((word, found)) if let Some(command) = service::read(word, found) => command,
        Some((table::NAME, matches)) => table::read(matches),
        _ => Ok(Command::Run(flags_of(&matches)?)),
    }
}

/// What clap calls errors and is text that was asked for.
const PRINTED: [ErrorKind; 3] =
    [ErrorKind::DisplayHelp, ErrorKind::DisplayVersion, ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand];

/// The flags of a job that were given.
fn flags_of(matches: &ArgMatches) -> Result<RawArgs, Error> {
    let mut raw = RawArgs::default();
    let mut problems = Vec::new();
    for flag in FLAGS {
        let id = flag.name();
        let given = matches.value_source(id).is_some_and(|s| s == clap::parser::ValueSource::CommandLine);
        if !given {
            continue;
        }
        match flag.state {
            State::Refused(instead) => problems.push(crate::config::Problem {
                code: "config-unsupported",
                text: format!("{} is not done yet: {instead}", flag.long),
            }),
            State::Idle(why) => raw.warnings.push(format!("{} has no effect: {why}", flag.long)),
            State::Done => {}
        }
        match flag.kind {
            Kind::Switch => {
                raw.switches.insert(flag.long);
            }
            _ => {
                let values: Vec<String> = matches.get_many::<String>(id).into_iter().flatten().cloned().collect();
                if let Some(next) = values.iter().find(|v| FLAGS.iter().any(|f| f.long == v.as_str())) {
                    let text = format!("{} has no value: {next} follows", flag.long);
                    problems.push(crate::config::Problem { code: "config-flag", text });
                }
                raw.values.insert(flag.long, values);
            }
        }
    }
    if problems.is_empty() { Ok(raw) } else { Err(Error { problems }) }
}

/// An argument `@path` stands for the lines of that file, as in Hudi's Streamer (JCommander).
fn expand_files(args: impl IntoIterator<Item = OsString>) -> Result<Vec<OsString>, Error> {
    let mut out = Vec::new();
    for arg in args {
        match arg.to_str().and_then(|a| a.strip_prefix('@')) {
            Some(path) if !path.is_empty() => {
                let text = std::fs::read_to_string(path)
                    .map_err(|e| Error::new("config-flag", format!("cannot read argument file {path}: {e}")))?;
                out.extend(text.lines().map(str::trim).filter(|l| !l.is_empty()).map(OsString::from));
            }
            _ => out.push(arg),
        }
    }
    Ok(out)
}

/// Clap's message on one line, without its own prefix and usage.
fn told(error: &clap::Error) -> String {
    let text = error.to_string();
    let text = text.split("\n\nUsage:").next().unwrap_or(&text);
    let text = text.split("\n\nFor more information").next().unwrap_or(text);
    let words: Vec<&str> = text.trim_start_matches("error: ").split_whitespace().collect();
    crate::config::mask_urls(&words.join(" "))
}

fn command() -> clap::Command {
    let about =
        "Apache Hudi's Streamer as one native program: ingests JSON files into a Hudi table, each round one commit.";
    let command = clap::Command::new("hudi-streamer")
        .about(about)
        .version(env!("CARGO_PKG_VERSION"))
        .after_help("--help-keys lists every property key. Values come from flags, --hoodie-conf, --props and hudi-defaults.conf, in this order.")
        .disable_help_subcommand(true)
        .subcommands([table::command(), checkpoint::command(), compact::command(), demo::command()])
        .subcommands(service::commands())
        .subcommand_negates_reqs(true)
        .args_conflicts_with_subcommands(true);
    FLAGS.iter().fold(command, |command, flag| command.arg(argument(flag)))
}

/// The flags of a job for a subcommand, those that have no meaning there (that are not among `count`) hidden. A flag that
/// the subcommand has itself stays its own.
fn with_job_flags(command: clap::Command, count: &[&str], needs_table: bool) -> clap::Command {
    let own: Vec<String> = command.get_arguments().map(|arg| arg.get_id().to_string()).collect();
    let command = command.after_help(
        "The other flags of a job are taken too and have no effect, so that its whole command line can stand here.",
    );
    FLAGS.iter().filter(|flag| !own.iter().any(|id| id == flag.name())).fold(command, |command, flag| {
        let arg = argument(flag).required(false).hide(!count.contains(&flag.name()));
        match flag.name() {
            "target-base-path" => command.arg(arg.required(needs_table).help("Folder of the table")),
            _ => command.arg(arg),
        }
    })
}

fn argument(flag: &Flag) -> Arg {
    let doc = match (flag.state, flag.default) {
        (State::Idle(why), _) => format!("{} (accepted, no effect: {why})", flag.doc),
        (_, "") => flag.doc.to_string(),
        (_, default) => format!("{} [default: {default}]", flag.doc),
    };
    let arg = Arg::new(flag.name())
        .long(flag.name())
        .visible_aliases(flag.aliases.iter().map(|a| a.trim_start_matches('-')))
        .help(doc)
        .required(flag.required)
        .hide(matches!(flag.state, State::Refused(_)));
    match flag.kind {
        Kind::Switch => arg.action(ArgAction::SetTrue),
        Kind::Value => arg.action(ArgAction::Set).allow_hyphen_values(true).value_name(flag.value_name),
        Kind::List => arg.action(ArgAction::Append).value_delimiter(',').value_name(flag.value_name),
        Kind::Pairs => arg.action(ArgAction::Append).allow_hyphen_values(true).value_name(flag.value_name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: [&str; 6] = ["--table-type", "COPY_ON_WRITE", "--target-base-path", "/t", "--target-table", "t"];

    fn with(args: &[&str]) -> Result<Command, Error> {
        parse(BASE.iter().chain(args).map(OsString::from))
    }

    fn run(args: &[&str]) -> RawArgs {
        match with(args) {
            Ok(Command::Run(raw)) => raw,
            other => panic!("{args:?}: {other:?}"),
        }
    }

    #[test]
    fn flags_are_read_as_hudi_reads_them() {
        let raw = run(&["--op", "INSERT", "--continuous", "--hoodie-conf", "a=1,b=2", "--hoodie-conf", "c=3"]);
        assert_eq!(raw.value("--op"), Some("INSERT"));
        assert!(raw.has("--continuous") && !raw.has("--filter-dupes"));
        assert_eq!(raw.list("--hoodie-conf"), ["a=1,b=2", "c=3"]);
        let raw = run(&["--transformer-class", "A,B", "--transformer-class", "C", "--checkpoint", "-5"]);
        assert_eq!(raw.list("--transformer-class"), ["A", "B", "C"]);
        assert_eq!(raw.value("--checkpoint"), Some("-5"));
        assert_eq!(
            run(&["--op=UPSERT", "--source-ordering-fields", "ts"]).value("--source-ordering-field"),
            Some("ts")
        );
        assert!(run(&["--spark-master", "local[2]"]).warnings[0].contains("--spark-master"));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let cases: [(&[&str], &[&str]); 8] = [
            (&["--checkpoint", "--continuous"], &["--checkpoint", "--continuous"]),
            (&["--continous"], &["--continous", "--continuous"]),
            (&["--continuous", "true"], &["true"]),
            (&["--op", "INSERT", "--op", "UPSERT"], &["--op"]),
            (&["--contin"], &["--contin"]),
            (&["--run-bootstrap"], &["--run-bootstrap"]),
            (&["--enable-sync"], &["--enable-sync"]),
            (&["@/no/such/file"], &["/no/such/file"]),
        ];
        for (args, words) in cases {
            let error = with(args).expect_err(words[0]).to_string();
            assert!(words.iter().all(|w| error.contains(w)) && !error.contains('\n'), "{args:?}: {error}");
        }
        let missing = parse(["--op", "INSERT"].map(OsString::from)).expect_err("required flags").to_string();
        assert!(
            ["--target-base-path", "--target-table", "--table-type"].iter().all(|f| missing.contains(f)),
            "{missing}"
        );
    }

    #[test]
    fn help_is_printed() {
        for args in [&["--help"][..], &["--help-keys"], &["--version"], &["demo", "--help"]] {
            assert!(matches!(parse(args.iter().map(OsString::from)), Ok(Command::Print(_))), "{args:?}");
        }
        let Ok(Command::Print(help)) = parse([]) else { panic!("no arguments is a call for help") };
        assert!(help.contains("--source-ordering-field") && help.contains("[default: UPSERT]"), "{help}");
        assert!(help.contains("Commands:") && help.contains(demo::NAME), "{help}");
    }

    #[test]
    fn a_subcommand_has_flags_of_its_own() {
        let demo = |args: &[&str]| parse(std::iter::once(&"demo").chain(args).map(OsString::from));
        let options = |rate, seconds, table: Option<&str>| {
            let time = Option::map(seconds, std::time::Duration::from_secs);
            Command::Demo(DemoOptions { rate, time, table: table.map(Into::into) })
        };
        assert_eq!(demo(&[]), Ok(options(100, None, None)));
        let all = ["--rate", "7", "--seconds", "5", "--target-base-path", "/t"];
        assert_eq!(demo(&all), Ok(options(7, Some(5), Some("/t"))));
        for wrong in [&["--rate", "0"][..], &["--rate", "1000000"], &["--seconds", "x"], &["--op", "INSERT"]] {
            let error = demo(wrong).expect_err(wrong[0]).to_string();
            assert!(error.contains(wrong[0]), "{error}");
        }
        assert_eq!(
            run(&["--payload-class", "demo"]).value("--payload-class"),
            Some("demo"),
            "a value is no subcommand"
        );
    }
}
