//! Kafka sources: Hudi's keys, and the settings of the client, which stand in the file without a prefix and by Java's names.

use super::super::choices;
use super::super::keys::{self, IDLE_PREFIXES};
use super::super::{
    AvroValues, IndexConfig, KafkaCheckpointType, KafkaConfig, OffsetReset, Operation, SourceClass, Tombstones,
    mask_value,
};
use super::Loader;
use super::storage::is_hadoops;
use std::collections::BTreeMap;
use std::time::Duration;

/// Settings of a Java client that say nothing to librdkafka or that the source decides by itself.
const WITHOUT_EFFECT: &[&str] = &[
    "key.deserializer",
    "value.deserializer",
    "enable.auto.commit",
    "auto.commit.interval.ms",
    "max.poll.records",
    "metric.reporters",
    "metrics.num.samples",
    "metrics.recording.level",
    "metrics.sample.window.ms",
    "auto.include.jmx.reporter",
    "exclude.internal.topics",
    "partition.assignment.strategy",
    "specific.avro.reader",
    "auto.register.schemas",
    "use.latest.version",
    "value.subject.name.strategy",
    "key.subject.name.strategy",
    "ssl.protocol",
    "ssl.provider",
    "ssl.enabled.protocols",
    "ssl.keymanager.algorithm",
    "ssl.trustmanager.algorithm",
    "ssl.secure.random.implementation",
    "security.providers",
];

/// Settings of the schema registry's client.
const OF_THE_REGISTRY: &[&str] = &["schema.registry.", "basic.auth.", "bearer.auth."];

/// Java's name and librdkafka's for the same thing.
const RENAMED: &[(&str, &str)] = &[
    ("fetch.max.wait.ms", "fetch.wait.max.ms"),
    ("receive.buffer.bytes", "socket.receive.buffer.bytes"),
    ("send.buffer.bytes", "socket.send.buffer.bytes"),
    ("request.timeout.ms", "socket.timeout.ms"),
    ("socket.connection.setup.timeout.max.ms", "socket.connection.setup.timeout.ms"),
    ("ssl.truststore.certificates", "ssl.ca.pem"),
    ("ssl.keystore.certificate.chain", "ssl.certificate.pem"),
    ("ssl.keystore.key", "ssl.key.pem"),
];

/// Settings that carry Java code, and what to do instead.
const JAVA_CODE: &[(&str, &str)] = &[
    ("interceptor.classes", "interceptors are Java classes: leave it out"),
    ("sasl.client.callback.handler.class", "callback handlers are Java classes: leave it out"),
    ("sasl.login.callback.handler.class", "callback handlers are Java classes: use sasl.oauthbearer.method=oidc"),
    ("sasl.login.class", "login classes are Java classes: leave it out"),
    ("ssl.engine.factory.class", "engine factories are Java classes: leave it out"),
    ("config.providers", "use ${env:NAME} or ${file:/path} in values"),
];

const JKS: &str = "Java key stores cannot be read: convert it to PEM (keytool -importkeystore to PKCS12, then openssl pkcs12), \
                   and set ssl.ca.location, or ssl.certificate.location and ssl.key.location";

impl Loader<'_> {
    pub(super) fn kafka(&mut self, class: SourceClass, limit: Option<u64>) -> KafkaConfig {
        let client = self.client();
        if !client.contains_key("bootstrap.servers") {
            self.required(&keys::BOOTSTRAP_SERVERS);
        }
        let reset = self.key_choice(&keys::OFFSET_RESET, &choices::OFFSET_RESETS, OffsetReset::Latest);
        let group = self.given(&keys::GROUP_ID);
        let commit_offset = self.boolean(&keys::COMMIT_OFFSET);
        if group.is_none() && (commit_offset || reset == OffsetReset::Group) {
            let why = if commit_offset { keys::COMMIT_OFFSET.name } else { "auto.offset.reset=group" };
            self.problem("config-missing", format!("property group.id not found: {why} needs it"));
        }
        let max_events: u64 = self.positive(&keys::MAX_EVENTS, "a number of events");
        KafkaConfig {
            topic: self.required(&keys::KAFKA_TOPIC),
            client: client.into_iter().collect(),
            reset,
            group,
            checkpoint_type: self.key_choice(
                &keys::KAFKA_CHECKPOINT_TYPE,
                &choices::KAFKA_CHECKPOINT_TYPES,
                KafkaCheckpointType::String,
            ),
            min_partitions: self.number(&keys::MIN_PARTITIONS, "a whole number"),
            max_events: limit.unwrap_or(max_events),
            fail_on_data_loss: self.boolean(&keys::FAIL_ON_DATA_LOSS),
            commit_offset,
            append_offsets: self.boolean(&keys::APPEND_OFFSETS),
            tombstones: self.key_choice(&keys::TOMBSTONES, &choices::TOMBSTONES, Tombstones::Skip),
            timeout: Duration::from_millis(self.positive(&keys::API_TIMEOUT, "a number of milliseconds")),
            avro: if class == SourceClass::AvroKafka { self.avro_values() } else { AvroValues::Bare },
        }
    }

    /// What a job needs whose tombstones delete: they have a key, an arrival and nothing else.
    pub(super) fn deleting_tombstones(
        &mut self,
        operation: Operation,
        transforms: bool,
        partitioned: bool,
        index: &IndexConfig,
    ) {
        let refusals = [
            (operation != Operation::Upsert, "deletes, and only --op UPSERT does; set --op UPSERT, or skip"),
            (transforms, "has no fields that a transformer could work on: leave out --transformer-class, or set skip"),
            (
                partitioned && !index.index_type.is_global(),
                "names no partition to delete from: set hoodie.index.type to GLOBAL_SIMPLE or GLOBAL_BLOOM, or make a table \
                 without partitions, or set skip",
            ),
        ];
        for (_, why) in refusals.iter().filter(|(refused, _)| *refused) {
            let text = format!(
                "{}: {}=delete: a message without a value {why}",
                self.origin(&keys::TOMBSTONES),
                keys::TOMBSTONES.name
            );
            self.problem("config-conflict", text);
        }
    }

    fn avro_values(&mut self) -> AvroValues {
        if !self.key_choice(&keys::VALUE_DESERIALIZER, &choices::VALUE_DESERIALIZERS, true) {
            if self.raw.value("--schemaprovider-class").is_none() {
                let text = "ByteArrayDeserializer needs --schemaprovider-class: bare Avro does not say what it is";
                self.problem("config-missing", text.into());
            }
            return AvroValues::Bare;
        }
        match self.registry() {
            Some(registry) => AvroValues::Registered(registry),
            None => {
                self.required(&keys::REGISTRY_URL);
                AvroValues::Bare
            }
        }
    }

    /// Says what of a Kafka source's settings another source does not look at.
    pub(super) fn not_kafka(&mut self) {
        let settings = &self.settings;
        let given =
            keys::ALL.iter().filter(|key| key.is_kafkas()).filter_map(|key| Some((key.name, settings.get(key)?)));
        let told = given.map(|(name, s)| format!("{}: {name} has no effect: it is for Kafka sources", s.origin));
        let told: Vec<String> = told.collect();
        self.settings.warnings.extend(told);
    }

    /// Every setting that is neither Hudi's nor Spark's, by librdkafka's names and checked by librdkafka itself.
    fn client(&mut self) -> BTreeMap<String, String> {
        let ignored = self.list(&keys::IGNORED_PREFIXES);
        let given: Vec<(String, String, String)> = self
            .settings
            .all()
            .filter(|(name, _)| !["hoodie.", "spark."].iter().any(|prefix| name.starts_with(prefix)))
            .filter(|(name, _)| !is_hadoops(name.strip_prefix("hadoop.").unwrap_or(name)))
            .filter(|(name, _)| !ignored.iter().any(|prefix| name.starts_with(prefix)))
            .map(|(name, setting)| (name.to_string(), setting.value.clone(), setting.origin.clone()))
            .collect();
        let mut client = BTreeMap::new();
        let all: BTreeMap<&str, &str> = given.iter().map(|(k, v, _)| (k.as_str(), v.as_str())).collect();
        let mut idle = Vec::new();
        for (name, value, origin) in &given {
            let of_registry = OF_THE_REGISTRY.iter().any(|prefix| name.starts_with(prefix));
            let ours = keys::ALL.iter().any(|k| k.name == name) && name != "bootstrap.servers" && name != "group.id";
            if of_registry || ours || IDLE_PREFIXES.iter().any(|prefix| name.starts_with(prefix)) {
                continue;
            }
            self.used.insert(name.clone());
            if WITHOUT_EFFECT.contains(&name.as_str()) {
                idle.push(name.as_str());
                continue;
            }
            match translate(name, value, &all) {
                Ok(pairs) => {
                    for (key, value) in pairs {
                        if let Err(why) = check(&key, &value) {
                            self.problem("config-kafka-client", format!("{origin}: {name}: {why}"));
                        }
                        client.insert(key, value);
                    }
                }
                Err(why) => self.problem("config-unsupported", format!("{origin}: {name}: {why}")),
            }
        }
        if !idle.is_empty() {
            let text = format!("settings of a Java client that have no effect here: {}", idle.join(", "));
            self.settings.warnings.push(text);
        }
        client
    }
}

type Pairs = Vec<(String, String)>;

/// A setting of a Java client in librdkafka's words; `all`: every setting, since some mean something only together.
fn translate(name: &str, value: &str, all: &BTreeMap<&str, &str>) -> Result<Pairs, String> {
    let same = |name: &str| Ok(vec![(name.to_string(), value.to_string())]);
    if let Some((_, why)) = JAVA_CODE.iter().find(|(n, _)| *n == name) {
        return Err(why.to_string());
    }
    if let Some((_, renamed)) = RENAMED.iter().find(|(n, _)| *n == name) {
        return same(renamed);
    }
    match name {
        "sasl.jaas.config" => jaas(value),
        "ssl.endpoint.identification.algorithm" if value.trim().is_empty() => {
            Ok(vec![(name.to_string(), "none".to_string())])
        }
        "ssl.truststore.location" => match store_type(all, "ssl.truststore.type", value) {
            "PEM" => same("ssl.ca.location"),
            _ => Err(JKS.to_string()),
        },
        "ssl.keystore.location" => match store_type(all, "ssl.keystore.type", value) {
            "PEM" => Ok(vec![
                ("ssl.certificate.location".to_string(), value.to_string()),
                ("ssl.key.location".to_string(), value.to_string()),
            ]),
            "PKCS12" => same("ssl.keystore.location"),
            _ => Err(JKS.to_string()),
        },
        // Said with the store's location.
        "ssl.truststore.type" | "ssl.keystore.type" | "ssl.truststore.password" => Ok(Vec::new()),
        _ => same(name),
    }
}

/// JKS unless the type or the file's ending says otherwise.
fn store_type(all: &BTreeMap<&str, &str>, key: &str, location: &str) -> &'static str {
    let stated = all.get(key).map(|t| t.trim().to_ascii_uppercase());
    let ending = location.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
    match (stated.as_deref(), ending.as_str()) {
        (Some("PEM"), _) | (None, "pem" | "crt" | "cer") => "PEM",
        (Some("PKCS12"), _) | (None, "p12" | "pfx") => "PKCS12",
        _ => "JKS",
    }
}

/// The login modules of `sasl.jaas.config` that librdkafka can do the work of.
fn jaas(text: &str) -> Result<Pairs, String> {
    let module = text.split_whitespace().next().unwrap_or_default();
    let module = module.rsplit('.').next().unwrap_or_default();
    let option = |name: &str| jaas_option(text, name);
    let wanted: &[(&str, &str)] = match module {
        "PlainLoginModule" | "ScramLoginModule" => &[("username", "sasl.username"), ("password", "sasl.password")],
        "Krb5LoginModule" => &[
            ("principal", "sasl.kerberos.principal"),
            ("keyTab", "sasl.kerberos.keytab"),
            ("serviceName", "sasl.kerberos.service.name"),
        ],
        "OAuthBearerLoginModule" => &[
            ("clientId", "sasl.oauthbearer.client.id"),
            ("clientSecret", "sasl.oauthbearer.client.secret"),
            ("scope", "sasl.oauthbearer.scope"),
        ],
        _ => {
            return Err(format!(
                "login module {module:?} is Java code: PlainLoginModule, ScramLoginModule, Krb5LoginModule and \
                 OAuthBearerLoginModule are understood"
            ));
        }
    };
    let found: Pairs = wanted.iter().filter_map(|(java, ours)| Some((ours.to_string(), option(java)?))).collect();
    if found.is_empty() {
        let names: Vec<&str> = wanted.iter().map(|(java, _)| *java).collect();
        return Err(format!("{module} without {}", names.join(", ")));
    }
    Ok(found)
}

fn jaas_option(text: &str, name: &str) -> Option<String> {
    let pattern = format!(r#"(?:^|\s){name}\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|([^\s;]+))"#);
    let found = regex::Regex::new(&pattern).expect("a good pattern").captures(text)?;
    let value = (1..=3).find_map(|i| found.get(i)).map(|m| m.as_str())?;
    Some(value.replace("\\\"", "\"").replace("\\\\", "\\"))
}

/// Asks librdkafka whether it takes the setting.
fn check(name: &str, value: &str) -> Result<(), String> {
    use rdkafka::error::KafkaError;
    match rdkafka::ClientConfig::new().set(name, value).create_native_config() {
        Ok(_) => Ok(()),
        Err(KafkaError::ClientConfig(code, why, ..)) => match code {
            rdkafka::types::RDKafkaConfRes::RD_KAFKA_CONF_UNKNOWN => {
                let near = keys::nearest(name).or_else(|| nearest_client_key(name));
                let hint = near.map(|n| format!("; did you mean {n}?")).unwrap_or_default();
                Err(format!("not a setting of Hudi or of a Kafka client{hint}"))
            }
            _ => Err(mask_value(name, &why)),
        },
        Err(e) => Err(e.to_string()),
    }
}

/// Settings that people do set, for suggestions.
const CLIENT_KEYS: &[&str] = &[
    "bootstrap.servers",
    "security.protocol",
    "sasl.mechanism",
    "sasl.username",
    "sasl.password",
    "sasl.jaas.config",
    "sasl.kerberos.service.name",
    "ssl.ca.location",
    "ssl.certificate.location",
    "ssl.key.location",
    "ssl.key.password",
    "ssl.endpoint.identification.algorithm",
    "isolation.level",
    "fetch.min.bytes",
    "fetch.max.bytes",
    "fetch.max.wait.ms",
    "max.partition.fetch.bytes",
    "client.id",
    "client.rack",
    "group.id",
    "auto.offset.reset",
    "request.timeout.ms",
    "reconnect.backoff.ms",
    "reconnect.backoff.max.ms",
    "schema.registry.url",
    "basic.auth.user.info",
    "basic.auth.credentials.source",
];

fn nearest_client_key(name: &str) -> Option<&'static str> {
    let scored = CLIENT_KEYS.iter().map(|known| (strsim::normalized_damerau_levenshtein(known, name), *known));
    scored.filter(|(score, _)| *score >= 0.75).max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn java_settings_become_librdkafkas() {
        let none = BTreeMap::new();
        let pem = BTreeMap::from([("ssl.truststore.type", "PEM"), ("ssl.keystore.type", "PKCS12")]);
        let plain =
            r#"org.apache.kafka.common.security.plain.PlainLoginModule required username="me" password="a\"b c";"#;
        type Case<'a> = (&'a str, &'a str, &'a BTreeMap<&'a str, &'a str>, &'a [(&'a str, &'a str)]);
        let cases: [Case; 9] = [
            ("sasl.jaas.config", plain, &none, &[("sasl.username", "me"), ("sasl.password", "a\"b c")]),
            ("fetch.max.wait.ms", "5", &none, &[("fetch.wait.max.ms", "5")]),
            ("ssl.truststore.location", "/x/ca.pem", &none, &[("ssl.ca.location", "/x/ca.pem")]),
            ("ssl.truststore.location", "/x/ca", &pem, &[("ssl.ca.location", "/x/ca")]),
            ("ssl.keystore.location", "/x/store", &pem, &[("ssl.keystore.location", "/x/store")]),
            (
                "ssl.keystore.location",
                "/x/k.pem",
                &none,
                &[("ssl.certificate.location", "/x/k.pem"), ("ssl.key.location", "/x/k.pem")],
            ),
            ("ssl.endpoint.identification.algorithm", "", &none, &[("ssl.endpoint.identification.algorithm", "none")]),
            ("security.protocol", "SASL_SSL", &none, &[("security.protocol", "SASL_SSL")]),
            ("ssl.truststore.password", "x", &none, &[]),
        ];
        for (name, value, all, want) in cases {
            let got = translate(name, value, all).expect(name);
            let got: Vec<(&str, &str)> = got.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
            assert_eq!(got, want, "{name}={value}");
            got.iter().filter(|(k, _)| !k.ends_with("location")).for_each(|(k, v)| check(k, v).expect(k));
        }
        let refused = [
            ("ssl.truststore.location", "/x/trust.jks", "keytool"),
            ("ssl.keystore.location", "/x/keys", "PEM"),
            ("interceptor.classes", "a.B", "Java"),
            ("sasl.jaas.config", "com.example.MyLoginModule required;", "MyLoginModule"),
        ];
        for (name, value, word) in refused {
            let why = translate(name, value, &none).expect_err(name);
            assert!(why.contains(word), "{name}: {why}");
        }
    }

    #[test]
    fn librdkafka_judges_names_and_values() {
        assert!(check("fetch.min.bytes", "1").is_ok());
        let why = check("fetch.min.byte", "1").expect_err("no such setting");
        assert!(why.contains("fetch.min.bytes"), "{why}");
        assert!(check("fetch.min.bytes", "many").is_err());
        let why = check("sasl.pasword", "hunter2").expect_err("no such setting");
        assert!(why.contains("sasl.password") && !why.contains("hunter2"), "{why}");
    }
}
