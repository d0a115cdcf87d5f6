//! The field's Rust library on trips that are in memory already: what `benches/src/in_memory.rs` does with ours.
//!
//! ```text
//! bench-hudi-core append cow|mor ROWS TABLE    ROWS new trips, into a new table
//! bench-hudi-core upsert cow|mor ROWS TABLE    into that table a tenth as many, half of them updates
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

/// How base files are written.
const WRITES: [(&str, &str); 2] =
    [("hoodie.parquet.compression.codec", "gzip"), ("hoodie.parquet.bloom.filter.enabled", "true")];

type Failure = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [step, kind, rows, folder] = &words[..] else {
        return Err("bench-hudi-core append|upsert cow|mor ROWS TABLE".into());
    };
    let table_type = match kind.as_str() {
        "cow" => TableTypeValue::CopyOnWrite,
        "mor" => TableTypeValue::MergeOnRead,
        other => return Err(format!("{other} is no type of table").into()),
    };
    let rows: u64 = rows.parse()?;
    match step.as_str() {
        "append" => {
            std::fs::create_dir_all(folder)?;
            let mut table = created(folder, table_type).await?;
            let rows = trips::batches(trips::fresh(0..rows));
            measured(step, table.append(rows)).await?;
        }
        "upsert" => {
            let mut table = Table::new_with_options(folder, WRITES).await?;
            let rows = trips::batches(trips::changed(rows / 10, rows, 1));
            measured(step, table.upsert(rows)).await?;
        }
        other => return Err(format!("{other} is no step").into()),
    }
    Ok(())
}

async fn created(folder: &str, table_type: TableTypeValue) -> Result<Table, Failure> {
    let table = Table::create(folder)
        .with_table_name("trips")
        .with_table_type(table_type)
        .with_record_key_fields(["trip_id"])
        .with_partition_fields(["dt"])
        .with_ordering_fields(["ts"])
        .with_hive_style_partitioning(false)
        .with_metadata_table_enabled(false);
    Ok(WRITES.into_iter().fold(table, |table, (key, value)| table.with_option(key, value)).create().await?)
}
