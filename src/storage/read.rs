//! Reading a stream on a blocking thread.

use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;

use bytes::{Buf, Bytes};
use futures::StreamExt;
use futures::stream::BoxStream;
use object_store::path::Path;
use object_store::{GetOptions, GetResultPayload, ObjectStore};
use tokio::runtime::Handle;

/// Local files are read as files; other stores chunk by chunk as the bytes come.
pub(super) fn open(
    store: &dyn ObjectStore,
    path: &Path,
    range: Option<Range<u64>>,
) -> object_store::Result<Box<dyn Read + Send>> {
    if range.as_ref().is_some_and(|r| r.is_empty()) {
        return Ok(Box::new(io::empty()));
    }
    let generic = |source: Box<dyn std::error::Error + Send + Sync>| object_store::Error::Generic {
        store: "blocking reader",
        source,
    };
    let runtime = Handle::try_current().map_err(|e| generic(Box::new(e)))?;
    let options = GetOptions { range: range.map(Into::into), ..GetOptions::default() };
    let result = runtime.block_on(store.get_opts(path, options))?;
    match result.payload {
        GetResultPayload::File(mut file, _) => {
            file.seek(SeekFrom::Start(result.range.start)).map_err(|e| generic(Box::new(e)))?;
            Ok(Box::new(file.take(result.range.end - result.range.start)))
        }
        GetResultPayload::Stream(chunks) => Ok(Box::new(Chunks { runtime, chunks, current: Bytes::new() })),
    }
}

struct Chunks {
    runtime: Handle,
    chunks: BoxStream<'static, object_store::Result<Bytes>>,
    current: Bytes,
}

impl Read for Chunks {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        while !self.current.has_remaining() {
            match self.runtime.block_on(self.chunks.next()) {
                Some(chunk) => self.current = chunk.map_err(io::Error::other)?,
                None => return Ok(0),
            }
        }
        let n = buf.len().min(self.current.len());
        self.current.copy_to_slice(&mut buf[..n]);
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object_store::ObjectStoreExt;
    use object_store::memory::InMemory;

    #[test]
    fn a_stream_reads_as_its_bytes() {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let _entered = runtime.enter();
        let (store, path) = (InMemory::new(), Path::from("x"));
        runtime.block_on(store.put(&path, "0123456789".into())).unwrap();
        for (range, want) in [(None, "0123456789"), (Some(2..5), "234"), (Some(8..99), "89"), (Some(4..4), "")] {
            let mut text = String::new();
            open(&store, &path, range.clone()).unwrap().read_to_string(&mut text).unwrap();
            assert_eq!(text, want, "{range:?}");
        }
    }
}
