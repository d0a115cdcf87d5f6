//! An S3 server over a folder: what lies in a bucket is at hand as files too.

use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use super::Held;

/// As `tests/peers/services/svc` says it.
const BUCKET: &str = "hudi";
const ACCESS_KEY: &str = "peer-access";
const SECRET_KEY: &str = "peer-secret";

/// One server with one bucket: plain HTTP, path style, signatures checked, conditional puts known.
pub struct S3 {
    held: Held,
    names: AtomicU32,
}

impl S3 {
    /// The one of this test run.
    pub fn shared() -> &'static S3 {
        static S3_SERVER: OnceLock<S3> = OnceLock::new();
        S3_SERVER.get_or_init(|| S3 { held: Held::start(&["s3"]), names: AtomicU32::new(0) })
    }

    /// `http://127.0.0.1:PORT`.
    pub fn endpoint(&self) -> &str {
        self.held.endpoint(0)
    }

    /// A folder of the bucket that no other test of this run has: `name` and a number.
    pub fn folder(&self, name: &str) -> String {
        format!("{name}-{}", self.names.fetch_add(1, Ordering::Relaxed))
    }

    /// `s3a://…` of a folder or file of the bucket.
    pub fn uri(&self, key: &str) -> String {
        format!("s3a://{BUCKET}/{key}")
    }

    /// The same as a path on this machine.
    pub fn path(&self, key: &str) -> PathBuf {
        self.held.folder("s3").join("data").join(BUCKET).join(key)
    }

    /// What a program finds in its environment to be let in, through `endpoint`: the server's own or a proxy's.
    pub fn environment<'a>(&self, endpoint: &'a str) -> [(&'static str, &'a str); 5] {
        [
            ("AWS_ENDPOINT_URL", endpoint),
            ("AWS_ALLOW_HTTP", "true"),
            ("AWS_REGION", "us-east-1"),
            ("AWS_ACCESS_KEY_ID", ACCESS_KEY),
            ("AWS_SECRET_ACCESS_KEY", SECRET_KEY),
        ]
    }
}
