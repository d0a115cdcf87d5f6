//! Writes trips that are in memory already, without a source: what `tests/bench/hudi-core` does with the other library.
//!
//! ```text
//! in-memory append cow|mor ROWS TABLE [KEY=VALUE ...]    ROWS new trips, into a new table
//! in-memory upsert cow|mor ROWS TABLE [KEY=VALUE ...]    into that table a tenth as many, half of them updates
//! ```
//!
//! A process a step: what an allocator keeps of the memory of one would hide what the next one takes.

mod measured;

use std::path::Path;
use std::sync::Arc;

use arrow::array::RecordBatch;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use hudi_streamer::cli::{self, Command};
use hudi_streamer::config::{self, Operation, StreamerConfig};
use hudi_streamer::index::{self, TagOptions};
use hudi_streamer::record::{self, KeyGenerator, MergeRule, RecordOptions};
use hudi_streamer::schema::TableSchema;
use hudi_streamer::storage::Storage;
use hudi_streamer::table::{
    COPY_ON_WRITE, CommitMetadata, FileSystemView, InstantTime, MERGE_ON_READ, Markers, NewTable, Table,
    TableProperties,
};
use hudi_streamer::write::{self, WriteContext, WriteStatus};
use measured::measured;

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [step, kind, rows, table, settings @ ..] = &words[..] else {
        return Err("in-memory append|upsert cow|mor ROWS TABLE [KEY=VALUE ...]".into());
    };
    let table_type = match kind.as_str() {
        "cow" => COPY_ON_WRITE,
        "mor" => MERGE_ON_READ,
        other => return Err(format!("{other} is no type of table").into()),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(run(step, table_type, rows.parse()?, Path::new(table), settings))
}

async fn run(step: &str, table_type: &str, rows: u64, folder: &Path, settings: &[String]) -> Result<(), Failure> {
    let job = Job::new(table_type, folder, settings).await?;
    match step {
        "append" => measured(step, job.append(trips::batches(trips::fresh(0..rows)))).await,
        "upsert" => measured(step, job.upsert(trips::batches(trips::changed(rows / 10, rows, 1)))).await,
        other => Err(format!("{other} is no step").into()),
    }
}

struct Job {
    table: Table,
    config: StreamerConfig,
    schema: TableSchema,
}

impl Job {
    async fn new(table_type: &str, folder: &Path, settings: &[String]) -> Result<Job, Failure> {
        let folder = folder.to_string_lossy().into_owned();
        let flags = [
            ("--table-type", table_type),
            ("--target-base-path", &folder),
            ("--target-table", "trips"),
            ("--op", "UPSERT"),
            ("--source-class", "JsonDFSSource"),
            ("--source-ordering-field", "ts"),
            ("--hoodie-conf", "hoodie.streamer.source.dfs.root=/nowhere"),
            ("--hoodie-conf", "hoodie.datasource.write.recordkey.field=trip_id"),
            ("--hoodie-conf", "hoodie.datasource.write.partitionpath.field=dt"),
            ("--hoodie-conf", "hoodie.index.type=SIMPLE"),
            ("--hoodie-conf", "hoodie.streamer.fsync=false"),
        ];
        let flags = flags.into_iter().chain(settings.iter().map(|setting| ("--hoodie-conf", setting.as_str())));
        let Command::Run(raw) = cli::parse(flags.flat_map(|(flag, value)| [flag.into(), value.into()]))? else {
            return Err("the flags ask for no job".into());
        };
        let config = config::load(&raw, &|_| None)?;
        let properties = TableProperties::for_new_table(&NewTable {
            name: "trips".into(),
            table_type: table_type.into(),
            record_key_fields: config.keys.record_key_fields.clone(),
            partition_fields: config.keys.partition_fields.clone(),
            precombine: Some("ts".into()),
            keygen_class: "org.apache.hudi.keygen.SimpleKeyGenerator".into(),
            payload_class: config.payload.java_class().into(),
            ..NewTable::default()
        });
        let storage = Storage::open_with(&folder, &config.storage)?;
        let table = match Table::open(storage.clone()).await? {
            Some(table) => table,
            None => Table::create(storage, properties).await?,
        };
        Ok(Job { table, config, schema: TableSchema::from_avro(trips::AVRO)? })
    }

    fn keys(&self) -> Result<KeyGenerator, Failure> {
        let options = RecordOptions { ordering_field: Some("ts".into()), ..RecordOptions::default() };
        Ok(KeyGenerator::new(&self.config.keys, options, &self.schema.arrow)?)
    }

    async fn begin(&self, operation: Operation) -> Result<(Arc<WriteContext>, FileSystemView), Failure> {
        let (table, write) = (self.table.clone(), &self.config.write);
        let timeline = table.timeline().await?;
        let instant: InstantTime = table.new_instant(&timeline);
        table.request(&instant, table.write_action()).await?;
        let view = FileSystemView::load(&table, &timeline, None).await?;
        let average_record_size = table
            .average_record_size(
                &timeline,
                write.small_file_limit,
                write.record_size_estimation_threshold,
                write.record_size_estimate,
            )
            .await?;
        let context = WriteContext {
            timeline: Arc::new(timeline),
            instant,
            attempt: 0,
            config: write.clone(),
            index: self.config.index.clone(),
            operation,
            rule: MergeRule(self.config.payload),
            ordering_field: Some("ts".into()),
            schema: self.schema.clone(),
            average_record_size,
            cancel: Default::default(),
            rows_written: Arc::default(),
            key_cache: None,
            table,
        };
        Ok((Arc::new(context), view))
    }

    async fn append(&self, batches: Vec<RecordBatch>) -> Result<(), Failure> {
        let (context, _) = self.begin(Operation::BulkInsert).await?;
        let table = &context.table;
        table.mark_inflight(&context.instant, table.write_action(), CommitMetadata::default().to_json()).await?;
        let workers = context.config.workers.max(1);
        let piece = batches.len().div_ceil(workers).max(1);
        let pieces = batches.chunks(piece).map(|batches| {
            let rows = futures::stream::iter(batches.to_vec().into_iter().map(Ok));
            Box::pin(RecordBatchStreamAdapter::new(self.schema.arrow.clone(), rows)) as _
        });
        let statuses = write::bulk_insert(context.clone(), pieces.collect(), self.keys()?).await?;
        self.complete(&context, statuses).await
    }

    async fn upsert(&self, batches: Vec<RecordBatch>) -> Result<(), Failure> {
        let (context, view) = self.begin(Operation::Upsert).await?;
        let table = &context.table;
        let keys = self.keys()?;
        let mut keyed = batches.iter().map(|batch| keys.key(batch)).collect::<Result<Vec<_>, _>>()?;
        let rows = record::precombine(&mut keyed, false)?.winners;
        let options = TagOptions {
            index: self.config.index.clone(),
            stored_ordering: None,
            merging: None,
            workers: context.config.workers,
            cache: None,
        };
        let tagged = index::tag(table, &view, options, keyed, rows).await?;
        let plan = write::assign(&context, tagged, &view)?;
        table.mark_inflight(&context.instant, table.write_action(), plan.workload_profile().to_json()).await?;
        let statuses = plan.execute(context.clone()).await?;
        self.complete(&context, statuses).await
    }

    async fn complete(&self, context: &WriteContext, statuses: Vec<WriteStatus>) -> Result<(), Failure> {
        let table = &context.table;
        write::finalize(context, &statuses).await?;
        let mut metadata = CommitMetadata::default();
        for WriteStatus { stat } in statuses {
            metadata.partition_to_write_stats.entry(stat.partition_path.clone()).or_default().push(stat);
        }
        metadata.extra_metadata.insert("schema".into(), self.schema.avro.clone());
        table.complete(&context.instant, table.write_action(), metadata.to_json()).await?;
        Ok(Markers::new(&table.storage, &context.instant).remove_all().await?)
    }
}
