//! Killed at random moments, over and over, while messages come: nothing is lost, nothing is there twice, and the checkpoint of
//! each commit says which messages its rows are.
//!
//! `HUDI_STREAMER_CHAOS_KILLS` sets how often each job is killed, `HUDI_STREAMER_CHAOS_SEED` repeats the moments of a run.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime};

use rdkafka::ClientConfig;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};

use crate::support::*;

const KILLS: u64 = 25;
/// Longer than any life, and than the way from one death into any stage of the next life's rounds.
const LONGEST_LIFE_MS: u64 = 700;
/// Keys of a partition that an UPSERT writes again and again.
const KEYS: u64 = 500;

pub(super) const SCHEMA: &str = r#"{"type":"record","name":"R","fields":[{"name":"id","type":"string"},{"name":"ts","type":"long"},
 {"name":"v","type":"string"},{"name":"part","type":"string"}]}"#;

/// SplitMix64.
pub(super) struct Dice(pub u64);

impl Dice {
    /// A number below `n`.
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % n
    }
}

/// Waits longer than [`wait_for`]: a job may have a long way to catch up.
#[track_caller]
pub(super) fn wait_long_for(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(300);
    while !condition() {
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// The ids of what was sent to each partition, by offset.
pub(super) type Sent = Vec<Vec<String>>;

/// Writes to a topic until told to stop. A message's `ts` is its offset, its `v` its partition and offset.
pub(super) struct Writer {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Sent>,
}

impl Writer {
    /// With unique ids, or with so many a partition.
    pub fn start(topic: &Topic, partitions: usize, keys: Option<u64>, mut dice: Dice) -> Writer {
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, name) = (stop.clone(), topic.name().to_owned());
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", topic.endpoint()).set("enable.idempotence", "true").set("linger.ms", "2");
        let thread = thread::spawn(move || {
            let producer: BaseProducer = config.create().expect("a producer");
            let mut sent: Sent = vec![Vec::new(); partitions];
            while !stopped.load(Ordering::Relaxed) {
                let partition = dice.below(partitions as u64) as usize;
                for _ in 0..=dice.below(100) {
                    send(&producer, &name, &mut sent, partition, keys, &mut dice);
                }
                producer.poll(Duration::from_millis(dice.below(80)));
            }
            // A job that has died before now has something to commit, and so cleans up.
            (0..partitions).for_each(|p| send(&producer, &name, &mut sent, p, keys, &mut dice));
            producer.flush(Duration::from_secs(60)).expect("the broker takes the messages");
            sent
        });
        Writer { stop, thread }
    }

    /// Everything that was sent.
    pub fn finish(self, topic: &Topic) -> Sent {
        self.stop.store(true, Ordering::Relaxed);
        let sent = self.thread.join().expect("the writer writes");
        let counts: Vec<i64> = sent.iter().map(|p| p.len() as i64).collect();
        assert_eq!(topic.ends(), counts, "offsets are not what the test takes them for");
        sent
    }
}

fn send(producer: &BaseProducer, topic: &str, sent: &mut Sent, partition: usize, keys: Option<u64>, dice: &mut Dice) {
    let offset = sent[partition].len();
    let id = format!("{partition}-{}", keys.map_or(offset as u64, |keys| dice.below(keys)));
    let part = format!("p{}", partition % 2);
    let value = json!({"id": id, "ts": offset, "v": format!("{partition}-{offset}"), "part": part}).to_string();
    let record = BaseRecord::<(), _>::to(topic).partition(partition as i32).payload(&value);
    producer.send(record).unwrap_or_else(|(e, _)| panic!("the writer's queue is full: {e}"));
    sent[partition].push(id);
}

/// Next offsets of a checkpoint, by partition.
fn offsets(checkpoint: &str) -> Vec<i64> {
    let parts = checkpoint.split(',').skip(1).map(|part| part.split_once(':').expect("partition:offset"));
    parts.map(|(_, offset)| offset.parse().expect("an offset")).collect()
}

/// `id ts v commit-time` of each row that must be there, when the messages of each commit are those between its checkpoint and
/// that of the commit before, and `lost` messages (partition, offset) were gone.
fn expected(
    table: &Table,
    topic: &Topic,
    sent: &Sent,
    keyed: bool,
    lost: &HashSet<(usize, usize)>,
) -> BTreeSet<String> {
    let mut rows = HashMap::new();
    let mut from = vec![0; sent.len()];
    for instant in table.writes() {
        let checkpoint = table.checkpoint_of(&instant);
        let next = offsets(&checkpoint);
        assert_eq!(checkpoint, topic.position(&next), "{instant} has another form of checkpoint");
        for (partition, ids) in sent.iter().enumerate() {
            assert!(from[partition] <= next[partition], "the checkpoint of {instant} goes back: {checkpoint}");
            let messages = ids.iter().enumerate().take(next[partition] as usize).skip(from[partition] as usize);
            for (offset, id) in messages.filter(|(offset, _)| !lost.contains(&(partition, *offset))) {
                let row = format!("{id} {offset} {partition}-{offset} {instant}");
                let before = rows.insert(id.clone(), row);
                assert!(keyed || before.is_none(), "the test sent {id} twice");
            }
        }
        from = next;
    }
    assert_eq!(from, topic.ends(), "the last checkpoint is not the end of the topic");
    rows.into_values().collect()
}

/// The table is what was sent, as two readers see it, and nothing else is left in its folder.
pub(super) fn check(table: &Table, topic: &Topic, sent: &Sent, keyed: bool, lost: &HashSet<(usize, usize)>) {
    let want = expected(table, topic, sent, keyed, lost);
    for reader in [SPARK_0_15, HUDI_RS] {
        // A job may end while a compaction waits, and hudi-rs does not see the logs of such a group.
        assert_eq!(table.pending(), table.pending_compactions());
        if matches!(reader, HUDI_RS) && !table.pending_compactions().is_empty() {
            Streamer::bare().after(&["compact"]).flag("--target-base-path", &table.path).run().ok();
        }
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let shown = |row: &Row| ["id", "ts", "v", "_hoodie_commit_time"].map(|c| text(&row[c])).join(" ");
        let rows = oracle(reader).read(table.str());
        let got: BTreeSet<String> = rows.iter().map(shown).collect();
        let few = |rows: Vec<&String>| (rows.len(), rows.into_iter().take(5).cloned().collect::<Vec<_>>());
        let missing = few(want.difference(&got).collect());
        let strange = few(got.difference(&want).collect());
        assert!(missing.0 + strange.0 == 0, "{reader:?}: missing {missing:?}, strange {strange:?}");
        assert_eq!(rows.len(), want.len(), "{reader:?}: rows are there twice");
    }
    assert_eq!(table.pending(), Vec::<String>::new());
    let markers: Vec<String> = table.files().into_iter().filter(|f| f.starts_with(".hoodie/.temp/")).collect();
    assert_eq!(markers, Vec::<String>::new());
    // Of log files those of failed writes stay, and are of no account.
    let written = table.commits().into_iter().flat_map(|i| table.written_by(&i)).filter(|f| f.ends_with(".parquet"));
    assert_eq!(table.base_files(), written.collect::<BTreeSet<_>>(), "base files, and those that commits name");
    oracle(SPARK_0_15).validate(table.str(), false);
}

/// Kills a job that does `op` at random moments and starts it again. The job at its end.
fn survives(op: &str, keys: Option<u64>, with: impl FnOnce(Streamer) -> Streamer) -> KafkaJob {
    const PARTITIONS: usize = 4;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970");
    let seed = from_env("HUDI_STREAMER_CHAOS_SEED").unwrap_or(now.subsec_nanos().into());
    let kills = from_env("HUDI_STREAMER_CHAOS_KILLS").unwrap_or(KILLS);
    println!("{op}: HUDI_STREAMER_CHAOS_SEED={seed} HUDI_STREAMER_CHAOS_KILLS={kills}");
    let mut dice = Dice(seed);

    let topic = Broker::shared().topic("chaos", PARTITIONS);
    // The check asks every write for its files, and finds it on the timeline.
    let all_stays =
        |call: Streamer| call.conf("hoodie.clean.automatic", "false").conf("hoodie.archive.automatic", "false");
    let job = KafkaJob::new(topic, SCHEMA, Model::new(&[]), |call| with(all_stays(call.op(op).switch("--continuous"))));
    let writer = Writer::start(&job.topic, PARTITIONS, keys, Dice(dice.below(u64::MAX)));
    let (mut killed, mut in_a_write, mut ended) = (0, 0, 0);
    let mut life = job.call.start();
    while killed < kills {
        let before = job.table.commits().len();
        // Half of the lives get as far as a commit, however slow the machine.
        if dice.below(2) == 0 {
            wait_long_for("a commit", || job.table.commits().len() > before);
        }
        thread::sleep(Duration::from_millis(dice.below(LONGEST_LIFE_MS)));
        if dice.below(8) == 0 {
            // Before it listens to signals it dies of them like any program.
            wait_long_for("the job to be up", || life.said().contains("merge rule in force"));
            life.signal("TERM");
            life.finish().ok();
            ended += 1;
        } else {
            life.signal("KILL");
            life.finish().killed();
            killed += 1;
            let left = job.table.pending();
            in_a_write += u64::from(left.last().is_some_and(|i| job.table.commits().last().is_none_or(|c| c < i)));
        }
        life = job.call.start();
    }
    let sent = writer.finish(&job.topic);
    let end = job.topic.position(&job.topic.ends());
    wait_long_for("the end of the topic", || !job.table.commits().is_empty() && job.table.checkpoint() == end);
    life.signal("TERM");
    life.finish().ok();
    println!(
        "{op}: killed {killed} times ({in_a_write} in a write), ended {ended} times, {} messages, {} commits, {} rollbacks",
        sent.iter().map(Vec::len).sum::<usize>(),
        job.table.commits().len(),
        job.table.rollbacks()
    );
    check(&job.table, &job.topic, &sent, keys.is_some(), &HashSet::new());
    job
}

#[test]
fn killed_at_any_moment_an_insert_loses_nothing_and_doubles_nothing() {
    needs_peers!();
    survives("INSERT", None, |call| call.flag("--source-limit", "3000"));
}

#[test]
fn killed_at_any_moment_an_upsert_keeps_the_newest_of_each_key() {
    needs_peers!();
    survives("UPSERT", Some(KEYS), |call| call.partitioned("part"));
}

/// Compactions are planned all the time, and die as often as rounds do.
#[test]
fn killed_at_any_moment_logs_and_their_compactions_keep_the_newest_of_each_key() {
    needs_peers!();
    let job = survives("UPSERT", Some(KEYS), |call| {
        let call = call.partitioned("part").flag("--table-type", "MERGE_ON_READ");
        call.conf("hoodie.compact.inline.max.delta.commits", "2")
    });
    assert!(job.table.compactions().len() > 1, "compactions: {:?}", job.table.compactions());
    job.compact("execute").run().ok();
    assert_eq!(job.table.pending(), Vec::<String>::new());
    let ids = |rows: Vec<Row>| rows.into_iter().map(|row| text(&row["id"])).collect::<BTreeSet<_>>();
    let mut spark = oracle(SPARK_0_15);
    let [now, compacted] =
        ["snapshot", "read_optimized"].map(|query| spark.query(job.table.str(), &["--query", query]));
    assert_eq!(ids(now), ids(compacted), "every key has reached a base file");
    spark.validate(job.table.str(), false);
}
