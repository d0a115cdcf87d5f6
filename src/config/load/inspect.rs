//! The configuration of `hudi-streamer table`. What only a job needs is neither asked for nor checked.

use super::*;

/// Reads files, layers and checks for `hudi-streamer table`.
pub fn load_inspect(raw: &RawArgs, json: bool, env: &dyn Fn(&str) -> Option<String>) -> Result<InspectConfig> {
    Loader::new(raw, env).load_inspect(json)
}

impl Loader<'_> {
    fn load_inspect(mut self, json: bool) -> Result<InspectConfig> {
        for flag in ["--target-base-path", "--target-table"] {
            if self.raw.value(flag).is_some_and(|v| v.trim().is_empty()) {
                self.problem("config-missing", format!("{flag} is empty"));
            }
        }
        let (storage, write) = (self.storage(), self.write());
        let flag = |name: &str| self.raw.value(name).map(str::to_string);
        let config = InspectConfig {
            base_path: flag("--target-base-path").unwrap_or_default(),
            storage,
            table_name: flag("--target-table"),
            json,
            small_file_limit: write.small_file_limit,
            workers: write.workers,
            progress: !self.raw.has("--no-progress"),
            log_json: self.raw.has("--log-json"),
            warnings: self.raw.warnings.iter().cloned().chain(self.settings.warnings).collect(),
        };
        match self.settings.problems.is_empty() {
            true => Ok(config),
            false => Err(Error { problems: self.settings.problems }),
        }
    }
}
