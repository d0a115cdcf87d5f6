//! Hudi's own lock providers, by way of `tests/peers/lock`.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// Versions of Hudi whose locks ours must get along with.
pub const LOCK_VERSIONS: [&str; 2] = ["0.15.0", "1.0.2"];

/// One provider in a JVM, which ends with this value or this process and releases nothing then.
pub struct HudiLock {
    process: Child,
    commands: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl HudiLock {
    /// `class` without its package.
    pub fn new(version: &str, class: &str, properties: &[(&str, &str)]) -> HudiLock {
        let mut command = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers/lock"));
        command.arg(version).arg(class).args(properties.iter().map(|(key, value)| format!("{key}={value}")));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn().expect("start tests/peers/lock");
        let commands = process.stdin.take();
        let answers = BufReader::new(process.stdout.take().expect("piped"));
        HudiLock { process, commands, answers }
    }

    fn ask(&mut self, command: &str) -> String {
        let commands = self.commands.as_mut().expect("there until dropped");
        commands.write_all(format!("{command}\n").as_bytes()).expect("the provider runs");
        let mut answer = String::new();
        self.answers.read_line(&mut answer).expect("the provider answers");
        assert!(!answer.is_empty(), "tests/peers/lock has ended (are the peers installed?)");
        answer.trim().to_string()
    }

    /// Whether it got the lock within so many milliseconds.
    pub fn lock(&mut self, wait_ms: u32) -> bool {
        match self.ask(&format!("lock {wait_ms}")).as_str() {
            "locked" => true,
            // ZooKeeper's provider throws where the others say no.
            answer => {
                assert!(answer == "busy" || answer.contains("FAILED_TO_ACQUIRE"), "{answer}");
                false
            }
        }
    }

    pub fn unlock(&mut self) {
        assert_eq!(self.ask("unlock"), "unlocked");
    }

    /// What Hudi's lock manager does after each release.
    pub fn close(&mut self) {
        assert_eq!(self.ask("close"), "closed");
    }
}

impl Drop for HudiLock {
    fn drop(&mut self) {
        drop(self.commands.take());
        let _ = self.process.wait();
    }
}
