//! What becomes of records that cannot be decoded or keyed: our own keys, and Hudi's switches that say the same.

use super::*;

impl Loader<'_> {
    pub(super) fn bad_records(&mut self, source: SourceClass) -> BadRecordsConfig {
        let skips = self.boolean(&keys::SKIP_INVALID);
        let table = self.boolean(&keys::ERROR_TABLE);
        let topic = self.given(&keys::BAD_RECORDS_TOPIC);
        // Each setting that decides, with what it decides.
        let mut said: Vec<(&Key, BadRecordPolicy)> = Vec::new();
        if self.given(&keys::BAD_RECORDS_POLICY).is_some() {
            let key = &keys::BAD_RECORDS_POLICY;
            said.push((key, self.key_choice(key, &choices::BAD_RECORD_POLICIES, BadRecordPolicy::Fail)));
        }
        if skips {
            said.push((&keys::SKIP_INVALID, BadRecordPolicy::Skip));
        }
        if table {
            said.push((&keys::ERROR_TABLE, BadRecordPolicy::Quarantine));
        }
        if topic.is_some() {
            said.push((&keys::BAD_RECORDS_TOPIC, BadRecordPolicy::Quarantine));
        }
        let policy = said.first().map_or(BadRecordPolicy::Fail, |s| s.1);
        if let Some((other, _)) = said.iter().find(|s| s.1 != policy) {
            self.contradict(said[0].0, other, "say different things of bad records");
        }
        if table && topic.is_some() {
            self.contradict(&keys::ERROR_TABLE, &keys::BAD_RECORDS_TOPIC, "name two places for bad records");
        }
        let (max_rows, max_percent) = self.most_bad_records(policy);
        let quarantine = match (policy, table, topic) {
            (BadRecordPolicy::Quarantine, true, _) => Some(self.error_table()),
            (BadRecordPolicy::Quarantine, false, Some(name)) => {
                self.check_topic(source);
                Some(QuarantineTarget::Topic { name })
            }
            (BadRecordPolicy::Quarantine, false, None) => {
                let text = format!(
                    "{}=quarantine needs a place: {}=true with {} and {}, or {} where the source is Kafka",
                    keys::BAD_RECORDS_POLICY.name,
                    keys::ERROR_TABLE.name,
                    keys::ERROR_TABLE_PATH.name,
                    keys::ERROR_TABLE_NAME.name,
                    keys::BAD_RECORDS_TOPIC.name
                );
                self.problem("config-missing", text);
                None
            }
            _ => None,
        };
        if !table {
            for key in [&keys::ERROR_TABLE_PATH, &keys::ERROR_TABLE_NAME] {
                self.has_no_effect(key, &format!("without {}=true", keys::ERROR_TABLE.name));
            }
        }
        BadRecordsConfig { policy, max_rows, max_percent, quarantine }
    }

    fn contradict(&mut self, one: &Key, other: &Key, what: &str) {
        let shown = |key: &Key| format!("{}={} ({})", key.name, self.text(key), self.origin(key));
        let text = format!("{} and {} {what}: leave one of them out", shown(one), shown(other));
        self.problem("config-conflict", text);
    }

    fn has_no_effect(&mut self, key: &Key, why: &str) {
        if self.given(key).is_some() {
            let text = format!("{}: {} has no effect {why}", self.origin(key), key.name);
            self.settings.warnings.push(text);
        }
    }

    /// The ceilings, which only mean something where a round goes on past bad records.
    fn most_bad_records(&mut self, policy: BadRecordPolicy) -> (Option<u64>, Option<f64>) {
        let (rows, percent) = (&keys::BAD_RECORDS_MAX_ROWS, &keys::BAD_RECORDS_MAX_PERCENT);
        if policy == BadRecordPolicy::Fail {
            for key in [rows, percent] {
                self.has_no_effect(key, "where the first bad record fails the round");
            }
            return (None, None);
        }
        let max_rows = self.given(rows).is_some().then(|| self.number(rows, "a number of rows"));
        let is_share = |share: f64| (0.0..=100.0).contains(&share);
        let max_percent =
            self.given(percent).is_some().then(|| self.number_that(percent, "a number from 0 to 100", is_share));
        (max_rows, max_percent)
    }

    fn error_table(&mut self) -> QuarantineTarget {
        let base_path = self.required(&keys::ERROR_TABLE_PATH);
        let table_name = self.required(&keys::ERROR_TABLE_NAME);
        let folder = |path: &str| format!("{}/", path.trim_start_matches("file://").trim_end_matches('/'));
        let (errors, data) = (folder(&base_path), folder(self.raw.value("--target-base-path").unwrap_or_default()));
        if errors.len() > 1 && data.len() > 1 && (errors.starts_with(&data) || data.starts_with(&errors)) {
            let text = format!(
                "{}={base_path} and --target-base-path hold one another: give each table a folder of its own",
                keys::ERROR_TABLE_PATH.name
            );
            self.problem("config-conflict", text);
        }
        QuarantineTarget::Table { base_path, table_name }
    }

    /// The error table's lock, which is named after it, is asked for while the data's is held.
    pub(super) fn locks_apart(&mut self, errors: &BadRecordsConfig, concurrency: &ConcurrencyConfig, data: &str) {
        let Some(QuarantineTarget::Table { table_name, .. }) = &errors.quarantine else { return };
        let Some(LockProvider::ZooKeeper(zookeeper)) = concurrency.lock.as_ref().map(|lock| &lock.provider) else {
            return;
        };
        if zookeeper.lock_key.as_deref().unwrap_or(data) == table_name {
            let text = format!(
                "{}={table_name} is the name of the data's lock, too, and a job would wait for itself: set {} to another one, \
                 for all that write the data",
                keys::ERROR_TABLE_NAME.name,
                keys::ZOOKEEPER_KEY.name
            );
            self.problem("config-conflict", text);
        }
    }

    fn check_topic(&mut self, source: SourceClass) {
        if self.given(&keys::BAD_RECORDS_TOPIC) == self.given(&keys::KAFKA_TOPIC) {
            let text = format!(
                "{} is the topic that is read: each bad record would be read again, and again be bad; name another topic",
                keys::BAD_RECORDS_TOPIC.name
            );
            self.problem("config-conflict", text);
        }
        if !source.is_kafka() {
            let text = format!(
                "{} needs a Kafka source, to whose cluster the topic belongs: use {}=true with files",
                keys::BAD_RECORDS_TOPIC.name,
                keys::ERROR_TABLE.name
            );
            self.problem("config-conflict", text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::Call;
    use super::*;

    const POLICY: &str = "hoodie.streamer.source.bad.records.policy";
    const SKIP: &str = "hoodie.streamer.source.json.skip.invalid.records=true";
    const TABLE: [&str; 3] = [
        "hoodie.errortable.enable=true",
        "hoodie.errortable.base.path=/e",
        "hoodie.errortable.target.table.name=errors",
    ];

    fn call(confs: &[&str]) -> Call {
        confs.iter().fold(Call::new(), |call, conf| call.conf(conf))
    }

    #[test]
    fn every_way_to_say_a_policy_is_understood() {
        let policy = |confs: &[&str]| call(confs).ok().source.bad_records.policy;
        assert_eq!(policy(&[]), BadRecordPolicy::Fail);
        assert_eq!(policy(&[SKIP]), BadRecordPolicy::Skip);
        for (word, want) in [("fail", BadRecordPolicy::Fail), ("Skip", BadRecordPolicy::Skip)] {
            assert_eq!(policy(&[&format!("{POLICY}={word}")]), want);
        }
        let config = call(&TABLE).conf("hoodie.streamer.source.bad.records.max.rows=0");
        let config = config.conf("hoodie.streamer.source.bad.records.max.percent=2.5").ok().source.bad_records;
        let quarantine = QuarantineTarget::Table { base_path: "/e".into(), table_name: "errors".into() };
        let want = BadRecordsConfig {
            policy: BadRecordPolicy::Quarantine,
            max_rows: Some(0),
            max_percent: Some(2.5),
            quarantine: Some(quarantine),
        };
        assert_eq!(config, want);
    }

    #[test]
    fn contradictions_name_both_settings() {
        let quarantine = format!("{POLICY}=quarantine");
        let (fail, skip) = (format!("{POLICY}=fail"), format!("{POLICY}=skip"));
        let cases: &[(&[&str], &str, &[&str])] = &[
            (&[&fail, SKIP], "config-conflict", &[POLICY, "skip.invalid.records"]),
            (&[&skip, TABLE[0]], "config-conflict", &[POLICY, "hoodie.errortable.enable"]),
            (&[SKIP, TABLE[0], TABLE[1], TABLE[2]], "config-conflict", &["skip.invalid.records", "errortable.enable"]),
            (&[&quarantine], "config-missing", &["hoodie.errortable.enable=true", "bad.records.topic"]),
            (&[TABLE[0], TABLE[1]], "config-missing", &["hoodie.errortable.target.table.name"]),
            (&[TABLE[0], "hoodie.errortable.base.path=/t/errors", TABLE[2]], "config-conflict", &["/t/errors"]),
            (&["hoodie.streamer.source.bad.records.topic=dead"], "config-conflict", &["bad.records.topic", "Kafka"]),
            (&["hoodie.errortable.write.class=com.acme.X"], "config-unsupported", &["errortable.write.class"]),
            (&["hoodie.errortable.write.failure.strategy=LOG_ERROR"], "config-unsupported", &["ROLLBACK_COMMIT"]),
            (&[SKIP, "hoodie.streamer.source.bad.records.max.percent=101"], "config-bad-value", &["0 to 100"]),
            (&[&format!("{POLICY}=ignore")], "config-bad-value", &["fail, skip, quarantine"]),
        ];
        for (confs, code, names) in cases {
            let problem = call(confs).problem();
            assert_eq!(problem.code, *code, "{}", problem.text);
            names.iter().for_each(|name| assert!(problem.text.contains(name), "{name}: {}", problem.text));
        }
    }

    #[test]
    fn the_error_table_has_a_lock_of_its_own() {
        let several = [
            "hoodie.write.concurrency.mode=optimistic_concurrency_control",
            "hoodie.write.lock.zookeeper.url=zk1",
            "hoodie.write.lock.zookeeper.base_path=/locks",
        ];
        let with = |key: &str| call(&[&TABLE[..], &several, &[key]].concat());
        let key = "hoodie.write.lock.zookeeper.lock_key";
        assert!(with(&format!("{key}=data")).ok().concurrency.lock.is_some());
        let problem = with(&format!("{key}=errors")).problem();
        assert_eq!(problem.code, "config-conflict", "{}", problem.text);
        for name in [key, "hoodie.errortable.target.table.name=errors"] {
            assert!(problem.text.contains(name), "{name}: {}", problem.text);
        }
    }

    #[test]
    fn what_has_no_effect_is_said() {
        let warnings = call(&["hoodie.streamer.source.bad.records.max.rows=5", TABLE[1]]).ok().warnings;
        assert!(warnings.iter().any(|w| w.contains("max.rows")), "{warnings:?}");
        assert!(warnings.iter().any(|w| w.contains("errortable.base.path")), "{warnings:?}");
    }
}
