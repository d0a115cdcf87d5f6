//! Where a job goes on: the checkpoint keys in commit metadata, in both spellings, and Hudi's rule for choosing
//! (streamer-options.md §7).

mod carry;
mod renamed;

pub(super) use carry::carry;
pub(super) use renamed::take_over;

use super::{Error, Result};
use crate::config::{CheckpointConfig, KafkaConfig, OffsetReset};
use crate::table::{CommitMetadata, InstantTime, State, Table, Timeline};
use std::collections::{BTreeMap, BTreeSet};

/// Next start position, as 0.x writes it (`StreamerCheckpointV1`).
pub(super) const KEY_V1: &str = "deltastreamer.checkpoint.key";
const RESET_KEY_V1: &str = "deltastreamer.checkpoint.reset_key";
const IGNORE_KEY: &str = "deltastreamer.checkpoint.ignore_key";
/// The same, as 1.x writes it (`StreamerCheckpointV2`); we write both with one text, so that either can go on.
const KEY_V2: &str = "streamer.checkpoint.key.v2";
const RESET_KEY_V2: &str = "streamer.checkpoint.reset.key.v2";
/// Ours: the source schema that was inferred over the first batch (Avro), so that later batches are read alike.
const INFERRED_SCHEMA_KEY: &str = "hoodie.streamer.inferred.source.schema";
/// Ours, among several writers: the instant of the commit that has put the position where it is; another one only carries it on.
/// Begins as the keys do that Spark writers carry on with `hoodie.write.meta.key.prefixes`.
pub(super) const ORIGIN_KEY: &str = "deltastreamer.checkpoint.instant";
/// Ours, among several writers and of jobs with an id: what the position is one of.
const SOURCE_KEY: &str = "deltastreamer.checkpoint.source";
/// Ours: the first commit of a backlog that is taken in several and goes on behind this one.
const BACKLOG_KEY: &str = "deltastreamer.checkpoint.backlog";
/// Ours: marks a commit that an operator made to set the position, and holds the position before.
pub(super) const SET_KEY: &str = "hoodie.streamer.checkpoint.set.in.place.of";

/// What the newest commit that knows of a checkpoint says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stored {
    /// Of the commit that says so.
    pub instant: InstantTime,
    /// Of the commit that has put it there, which is that one unless it only carries it on.
    pub origin: InstantTime,
    /// The folder or topic, where the job was one of several writers.
    pub source: Option<String>,
    /// It has left the active timeline.
    pub is_archived: bool,
    pub key: Option<String>,
    pub reset_key: Option<String>,
    pub ignore_key: Option<String>,
    pub inferred_schema: Option<String>,
    /// The first commit of the backlog that it is within.
    pub backlog: Option<InstantTime>,
}

/// What a commit that is resumed from has one of.
const POSITIONS: [&str; 4] = [KEY_V2, KEY_V1, RESET_KEY_V2, RESET_KEY_V1];

impl Stored {
    /// `None` if the commit carries neither a key nor a reset key.
    fn from_metadata(instant: InstantTime, metadata: &CommitMetadata, id: Option<&str>) -> Option<Stored> {
        let extra = |name: &str| metadata.extra(&named(name, id)).map(str::to_string);
        let either = |v2: &str, v1: &str| extra(v2).or_else(|| extra(v1));
        let key = either(KEY_V2, KEY_V1);
        let reset_key = either(RESET_KEY_V2, RESET_KEY_V1);
        if key.is_none() && reset_key.is_none() {
            return None;
        }
        Some(Stored {
            origin: extra(ORIGIN_KEY).as_deref().and_then(InstantTime::parse).unwrap_or_else(|| instant.clone()),
            source: extra(SOURCE_KEY),
            instant,
            is_archived: false,
            key,
            reset_key,
            ignore_key: extra(IGNORE_KEY),
            inferred_schema: extra(INFERRED_SCHEMA_KEY),
            backlog: extra(BACKLOG_KEY).as_deref().and_then(InstantTime::parse),
        })
    }
}

/// The position that the newest commit with one carries, for those who only look.
pub async fn position(table: &Table, timeline: &Timeline) -> Result<Option<String>> {
    Ok(latest(table, timeline, None).await?.and_then(|stored| stored.key))
}

/// The same of every job that has left one on the timeline, by its id: several may share the table.
pub(super) async fn positions(table: &Table, timeline: &Timeline) -> Result<BTreeMap<String, String>> {
    let mut ids = BTreeSet::new();
    for instant in timeline.completed_writes() {
        ids.extend(ids_of(&table.commit_summary(instant).await?.metadata).map(str::to_string));
    }
    let mut positions = BTreeMap::new();
    for id in ids {
        let stored = latest(table, timeline, Some(&id)).await?;
        positions.extend(stored.and_then(|stored| stored.key).map(|key| (id, key)));
    }
    Ok(positions)
}

/// The position that a commit has put there itself; it may carry those of other jobs on.
pub(super) fn put_by(metadata: &CommitMetadata, instant: &InstantTime) -> Option<String> {
    let ids = [None].into_iter().chain(ids_of(metadata).map(Some));
    let mut stored = ids.filter_map(|id| Stored::from_metadata(instant.clone(), metadata, id));
    stored.find(|stored| stored.origin == *instant)?.key
}

fn ids_of(metadata: &CommitMetadata) -> impl Iterator<Item = &str> {
    let keys = metadata.extra_metadata.keys();
    keys.filter_map(|key| key.strip_prefix(KEY_V2).or_else(|| key.strip_prefix(KEY_V1))?.strip_prefix('.'))
}

/// Walks the completed writes of the active timeline, newest first, to the first that knows of a checkpoint. Commits of
/// other writers, compactions and clusterings carry none and are passed over. One that only carries it on may not know of a
/// commit that was completed later than itself: the walk goes on to the one that it has it from. Where none
/// knows of one, another archiver than ours may have taken it off the timeline: then the archived timeline knows. (Hudi's Streamer
/// starts as with a new table.) `id`: of the job.
pub(super) async fn latest(table: &Table, timeline: &Timeline, id: Option<&str>) -> Result<Option<Stored>> {
    let mut latest: Option<Stored> = None;
    for instant in timeline.completed_writes().rev() {
        debug_assert_eq!(instant.state, State::Completed);
        if latest.as_ref().is_some_and(|latest| instant.time <= latest.origin) {
            break;
        }
        let summary = table.commit_summary(instant).await?;
        let stored = Stored::from_metadata(instant.time.clone(), &summary.metadata, id);
        if let Some(stored) = stored.filter(|new| latest.as_ref().is_none_or(|latest| new.origin > latest.origin)) {
            latest = Some(stored);
        }
    }
    if latest.is_some() {
        return Ok(latest);
    }
    let keys = POSITIONS.map(|key| named(key, id));
    let Some(archived) = table.archived_with(timeline, &keys).await? else { return Ok(None) };
    let extra_metadata = archived.commit.map(|commit| commit.extra_metadata).unwrap_or_default();
    let metadata = CommitMetadata { extra_metadata, ..CommitMetadata::default() };
    let stored = Stored::from_metadata(archived.instant.time, &metadata, id);
    Ok(stored.map(|stored| Stored { is_archived: true, ..stored }))
}

/// The position to start after (`StreamerCheckpointUtils`, 1.0.2): `--ignore-checkpoint` and `--checkpoint` count once per
/// distinct value, then the stored key does.
pub(super) fn resume(stored: Option<&Stored>, config: &CheckpointConfig) -> Result<Option<String>> {
    let Some(stored) = stored else { return Ok(config.checkpoint.clone()) };
    if config.ignore_checkpoint.is_some() && config.ignore_checkpoint != stored.ignore_key {
        return Ok(config.checkpoint.clone());
    }
    if config.checkpoint.is_some() && config.checkpoint != stored.reset_key {
        return Ok(config.checkpoint.clone());
    }
    if let Some(other) = stored.source.as_ref().filter(|source| config.id.is_none() && **source != config.source) {
        let (instant, source) = (stored.origin.to_string(), config.source.clone());
        return Err(Error::OtherSource { instant, other: other.clone(), source_name: source });
    }
    match &stored.key {
        Some(key) => Ok(Some(key.clone())),
        None => Err(Error::NoStoredCheckpoint { instant: stored.instant.to_string() }),
    }
}

/// The first commit of the backlog that a job goes on with at `resume`; the one that began with it was stopped within.
pub(super) fn backlog(stored: Option<&Stored>, resume: Option<&str>) -> Option<InstantTime> {
    stored.filter(|stored| stored.key.as_deref() == resume)?.backlog.clone()
}

/// The position of a commit in the spelling of 0.x and in that of 1.x.
pub(super) fn spellings(metadata: &CommitMetadata) -> (Option<String>, Option<String>) {
    let extra = |key: &str| metadata.extra(key).map(str::to_string);
    (extra(KEY_V1), extra(KEY_V2))
}

/// Says where a job that begins goes on from, and who says so. `commits`: completed ones of the table.
pub(super) fn tell(resume: Option<&str>, stored: Option<&Stored>, commits: usize, topic: Option<&KafkaConfig>) {
    let beginning = match topic.map(|topic| topic.reset) {
        None => "all files are new",
        Some(OffsetReset::Earliest) => "auto.offset.reset=earliest",
        Some(OffsetReset::Latest) => "auto.offset.reset=latest",
        Some(OffsetReset::Group) => "auto.offset.reset=group",
    };
    match (resume, stored) {
        (Some(checkpoint), Some(stored)) if stored.key.as_deref() == resume && stored.is_archived => tracing::warn!(
            checkpoint,
            instant = %stored.instant,
            "no commit on the timeline carries a checkpoint: another writer has archived it; resuming after the newest archived \
             commit that does"
        ),
        (Some(checkpoint), Some(stored)) if stored.key.as_deref() == resume => {
            tracing::info!(checkpoint, instant = %stored.instant, "resuming after the newest commit with a checkpoint");
        }
        (Some(checkpoint), _) => tracing::info!(checkpoint, "starting from the given checkpoint"),
        (None, None) if commits > 0 => tracing::warn!(
            "none of the table's {commits} commits carries a checkpoint: starting as with a new table ({beginning})"
        ),
        (None, _) => tracing::info!("starting without a checkpoint ({beginning})"),
    }
}

/// Whether the flags that count once per distinct value have counted: a commit carries their copies. Where commits are to
/// carry nothing they never count, and no commit is owed to them.
pub(super) fn has_counted(stored: Option<&Stored>, config: &CheckpointConfig) -> bool {
    let kept = |flag: &Option<String>, copy: fn(&Stored) -> &Option<String>| {
        flag.is_none() || stored.is_some_and(|s| copy(s) == flag)
    };
    config.force_skip
        || kept(&config.checkpoint, |s| &s.reset_key) && kept(&config.ignore_checkpoint, |s| &s.ignore_key)
}

/// Puts the checkpoint into a commit's extra metadata, in both spellings. `origin`: its instant, among several writers.
/// `backlog`: the first commit of the backlog that goes on behind it.
pub(super) fn store(
    metadata: &mut CommitMetadata,
    config: &CheckpointConfig,
    checkpoint: Option<&str>,
    inferred_schema: Option<&str>,
    origin: Option<&InstantTime>,
    backlog: Option<&InstantTime>,
) {
    let mut put = |key: &str, value: Option<&str>| {
        if let Some(value) = value {
            metadata.extra_metadata.insert(named(key, config.id.as_deref()), value.to_string());
        }
    };
    put(INFERRED_SCHEMA_KEY, inferred_schema);
    if config.force_skip {
        return;
    }
    put(KEY_V1, checkpoint);
    put(KEY_V2, checkpoint);
    put(RESET_KEY_V1, config.checkpoint.as_deref());
    put(RESET_KEY_V2, config.checkpoint.as_deref());
    put(IGNORE_KEY, config.ignore_checkpoint.as_deref());
    put(ORIGIN_KEY, origin.map(InstantTime::as_str));
    put(BACKLOG_KEY, backlog.map(InstantTime::as_str));
    put(SOURCE_KEY, Some(config.source.as_str()).filter(|_| origin.is_some() || config.id.is_some()));
}

/// The key of a job with this id.
fn named(key: &str, id: Option<&str>) -> String {
    id.map_or_else(|| key.to_string(), |id| format!("{key}.{id}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(key: Option<&str>, reset: Option<&str>, ignore: Option<&str>) -> Stored {
        Stored {
            instant: InstantTime::parse("20240101000000000").expect("17 digits"),
            origin: InstantTime::parse("20240101000000000").expect("17 digits"),
            source: None,
            is_archived: false,
            key: key.map(str::to_string),
            reset_key: reset.map(str::to_string),
            ignore_key: ignore.map(str::to_string),
            inferred_schema: None,
            backlog: None,
        }
    }

    fn flags(checkpoint: Option<&str>, ignore: Option<&str>) -> CheckpointConfig {
        CheckpointConfig {
            checkpoint: checkpoint.map(str::to_string),
            ignore_checkpoint: ignore.map(str::to_string),
            ..Default::default()
        }
    }

    #[test]
    fn the_resume_rule_is_hudis() {
        let cases = [
            ("no commit, no flag", None, flags(None, None), None),
            ("no commit, flag", None, flags(Some("5"), None), Some("5")),
            ("stored key", Some(stored(Some("7"), None, None)), flags(None, None), Some("7")),
            ("a new flag wins", Some(stored(Some("7"), None, None)), flags(Some("5"), None), Some("5")),
            (
                "a used flag does not replay",
                Some(stored(Some("7"), Some("5"), None)),
                flags(Some("5"), None),
                Some("7"),
            ),
            ("another flag does", Some(stored(Some("7"), Some("5"), None)), flags(Some("6"), None), Some("6")),
            ("ignore forgets", Some(stored(Some("7"), None, None)), flags(None, Some("a")), None),
            ("ignore counts once", Some(stored(Some("7"), None, Some("a"))), flags(None, Some("a")), Some("7")),
            ("ignore, then the flag", Some(stored(Some("7"), Some("5"), None)), flags(Some("5"), Some("a")), Some("5")),
        ];
        for (name, stored, config, want) in cases {
            let got = resume(stored.as_ref(), &config).expect(name);
            assert_eq!(got.as_deref(), want, "{name}");
        }
        assert!(resume(Some(&stored(None, Some("5"), None)), &flags(Some("5"), None)).is_err());
    }

    #[test]
    fn the_position_of_another_source_is_not_taken_for_ones_own() {
        let of = |source: Option<&str>| Stored { source: source.map(str::to_string), ..stored(Some("7"), None, None) };
        let reads = |source: &str, id: Option<&str>, checkpoint: Option<&str>| CheckpointConfig {
            source: source.to_string(),
            id: id.map(str::to_string),
            ..flags(checkpoint, None)
        };
        for (name, stored, config, want) in [
            ("its own", of(Some("/in/a")), reads("/in/a", None, None), Some("7")),
            ("nobody knows whose", of(None), reads("/in/a", None, None), Some("7")),
            ("another's", of(Some("/in/b")), reads("/in/a", None, None), None),
            ("moved, and named", of(Some("/in/b")), reads("/in/a", Some("a"), None), Some("7")),
            ("moved, and said so", of(Some("/in/b")), reads("/in/a", None, Some("5")), Some("5")),
        ] {
            let got = resume(Some(&stored), &config);
            match want {
                Some(want) => assert_eq!(got.expect(name).as_deref(), Some(want), "{name}"),
                None => assert_eq!(got.expect_err(name).code(), "checkpoint-other-source", "{name}"),
            }
        }
    }

    #[test]
    fn a_flag_has_counted_when_a_commit_carries_it() {
        let skip = CheckpointConfig { force_skip: true, ..flags(Some("5"), None) };
        let cases = [
            ("no flag", None, flags(None, None), true),
            ("no commit", None, flags(Some("5"), None), false),
            ("not yet", Some(stored(Some("7"), None, None)), flags(Some("5"), None), false),
            ("another one", Some(stored(Some("7"), Some("4"), None)), flags(Some("5"), None), false),
            ("it has", Some(stored(Some("7"), Some("5"), None)), flags(Some("5"), None), true),
            ("one of two", Some(stored(Some("7"), Some("5"), None)), flags(Some("5"), Some("a")), false),
            ("both", Some(stored(Some("7"), Some("5"), Some("a"))), flags(Some("5"), Some("a")), true),
            ("no commit is to carry it", None, skip, true),
        ];
        for (name, stored, config, want) in cases {
            assert_eq!(has_counted(stored.as_ref(), &config), want, "{name}");
        }
    }

    #[test]
    fn v2_goes_before_v1_and_an_empty_text_counts_as_absent() {
        let time = || InstantTime::parse("20240101000000000").expect("17 digits");
        let mut metadata = CommitMetadata::default();
        assert_eq!(Stored::from_metadata(time(), &metadata, None), None);
        metadata.extra_metadata.insert(KEY_V1.into(), "".into());
        assert_eq!(Stored::from_metadata(time(), &metadata, None), None);
        metadata.extra_metadata.insert(KEY_V1.into(), "1".into());
        assert_eq!(Stored::from_metadata(time(), &metadata, None).and_then(|s| s.key).as_deref(), Some("1"));
        metadata.extra_metadata.insert(KEY_V2.into(), "2".into());
        assert_eq!(Stored::from_metadata(time(), &metadata, None).and_then(|s| s.key).as_deref(), Some("2"));
    }

    #[test]
    fn what_is_stored_is_found_again() {
        let mut metadata = CommitMetadata::default();
        let time = InstantTime::parse("20240101000000000").expect("17 digits");
        store(&mut metadata, &flags(Some("5"), Some("i")), Some("9"), Some("{}"), None, Some(&time));
        let found = Stored::from_metadata(time, &metadata, None).expect("a key");
        assert_eq!(found.key.as_deref(), Some("9"));
        assert_eq!(found.reset_key.as_deref(), Some("5"));
        assert_eq!(found.ignore_key.as_deref(), Some("i"));
        assert_eq!(found.inferred_schema.as_deref(), Some("{}"));
        assert_eq!(backlog(Some(&found), Some("9")), found.backlog);
        assert_eq!(found.backlog.map(|first| first.to_string()).as_deref(), Some("20240101000000000"));
        assert_eq!(metadata.extra(KEY_V1), metadata.extra(KEY_V2));
    }
}
