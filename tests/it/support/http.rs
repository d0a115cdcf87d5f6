//! What a probe or a scraper sees: HTTP, and the text format of Prometheus read strictly.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;

use regex::Regex;
use serde_json::Value;

/// Status and body of an answer.
pub struct Probe {
    pub status: u16,
    pub content_type: String,
    pub body: String,
}

impl Probe {
    #[track_caller]
    pub fn json(&self) -> Value {
        assert_eq!(self.content_type, "application/json");
        serde_json::from_str(&self.body).unwrap_or_else(|e| panic!("{e}: {}", self.body))
    }
}

#[track_caller]
pub fn http_get(address: &str, path: &str) -> Probe {
    let mut stream = TcpStream::connect(address).unwrap_or_else(|e| panic!("connect to {address}: {e}"));
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").expect("send the request");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("read the answer");
    let (head, body) = text.split_once("\r\n\r\n").expect("a head and a body");
    let status = head.split(' ').nth(1).and_then(|s| s.parse().ok()).expect("a status");
    let header = head.lines().find_map(|l| l.to_ascii_lowercase().strip_prefix("content-type: ").map(str::to_string));
    Probe { status, content_type: header.unwrap_or_default(), body: body.to_string() }
}

/// Samples by name and labels, as they are written.
pub struct Exposition(BTreeMap<String, f64>);

impl Exposition {
    /// Every line must be what the format allows: HELP and TYPE before the samples of their family, no sample twice, buckets
    /// that grow and end at the count.
    #[track_caller]
    pub fn parse(text: &str) -> Exposition {
        let sample = Regex::new(
            r#"^([a-zA-Z_:][a-zA-Z0-9_:]*)(\{(?:[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\[\\"n])*",?)*\})? (\S+)$"#,
        );
        let sample = sample.expect("a good pattern");
        let (mut helped, mut family, mut samples) = (None, None, BTreeMap::new());
        let mut families = BTreeMap::new();
        let mut bucket = None;
        assert!(text.ends_with('\n'), "the last line does not end");
        for line in text.lines().filter(|l| !l.is_empty()) {
            if let Some(help) = line.strip_prefix("# HELP ") {
                helped = help.split_once(' ').map(|(name, _)| name);
            } else if let Some(declared) = line.strip_prefix("# TYPE ") {
                let (name, kind) = declared.split_once(' ').unwrap_or_else(|| panic!("{line}"));
                assert_eq!(helped, Some(name), "{name} has no HELP before its TYPE");
                assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
                assert!(families.insert(name, kind).is_none(), "{name} is declared twice");
                (family, bucket) = (Some((name, kind)), None);
            } else {
                let parts = sample.captures(line).unwrap_or_else(|| panic!("not a sample: {line}"));
                let value: f64 = parts[3].parse().unwrap_or_else(|_| panic!("not a number: {line}"));
                let (name, kind) = family.unwrap_or_else(|| panic!("of no family: {line}"));
                let suffix = parts[1].strip_prefix(name).unwrap_or_else(|| panic!("in the family {name}: {line}"));
                match (kind, suffix) {
                    ("histogram", "_bucket") => {
                        assert!(bucket.is_none_or(|before| before <= value), "buckets shrink: {line}");
                        bucket = Some(value);
                    }
                    ("histogram", "_sum") => {}
                    ("histogram", "_count") => assert_eq!(bucket.take(), Some(value), "the last bucket: {line}"),
                    (_, "") => assert!(kind == "gauge" || value >= 0.0, "{line}"),
                    _ => panic!("{line} in a {kind}"),
                }
                let labels = parts.get(2).map_or("", |l| l.as_str());
                assert!(samples.insert(format!("{}{labels}", &parts[1]), value).is_none(), "twice: {line}");
            }
        }
        Exposition(samples)
    }

    pub fn get(&self, sample: &str) -> Option<f64> {
        self.0.get(sample).copied()
    }
}
