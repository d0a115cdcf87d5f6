//! The tests' own means: the broker and the registry do what the tests take for granted.

use crate::support::*;

#[test]
fn a_topic_ends_where_its_messages_and_transaction_markers_end() {
    needs_peers!();
    let topic = Broker::shared().topic("peers", 2);
    topic.send(0, ["a", "b"]);
    topic.send_in_transaction(0, ["c"], End::Commit);
    topic.send_in_transaction(0, ["d"], End::Abort);
    topic.send(1, [Message::tombstone("k"), Message::from("").key("k").at(1)]);
    assert_eq!(topic.ends(), [6, 2]);
    topic.delete_before(0, 4);
    topic.grow(3);
    assert_eq!(topic.ends(), [6, 2, 0]);
    topic.commit_group("g", &[(0, 5), (1, 1)]);
    assert_eq!(topic.group_position("g"), [Some(5), Some(1), None]);
    topic.recreate(1);
    assert_eq!(topic.ends(), [0]);
}

#[test]
fn a_broker_comes_back_with_what_it_stored() {
    needs_peers!();
    let broker = Broker::start();
    let topic = broker.topic("peers", 1);
    topic.send(0, ["a"]);
    broker.stop();
    broker.restart();
    assert_eq!(topic.ends(), [1]);
}

#[test]
fn the_registry_gives_ids_and_asks_for_a_password() {
    needs_peers!();
    let registry = Registry::shared();
    let schema = r#"{"type":"record","name":"R","fields":[{"name":"id","type":"string"}]}"#;
    let id = registry.register("peers-value", schema);
    assert_eq!(registry.register("peers-value", schema), id);
    assert!(registry.url_with_password().contains("peer-user:peer-secret@"));
}
