//! Properties files, layering, the registry of every key; a typed [`StreamerConfig`] comes out.
//!
//! Seen by all rooms, sees none. Two levels: strings as the user gave them, with where they came from; then the checked
//! values of `model.rs`. Nothing below `cli` and `config` looks up a string key. Look at `keys.rs` for what there is, and at
//! [`load`] for how it is read. Invariant: a key that Hudi knows and we do not do is an error or a warning that names it.

mod archive;
mod choices;
mod clean;
mod compaction;
mod concurrency;
mod error;
mod inspect;
mod keys;
mod layer;
mod load;
mod model;
mod positions;
mod properties;
mod raw;
mod round;
mod secrets;
mod service;
mod storage;

pub use archive::ArchiveConfig;
pub use clean::*;
pub use compaction::*;
pub use concurrency::*;
pub use error::{Error, Problem, Result};
pub use inspect::{FilesCommand, InspectConfig, TableCommand, UniqueKeys, VerifyCommand};
pub use load::{load, load_compaction, load_inspect, load_positions, load_service};
pub use model::*;
pub use positions::{PositionsCommand, PositionsConfig, SetHow, StartFrom};
pub use raw::{DemoOptions, RawArgs};
pub use round::*;
pub use secrets::{mask_urls, mask_value};
pub use service::*;
pub use storage::*;

/// Every key with its default, as a Markdown table: `hudi-streamer --help-keys`.
pub fn reference() -> String {
    let mut text = String::from("| key | default | meaning |\n| --- | --- | --- |\n");
    for key in keys::ALL {
        let default = if key.default.is_empty() { "–".to_string() } else { format!("`{}`", key.default) };
        text.push_str(&format!("| `{}` | {default} | {} |\n", key.name, key.doc));
    }
    text.push_str("\nAccepted with this value only:\n\n| key | value | why |\n| --- | --- | --- |\n");
    for (name, value, why) in keys::FIXED {
        text.push_str(&format!("| `{name}` | `{value}` | {why} |\n"));
    }
    text
}
