//! Who compacts, when, and with what share of the workers.

use super::*;

const CLASSES: &str = "org.apache.hudi.table.action.compact.strategy";

impl Call {
    /// What a job on a table of this type does, with 8 workers.
    #[track_caller]
    fn compaction(&self, table_type: TableType) -> CompactionConfig {
        let mut loader = Loader::new(&self.raw, &|_| None);
        let config = loader.compaction(table_type, 8);
        assert!(loader.settings.problems.is_empty(), "{:?}", loader.settings.problems);
        config
    }
}

#[test]
fn who_compacts_follows_from_the_job() {
    use CompactionMode::*;
    let scheduling = "hoodie.compact.schedule.inline=true";
    let one_shot = Call::new();
    let continuous = one_shot.clone().switch("--continuous");
    let disabled = one_shot.clone().switch("--disable-compaction");
    for (name, call, want) in [
        ("one-shot", one_shot.clone(), Inline),
        ("continuous", continuous.clone(), Beside),
        ("disabled", disabled.clone(), Off),
        ("disabled, continuous", disabled.clone().switch("--continuous"), Off),
        ("somebody else executes", disabled.clone().conf(scheduling), Schedule),
        ("schedule.inline adds nothing to a job that compacts", one_shot.clone().conf(scheduling), Inline),
        ("no services", continuous.clone().conf("hoodie.table.services.enabled=false"), Off),
        ("the key says the same", one_shot.clone().conf("hoodie.compact.inline=true"), Inline),
        ("the key says the same of continuous jobs", continuous.clone().conf("hoodie.compact.inline=false"), Beside),
    ] {
        assert_eq!(call.compaction(TableType::MergeOnRead).mode, want, "{name}");
        let of_a_cow = call.conf("hoodie.compact.inline=false");
        assert_eq!(of_a_cow.compaction(TableType::CopyOnWrite).mode, Off, "{name}");
    }
    let contradicts = one_shot.conf("hoodie.compact.inline=false");
    let mut loader = Loader::new(&contradicts.raw, &|_| None);
    loader.compaction(TableType::MergeOnRead, 8);
    let [problem] = loader.settings.problems.as_slice() else { panic!("{:?}", loader.settings.problems) };
    assert!(problem.code == "config-conflict" && problem.text.contains("hoodie.compact.inline=false"), "{problem:?}");
}

#[test]
fn what_a_compaction_takes_and_when_are_read() {
    let defaults = Call::new().compaction(TableType::MergeOnRead);
    let trigger = |strategy, max_delta_commits, max_delta_seconds| CompactionTrigger {
        strategy,
        max_delta_commits,
        max_delta_seconds,
    };
    assert_eq!(defaults.trigger, trigger(TriggerStrategy::NumCommits, 5, 3600));
    let want = CompactionSelection {
        strategy: SelectionStrategy::LogFileSizeBased,
        target_io_mb: 512_000,
        log_size_threshold: 0,
        log_count_threshold: 0,
        target_partitions: 10,
    };
    assert_eq!(defaults.selection, want);
    assert_eq!((defaults.max_pending, defaults.retry_last_pending, defaults.fails_the_job), (5, false, true));
    let given = Call::new()
        .conf("hoodie.compact.inline.trigger.strategy=NUM_AND_TIME")
        .conf("hoodie.compact.inline.max.delta.commits=3")
        .conf("hoodie.compact.inline.max.delta.seconds=60")
        .conf(&format!("hoodie.compaction.strategy={CLASSES}.UnBoundedPartitionAwareCompactionStrategy"))
        .conf("hoodie.compaction.target.io=7")
        .conf("hoodie.memory.compaction.max.size=1000")
        .conf("hoodie.fail.writes.on.inline.table.service.exception=false")
        .flag("--max-pending-compactions", "2")
        .switch("--retry-last-pending-inline-compaction")
        .compaction(TableType::MergeOnRead);
    assert_eq!(given.trigger, trigger(TriggerStrategy::NumAndTime, 3, 60));
    assert_eq!(given.selection.strategy, SelectionStrategy::UnboundedPartitionAware);
    assert_eq!((given.selection.target_io_mb, given.memory), (7, 1000));
    assert_eq!((given.max_pending, given.retry_last_pending, given.fails_the_job), (2, true, false));
}

#[test]
fn compaction_beside_rounds_has_its_share_of_the_workers() {
    let weights = |ours: &str, theirs: &str, least: &str, kept: &str| {
        let call = Call::new().switch("--continuous");
        let call = call.flag("--compact-scheduling-weight", ours).flag("--delta-sync-scheduling-weight", theirs);
        let call = call.flag("--compact-scheduling-minshare", least).flag("--delta-sync-scheduling-minshare", kept);
        call.compaction(TableType::MergeOnRead).workers
    };
    for (ours, theirs, least, kept, want) in [
        ("1", "1", "0", "0", 4),
        ("1", "3", "0", "0", 2),
        ("1", "100", "0", "0", 1),
        ("1", "3", "5", "0", 5),
        ("3", "1", "0", "4", 4),
        ("1", "1", "20", "20", 1),
    ] {
        assert_eq!(weights(ours, theirs, least, kept), want, "{ours}:{theirs}, at least {least}, {kept} kept");
    }
    assert_eq!(Call::new().compaction(TableType::MergeOnRead).workers, 8, "behind a commit nobody else works");
    let zero = Call::new().flag("--compact-scheduling-weight", "0").switch("--continuous").problem();
    assert!(zero.text.contains("--compact-scheduling-weight"), "{}", zero.text);
}

#[test]
fn flags_that_change_nothing_are_told() {
    let weight = Call::new().flag("--compact-scheduling-weight", "2");
    let retry = Call::new().switch("--retry-last-pending-inline-compaction");
    for (name, call, table_type, want) in [
        ("nothing runs beside", weight.clone(), TableType::MergeOnRead, Some("--compact-scheduling-weight")),
        ("it does", weight.clone().switch("--continuous"), TableType::MergeOnRead, None),
        ("copy on write", weight.switch("--continuous"), TableType::CopyOnWrite, Some("copy-on-write")),
        ("one-shot", retry.clone(), TableType::MergeOnRead, None),
        ("continuous", retry.switch("--continuous"), TableType::MergeOnRead, Some("every plan that waits")),
    ] {
        let mut loader = Loader::new(&call.raw, &|_| None);
        loader.compaction(table_type, 8);
        let told = loader.settings.warnings.join("; ");
        assert!(want.map_or(told.is_empty(), |word| told.contains(word)), "{name}: {told}");
    }
}

#[test]
fn what_is_not_done_is_named() {
    for (conf, word) in [
        ("hoodie.log.compaction.inline=true", "log compaction"),
        ("hoodie.log.compaction.enable=true", "log compaction"),
        ("hoodie.compaction.strategy=org.acme.Mine", "is not a class of Hudi"),
        ("hoodie.compaction.strategy=PartitionRegexBasedCompactionStrategy", "not done yet"),
        ("hoodie.compaction.partition.path.regex=.*", "not done yet"),
        ("hoodie.compaction.plan.generator=org.acme.Mine", "hoodie.compaction.strategy"),
        ("hoodie.compact.inline.trigger.strategy=NUM_COMMIT", "did you mean NUM_COMMITS"),
        ("hoodie.compact.inline.max.delta.commits=-1", "a number of commits"),
    ] {
        let problem = Call::new().conf(conf).problem();
        assert!(problem.text.contains(word), "{conf}: {}", problem.text);
    }
}
