//! What must never be printed: values of secret settings, and user info in URLs.

use regex::Regex;
use std::sync::LazyLock;

/// Stands for a secret (Hudi: `SENSITIVE_INFO_MASKED`, `HoodieStreamer`).
const MASK: &str = "SENSITIVE_INFO_MASKED";
/// `hoodie.sensitive.config.keys` (Hudi's default), and what Hudi forgets.
const SECRET_WORDS: [&str; 11] =
    ["ssl", "tls", "sasl", "auth", "credentials", "password", "passwd", "secret", "token", "access.key", "apikey"];

static USER_INFO: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*://)[^/@\s]+@").expect("a good pattern"));

/// The value of a setting as it may be shown.
pub fn mask_value(key: &str, value: &str) -> String {
    let key = key.to_ascii_lowercase();
    if !value.is_empty() && SECRET_WORDS.iter().any(|w| key.contains(w)) { MASK.to_string() } else { mask_urls(value) }
}

/// A text without user info in its URLs.
pub fn mask_urls(text: &str) -> String {
    USER_INFO.replace_all(text, format!("${{scheme}}{MASK}@")).into_owned()
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
        ];
        for (key, value, want) in cases {
            assert_eq!(mask_value(key, value), want, "{key}");
        }
    }
}
