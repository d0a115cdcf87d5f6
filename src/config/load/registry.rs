//! Schema providers, and how to reach a schema registry.

use super::super::choices::{self, CredentialsSource, SchemaProviderKind};
use super::super::keys::{self, Key};
use super::super::{
    AvroValues, Credentials, KafkaConfig, RegistryAddress, RegistryConfig, SchemaProviderConfig, SubjectsConfig,
    mask_urls,
};
use super::Loader;

/// What a provider cannot be without, and what means nothing without a provider.
const PROVIDER_KEYS: [(&Key, &str); 2] =
    [(&keys::SCHEMA_SOURCE_FILE, "FilebasedSchemaProvider"), (&keys::SCHEMA_SOURCE_URL, "SchemaRegistryProvider")];

impl Loader<'_> {
    /// `kafka`: the source, whose registry stands in for a provider where Avro values name their schemas.
    pub(super) fn schema_provider(&mut self, kafka: Option<&KafkaConfig>) -> SchemaProviderConfig {
        let flag = "--schemaprovider-class";
        if self.raw.value(flag).is_none() {
            for (key, provider) in PROVIDER_KEYS {
                if self.given(key).is_some() {
                    let text = format!("{} has no effect without {flag} {provider}", key.name);
                    self.problem("config-missing", text);
                }
            }
            return kafka.and_then(subject_of_values).unwrap_or(SchemaProviderConfig::None);
        }
        match self.flag_choice(flag, &choices::SCHEMA_PROVIDERS, SchemaProviderKind::File) {
            SchemaProviderKind::File => SchemaProviderConfig::File {
                source: self.required(&keys::SCHEMA_SOURCE_FILE),
                target: self.given(&keys::SCHEMA_TARGET_FILE),
            },
            kind => self.registry_provider(kind),
        }
    }

    fn registry_provider(&mut self, kind: SchemaProviderKind) -> SchemaProviderConfig {
        let source = self.required(&keys::SCHEMA_SOURCE_URL);
        let source = if source.is_empty() { None } else { self.address(&keys::SCHEMA_SOURCE_URL, &source) };
        let mut target = self.given(&keys::SCHEMA_TARGET_URL);
        if kind == SchemaProviderKind::NullTargetRegistry && target.take().is_some() {
            let text = format!("{} has no effect with NullTargetSchemaRegistryProvider", keys::SCHEMA_TARGET_URL.name);
            self.settings.warnings.push(text);
        }
        let target = target.and_then(|target| self.address(&keys::SCHEMA_TARGET_URL, &target));
        match source {
            Some(source) => {
                let registry = self.registry_access();
                SchemaProviderConfig::Registry(Box::new(SubjectsConfig { source, target, registry }))
            }
            None => SchemaProviderConfig::None,
        }
    }

    /// The registry that `schema.registry.url` names; `None` where it is not set, which is for the caller to mind.
    pub(super) fn registry(&mut self) -> Option<RegistryConfig> {
        self.given(&keys::REGISTRY_URL)?;
        Some(self.registry_access())
    }

    fn registry_access(&mut self) -> RegistryConfig {
        let urls = self.list(&keys::REGISTRY_URL);
        RegistryConfig {
            addresses: urls.iter().filter_map(|url| self.address(&keys::REGISTRY_URL, url)).collect(),
            credentials: self.user_info(),
            truststore: self.pem_file(&keys::REGISTRY_TRUSTSTORE, &keys::REGISTRY_TRUSTSTORE_TYPE),
            keystore: self.pem_file(&keys::REGISTRY_KEYSTORE, &keys::REGISTRY_KEYSTORE_TYPE),
        }
    }

    fn address(&mut self, key: &Key, text: &str) -> Option<RegistryAddress> {
        let parsed =
            url::Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        let Some(mut url) = parsed else {
            let (at, shown) = (self.origin(key), mask_urls(text));
            self.problem(
                "config-bad-value",
                format!("{at}: {}={shown} is not an address (http://host:port/…)", key.name),
            );
            return None;
        };
        let credentials = (!url.username().is_empty()).then(|| Credentials {
            user: decoded(url.username()),
            password: decoded(url.password().unwrap_or_default()),
        });
        // Cannot fail for an address with a host.
        let _ = url.set_username("").and_then(|()| url.set_password(None));
        Some(RegistryAddress { url, credentials })
    }

    /// Unlike Confluent's client, which looks for it only if the source is USER_INFO, since nobody gives it for nothing.
    fn user_info(&mut self) -> Option<Credentials> {
        let given = self.given(&keys::REGISTRY_USER_INFO);
        let source = self
            .given(&keys::REGISTRY_AUTH)
            .map(|_| self.key_choice(&keys::REGISTRY_AUTH, &choices::CREDENTIALS_SOURCES, CredentialsSource::Url));
        match (source, given) {
            (Some(CredentialsSource::Url), Some(_)) => {
                let (user_info, source) = (keys::REGISTRY_USER_INFO.name, keys::REGISTRY_AUTH.name);
                self.settings.warnings.push(format!("{user_info} has no effect with {source}=URL"));
                None
            }
            (Some(CredentialsSource::UserInfo), None) => {
                self.required(&keys::REGISTRY_USER_INFO);
                None
            }
            (_, Some(text)) => match text.split_once(':') {
                Some((user, password)) => Some(Credentials { user: user.to_owned(), password: password.to_owned() }),
                None => {
                    let at = self.origin(&keys::REGISTRY_USER_INFO);
                    let text = format!("{at}: {} is not user:password", keys::REGISTRY_USER_INFO.name);
                    self.problem("config-bad-value", text);
                    None
                }
            },
            (_, None) => None,
        }
    }

    /// A store of certificates: Java's own kinds would have to be converted.
    fn pem_file(&mut self, location: &Key, kind: &Key) -> Option<String> {
        let path = self.given(location)?;
        let is_java = |word: &str| ["jks", "pkcs12", "p12", "pfx"].iter().any(|kind| word.eq_ignore_ascii_case(kind));
        let extension = path.rsplit_once('.').map(|(_, extension)| extension.to_owned()).unwrap_or_default();
        let named = self.given(kind).unwrap_or_default();
        if is_java(&named) || (named.is_empty() && is_java(&extension)) {
            let text = format!(
                "{}: {}={path} is a Java keystore, which is not done: make a PEM file of it (keytool -importkeystore \
                 -srckeystore <store> -destkeystore <store>.p12 -deststoretype PKCS12, then openssl pkcs12 -in <store>.p12 \
                 -nodes -out <store>.pem), and name that",
                self.origin(location),
                location.name
            );
            self.problem("config-unsupported", text);
            return None;
        }
        self.key_choice(kind, &choices::STORE_TYPES, ());
        Some(path)
    }
}

/// The newest schema of the subject that serializers register a topic's values under (`TopicNameStrategy`).
fn subject_of_values(kafka: &KafkaConfig) -> Option<SchemaProviderConfig> {
    let AvroValues::Registered(registry) = &kafka.avro else { return None };
    let mut source = registry.addresses.first()?.clone();
    let subject = format!("{}-value", kafka.topic);
    source.url.path_segments_mut().ok()?.pop_if_empty().extend(["subjects", &subject, "versions", "latest"]);
    Some(SchemaProviderConfig::Registry(Box::new(SubjectsConfig { source, target: None, registry: registry.clone() })))
}

/// `%40` is `@`.
fn decoded(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let [first, tail @ ..] = rest {
        let escaped = tail.get(..2).filter(|_| *first == b'%').and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = escaped.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &tail[2..] } else { tail };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
