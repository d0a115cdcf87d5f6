//! Arguments → run → exit code.

use std::process::ExitCode;

/// Decoding and encoding allocate from many threads; jemalloc keeps them apart and gives memory back.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    hudi_streamer::run(std::env::args_os().skip(1))
}
