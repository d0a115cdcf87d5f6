//! Puts that must not mistake their own success for another's.
//!
//! The answer to a conditional put may get lost after the store has acted on it. The repetition is then refused, because of
//! the very object that the first request made. So each such put marks its object, and looks whose mark is there.

use std::time::Duration;

use bytes::Bytes;
use object_store::path::Path;
use object_store::{
    Attribute, Attributes, Error, GetOptions, ObjectStore, PutMode, PutOptions, PutResult, UpdateVersion,
};

use super::super::error::Cause;
use super::cause::failed;

/// Name of the mark among an object's metadata: letters alone, which every store takes.
const MARK: &str = "hudistreamer";
/// Puts without an answer, or refused for an object that is gone, before it is given up. Each is itself repeated by
/// `object_store`, where it could not have been acted on.
const TRIES: u32 = 4;
const PAUSE: Duration = Duration::from_millis(if cfg!(test) { 1 } else { 200 });

/// A mark of its own for one put.
pub(super) fn mark() -> Attributes {
    Attributes::from_iter([(Attribute::Metadata(MARK.into()), uuid::Uuid::new_v4().to_string())])
}

/// Creates or replaces as `mode` says. [`Cause::AlreadyExists`] and [`Cause::Conflict`] mean another's object.
pub(super) async fn put(
    store: &dyn ObjectStore,
    path: &Path,
    bytes: Bytes,
    mode: PutMode,
) -> Result<UpdateVersion, Cause> {
    let attributes = mark();
    let mut tries = 1;
    loop {
        let options = PutOptions { mode: mode.clone(), attributes: attributes.clone(), ..PutOptions::default() };
        let error = match store.put_opts(path, bytes.clone().into(), options).await {
            Ok(PutResult { e_tag, version }) => return Ok(UpdateVersion { e_tag, version }),
            Err(error) => error,
        };
        let is_refused = matches!(error, Error::AlreadyExists { .. } | Error::Precondition { .. });
        let cause = failed(error);
        if !is_refused && !matches!(cause, Cause::Other { retryable: true, .. }) {
            return Err(cause);
        }
        // If this fails too, the first failure says more.
        let Ok(found) = look(store, path, &attributes).await else { return Err(cause) };
        match (found, &mode) {
            (Some((true, version)), _) => return Ok(version),
            (Some(_), PutMode::Create) => return Err(Cause::AlreadyExists),
            (Some((_, now)), PutMode::Update(wanted)) if !is_same(&now, wanted) => return Err(Cause::Conflict),
            (None, PutMode::Update(_)) => return Err(Cause::Conflict),
            // Nothing was done: unanswered, or refused for what is gone by now.
            _ if tries < TRIES => {}
            (_, PutMode::Update(_)) if is_refused => return Err(Cause::Conflict),
            _ => return Err(cause),
        }
        tokio::time::sleep(PAUSE * tries).await;
        tries += 1;
    }
}

/// Whether what is at `path` has that mark, and which content it is.
pub(super) async fn look(
    store: &dyn ObjectStore,
    path: &Path,
    mark: &Attributes,
) -> Result<Option<(bool, UpdateVersion)>, Cause> {
    let head = GetOptions { head: true, ..GetOptions::default() };
    let found = match store.get_opts(path, head).await {
        Err(Error::NotFound { .. }) => return Ok(None),
        found => found.map_err(failed)?,
    };
    let is_ours = mark.iter().all(|(name, value)| found.attributes.get(name) == Some(value));
    Ok(Some((is_ours, UpdateVersion { e_tag: found.meta.e_tag, version: found.meta.version })))
}

fn is_same(now: &UpdateVersion, wanted: &UpdateVersion) -> bool {
    // Stores that have versions tell contents apart by them, the others by tags.
    match (&now.version, &wanted.version) {
        (Some(now), Some(wanted)) => now == wanted,
        _ => now.e_tag == wanted.e_tag,
    }
}
