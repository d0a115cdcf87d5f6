//! The queue of one partition, by librdkafka's own functions: the only unsafe code of the house.
//!
//! rust-rdkafka's `PartitionQueue` gives one message a call, and of the end of a partition it keeps back the offset at which
//! the end was met. Only that offset tells a range that ends in markers or holes from a replica that lags behind the one that
//! was asked where the range ends; without it messages would be taken for absent. Invariants, which make this sound: a message
//! never leaves the queue but by reference; messages are given back before the queue is, and the queue before the client.

use super::client::Client;
use rdkafka::bindings as rd;
use rdkafka::consumer::Consumer;
use rdkafka::types::RDKafkaErrorCode;
use std::collections::VecDeque;
use std::ffi::{CString, c_int, c_void};
use std::ptr::{NonNull, null_mut};
use std::time::Duration;

/// Messages taken from librdkafka at once.
const TAKEN: usize = 1024;

/// What librdkafka has fetched of a partition, and fetches on.
pub(super) struct Queue {
    /// Taken out and not yet read. First, so that they are given back first.
    taken: VecDeque<Fetched>,
    queue: NonNull<rd::rd_kafka_queue_t>,
    client: Client,
}

// SAFETY: librdkafka's queues and messages belong to no thread.
unsafe impl Send for Queue {}

/// The next thing in a queue.
pub(super) enum Next<'a> {
    Message(&'a Fetched),
    /// The fetcher has met the end of the partition, on whichever replica, and all before this offset has been in the queue.
    End(i64),
    Error(RDKafkaErrorCode),
    /// Nothing has come.
    Nothing,
}

impl Queue {
    /// Takes a partition's queue out of the client's common one. `None` for a partition that librdkafka does not have.
    pub fn split(client: &Client, partition: i32) -> Option<Queue> {
        let topic = CString::new(client.topic()).ok()?;
        let consumer = client.consumer().client().native_ptr();
        // SAFETY: the client is alive, which `client` in the result sees to from now on, and the topic ends in a zero.
        let queue = unsafe { rd::rd_kafka_queue_get_partition(consumer, topic.as_ptr(), partition) };
        let queue = NonNull::new(queue)?;
        // SAFETY: a queue that we hold.
        unsafe { rd::rd_kafka_queue_forward(queue.as_ptr(), null_mut()) };
        Some(Queue { taken: VecDeque::new(), queue, client: client.clone() })
    }

    /// The next thing, waited for at most so long. A message stays the next one until [`Queue::pass`].
    pub fn next(&mut self, wait: Duration) -> Next<'_> {
        if self.taken.is_empty() {
            self.fill(wait);
        }
        match self.taken.front().map(Fetched::error) {
            None => Next::Nothing,
            Some(None) => match self.taken.front() {
                Some(message) => Next::Message(message),
                None => Next::Nothing,
            },
            Some(Some(code)) => {
                let offset = self.taken.pop_front().map(|event| event.offset()).unwrap_or_default();
                match code {
                    RDKafkaErrorCode::PartitionEOF => Next::End(offset),
                    code => Next::Error(code),
                }
            }
        }
    }

    /// Goes on behind the message that [`Queue::next`] gave.
    pub fn pass(&mut self) {
        self.taken.pop_front();
    }

    /// How many messages that come next are at hand, and their bytes; waits for the first of them.
    pub fn sample(&mut self, wait: Duration) -> (usize, usize) {
        if self.taken.is_empty() {
            self.fill(wait);
        }
        let sizes =
            self.taken.iter().filter(|next| next.error().is_none()).map(|next| next.value().map_or(0, <[u8]>::len));
        sizes.fold((0, 0), |(messages, bytes), size| (messages + 1, bytes + size))
    }

    /// Forgets what was taken: after a seek it is of another place.
    pub fn forget(&mut self) {
        self.taken.clear();
    }

    fn fill(&mut self, wait: Duration) {
        if self.take(TAKEN, Duration::ZERO) == 0 && self.take(1, wait) == 1 {
            self.take(TAKEN - 1, Duration::ZERO);
        }
    }

    /// librdkafka waits until there are `most`, or the time is over.
    fn take(&mut self, most: usize, wait: Duration) -> usize {
        let mut found = [null_mut(); TAKEN];
        let wait = c_int::try_from(wait.as_millis()).unwrap_or(c_int::MAX);
        // SAFETY: a queue that we hold, and room for as many as are asked for.
        let count =
            unsafe { rd::rd_kafka_consume_batch_queue(self.queue.as_ptr(), wait, found.as_mut_ptr(), most.min(TAKEN)) };
        let count = usize::try_from(count).unwrap_or(0);
        self.taken.extend(found.into_iter().take(count).filter_map(NonNull::new).map(Fetched));
        count
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.taken.clear();
        // SAFETY: our reference, given back once, while `client` still lives.
        unsafe { rd::rd_kafka_queue_destroy(self.queue.as_ptr()) };
        let _ = &self.client;
    }
}

/// A message, or what else was in the queue.
pub(super) struct Fetched(NonNull<rd::rd_kafka_message_t>);

impl Fetched {
    fn raw(&self) -> &rd::rd_kafka_message_t {
        // SAFETY: librdkafka's message, ours until it is destroyed, which `Drop` alone does.
        unsafe { self.0.as_ref() }
    }

    fn error(&self) -> Option<RDKafkaErrorCode> {
        match RDKafkaErrorCode::from(self.raw().err) {
            RDKafkaErrorCode::NoError => None,
            code => Some(code),
        }
    }

    pub fn offset(&self) -> i64 {
        self.raw().offset
    }

    /// `None` for a tombstone.
    pub fn value(&self) -> Option<&[u8]> {
        self.bytes(self.raw().payload, self.raw().len)
    }

    pub fn key(&self) -> Option<&[u8]> {
        self.bytes(self.raw().key, self.raw().key_len)
    }

    fn bytes(&self, start: *const c_void, length: usize) -> Option<&[u8]> {
        // SAFETY: a pointer and a length of one message, which lives as long as `self` and which nobody changes.
        (!start.is_null()).then(|| unsafe { std::slice::from_raw_parts(start.cast(), length) })
    }

    /// Epoch milliseconds.
    pub fn timestamp(&self) -> Option<i64> {
        // SAFETY: a message that lives; the kind of its time is not asked for.
        let ms = unsafe { rd::rd_kafka_message_timestamp(self.0.as_ptr(), null_mut()) };
        (ms >= 0).then_some(ms)
    }
}

impl Drop for Fetched {
    fn drop(&mut self) {
        // SAFETY: ours, and given back once; the client lives, see the invariants above.
        unsafe { rd::rd_kafka_message_destroy(self.0.as_ptr()) };
    }
}
