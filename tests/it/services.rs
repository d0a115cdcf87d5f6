//! The services that tables lean on, as the tests see them: what every other test of them builds on.

use std::io::{Read, Write};
use std::net::TcpStream;

use object_store::aws::AmazonS3Builder;
use object_store::path::Path;
use object_store::{Error, ObjectStore, ObjectStoreExt, PutMode};

use crate::support::*;

/// One of ZooKeeper's four-letter words.
fn ask(zookeeper: &ZooKeeper, word: &str) -> String {
    let mut answer = String::new();
    let mut connection = TcpStream::connect(zookeeper.endpoint()).expect("ZooKeeper listens");
    connection.write_all(word.as_bytes()).expect("ask");
    connection.read_to_string(&mut answer).expect("an answer");
    answer
}

#[test]
fn zookeeper_answers_and_comes_back_at_its_address() {
    needs_peers!();
    let zookeeper = ZooKeeper::start();
    assert_eq!(ask(&zookeeper, "ruok"), "imok");
    zookeeper.stop();
    assert!(TcpStream::connect(zookeeper.endpoint()).is_err(), "it is down");
    zookeeper.restart();
    assert_eq!(ask(&zookeeper, "ruok"), "imok");
    assert_eq!(ask(ZooKeeper::shared(), "ruok"), "imok");
    assert_ne!(ZooKeeper::shared().port(), zookeeper.port());
}

#[tokio::test]
async fn the_s3_server_creates_an_object_once_and_stores_it_as_a_file() {
    needs_peers!();
    let s3 = S3::shared();
    let folder = s3.folder("services");
    let mut builder = AmazonS3Builder::new().with_url(s3.uri(&folder));
    for (name, value) in s3.environment(s3.endpoint()) {
        builder = builder.with_config(name.to_lowercase().parse().expect("a setting of object_store"), value);
    }
    let store = builder.build().expect("the settings suffice");

    let object = Path::from(format!("{folder}/once"));
    store.put_opts(&object, "first".into(), PutMode::Create.into()).await.expect("a new object");
    let again = store.put_opts(&object, "second".into(), PutMode::Create.into()).await;
    assert!(matches!(again, Err(Error::AlreadyExists { .. })), "{again:?}");
    assert_eq!(std::fs::read(s3.path(object.as_ref())).expect("a file"), b"first");
    let read = store.get(&object).await.expect("it is there");
    assert_eq!(read.bytes().await.expect("its bytes"), "first");
}
