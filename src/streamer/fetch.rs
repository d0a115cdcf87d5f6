//! What a round takes from the source, and in which schema.

use super::round::Streamer;
use super::{Error, Result};
use crate::config::mask_urls;
use crate::record;
use crate::schema::TableSchema;
use crate::source::{self, Fetch, FetchRequest};

impl Streamer {
    /// What the source decodes with: the provider's schema, else the one inferred and frozen before, else the table's
    /// own where rows are written as they are read; `None`: to be inferred.
    pub(super) fn reader_schema(
        &self,
        frozen: Option<&TableSchema>,
        table: Option<&TableSchema>,
    ) -> Result<Option<TableSchema>> {
        let provided = self.provided.as_ref().map(|p| &p.source);
        let own = table.filter(|_| self.config.transformers.is_empty());
        let Some(reader) = provided.or(frozen).or(own) else { return Ok(None) };
        match &self.config.source.kafka {
            Some(kafka) if kafka.append_offsets => Ok(Some(source::kafka::with_offset_columns(reader)?)),
            _ => Ok(Some(reader.clone())),
        }
    }

    /// What this round takes. A one-shot job whose input does not fit takes it in several rounds, up to where it ends now;
    /// but for queries that look at more than a row at a time, which are over all of it.
    pub(super) async fn fetch(&mut self, from: Option<String>, reader: Option<&TableSchema>) -> Result<Fetch> {
        let mut request = FetchRequest {
            from,
            until: self.until.clone(),
            limit: self.config.source.limit,
            bytes: self.pace.begin(),
            schema: reader.cloned(),
            positions: self.config.transformers.is_empty(),
        };
        let mut fetch = self.fetch_as_asked(&request).await?;
        if let (Some(batches), Some(rest), false) = (&fetch.batches, &fetch.rest, self.config.run.continuous) {
            let transformed = self.transform(batches).await?;
            // What one part deletes an older row of a later one would bring back.
            if transformed.is_row_wise() && !record::has_delete_flag(&transformed.schema) {
                if self.until.is_none() {
                    tracing::info!(
                        bytes = request.bytes,
                        "the input is taken in several commits, each of about so many bytes"
                    );
                }
                self.until.get_or_insert(rest.clone());
            } else {
                request.bytes = None;
                fetch = self.fetch_as_asked(&request).await?;
            }
        }
        fetch.stats.warnings.iter().for_each(|w| tracing::warn!("{w}"));
        self.cut = fetch.rest.is_some();
        Ok(fetch)
    }

    async fn fetch_as_asked(&self, request: &FetchRequest) -> Result<Fetch> {
        let run = &self.config.run;
        let tries = if run.retry_on_source_failures { run.max_retry_count.max(1) } else { 1 };
        let mut tried = 1;
        loop {
            let fetched = tokio::select! {
                fetched = self.source.fetch(request.clone()) => fetched,
                () = self.stop.cancelled() => return Err(Error::Interrupted),
            };
            match fetched {
                Ok(fetch) => return Ok(fetch),
                Err(e) => {
                    let e = Error::from(e);
                    if tried == tries || !e.is_retryable() {
                        return Err(e);
                    }
                    tracing::warn!(error = %e, tried, "fetch failed; trying again");
                    self.metrics.retrying(e.code(), &mask_urls(&e.to_string()), run.retry_interval);
                    tried += 1;
                    tokio::select! {
                        () = tokio::time::sleep(run.retry_interval) => {}
                        () = self.stop.cancelled() => return Err(Error::Interrupted),
                    }
                }
            }
        }
    }
}
