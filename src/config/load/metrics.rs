//! `hoodie.metrics.*`.

use super::*;

/// A reporter of one's own, by Java class.
const REPORTER_CLASS: &str = "hoodie.metrics.reporter.class";

impl Loader<'_> {
    pub(super) fn metrics(&mut self) -> Option<MetricsConfig> {
        if !self.boolean(&keys::METRICS_ON) {
            return None;
        }
        match self.given(&keys::METRICS_REPORTER) {
            Some(_) => self.key_choice(&keys::METRICS_REPORTER, &choices::REPORTERS, ()),
            None => self.settings.warnings.push(format!(
                "{} is not set: PROMETHEUS is taken, not Hudi's default GRAPHITE, which is not done",
                keys::METRICS_REPORTER.name
            )),
        }
        if let Some(class) = self.settings.get_named(REPORTER_CLASS).filter(|s| !s.value.is_empty()) {
            let text = format!(
                "{}: {REPORTER_CLASS}={}: classes of one's own cannot be loaded; metrics go out by {}=PROMETHEUS",
                class.origin,
                class.value,
                keys::METRICS_REPORTER.name
            );
            self.used.insert(REPORTER_CLASS.into());
            self.problem("config-unsupported", text);
        }
        let table = self.raw.value("--target-table").unwrap_or_default().to_string();
        Some(MetricsConfig {
            host: self.text(&keys::METRICS_HOST),
            port: self.number(&keys::METRICS_PORT, "a port"),
            prefix: self.given(&keys::METRICS_PREFIX).unwrap_or(table),
            stall: Duration::from_secs(self.positive(&keys::HEALTH_STALL, "a number of seconds")),
        })
    }
}
