//! A plan that is on the timeline already, ours or Hudi's, and what of it is still to be done.

use super::memory::{SAVEPOINTED, key};
use super::plan::Needs;
use super::slices::Keep;
use super::{Cleaner, Files, Job};
use crate::service::rollback::{being_taken_back, without};
use crate::service::{Error, Result};
use crate::table::{
    Action, CleanPlan, Instant, InstantTime, LogFileName, PartitionFiles, State, Table, Timeline, TimelineRecord,
};
use crate::table::{name_of, parse_base_file};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// `None`: whoever was to write the plan has died before, and it is forgotten, as in Hudi.
pub(super) async fn read(table: &Table, pending: &Instant) -> Result<Option<(CleanPlan, Bytes)>> {
    let mut unread = None;
    for state in [State::Requested, State::Inflight] {
        let instant = pending.in_state(state);
        let Some(content) = table.storage.get_opt(&instant.path()).await?.filter(|content| !content.is_empty()) else {
            continue;
        };
        match CleanPlan::from_file(&content) {
            Ok(plan) => return Ok(Some((plan, content))),
            Err(why) => unread = Some(Error::CleanPlan { path: table.storage.display(&instant.path()), why }),
        }
    }
    match unread {
        // Files may have gone by it.
        Some(error) if pending.state == State::Inflight => Err(error),
        _ => {
            tracing::warn!(instant = %pending.time, "a pending clean has no plan: it is forgotten");
            for state in [State::Inflight, State::Requested] {
                table.storage.delete(&pending.in_state(state).path()).await?;
            }
            Ok(None)
        }
    }
}

/// Names of the files that plans on `timeline` are going to delete, with the clean of each: whoever finishes them.
pub(in crate::service) async fn doomed(table: &Table, timeline: &Timeline) -> Result<HashMap<String, InstantTime>> {
    let mut doomed = HashMap::new();
    for pending in timeline.pending(Action::Clean) {
        for state in [State::Requested, State::Inflight] {
            let content = table.storage.get_opt(&pending.in_state(state).path()).await?.unwrap_or_default();
            // What cannot be read (yet) deletes nothing.
            let names = CleanPlan::from_file(&content).and_then(|plan| names_of(&plan)).unwrap_or_default();
            doomed.extend(names.into_values().flatten().map(|name| (name, pending.time.clone())));
        }
    }
    Ok(doomed)
}

impl Cleaner {
    /// Only partitions and names of files count, so that the table may have moved. Since the plan was made the table may have
    /// been restored, or got a savepoint: what somebody needs by now stays.
    pub(super) async fn stored_job(&self, timeline: &Timeline, pending: &Instant) -> Result<Option<Job>> {
        let Some((mut plan, mut content)) = read(&self.table, pending).await? else { return Ok(None) };
        let path = self.table.storage.display(&pending.path());
        let planned = names_of(&plan).map_err(|why| Error::CleanPlan { path, why })?;
        let folders: Vec<String> = planned.keys().cloned().collect();
        // What these writes have replaced is the newest once they are gone.
        let stays = without(timeline, &being_taken_back(&self.table, timeline).await?);
        let needs = Needs::load(self, &stays).await?;
        let mut found = PartitionFiles::load(&self.table, &stays, Some(&folders)).await?;
        let mut partitions = BTreeMap::new();
        let mut spared = HashSet::new();
        for (partition, names) in planned {
            let files = found.remove(&partition).unwrap_or_default();
            let there: HashSet<&String> =
                files.groups.values().flatten().flat_map(|slice| &slice.names).chain(&files.uncommitted).collect();
            let unneeded: HashSet<String> = needs.unneeded(&partition, &files, Keep::Newest(1)).into_iter().collect();
            let mut todo = Files::default();
            for name in names {
                match (there.contains(&name), unneeded.contains(&name)) {
                    (false, _) => todo.gone.push(name),
                    (true, true) => todo.there.push(name),
                    (true, false) => drop(spared.insert(name)),
                }
            }
            partitions.insert(partition, todo);
        }
        if !spared.is_empty() {
            tracing::warn!(
                instant = %pending.time,
                files = spared.len(),
                "files that a pending clean was to delete are needed by now: they stay"
            );
            spare_for_savepoints(&mut plan, timeline);
            leave_out(&mut plan, &spared);
            content = plan.to_file();
            // Should this end before it is done, Hudi would finish the plan without a look at what is needed.
            for state in [State::Requested, State::Inflight].into_iter().filter(|state| *state <= pending.state) {
                self.table.storage.put(&pending.in_state(state).path(), content.clone()).await?;
            }
            self.memory.forget_look();
        }
        Ok(Some(Job {
            time: pending.time.clone(),
            plan,
            content,
            partitions,
            seen: timeline.clone(),
            is_resumed: true,
        }))
    }

    /// Right before the files of a plan go. Whoever makes a savepoint, restores the table or takes back a completed write
    /// looks for pending cleans once that stands on the timeline; what has come to stand there before the plan is seen here.
    /// `None`: somebody else has completed the clean.
    pub(super) async fn look_again(&self, job: Job) -> Result<Option<Job>> {
        let now = self.table.timeline().await?;
        if !is_overtaken(&job.seen, &now) && being_taken_back(&self.table, &now).await?.is_empty() {
            return Ok(Some(job));
        }
        match now.pending(Action::Clean).find(|pending| pending.time == job.time) {
            Some(pending) => self.stored_job(&now, pending).await,
            None => Ok(None),
        }
    }
}

/// Whether files may be needed by now that were not.
fn is_overtaken(seen: &Timeline, now: &Timeline) -> bool {
    let writes: BTreeSet<_> = now.completed_writes().map(key).collect();
    now.savepoints().any(|savepoint| !seen.is_savepointed(&savepoint.time))
        || seen.completed_writes().any(|write| !writes.contains(&key(write)))
}

/// Lets the clean say that it has spared files of these: the next one without them looks for what they have kept.
fn spare_for_savepoints(plan: &mut CleanPlan, timeline: &Timeline) {
    let extra = plan.extra_metadata.get_or_insert_default();
    let planned = extra.remove(SAVEPOINTED).unwrap_or_default();
    let mut savepoints: BTreeSet<&str> = planned.split(',').filter(|savepoint| !savepoint.is_empty()).collect();
    savepoints.extend(timeline.savepoints().map(|savepoint| savepoint.time.as_str()));
    if !savepoints.is_empty() {
        extra.insert(SAVEPOINTED.to_string(), Vec::from_iter(savepoints).join(","));
    }
}

fn leave_out(plan: &mut CleanPlan, spared: &HashSet<String>) {
    for files in plan.file_paths_to_be_deleted_per_partition.iter_mut().flat_map(BTreeMap::values_mut) {
        files.retain(|file| !spared.contains(name_of(file.file_path.as_deref().unwrap_or_default())));
    }
    for files in plan.files_to_be_deleted_per_partition.iter_mut().flat_map(BTreeMap::values_mut) {
        files.retain(|file| !spared.contains(name_of(file)));
    }
}

/// By partition. Anything but a data file is refused.
fn names_of(plan: &CleanPlan) -> std::result::Result<BTreeMap<String, Vec<String>>, String> {
    let mut names: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (partition, files) in plan.file_paths_to_be_deleted_per_partition.iter().flatten() {
        let of = names.entry(partition.clone()).or_default();
        for file in files {
            if file.is_bootstrap_base_file == Some(true) {
                return Err("it names a file of the table that this one was bootstrapped from".to_string());
            }
            of.push(name_of(file.file_path.as_deref().unwrap_or_default()).to_string());
        }
    }
    for (partition, files) in plan.files_to_be_deleted_per_partition.iter().flatten() {
        names.entry(partition.clone()).or_default().extend(files.iter().map(|file| name_of(file).to_string()));
    }
    let is_data = |name: &str| parse_base_file(name).is_some() || LogFileName::parse(name).is_some();
    match names.values().flatten().find(|name| !is_data(name)) {
        Some(foreign) => Err(format!("`{foreign:.200}` is no data file")),
        None => Ok(names),
    }
}
