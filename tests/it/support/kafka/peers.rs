//! The broker and the registry.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use super::super::services::Held;
use super::Topic;
use super::topic::wait_for_partitions;
use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::types::RDKafkaErrorCode;
use serde_json::{Value, json};

/// A broker: `127.0.0.1`, plain text, no topics of its own.
pub struct Broker {
    held: Held,
    topics: AtomicU32,
}

impl Broker {
    /// The one of this test run.
    pub fn shared() -> &'static Broker {
        static BROKER: OnceLock<Broker> = OnceLock::new();
        BROKER.get_or_init(Broker::start)
    }

    /// One for a test that takes it down.
    pub fn start() -> Broker {
        Broker { held: Held::start(&["kafka"]), topics: AtomicU32::new(0) }
    }

    pub fn endpoint(&self) -> &str {
        self.held.endpoint(0)
    }

    /// Takes it down; what it stored stays.
    pub fn stop(&self) {
        self.held.stop("kafka");
    }

    /// Starts it again at the same address, with what it stored.
    pub fn restart(&self) {
        self.held.restart("kafka", self.endpoint());
    }

    /// Stops it in its tracks: connections stay, and nobody answers.
    pub fn freeze(&self) {
        self.held.signal("kafka", "STOP");
    }

    /// Lets it go on.
    pub fn thaw(&self) {
        self.held.signal("kafka", "CONT");
    }

    /// A new topic, called `name` and a number that no other test of this run has.
    pub fn topic(&self, name: &str, partitions: usize) -> Topic {
        self.topic_with(name, partitions, &[])
    }

    /// As [`Broker::topic`], with settings of the topic.
    pub fn topic_with(&self, name: &str, partitions: usize, settings: &[(&str, &str)]) -> Topic {
        let name = format!("{name}-{}", self.topics.fetch_add(1, Ordering::Relaxed));
        create(self.endpoint(), &name, partitions, settings);
        Topic::new(self.endpoint(), name)
    }
}

/// Makes the topic, waiting for an older one of its name to be gone.
pub(super) fn create(endpoint: &str, name: &str, partitions: usize, settings: &[(&str, &str)]) {
    let admin = admin(endpoint);
    let partitions_wanted = i32::try_from(partitions).expect("a few partitions");
    super::super::wait_for("a topic to be made", || {
        let mut topic = NewTopic::new(name, partitions_wanted, TopicReplication::Fixed(1));
        for (key, value) in settings {
            topic = topic.set(key, value);
        }
        let made = block_on(admin.create_topics([&topic], &AdminOptions::new())).expect("the broker answers");
        match &made[0] {
            Ok(_) => true,
            Err((_, RDKafkaErrorCode::TopicAlreadyExists)) => false,
            Err((_, error)) => panic!("topic {name} cannot be made: {error}"),
        }
    });
    wait_for_partitions(endpoint, name, partitions);
}

pub(super) fn client(endpoint: &str) -> ClientConfig {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", endpoint);
    config
}

pub(super) fn admin(endpoint: &str) -> AdminClient<DefaultClientContext> {
    client(endpoint).create().expect("make an admin client")
}

pub(super) fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("make a runtime");
    runtime.block_on(future)
}

/// A schema registry, and the gate before it that asks for a password.
pub struct Registry {
    held: Held,
}

impl Registry {
    /// The one of this test run.
    pub fn shared() -> &'static Registry {
        static REGISTRY: OnceLock<Registry> = OnceLock::new();
        REGISTRY.get_or_init(|| Registry { held: Held::start(&["schema-registry", "schema-registry-auth"]) })
    }

    /// Its address, open to all.
    pub fn url(&self) -> &str {
        self.held.endpoint(0)
    }

    /// Its address behind basic auth, user and password in it.
    pub fn url_with_password(&self) -> &str {
        self.held.endpoint(1)
    }

    /// Registers an Avro schema; its id.
    pub fn register(&self, subject: &str, schema: &str) -> u32 {
        self.register_referring(subject, schema, json!([]))
    }

    /// As [`Registry::register`], with references `[{"name", "subject", "version"}]` to other subjects.
    pub fn register_referring(&self, subject: &str, schema: &str, references: Value) -> u32 {
        let url = format!("{}/subjects/{subject}/versions", self.url());
        let body = json!({ "schema": schema, "schemaType": "AVRO", "references": references }).to_string();
        let answer = block_on(async {
            let request = reqwest::Client::new().post(url).header("Content-Type", "application/json").body(body);
            request.send().await?.error_for_status()?.text().await
        });
        let answer: Value = serde_json::from_str(&answer.expect("the registry answers")).expect("an answer is JSON");
        answer["id"].as_u64().and_then(|id| id.try_into().ok()).unwrap_or_else(|| panic!("no id in {answer}"))
    }
}
