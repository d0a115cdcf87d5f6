//! The configuration of the commands for services. What only a job needs is neither asked for nor checked: its properties
//! file must serve here as it is.

use super::*;

/// Reads files, layers and checks for `hudi-streamer clean`, `archive`, `savepoint`, `rollback` and `restore`.
pub fn load_service(raw: &RawArgs, env: &dyn Fn(&str) -> Option<String>) -> Result<ServiceConfig> {
    Loader::new(raw, env).load_service()
}

impl Loader<'_> {
    fn load_service(mut self) -> Result<ServiceConfig> {
        for flag in ["--target-base-path", "--target-table"] {
            if self.raw.value(flag).is_some_and(|v| v.trim().is_empty()) {
                self.problem("config-missing", format!("{flag} is empty"));
            }
        }
        let flag = |name: &str| self.raw.value(name).map(str::to_string);
        let config = ServiceConfig {
            base_path: flag("--target-base-path").unwrap_or_default(),
            table_name: flag("--target-table"),
            storage: self.storage(),
            concurrency: self.concurrency(),
            clean: self.clean_in(CleanMode::Off),
            archive: self.archive(),
            trigger: self.compaction_trigger(),
            log_json: self.raw.has("--log-json"),
            warnings: self.raw.warnings.iter().cloned().chain(self.settings.warnings).collect(),
        };
        match self.settings.problems.is_empty() {
            true => Ok(config),
            false => Err(Error { problems: self.settings.problems }),
        }
    }
}
