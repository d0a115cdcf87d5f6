//! What must never be printed: values of secret settings, and user info in URLs.

use regex::{Captures, Regex};
use std::sync::LazyLock;

/// Stands for a secret (Hudi: `SENSITIVE_INFO_MASKED`, `HoodieStreamer`).
const MASK: &str = "SENSITIVE_INFO_MASKED";
/// `hoodie.sensitive.config.keys` (Hudi's default), and what Hudi forgets.
const SECRET_WORDS: [&str; 13] = [
    "ssl",
    "tls",
    "sasl",
    "auth",
    "credentials",
    "password",
    "passwd",
    "secret",
    "token",
    "access.key",
    "account.key",
    "encryption.key",
    "apikey",
];

/// A secret inside a value, as in `sasl.jaas.config`, or in what is left of it when its line was broken in two.
static INNER_SECRET: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"(?i)(?P<name>(?:password|passwd|secret|token|apikey)[\w.-]*\s*[=:]\s*)(?:"[^"]*"|'[^']*'|[^\s,;&]+)"#)
        .expect("a good pattern")
});

static USER_INFO: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*://)[^/\s]+@").expect("a good pattern"));

/// The value of a setting as it may be shown.
pub fn mask_value(key: &str, value: &str) -> String {
    let key = key.to_ascii_lowercase();
    if !value.is_empty() && SECRET_WORDS.iter().any(|w| key.contains(w)) { MASK.to_string() } else { mask_text(value) }
}

/// The same, where the user has named further words (`hoodie.sensitive.config.keys`).
pub(super) fn mask_value_with(words: &str, key: &str, value: &str) -> String {
    let mut words = words.split(',').map(|w| w.trim().to_ascii_lowercase()).filter(|w| !w.is_empty());
    let lower = key.to_ascii_lowercase();
    if !value.is_empty() && words.any(|w| lower.contains(&w)) { MASK.to_string() } else { mask_value(key, value) }
}

/// The same for a line that could not be taken apart: what stands after a colon or a `=` counts as a value.
pub(super) fn mask_line(line: &str) -> String {
    match line.split_once([':', '=']) {
        Some((key, value)) => format!("{key}{}{}", &line[key.len()..=key.len()], mask_value(key, value)),
        None => mask_text(line),
    }
}

fn mask_text(text: &str) -> String {
    mask_urls(&INNER_SECRET.replace_all(text, format!("${{name}}{MASK}")))
}

/// A text without user info in its URLs.
pub fn mask_urls(text: &str) -> String {
    let masked = |found: &Captures| match &found["scheme"] {
        // There it is the name of a container.
        "abfs://" | "abfss://" | "wasb://" | "wasbs://" => found[0].to_owned(),
        scheme => format!("{scheme}{MASK}@"),
    };
    USER_INFO.replace_all(text, masked).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_masked() {
        let cases = [
            ("ssl.key.password", "x", MASK),
            ("hoodie.datasource.hive_sync.password", "x", MASK),
            ("sasl.jaas.config", "x", MASK),
            ("fs.s3a.secret.key", "x", MASK),
            ("some.token", "", ""),
            ("hoodie.table.name", "trips", "trips"),
            ("url", "http://me:pw@host/x", "http://SENSITIVE_INFO_MASKED@host/x"),
            ("mail", "a@b", "a@b"),
            ("path", "abfss://c@a.dfs.core.windows.net/x", "abfss://c@a.dfs.core.windows.net/x"),
            ("username", r#""me" password="x y";"#, r#""me" password=SENSITIVE_INFO_MASKED;"#),
            ("jdbc.url", "jdbc:x://h/d?token=abc&x=1", "jdbc:x://h/d?token=SENSITIVE_INFO_MASKED&x=1"),
            ("hoodie.streamer.transformer.sql", "SELECT password, x FROM <SRC>", "SELECT password, x FROM <SRC>"),
        ];
        for (key, value, want) in cases {
            assert_eq!(mask_value(key, value), want, "{key}");
        }
    }
}
