//! A plan: what is to be folded into base files, as of an instant that from then on new log files go on.

use super::strategy::{Candidate, Cost, choose};
use super::{Compactor, trigger};
use crate::config::SelectionStrategy;
use crate::service::lock::Held;
use crate::service::rollback::is_clustering;
use crate::service::{Error, Result};
use crate::storage::fault_point;
use crate::table::{Action, CompactionOperation, CompactionPlan, FileGroupId, FileSlice, FileSystemView, Instant};
use crate::table::{InstantTime, LogFileName, Markers, State, Table, Timeline, TimelineRecord, parse_base_file};
use std::collections::BTreeSet;
use std::time::Duration;

/// Plans that are begun anew because another job has committed meanwhile.
const TRIES: u32 = 3;

/// An executor needs no more than one look of its own to find that its plan has gone.
const LOOKS: u32 = 50;
const BETWEEN_LOOKS: Duration = Duration::from_millis(100);

/// What readers of a plan take its paths for (`CompactionUtils.LATEST_COMPACTION_METADATA_VERSION`, Hudi 0.15): names of files.
const PLAN_VERSION: i32 = 2;

impl Compactor {
    /// Makes a plan, if one is due and there is something to compact. From here on the plan is to be executed: log files
    /// that are written on its instant have no other base file.
    ///
    /// With one writer only while no write is open. Another job's write that came in between, and may not know of the plan,
    /// takes it back. Among several the plan is made under their lock, and a write that is open finds it when it looks once
    /// more, right before it commits; what it is writing to is left out, so that it need not be done again.
    pub async fn schedule(&self, at: Option<&InstantTime>) -> Result<Option<InstantTime>> {
        let held = self.writers.locks.lock("plan a compaction").await?;
        let planned = self.schedule_under(&held, at).await?;
        held.release().await?;
        Ok(planned)
    }

    async fn schedule_under(&self, held: &Held, at: Option<&InstantTime>) -> Result<Option<InstantTime>> {
        for _ in 0..TRIES {
            let timeline = self.table.timeline().await?;
            let time = match at {
                Some(time) if timeline.newest().is_some_and(|newest| newest >= time) => {
                    let (instant, newest) = (time.to_string(), timeline.newest().map(ToString::to_string));
                    return Err(Error::CompactionNotNewest { instant, newest: newest.unwrap_or_default() });
                }
                Some(time) => time.clone(),
                None => self.table.new_instant(&timeline),
            };
            if !trigger::is_due(&self.config.trigger, &timeline, &time) {
                return Ok(None);
            }
            let mut open = BTreeSet::new();
            match self.writers.are_several() {
                true => open = being_written(&self.table, &timeline).await?,
                false => refuse_open_writes(&self.table, &timeline).await?,
            }
            let view = self.view(&timeline).await?;
            let chosen = self.choose(&view, &open)?;
            let slices = || view.partitions.values().flatten().map(|slice| &**slice);
            if chosen.is_empty() {
                self.looked.remember(&timeline, slices(), None);
                return Ok(None);
            }
            let now = self.table.timeline().await?;
            if writes(&now) != writes(&timeline) {
                continue;
            }
            // Another writer's instant that was drawn meanwhile is to be the smaller one: it will find the plan.
            let time = if at.is_none() && self.writers.are_several() { self.table.new_instant(&now) } else { time };
            held.check().await?;
            let requested = Instant::new(time.clone(), Action::Compaction, State::Requested);
            self.table.create_instant(&requested, plan_of(&chosen).to_file()).await?;
            self.take_back_if_overlooked(&requested, &now).await?;
            let group = |c: &Candidate| (c.slice.partition.clone(), c.slice.file_id.clone());
            self.looked.remember(&timeline, slices(), Some((&time, &chosen.iter().map(group).collect())));
            fault_point("after-plan");
            tracing::info!(instant = %time, groups = chosen.len(), "compaction planned");
            return Ok(Some(time));
        }
        Err(Error::CompactionOvertaken { table: self.table.storage.display("") })
    }

    /// Of the partitions in which something may have come to be there to compact.
    async fn view(&self, timeline: &Timeline) -> Result<FileSystemView> {
        let partitions = match self.config.selection.strategy {
            // It counts partitions, also those without a log file.
            SelectionStrategy::DayBased => None,
            _ => self.looked.partitions(&self.table, timeline).await?,
        };
        Ok(FileSystemView::load(&self.table, timeline, partitions.as_deref()).await?)
    }

    /// `open`: groups that others are writing to.
    fn choose(&self, view: &FileSystemView, open: &BTreeSet<FileGroupId>) -> Result<Vec<Candidate>> {
        let max_file_size = self.write.parquet.max_file_size;
        let candidates = view
            .partitions
            .values()
            .flatten()
            .filter(|slice| !slice.log_files.is_empty() && slice.pending_compaction.is_none())
            .filter(|slice| !view.is_in_pending_clustering(&slice.partition, &slice.file_id))
            .filter(|slice| !open.contains(&(slice.partition.clone(), slice.file_id.clone())))
            .map(|slice| {
                let base = slice.base_file.as_ref().map(|base| base.size);
                let cost = Cost::of(base, slice.log_files.iter().map(|log| log.size), max_file_size);
                Candidate { slice: FileSlice::clone(slice), cost }
            });
        let partitions: Vec<&str> = view.partitions.keys().map(String::as_str).collect();
        let today = chrono::Local::now().date_naive();
        choose(&self.config.selection, &partitions, candidates.collect(), today)
            .map_err(|no_date| Error::CompactionDay { partition: no_date.partition })
    }

    /// A write that was opened between our last look at the timeline (`before`) and the plan has chosen its files without
    /// it. One opened after the plan knows it, or finds it when it looks once more, right before it commits.
    pub(super) async fn take_back_if_overlooked(&self, plan: &Instant, before: &Timeline) -> Result<()> {
        let now = self.table.timeline().await?;
        let known = writes(before);
        if writes(&now).is_subset(&known) {
            return Ok(());
        }
        let files = self.table.storage.list(".hoodie").await?.files;
        let modified = |instant: &Instant| files.iter().find(|f| f.path == instant.path()).map(|f| f.modified_ms);
        let planned = modified(plan);
        let overlooks = |write: &&Instant| modified(&write.in_state(State::Requested)) <= planned;
        let all = now.completed_writes().chain(now.pending_writes());
        let mut unknown = all.filter(|write| !known.iter().any(|(time, _, _)| *time == write.time));
        let Some(write) = unknown.find(overlooks) else { return Ok(()) };
        let (instant, action) = (write.time.to_string(), write.action.to_string());
        if self.take_back(plan).await? {
            return Err(Error::WriteOpen { instant, action });
        }
        Err(Error::CompactionBegun { instant: plan.time.to_string(), write: instant, action })
    }

    /// `false`: an executor has begun with it, and it stands. The write that overlooks it finds the inflight file when it
    /// looks once more, and is done again. An executor that begins with a plan that has just gone takes its file back, which
    /// is waited for; one that is at work since before, or has died, gets the plan again.
    async fn take_back(&self, plan: &Instant) -> Result<bool> {
        if self.has_begun(plan).await? {
            return Ok(false);
        }
        let content = self.table.read_instant(plan).await?;
        self.table.storage.delete(&plan.path()).await?;
        for _ in 0..LOOKS {
            if !self.has_begun(plan).await? {
                return Ok(true);
            }
            tokio::time::sleep(BETWEEN_LOOKS).await;
        }
        self.table.create_instant(plan, content).await?;
        Ok(false)
    }

    async fn has_begun(&self, plan: &Instant) -> Result<bool> {
        let timeline = self.table.timeline().await?;
        let requested = |instant: &Instant| instant.action == Action::Compaction && instant.state == State::Requested;
        Ok(timeline.instants.iter().any(|instant| instant.time == plan.time && !requested(instant)))
    }
}

/// Writes as they stand, to see whether something has happened.
fn writes(timeline: &Timeline) -> BTreeSet<(InstantTime, Action, State)> {
    let all = timeline.completed_writes().chain(timeline.pending_writes());
    all.map(|write| (write.time.clone(), write.action, write.state)).collect()
}

/// Clustering that waits has groups of its own, which are no candidates.
async fn refuse_open_writes(table: &Table, timeline: &Timeline) -> Result<()> {
    for write in timeline.pending_writes() {
        if !is_clustering(table, write).await? {
            return Err(Error::WriteOpen { instant: write.time.to_string(), action: write.action.to_string() });
        }
    }
    Ok(())
}

/// The groups that open writes have begun to write to. A dead one's are among them until it is rolled back: a reader may stop
/// at its blocks, and a compaction would lose those behind them.
async fn being_written(table: &Table, timeline: &Timeline) -> Result<BTreeSet<FileGroupId>> {
    let mut groups = BTreeSet::new();
    for write in timeline.pending_writes() {
        for marker in Markers::new(&table.storage, &write.time).list().await? {
            let (partition, name) = marker.path.rsplit_once('/').unwrap_or(("", &marker.path));
            let log = LogFileName::parse(name).map(|log| log.file_id);
            let file_id = log.or_else(|| parse_base_file(name).map(|(file_id, _)| file_id.to_string()));
            groups.extend(file_id.map(|file_id| (partition.to_string(), file_id)));
        }
    }
    Ok(groups)
}

fn plan_of(chosen: &[Candidate]) -> CompactionPlan {
    CompactionPlan {
        operations: Some(chosen.iter().map(operation_of).collect()),
        extra_metadata: Some(Default::default()),
        version: Some(PLAN_VERSION),
        strategy: None,
        preserve_hoodie_metadata: Some(false),
    }
}

fn operation_of(candidate: &Candidate) -> CompactionOperation {
    let FileSlice { partition, file_id, base_instant, base_file, log_files, .. } = &candidate.slice;
    CompactionOperation {
        base_instant_time: Some(base_instant.to_string()),
        delta_file_paths: Some(log_files.iter().map(|log| log.name.to_string()).collect()),
        data_file_path: base_file.as_ref().map(|base| base.name.clone()),
        file_id: Some(file_id.clone()),
        partition_path: Some(partition.clone()),
        metrics: Some(candidate.cost.metrics()),
        bootstrap_file_path: None,
    }
}
