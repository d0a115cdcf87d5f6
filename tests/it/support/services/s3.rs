//! An S3 server over a folder: what lies in a bucket is at hand as files too.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use object_store::RetryConfig;
use object_store::aws::{AmazonS3, AmazonS3Builder};

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

    /// Another folder with what is in this one; what the server keeps beside the bytes is in extended attributes.
    pub fn copy(&self, folder: &str) -> String {
        let copy = self.folder(folder);
        if self.path(folder).exists() {
            let mut command = Command::new("cp");
            command.arg("-a").arg(self.path(folder)).arg(self.path(&copy));
            assert!(command.status().expect("run cp").success(), "{command:?}");
        }
        copy
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

    /// The same, as settings of object_store: for hudi-rs.
    pub fn settings(&self) -> Vec<String> {
        let [endpoint, allow, region, key, secret] = self.environment(self.endpoint()).map(|(_, value)| value);
        let settings = [("aws_endpoint", endpoint), ("aws_allow_http", allow), ("aws_region", region)];
        let settings = settings.into_iter().chain([("aws_access_key_id", key), ("aws_secret_access_key", secret)]);
        settings.map(|(name, value)| format!("{name}={value}")).collect()
    }

    /// The bucket through `endpoint`; each request is tried once.
    pub fn bucket(&self, endpoint: &str) -> AmazonS3 {
        let once = RetryConfig { max_retries: 0, ..RetryConfig::default() };
        let mut builder = AmazonS3Builder::new().with_url(self.uri("")).with_retry(once);
        for (name, value) in self.environment(endpoint) {
            builder = builder.with_config(name.to_lowercase().parse().expect("a setting of object_store"), value);
        }
        builder.build().expect("the settings suffice")
    }
}
