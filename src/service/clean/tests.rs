use super::*;
use crate::config::{CleanMode, CleanPolicy};
use crate::service::Error;
use crate::table::{
    CleanFile, CleanMetadata, CommitMetadata, CompactionOperation, CompactionPlan, Instant, InstantInfo, RollbackPlan,
    SavepointMetadata, SavepointPartition, State, TimelineRecord, WriteStat,
};
use crate::write::testing;
use std::path::Path;

/// A table on disk of which only names count: files are empty.
struct Fake {
    folder: tempfile::TempDir,
    table: Table,
}

const COMMITS: CleanPolicy = CleanPolicy::KeepLatestCommits { commits: 2 };
const VERSIONS: CleanPolicy = CleanPolicy::KeepLatestFileVersions { versions: 1 };

fn time(number: u32) -> String {
    format!("{:0>17}", u64::from(number) + 20_260_101_000_000_000)
}

fn base(group: &str, number: u32) -> String {
    format!("{group}-0_0-0-0_{}.parquet", time(number))
}

impl Fake {
    fn new() -> Fake {
        let (folder, mut table) = testing::table();
        table.properties = crate::table::TableProperties::for_new_table(&crate::table::NewTable {
            name: "t".into(),
            table_type: crate::table::COPY_ON_WRITE.into(),
            partition_fields: vec!["p".into()],
            ..Default::default()
        });
        let fake = Fake { folder, table };
        fake.file(".hoodie/hoodie.properties", &fake.table.properties.to_bytes(""));
        fake
    }

    fn file(&self, path: &str, content: &[u8]) {
        let path = self.folder.path().join(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, content).expect("a file");
    }

    fn instant(&self, number: u32, action: Action, state: State, content: &[u8]) -> Instant {
        let instant = Instant::new(InstantTime::parse(&time(number)).expect("digits"), action, state);
        self.file(&instant.path(), content);
        instant
    }

    /// A commit with a base file for each of `groups`, as `partition/group`.
    fn commit(&self, number: u32, groups: &[&str]) {
        let mut metadata = CommitMetadata::default();
        for group in groups {
            let (partition, id) = group.split_once('/').expect("partition/group");
            self.file(&format!("{partition}/.hoodie_partition_metadata"), b"");
            self.file(&format!("{partition}/{}", base(id, number)), b"");
            metadata.partition_to_write_stats.entry(partition.to_string()).or_default().push(WriteStat::default());
        }
        self.instant(number, Action::Commit, State::Completed, &metadata.to_json());
    }

    /// That hides these groups.
    fn replace(&self, number: u32, groups: &[&str]) {
        let mut replaced = BTreeMap::<String, Vec<String>>::new();
        for group in groups {
            let (partition, id) = group.split_once('/').expect("partition/group");
            replaced.entry(partition.to_string()).or_default().push(format!("{id}-0"));
        }
        let metadata = CommitMetadata { partition_to_replace_file_ids: Some(replaced), ..Default::default() };
        self.instant(number, Action::ReplaceCommit, State::Completed, &metadata.to_json());
    }

    fn savepoint(&self, number: u32, partition: &str, names: &[String]) -> Instant {
        let files = SavepointPartition { partition_path: partition.to_string(), savepoint_data_file: names.to_vec() };
        let metadata = SavepointMetadata {
            savepointed_by: String::new(),
            savepointed_at: 0,
            comments: String::new(),
            partition_metadata: [(partition.to_string(), files)].into(),
            version: Some(1),
        };
        self.instant(number, Action::Savepoint, State::Completed, &metadata.to_file())
    }

    fn cleaner(&self, policy: CleanPolicy) -> Cleaner {
        Cleaner {
            table: self.table.clone(),
            config: CleanConfig {
                mode: CleanMode::Inline,
                policy,
                max_commits: 1,
                incremental: true,
                allow_multiple: false,
                parallelism: 4,
            },
            writers: Writers::none(),
            alone: true,
            cancel: CancellationToken::new(),
            memory: CleanMemory::default(),
        }
    }

    /// Data files, as `partition/group@number`.
    fn data(&self) -> Vec<String> {
        let mut found = Vec::new();
        for folder in std::fs::read_dir(self.folder.path()).expect("a folder") {
            let folder = folder.expect("an entry").path();
            for file in std::fs::read_dir(&folder).expect("a folder") {
                let name = file.expect("an entry").file_name().into_string().expect("text");
                let Some((id, time)) = crate::table::parse_base_file(&name) else { continue };
                let number = time.as_str().parse::<u64>().expect("a number") - 20_260_101_000_000_000;
                let partition = folder.file_name().expect("a name").to_string_lossy().into_owned();
                found.push(format!("{partition}/{}@{number}", id.trim_end_matches("-0")));
            }
        }
        found.sort();
        found
    }

    fn exists(&self, path: &str) -> bool {
        Path::new(self.folder.path()).join(path).exists()
    }

    /// The newest clean, completed.
    async fn last_clean(&self) -> CleanMetadata {
        let timeline = self.table.timeline().await.expect("a timeline");
        let clean = timeline.instants.iter().rfind(|i| i.action == Action::Clean).expect("a clean");
        assert_eq!(clean.state, State::Completed);
        CleanMetadata::from_file(&self.table.read_instant(clean).await.expect("content")).expect("metadata")
    }

    /// What the files of pending and completed cleans tell.
    fn plans(&self) -> Vec<CleanPlan> {
        let files = std::fs::read_dir(self.folder.path().join(".hoodie")).expect("a timeline");
        let paths = files.map(|file| file.expect("an entry").path());
        let plans = paths.filter(|path| path.to_str().is_some_and(|path| path.contains(".clean.")));
        plans.map(|path| CleanPlan::from_file(&std::fs::read(path).expect("content")).expect("a plan")).collect()
    }

    /// A plan that somebody has left to delete these, as `partition/name`.
    fn pending(&self, number: u32, state: State, paths: &[String]) {
        let mut files = BTreeMap::<String, Vec<CleanFile>>::new();
        for path in paths {
            let (partition, name) = path.split_once('/').expect("partition/name");
            // The table has been elsewhere.
            let file_path = Some(format!("file:/elsewhere/{partition}/{name}"));
            files
                .entry(partition.to_string())
                .or_default()
                .push(CleanFile { file_path, is_bootstrap_base_file: Some(false) });
        }
        let plan = CleanPlan {
            earliest_instant_to_retain: None,
            last_completed_commit_timestamp: time(1),
            policy: "KEEP_LATEST_FILE_VERSIONS".to_string(),
            files_to_be_deleted_per_partition: None,
            version: Some(2),
            file_paths_to_be_deleted_per_partition: Some(files),
            partitions_to_be_deleted: None,
            extra_metadata: None,
        };
        self.instant(number, Action::Clean, State::Requested, &plan.to_file());
        if state == State::Inflight {
            self.instant(number, Action::Clean, State::Inflight, &plan.to_file());
        }
    }
}

async fn clean(cleaner: &Cleaner) -> u64 {
    cleaner.clean().await.expect("a clean").iter().map(|report| report.files_deleted).sum()
}

async fn planned(cleaner: &Cleaner) -> Option<Job> {
    let timeline = cleaner.table.timeline().await.expect("a timeline");
    cleaner.plan(&timeline).await.expect("a look")
}

#[tokio::test]
async fn where_the_timeline_alone_says_no_nothing_is_read() {
    let fake = Fake::new();
    for number in [1, 2] {
        fake.instant(number, Action::Commit, State::Completed, b"this is no commit");
    }
    fake.instant(3, Action::Savepoint, State::Completed, b"this is no savepoint");
    assert!(!fake.cleaner(COMMITS).may_be_due(&fake.table.timeline().await.expect("a timeline")));
    assert_eq!(fake.cleaner(COMMITS).clean().await.expect("nothing to do"), []);
    // One more, and it would have to look.
    fake.instant(4, Action::Commit, State::Completed, b"this is no commit");
    let mut cleaner = fake.cleaner(COMMITS);
    assert!(cleaner.may_be_due(&fake.table.timeline().await.expect("a timeline")));
    cleaner.memory.looked(memory::Look {
        earliest: InstantTime::parse(&time(1)),
        writes: Default::default(),
        savepoints: Default::default(),
    });
    assert!(cleaner.clean().await.is_err());
    cleaner.config.max_commits = 4;
    assert_eq!(cleaner.clean().await.expect("not due"), []);
}

#[tokio::test]
async fn a_job_looks_only_where_something_was_written_since() {
    for policy in [COMMITS, VERSIONS] {
        let fake = Fake::new();
        fake.commit(1, &["p/a", "q/b"]);
        for number in [2, 3, 4] {
            fake.commit(number, &["p/a"]);
        }
        let job = fake.cleaner(policy);
        assert_ne!(clean(&job).await, 0, "{policy:?}");
        // Behind the back of every commit.
        fake.file(&format!("q/{}", base("b", 0)), b"");
        fake.commit(6, &["p/a"]);
        fake.commit(7, &["p/a"]);
        assert_ne!(clean(&job).await, 0, "{policy:?}");
        assert!(fake.data().contains(&"q/b@0".to_string()), "{policy:?}: nobody has looked there");
        assert_eq!(
            fake.data().iter().filter(|file| file.starts_with('p')).count(),
            match policy {
                VERSIONS => 1,
                _ => 3,
            },
            "{policy:?}: {:?}",
            fake.data()
        );
        // A write there changes that; a job that is not to go by writes looks at once.
        let mut everywhere = fake.cleaner(policy);
        everywhere.config.incremental = false;
        everywhere.config.max_commits = 0;
        assert_eq!(clean(&everywhere).await, 1, "{policy:?}");
    }
}

#[tokio::test]
async fn a_new_process_goes_on_from_the_last_clean() {
    let fake = Fake::new();
    fake.commit(1, &["p/a", "q/b"]);
    fake.commit(2, &["p/a"]);
    fake.commit(3, &["p/a"]);
    fake.commit(4, &["p/a"]);
    assert_eq!(clean(&fake.cleaner(COMMITS)).await, 1, "p/a@1");
    assert_eq!(fake.last_clean().await.earliest_commit_to_retain, time(3));
    fake.file(&format!("q/{}", base("b", 0)), b"");
    fake.commit(6, &["p/a"]);
    assert_eq!(clean(&fake.cleaner(COMMITS)).await, 1, "p/a@2, for p was written to at 3");
    assert!(fake.data().contains(&"q/b@0".to_string()));
}

#[tokio::test]
async fn what_was_kept_by_a_savepoint_goes_once_that_is_gone() {
    let fake = Fake::new();
    for number in [1, 2] {
        fake.commit(number, &["p/a", "q/b"]);
    }
    for number in [3, 4, 5] {
        fake.commit(number, &["p/a"]);
    }
    let savepoint = fake.savepoint(1, "q", &[base("b", 1)]);
    let job = fake.cleaner(COMMITS);
    assert_eq!(clean(&job).await, 2, "p/a@1 and @2");
    let metadata = fake.last_clean().await;
    assert_eq!(metadata.extra_metadata, Some([(memory::SAVEPOINTED.to_string(), time(1))].into()));
    fake.table.storage.delete(&savepoint.path()).await.expect("deleted");
    fake.commit(7, &["p/a"]);
    for cleaner in [job, fake.cleaner(COMMITS)] {
        let planned = cleaner.preview().await.expect("a look").files;
        assert_eq!(planned.get("q"), Some(&vec![base("b", 1)]), "in a partition that nobody has written to since");
    }
}

#[tokio::test]
async fn what_compaction_is_going_to_read_stays() {
    let fake = Fake::new();
    for number in [1, 2, 3, 4] {
        fake.commit(number, &["p/a", "q/b"]);
    }
    let operation = |from: u32, partition: &str, group: &str| CompactionOperation {
        base_instant_time: Some(time(from)),
        delta_file_paths: Some(vec![]),
        data_file_path: Some(base(group, from)),
        file_id: Some(format!("{group}-0")),
        partition_path: Some(partition.to_string()),
        metrics: None,
        bootstrap_file_path: None,
    };
    let plan = CompactionPlan {
        operations: Some(vec![operation(2, "p", "a")]),
        extra_metadata: None,
        version: Some(2),
        strategy: None,
        preserve_hoodie_metadata: None,
    };
    fake.instant(5, Action::Compaction, State::Requested, &plan.to_file());
    assert_eq!(clean(&fake.cleaner(VERSIONS)).await, 4);
    assert_eq!(fake.data(), ["p/a@2", "p/a@3", "p/a@4", "q/b@4"]);
}

#[tokio::test]
async fn a_partition_whose_groups_are_all_replaced_goes_with_its_folder() {
    let fake = Fake::new();
    fake.commit(1, &["p/a", "q/b"]);
    fake.replace(2, &["q/b"]);
    for number in [3, 4, 5] {
        fake.commit(number, &["p/a"]);
    }
    let mut among_others = fake.cleaner(COMMITS);
    among_others.alone = false;
    let draft = among_others.draft(&fake.table.timeline().await.expect("a timeline")).await.expect("a look");
    assert_eq!(draft.expect("something is old").plan.partitions_to_be_deleted, Some(vec![]));
    assert_eq!(clean(&fake.cleaner(COMMITS)).await, 2, "p/a@1 too");
    assert!(!fake.exists("q"));
    let q = fake.last_clean().await.partition_metadata["q"].clone();
    assert_eq!((q.is_partition_deleted, q.success_delete_files), (Some(true), vec![base("b", 1)]));
}

#[tokio::test]
async fn a_crash_between_any_two_steps_is_taken_up() {
    for deleted in 0..=2 {
        for state in [State::Requested, State::Inflight] {
            let fake = Fake::new();
            for number in [1, 2, 3] {
                fake.commit(number, &["p/a"]);
            }
            let paths = [1, 2].map(|number| format!("p/{}", base("a", number)));
            fake.pending(4, state, &paths);
            for path in &paths[..deleted] {
                std::fs::remove_file(fake.folder.path().join(path)).expect("removed");
            }
            let reports = fake.cleaner(COMMITS).clean().await.expect("a clean");
            assert_eq!(reports.len(), 1);
            let metadata = fake.last_clean().await;
            let p = &metadata.partition_metadata["p"];
            assert_eq!(
                (p.success_delete_files.len(), p.failed_delete_files.len()),
                (2 - deleted, deleted),
                "{state:?}"
            );
            assert_eq!(metadata.total_files_deleted as usize, 2 - deleted);
            assert_eq!(p.delete_path_patterns.len(), 2);
            assert_eq!(fake.data(), ["p/a@3"]);
            for state in [State::Requested, State::Inflight] {
                let instant = Instant::new(InstantTime::parse(&time(4)).expect("digits"), Action::Clean, state);
                assert_eq!(
                    stored::read(&fake.table, &instant).await.expect("a plan").map(|(plan, _)| plan.policy).as_deref(),
                    Some("KEEP_LATEST_FILE_VERSIONS")
                );
            }
        }
    }
}

#[tokio::test]
async fn a_plan_deletes_nothing_that_is_needed_by_now() {
    let fake = Fake::new();
    for number in [1, 2, 3] {
        fake.commit(number, &["p/a"]);
    }
    // 3 is the newest since the table was restored; 1 has got a savepoint.
    fake.savepoint(1, "p", &[base("a", 1)]);
    fake.pending(4, State::Inflight, &[1, 2, 3].map(|number| format!("p/{}", base("a", number))));
    assert_eq!(clean(&fake.cleaner(COMMITS)).await, 1);
    assert_eq!(fake.data(), ["p/a@1", "p/a@3"]);
    assert_eq!(fake.last_clean().await.partition_metadata["p"].delete_path_patterns, [base("a", 2)]);
}

#[tokio::test]
async fn what_a_savepoint_has_saved_from_a_plan_goes_once_that_is_gone() {
    let fake = Fake::new();
    for number in [1, 2] {
        fake.commit(number, &["p/a", "q/b"]);
    }
    for number in [3, 4, 5] {
        fake.commit(number, &["p/a"]);
    }
    let job = fake.cleaner(COMMITS);
    job.cancel.cancel();
    job.clean().await.expect_err("it is interrupted behind its plan");
    let savepoint = fake.savepoint(1, "q", &[base("b", 1)]);
    let job = Cleaner { cancel: CancellationToken::new(), ..job };
    assert_eq!(clean(&job).await, 2, "p/a@1 and @2");
    assert!(fake.data().contains(&"q/b@1".to_string()));
    let plans = fake.plans();
    assert_eq!(plans.len(), 2, "requested and inflight");
    for plan in plans {
        let of =
            |partition: &str| plan.file_paths_to_be_deleted_per_partition.as_ref().map(|files| files[partition].len());
        assert_eq!((of("p"), of("q")), (Some(2), Some(0)), "whoever goes on with it spares the file, too");
    }
    assert_eq!(fake.last_clean().await.extra_metadata, Some([(memory::SAVEPOINTED.to_string(), time(1))].into()));
    fake.table.storage.delete(&savepoint.path()).await.expect("deleted");
    fake.commit(7, &["p/a"]);
    for cleaner in [job, fake.cleaner(COMMITS)] {
        let planned = cleaner.preview().await.expect("a look").files;
        assert_eq!(planned.get("q"), Some(&vec![base("b", 1)]), "in a partition that nobody has written to since");
    }
}

#[tokio::test]
async fn a_plan_that_is_none_is_forgotten_or_refused() {
    for (state, content, want) in [
        (State::Requested, &b""[..], true),
        (State::Requested, b"Obj", true),
        (State::Inflight, b"", true),
        (State::Inflight, b"Obj", false),
    ] {
        let fake = Fake::new();
        fake.commit(1, &["p/a"]);
        fake.instant(2, Action::Clean, State::Requested, b"");
        fake.instant(2, Action::Clean, state, content);
        let cleaned = fake.cleaner(COMMITS).clean().await;
        let is_pending = fake.table.timeline().await.expect("a timeline").pending(Action::Clean).count() > 0;
        assert_eq!((cleaned.is_ok(), is_pending), (want, !want), "{state:?} {content:?}");
    }
    for foreign in ["p/.hoodie_partition_metadata", ".hoodie/hoodie.properties", "p/notes.txt", "p/"] {
        let fake = Fake::new();
        fake.commit(1, &["p/a"]);
        fake.pending(2, State::Requested, &[foreign.to_string()]);
        let error = fake.cleaner(COMMITS).clean().await.expect_err(foreign);
        assert!(matches!(error, Error::CleanPlan { .. }), "{foreign}: {error}");
    }
}

#[tokio::test]
async fn a_clean_that_is_given_up_is_pending() {
    let fake = Fake::new();
    for number in [1, 2, 3] {
        fake.commit(number, &["p/a"]);
    }
    let cleaner = fake.cleaner(VERSIONS);
    cleaner.cancel.cancel();
    assert!(matches!(cleaner.clean().await, Err(Error::Write(crate::write::Error::Cancelled))));
    assert_eq!(fake.table.timeline().await.expect("a timeline").pending(Action::Clean).count(), 1);
    assert_eq!(clean(&fake.cleaner(VERSIONS)).await, 2);
}

impl Fake {
    /// Somebody is about to take back this commit.
    fn rollback_requested(&self, number: u32, of: &Instant) {
        let plan = RollbackPlan {
            instant_to_rollback: Some(InstantInfo::from(of)),
            rollback_requests: Some(Vec::new()),
            version: Some(1),
        };
        self.instant(number, Action::Rollback, State::Requested, &plan.to_file());
    }

    fn commit_of(&self, number: u32) -> Instant {
        Instant::new(InstantTime::parse(&time(number)).expect("digits"), Action::Commit, State::Completed)
    }
}

#[tokio::test]
async fn what_comes_to_stand_between_a_plan_and_its_first_file_counts() {
    type Meanwhile = fn(&Fake);
    let cases: [(&str, Meanwhile, &[&str]); 4] = [
        ("nothing", |_| (), &["p/a@3"]),
        ("a savepoint", |fake| drop(fake.savepoint(1, "p", &[base("a", 1)])), &["p/a@1", "p/a@3"]),
        (
            "a write that is gone",
            |fake| std::fs::remove_file(fake.folder.path().join(fake.commit_of(3).path())).expect("removed"),
            &["p/a@2", "p/a@3"],
        ),
        ("one that is about to go", |fake| fake.rollback_requested(5, &fake.commit_of(3)), &["p/a@2", "p/a@3"]),
    ];
    for (what, meanwhile, left) in cases {
        let fake = Fake::new();
        for number in [1, 2, 3] {
            fake.commit(number, &["p/a"]);
        }
        let cleaner = fake.cleaner(VERSIONS);
        let job = planned(&cleaner).await.expect("two are old");
        meanwhile(&fake);
        let report = cleaner.execute(job).await.expect(what).expect("done by us");
        assert_eq!(
            (fake.data(), report.files_deleted),
            (left.iter().map(ToString::to_string).collect(), 4 - 1 - left.len() as u64),
            "{what}"
        );

        // A plan that was left, by a timeline that was read before.
        let fake = Fake::new();
        for number in [1, 2, 3] {
            fake.commit(number, &["p/a"]);
        }
        fake.pending(4, State::Inflight, &[1, 2].map(|number| format!("p/{}", base("a", number))));
        let before = fake.table.timeline().await.expect("a timeline");
        meanwhile(&fake);
        fake.cleaner(VERSIONS).finish(&before).await.expect(what);
        assert_eq!(fake.data(), left, "{what}");
    }
}

#[tokio::test]
async fn a_clean_waits_for_a_restore() {
    let fake = Fake::new();
    for number in [1, 2, 3] {
        fake.commit(number, &["p/a"]);
    }
    let cleaner = fake.cleaner(VERSIONS);
    let job = planned(&cleaner).await.expect("two are old");
    let restore = fake.instant(5, Action::Restore, State::Requested, b"");
    let Err(error) = cleaner.execute(job).await else { panic!("a restore is pending") };
    assert!(matches!(error, Error::Table(crate::table::Error::RestorePending { .. })), "{error}");
    assert_eq!(fake.data(), ["p/a@1", "p/a@2", "p/a@3"]);
    fake.table.storage.delete(&restore.path()).await.expect("deleted");
    assert_eq!(clean(&fake.cleaner(VERSIONS)).await, 2, "by the plan that was left");
}

#[tokio::test]
async fn no_plan_counts_on_a_write_that_is_about_to_be_taken_back() {
    let fake = Fake::new();
    for number in [1, 2] {
        fake.commit(number, &["p/a"]);
    }
    fake.rollback_requested(3, &fake.commit_of(2));
    assert!(planned(&fake.cleaner(VERSIONS)).await.is_none());
}
