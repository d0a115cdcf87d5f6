//! `hoodie.compact.*`, `hoodie.compaction.*` and the flags about compaction.

use super::*;

const RETRY: &str = "--retry-last-pending-inline-compaction";

/// Flags about compaction beside rounds.
const BESIDE: [&str; 5] = [
    "--max-pending-compactions",
    "--compact-scheduling-weight",
    "--compact-scheduling-minshare",
    "--delta-sync-scheduling-weight",
    "--delta-sync-scheduling-minshare",
];

/// Reads files, layers and checks for `hudi-streamer compact`. What only a job needs is neither asked for nor checked.
pub fn load_compaction(raw: &RawArgs, env: &dyn Fn(&str) -> Option<String>) -> Result<CompactConfig> {
    Loader::new(raw, env).load_compaction()
}

impl Loader<'_> {
    fn load_compaction(mut self) -> Result<CompactConfig> {
        for flag in ["--target-base-path", "--target-table"] {
            if self.raw.value(flag).is_some_and(|v| v.trim().is_empty()) {
                self.problem("config-missing", format!("{flag} is empty"));
            }
        }
        let write = self.write();
        let (payload, chosen) = self.payload();
        let flag = |name: &str| self.raw.value(name).map(str::to_string);
        let config = CompactConfig {
            base_path: flag("--target-base-path").unwrap_or_default(),
            table_name: flag("--target-table"),
            storage: self.storage(),
            concurrency: self.concurrency(),
            compaction: self.compaction_in(CompactionMode::Off, write.workers),
            index: self.index(),
            write,
            payload: chosen.then_some(payload),
            log_json: self.raw.has("--log-json"),
            warnings: self.raw.warnings.iter().cloned().chain(self.settings.warnings).collect(),
        };
        match self.settings.problems.is_empty() {
            true => Ok(config),
            false => Err(Error { problems: self.settings.problems }),
        }
    }

    /// Of a job: what it does follows from its table and its kind, as in Hudi's Streamer.
    pub(super) fn compaction(&mut self, table_type: TableType, workers: usize) -> CompactionConfig {
        let continuous = self.raw.has("--continuous");
        let disabled = self.raw.has("--disable-compaction");
        let mode = match table_type {
            TableType::CopyOnWrite => CompactionMode::Off,
            TableType::MergeOnRead if !self.boolean(&keys::TABLE_SERVICES) => CompactionMode::Off,
            TableType::MergeOnRead if disabled && self.boolean(&keys::COMPACT_SCHEDULE_INLINE) => {
                CompactionMode::Schedule
            }
            TableType::MergeOnRead if disabled => CompactionMode::Off,
            TableType::MergeOnRead if continuous => CompactionMode::Beside,
            TableType::MergeOnRead => CompactionMode::Inline,
        };
        self.check_inline(table_type == TableType::MergeOnRead && !continuous && !disabled);
        self.tell_what_is_idle(table_type, mode);
        let share = self.share_of_compaction(workers);
        CompactionConfig {
            workers: if mode == CompactionMode::Beside { share } else { workers },
            ..self.compaction_in(mode, workers)
        }
    }

    /// Of `hudi-streamer compact`, which compacts whatever the job does.
    pub(super) fn compaction_in(&mut self, mode: CompactionMode, workers: usize) -> CompactionConfig {
        let size = SelectionStrategy::LogFileSizeBased;
        CompactionConfig {
            mode,
            trigger: self.compaction_trigger(),
            selection: CompactionSelection {
                strategy: self.key_choice(&keys::COMPACT_STRATEGY, &choices::COMPACTION_STRATEGIES, size),
                target_io_mb: self.number(&keys::COMPACT_IO, "a number of megabytes"),
                log_size_threshold: self.number(&keys::COMPACT_LOG_SIZE, "a number of bytes"),
                log_count_threshold: self.number(&keys::COMPACT_LOG_COUNT, "a number of log files"),
                target_partitions: self.number(&keys::COMPACT_PARTITIONS, "a number of partitions"),
            },
            memory: match self.given(&keys::COMPACT_MEMORY) {
                Some(_) => self.positive(&keys::COMPACT_MEMORY, "a number of bytes"),
                None => self.memory().merge,
            },
            workers,
            max_pending: self.flag_number("--max-pending-compactions", 5),
            retry_last_pending: self.raw.has(RETRY),
            fails_the_job: self.boolean(&keys::SERVICE_FAILURES),
        }
    }

    pub(super) fn compaction_trigger(&mut self) -> CompactionTrigger {
        let by_count = TriggerStrategy::NumCommits;
        CompactionTrigger {
            strategy: self.key_choice(&keys::COMPACT_TRIGGER, &choices::COMPACTION_TRIGGERS, by_count),
            max_delta_commits: self.number(&keys::COMPACT_COMMITS, "a number of commits"),
            max_delta_seconds: self.number(&keys::COMPACT_SECONDS, "a number of seconds"),
        }
    }

    fn tell_what_is_idle(&mut self, table_type: TableType, mode: CompactionMode) {
        let idle = |flag: &str| match mode {
            _ if table_type == TableType::CopyOnWrite => Some("copy-on-write tables are not compacted"),
            CompactionMode::Beside if flag == RETRY => Some("a continuous job executes every plan that waits"),
            CompactionMode::Inline if BESIDE.contains(&flag) => Some("a one-shot job compacts behind its commit"),
            _ => None,
        };
        for flag in BESIDE.iter().chain(&[RETRY, "--disable-compaction"]) {
            let given = self.raw.has(flag) || self.raw.value(flag).is_some();
            if let Some(why) = idle(flag).filter(|_| given) {
                self.settings.warnings.push(format!("{flag} has no effect: {why}"));
            }
        }
    }

    /// Hudi's Streamer insists that the key says what the job does anyway (`StreamSync`, 0.15).
    fn check_inline(&mut self, inline: bool) {
        let Some(given) = self.given(&keys::COMPACT_INLINE) else { return };
        if self.boolean(&keys::COMPACT_INLINE) != inline {
            let text = format!(
                "{}: {}={given}: it should be {inline}, or left out: merge-on-read tables are compacted inline by one-shot \
                 jobs, beside the rounds with --continuous, and not at all with --disable-compaction",
                self.origin(&keys::COMPACT_INLINE),
                keys::COMPACT_INLINE.name
            );
            self.problem("config-conflict", text);
        }
    }

    /// Of the workers, as the scheduling flags share Spark's slots out between two pools.
    fn share_of_compaction(&mut self, workers: usize) -> usize {
        let ours = self.weight("--compact-scheduling-weight");
        let theirs = self.weight("--delta-sync-scheduling-weight");
        let least: usize = self.flag_number("--compact-scheduling-minshare", 0);
        let kept: usize = self.flag_number("--delta-sync-scheduling-minshare", 0);
        let share = workers.saturating_mul(ours) / ours.saturating_add(theirs);
        share.max(least).min(workers.saturating_sub(kept)).max(1)
    }

    fn weight(&mut self, flag: &'static str) -> usize {
        let weight: usize = self.flag_number(flag, 1);
        if weight == 0 && self.raw.value(flag) == Some("0") {
            self.problem("config-bad-value", format!("{flag}: 0 is no weight: it is to be 1 or more"));
        }
        weight.max(1)
    }
}
