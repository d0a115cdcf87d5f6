//! A Kafka cluster inside the process (librdkafka's mock), and a producer that writes into it.

use super::events::Trips;
use rdkafka::ClientConfig;
use rdkafka::error::{KafkaError, KafkaResult, RDKafkaErrorCode};
use rdkafka::message::{DeliveryResult, Message};
use rdkafka::mocking::MockCluster;
use rdkafka::producer::{BaseRecord, DefaultProducerContext, Producer, ProducerContext, ThreadedProducer};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

pub(super) const TOPIC: &str = "bike_trips";
pub(super) const PARTITIONS: i32 = 3;
/// How often the producer looks what is due.
const TICK: Duration = Duration::from_millis(10);
/// How long the last messages may take into a broker that lives in the same process.
const FLUSH: Duration = Duration::from_secs(10);

/// A cluster of one broker with the topic of the demo.
pub(super) struct Broker {
    /// Never dropped: it has to outlive the last thread of the job's client, which would complain, and the process ends with
    /// the demo anyway.
    cluster: &'static MockCluster<'static, DefaultProducerContext>,
}

impl Broker {
    pub fn start() -> KafkaResult<Broker> {
        let cluster = Box::leak(Box::new(MockCluster::new(1)?));
        cluster.create_topic(TOPIC, PARTITIONS, 1)?;
        Ok(Broker { cluster })
    }

    pub fn address(&self) -> String {
        self.cluster.bootstrap_servers()
    }
}

/// What was produced so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Produced {
    /// Offset after the last message, by partition.
    pub ends: Vec<i64>,
    pub events: u64,
    pub trips: u64,
    pub twice: u64,
    pub late: u64,
}

impl Produced {
    /// Whether a checkpoint (`topic,0:12,1:9,…`) is at or after the end of every partition.
    pub fn is_covered_by(&self, checkpoint: &str) -> bool {
        let mut parts = checkpoint.split(',');
        if parts.next() != Some(TOPIC) {
            return false;
        }
        let position = |part: &str| part.split_once(':').and_then(|(p, o)| Some((p.parse().ok()?, o.parse().ok()?)));
        let positions: Vec<(usize, i64)> = parts.filter_map(position).collect();
        let reached = |p: usize| positions.iter().find(|(q, _)| *q == p).map_or(0, |(_, offset)| *offset);
        self.ends.iter().enumerate().all(|(partition, end)| reached(partition) >= *end)
    }
}

/// Counts what the broker has taken.
struct Deliveries {
    ends: Arc<[AtomicI64]>,
    failed: Arc<AtomicU64>,
}

impl rdkafka::ClientContext for Deliveries {}

impl ProducerContext for Deliveries {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, _: ()) {
        match result {
            Ok(message) => {
                if let Some(end) = usize::try_from(message.partition()).ok().and_then(|p| self.ends.get(p)) {
                    end.fetch_max(message.offset() + 1, Ordering::Relaxed);
                }
            }
            Err(_) => {
                self.failed.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

/// Writes `rate` events a second until `stop`, and one at the least; to be called on a thread of its own.
pub(super) fn produce(brokers: &str, rate: u64, stop: &CancellationToken) -> KafkaResult<Produced> {
    let ends: Arc<[AtomicI64]> = (0..PARTITIONS).map(|_| AtomicI64::new(0)).collect();
    let failed = Arc::new(AtomicU64::new(0));
    let context = Deliveries { ends: ends.clone(), failed: failed.clone() };
    let producer: ThreadedProducer<Deliveries> =
        ClientConfig::new().set("bootstrap.servers", brokers).set("linger.ms", "5").create_with_context(context)?;
    let mut trips = Trips::new(2026);
    let (started, mut sent) = (Instant::now(), 0);
    let mut waiting = None;
    loop {
        let due = started.elapsed().as_millis() as u64 * rate / 1000 + 1;
        while sent < due {
            let event = waiting.take().unwrap_or_else(|| trips.next(chrono::Utc::now().timestamp_millis()));
            match producer.send(BaseRecord::to(TOPIC).key(&event.key).payload(&event.json)) {
                Ok(()) => sent += 1,
                Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), _)) => {
                    waiting = Some(event);
                    break;
                }
                Err((e, _)) => return Err(e),
            }
        }
        if stop.is_cancelled() && sent > 0 {
            break;
        }
        std::thread::sleep(TICK);
    }
    producer.flush(FLUSH)?;
    if failed.load(Ordering::Relaxed) > 0 {
        return Err(KafkaError::MessageProduction(RDKafkaErrorCode::MessageTimedOut));
    }
    let ends = ends.iter().map(|end| end.load(Ordering::Relaxed)).collect();
    Ok(Produced { ends, events: sent, trips: trips.begun, twice: trips.twice, late: trips.late })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkpoint_covers_what_it_is_not_before() {
        let produced = Produced { ends: vec![5, 0, 7], ..Produced::default() };
        for (checkpoint, want) in [
            ("bike_trips,0:5,1:0,2:7", true),
            ("bike_trips,2:9,0:5", true),
            ("bike_trips,0:5,1:0,2:6", false),
            ("bike_trips,0:5", false),
            ("other,0:5,1:0,2:7", false),
            ("", false),
        ] {
            assert_eq!(produced.is_covered_by(checkpoint), want, "{checkpoint:?}");
        }
    }

    #[test]
    fn the_producer_says_where_each_partition_ends() {
        let broker = Broker::start().unwrap();
        let stop = CancellationToken::new();
        stop.cancel();
        for round in 1..=2 {
            let produced = produce(&broker.address(), 1_000, &stop).unwrap();
            assert_eq!((produced.events, produced.trips), (1, 1), "stopped before it began");
            assert_eq!(
                produced.ends.iter().max(),
                Some(&round),
                "the same key goes to the same partition: {produced:?}"
            );
        }
    }
}
