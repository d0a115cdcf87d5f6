//! Behaviour, through the binary and on real files: one module a behaviour, and a test's name is the sentence it proves.
//!
//! One test binary for all of it, because each further one would link DataFusion again. Tests that need Hudi on Spark,
//! hudi-rs or Kafka (the peers, `tests/peers/`) run only under `HUDI_PEERS_TESTS=1`, which `tests/run` sets after it has
//! installed them; without it they say so on stderr and pass.

mod support;

mod archive;
mod back;
mod bad_input;
mod bucket;
mod checkpoint;
mod clean;
mod cli;
mod crash;
mod demo;
mod faults;
mod golden;
mod house;
mod ingest;
mod inspect;
mod kafka;
mod keys;
mod locks;
mod merging;
mod metrics;
mod mor;
mod positions;
mod quarantine;
mod rounds;
mod s3;
mod services;
mod values;
mod warm;
mod writers;
