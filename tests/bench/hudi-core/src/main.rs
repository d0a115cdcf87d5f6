//! The field's Rust library on trips that are in memory already: what `benches/src/in_memory.rs` does with ours.
//!
//! ```text
//! bench-hudi-core cow|mor ROWS TABLE     appends ROWS new trips to a new table, then upserts a tenth as many, half of them updates
//! ```
//!
//! With the features of ours switched on, and no others: gzip, bloom filters, the simple index, no metadata table.

#[path = "../../../../benches/src/measured.rs"]
mod measured;
// Ours needs more of it.
#[allow(dead_code)]
#[path = "../../../../benches/src/trips.rs"]
mod trips;

use hudi_core::config::table::TableTypeValue;
use hudi_core::table::Table;
use measured::measured;

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

type Failure = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [kind, rows, folder] = &words[..] else { return Err("bench-hudi-core cow|mor ROWS TABLE".into()) };
    let table_type = match kind.as_str() {
        "cow" => TableTypeValue::CopyOnWrite,
        "mor" => TableTypeValue::MergeOnRead,
        other => return Err(format!("{other} is no type of table").into()),
    };
    let rows: u64 = rows.parse()?;
    let base = trips::batches(trips::fresh(0..rows));
    let changes = trips::batches(trips::changed(rows / 10, rows, 1));
    std::fs::create_dir_all(folder)?;
    let mut table = Table::create(folder.as_str())
        .with_table_name("trips")
        .with_table_type(table_type)
        .with_record_key_fields(["trip_id"])
        .with_partition_fields(["dt"])
        .with_ordering_fields(["ts"])
        .with_hive_style_partitioning(false)
        .with_metadata_table_enabled(false)
        .with_option("hoodie.parquet.compression.codec", "gzip")
        .with_option("hoodie.parquet.bloom.filter.enabled", "true")
        .create()
        .await?;
    measured("append", table.append(base)).await?;
    measured("upsert", table.upsert(changes)).await?;
    Ok(())
}
