//! object_store's errors in a line: what the server said, and what can be done.

use std::sync::LazyLock;

use object_store::Error;
use object_store::client::{HttpError, HttpErrorKind};
use regex::Regex;

use super::super::error::{Cause, is_passing};

/// Longest text of a server that is handed on, in characters.
const LONGEST: usize = 300;

static STATUS: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"status code: (\d{3}[^:]*)").expect("a good pattern"));
static CODE: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"<Code>([^<]+)</Code>").expect("a good pattern"));
static MESSAGE: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"<Message>([^<]+)</Message>").expect("a good pattern"));
static UNANSWERED: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"Error performing \w+ (?:(\w+://[^/\s]+)\S*|REDACTED) in .*? - (.*)").expect("a good pattern")
});
static RETRIES: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"after (\d+) retries").expect("a good pattern"));

pub(super) fn failed(error: Error) -> Cause {
    let text = whole(&error);
    let no_bucket = ["NoSuchBucket", "ContainerNotFound", "The specified bucket does not exist"];
    if no_bucket.iter().any(|word| text.contains(word)) {
        let text = "there is no such bucket or container: make it, or correct the location".to_owned();
        return Cause::Other { text, retryable: false };
    }
    match error {
        Error::NotFound { .. } => Cause::NotFound,
        Error::AlreadyExists { .. } => Cause::AlreadyExists,
        Error::Precondition { .. } => Cause::Conflict,
        Error::NotImplemented { .. } | Error::NotSupported { .. } => {
            Cause::Unsupported("the store, or its settings, do not allow this: conditional puts and copies are needed")
        }
        error => Cause::Other { text: told(&text), retryable: is_retryable(&error, &text) },
    }
}

/// Whether an answer began and did not end; `object_store` has not tried again then.
pub(super) fn broke_off(error: &Error) -> bool {
    let text = whole(error);
    let tried_again = RETRIES.captures(&text).is_some_and(|found| &found[1] != "0");
    !tried_again && !STATUS.is_match(&text) && is_retryable(error, &text)
}

/// The text of the error and of what caused it, as far as it is not said already.
fn whole(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let more = cause.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        next = cause.source();
    }
    text
}

fn told(text: &str) -> String {
    let found = |pattern: &Regex| pattern.captures(text).map(|found| found[1].trim().to_owned());
    let status = found(&STATUS);
    let mut told = match (&status, found(&CODE)) {
        (Some(status), Some(code)) => {
            let message = found(&MESSAGE).map(|m| format!(": {m}")).unwrap_or_default();
            format!("the store answered {status}: {code}{message}")
        }
        (Some(status), None) => format!("the store answered {status}"),
        (None, _) => match UNANSWERED.captures(text) {
            Some(found) => {
                let server = found.get(1).map_or("the store", |server| server.as_str());
                format!("no answer from {server}: {}", found[2].trim_start_matches("HTTP error: "))
            }
            None => text.to_owned(),
        },
    };
    if let Some((end, _)) = told.char_indices().nth(LONGEST) {
        told.truncate(end);
        told.push('…');
    }
    if let Some(retries) = found(&RETRIES).filter(|n| n != "0") {
        told = format!("{told} (tried {retries} times more)");
    }
    match hint(status.as_deref(), text) {
        Some(hint) => format!("{told}; {hint}"),
        None => told,
    }
}

fn hint(status: Option<&str>, text: &str) -> Option<&'static str> {
    let of_machine = ["169.254.169.254", "169.254.170.2", "metadata.google.internal"];
    if of_machine.iter().any(|host| text.contains(host)) {
        return Some("no credentials were given, and the machine has no role: see \"Object stores\" in the README");
    }
    if text.contains("incorrectly configured region") || text.contains("AuthorizationHeaderMalformed") {
        return Some("set the bucket's region: AWS_REGION or fs.s3a.endpoint.region");
    }
    match status.map(|status| &status[..3]) {
        Some("401" | "403") => Some("check the credentials and what they allow"),
        _ => None,
    }
}

fn is_retryable(error: &Error, text: &str) -> bool {
    if let Some(status) = STATUS.captures(text) {
        return status[1].starts_with('5') || status[1].starts_with("429") || status[1].starts_with("408");
    }
    let causes = std::iter::successors(Some(error as &(dyn std::error::Error + 'static)), |e| e.source());
    for cause in causes {
        if let Some(http) = cause.downcast_ref::<HttpError>() {
            return !matches!(http.kind(), HttpErrorKind::Decode);
        }
        if let Some(io) = cause.downcast_ref::<std::io::Error>()
            && is_passing(io.kind())
        {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generic(text: &str) -> Error {
        Error::Generic { store: "S3", source: text.to_owned().into() }
    }

    #[test]
    fn answers_of_servers_are_told_in_a_line_and_repeated_where_that_may_help() {
        let body = |code: &str, message: &str| {
            format!(
                "<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>{message}</Message>\
                 <AWSAccessKeyId>AKIA1</AWSAccessKeyId></Error>"
            )
        };
        let server = "Error performing PUT http://h/b/k in 5s, after 10 retries, max_retries: 10, retry_timeout: 180s  - \
                      Server returned non-2xx status code: ";
        for (text, want, want_retryable) in [
            (
                format!("{server}503 Service Unavailable: {}", body("SlowDown", "Reduce your rate")),
                "the store answered 503 Service Unavailable: SlowDown: Reduce your rate (tried 10 times more)",
                true,
            ),
            (
                format!("{server}403 Forbidden: {}", body("SignatureDoesNotMatch", "No"))
                    .replace("after 10 retries, ", ""),
                "the store answered 403 Forbidden: SignatureDoesNotMatch: No; check the credentials and what they allow",
                false,
            ),
            (
                "Generic S3 error: Error performing GET http://h:1/b/k in 29ms, after 2 retries, max_retries: 2, \
                 retry_timeout: 180s  - HTTP error: error sending request: tcp connect error: Connection refused"
                    .to_owned(),
                "no answer from http://h:1: error sending request: tcp connect error: Connection refused (tried 2 times more)",
                false,
            ),
            ("something else".to_owned(), "something else", false),
        ] {
            match failed(generic(&text)) {
                Cause::Other { text, retryable } => {
                    assert!(text.ends_with(want), "{text}");
                    assert_eq!(retryable, want_retryable, "{text}");
                }
                other => panic!("{other:?}"),
            }
        }
        let missing = Error::NotFound { path: "k".into(), source: body("NoSuchBucket", "none").into() };
        assert!(matches!(failed(missing), Cause::Other { .. }), "a missing bucket is no missing file");
    }
}
