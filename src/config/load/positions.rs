//! The configuration of `hudi-streamer checkpoint`. What only a job needs is neither asked for nor checked: its own start
//! does that, and its properties file must serve here as it is.

use super::*;

/// Reads files, layers and checks for `hudi-streamer checkpoint`.
pub fn load_positions(raw: &RawArgs, env: &dyn Fn(&str) -> Option<String>) -> Result<PositionsConfig> {
    Loader::new(raw, env).load_positions()
}

impl Loader<'_> {
    fn load_positions(mut self) -> Result<PositionsConfig> {
        for flag in ["--target-base-path", "--target-table"] {
            if self.raw.value(flag).is_some_and(|v| v.trim().is_empty()) {
                self.problem("config-missing", format!("{flag} is empty"));
            }
        }
        let source = self.flag_choice("--source-class", &choices::SOURCES, SourceClass::JsonDfs);
        let named = choices::SOURCES.done.iter().find(|(_, class)| *class == source);
        let has_brokers = source.is_kafka() && self.given(&keys::BOOTSTRAP_SERVERS).is_some();
        // Values are not read here, so what Avro's want is not asked for.
        let kafka = has_brokers.then(|| self.kafka(SourceClass::JsonKafka, None));
        let flag = |name: &str| self.raw.value(name).map(str::to_string);
        let config = PositionsConfig {
            base_path: flag("--target-base-path").unwrap_or_default(),
            table_name: flag("--target-table"),
            storage: self.storage(),
            concurrency: self.concurrency(),
            source,
            source_name: named.map_or("", |(name, _)| *name),
            source_given: self.raw.value("--source-class").is_some(),
            topic: self.given(&keys::KAFKA_TOPIC).filter(|_| source.is_kafka()),
            kafka,
            checkpoint: self.checkpoint(),
            log_json: self.raw.has("--log-json"),
            warnings: self.settings.warnings,
        };
        match self.settings.problems.is_empty() {
            true => Ok(config),
            false => Err(Error { problems: self.settings.problems }),
        }
    }
}
