//! Bad records that a round leaves out, kept elsewhere before the round is committed: in the error table, or in a topic.
//!
//! Invariant: a bad record of a committed round is where it can be found. A crash between the two commits keeps records that
//! the next start keeps again: in the error table under the same keys, so that nothing is there twice; in a topic a second
//! time, as producing is at least once.

mod table;
mod topic;

use super::round::Streamer;
use super::{Error, Result};
use crate::config::{BadRecordPolicy, QuarantineTarget, StreamerConfig};
use crate::source::{Origin, Reason, Rejects};
use crate::storage::fault_point;
use bytes::Bytes;
use futures::future::LocalBoxFuture;

/// A bad record and all that is known of it.
struct Quarantined {
    /// `None` behind a transformer.
    origin: Option<Origin>,
    reason: Reason,
    code: &'static str,
    message: String,
    /// The bytes as they came, or the text of the row where these cannot be had again.
    value: Option<Bytes>,
    key: Option<Bytes>,
    timestamp_ms: Option<i64>,
}

/// Fails at start where every round with a bad record would: at an error table of another kind.
pub(super) async fn check(config: &StreamerConfig) -> Result<()> {
    let target = config.source.bad_records.quarantine.as_ref();
    if let Some(QuarantineTarget::Table { base_path, table_name }) = target {
        let opened = super::open::open(&table::config(config, base_path, table_name)).await;
        opened.map_err(|cause| in_target(target, cause))?;
    }
    Ok(())
}

fn in_target(target: Option<&QuarantineTarget>, cause: Error) -> Error {
    let target = match target {
        Some(QuarantineTarget::Table { base_path, .. }) => format!("error table {base_path}"),
        Some(QuarantineTarget::Topic { name }) => format!("topic {name}"),
        None => "nowhere".to_string(),
    };
    match cause {
        Error::Interrupted => Error::Interrupted,
        cause => Error::Quarantine { target, cause: Box::new(cause) },
    }
}

impl Streamer {
    /// Keeps the round's bad records, if that is the policy; called when nothing but the commit is left to do.
    ///
    /// Boxed, since the error table is written by a streamer of its own.
    pub(super) fn quarantine<'a>(
        &'a self,
        rejects: &'a Rejects,
        checkpoint: &'a str,
    ) -> LocalBoxFuture<'a, Result<()>> {
        Box::pin(async move {
            if rejects.policy() != BadRecordPolicy::Quarantine || rejects.count() == 0 {
                return Ok(());
            }
            let records = self.gather(rejects).await?;
            let target = self.config.source.bad_records.quarantine.as_ref();
            let kept = match target {
                Some(QuarantineTarget::Table { base_path, table_name }) => {
                    let config = table::config(&self.config, base_path, table_name);
                    table::write(config, self.cancel.clone(), &records, &self.config.table.name, checkpoint).await
                }
                Some(QuarantineTarget::Topic { name }) => topic::produce(&self.config, name, records, checkpoint).await,
                None => Err(Error::Worker { what: "quarantine", why: "no place is configured".into() }),
            };
            kept.map_err(|cause| in_target(target, cause))?;
            fault_point("after-quarantine");
            Ok(())
        })
    }

    /// What was kept aside, with the bytes of records that had become rows read again.
    async fn gather(&self, rejects: &Rejects) -> Result<Vec<Quarantined>> {
        let kept = rejects.take_kept();
        let rows = kept.iter().filter(|r| !r.reason.is_undecoded());
        let positions: Vec<u64> = rows.filter_map(|r| r.position).collect();
        let mut raw = self.source.raw(&positions).await?.into_iter();
        let records = kept.into_iter().map(|rejected| {
            let again = match rejected.position {
                Some(_) if !rejected.reason.is_undecoded() => raw.next().flatten(),
                _ => None,
            };
            let (value, key, timestamp_ms) = match again {
                Some(raw) => (raw.value, raw.key, raw.timestamp_ms),
                None => (rejected.value.map(Bytes::from), rejected.key.map(Bytes::from), rejected.timestamp_ms),
            };
            let origin = rejected.position.map(|position| self.source.origin(position));
            let (reason, code, message) = (rejected.reason, rejected.code, rejected.why);
            Quarantined { origin, reason, code, message, value, key, timestamp_ms }
        });
        Ok(records.collect())
    }
}
