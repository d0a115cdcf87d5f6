//! The program under test: its command line, built as an operator would write it, and what came of it.

use std::fmt;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use super::scratch::BASE_SCHEMA;
use super::{S3, Scratch, Topic};

/// No run of a test is near this long; a hang becomes a failure instead of a stuck CI.
const DEADLINE: Duration = Duration::from_secs(120);

/// One call of the program. Later settings replace earlier ones of the same name.
#[derive(Clone)]
pub struct Streamer {
    flags: Vec<(String, Option<String>)>,
    conf: Vec<(String, String)>,
    env: Vec<(String, String)>,
}

impl Streamer {
    /// No flag at all.
    pub fn bare() -> Streamer {
        Streamer { flags: Vec::new(), conf: Vec::new(), env: Vec::new() }
    }

    /// The base call of the tests: UPSERT the JSON files of `in/` into the copy-on-write table `table/`, keyed by `id`,
    /// ordered by `ts`, not partitioned, with the schema of `schema.avsc`.
    pub fn json(scratch: &Scratch) -> Streamer {
        std::fs::create_dir_all(scratch.path("in")).expect("make the input folder");
        Streamer::base(scratch)
            .flag("--source-class", "JsonDFSSource")
            .conf("hoodie.streamer.source.dfs.root", scratch.path("in"))
    }

    /// As [`Streamer::json`], of a topic's JSON messages from its beginning on.
    pub fn kafka(scratch: &Scratch, topic: &Topic) -> Streamer {
        Streamer::base(scratch)
            .flag("--source-class", "JsonKafkaSource")
            .conf("bootstrap.servers", topic.endpoint())
            .conf("auto.offset.reset", "earliest")
            .conf("hoodie.streamer.source.kafka.topic", topic.name())
    }

    /// The same call for Avro whose schemas are in a registry, the newest of `subject` being the source schema.
    pub fn registered_avro(self, registry: &str, subject: &str) -> Streamer {
        self.flag("--source-class", "AvroKafkaSource")
            .flag("--schemaprovider-class", "SchemaRegistryProvider")
            .without("hoodie.streamer.schemaprovider.source.schema.file")
            .conf("schema.registry.url", registry)
            .conf(
                "hoodie.streamer.schemaprovider.registry.url",
                format!("{registry}/subjects/{subject}/versions/latest"),
            )
    }

    fn base(scratch: &Scratch) -> Streamer {
        if !scratch.path("schema.avsc").exists() {
            scratch.file("schema.avsc", BASE_SCHEMA);
        }
        Streamer::bare()
            .flag("--table-type", "COPY_ON_WRITE")
            .flag("--target-base-path", scratch.path("table"))
            .flag("--target-table", "trips")
            .flag("--op", "UPSERT")
            .flag("--source-ordering-field", "ts")
            .flag("--schemaprovider-class", "FilebasedSchemaProvider")
            .conf("hoodie.streamer.schemaprovider.source.schema.file", scratch.path("schema.avsc"))
            .conf("hoodie.datasource.write.recordkey.field", "id")
            .conf("hoodie.datasource.write.partitionpath.field", "")
    }

    pub fn flag(mut self, name: &str, value: impl AsRef<Path>) -> Streamer {
        self.flags.retain(|(n, _)| n != name);
        self.flags.push((name.into(), Some(text(value))));
        self
    }

    pub fn op(self, op: &str) -> Streamer {
        self.flag("--op", op)
    }

    /// A flag that takes no value, or (not replacing) a stray word.
    pub fn switch(mut self, name: &str) -> Streamer {
        self.flags.push((name.into(), None));
        self
    }

    /// Words before all flags: a subcommand and what it takes.
    pub fn after(mut self, words: &[&str]) -> Streamer {
        self.flags.splice(0..0, words.iter().map(|word| (word.to_string(), None)));
        self
    }

    pub fn without(mut self, name: &str) -> Streamer {
        self.flags.retain(|(n, _)| n != name);
        self.conf.retain(|(n, _)| n != name);
        self
    }

    pub fn conf(mut self, key: &str, value: impl AsRef<Path>) -> Streamer {
        self.conf.retain(|(k, _)| k != key);
        self.conf.push((key.into(), text(value)));
        self
    }

    /// Partitioned by `field` instead of not at all.
    pub fn partitioned(self, field: &str) -> Streamer {
        self.conf("hoodie.datasource.write.partitionpath.field", field)
    }

    pub fn env(mut self, name: &str, value: &str) -> Streamer {
        self.env.retain(|(n, _)| n != name);
        self.env.push((name.into(), value.into()));
        self
    }

    /// The same call of a job whose files are elsewhere.
    pub fn moved(mut self, from: &Path, to: &Path) -> Streamer {
        let [from, to] = [from, to].map(text);
        let values = self.conf.iter_mut().map(|(_, value)| value);
        let values = values.chain(self.flags.iter_mut().filter_map(|(_, value)| value.as_mut()));
        values.for_each(|value| *value = value.replace(&from, &to));
        self
    }

    /// Nothing in the environment but what every call has.
    pub fn without_env(mut self) -> Streamer {
        self.env.clear();
        self
    }

    /// The table `folder` of the server's bucket instead, reached through `endpoint`: the server's own, or a gate before it.
    pub fn on_s3(self, s3: &S3, folder: &str, endpoint: &str) -> Streamer {
        let call = self.flag("--target-base-path", s3.uri(folder));
        s3.environment(endpoint).into_iter().fold(call, |call, (name, value)| call.env(name, value))
    }

    fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hudi-streamer"));
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("TZ", "UTC");
        command.env("RUST_BACKTRACE", "1");
        command.envs(self.env.iter().cloned());
        for (name, value) in &self.flags {
            command.arg(name).args(value);
        }
        for (key, value) in &self.conf {
            command.arg("--hoodie-conf").arg(format!("{key}={value}"));
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub fn run(&self) -> Run {
        self.start().finish()
    }

    /// Starts it and does not wait.
    pub fn start(&self) -> Running {
        let mut command = self.command();
        let mut child = command.spawn().expect("start the program under test");
        let said = Arc::default();
        let stdout = drain(child.stdout.take().expect("piped"), Arc::default());
        let stderr = drain(child.stderr.take().expect("piped"), Arc::clone(&said));
        Running { child, stdout, stderr, said, command: format!("{command:?}") }
    }
}

fn text(value: impl AsRef<Path>) -> String {
    value.as_ref().to_str().expect("test values are UTF-8").to_owned()
}

/// Reads a pipe to its end beside the test, so that the program never waits for us. `so_far` grows meanwhile.
fn drain(mut pipe: impl Read + Send + 'static, so_far: Arc<Mutex<Vec<u8>>>) -> mpsc::Receiver<String> {
    let (send, receive) = mpsc::channel();
    thread::spawn(move || {
        let mut chunk = [0; 8192];
        while let Ok(n @ 1..) = pipe.read(&mut chunk) {
            so_far.lock().expect("nobody panics with it").extend_from_slice(&chunk[..n]);
        }
        let _ = send.send(text_of(&so_far));
    });
    receive
}

fn text_of(bytes: &Mutex<Vec<u8>>) -> String {
    String::from_utf8_lossy(&bytes.lock().expect("nobody panics with it")).into_owned()
}

/// A program that has not ended yet.
pub struct Running {
    child: Child,
    stdout: mpsc::Receiver<String>,
    stderr: mpsc::Receiver<String>,
    said: Arc<Mutex<Vec<u8>>>,
    command: String,
}

impl Running {
    /// What it has said on standard error so far.
    pub fn said(&self) -> String {
        text_of(&self.said)
    }

    /// Sends a signal by name, e.g. `TERM`.
    pub fn signal(&self, name: &str) {
        let status = Command::new("kill").arg(format!("-{name}")).arg(self.child.id().to_string()).status();
        assert!(status.expect("run kill").success(), "no process to send {name} to");
    }

    /// Whether a signal has stopped it, until another one continues it.
    pub fn is_stopped(&self) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, fields)| fields.starts_with('T'))
    }

    /// Waits for the end, which must come before the deadline.
    pub fn finish(mut self) -> Run {
        let stdout = self.stdout.recv_timeout(DEADLINE).unwrap_or_else(|_| {
            let _ = self.child.kill();
            panic!("still running after {DEADLINE:?}: {}", self.command)
        });
        let stderr = self.stderr.recv_timeout(DEADLINE).expect("stderr ends with the process");
        let status = self.child.wait().expect("wait for the program");
        Run { code: status.code(), stdout, stderr, command: self.command }
    }
}

/// What came of a call.
pub struct Run {
    /// `None` when a signal ended the process.
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
    command: String,
}

impl Run {
    #[track_caller]
    pub fn ok(self) -> Run {
        assert!(self.code == Some(0), "expected success\n{self}");
        self
    }

    /// Ends with `code` and says why in one line `error[…]: …` that contains every one of `names`.
    #[track_caller]
    pub fn fails_with(self, code: i32, names: &[&str]) -> Run {
        assert!(self.code == Some(code), "expected exit code {code}\n{self}");
        let errors: Vec<&str> = self.stderr.lines().filter(|l| l.contains("error[")).collect();
        assert!(!errors.is_empty(), "no line `error[code]: …`\n{self}");
        let told = errors.iter().any(|line| names.iter().all(|n| line.contains(n)));
        assert!(told, "no error line names all of {names:?}\n{self}");
        self
    }

    /// Fails, whether in the configuration or in the run.
    #[track_caller]
    pub fn fails_with_any(self, names: &[&str]) -> Run {
        assert!(matches!(self.code, Some(1 | 2)), "expected exit code 1 or 2\n{self}");
        let code = self.code.expect("just checked");
        self.fails_with(code, names)
    }

    /// Said on stderr, at whatever level.
    #[track_caller]
    pub fn says(self, words: &[&str]) -> Run {
        let told = self.stderr.lines().any(|line| words.iter().all(|n| line.contains(n)));
        assert!(told, "no line says all of {words:?}\n{self}");
        self
    }

    #[track_caller]
    pub fn killed(self) -> Run {
        assert!(self.code.is_none(), "expected to be killed by a signal\n{self}");
        self
    }
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Run { code, stdout, stderr, command } = self;
        write!(f, "$ {command}\nexit code {code:?}\n--- stdout\n{stdout}\n--- stderr\n{stderr}")
    }
}
