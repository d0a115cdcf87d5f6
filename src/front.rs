//! The front door: arguments in, exit code out.

use crate::cli::{self, Command};
use crate::config::{self, StreamerConfig, mask_urls};
use crate::observe::{LogFormat, init_log};
use crate::streamer;
use std::ffi::OsString;
use std::process::ExitCode;

/// The round failed; the table is unchanged.
const FAILED: u8 = 1;
/// Flags, properties or schema files are wrong; nothing was started.
const MISCONFIGURED: u8 = 2;
/// A one-shot run was interrupted before its commit; the table is unchanged.
const INTERRUPTED: u8 = 3;

/// Runs the program and says how it went: see the README for the exit codes.
pub fn run(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let raw = match cli::parse(args) {
        Ok(Command::Run(raw)) => raw,
        Ok(Command::Print(text)) => {
            println!("{text}");
            return ExitCode::SUCCESS;
        }
        Err(e) => return fail(e.code(), &e, MISCONFIGURED),
    };
    let config = match config::load(&raw, &|name| std::env::var(name).ok()) {
        Ok(config) => config,
        Err(e) => return fail(e.code(), &e, MISCONFIGURED),
    };
    init_log(if config.run.log_json { LogFormat::Json } else { LogFormat::Text });
    tell(&config);
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(e) => return fail("internal", &e, FAILED),
    };
    match runtime.block_on(streamer::run(config)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e @ streamer::Error::Interrupted) => fail(e.code(), &e, INTERRUPTED),
        Err(e) => {
            let code = if e.is_configuration() { MISCONFIGURED } else { FAILED };
            fail(e.code(), &e, code)
        }
    }
}

/// Says what the job runs with, as Hudi does at start: every setting, its origin, secrets masked.
fn tell(config: &StreamerConfig) {
    for warning in &config.warnings {
        tracing::warn!("{}", mask_urls(warning));
    }
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
