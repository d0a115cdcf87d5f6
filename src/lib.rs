//! hudi-streamer: Apache Hudi's Streamer as one native program.
//!
//! Everything the program does is a *round* ("sync once" in Hudi), repeated in continuous mode. Data flows one way;
//! each stage takes the type that the stage before it returns:
//!
//! ```text
//! checkpoint ─▶ source ─▶ transform ─▶ key + precombine ─▶ tag ─▶ write ─▶ commit ─▶ services
//!               Fetch     Batches      KeyedBatch          Tagged  WriteStatus Commit   (rollback, …)
//! ```
//!
//! The rooms, from the top of the house to its ground; a room may use what stands below it, and `tests/it/house.rs`
//! fails on an arrow that points up:
//!
//! | room | what it does |
//! | --- | --- |
//! | [`cli`] | flags, spelled as Hudi's Streamer spells them |
//! | `front` | arguments in, exit code out |
//! | `demo` | a continuous Kafka job that brings its own cluster and events |
//! | [`streamer`] | the daemon: one round, the loop around it, checkpoints, shutdown |
//! | [`source`] | files and topics as Arrow, and the next checkpoint; knows no table |
//! | [`transform`] | SQL over `<SRC>`, chained; knows no keys |
//! | [`inspect`] | a table for a person who looks at it; writes nothing |
//! | [`service`] | what keeps a table whole: rollback, compaction, cleaning, archival, restores, locks; sees tables, never sources |
//! | [`sync`] | catalogs that learn of a commit (later Hive) |
//! | [`mod@write`] | rows to file groups: small files, create and merge handles, write statuses |
//! | [`index`] | which file group holds a key |
//! | [`slice`](mod@slice) | a base file and its log files as merged rows |
//! | [`record`] | record key, partition path, ordering value; one row a key; merge rules |
//! | [`schema`] | schema providers and registries, Avro ⇄ Arrow, inference, evolution |
//! | [`codec`] | JSON and Avro to Arrow, Arrow to Avro: plans made once from a schema; no I/O |
//! | [`table`] | the Hudi table on storage: properties, timeline, file groups, base files, markers |
//! | [`storage`] | object stores and what we add: atomic create, listing, fault points |
//! | [`config`] | properties files, layering, the registry of every key; seen by all, sees nobody |
//! | [`observe`] | log, progress, metrics, health; seen by all, sees nobody |

pub mod cli;
pub mod codec;
pub mod config;
mod demo;
pub mod error;
mod front;
pub mod index;
pub mod inspect;
pub mod observe;
pub mod record;
pub mod schema;
pub mod service;
pub mod slice;
pub mod source;
pub mod storage;
pub mod streamer;
pub mod sync;
pub mod table;
pub mod transform;
pub mod write;

pub use error::{Error, Result};
pub use front::run;
