//! `hudi-streamer demo`: a continuous Kafka job in one command, without a broker.
//!
//! Nothing in the job is special: a cluster inside the process, live events in it, and the ordinary streamer with an ordinary
//! command line, which is printed and is what runs. May use every room. Look at [`Demo`] first.

mod broker;
mod events;

use crate::config::{DemoOptions, StreamerConfig};
use crate::storage::Storage;
use crate::streamer;
use crate::table::Table;
use broker::{Broker, Produced, TOPIC};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How often the table is asked whether it has caught up.
const LOOK: Duration = Duration::from_millis(100);

/// Why there is no demo.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error(
        "there is something at {path} already, and the demo's topic begins anew each time: give --target-base-path another folder"
    )]
    Taken { path: String },
    #[error("write {path}: {cause}")]
    File { path: String, cause: std::io::Error },
    #[error("the Kafka cluster inside the process: {0}")]
    Broker(#[from] rdkafka::error::KafkaError),
    #[error(transparent)]
    Streamer(#[from] streamer::Error),
    #[error("{what}: {why}")]
    Worker { what: &'static str, why: String },
}

impl Error {
    pub fn code(&self) -> &'static str {
        match self {
            Error::Taken { .. } => "demo-table-exists",
            Error::File { .. } => "demo-file",
            Error::Broker(_) => "demo-broker",
            Error::Streamer(e) => e.code(),
            Error::Worker { .. } => "internal",
        }
    }
}

impl From<crate::table::Error> for Error {
    fn from(e: crate::table::Error) -> Error {
        Error::Streamer(e.into())
    }
}

/// A cluster that runs, and the files of a job that reads it.
pub(crate) struct Demo {
    options: DemoOptions,
    broker: Broker,
    table: PathBuf,
    properties: PathBuf,
}

impl Demo {
    /// Starts the cluster, and writes the job's properties and schema beside the folder of the table.
    pub fn prepare(options: DemoOptions) -> Result<Demo, Error> {
        let table = match &options.table {
            Some(path) => path.clone(),
            None => PathBuf::from(chrono::Utc::now().format("hudi-streamer-demo-%Y%m%d-%H%M%S/bike_trips").to_string()),
        };
        let file_error = |path: &Path, cause| Error::File { path: path.display().to_string(), cause };
        let table = std::path::absolute(&table).map_err(|e| file_error(&table, e))?;
        if std::fs::read_dir(&table).is_ok_and(|mut entries| entries.next().is_some()) || table.is_file() {
            return Err(Error::Taken { path: table.display().to_string() });
        }
        std::fs::create_dir_all(&table).map_err(|e| file_error(&table, e))?;
        let broker = Broker::start()?;
        let (schema, properties) = (table.with_extension("avsc"), table.with_extension("properties"));
        for (path, text) in
            [(&schema, events::SCHEMA.to_string()), (&properties, job_properties(&broker.address(), &schema))]
        {
            std::fs::write(path, text).map_err(|e| file_error(path, e))?;
        }
        Ok(Demo { options, broker, table, properties })
    }

    /// The arguments of the job.
    pub fn arguments(&self) -> Vec<String> {
        let (table, properties) = (self.table.display().to_string(), self.properties.display().to_string());
        let flags: [(&str, &str); 9] = [
            ("--props", &properties),
            ("--table-type", "COPY_ON_WRITE"),
            ("--op", "UPSERT"),
            ("--target-base-path", &table),
            ("--target-table", TOPIC),
            ("--source-class", "JsonKafkaSource"),
            ("--source-ordering-field", "ts"),
            ("--schemaprovider-class", "FilebasedSchemaProvider"),
            // Late events must lose to newer rows that are in the table already.
            ("--payload-class", "DefaultHoodieRecordPayload"),
        ];
        let flags = flags.into_iter().flat_map(|(flag, value)| [flag.to_string(), value.to_string()]);
        flags.chain(["--min-sync-interval-seconds", "1", "--continuous"].map(str::to_string)).collect()
    }

    /// What is about to happen.
    pub fn introduction(&self) -> String {
        let until = match self.options.time {
            Some(time) => format!("for {} s", time.as_secs()),
            None => "until Ctrl-C".to_string(),
        };
        let mut text = format!(
            "{} events a second {until} into the topic {TOPIC} at {}, a Kafka cluster inside this process.\n\
             The same as\n\n  hudi-streamer",
            self.options.rate,
            self.broker.address()
        );
        for argument in self.arguments() {
            let parted = if argument.starts_with("--") { " \\\n    " } else { " " };
            text.push_str(parted);
            text.push_str(&quoted(&argument));
        }
        text.push('\n');
        text
    }

    /// Runs the job beside the producer; after the given time the producer stops, and the job once the table has it all.
    pub async fn run(&self, config: StreamerConfig) -> Result<String, Error> {
        let stop = streamer::listen()?;
        let produced = async {
            let produced = self.produce(&stop).await;
            if produced.is_ok() {
                self.caught_up(produced.as_ref().ok(), &stop).await;
            }
            stop.cancel();
            produced
        };
        let job = async {
            let done = streamer::run_until(config, stop.clone()).await;
            stop.cancel();
            done
        };
        let (done, produced) = futures::future::join(job, produced).await;
        done?;
        self.summary(&produced?).await
    }

    async fn produce(&self, stop: &CancellationToken) -> Result<Produced, Error> {
        let enough = stop.child_token();
        let (address, rate, until) = (self.broker.address(), self.options.rate, enough.clone());
        let producing = tokio::task::spawn_blocking(move || broker::produce(&address, rate, &until));
        if let Some(time) = self.options.time {
            tokio::select! {
                () = tokio::time::sleep(time) => enough.cancel(),
                () = stop.cancelled() => {}
            }
        }
        Ok(producing.await.map_err(|e| Error::Worker { what: "produce", why: e.to_string() })??)
    }

    /// Waits until the table's position covers what was produced, or somebody stops the job.
    async fn caught_up(&self, produced: Option<&Produced>, stop: &CancellationToken) {
        while !stop.is_cancelled() {
            // A failed look is the job's to report: it looks too.
            let state = self.look().await.ok().flatten();
            let covered = |s: &State| produced.is_none_or(|p| p.is_covered_by(&s.checkpoint));
            if state.as_ref().is_some_and(covered) {
                return;
            }
            tokio::select! {
                () = tokio::time::sleep(LOOK) => {}
                () = stop.cancelled() => {}
            }
        }
    }

    /// What the table's timeline says; `None`: no table yet.
    async fn look(&self) -> Result<Option<State>, Error> {
        let storage = Storage::open(&self.table.display().to_string()).map_err(streamer::Error::from)?;
        let Some(table) = Table::open(storage).await? else { return Ok(None) };
        let timeline = table.timeline().await?;
        let mut state = State::default();
        for instant in timeline.completed_writes() {
            let metadata = table.commit_metadata(instant).await?;
            state.commits += 1;
            state.rows += metadata.stats().map(|s| s.num_inserts as i64 - s.num_deletes as i64).sum::<i64>();
            state.updates += metadata.stats().map(|s| s.num_update_writes).sum::<u64>();
        }
        state.checkpoint = streamer::position(&table, &timeline).await?.unwrap_or_default();
        Ok(Some(state))
    }

    async fn summary(&self, produced: &Produced) -> Result<String, Error> {
        let state = self.look().await?.unwrap_or_default();
        let table = self.table.display();
        let mut text = String::new();
        let mut line = |label: &str, value: String| {
            let _ = writeln!(text, "{label:<12}{value}");
        };
        let Produced { events, trips, twice, late, .. } = produced;
        line("produced", format!("{events} events of {trips} trips; {twice} told twice, {late} late"));
        line("table", format!("{} rows, {} updates, {} commits", state.rows, state.updates, state.commits));
        line("checkpoint", state.checkpoint.clone());
        line("folder", table.to_string());
        line("in Spark", format!("spark.read.format(\"hudi\").load(\"{table}\").show()"));
        let python = format!("import hudi; print(hudi.HudiTableBuilder.from_base_uri(\"{table}\").build().read())");
        line("in Python", format!("{python}  # pip install hudi pyarrow"));
        Ok(text)
    }
}

/// What became of the events.
#[derive(Debug, Default)]
struct State {
    commits: u64,
    rows: i64,
    updates: u64,
    checkpoint: String,
}

fn job_properties(brokers: &str, schema: &Path) -> String {
    format!(
        "# The job of `hudi-streamer demo`. The brokers are gone when the demo ends: put yours in their place.\n\
         bootstrap.servers={brokers}\n\
         hoodie.streamer.source.kafka.topic={TOPIC}\n\
         auto.offset.reset=earliest\n\
         hoodie.streamer.schemaprovider.source.schema.file={}\n\
         hoodie.datasource.write.recordkey.field=trip_id\n\
         hoodie.datasource.write.partitionpath.field=city\n\
         # /metrics, /healthz and /readyz on a free port, which the log tells.\n\
         hoodie.metrics.on=true\n\
         hoodie.metrics.reporter.type=PROMETHEUS\n\
         hoodie.metrics.prometheus.host=127.0.0.1\n\
         hoodie.metrics.prometheus.port=0\n",
        schema.display()
    )
}

/// As a shell takes it.
fn quoted(argument: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./,:=@".contains(c);
    if argument.chars().all(plain) { argument.to_string() } else { format!("'{}'", argument.replace('\'', "'\\''")) }
}
