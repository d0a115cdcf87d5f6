//! Real services (`tests/peers/services`), held by this process: `svc hold` runs them until the pipe to it closes, which
//! it does however this process ends, and then throws their data away.

mod gate;
mod s3;
mod zookeeper;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

pub use gate::{Gate, Requests, Spoil};
pub use s3::S3;
pub use zookeeper::ZooKeeper;

fn svc(folder: &Path) -> Command {
    let mut command = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers/services/svc"));
    command.env("PEERS_DIR", folder);
    command
}

/// Services that end with this value or with this process.
pub(super) struct Held {
    guard: Child,
    folder: PathBuf,
    endpoints: Vec<String>,
}

impl Held {
    pub fn start(services: &[&str]) -> Held {
        // The guard removes the folder, since nobody drops a static.
        let folder = TempDir::with_prefix("hudi-streamer-peers-").expect("make a temporary folder").keep();
        let mut command = svc(&folder);
        command.arg("hold").args(services).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut guard = command.spawn().expect("start tests/peers/services/svc");
        let lines = BufReader::new(guard.stdout.take().expect("piped")).lines();
        let endpoints: Vec<String> = lines.map_while(Result::ok).take(services.len()).collect();
        let missing = services.len() - endpoints.len();
        assert!(missing == 0, "{missing} of {services:?} did not start; see `{command:?}` (are the peers installed?)");
        Held { guard, folder, endpoints }
    }

    /// Where the service of that place in the list answers.
    pub fn endpoint(&self, index: usize) -> &str {
        &self.endpoints[index]
    }

    /// What the service stores and logs.
    pub fn folder(&self, service: &str) -> PathBuf {
        self.folder.join(service)
    }

    /// Takes a service down; what it stored stays.
    pub fn stop(&self, service: &str) {
        let status = svc(&self.folder).args(["stop", service]).status();
        assert!(status.expect("run svc").success(), "{service} cannot be stopped");
    }

    /// Starts a service again at the address that it had.
    pub fn restart(&self, service: &str, endpoint: &str) {
        let (_, port) = endpoint.rsplit_once(':').expect("host:port");
        let output = svc(&self.folder).args(["start", service, "--port", port]).output().expect("run svc");
        assert!(output.status.success(), "{service} does not start again: {output:?}");
    }

    /// Sends a signal by name, e.g. `STOP`.
    pub fn signal(&self, service: &str, name: &str) {
        let file = std::fs::read_to_string(self.folder(service).join("pid")).expect("svc records the process");
        let pid = file.split_whitespace().next().expect("its id");
        let status = Command::new("kill").arg(format!("-{name}")).arg(pid).status();
        assert!(status.expect("run kill").success(), "no {service} to send {name} to");
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        drop(self.guard.stdin.take());
        let _ = self.guard.wait();
    }
}
