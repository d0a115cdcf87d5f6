//! The services that tables lean on, as the tests see them: what every other test of them builds on.

use std::io::{Read, Write};
use std::net::TcpStream;

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
    let store = s3.bucket(s3.endpoint());
    let object = Path::from(format!("{}/once", s3.folder("services")));
    store.put_opts(&object, "first".into(), PutMode::Create.into()).await.expect("a new object");
    let again = store.put_opts(&object, "second".into(), PutMode::Create.into()).await;
    assert!(matches!(again, Err(Error::AlreadyExists { .. })), "{again:?}");
    assert_eq!(std::fs::read(s3.path(object.as_ref())).expect("a file"), b"first");
    let read = store.get(&object).await.expect("it is there");
    assert_eq!(read.bytes().await.expect("its bytes"), "first");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gate_spoils_the_requests_that_it_is_told_to() {
    needs_peers!();
    let s3 = S3::shared();
    let gate = Gate::before(s3.endpoint());
    let store = s3.bucket(gate.endpoint());
    let folder = s3.folder("gate");
    for (spoil, heard) in
        [(Spoil::Busy, false), (Spoil::Cut, false), (Spoil::Lost, true), (Spoil::Denied, true), (Spoil::Torn, true)]
    {
        let object = |n: u32| Path::from(format!("{folder}/{spoil:?}-{n}"));
        let put = async |n: u32| store.put(&object(n), "x".into()).await;
        gate.spoil(spoil, Requests::Changes, 2);
        put(1).await.expect("the first passes");
        store.get(&object(1)).await.expect("a read does not count");
        put(2).await.expect_err("the second is spoilt");
        put(3).await.expect("the third passes");
        assert_eq!(gate.open(), 1, "{spoil:?}");
        assert_eq!(s3.path(object(2).as_ref()).exists(), heard, "{spoil:?}");
        assert_eq!(gate.asked().len(), 4, "{spoil:?}");

        gate.spoil_from(spoil, Requests::All, 1..);
        put(4).await.expect_err("all are spoilt");
        store.get(&object(1)).await.map(drop).expect_err("all are spoilt");
        assert_eq!((gate.open(), gate.asked().len()), (2, 2), "{spoil:?}");
    }
}
