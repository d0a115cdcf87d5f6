//! How files are kept and how object stores are reached.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// What every place that is opened needs to know, whatever kind of place it is. Where nothing is said of an object store,
/// the environment counts (`AWS_*`, `GOOGLE_*`, `AZURE_*`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StorageConfig {
    /// `hoodie.streamer.fsync` (ours): on local disks a file that is complete survives a power cut.
    pub fsync: bool,
    pub s3: S3Config,
    pub gcs: GcsConfig,
    pub azure: AzureConfig,
}

impl Default for StorageConfig {
    fn default() -> Self {
        StorageConfig { fsync: true, s3: S3Config::default(), gcs: GcsConfig::default(), azure: AzureConfig::default() }
    }
}

/// `fs.s3a.*`, and `fs.s3a.bucket.<bucket>.*` over it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct S3Config {
    pub all: S3Settings,
    pub buckets: BTreeMap<String, S3Settings>,
}

impl S3Config {
    pub fn of_bucket(&self, bucket: &str) -> S3Settings {
        self.buckets.get(bucket).map_or_else(|| self.all.clone(), |own| own.over(&self.all))
    }
}

/// `None`: not said.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct S3Settings {
    /// `.access.key`, `.secret.key`, `.session.token`: said together or not at all.
    pub keys: Option<S3Keys>,
    /// `.aws.credentials.provider` is `AnonymousAWSCredentialsProvider`: requests are not signed.
    pub anonymous: Option<bool>,
    /// `.endpoint`, as given: with or without a scheme.
    pub endpoint: Option<String>,
    /// `.endpoint.region`
    pub region: Option<String>,
    /// `.path.style.access`
    pub path_style: Option<bool>,
    /// `.connection.ssl.enabled`: of an endpoint without a scheme.
    pub ssl: Option<bool>,
    /// `.encryption.algorithm` (old name `.server-side-encryption-algorithm`) and `.encryption.key`.
    pub encryption: Option<S3Encryption>,
    /// `.connection.timeout`: a whole request.
    pub timeout: Option<Duration>,
    /// `.connection.establish.timeout`
    pub connect_timeout: Option<Duration>,
    /// `.attempts.maximum`: repetitions of a request that the server, or the way to it, failed.
    pub attempts: Option<usize>,
}

impl S3Settings {
    fn over(&self, all: &S3Settings) -> S3Settings {
        S3Settings {
            keys: self.keys.clone().or_else(|| all.keys.clone()),
            anonymous: self.anonymous.or(all.anonymous),
            endpoint: self.endpoint.clone().or_else(|| all.endpoint.clone()),
            region: self.region.clone().or_else(|| all.region.clone()),
            path_style: self.path_style.or(all.path_style),
            ssl: self.ssl.or(all.ssl),
            encryption: self.encryption.clone().or_else(|| all.encryption.clone()),
            timeout: self.timeout.or(all.timeout),
            connect_timeout: self.connect_timeout.or(all.connect_timeout),
            attempts: self.attempts.or(all.attempts),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct S3Keys {
    pub access: Secret,
    pub secret: Secret,
    pub session: Option<Secret>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum S3Encryption {
    /// `AES256`: by a key of the store's.
    Store,
    /// `SSE-KMS`, `DSSE-KMS`: by this key of the key service, or by the bucket's default one.
    Kms { key: Option<String>, twice: bool },
    /// `SSE-C`: by this key, in base64.
    Customer(Secret),
}

/// `fs.gs.*`, `google.cloud.auth.*`
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GcsConfig {
    /// `….service.account.json.keyfile`: path of the file.
    pub key_file: Option<String>,
}

/// `fs.azure.*`, and the same with an account's host name behind, which wins.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AzureConfig {
    pub all: AzureSettings,
    /// By account, the first label of the host name.
    pub accounts: BTreeMap<String, AzureSettings>,
}

impl AzureConfig {
    pub fn of_account(&self, account: &str) -> AzureSettings {
        let Some(own) = self.accounts.get(account) else { return self.all.clone() };
        AzureSettings {
            key: own.key.clone().or_else(|| self.all.key.clone()),
            sas: own.sas.clone().or_else(|| self.all.sas.clone()),
            client_id: own.client_id.clone().or_else(|| self.all.client_id.clone()),
            client_secret: own.client_secret.clone().or_else(|| self.all.client_secret.clone()),
            tenant: own.tenant.clone().or_else(|| self.all.tenant.clone()),
            authority: own.authority.clone().or_else(|| self.all.authority.clone()),
        }
    }
}

/// `None`: not said.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AzureSettings {
    /// `fs.azure.account.key`
    pub key: Option<Secret>,
    /// `fs.azure.sas.fixed.token`
    pub sas: Option<Secret>,
    /// `fs.azure.account.oauth2.client.id`
    pub client_id: Option<String>,
    /// `fs.azure.account.oauth2.client.secret`
    pub client_secret: Option<Secret>,
    /// `fs.azure.account.oauth2.msi.tenant`, or out of `….client.endpoint`.
    pub tenant: Option<String>,
    /// Out of `….client.endpoint`: where tokens are given out.
    pub authority: Option<String>,
}

/// Not to be printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub fn new(text: impl Into<String>) -> Secret {
        Secret(text.into())
    }

    /// The text, for those who must have it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}
