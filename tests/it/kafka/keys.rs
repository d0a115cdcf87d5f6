//! Settings of a Kafka client: passed on, put into librdkafka's words, or refused by name.

use super::*;

#[test]
fn a_misspelt_setting_is_told_with_the_right_one() {
    needs_peers!();
    let mut job = job("config", 1);
    job.upsert(&[event("a", 1)]);
    let before = job.table.timeline();
    for (wrong, value, right) in [
        ("hoodie.streamer.source.kafka.topik", "x", "hoodie.streamer.source.kafka.topic"),
        (
            "hoodie.streamer.source.kafka.enable.failOnDataloss",
            "true",
            "hoodie.streamer.source.kafka.enable.failOnDataLoss",
        ),
        ("auto.ofset.reset", "earliest", "auto.offset.reset"),
        ("bootstrap.server", "127.0.0.1:1", "bootstrap.servers"),
        ("fetch.max.byte", "1000", "fetch.max.bytes"),
        ("isolation.levels", "read_committed", "isolation.level"),
    ] {
        job.call.clone().conf(wrong, value).run().fails_with(2, &[wrong]).says(&[right]);
    }
    assert_eq!(before, job.table.timeline());
}

#[test]
fn a_wrong_value_is_told_with_its_key() {
    needs_peers!();
    let job = job("config", 1);
    for (key, value) in [
        ("auto.offset.reset", "earliset"),
        ("hoodie.streamer.source.kafka.checkpoint.type", "time"),
        ("isolation.level", "read_everything"),
        ("fetch.max.bytes", "many"),
        ("security.protocol", "HTTP"),
        ("hoodie.streamer.kafka.source.maxEvents", "0"),
    ] {
        job.call.clone().conf(key, value).run().fails_with(2, &[key]);
    }
    for missing in ["bootstrap.servers", "hoodie.streamer.source.kafka.topic"] {
        job.call.clone().without(missing).run().fails_with(2, &[missing]);
    }
    assert!(job.table.commits().is_empty());
}

/// A properties file of a Java Streamer works as it is, as far as librdkafka can do the same.
#[test]
fn settings_of_a_java_client_are_translated_or_refused() {
    needs_peers!();
    let mut job = job("config", 1);
    for (key, value) in [
        ("key.deserializer", "org.apache.kafka.common.serialization.StringDeserializer"),
        ("value.deserializer", "org.apache.kafka.common.serialization.StringDeserializer"),
        ("enable.auto.commit", "false"),
        ("max.poll.records", "500"),
        ("fetch.max.wait.ms", "100"),
        ("receive.buffer.bytes", "65536"),
        ("request.timeout.ms", "30000"),
        ("session.timeout.ms", "30000"),
        ("max.partition.fetch.bytes", "1048576"),
        ("client.id", "streamer"),
        ("security.protocol", "PLAINTEXT"),
    ] {
        job.call = job.call.clone().conf(key, value);
    }
    job.upsert(&[event("a", 1)]);
    job.stands_at(&[1]);
    let before = job.table.timeline();
    for (key, value, hint) in [
        ("interceptor.classes", "com.example.Audit", "Java"),
        ("ssl.truststore.location", "/etc/trust.jks", "PEM"),
        (
            "sasl.jaas.config",
            "com.example.OurLoginModule required user=\"u\" password=\"secret-in-jaas\";",
            "OurLoginModule",
        ),
    ] {
        let run = job.call.clone().conf(key, value).run().fails_with(2, &[key]).says(&[hint]);
        assert!(!run.stderr.contains("secret-in-jaas"), "a password is shown\n{run}");
    }
    assert_eq!(before, job.table.timeline());
}

#[test]
fn a_broker_that_is_not_there_is_named() {
    needs_peers!();
    let job = job("config", 1);
    let call = job.call.clone().conf("bootstrap.servers", "127.0.0.1:9").conf("default.api.timeout.ms", "2000");
    call.run().fails_with(1, &["127.0.0.1:9"]);
    assert!(job.table.commits().is_empty());
}
