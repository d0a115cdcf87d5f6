//! Arguments → run → exit code.

use std::process::ExitCode;

/// Decoding and encoding allocate from many threads; jemalloc keeps them apart and gives memory back.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// What jemalloc reads before `main`; `_RJEM_MALLOC_CONF` goes before it. An arena is purged by what is allocated from it: those
/// of threads that rest would keep what they have freed, so that a thread of jemalloc's own sees to it, and after a second and
/// not ten (measured: the peak of a backlog of upserts 320 MB, without it 520; CPU 4 % more). What is larger than 8 MiB would be
/// given back at once, and taken anew for the next row group (measured: a bulk insert takes 2 % longer so).
#[cfg(target_os = "linux")]
#[unsafe(export_name = "_rjem_malloc_conf")]
static MALLOC_CONF: &[u8; 64] = b"background_thread:true,dirty_decay_ms:1000,oversize_threshold:0\0";

fn main() -> ExitCode {
    hudi_streamer::run(std::env::args_os().skip(1))
}
