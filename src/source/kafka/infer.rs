//! The schema of a round without a schema provider: its messages are read once more for it.

use super::super::{Error, Result};
use super::lane::{Lane, Read, Taken, locked};
use super::ranges::OffsetRange;
use crate::codec::infer::{Inferred, SchemaInference};
use std::sync::{Arc, Mutex};

/// Reads the ranges in order; bad messages leave no trace here and are told of when the rows are read.
pub(super) async fn infer(lanes: Vec<(OffsetRange, Arc<Mutex<Lane>>)>) -> Result<Inferred> {
    let work = tokio::task::spawn_blocking(move || {
        let mut inference = SchemaInference::new();
        for (range, lane) in lanes {
            let mut lane = locked(&lane);
            lane.begin(range.from)?;
            let mut take = |message: &super::queue::Fetched| {
                if let Some(value) = message.value().filter(|v| !v.is_empty()) {
                    _ = inference.observe(value);
                }
                Ok(Taken::More)
            };
            while lane.read(range.until, &mut take)? != Read::End {}
        }
        Ok(inference.finish()?)
    });
    work.await.map_err(|e| Error::Worker { what: "infer the schema", why: e.to_string() })?
}
