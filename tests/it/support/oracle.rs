//! Apache Hudi itself, by way of `tests/peers/oracle`: reading oracle, second writer, and judge of a table's files.
//!
//! One `oracle serve` process a reader for the whole test binary, started on first use and spoken to over its stdin, a
//! JSON object a line each way. The pipe closes when this process ends, however it ends, and the JVM with it.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, MutexGuard, Once, OnceLock};

use serde_json::{Value, json};

use super::Row;

/// Something that reads Hudi tables.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reader(&'static str);

pub const SPARK_0_15: Reader = Reader("0.15.0");
pub const SPARK_1_0: Reader = Reader("1.0.2");
pub const HUDI_RS: Reader = Reader("rs");
pub const READERS: [Reader; 3] = [SPARK_0_15, SPARK_1_0, HUDI_RS];

/// What Hudi 1.0 is told, lest it refuse a table of version 6, or upgrade it.
const KEEP_THE_VERSION: [&str; 4] =
    ["--conf", "hoodie.write.table.version=6", "--conf", "hoodie.write.auto.upgrade=false"];

/// Heap of each of the two JVMs: they, the program under test and a build fit in a small CI machine.
const JVM_HEAP: &str = "1500m";

/// Are tests that need the peers switched on? Says so once, past the test harness's capture, when they are not.
pub fn peers_enabled() -> bool {
    static SAID: Once = Once::new();
    let on = std::env::var_os("HUDI_PEERS_TESTS").is_some_and(|v| v == "1");
    if !on {
        SAID.call_once(|| {
            let _ = writeln!(
                std::io::stderr(),
                "SKIPPED (set HUDI_PEERS_TESTS=1, or call tests/run): every test that asks Hudi on Spark, hudi-rs or Kafka"
            );
        });
    }
    on
}

/// The process that answers for `reader`.
pub fn oracle(reader: Reader) -> Oracle {
    static PROCESSES: [OnceLock<Mutex<Process>>; 3] = [OnceLock::new(), OnceLock::new(), OnceLock::new()];
    let index = READERS.iter().position(|r| *r == reader).expect("one of the readers");
    let process = PROCESSES[index].get_or_init(|| Mutex::new(Process::start()));
    // A test that failed while asking leaves question and answer in step: it panics on the answer, not before it.
    let process = process.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    Oracle { reader, process }
}

struct Process {
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Process {
    fn start() -> Process {
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers/oracle");
        let mut command = Command::new(&program);
        command.arg("serve").env("ORACLE_MEM", JVM_HEAP).env("ORACLE_LOG", "OFF");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        // Ends with the test binary, which closes its standard input.
        #[allow(clippy::zombie_processes)]
        let mut child = command.spawn().unwrap_or_else(|e| panic!("start {}: {e}", program.display()));
        let questions = child.stdin.take().expect("piped");
        let answers = BufReader::new(child.stdout.take().expect("piped"));
        Process { questions, answers }
    }

    fn ask(&mut self, argv: &[&str]) -> (i64, String, String) {
        let mut question = json!({ "argv": argv }).to_string();
        question.push('\n');
        self.questions.write_all(question.as_bytes()).expect("the oracle runs");
        let mut answer = String::new();
        self.answers.read_line(&mut answer).expect("the oracle answers");
        assert!(!answer.is_empty(), "the oracle ended: are the peers installed (tests/peers/setup)?");
        let answer: Value = serde_json::from_str(&answer).expect("an answer is JSON");
        let text = |field: &str| answer[field].as_str().unwrap_or_default().to_owned();
        (answer["rc"].as_i64().expect("an answer has rc"), text("out"), text("err"))
    }
}

/// One reader, ours alone while this lives.
pub struct Oracle {
    reader: Reader,
    process: MutexGuard<'static, Process>,
}

impl Oracle {
    #[track_caller]
    fn ask(&mut self, argv: &[&str]) -> String {
        let (rc, out, err) = self.process.ask(argv);
        assert!(rc == 0, "{:?}: oracle {} ends with {rc}\n{out}\n{err}", self.reader, argv.join(" "));
        out
    }

    /// Every row of the table now, sorted by partition path and record key.
    #[track_caller]
    pub fn read(&mut self, table: &str) -> Vec<Row> {
        self.query(table, &[])
    }

    /// As [`Oracle::read`] with more of the oracle's arguments, e.g. `--query incremental --begin T`.
    #[track_caller]
    pub fn query(&mut self, table: &str, args: &[&str]) -> Vec<Row> {
        let mut argv = vec!["read", table, "--hudi", self.reader.0];
        argv.extend(args);
        let lines = self.ask(&argv);
        lines.lines().map(|line| serde_json::from_str(line).expect("a row is a JSON object")).collect()
    }

    /// Writes rows (a file of JSON lines in the form that `read` gives) with Spark; the instant it made.
    #[track_caller]
    pub fn write(&mut self, table: &str, op: &str, rows: &Path, conf: &[&str]) -> String {
        let rows = rows.to_str().expect("test paths are UTF-8");
        self.make_instant(vec!["write", table, "--op", op, "--input", rows], conf)
    }

    /// As [`Oracle::write`] of a table that others write too; `None`: one of them was in the way.
    pub fn tries_to_write(&mut self, table: &str, op: &str, rows: &Path, conf: &[&str]) -> Option<String> {
        let rows = rows.to_str().expect("test paths are UTF-8");
        let mut argv = vec!["write", table, "--op", op, "--input", rows, "--hudi", self.reader.0];
        conf.iter().for_each(|setting| argv.extend(["--conf", setting]));
        let (rc, out, err) = self.process.ask(&argv);
        if rc != 0 {
            println!("{:?} does not get through: {err}", self.reader);
            return None;
        }
        let answer: Value = serde_json::from_str(&out).expect("a write answers with its instant");
        Some(answer["instant"].as_str().expect("a write makes an instant").to_owned())
    }

    /// As [`Oracle::write`], into a new table of `kind` (`cow`, `mor`) keyed by `id`, ordered by `ts`, not partitioned; `schema` is
    /// an Avro schema's file.
    #[track_caller]
    pub fn create(&mut self, kind: &str, table: &str, schema: &Path, rows: &Path, conf: &[&str]) -> String {
        let [schema, rows] = [schema, rows].map(|path| path.to_str().expect("test paths are UTF-8"));
        let mut settings = vec![
            "hoodie.datasource.write.recordkey.field=id",
            "hoodie.datasource.write.precombine.field=ts",
            "hoodie.datasource.write.partitionpath.field=",
            "hoodie.datasource.write.keygenerator.class=org.apache.hudi.keygen.NonpartitionedKeyGenerator",
            "hoodie.metadata.enable=false",
        ];
        settings.extend(conf);
        let argv = vec!["write", table, "--type", kind, "--schema", schema, "--op", "upsert", "--input", rows];
        self.make_instant(argv, &settings)
    }

    #[track_caller]
    fn make_instant<'a>(&mut self, mut argv: Vec<&'a str>, conf: &[&'a str]) -> String {
        argv.extend(["--hudi", self.reader.0]);
        if self.reader == SPARK_1_0 {
            argv.extend(KEEP_THE_VERSION);
        }
        for setting in conf {
            argv.extend(["--conf", setting]);
        }
        let answer: Value = serde_json::from_str(&self.ask(&argv)).expect("a write answers with its instant");
        answer["instant"].as_str().expect("a write makes an instant").to_owned()
    }

    /// The archived timeline as Hudi loads it: instant, action and state of each entry, and what completed ones say.
    #[track_caller]
    pub fn archived(&mut self, table: &str) -> Vec<Row> {
        let lines = self.ask(&["archived", table, "--hudi", self.reader.0]);
        lines.lines().map(|line| serde_json::from_str(line).expect("an entry is a JSON object")).collect()
    }

    /// One statement of SQL, its rows.
    #[track_caller]
    pub fn sql(&mut self, statement: &str) -> Vec<Row> {
        let lines = self.ask(&["sql", statement, "--hudi", self.reader.0]);
        lines.lines().map(|line| serde_json::from_str(line).expect("a row is a JSON object")).collect()
    }

    /// Has Spark run a table service, e.g. `cluster`, `schedule_compact`, `run_compact`.
    #[track_caller]
    pub fn service(&mut self, table: &str, action: &str, conf: &[&str]) {
        let mut argv = vec!["run", table, action, "--hudi", self.reader.0];
        if self.reader == SPARK_1_0 {
            argv.extend(KEEP_THE_VERSION);
        }
        conf.iter().for_each(|setting| argv.extend(["--conf", setting]));
        self.ask(&argv);
    }

    /// Whether Hudi's own classes find nothing wrong in the table's files.
    pub fn finds_whole(&mut self, table: &str) -> bool {
        let (rc, ..) = self.process.ask(&["validate", table, "--hudi", self.reader.0]);
        rc == 0
    }

    /// Has Spark do something about an instant: `savepoint`, `restore` (to one), `rollback`.
    #[track_caller]
    pub fn at_instant(&mut self, table: &str, action: &str, instant: &str) {
        self.ask(&[
            "run",
            table,
            action,
            "--instant",
            instant,
            "--hudi",
            self.reader.0,
            "--conf",
            "hoodie.metadata.enable=false",
        ]);
    }

    /// Fails on anything that Hudi's own classes find wrong in the table's files. Equal keys are let pass on demand:
    /// plain inserts may make them.
    #[track_caller]
    pub fn validate(&mut self, table: &str, duplicates_allowed: bool) {
        let mut argv = vec!["validate", table, "--hudi", self.reader.0];
        if duplicates_allowed {
            argv.push("--allow-duplicates");
        }
        let (rc, out, err) = self.process.ask(&argv);
        let faults = serde_json::from_str::<Value>(&out).map(|report| report["faults"].to_string()).unwrap_or(out);
        assert!(rc == 0, "{:?} finds faults in {table}: {faults}\n{err}", self.reader);
    }
}
