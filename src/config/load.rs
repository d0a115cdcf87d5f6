//! From strings to the typed configuration: everything is checked, and everything that is wrong is told at once.

mod archive;
mod bad_records;
mod clean;
mod compaction;
mod concurrency;
mod index;
mod inspect;
mod registry;
mod service;
mod storage;
mod write;

use super::choices::{self, Choice, Refusal, TransformerKind};
use super::keys::{self, Key};
use super::layer::{Env, Settings};
use super::secrets::mask_value;
use super::*;
use round::Cuts;
use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;
use std::time::Duration;

mod positions;

pub(super) use clean::PolicyKind;
pub use compaction::load_compaction;
pub use inspect::load_inspect;
pub use positions::load_positions;
pub use service::load_service;

/// Hudi's silent default ordering field (`HoodieStreamer.Config.sourceOrderingField`, 0.15).
const DEFAULT_ORDERING_FIELD: &str = "ts";

/// Reads files, layers and checks. `env` gives environment variables.
pub fn load(raw: &RawArgs, env: &dyn Fn(&str) -> Option<String>) -> Result<StreamerConfig> {
    Loader::new(raw, env).load()
}

struct Loader<'a> {
    raw: &'a RawArgs,
    settings: Settings,
    /// Names outside the registry that a transformer step used.
    used: BTreeSet<String>,
}

impl<'a> Loader<'a> {
    fn new(raw: &'a RawArgs, env: Env) -> Loader<'a> {
        let settings = Settings::load(raw.value("--props"), raw.list("--hoodie-conf"), env);
        Loader { raw, settings, used: BTreeSet::new() }
    }

    fn load(mut self) -> Result<StreamerConfig> {
        let operation = self.flag_choice("--op", &choices::OPERATIONS, Operation::Upsert);
        let table_type = self.flag_choice("--table-type", &choices::TABLE_TYPES, TableType::CopyOnWrite);
        let filter_dupes = self.raw.has("--filter-dupes");
        if filter_dupes && operation == Operation::Upsert {
            self.problem(
                "config-filter-dupes",
                "--filter-dupes needs to be left out when --op is UPSERT, to ensure updates are not missed".into(),
            );
        }
        let (payload, payload_explicit) = self.payload();
        let (ordering_field, ordering_field_explicit) = self.ordering_field();
        let table = self.table(table_type);
        let storage = self.storage();
        let keys = self.keys();
        let source = self.source();
        let schema = self.schema_provider(source.kafka.as_ref());
        let transformers = self.transformers();
        let index = self.index();
        if source.kafka.as_ref().is_some_and(|kafka| kafka.tombstones == Tombstones::Delete) {
            self.deleting_tombstones(operation, !transformers.is_empty(), !keys.partition_fields.is_empty(), &index);
        }
        if index.buckets.is_some() {
            self.of_buckets(table_type, operation, filter_dupes);
        }
        let write = self.write();
        let compaction = self.compaction(table_type, write.workers);
        let concurrency = self.concurrency();
        self.locks_apart(&source.bad_records, &concurrency, &table.name);
        let archive = self.archive();
        let clean = self.clean();
        let run = self.run();
        let metrics = self.metrics();
        let force_skip = self.boolean(&keys::CHECKPOINT_FORCE_SKIP);
        let streams = operation == Operation::BulkInsert && !filter_dupes && index.buckets.is_none();
        let memory = write.memory;
        let round = self.rounds(Cuts { streams, forgets: force_skip }, memory, source.limit.is_some());
        let checkpoint = CheckpointConfig {
            allow_commit_on_no_change: self.raw.has("--allow-commit-on-no-checkpoint-change"),
            force_skip,
            source: source.place().to_string(),
            ..self.checkpoint()
        };
        let flags = self.flags(operation, table_type, filter_dupes);
        self.settings.check_names(&self.used, &flags);
        let effective = self.settings.effective(&flags);
        let warnings = self.raw.warnings.iter().cloned().chain(self.settings.warnings).collect();
        if !self.settings.problems.is_empty() {
            return Err(Error { problems: self.settings.problems });
        }
        Ok(StreamerConfig {
            table,
            storage,
            operation,
            payload,
            payload_explicit,
            ordering_field,
            ordering_field_explicit,
            filter_dupes,
            commit_on_errors: self.raw.has("--commit-on-errors"),
            keys,
            source,
            round,
            memory,
            schema,
            transformers,
            index,
            write,
            compaction,
            concurrency,
            archive,
            clean,
            checkpoint,
            run,
            metrics,
            effective,
            warnings,
        })
    }

    /// Flags as text, for the log and for keys that must agree with them.
    fn flags(&self, operation: Operation, table_type: TableType, filter_dupes: bool) -> BTreeMap<&'a str, String> {
        let given = self.raw.values.iter().filter(|(flag, _)| **flag != "--hoodie-conf");
        let mut flags: BTreeMap<&str, String> = given.map(|(flag, values)| (*flag, values.join(","))).collect();
        flags.extend(self.raw.switches.iter().map(|flag| (*flag, "true".to_string())));
        let word = |done: &[(&'static str, Operation)]| done.iter().find(|d| d.1 == operation).map_or("", |d| d.0);
        flags.insert("--op", word(choices::OPERATIONS.done).to_string());
        let word = |done: &[(&'static str, TableType)]| done.iter().find(|d| d.1 == table_type).map_or("", |d| d.0);
        flags.insert("--table-type", word(choices::TABLE_TYPES.done).to_string());
        flags.insert("--filter-dupes", filter_dupes.to_string());
        flags
    }

    fn problem(&mut self, code: &'static str, text: String) {
        self.settings.problem(code, text);
    }

    /// The text of a key, or its default.
    fn text(&self, key: &Key) -> String {
        self.settings.get(key).map_or_else(|| key.default.to_string(), |s| s.value.clone())
    }

    /// The text of a key that is set to something.
    fn given(&self, key: &Key) -> Option<String> {
        self.settings.get(key).map(|s| s.value.clone()).filter(|v| !v.is_empty())
    }

    fn list(&self, key: &Key) -> Vec<String> {
        self.text(key).split(',').map(str::trim).filter(|f| !f.is_empty()).map(str::to_string).collect()
    }

    fn origin(&self, key: &Key) -> String {
        self.settings.get(key).map_or_else(|| "default".to_string(), |s| s.origin.clone())
    }

    fn number<T: FromStr + Default>(&mut self, key: &Key, kind: &str) -> T {
        let text = self.text(key);
        text.parse().unwrap_or_else(|_| {
            let text = format!("{}: {}={} is not {kind}", self.origin(key), key.name, mask_value(key.name, &text));
            self.problem("config-bad-value", text);
            T::default()
        })
    }

    /// A number that must also pass `good`, which `kind` describes.
    fn number_that<T: FromStr + Default + Copy>(&mut self, key: &Key, kind: &str, good: fn(T) -> bool) -> T {
        let before = self.settings.problems.len();
        let number = self.number(key, kind);
        if self.settings.problems.len() == before && !good(number) {
            let text = format!("{}: {}={} is not {kind}", self.origin(key), key.name, self.text(key));
            self.problem("config-bad-value", text);
        }
        number
    }

    /// A size or a count that cannot be nothing.
    fn positive<T: FromStr + Default + Copy + PartialEq>(&mut self, key: &Key, kind: &str) -> T {
        self.number_that(key, &format!("{kind} above 0"), |n| n != T::default())
    }

    fn boolean(&mut self, key: &Key) -> bool {
        self.key_choice(key, &choices::BOOLEANS, false)
    }

    fn key_choice<T: Copy>(&mut self, key: &Key, choice: &Choice<T>, otherwise: T) -> T {
        let word = self.text(key);
        let place = format!("{}: {}", self.origin(key), key.name);
        self.choose(&place, &word, choice, otherwise)
    }

    fn flag_choice<T: Copy>(&mut self, flag: &'static str, choice: &Choice<T>, otherwise: T) -> T {
        match self.raw.value(flag).map(str::to_string) {
            Some(word) => self.choose(flag, &word, choice, otherwise),
            None => otherwise,
        }
    }

    fn choose<T: Copy>(&mut self, place: &str, word: &str, choice: &Choice<T>, otherwise: T) -> T {
        match choice.pick(word) {
            Ok(value) => return value,
            Err(Refusal::NotDone) => {
                let text = format!("{place}: {word} is not done yet; what is done: {}", choice.words());
                self.problem("config-unsupported", text);
            }
            Err(Refusal::Foreign) if choice.takes_classes() => {
                let text = format!(
                    "{place}: {word} is not a class of Hudi, and classes of one's own cannot be loaded; what is done: {}",
                    choice.words()
                );
                self.problem("config-unsupported", text);
            }
            Err(Refusal::Unknown | Refusal::Foreign) => {
                let hint = choice.nearest(word).map(|n| format!("; did you mean {n}?")).unwrap_or_default();
                let text = format!("{place}: {word:?} is not one of {}{hint}", choice.words());
                self.problem("config-bad-value", text);
            }
        }
        otherwise
    }

    fn flag_number<T: FromStr + Default>(&mut self, flag: &'static str, default: T) -> T {
        match self.raw.value(flag).map(str::to_string) {
            None => default,
            Some(text) => text.parse().unwrap_or_else(|_| {
                self.problem(
                    "config-bad-value",
                    format!("{flag}: {text:?} is not a whole number (no units are understood)"),
                );
                T::default()
            }),
        }
    }

    fn payload(&mut self) -> (PayloadClass, bool) {
        let default = PayloadClass::OverwriteWithLatest;
        if self.raw.value("--payload-class").is_some() {
            return (self.flag_choice("--payload-class", &choices::PAYLOADS, default), true);
        }
        match self.given(&keys::PAYLOAD_CLASS) {
            Some(_) => (self.key_choice(&keys::PAYLOAD_CLASS, &choices::PAYLOADS, default), true),
            None => (default, false),
        }
    }

    fn ordering_field(&mut self) -> (Option<String>, bool) {
        let flag = self.raw.value("--source-ordering-field").map(str::to_string);
        let key = self.given(&keys::PRECOMBINE);
        if let (Some(flag), Some(key)) = (&flag, &key)
            && flag != key
        {
            let text = format!("--source-ordering-field {flag} wins over {}={key}", keys::PRECOMBINE.name);
            self.settings.warnings.push(text);
        }
        let named = flag.or(key);
        let field = named.as_deref().unwrap_or(DEFAULT_ORDERING_FIELD);
        if let Some(other) = self.given(&keys::PAYLOAD_ORDERING).filter(|other| other != field) {
            let text = format!(
                "{}: {}={other} contradicts the ordering field, which is {field}: give --source-ordering-field {other}, or leave the key out",
                self.origin(&keys::PAYLOAD_ORDERING),
                keys::PAYLOAD_ORDERING.name
            );
            self.problem("config-conflict", text);
        }
        match named {
            Some(fields) if fields.contains(',') => {
                let text =
                    format!("--source-ordering-field: several ordering fields ({fields}) are not done yet: name one");
                self.problem("config-unsupported", text);
                (None, true)
            }
            Some(field) => (Some(field), true),
            None => (Some(DEFAULT_ORDERING_FIELD.into()), false),
        }
    }

    fn table(&mut self, table_type: TableType) -> TableConfig {
        self.flag_choice("--base-file-format", &choices::BASE_FILE_FORMATS, ());
        for flag in ["--target-base-path", "--target-table"] {
            if self.raw.value(flag).is_none_or(|v| v.trim().is_empty()) {
                self.problem("config-missing", format!("{flag} is empty"));
            }
        }
        TableConfig {
            base_path: self.raw.value("--target-base-path").unwrap_or_default().to_string(),
            name: self.raw.value("--target-table").unwrap_or_default().to_string(),
            database: self.text(&keys::DATABASE),
            table_type,
            timeline_timezone: self.key_choice(&keys::TIMELINE_ZONE, &choices::ZONES, TimelineTimezone::Utc),
            allow_empty_commit: self.boolean(&keys::EMPTY_COMMIT),
        }
    }

    fn keys(&mut self) -> KeyConfig {
        let record_key_fields = self.list(&keys::RECORD_KEY);
        let mut partition_fields = self.list(&keys::PARTITION_PATH);
        if record_key_fields.is_empty() {
            let text = format!(
                "property {} not found: keys that generate themselves are not done yet, name the field that identifies a row",
                keys::RECORD_KEY.name
            );
            self.problem("config-missing", text);
        }
        let class = self.given(&keys::KEYGEN_CLASS).is_some();
        let by_type = !class && self.given(&keys::KEYGEN_TYPE).is_some();
        let inferred = match partition_fields.as_slice() {
            [] => KeyGeneratorClass::NonPartitioned,
            _ if !class && !by_type && partition_fields.iter().any(|f| f.contains(':')) => {
                let text = format!(
                    "{}: {}={} asks for CustomKeyGenerator, which is not done yet: use one of {}",
                    self.origin(&keys::PARTITION_PATH),
                    keys::PARTITION_PATH.name,
                    partition_fields.join(","),
                    choices::KEY_GENERATOR_TYPES.words()
                );
                self.problem("config-unsupported", text);
                KeyGeneratorClass::Complex
            }
            [_] if record_key_fields.len() <= 1 => KeyGeneratorClass::Simple,
            _ => KeyGeneratorClass::Complex,
        };
        let generator = match (class, by_type) {
            (true, _) => self.key_choice(&keys::KEYGEN_CLASS, &choices::KEY_GENERATORS, inferred),
            (false, true) => self.key_choice(&keys::KEYGEN_TYPE, &choices::KEY_GENERATOR_TYPES, inferred),
            (false, false) => inferred,
        };
        let one_each = matches!(generator, KeyGeneratorClass::Simple | KeyGeneratorClass::TimestampBased);
        if one_each && (record_key_fields.len() > 1 || partition_fields.len() != 1) {
            let text = format!(
                "{} takes one record key field and one partition field: use ComplexKeyGenerator for several, \
                 NonpartitionedKeyGenerator for none",
                if generator == KeyGeneratorClass::Simple {
                    "SimpleKeyGenerator"
                } else {
                    "TimestampBasedKeyGenerator"
                }
            );
            self.problem("config-key-generator", text);
        }
        if generator == KeyGeneratorClass::NonPartitioned && !partition_fields.is_empty() {
            self.settings
                .warnings
                .push(format!("{} has no effect with NonpartitionedKeyGenerator", keys::PARTITION_PATH.name));
            partition_fields.clear();
        }
        KeyConfig {
            generator,
            record_key_fields,
            partition_fields,
            hive_style: self.boolean(&keys::HIVE_STYLE),
            url_encode: self.boolean(&keys::URL_ENCODE),
            consistent_logical_timestamp: self.boolean(&keys::LOGICAL_TIMESTAMP),
            timestamp: (generator == KeyGeneratorClass::TimestampBased).then(|| self.timestamp()),
        }
    }

    fn required(&mut self, key: &Key) -> String {
        self.given(key).unwrap_or_else(|| {
            self.problem("config-missing", format!("property {} not found: {}", key.name, key.doc));
            String::new()
        })
    }

    fn timestamp(&mut self) -> TimestampKeyConfig {
        let timestamp_type = match self.required(&keys::TIMESTAMP_TYPE).is_empty() {
            true => TimestampType::UnixTimestamp,
            false => self.key_choice(&keys::TIMESTAMP_TYPE, &choices::TIMESTAMP_TYPES, TimestampType::UnixTimestamp),
        };
        let input_delimiter = self.text(&keys::INPUT_DELIMITER);
        let delimiter = regex::Regex::new(&input_delimiter).unwrap_or_else(|e| {
            self.problem("config-bad-value", format!("{}: {e}", keys::INPUT_DELIMITER.name));
            regex::Regex::new(",").expect("a good pattern")
        });
        let formats = match timestamp_type {
            TimestampType::DateString | TimestampType::Mixed => self.required(&keys::INPUT_FORMAT),
            _ => self.text(&keys::INPUT_FORMAT),
        };
        let both = self.given(&keys::ZONE);
        let zone = |own: String| both.clone().unwrap_or(own);
        let names = [
            &keys::TIMESTAMP_TYPE,
            &keys::TIMESTAMP_UNIT,
            &keys::INPUT_FORMAT,
            &keys::INPUT_DELIMITER,
            &keys::INPUT_ZONE,
            &keys::OUTPUT_FORMAT,
            &keys::OUTPUT_ZONE,
            &keys::ZONE,
        ];
        let persisted =
            names.iter().filter_map(|k| self.settings.get(k).map(|s| (k.name.to_string(), s.value.clone())));
        TimestampKeyConfig {
            persisted: persisted.collect(),
            timestamp_type,
            scalar_unit_nanos: self.key_choice(&keys::TIMESTAMP_UNIT, &choices::TIME_UNITS, 1_000_000_000),
            input_formats: delimiter.split(&formats).map(str::to_string).filter(|f| !f.is_empty()).collect(),
            input_delimiter,
            input_timezone: zone(self.text(&keys::INPUT_ZONE)),
            output_format: self.required(&keys::OUTPUT_FORMAT),
            output_timezone: zone(self.text(&keys::OUTPUT_ZONE)),
        }
    }

    fn source(&mut self) -> SourceConfig {
        let class = self.flag_choice("--source-class", &choices::SOURCES, SourceClass::JsonDfs);
        let limit: u64 = self.flag_number("--source-limit", u64::MAX);
        // Hudi's own default is Long.MAX_VALUE, which people pass on by hand.
        let limit = (limit < i64::MAX as u64).then_some(limit);
        if !class.is_kafka() {
            self.not_kafka();
        }
        SourceConfig {
            class,
            limit,
            dfs_root: (class == SourceClass::JsonDfs).then(|| self.required(&keys::DFS_ROOT)),
            kafka: class.is_kafka().then(|| self.kafka(class, limit)),
            bad_records: self.bad_records(class),
        }
    }

    /// `A,B`, or `id1:A,id2:B`; with an id `t1`, key `X.t1` overrides `X` for that step.
    fn transformers(&mut self) -> Vec<TransformerConfig> {
        let steps: Vec<(Option<String>, String)> = self
            .raw
            .list("--transformer-class")
            .iter()
            .map(|step| match step.split_once(':') {
                Some((id, class)) => (Some(id.trim().to_string()), class.trim().to_string()),
                None => (None, step.trim().to_string()),
            })
            .collect();
        let ids: BTreeSet<&String> = steps.iter().filter_map(|s| s.0.as_ref()).collect();
        if !ids.is_empty() && ids.len() != steps.len() {
            let text = "--transformer-class: either all transformers have an identifier of their own, or none has one";
            self.problem("config-bad-value", text.into());
        }
        let mut chain = Vec::new();
        for (id, class) in &steps {
            let before = self.settings.problems.len();
            let kind = self.choose("--transformer-class", class, &choices::TRANSFORMERS, TransformerKind::SqlQuery);
            if self.settings.problems.len() > before {
                continue;
            }
            let key = match kind {
                TransformerKind::SqlQuery => &keys::TRANSFORMER_SQL,
                TransformerKind::SqlFile => &keys::TRANSFORMER_SQL_FILE,
            };
            let own = id.as_ref().map(|id| format!("{}.{id}", key.name));
            let value = match own.as_ref().and_then(|name| self.settings.get_named(name)) {
                Some(setting) => setting.value.clone(),
                None => self.required(key),
            };
            self.used.extend(own);
            chain.push(match kind {
                TransformerKind::SqlQuery => TransformerConfig::SqlQuery(value),
                TransformerKind::SqlFile => TransformerConfig::SqlFile(value),
            });
        }
        chain
    }

    fn run(&mut self) -> RunConfig {
        let termination = self.raw.value("--post-write-termination-strategy-class").is_some();
        self.flag_choice("--post-write-termination-strategy-class", &choices::TERMINATIONS, ());
        let max_retry_count = self.flag_number("--max-retry-count", 3);
        let max_rounds_without_new_data = termination.then(|| self.number(&keys::MAX_IDLE_ROUNDS, "a whole number"));
        RunConfig {
            continuous: self.raw.has("--continuous"),
            min_sync_interval: Duration::from_secs(self.flag_number("--min-sync-interval-seconds", 0)),
            retry_on_source_failures: self.raw.has("--retry-on-source-failures"),
            retry_interval: Duration::from_secs(self.flag_number("--retry-interval-seconds", 30)),
            max_retry_count,
            failures_to_give_up: self.raw.value("--max-retry-count").map(|_| max_retry_count),
            shutdown_grace: Duration::from_secs(self.number(&keys::SHUTDOWN_GRACE, "a number of seconds")),
            max_rounds_without_new_data,
            dry_run: self.raw.has("--dry-run"),
            explain: self.raw.has("--explain"),
            log_json: self.raw.has("--log-json"),
            no_progress: self.raw.has("--no-progress"),
        }
    }
}

mod kafka;
mod metrics;
mod round;

#[cfg(test)]
mod tests;
