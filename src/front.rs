//! The front door: arguments in, exit code out.

use crate::cli::{self, Command};
use crate::config::{self, CompactCommand, DemoOptions, PositionsCommand, RawArgs, StreamerConfig, mask_urls};
use crate::config::{ServiceCommand, ServiceOptions, TableCommand};
use crate::demo::Demo;
use crate::inspect::{self, Verdict};
use crate::observe::{LogFormat, init_log};
use crate::streamer;
use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

/// The round failed; the table is unchanged.
const FAILED: u8 = 1;
/// Flags, properties or schema files are wrong; nothing was started.
const MISCONFIGURED: u8 = 2;
/// Of `hudi-streamer table`: something is wrong with the table. Any failure to look is [`NO_ANSWER`], so that the two are
/// never taken for each other.
const DAMAGED: u8 = 1;
/// See [`DAMAGED`].
const NO_ANSWER: u8 = 2;
/// A one-shot run was interrupted before its commit; the table is unchanged.
const INTERRUPTED: u8 = 3;

/// Runs the program and says how it went: see the README for the exit codes.
pub fn run(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    match cli::parse(args) {
        Ok(Command::Run(raw)) => job(&raw),
        Ok(Command::Demo(options)) => demo(options),
        Ok(Command::Checkpoint(raw, command)) => positions(&raw, command),
        Ok(Command::Compact(raw, command)) => compact(&raw, command),
        Ok(Command::Service(raw, command, options)) => service(&raw, command, options),
        Ok(Command::Table { raw, command: TableCommand::Checkpoint { history }, json }) => {
            // The question of `hudi-streamer checkpoint`, with the exit codes of `hudi-streamer table`.
            match positions(&raw, PositionsCommand::Show { history, json }) {
                ExitCode::SUCCESS => ExitCode::SUCCESS,
                _ => ExitCode::from(NO_ANSWER),
            }
        }
        Ok(Command::Table { raw, command, json }) => table(&raw, &command, json),
        Ok(Command::Print(text)) => print(&text),
        Err(e) => fail(e.code(), &e, MISCONFIGURED),
    }
}

fn job(raw: &RawArgs) -> ExitCode {
    let config = match configured(raw) {
        Ok(config) => config,
        Err(exit) => return exit,
    };
    match block_on(streamer::run(config)) {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(e)) => job_failed(&e),
        Err(e) => fail("internal", &e, FAILED),
    }
}

/// The same, with a cluster and events that come with it.
fn demo(options: DemoOptions) -> ExitCode {
    let demo = match Demo::prepare(options) {
        Ok(demo) => demo,
        Err(e) => return fail(e.code(), &e, MISCONFIGURED),
    };
    println!("{}", demo.introduction());
    let raw = match cli::parse(demo.arguments().into_iter().map(OsString::from)) {
        Ok(Command::Run(raw)) => raw,
        Ok(_) => return fail("internal", &"the demo's arguments ask for no job", FAILED),
        Err(e) => return fail(e.code(), &e, FAILED),
    };
    let config = match configured(&raw) {
        Ok(config) => config,
        Err(exit) => return exit,
    };
    match block_on(demo.run(config)) {
        Ok(Ok(summary)) => {
            println!("\n{summary}");
            ExitCode::SUCCESS
        }
        Ok(Err(crate::demo::Error::Streamer(e))) => job_failed(&e),
        Ok(Err(e)) => fail(e.code(), &e, FAILED),
        Err(e) => fail("internal", &e, FAILED),
    }
}

/// Looks at positions, or changes them.
fn positions(raw: &RawArgs, command: PositionsCommand) -> ExitCode {
    match config::load_positions(raw, &|name| std::env::var(name).ok()) {
        Ok(config) => {
            begin_log(config.log_json, &config.warnings);
            answered(streamer::positions::run(config, command))
        }
        Err(e) => fail(e.code(), &e, MISCONFIGURED),
    }
}

/// Compacts a table.
fn compact(raw: &RawArgs, command: CompactCommand) -> ExitCode {
    match config::load_compaction(raw, &|name| std::env::var(name).ok()) {
        Ok(config) => {
            begin_log(config.log_json, &config.warnings);
            answered(streamer::compact(config, command))
        }
        Err(e) => fail(e.code(), &e, MISCONFIGURED),
    }
}

/// Does a service of a table.
fn service(raw: &RawArgs, command: ServiceCommand, options: ServiceOptions) -> ExitCode {
    match config::load_service(raw, &|name| std::env::var(name).ok()) {
        Ok(config) => {
            begin_log(config.log_json, &config.warnings);
            answered(streamer::serve(config, command, options))
        }
        Err(e) => fail(e.code(), &e, MISCONFIGURED),
    }
}

/// Looks at a table.
fn table(raw: &RawArgs, command: &TableCommand, json: bool) -> ExitCode {
    let config = match config::load_inspect(raw, json, &|name| std::env::var(name).ok()) {
        Ok(config) => config,
        Err(e) => return fail(e.code(), &e, NO_ANSWER),
    };
    begin_log(config.log_json, &config.warnings);
    let mut out = std::io::BufWriter::new(std::io::stdout());
    let looked = block_on(inspect::run(&config, command, &mut out)).map(|verdict| {
        let verdict = verdict?;
        out.flush().map_err(inspect::Error::Answer)?;
        Ok(verdict)
    });
    match looked {
        Ok(Ok(Verdict::Answered)) => ExitCode::SUCCESS,
        Ok(Ok(Verdict::Damaged)) => ExitCode::from(DAMAGED),
        // A reader that has gone away (`… | head`) has seen enough.
        Ok(Err(inspect::Error::Answer(e))) if e.kind() == std::io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Ok(Err(e)) => fail(e.code(), &e, NO_ANSWER),
        Err(e) => fail("internal", &e, NO_ANSWER),
    }
}

fn begin_log(json: bool, warnings: &[String]) {
    init_log(if json { LogFormat::Json } else { LogFormat::Text });
    for warning in warnings {
        tracing::warn!("{}", mask_urls(warning));
    }
}

/// The answer of a command for standard output, or how it failed.
fn answered(answer: impl Future<Output = streamer::Result<String>>) -> ExitCode {
    match block_on(answer) {
        Ok(Ok(answer)) => print(&answer),
        Ok(Err(e)) => job_failed(&e),
        Err(e) => fail("internal", &e, FAILED),
    }
}

/// Text for standard output. A reader that has gone away (`… | head`) has seen enough.
fn print(text: &str) -> ExitCode {
    match writeln!(std::io::stdout(), "{text}") {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => fail("internal", &e, FAILED),
        _ => ExitCode::SUCCESS,
    }
}

/// The configuration, with the log begun and told of it.
fn configured(raw: &RawArgs) -> Result<StreamerConfig, ExitCode> {
    let config = config::load(raw, &|name| std::env::var(name).ok()).map_err(|e| fail(e.code(), &e, MISCONFIGURED))?;
    begin_log(config.run.log_json, &config.warnings);
    tell(&config);
    Ok(config)
}

fn block_on<T>(future: impl Future<Output = T>) -> std::io::Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let done = runtime.block_on(future);
    // A question to brokers that do not answer may still wait on a thread of its own: nobody wants the answer any more.
    runtime.shutdown_background();
    Ok(done)
}

fn job_failed(error: &streamer::Error) -> ExitCode {
    let exit = match error {
        streamer::Error::Interrupted => INTERRUPTED,
        e if e.is_configuration() => MISCONFIGURED,
        _ => FAILED,
    };
    fail(error.code(), error, exit)
}

/// Says what the job runs with, as Hudi does at start: every setting, its origin, secrets masked.
fn tell(config: &StreamerConfig) {
    for setting in &config.effective {
        tracing::debug!(key = setting.key, value = setting.value, origin = setting.origin, "setting");
    }
    let set = config.effective.iter().filter(|s| s.origin != "default").map(|s| format!("{}={}", s.key, s.value));
    tracing::info!(settings = set.collect::<Vec<_>>().join(" "), "starting");
}

fn fail(code: &str, error: &dyn std::fmt::Display, exit: u8) -> ExitCode {
    eprintln!("error[{code}]: {}", mask_urls(&error.to_string()));
    ExitCode::from(exit)
}
