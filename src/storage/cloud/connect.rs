//! From a location and the configuration to a client of the store. What the properties do not say, the environment may.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey, S3CopyIfNotExists};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::path::Path;
use object_store::{ClientConfigKey, ObjectStore, PutMode, RetryConfig, UpdateVersion};

use super::super::error::Cause;
use super::super::location::{Bucket, Store};
use super::once;
use crate::config::{AzureSettings, S3Encryption, S3Settings, StorageConfig};

/// A whole request with its answer: large ranges over slow lines must get through, a server that hangs must be given up.
const TIMEOUT: Duration = Duration::from_secs(60);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A client of one bucket.
#[derive(Debug)]
pub(super) struct Connection {
    pub store: Arc<dyn ObjectStore>,
    /// It is known that the store refuses to create what exists.
    refuses: AtomicBool,
}

impl Connection {
    pub fn new(store: Arc<dyn ObjectStore>, refuses: bool) -> Connection {
        Connection { store, refuses: AtomicBool::new(refuses) }
    }

    /// Creates; and makes sure, once in the life of the process, that the store would have refused to replace: some servers
    /// take `If-None-Match` and do not heed it, and then two writers lose each other's commits.
    pub async fn create(&self, path: &Path, bytes: Bytes) -> Result<UpdateVersion, Cause> {
        let version = once::put(&*self.store, path, bytes.clone(), PutMode::Create).await?;
        if !self.refuses.load(Ordering::Relaxed) {
            match once::put(&*self.store, path, bytes, PutMode::Create).await {
                Err(Cause::AlreadyExists) => self.refuses.store(true, Ordering::Relaxed),
                Ok(_) => {
                    return Err(Cause::Unsupported(
                        "the store does not heed If-None-Match: it replaces files that must only be created, and commits \
                         of two writers would get lost; a newer version of the server may do better",
                    ));
                }
                // It says nothing; the next time may.
                Err(_) => {}
            }
        }
        Ok(version)
    }
}

/// Sends no request. One client for each bucket and configuration, with its connections and tokens, for the life of the
/// process.
pub(super) fn connect(bucket: &Bucket, config: &StorageConfig) -> Result<Arc<Connection>, String> {
    static CONNECTIONS: Mutex<Vec<(Bucket, StorageConfig, Arc<Connection>)>> = Mutex::new(Vec::new());
    let of_whole = Bucket { prefix: String::new(), ..bucket.clone() };
    let mut connections = CONNECTIONS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, _, known)) = connections.iter().find(|(b, c, _)| *b == of_whole && c == config) {
        return Ok(Arc::clone(known));
    }
    let told = |e: object_store::Error| e.to_string();
    let (store, refuses): (Arc<dyn ObjectStore>, bool) = match bucket.store {
        Store::S3 => {
            let builder = s3(&bucket.name, &config.s3.of_bucket(&bucket.name), &environment("AWS_"))?;
            // Amazon's own is known to.
            let refuses = endpoint(&builder).is_none_or(|endpoint| endpoint.contains(".amazonaws.com"));
            (Arc::new(builder.build().map_err(told)?), refuses)
        }
        Store::Gcs => (Arc::new(gcs(bucket, config).build().map_err(told)?), true),
        Store::Azure => {
            let settings = config.azure.of_account(&bucket.account);
            (Arc::new(azure(bucket, &settings, &environment("AZURE_"))?.build().map_err(told)?), true)
        }
    };
    let connection = Arc::new(Connection::new(store, refuses));
    connections.push((of_whole, config.clone(), Arc::clone(&connection)));
    Ok(connection)
}

type Environment = Vec<(String, String)>;

fn environment(prefix: &str) -> Environment {
    let text =
        std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    text.filter(|(name, value)| name.starts_with(prefix) && !value.is_empty()).collect()
}

fn s3(bucket: &str, settings: &S3Settings, environment: &Environment) -> Result<AmazonS3Builder, String> {
    use AmazonS3ConfigKey as Key;
    let mut builder = AmazonS3Builder::new()
        .with_config(Key::Client(ClientConfigKey::Timeout), seconds(TIMEOUT))
        .with_config(Key::Client(ClientConfigKey::ConnectTimeout), seconds(CONNECT_TIMEOUT))
        .with_copy_if_not_exists(S3CopyIfNotExists::Multipart);
    // Keys from the properties must not meet a token from the environment.
    let of_keys =
        |key: &Key| matches!(key, Key::AccessKeyId | Key::SecretAccessKey | Key::Token | Key::WebIdentityTokenFile);
    let of_endpoint = |key: &Key| matches!(key, Key::Endpoint | Key::S3Endpoint);
    for (name, value) in environment {
        let Ok(key) = name.to_ascii_lowercase().parse::<Key>() else { continue };
        if (settings.keys.is_some() && of_keys(&key)) || (settings.endpoint.is_some() && of_endpoint(&key)) {
            continue;
        }
        builder = builder.with_config(key, value);
    }
    let named = |name: &str| environment.iter().any(|(known, _)| known == name);
    if settings.keys.is_none() && named("AWS_PROFILE") && !named("AWS_ACCESS_KEY_ID") {
        return Err(
            "AWS_PROFILE is set, and profiles (~/.aws) are not read: export its keys as AWS_ACCESS_KEY_ID and \
                    AWS_SECRET_ACCESS_KEY, or unset it, and the machine's role counts"
                .to_string(),
        );
    }
    builder = builder.with_bucket_name(bucket);
    if let Some(keys) = &settings.keys {
        builder = builder.with_access_key_id(keys.access.expose()).with_secret_access_key(keys.secret.expose());
        if let Some(token) = &keys.session {
            builder = builder.with_token(token.expose());
        }
    } else if settings.anonymous == Some(true) {
        builder = builder.with_skip_signature(true);
    }
    let place = settings.endpoint.as_deref().map(|given| Place::parse(given, settings.ssl)).transpose()?;
    if let Some(region) = settings.region.as_ref().or(place.as_ref().and_then(|p| p.region.as_ref())) {
        builder = builder.with_region(region);
    }
    builder = match (place.and_then(|place| place.url), settings.path_style) {
        (Some(url), Some(false)) => {
            let mut host = url::Url::parse(&url).map_err(|e| format!("endpoint {url}: {e}"))?;
            let name = format!("{bucket}.{}", host.host_str().unwrap_or_default());
            host.set_host(Some(&name)).map_err(|e| format!("endpoint {url}: {e}"))?;
            builder.with_endpoint(host.as_str().trim_end_matches('/')).with_virtual_hosted_style_request(true)
        }
        (Some(url), _) => builder.with_endpoint(url),
        (None, Some(false)) => builder.with_virtual_hosted_style_request(true),
        (None, _) => builder,
    };
    // Who writes http:// means it.
    if endpoint(&builder).is_some_and(|endpoint| endpoint.starts_with("http://")) {
        builder = builder.with_allow_http(true);
    }
    builder = match &settings.encryption {
        None => builder,
        Some(S3Encryption::Store) => encrypted(builder, "aws_server_side_encryption", "AES256"),
        Some(S3Encryption::Kms { key, twice }) => {
            let kind = if *twice { "aws:kms:dsse" } else { "aws:kms" };
            let builder = encrypted(builder, "aws_server_side_encryption", kind);
            key.iter().fold(builder, |builder, key| encrypted(builder, "aws_sse_kms_key_id", key))
        }
        Some(S3Encryption::Customer(key)) => builder.with_ssec_encryption(key.expose()),
    };
    if let Some(timeout) = settings.timeout {
        builder = builder.with_config(Key::Client(ClientConfigKey::Timeout), seconds(timeout));
    }
    if let Some(timeout) = settings.connect_timeout {
        builder = builder.with_config(Key::Client(ClientConfigKey::ConnectTimeout), seconds(timeout));
    }
    if let Some(attempts) = settings.attempts {
        builder = builder.with_retry(RetryConfig { max_retries: attempts, ..RetryConfig::default() });
    }
    Ok(builder)
}

/// As `object_store` itself takes it, from either variable.
fn endpoint(builder: &AmazonS3Builder) -> Option<String> {
    let of = |key| builder.get_config_value(&key);
    of(AmazonS3ConfigKey::S3Endpoint).or(of(AmazonS3ConfigKey::Endpoint))
}

fn encrypted(builder: AmazonS3Builder, key: &str, value: &str) -> AmazonS3Builder {
    match key.parse() {
        Ok(key) => builder.with_config(key, value),
        Err(_) => builder,
    }
}

fn seconds(time: Duration) -> String {
    format!("{}ms", time.as_millis())
}

/// What `fs.s3a.endpoint` says.
#[derive(Debug, PartialEq, Eq)]
struct Place {
    /// `None`: Amazon's own, of the region.
    url: Option<String>,
    region: Option<String>,
}

impl Place {
    /// Hadoop takes a host alone, and `https` for it unless `fs.s3a.connection.ssl.enabled` says no; and a region out of
    /// one of Amazon's hosts.
    fn parse(given: &str, ssl: Option<bool>) -> Result<Place, String> {
        let scheme = if ssl == Some(false) { "http" } else { "https" };
        let text = if given.contains("://") { given.to_owned() } else { format!("{scheme}://{given}") };
        let url = url::Url::parse(&text).map_err(|e| format!("endpoint {given}: {e}"))?;
        let host = url.host_str().unwrap_or_default();
        if host == "s3.amazonaws.com" {
            return Ok(Place { url: None, region: None });
        }
        let region = host.strip_suffix(".amazonaws.com").and_then(|rest| rest.strip_prefix("s3"));
        let region = region.and_then(|rest| rest.strip_prefix(['.', '-'])).filter(|region| !region.contains('.'));
        Ok(Place { url: Some(text.trim_end_matches('/').to_owned()), region: region.map(str::to_owned) })
    }
}

fn gcs(bucket: &Bucket, config: &StorageConfig) -> GoogleCloudStorageBuilder {
    let builder = GoogleCloudStorageBuilder::from_env()
        .with_config(GoogleConfigKey::Client(ClientConfigKey::Timeout), seconds(TIMEOUT))
        .with_bucket_name(&bucket.name);
    match &config.gcs.key_file {
        Some(path) => builder.with_service_account_path(path),
        None => builder,
    }
}

fn azure(
    bucket: &Bucket,
    settings: &AzureSettings,
    environment: &Environment,
) -> Result<MicrosoftAzureBuilder, String> {
    use AzureConfigKey as Key;
    let mut builder = MicrosoftAzureBuilder::new().with_config(Key::Client(ClientConfigKey::Timeout), seconds(TIMEOUT));
    let own = *settings != AzureSettings::default();
    let of_keys = |key: &Key| {
        matches!(key, Key::AccessKey | Key::SasKey | Key::Token | Key::ClientId | Key::ClientSecret | Key::AuthorityId)
    };
    for (name, value) in environment {
        let Ok(key) = name.to_ascii_lowercase().parse::<Key>() else { continue };
        if !(own && of_keys(&key)) {
            builder = builder.with_config(key, value);
        }
    }
    builder = builder.with_account(&bucket.account).with_container_name(&bucket.name);
    if let Some(suffix) = bucket.host.strip_prefix(&format!("{}.", bucket.account))
        && !suffix.ends_with(".core.windows.net")
    {
        let suffix = suffix.strip_prefix("dfs.").map_or_else(|| suffix.to_owned(), |rest| format!("blob.{rest}"));
        builder = builder.with_endpoint(format!("https://{}.{suffix}", bucket.account));
    }
    if let Some(key) = &settings.key {
        builder = builder.with_access_key(key.expose());
    } else if let Some(sas) = &settings.sas {
        builder = builder.with_config(Key::SasKey, sas.expose().trim_start_matches('?'));
    } else {
        let pairs = [
            (Key::ClientId, settings.client_id.as_deref()),
            (Key::ClientSecret, settings.client_secret.as_ref().map(|s| s.expose())),
            (Key::AuthorityId, settings.tenant.as_deref()),
            (Key::AuthorityHost, settings.authority.as_deref()),
        ];
        for (key, value) in pairs {
            if let Some(value) = value {
                builder = builder.with_config(key, value);
            }
        }
    }
    Ok(builder)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{S3Keys, Secret};

    fn environment() -> Environment {
        [
            ("AWS_ACCESS_KEY_ID", "env-id"),
            ("AWS_SECRET_ACCESS_KEY", "env-secret"),
            ("AWS_SESSION_TOKEN", "env-token"),
            ("AWS_ENDPOINT_URL", "http://env:1"),
            ("AWS_REGION", "env-region"),
            ("AWS_BUCKET", "env-bucket"),
            ("AWS_SOMETHING_ELSE", "x"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec()
    }

    fn value(builder: &AmazonS3Builder, key: AmazonS3ConfigKey) -> Option<String> {
        builder.get_config_value(&key)
    }

    #[test]
    fn properties_win_over_the_environment_and_do_not_mix_with_its_keys() {
        use AmazonS3ConfigKey as Key;
        let builder = s3("b", &S3Settings::default(), &environment()).expect("built");
        assert_eq!(value(&builder, Key::AccessKeyId).as_deref(), Some("env-id"));
        assert_eq!(value(&builder, Key::Token).as_deref(), Some("env-token"));
        assert_eq!(value(&builder, Key::Bucket).as_deref(), Some("b"));
        assert_eq!(endpoint(&builder).as_deref(), Some("http://env:1"));
        assert_eq!(value(&builder, Key::Client(ClientConfigKey::AllowHttp)).as_deref(), Some("true"));

        let keys = S3Keys { access: Secret::new("id"), secret: Secret::new("secret"), session: None };
        let settings = S3Settings {
            keys: Some(keys),
            endpoint: Some("own:2".to_owned()),
            region: Some("own-region".to_owned()),
            ..S3Settings::default()
        };
        let builder = s3("b", &settings, &environment()).expect("built");
        assert_eq!(value(&builder, Key::AccessKeyId).as_deref(), Some("id"));
        assert_eq!(value(&builder, Key::Token), None);
        assert_eq!(value(&builder, Key::Region).as_deref(), Some("own-region"));
        assert_eq!(endpoint(&builder).as_deref(), Some("https://own:2"));
        assert_ne!(value(&builder, Key::Client(ClientConfigKey::AllowHttp)).as_deref(), Some("true"));
    }

    #[test]
    fn a_profile_that_would_count_elsewhere_is_refused() {
        let with = |more: &[(&str, &str)]| {
            let all = [&[("AWS_PROFILE", "lake")], more].concat();
            let environment = all.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
            s3("b", &S3Settings::default(), &environment)
        };
        assert!(with(&[]).expect_err("it is not read").contains("AWS_PROFILE"));
        with(&[("AWS_ACCESS_KEY_ID", "id"), ("AWS_SECRET_ACCESS_KEY", "secret")]).expect("keys are given");
    }

    #[test]
    fn endpoints_are_read_as_hadoop_reads_them() {
        for (given, ssl, url, region) in [
            ("http://h:9000", None, Some("http://h:9000"), None),
            ("https://h/", Some(false), Some("https://h"), None),
            ("h:9000", None, Some("https://h:9000"), None),
            ("h:9000", Some(false), Some("http://h:9000"), None),
            ("s3.amazonaws.com", None, None, None),
            ("s3.eu-west-1.amazonaws.com", None, Some("https://s3.eu-west-1.amazonaws.com"), Some("eu-west-1")),
            ("s3-eu-west-1.amazonaws.com", None, Some("https://s3-eu-west-1.amazonaws.com"), Some("eu-west-1")),
        ] {
            let want = Place { url: url.map(str::to_owned), region: region.map(str::to_owned) };
            assert_eq!(Place::parse(given, ssl), Ok(want), "{given} {ssl:?}");
        }
        assert!(Place::parse("http://", None).is_err());
    }

    #[test]
    fn a_bucket_stands_in_the_host_where_paths_are_not_wanted() {
        let of = |endpoint: Option<&str>, path_style| {
            let settings = S3Settings { endpoint: endpoint.map(str::to_owned), path_style, ..S3Settings::default() };
            let builder = s3("b", &settings, &Environment::new()).expect("built");
            let hosted = value(&builder, AmazonS3ConfigKey::VirtualHostedStyleRequest);
            (super::endpoint(&builder), hosted.as_deref() == Some("true"))
        };
        assert_eq!(of(Some("http://h:1"), Some(false)), (Some("http://b.h:1".to_owned()), true));
        assert_eq!(of(Some("http://h:1"), Some(true)), (Some("http://h:1".to_owned()), false));
        assert_eq!(of(Some("http://h:1"), None), (Some("http://h:1".to_owned()), false));
        assert_eq!(of(None, Some(false)), (None, true));
        assert_eq!(of(None, None), (None, false));
    }
}
