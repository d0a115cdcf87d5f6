//! A job that reads a topic, and the model beside it.

use std::ops::{Deref, DerefMut};

use super::super::{Job, Model, Row, Scratch, Streamer, Table};
use super::Topic;

/// As [`Job`], fed from a topic: `upsert` and its like send to partition 0.
pub struct KafkaJob {
    job: Job,
    pub topic: Topic,
}

impl KafkaJob {
    /// The base call with `schema`, from the topic's beginning on, changed by `with`.
    pub fn new(topic: Topic, schema: &str, model: Model, with: impl FnOnce(Streamer) -> Streamer) -> KafkaJob {
        let scratch = Scratch::new();
        scratch.file("schema.avsc", schema);
        let call = with(Streamer::kafka(&scratch, &topic));
        let table = Table::at(scratch.path("table"));
        KafkaJob { job: Job::on(scratch, call, table, model), topic }
    }

    #[track_caller]
    pub fn upsert(&mut self, rows: &[Row]) -> String {
        self.topic.send(0, rows);
        let instant = self.job.round("UPSERT");
        self.job.model.upsert(&instant, rows);
        instant
    }

    #[track_caller]
    pub fn bulk_insert(&mut self, rows: &[Row]) -> String {
        self.topic.send(0, rows);
        let instant = self.job.round("BULK_INSERT");
        self.job.model.insert(&instant, rows);
        instant
    }

    /// The table's checkpoint is this topic with these next offsets.
    #[track_caller]
    pub fn stands_at(&self, next: &[i64]) {
        assert_eq!(self.job.table.checkpoint(), self.topic.position(next));
    }
}

impl Deref for KafkaJob {
    type Target = Job;

    fn deref(&self) -> &Job {
        &self.job
    }
}

impl DerefMut for KafkaJob {
    fn deref_mut(&mut self) -> &mut Job {
        &mut self.job
    }
}
