//! Keys of Hadoop's file systems.

use super::*;

#[test]
fn hadoops_keys_are_read_in_every_spelling() {
    for (confs, want) in [
        (vec![], None),
        (vec!["fs.s3a.access.key=me", "fs.s3a.secret.key=my"], Some(("me", "my"))),
        (vec!["spark.hadoop.fs.s3a.access.key=me", "hadoop.fs.s3a.secret.key=my"], Some(("me", "my"))),
        (
            vec!["fs.s3a.access.key=me", "fs.s3a.secret.key=my", "spark.hadoop.fs.s3a.access.key=other"],
            Some(("me", "my")),
        ),
    ] {
        let config = confs.iter().fold(Call::new(), |call, conf| call.conf(conf)).ok();
        let keys = config.storage.s3.of_bucket("b").keys;
        let keys = keys.as_ref().map(|k| (k.access.expose(), k.secret.expose()));
        assert_eq!(keys, want, "{confs:?}");
        let told = config.warnings.iter().filter(|w| w.contains("fs.s3a")).collect::<Vec<_>>();
        assert!(told.is_empty(), "{told:?}");
    }
}

#[test]
fn a_buckets_own_settings_go_over_those_of_all() {
    let config = Call::new()
        .conf("fs.s3a.endpoint=http://all:9000")
        .conf("fs.s3a.path.style.access=true")
        .conf("fs.s3a.connection.timeout=30s")
        .conf("fs.s3a.attempts.maximum=3")
        .conf("fs.s3a.bucket.my.own.endpoint=own:1")
        .conf("fs.s3a.bucket.my.own.endpoint.region=eu-west-1")
        .conf("fs.s3a.bucket.my.own.connection.ssl.enabled=false")
        .ok();
    let (own, other) = (config.storage.s3.of_bucket("my.own"), config.storage.s3.of_bucket("own"));
    assert_eq!((own.endpoint.as_deref(), own.region.as_deref()), (Some("own:1"), Some("eu-west-1")));
    assert_eq!((own.ssl, own.path_style, own.attempts), (Some(false), Some(true), Some(3)));
    assert_eq!((other.endpoint.as_deref(), other.ssl), (Some("http://all:9000"), None));
    assert_eq!(other.timeout, Some(std::time::Duration::from_secs(30)));
}

#[test]
fn azures_settings_are_an_accounts_or_everybodys() {
    let config = Call::new()
        .conf("fs.azure.account.key.one.dfs.core.windows.net=k1")
        .conf("fs.azure.account.key=k")
        .conf("fs.azure.account.auth.type=OAuth")
        .conf("fs.azure.account.oauth2.client.endpoint=https://login.example.com/tenant-1/oauth2/token")
        .ok();
    let (one, two) = (config.storage.azure.of_account("one"), config.storage.azure.of_account("two"));
    assert_eq!(one.key.as_ref().map(|k| k.expose()), Some("k1"));
    assert_eq!(two.key.as_ref().map(|k| k.expose()), Some("k"));
    assert_eq!(two.tenant.as_deref(), Some("tenant-1"));
    assert_eq!(two.authority.as_deref(), Some("https://login.example.com"));
}

#[test]
fn what_cannot_be_done_is_refused_by_name() {
    for (conf, want) in [
        ("fs.s3a.access.key=me", "fs.s3a.secret.key is missing"),
        ("fs.s3a.session.token=t", "fs.s3a.access.key is missing"),
        ("fs.s3a.assumed.role.arn=arn:x", "fs.s3a.assumed.role.arn is not done: take the role outside"),
        ("fs.s3a.bucket.b.assumed.role.arn=arn:x", "fs.s3a.bucket.b.assumed.role.arn is not done"),
        ("fs.s3a.aws.credentials.provider=com.me.Mine", "com.me.Mine: that class cannot be loaded"),
        ("fs.s3a.encryption.algorithm=CSE-KMS", "CSE-KMS is not done"),
        ("fs.s3a.encryption.algorithm=SSE-C", "wants fs.s3a.encryption.key"),
        ("fs.s3a.path.style.access=yes", "is not true or false"),
        ("fs.s3a.connection.timeout=soon", "fs.s3a.connection.timeout=soon is not a time above 0"),
        ("hadoop.security.credential.provider.path=jceks://x", "Java's key stores are not read"),
        ("fs.azure.account.auth.type=Custom", "fs.azure.account.auth.type=Custom is not done"),
        ("fs.gs.auth.service.account.private.key=x", "google.cloud.auth.service.account.json.keyfile"),
    ] {
        let text = Call::new().conf(conf).problem().text;
        assert!(text.contains(want), "{conf}: {text}");
    }
}

#[test]
fn tuning_of_hadoops_machinery_is_told_once_and_secrets_never() {
    let config = Call::new()
        .conf("fs.s3a.fast.upload=true")
        .conf("spark.hadoop.fs.s3a.connection.maximum=99")
        .conf("fs.s3a.access.key=visible")
        .conf("fs.s3a.secret.key=visible")
        .conf("fs.azure.account.key=visible")
        .ok();
    let told: Vec<_> = config.warnings.iter().filter(|w| w.contains("fs.s3a.")).collect();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].ends_with("fs.s3a.connection.maximum, fs.s3a.fast.upload"), "{told:?}");
    assert!(!format!("{config:?}").contains("visible"));
}
