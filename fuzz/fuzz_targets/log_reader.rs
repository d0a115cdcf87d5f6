//! Any bytes as a log file: no panic, no read outside the file, no memory out of proportion to it, and what is read says
//! the same whichever way it is read. Run with
//!
//! ```text
//! cargo +nightly fuzz run -s none log_reader fuzz/corpus/log_reader fuzz/seeds/log_reader -- -max_len=8192 -max_total_time=600
//! ```
//!
//! The room's files that see no storage are compiled here by themselves: the whole program, its engine included, would
//! take an hour to build with the fuzzer's instruments. No sanitizer, for speed: these files have no unsafe code.

#![no_main]
#![allow(dead_code, unused_imports)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use libfuzzer_sys::fuzz_target;

#[path = "../../src/table"]
mod table {
    mod instant;
    pub use instant::InstantTime;
    /// As in the room.
    const META_FOLDER: &str = ".hoodie";

    pub mod log_file {
        mod block;
        mod data;
        mod delete;
        mod error;
        mod scan;

        pub use block::{Block, BlockHeader, BlockKind, HeaderKey, encode_block};
        pub use data::{AvroContent, AvroPiece, AvroRecords, avro_records};
        pub use delete::{DeleteRecord, DeleteRecords, OrderingValue, decode_deletes, encode_deletes};
        pub use error::BlockError;

        #[path = "tests/read_all.rs"]
        pub mod read_all;
    }
}

/// Memory that is in use, and the most of it since the last reset.
struct Counting;

static IN_USE: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: all is the system allocator's; the counters allocate nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        MOST.fetch_max(IN_USE.fetch_add(layout.size(), Relaxed) + layout.size(), Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        IN_USE.fetch_sub(layout.size(), Relaxed);
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The densest there is: deletes of 4 bytes become records of 80, in a vector that doubles by moving; and the harness has
/// two of these.
const BYTES_PER_BYTE: usize = 128;
const BYTES_AT_LEAST: usize = 64 * 1024;

fn bounded(size: usize, run: impl FnOnce()) {
    let before = IN_USE.load(Relaxed);
    MOST.store(before, Relaxed);
    run();
    let most = MOST.load(Relaxed) - before;
    assert!(most <= BYTES_AT_LEAST + BYTES_PER_BYTE * size, "{most} bytes of memory for {size} bytes");
}

fuzz_target!(|data: &[u8]| {
    use table::log_file::read_all::{content, file, repair};
    bounded(data.len(), || file(data));
    bounded(data.len(), || content(data));
    // Mutations seldom hit the lengths that make a block whole: help them.
    for deep in [false, true] {
        let repaired = repair(data, deep);
        bounded(repaired.len(), || file(&repaired));
    }
});
