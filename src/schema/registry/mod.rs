//! The client of a schema registry (Confluent's REST interface): schemas by id and by subject, whole.
//!
//! Look at [`Registry`] first. Invariants: what it returns stands alone, types of other subjects written into it; an id is
//! fetched once a process, since what an id stands for never changes; no credentials in any error.

mod inline;

use super::error::RegistryFault as Fault;
use super::{Error, Result};
use crate::config::{Credentials, RegistryAddress, RegistryConfig};
use reqwest::{Certificate, Client, Identity, StatusCode};
use serde::Deserialize;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Mutex;
use url::Url;

/// For one schema with all that it refers to, however many addresses are tried.
const ANSWER_WITHIN: Duration = Duration::from_secs(20);
const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// How long an id counts as unknown: a topic may be full of records with one, and a registry may learn of it.
const UNKNOWN_FOR: Duration = Duration::from_secs(60);
/// References are followed so deep; Confluent's registry allows no more either.
const DEEPEST: usize = 10;
const ACCEPT: &str = "application/vnd.schemaregistry.v1+json, application/json";

/// A schema registry. Cheap to clone; clones share what they have learnt.
#[derive(Debug, Clone)]
pub struct Registry {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    client: Client,
    addresses: Vec<RegistryAddress>,
    credentials: Option<Credentials>,
    ids: Mutex<HashMap<u32, Arc<Mutex<Known>>>>,
}

/// What is known of an id; who holds the lock finds out.
#[derive(Debug, Default)]
enum Known {
    #[default]
    Nothing,
    Schema(Arc<str>),
    Refused(Error, Instant),
}

/// A schema as the registry gives it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Registered {
    schema: String,
    schema_type: Option<String>,
    #[serde(default)]
    references: Vec<Reference>,
}

#[derive(Debug, Deserialize)]
struct Reference {
    subject: String,
    version: i64,
}

#[derive(Debug, Deserialize)]
struct Refusal {
    error_code: i64,
    message: String,
}

impl Registry {
    /// Reads the certificates, if there are any, and connects to nothing yet.
    pub fn open(config: &RegistryConfig) -> Result<Registry> {
        // Java's HTTP client, too, takes no proxy from the environment.
        let mut builder = Client::builder().no_proxy().connect_timeout(CONNECT_WITHIN);
        if let Some(path) = &config.truststore {
            let certificates = Certificate::from_pem_bundle(&pem(path)?).map_err(|e| unusable(path, &e))?;
            builder = builder.tls_certs_only(certificates);
        }
        if let Some(path) = &config.keystore {
            let pem = pem(path)?;
            let identity = Identity::from_pkcs8_pem(&pem, private_key(path, &pem)?).map_err(|e| unusable(path, &e))?;
            builder = builder.identity(identity);
        }
        let client = builder.build().map_err(|e| Error::internal("set up HTTPS", e))?;
        let (addresses, credentials) = (config.addresses.clone(), config.credentials.clone());
        Ok(Registry { inner: Arc::new(Inner { client, addresses, credentials, ids: Mutex::default() }) })
    }

    /// The schema that records with this id were written with, as JSON text. Asks the registry once; an id that it does not
    /// know is asked for again a minute later at the earliest.
    pub async fn schema_by_id(&self, id: u32) -> Result<Arc<str>> {
        let slot = self.inner.ids.lock().await.entry(id).or_default().clone();
        let mut known = slot.lock().await;
        match &*known {
            Known::Schema(schema) => return Ok(schema.clone()),
            Known::Refused(error, at) if at.elapsed() < UNKNOWN_FOR => return Err(error.clone()),
            _ => {}
        }
        let found =
            self.whole(&self.inner.addresses, &["schemas", "ids", &id.to_string()], &format!("schema id {id}")).await;
        match &found {
            Ok(schema) => *known = Known::Schema(schema.clone()),
            Err(error) if error.is_about_one_schema() => *known = Known::Refused(error.clone(), Instant::now()),
            Err(_) => {}
        }
        found
    }

    /// The schema at an address of its own, as it is now: `http://host/…/subjects/<subject>/versions/<version>`.
    pub async fn subject(&self, address: &RegistryAddress) -> Result<Arc<str>> {
        let path = address.url.path().rsplit_once("/subjects/").map(|(_, path)| path);
        let what = path
            .map_or("its schema".to_owned(), |path| format!("subject {}", path.replace("/versions/", ", version ")));
        self.whole(std::slice::from_ref(address), &[], &what).await
    }

    async fn whole(&self, addresses: &[RegistryAddress], path: &[&str], what: &str) -> Result<Arc<str>> {
        let found = tokio::time::timeout(ANSWER_WITHIN, self.inner.follow(addresses, path, what)).await;
        found.unwrap_or_else(|_| {
            let why = format!("no answer within {} seconds", ANSWER_WITHIN.as_secs());
            Err(failure(&shown(addresses), what, why, UNREACHABLE, Fault::Down))
        })
    }
}

impl Inner {
    /// A schema, and in it those it refers to.
    async fn follow(&self, addresses: &[RegistryAddress], path: &[&str], what: &str) -> Result<Arc<str>> {
        let registered = self.ask(addresses, path, what).await?;
        if registered.references.is_empty() {
            return Ok(registered.schema.into());
        }
        let bases: Vec<RegistryAddress> = match path {
            [] => addresses.iter().filter_map(base).collect(),
            _ => addresses.to_vec(),
        };
        let parse = |text: &str, of: &str| -> Result<Value> {
            let bad =
                |e| failure(&shown(addresses), of, format!("its schema is no JSON: {e}"), REGISTER_ANEW, Fault::Schema);
            serde_json::from_str(text).map_err(bad)
        };
        let schema = parse(&registered.schema, what)?;
        let mut others: Vec<((String, i64), Value)> = Vec::new();
        let mut wanted = registered.references;
        for _ in 0..DEEPEST {
            let mut further = Vec::new();
            for Reference { subject, version } in std::mem::take(&mut wanted) {
                let key = (subject, version);
                if others.iter().any(|(known, _)| *known == key) {
                    continue;
                }
                let of = format!("subject {} version {version}, which {what} refers to", key.0);
                let path = ["subjects", &key.0, "versions", &version.to_string()];
                let found = self.ask(&bases, &path, &of).await?;
                others.push((key, parse(&found.schema, &of)?));
                further.extend(found.references);
            }
            if further.is_empty() {
                let others: Vec<Value> = others.into_iter().map(|(_, schema)| schema).collect();
                return Ok(inline::stand_alone(&schema, &others).to_string().into());
            }
            wanted = further;
        }
        Err(failure(
            &shown(addresses),
            what,
            format!("references nested deeper than {DEEPEST}"),
            REGISTER_ANEW,
            Fault::Schema,
        ))
    }

    /// The first answer of any address; the next is asked where one cannot be reached, or fails.
    async fn ask(&self, addresses: &[RegistryAddress], path: &[&str], what: &str) -> Result<Registered> {
        let mut last = None;
        for address in addresses {
            match self.ask_one(address, path, what, ANSWER_WITHIN / addresses.len() as u32).await {
                Err(error) if error.is_retryable() => last = Some(error),
                answer => return answer,
            }
        }
        Err(last.unwrap_or_else(|| {
            failure("", what, "no address is known".into(), "set schema.registry.url", Fault::Access)
        }))
    }

    async fn ask_one(
        &self,
        address: &RegistryAddress,
        path: &[&str],
        what: &str,
        within: Duration,
    ) -> Result<Registered> {
        let shown = shown(std::slice::from_ref(address));
        let failed = |e: reqwest::Error| {
            let why = causes(&e.without_url());
            match why.contains("certificate") {
                true => failure(&shown, what, why, CERTIFICATES, Fault::Access),
                false => failure(&shown, what, why, UNREACHABLE, Fault::Down),
            }
        };
        let mut url = address.url.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        let mut request = self.client.get(url).header("Accept", ACCEPT).timeout(within);
        if let Some(Credentials { user, password }) = address.credentials.as_ref().or(self.credentials.as_ref()) {
            request = request.basic_auth(user, Some(password));
        }
        let response = request.send().await.map_err(failed)?;
        let status = response.status();
        let body = response.bytes().await.map_err(failed)?;
        if !status.is_success() {
            return Err(refused(&shown, what, status, &body));
        }
        let registered: Registered = serde_json::from_slice(&body).map_err(|e| {
            let why = format!("HTTP {}, but not the answer of a schema registry: {e}", status.as_u16());
            failure(&shown, what, why, "correct the address", Fault::Access)
        })?;
        match registered.schema_type.as_deref() {
            None | Some("AVRO") => Ok(registered),
            Some(other) => {
                let why = format!("it is a schema in {other}, not in AVRO");
                Err(failure(&shown, what, why, "such topics are not read yet", Fault::Schema))
            }
        }
    }
}

const UNREACHABLE: &str = "see that the registry runs and can be reached from here, and that its address is right";

const CERTIFICATES: &str = "see schema.registry.ssl.truststore.location, which must name who signed the registry's certificate, \
                            and schema.registry.ssl.keystore.location, if the registry asks for one";

const REGISTER_ANEW: &str = "register the schema anew";

/// What the registry itself says.
fn refused(address: &str, what: &str, status: StatusCode, body: &[u8]) -> Error {
    let refusal = serde_json::from_slice::<Refusal>(body).ok();
    let why = match &refusal {
        Some(refusal) => format!("HTTP {}, error {}: {}", status.as_u16(), refusal.error_code, cut(&refusal.message)),
        None if body.is_empty() => format!("HTTP {}", status.as_u16()),
        None => format!("HTTP {}: {}", status.as_u16(), cut(&String::from_utf8_lossy(body))),
    };
    let (instead, fault) = match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            ("check basic.auth.user.info, or the user and password in the address", Fault::Access)
        }
        // 404xx are the registry's own codes of what it does not have; another server's 404 says nothing of a schema.
        StatusCode::NOT_FOUND if refusal.is_some_and(|refusal| refusal.error_code / 100 == 404) => {
            ("see that it is registered there, and that the address is that of the right registry", Fault::Schema)
        }
        StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS => ("give the registry time", Fault::Down),
        status if status.is_server_error() => ("see the registry's log", Fault::Down),
        _ => ("correct the address", Fault::Access),
    };
    failure(address, what, why, instead, fault)
}

fn failure(address: &str, what: &str, why: String, instead: &'static str, fault: Fault) -> Error {
    Error::Registry { address: address.to_owned(), what: what.to_owned(), why, instead, fault }
}

/// An error with its causes, which the HTTP client does not tell by itself.
fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let inner_text = inner.to_string();
        if !text.contains(&inner_text) {
            text.push_str(&format!(": {inner_text}"));
        }
        cause = inner.source();
    }
    text
}

fn cut(text: &str) -> String {
    text.trim().trim_end_matches('.').chars().take(200).collect()
}

fn shown(addresses: &[RegistryAddress]) -> String {
    addresses.iter().map(|address| address.url.as_str().trim_end_matches('/')).collect::<Vec<_>>().join(", ")
}

/// The registry that a subject's address is in.
fn base(subject: &RegistryAddress) -> Option<RegistryAddress> {
    let mut url: Url = subject.url.clone();
    let prefix = url.path().rfind("/subjects/").map(|end| url.path()[..end].to_owned())?;
    url.set_path(&prefix);
    Some(RegistryAddress { url, credentials: subject.credentials.clone() })
}

fn pem(path: &str) -> Result<Vec<u8>> {
    let file = path.strip_prefix("file://").unwrap_or(path);
    let bytes = std::fs::read(file).map_err(|e| Error::File { path: path.to_owned(), why: e.to_string() })?;
    match find(&bytes, b"-----BEGIN ") {
        Some(_) => Ok(bytes),
        None => Err(Error::File {
            path: path.to_owned(),
            why: "not in PEM, which is wanted of the schema registry's certificates; make it so with keytool \
                  -importkeystore … -deststoretype PKCS12, then openssl pkcs12 -nodes"
                .into(),
        }),
    }
}

/// The key in a file that has certificates, too, in any order.
fn private_key<'a>(path: &str, pem: &'a [u8]) -> Result<&'a [u8]> {
    const END: &[u8] = b"-----END PRIVATE KEY-----";
    let start = find(pem, b"-----BEGIN PRIVATE KEY-----");
    let key = start.map(|start| &pem[start..]).and_then(|key| key.get(..find(key, END)? + END.len()));
    key.ok_or_else(|| Error::File {
        path: path.to_owned(),
        why: "no key without a password in it (PRIVATE KEY); make it one with openssl pkcs8 -topk8 -nocrypt".into(),
    })
}

fn find(bytes: &[u8], part: &[u8]) -> Option<usize> {
    memchr::memmem::find(bytes, part)
}

fn unusable(path: &str, why: &reqwest::Error) -> Error {
    Error::File { path: path.to_owned(), why: causes(why) }
}

#[cfg(test)]
mod tests;
