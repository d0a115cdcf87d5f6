//! A real Kafka broker and a real schema registry, and jobs that read from them.

mod job;
mod peers;
mod topic;

pub use job::KafkaJob;
pub use peers::{Broker, Registry};
pub use topic::{End, Message, Topic};
