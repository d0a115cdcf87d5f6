//! `hoodie.streamer.fsync`, and the settings of Hadoop's file systems (`fs.s3a.*`, `fs.gs.*`, `fs.azure.*`), which jobs bring
//! along in their properties, also as Spark spells them (`spark.hadoop.fs.s3a.*`).

mod azure;

use std::collections::BTreeMap;
use std::time::Duration;

use super::super::layer::Setting;
use super::super::{GcsConfig, S3Config, S3Encryption, S3Keys, S3Settings, Secret, StorageConfig, mask_value};
use super::{Loader, keys};

/// Spellings of one setting; the first that is there wins.
const SPELLINGS: [&str; 3] = ["", "spark.hadoop.", "hadoop."];
/// What the names of Hadoop's file systems begin with.
const FAMILIES: [&str; 3] = ["fs.", "google.cloud.auth.", "security.credential."];

/// Prefix of a name that would change how a store is reached if it were left out, and what to do instead.
const REFUSED: &[(&str, &str)] = &[
    (
        "fs.s3a.assumed.role.",
        "take the role outside and export its keys, or give AWS_WEB_IDENTITY_TOKEN_FILE and AWS_ROLE_ARN",
    ),
    ("fs.s3a.delegation.", "give the keys themselves"),
    ("fs.s3a.security.credential.provider.path", CREDENTIAL_FILE),
    ("fs.s3a.proxy.", "set HTTPS_PROXY or AWS_PROXY_URL in the environment"),
    ("fs.s3a.encryption.cse.", "encryption on the client is not done"),
    ("fs.s3.awsAccessKeyId", OLD_S3),
    ("fs.s3.awsSecretAccessKey", OLD_S3),
    ("fs.s3n.awsAccessKeyId", OLD_S3),
    ("fs.s3n.awsSecretAccessKey", OLD_S3),
    ("fs.gs.auth.service.account.private.key", JSON_KEY),
    ("fs.gs.auth.service.account.keyfile", JSON_KEY),
    ("google.cloud.auth.service.account.private.key", JSON_KEY),
    ("google.cloud.auth.service.account.keyfile", JSON_KEY),
    ("google.cloud.auth.client.", JSON_KEY),
    ("fs.azure.sas.", "give fs.azure.sas.fixed.token, with the account's host name behind it or without"),
    ("security.credential.provider.path", CREDENTIAL_FILE),
];
const CREDENTIAL_FILE: &str = "Java's key stores are not read: give the keys in the environment or as ${file:…}";
const OLD_S3: &str = "give fs.s3a.access.key and fs.s3a.secret.key";
const JSON_KEY: &str = "give google.cloud.auth.service.account.json.keyfile";

/// Java classes that take credentials from where they are looked for anyway.
const USUAL_PROVIDERS: [&str; 12] = [
    "SimpleAWSCredentialsProvider",
    "TemporaryAWSCredentialsProvider",
    "EnvironmentVariableCredentialsProvider",
    "IAMInstanceCredentialsProvider",
    "InstanceProfileCredentialsProvider",
    "EC2ContainerCredentialsProviderWrapper",
    "ContainerCredentialsProvider",
    "WebIdentityTokenCredentialsProvider",
    "WebIdentityTokenFileCredentialsProvider",
    "DefaultAWSCredentialsProviderChain",
    "DefaultCredentialsProvider",
    "DefaultCredentialsProviderChain",
];
const ANONYMOUS: &str = "AnonymousAWSCredentialsProvider";

/// Settings by their names without Spark's prefix; what has been read is taken out.
type Hadoop = BTreeMap<String, Setting>;

impl Loader<'_> {
    pub(super) fn storage(&mut self) -> StorageConfig {
        let mut hadoop = self.hadoop();
        let config = StorageConfig {
            fsync: self.boolean(&keys::FSYNC),
            s3: self.s3(&mut hadoop),
            gcs: self.gcs(&mut hadoop),
            azure: self.azure(&mut hadoop),
        };
        self.left_over(hadoop);
        config
    }

    fn hadoop(&mut self) -> Hadoop {
        let mut found = Hadoop::new();
        for spelling in SPELLINGS {
            for (given, setting) in self.settings.all() {
                let name = given.strip_prefix(spelling).filter(|name| is_hadoops(name));
                let Some(name) = name else { continue };
                self.used.insert(given.to_owned());
                found.entry(name.to_owned()).or_insert_with(|| setting.clone());
            }
        }
        found.retain(|_, setting| !setting.value.trim().is_empty());
        found
    }

    fn s3(&mut self, hadoop: &mut Hadoop) -> S3Config {
        let all = self.s3_settings("fs.s3a.", hadoop);
        // A bucket's name may hold dots, an option's always does: the longest name that ends before a known option.
        let names = hadoop.keys().filter_map(|name| name.strip_prefix("fs.s3a.bucket."));
        let buckets = names.filter_map(|rest| S3_OPTIONS.iter().find_map(|option| rest.strip_suffix(option)));
        let buckets: Vec<String> = buckets.map(|bucket| bucket.trim_end_matches('.').to_owned()).collect();
        let of_bucket = |bucket: String| {
            let settings = self.s3_settings(&format!("fs.s3a.bucket.{bucket}."), hadoop);
            (bucket, settings)
        };
        S3Config {
            all,
            buckets: buckets.into_iter().map(of_bucket).filter(|(_, s)| *s != S3Settings::default()).collect(),
        }
    }

    fn s3_settings(&mut self, prefix: &str, hadoop: &mut Hadoop) -> S3Settings {
        let name = |option: &str| format!("{prefix}{option}");
        let mut text = |option: &str| hadoop.remove(&name(option)).map(|s| s.value.trim().to_owned());
        let (access, secret) = (text("access.key"), text("secret.key"));
        let session = text("session.token").map(Secret::new);
        let (endpoint, region) = (text("endpoint"), text("endpoint.region"));
        let keys = match (access, secret) {
            (Some(access), Some(secret)) => {
                Some(S3Keys { access: Secret::new(access), secret: Secret::new(secret), session })
            }
            (None, None) if session.is_none() => None,
            (access, _) => {
                let missing = if access.is_none() { "access.key" } else { "secret.key" };
                let text = format!("{} is missing: keys of S3 are given together", name(missing));
                self.problem("config-missing", text);
                None
            }
        };
        let mut take = |option: &str| hadoop.remove(&name(option)).map(|s| (name(option), s));
        let provider = take("aws.credentials.provider");
        let (path_style, ssl) = (take("path.style.access"), take("connection.ssl.enabled"));
        let (timeout, connect_timeout) = (take("connection.timeout"), take("connection.establish.timeout"));
        let attempts = take("attempts.maximum");
        let algorithm = take("encryption.algorithm").or_else(|| take("server-side-encryption-algorithm"));
        let key = take("encryption.key").or_else(|| take("server-side-encryption.key"));
        S3Settings {
            keys,
            anonymous: provider.and_then(|given| self.is_anonymous(given)),
            endpoint,
            region,
            path_style: path_style.and_then(|given| self.hadoop_boolean(given)),
            ssl: ssl.and_then(|given| self.hadoop_boolean(given)),
            encryption: algorithm.and_then(|given| self.encryption(given, key.map(|(_, s)| s.value))),
            timeout: timeout.and_then(|given| self.hadoop_time(given)),
            connect_timeout: connect_timeout.and_then(|given| self.hadoop_time(given)),
            attempts: attempts.and_then(|(name, given)| {
                let parsed = given.value.trim().parse().ok();
                if parsed.is_none() {
                    self.not_a(&name, &given, "a number of attempts");
                }
                parsed
            }),
        }
    }

    fn is_anonymous(&mut self, (name, given): (String, Setting)) -> Option<bool> {
        let classes: Vec<&str> = given.value.split(',').map(str::trim).filter(|c| !c.is_empty()).collect();
        let last_name = |class: &str| class.rsplit('.').next().unwrap_or(class).to_owned();
        for class in &classes {
            let short = last_name(class);
            if short != ANONYMOUS && !USUAL_PROVIDERS.contains(&short.as_str()) {
                let text = format!(
                    "{}: {name}={class}: that class cannot be loaded: keys are taken from fs.s3a.access.key and \
                     fs.s3a.secret.key, else from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, a web identity token, the \
                     container's or the machine's role",
                    given.origin
                );
                self.problem("config-unsupported", text);
            }
        }
        Some(!classes.is_empty() && classes.iter().all(|class| last_name(class) == ANONYMOUS))
    }

    fn encryption(&mut self, (name, given): (String, Setting), key: Option<String>) -> Option<S3Encryption> {
        match (given.value.trim(), key) {
            ("AES256", _) => Some(S3Encryption::Store),
            ("SSE-KMS", key) => Some(S3Encryption::Kms { key, twice: false }),
            ("DSSE-KMS", key) => Some(S3Encryption::Kms { key, twice: true }),
            ("SSE-C", Some(key)) => Some(S3Encryption::Customer(Secret::new(key))),
            ("SSE-C", None) => {
                let text = format!("{}: {name}=SSE-C wants fs.s3a.encryption.key", given.origin);
                self.problem("config-missing", text);
                None
            }
            (other, _) => {
                let text = format!(
                    "{}: {name}={other} is not done: what is done: AES256, SSE-KMS, DSSE-KMS, SSE-C",
                    given.origin
                );
                self.problem("config-unsupported", text);
                None
            }
        }
    }

    fn gcs(&mut self, hadoop: &mut Hadoop) -> GcsConfig {
        let new = hadoop.remove("google.cloud.auth.service.account.json.keyfile");
        let key_file = new.or_else(|| hadoop.remove("fs.gs.auth.service.account.json.keyfile")).map(|s| s.value);
        for name in ["fs.gs.auth.type", "google.cloud.auth.type"] {
            let done = ["SERVICE_ACCOUNT_JSON_KEYFILE", "APPLICATION_DEFAULT", "COMPUTE_ENGINE"];
            let given = hadoop.remove(name).filter(|s| !done.contains(&s.value.as_str()));
            if let Some(given) = given {
                let text = format!("{}: {name}={} is not done: {JSON_KEY}", given.origin, given.value);
                self.problem("config-unsupported", text);
            }
        }
        GcsConfig { key_file }
    }

    /// Tuning of Hadoop's own machinery changes nothing here; whatever else changes is refused.
    fn left_over(&mut self, hadoop: Hadoop) {
        let mut idle = Vec::new();
        for (name, given) in hadoop {
            let of_all = name.strip_prefix("fs.s3a.bucket.").and_then(|rest| rest.split_once('.'));
            let general = of_all.map_or_else(|| name.clone(), |(_, option)| format!("fs.s3a.{option}"));
            match REFUSED.iter().find(|(prefix, _)| general.starts_with(prefix)) {
                Some((_, instead)) => {
                    self.problem("config-unsupported", format!("{}: {name} is not done: {instead}", given.origin));
                }
                None => idle.push(name),
            }
        }
        if !idle.is_empty() {
            let text = format!("settings of Hadoop's file systems that change nothing here: {}", idle.join(", "));
            self.settings.warnings.push(text);
        }
    }

    fn hadoop_boolean(&mut self, (name, given): (String, Setting)) -> Option<bool> {
        let parsed = given.value.trim().to_ascii_lowercase().parse().ok();
        if parsed.is_none() {
            self.not_a(&name, &given, "true or false");
        }
        parsed
    }

    /// Milliseconds, or a number with its unit (`Configuration.getTimeDuration`, Hadoop 3).
    fn hadoop_time(&mut self, (name, given): (String, Setting)) -> Option<Duration> {
        let text = given.value.trim();
        let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let unit_ms = match text[digits..].trim() {
            "" | "ms" => Some(1),
            "s" => Some(1_000),
            "m" => Some(60_000),
            "h" => Some(3_600_000),
            _ => None,
        };
        let number: Option<u64> = text[..digits].parse().ok().filter(|n| *n > 0);
        let time = number.zip(unit_ms).and_then(|(n, unit)| n.checked_mul(unit)).map(Duration::from_millis);
        if time.is_none() {
            self.not_a(&name, &given, "a time above 0, as 30s or 30000");
        }
        time
    }

    fn not_a(&mut self, name: &str, given: &Setting, kind: &str) {
        let text = format!("{}: {name}={} is not {kind}", given.origin, mask_value(name, &given.value));
        self.problem("config-bad-value", text);
    }
}

/// Last parts of the names that a bucket may have of its own.
const S3_OPTIONS: [&str; 15] = [
    "access.key",
    "secret.key",
    "session.token",
    "endpoint",
    "endpoint.region",
    "aws.credentials.provider",
    "path.style.access",
    "connection.ssl.enabled",
    "connection.timeout",
    "connection.establish.timeout",
    "attempts.maximum",
    "encryption.algorithm",
    "encryption.key",
    "server-side-encryption-algorithm",
    "server-side-encryption.key",
];

/// Whether a name, without Spark's prefix, is one of Hadoop's file systems. Clients of Kafka have none such.
pub(super) fn is_hadoops(name: &str) -> bool {
    FAMILIES.iter().any(|family| name.starts_with(family))
}
