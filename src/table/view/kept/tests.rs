//! What is kept against a view made anew, whatever this job and others do to the table between two looks.

use super::*;
use crate::storage::Storage;
use crate::table::{
    CompactionOperation, CompactionPlan, InstantTime, MERGE_ON_READ, NewTable, TableProperties, TimelineRecord,
};
use bytes::Bytes;
use proptest::prelude::*;

/// What happens, to groups of partitions `p` and `q`.
#[derive(Debug, Clone)]
enum Step {
    /// `own`: by this job. A group that is there gets a log file or, with `anew`, a base file where no compaction waits.
    Write {
        own: bool,
        groups: Vec<usize>,
        anew: bool,
    },
    /// Another writer's, which is left open.
    Open {
        groups: Vec<usize>,
    },
    CompleteOpen,
    RollBackOpen,
    Plan {
        groups: Vec<usize>,
    },
    Compact,
    Replace {
        group: usize,
    },
    Clean,
    Savepoint,
    Archive,
    /// A round of this job fails.
    Fail,
}

fn steps() -> impl Strategy<Value = Vec<(Step, Vec<String>)>> {
    let groups =
        || prop::collection::btree_set(0usize..6, 1..4).prop_map(|groups| groups.into_iter().collect::<Vec<_>>());
    let write = (any::<bool>(), groups(), any::<bool>());
    let step = prop_oneof![
        8 => write.prop_map(|(own, groups, anew)| Step::Write { own, groups, anew }),
        1 => groups().prop_map(|groups| Step::Open { groups }),
        1 => Just(Step::CompleteOpen),
        1 => Just(Step::RollBackOpen),
        1 => groups().prop_map(|groups| Step::Plan { groups }),
        1 => Just(Step::Compact),
        1 => (0usize..6).prop_map(|group| Step::Replace { group }),
        1 => Just(Step::Clean),
        1 => Just(Step::Savepoint),
        1 => Just(Step::Archive),
        1 => Just(Step::Fail),
    ];
    let asked = prop::sample::subsequence(vec!["p".to_string(), "q".to_string(), "r".to_string()], 0..=3);
    prop::collection::vec((step, asked), 1..25)
}

type Written = (Instant, CommitMetadata);

struct Model {
    table: Table,
    clock: u64,
    open: Option<Written>,
    /// Groups whose ids nobody will use again.
    replaced: BTreeSet<usize>,
}

impl Model {
    async fn new() -> Model {
        let new = NewTable { name: "t".into(), table_type: MERGE_ON_READ.into(), ..NewTable::default() };
        let table = Table::create(Storage::in_memory(), TableProperties::for_new_table(&new)).await.expect("created");
        for partition in ["p", "q"] {
            let path = in_folder(partition, ".hoodie_partition_metadata");
            table.storage.put(&path, Bytes::from("#")).await.expect("written");
        }
        Model { table, clock: 20260101000000000, open: None, replaced: BTreeSet::new() }
    }

    async fn fresh(&self) -> (Timeline, FileSystemView) {
        let timeline = self.table.timeline().await.expect("a timeline");
        let view = FileSystemView::load(&self.table, &timeline, None).await.expect("a view");
        (timeline, view)
    }

    fn draw(&mut self, action: Action, state: State) -> Instant {
        self.clock += 1;
        Instant::new(InstantTime::parse(&self.clock.to_string()).expect("digits"), action, state)
    }

    async fn put(&self, instant: &Instant, content: impl Into<Bytes>) {
        self.table.storage.put(&instant.path(), content.into()).await.expect("written");
    }

    /// Files of a write at `instant`, and what its commit says of them.
    async fn files(&self, instant: &Instant, groups: &[usize], anew: bool) -> CommitMetadata {
        let (_, view) = self.fresh().await;
        let mut metadata = CommitMetadata { operation_type: "UPSERT".into(), ..Default::default() };
        for group in groups.iter().filter(|group| !self.replaced.contains(*group)) {
            let partition = ["p", "q"][group % 2].to_string();
            let file_id = format!("{group}-0");
            let slice = view.partitions.get(&partition).into_iter().flatten().find(|slice| slice.file_id == file_id);
            let name = match slice.filter(|slice| !anew || slice.pending_compaction.is_some()) {
                None => format!("{file_id}_0-0-0_{}.parquet", instant.time),
                Some(slice) => {
                    let (version, base_instant) = (slice.next_log_version(), slice.append_instant().clone());
                    let token = Some(format!("{}-0-0", self.clock % 100));
                    LogFileName { file_id: file_id.clone(), base_instant, version, token, cdc: false }.to_string()
                }
            };
            let path = in_folder(&partition, &name);
            let size = self.clock % 7 + 1;
            self.table.storage.put(&path, Bytes::from(vec![0; size as usize])).await.expect("written");
            let stat = WriteStat {
                file_id,
                path: Some(path),
                partition_path: partition.clone(),
                file_size_in_bytes: size,
                ..WriteStat::default()
            };
            metadata.partition_to_write_stats.entry(partition).or_default().push(stat);
        }
        metadata
    }

    async fn take(&mut self, step: Step) {
        match step {
            Step::Write { own, groups, anew } => {
                let instant = self.draw(Action::DeltaCommit, State::Completed);
                let metadata = self.files(&instant, &groups, anew).await;
                self.put(&instant, metadata.to_json()).await;
                if own {
                    self.table.kept.wrote(&instant, &metadata);
                }
            }
            Step::Open { groups } if self.open.is_none() => {
                let instant = self.draw(Action::DeltaCommit, State::Inflight);
                let metadata = self.files(&instant, &groups, false).await;
                self.put(&instant, "").await;
                self.open = Some((instant, metadata));
            }
            Step::CompleteOpen => {
                if let Some((instant, metadata)) = self.open.take() {
                    self.put(&instant.in_state(State::Completed), metadata.to_json()).await;
                }
            }
            Step::RollBackOpen => {
                if let Some((instant, metadata)) = self.open.take() {
                    for stat in metadata.stats() {
                        self.table.storage.delete(stat.path.as_ref().expect("a path")).await.expect("deleted");
                    }
                    let rollback = self.draw(Action::Rollback, State::Completed);
                    self.put(&rollback, "").await;
                    self.table.storage.delete(&instant.path()).await.expect("deleted");
                }
            }
            Step::Plan { groups } => self.plan(groups).await,
            Step::Compact => self.compact().await,
            Step::Replace { group } => {
                let instant = self.draw(Action::ReplaceCommit, State::Completed);
                self.replaced.insert(group);
                let replaced = [(["p", "q"][group % 2].to_string(), vec![format!("{group}-0")])].into_iter().collect();
                let metadata = CommitMetadata { partition_to_replace_file_ids: Some(replaced), ..Default::default() };
                self.put(&instant, metadata.to_json()).await;
            }
            Step::Clean => {
                let (timeline, view) = self.fresh().await;
                let latest: Vec<&BaseFile> = view.latest_base_files().collect();
                let mut files = self.table.storage.list("p").await.expect("listed").files;
                files.retain(|file| {
                    let base = parse_base_file(name_of(&file.path));
                    base.is_some_and(|(id, at)| {
                        let newest = latest.iter().find(|file| file.file_id == id);
                        timeline.is_valid(&at) && newest.is_some_and(|newest| at < newest.instant)
                    })
                });
                for file in files {
                    self.table.storage.delete(&file.path).await.expect("deleted");
                }
                let clean = self.draw(Action::Clean, State::Completed);
                self.put(&clean, "").await;
            }
            Step::Savepoint => {
                let (timeline, _) = self.fresh().await;
                if let Some(write) = timeline.last_completed_write() {
                    self.put(&Instant::new(write.time.clone(), Action::Savepoint, State::Completed), "").await;
                }
            }
            Step::Archive => {
                let (timeline, _) = self.fresh().await;
                let pending = timeline.instants.iter().find(|instant| instant.is_pending());
                let old = timeline.completed_writes().rev().skip(2).last();
                if let Some(old) = old.filter(|old| {
                    old.action != Action::ReplaceCommit && pending.is_none_or(|pending| old.time < pending.time)
                }) {
                    self.table.storage.delete(&old.path()).await.expect("deleted");
                }
            }
            Step::Fail => self.table.kept.forget(),
            Step::Open { .. } => {}
        }
    }

    async fn plan(&mut self, groups: Vec<usize>) {
        let (timeline, view) = self.fresh().await;
        if self.open.is_some() || timeline.pending(Action::Compaction).next().is_some() {
            return;
        }
        let slices = view.partitions.values().flatten();
        let chosen = slices.filter(|slice| groups.iter().any(|group| slice.file_id == format!("{group}-0")));
        let operation = |slice: &Arc<FileSlice>| CompactionOperation {
            base_instant_time: Some(slice.base_instant.to_string()),
            delta_file_paths: None,
            data_file_path: None,
            file_id: Some(slice.file_id.clone()),
            partition_path: Some(slice.partition.clone()),
            metrics: None,
            bootstrap_file_path: None,
        };
        let plan = CompactionPlan {
            operations: Some(chosen.map(operation).collect()),
            extra_metadata: None,
            version: Some(2),
            strategy: None,
            preserve_hoodie_metadata: Some(false),
        };
        let instant = self.draw(Action::Compaction, State::Requested);
        self.put(&instant, plan.to_file()).await;
    }

    async fn compact(&mut self) {
        let (timeline, view) = self.fresh().await;
        let Some(plan) = timeline.pending(Action::Compaction).next() else { return };
        let mut metadata = CommitMetadata { operation_type: "COMPACT".into(), ..Default::default() };
        for (partition, file_id) in view.pending_compactions.keys() {
            let path = format!("{partition}/{file_id}_1-0-0_{}.parquet", plan.time);
            self.table.storage.put(&path, Bytes::from("base")).await.expect("written");
            let stat = WriteStat { file_id: file_id.clone(), path: Some(path), ..WriteStat::default() };
            let stat = WriteStat { partition_path: partition.clone(), file_size_in_bytes: 4, ..stat };
            metadata.partition_to_write_stats.entry(partition.clone()).or_default().push(stat);
        }
        self.put(&Instant::new(plan.time.clone(), Action::Commit, State::Completed), metadata.to_json()).await;
    }

    /// Without the log files of the write that is open, which count for nobody, and without partitions that have no slice.
    fn counted(&self, mut view: FileSystemView) -> FileSystemView {
        let open: BTreeSet<&str> =
            self.open.iter().flat_map(|(_, open)| open.stats()).filter_map(|stat| stat.path.as_deref()).collect();
        for slice in view.partitions.values_mut().flatten() {
            let path = |log: &LogFile| in_folder(&slice.partition, &log.name.to_string());
            let logs = slice.log_files.iter().filter(|log| !open.contains(path(log).as_str())).cloned().collect();
            Arc::make_mut(slice).log_files = logs;
        }
        view.partitions.retain(|_, slices| !slices.is_empty());
        view
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn what_is_kept_is_what_the_table_says(steps in steps(), whole in any::<bool>()) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async move {
            let mut model = Model::new().await;
            for (step, asked) in steps {
                model.take(step.clone()).await;
                let timeline = model.table.timeline().await.expect("a timeline");
                let asked = (!whole).then_some(asked.as_slice());
                let want = FileSystemView::load(&model.table, &timeline, asked).await.expect("a view");
                let got = FileSystemView::load_kept(&model.table, &timeline, asked).await.expect("a view");
                let (want, got) = (model.counted(want), model.counted(got));
                prop_assert_eq!(got.partitions, want.partitions, "after {:?}", step);
                if asked.is_none_or(|asked| !asked.is_empty()) {
                    prop_assert_eq!(got.pending_compactions, want.pending_compactions);
                }
            }
            Ok(())
        })?;
    }
}
