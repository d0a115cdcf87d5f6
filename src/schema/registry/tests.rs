//! Against a registry that answers by a table, on a port of its own.

use super::*;
use axum::Router;
use axum::http::{HeaderMap, Uri};
use std::sync::atomic::{AtomicU32, Ordering};

/// A path, the status and the body that it is answered with.
type Answer = (&'static str, u16, String);

struct Stub {
    base: String,
    asked: Arc<AtomicU32>,
    served: tokio::task::JoinHandle<()>,
}

impl Drop for Stub {
    fn drop(&mut self) {
        self.served.abort();
    }
}

/// Asks for `user:password`, if that is not empty.
async fn stub(answers: Vec<Answer>, user_info: &'static str) -> Stub {
    use base64::Engine;
    let asked = Arc::new(AtomicU32::new(0));
    let count = asked.clone();
    let wanted = format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(user_info));
    let answer = move |uri: Uri, headers: HeaderMap| {
        count.fetch_add(1, Ordering::Relaxed);
        let authorised =
            user_info.is_empty() || headers.get("authorization").is_some_and(|given| given == wanted.as_str());
        let found = answers.iter().find(|(path, _, _)| *path == uri.path());
        let (status, body) = match (authorised, found) {
            (false, _) => (401, r#"{"error_code":40101,"message":"Unauthorized"}"#.to_owned()),
            (true, Some((_, status, body))) => (*status, body.clone()),
            (true, None) => (404, r#"{"error_code":40403,"message":"Schema not found"}"#.to_owned()),
        };
        async move { (axum::http::StatusCode::from_u16(status).expect("a status"), body) }
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let base = format!("http://{}", listener.local_addr().expect("an address"));
    let served =
        tokio::spawn(async move { axum::serve(listener, Router::new().fallback(answer)).await.expect("served") });
    Stub { base, asked, served }
}

fn address(url: &str) -> RegistryAddress {
    RegistryAddress { url: url.parse().expect(url), credentials: None }
}

fn registry(urls: &[&str]) -> Registry {
    let addresses = urls.iter().map(|url| address(url)).collect();
    Registry::open(&RegistryConfig { addresses, ..RegistryConfig::default() }).expect("a registry")
}

fn body(schema: &str, references: &str) -> String {
    format!(r#"{{"schema":{},"references":[{references}]}}"#, Value::from(schema))
}

const STRING: &str = r#""string""#;

#[tokio::test]
async fn an_id_is_fetched_once_a_process() {
    let stub = stub(vec![("/schemas/ids/11", 200, body(STRING, ""))], "").await;
    let registry = registry(&[&stub.base]);
    let asks = (0..8).map(|_| registry.clone()).map(|r| async move { r.schema_by_id(11).await });
    for schema in futures::future::join_all(asks).await {
        assert_eq!(&*schema.expect("known"), STRING);
    }
    assert_eq!(stub.asked.load(Ordering::Relaxed), 1);
    for _ in 0..3 {
        let error = registry.schema_by_id(99).await.expect_err("unknown");
        assert!(error.is_about_one_schema() && !error.is_retryable());
        let text = error.to_string();
        for word in [stub.base.as_str(), "schema id 99", "HTTP 404", "40403", "Schema not found"] {
            assert!(text.contains(word), "{word:?} is missing in {text}");
        }
    }
    assert_eq!(stub.asked.load(Ordering::Relaxed), 2, "an unknown id is remembered, too");
}

#[tokio::test]
async fn subjects_are_asked_for_each_time_below_any_prefix() {
    let answers = vec![
        ("/base/subjects/trip-value/versions/latest", 200, body(STRING, "")),
        ("/base/subjects/a%2Fb/versions/latest", 200, body(r#""int""#, "")),
    ];
    let stub = stub(answers, "").await;
    let registry = registry(&[&format!("{}/base/", stub.base)]);
    let whole = |subject: &str| address(&format!("{}/base/subjects/{subject}/versions/latest", stub.base));
    for _ in 0..2 {
        assert_eq!(&*registry.subject(&whole("trip-value")).await.expect("there"), STRING);
    }
    assert_eq!(&*registry.subject(&whole("a%2Fb")).await.expect("there"), r#""int""#);
    assert_eq!(stub.asked.load(Ordering::Relaxed), 3);
    let error = registry.subject(&whole("other")).await.expect_err("not there").to_string();
    assert!(error.contains("subjects/other") && error.contains("40403"), "{error}");
}

#[tokio::test]
async fn credentials_go_to_the_registry_and_nowhere_else() {
    let stub = stub(vec![("/schemas/ids/1", 200, body(STRING, ""))], "me:p@:w").await;
    let credentials = |password: &str| Some(Credentials { user: "me".into(), password: password.into() });
    let open = |own: Option<Credentials>, general: Option<Credentials>| {
        let addresses = vec![RegistryAddress { credentials: own, ..address(&stub.base) }];
        Registry::open(&RegistryConfig { addresses, credentials: general, ..RegistryConfig::default() })
            .expect("opened")
    };
    open(credentials("p@:w"), None).schema_by_id(1).await.expect("by the address");
    open(None, credentials("p@:w")).schema_by_id(1).await.expect("by the settings");
    open(credentials("p@:w"), credentials("wrong")).schema_by_id(1).await.expect("the address's own come first");
    for registry in [open(None, None), open(credentials("s3cret"), None)] {
        let error = registry.schema_by_id(1).await.expect_err("refused");
        let text = error.to_string();
        assert!(text.contains("HTTP 401") && text.contains("basic.auth.user.info"), "{text}");
        assert!(!error.is_retryable() && !error.is_about_one_schema(), "no reason to skip records: {text}");
        assert!(!format!("{error:?} {registry:?}").contains("s3cret"));
    }
}

#[tokio::test]
async fn a_registry_that_is_down_is_passed_over_and_may_come_back() {
    let dead = std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
    let dead = format!("http://{dead}");
    let failing = stub(vec![("/schemas/ids/1", 500, r#"{"error_code":50001,"message":"store"}"#.into())], "").await;
    let alive = stub(vec![("/schemas/ids/1", 200, body(STRING, ""))], "").await;
    for urls in [&[dead.as_str()][..], &[&failing.base], &[&dead, &failing.base]] {
        let error = registry(urls).schema_by_id(1).await.expect_err("no answer");
        let text = error.to_string();
        assert!(error.is_retryable() && text.contains(urls.last().expect("one")), "{text}");
    }
    let registry = registry(&[&dead, &failing.base, &alive.base]);
    assert_eq!(&*registry.schema_by_id(1).await.expect("the third has it"), STRING);
    let asked = alive.asked.load(Ordering::Relaxed);
    registry.schema_by_id(1).await.expect("known");
    assert_eq!(alive.asked.load(Ordering::Relaxed), asked);
}

#[tokio::test]
async fn answers_that_are_none_are_told_apart() {
    let answers = vec![
        ("/schemas/ids/1", 200, "<html>".to_owned()),
        ("/schemas/ids/2", 200, r#"{"schema":"syntax","schemaType":"PROTOBUF"}"#.to_owned()),
        ("/schemas/ids/4", 404, "no such page".to_owned()),
        ("/schemas/ids/3", 200, r#"{"schema":"\"int\"","schemaType":"AVRO"}"#.to_owned()),
    ];
    let stub = stub(answers, "").await;
    let registry = registry(&[&stub.base]);
    for (id, word, schema) in
        [(1, "not the answer of a schema registry", false), (2, "PROTOBUF", true), (4, "HTTP 404", false)]
    {
        let error = registry.schema_by_id(id).await.expect_err(word);
        assert!(error.to_string().contains(word) && !error.is_retryable(), "{error}");
        assert_eq!(error.is_about_one_schema(), schema, "{error}");
    }
    assert_eq!(&*registry.schema_by_id(3).await.expect("good"), r#""int""#);
}

#[tokio::test]
async fn types_of_other_subjects_are_written_out_where_they_are_used() {
    let outer = r#"{"type":"record","name":"Outer","namespace":"n","fields":[
        {"name":"kind","type":"k.Kind"},{"name":"a","type":["null","Inner"]},{"name":"b","type":{"type":"array","items":"n.Inner"}}]}"#;
    let inner =
        r#"{"type":"record","name":"Inner","namespace":"n","fields":[{"name":"kind","type":"k.Kind","default":"X"}]}"#;
    let kind = r#"{"type":"enum","name":"k.Kind","symbols":["X"]}"#;
    let reference = |subject: &str| format!(r#"{{"name":"any","subject":"{subject}","version":3}}"#);
    let answers = vec![
        ("/schemas/ids/1", 200, body(outer, &format!("{},{}", reference("inner"), reference("kind")))),
        ("/x/subjects/outer/versions/1", 200, body(outer, &reference("inner"))),
        ("/subjects/inner/versions/3", 200, body(inner, &reference("kind"))),
        ("/x/subjects/inner/versions/3", 200, body(inner, &reference("kind"))),
        ("/subjects/kind/versions/3", 200, body(kind, "")),
        ("/x/subjects/kind/versions/3", 200, body(kind, "")),
        ("/schemas/ids/2", 200, body(outer, &reference("gone"))),
    ];
    let stub = stub(answers, "").await;
    let registry = registry(&[&stub.base]);
    let whole = registry.schema_by_id(1).await.expect("all there");
    assert_eq!(stub.asked.load(Ordering::Relaxed), 3, "each subject once");
    let subject = registry.subject(&address(&format!("{}/x/subjects/outer/versions/1", stub.base))).await;
    for text in [whole, subject.expect("all there")] {
        let schema = crate::schema::TableSchema::from_avro(&text).expect("stands alone");
        assert_eq!(schema.arrow.fields().len(), 3, "{text}");
        assert_eq!(text.matches("symbols").count(), 1, "{text}");
    }
    let error = registry.schema_by_id(2).await.expect_err("a reference is gone").to_string();
    assert!(error.contains("subject gone version 3, which schema id 2 refers to"), "{error}");
}

#[test]
fn certificates_must_be_in_pem() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = folder.path().join("store");
    std::fs::write(&store, [0xfe, 0xed, 0xfe, 0xed, 0, 0, 0, 2]).expect("written");
    let trusting = |path| RegistryConfig { truststore: Some(path), ..RegistryConfig::default() };
    let showing = |path| RegistryConfig { keystore: Some(path), ..RegistryConfig::default() };
    for config in [trusting(store.display().to_string()), showing(store.display().to_string())] {
        let error = Registry::open(&config).expect_err("a Java keystore").to_string();
        assert!(error.contains("not in PEM") && error.contains("openssl"), "{error}");
    }
    std::fs::write(&store, "-----BEGIN CERTIFICATE-----\n-----BEGIN ENCRYPTED PRIVATE KEY-----\n").expect("written");
    let error = Registry::open(&showing(store.display().to_string())).expect_err("no key of use").to_string();
    assert!(error.contains("nocrypt"), "{error}");
}
