//! Schema registries: addresses, credentials, certificates.

use super::*;

const SUBJECT: &str =
    "hoodie.streamer.schemaprovider.registry.url=http://me:p%40%3aw@h:8081/base/subjects/s-value/versions/latest";

fn registry_call() -> Call {
    Call::new().flag("--schemaprovider-class", "org.apache.hudi.utilities.schema.SchemaRegistryProvider")
}

#[track_caller]
fn registry_of(call: Call) -> (RegistryAddress, Option<RegistryAddress>, RegistryConfig) {
    match call.ok().schema {
        SchemaProviderConfig::Registry(subjects) => (subjects.source, subjects.target, subjects.registry),
        other => panic!("{other:?}"),
    }
}

#[test]
fn registry_addresses_and_credentials_are_taken_apart_and_never_shown() {
    let call = registry_call().conf(SUBJECT).conf("schema.registry.url=http://a:1,https://u:v@b:2/c");
    let config = call.ok();
    assert!(!format!("{config:?}").contains("p@:w"), "credentials are printed");
    let (source, target, registry) = registry_of(call);
    assert_eq!(source.url.as_str(), "http://h:8081/base/subjects/s-value/versions/latest");
    let credentials = |user: &str, password: &str| Some(Credentials { user: user.into(), password: password.into() });
    assert_eq!((source.credentials, target), (credentials("me", "p@:w"), None));
    let urls: Vec<_> = registry.addresses.iter().map(|a| (a.url.as_str(), a.credentials.clone())).collect();
    assert_eq!(urls, [("http://a:1/", None), ("https://b:2/c", credentials("u", "v"))]);
    assert_eq!(registry.credentials, None);

    let call = registry_call().conf(SUBJECT);
    for source in
        ["", "basic.auth.credentials.source=USER_INFO", "schema.registry.basic.auth.credentials.source=user_info"]
    {
        let call = match source {
            "" => call.clone(),
            source => call.clone().conf(source),
        };
        for name in ["basic.auth.user.info", "schema.registry.basic.auth.user.info"] {
            let registry = registry_of(call.clone().conf(&format!("{name}=k:a:b"))).2;
            assert_eq!(registry.credentials, credentials("k", "a:b"), "{source} {name}");
        }
    }
    let call = call.conf("basic.auth.credentials.source=URL").conf("basic.auth.user.info=k:s");
    assert_eq!(registry_of(call.clone()).2.credentials, None);
    assert!(call.ok().warnings.iter().any(|w| w.contains("basic.auth.user.info has no effect")));
}

#[test]
fn a_target_has_an_address_of_its_own_or_none() {
    let target = "hoodie.streamer.schemaprovider.registry.targetUrl=http://h/subjects/t/versions/1";
    let url = registry_of(registry_call().conf(SUBJECT).conf(target)).1.map(|target| target.url.to_string());
    assert_eq!(url.as_deref(), Some("http://h/subjects/t/versions/1"));
    let call =
        Call::new().flag("--schemaprovider-class", "NullTargetSchemaRegistryProvider").conf(SUBJECT).conf(target);
    assert_eq!(registry_of(call.clone()).1, None);
    assert!(call.ok().warnings.iter().any(|w| w.contains("targetUrl has no effect")));
}

#[test]
fn what_cannot_reach_a_registry_is_told_at_once() {
    let cases: &[(&str, &str, &[&str])] = &[
        ("schema.registry.url=localhost:8081", "config-bad-value", &["schema.registry.url", "http://host:port"]),
        ("schema.registry.url=http://u:secret@", "config-bad-value", &["schema.registry.url"]),
        ("basic.auth.credentials.source=SASL_INHERIT", "config-unsupported", &["USER_INFO"]),
        ("basic.auth.credentials.source=USER_INFO", "config-missing", &["basic.auth.user.info"]),
        ("basic.auth.user.info=secret", "config-bad-value", &["user:password"]),
        ("schema.registry.ssl.truststore.location=/t.jks", "config-unsupported", &["/t.jks", "keytool", "openssl"]),
        ("schema.registry.ssl.keystore.location=/k.P12", "config-unsupported", &["keystore.location", "openssl"]),
    ];
    for (conf, code, words) in cases {
        let problem = registry_call().conf(SUBJECT).conf(conf).problem();
        assert_eq!(problem.code, *code, "{conf}: {}", problem.text);
        words.iter().for_each(|w| assert!(problem.text.contains(w), "{conf}: {w:?} is missing in {}", problem.text));
        assert!(!problem.text.contains("secret"), "{}", problem.text);
    }
    let jks = registry_call().conf(SUBJECT).conf("schema.registry.ssl.truststore.location=/t");
    assert_eq!(registry_of(jks.clone()).2.truststore.as_deref(), Some("/t"));
    assert_eq!(jks.conf("schema.registry.ssl.truststore.type=JKS").problem().code, "config-unsupported");
    let problem = registry_call().problem();
    assert!(problem.code == "config-missing" && problem.text.contains("registry.url"), "{}", problem.text);
    let problem = Call::new().conf(SUBJECT).problem();
    assert!(problem.code == "config-missing" && problem.text.contains("SchemaRegistryProvider"), "{}", problem.text);
}
