//! Where a storage's root is, and how a path relative to it becomes an object's path without changing a byte.

use object_store::path::Path;

use super::{Error, Result};

/// A root.
#[derive(Debug)]
pub(super) struct Location {
    /// As the user gave it, without trailing slashes; for messages.
    given: String,
    pub place: Place,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    /// Absolute and normal: no `.`, `..`, `//`; starts with a slash, and ends with one only if it is `/`.
    Local(String),
    Store(Bucket),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Store {
    S3,
    Gcs,
    Azure,
}

/// Where in an object store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Bucket {
    pub store: Store,
    /// As given: `s3`, `s3a`, …
    pub scheme: String,
    /// Between `://` and the next slash.
    pub authority: String,
    /// Of the bucket, or container.
    pub name: String,
    /// Azure's storage account and its host name; empty elsewhere.
    pub account: String,
    pub host: String,
    /// What all keys begin with, normal, without slashes at its ends.
    pub prefix: String,
}

impl Location {
    /// Text before `:/` is a scheme if it looks like one; all else is a local path, relative to the current directory.
    pub fn parse(uri: &str) -> Result<Self> {
        let bad = |why: String| Error::BadLocation { uri: masked(uri), why };
        if uri.trim().is_empty() {
            return Err(bad("the location is empty".into()));
        }
        let place = match scheme(uri) {
            None => local(uri),
            Some("file") => of_file(&uri["file:".len()..]).and_then(local),
            Some(scheme @ ("s3" | "s3a" | "s3n")) => Bucket::parse(Store::S3, scheme, uri).map(Place::Store),
            Some("gs") => Bucket::parse(Store::Gcs, "gs", uri).map(Place::Store),
            Some(scheme @ ("abfs" | "abfss" | "wasb" | "wasbs")) => {
                Bucket::parse(Store::Azure, scheme, uri).map(Place::Store)
            }
            Some(other) => Err(format!(
                "locations on {other} are not done: use a local path, s3, s3a, gs, abfs, abfss, wasb or wasbs"
            )),
        };
        let place = place.map_err(bad)?;
        Path::parse(place.whole()).map_err(|e| bad(e.to_string()))?;
        let given = uri.trim_end_matches('/');
        Ok(Location { given: if given.is_empty() { "/" } else { given }.to_owned(), place })
    }

    /// As Hudi writes it into plans: `file:/abs/…`, `s3a://bucket/…`.
    pub fn absolute(&self, path: &str) -> String {
        match &self.place {
            Place::Local(root) => join(&format!("file:{root}"), path),
            Place::Store(Bucket { scheme, authority, prefix, .. }) => {
                let root = format!("{scheme}://{authority}");
                join(&join(&root, prefix), path)
            }
        }
    }

    pub fn display(&self, path: &str) -> String {
        join(&self.given, path)
    }

    /// Refuses what would leave the root, or change its bytes on the way.
    pub fn check(&self, path: &str) -> Result<()> {
        let refuse = |why: String| Err(Error::BadLocation { uri: self.display(path), why });
        if path.starts_with('/') {
            return refuse("the path must be relative to the root".into());
        }
        if !path.is_empty() && path.split('/').any(|part| matches!(part, "" | "." | "..")) {
            return refuse("the path has an empty part, `.` or `..`".into());
        }
        Path::parse(join(self.place.whole(), path)).map(drop).or_else(|e| refuse(e.to_string()))
    }
}

impl Place {
    fn whole(&self) -> &str {
        match self {
            Place::Local(path) => path,
            Place::Store(bucket) => &bucket.prefix,
        }
    }
}

impl Bucket {
    fn parse(store: Store, scheme: &str, uri: &str) -> std::result::Result<Bucket, String> {
        let rest = uri[scheme.len()..].strip_prefix("://").ok_or(format!("write {scheme}://<bucket>/<path>"))?;
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (name, host) = match (store, authority.split_once('@')) {
            (Store::Azure, Some((container, host))) => (container, host),
            (Store::Azure, None) => {
                return Err(format!("write {scheme}://<container>@<account>.dfs.core.windows.net/<path>"));
            }
            (_, Some(_)) => {
                return Err("credentials do not belong into a location: see \"Object stores\" in the README".into());
            }
            (_, None) => (authority, ""),
        };
        let account = host.split('.').next().unwrap_or_default();
        if name.is_empty() || (store == Store::Azure && account.is_empty()) {
            return Err("the bucket, or container, is missing".into());
        }
        let [scheme, authority, name, account, host] = [scheme, authority, name, account, host].map(str::to_owned);
        let prefix = normal(path).trim_matches('/').to_owned();
        Ok(Bucket { store, scheme, authority, name, account, host, prefix })
    }
}

/// What follows `file:`.
fn of_file(rest: &str) -> std::result::Result<&str, String> {
    match rest.strip_prefix("//") {
        None => Ok(rest),
        Some(path) if path.starts_with('/') => Ok(path),
        Some(path) => path
            .strip_prefix("localhost")
            .filter(|path| path.starts_with('/'))
            .ok_or_else(|| "a file location on another host; write file:///path for a local one".into()),
    }
}

fn local(path: &str) -> std::result::Result<Place, String> {
    if path.starts_with('/') {
        return Ok(Place::Local(normal(path)));
    }
    let current = std::env::current_dir().map_err(|e| format!("no current directory: {e}"))?;
    let current = current.to_str().ok_or("the current directory's name is not UTF-8")?;
    Ok(Place::Local(normal(&format!("{current}/{path}"))))
}

fn join(root: &str, path: &str) -> String {
    match (path.is_empty(), root.ends_with('/')) {
        (true, _) => root.to_owned(),
        (false, true) => format!("{root}{path}"),
        (false, false) => format!("{root}/{path}"),
    }
}

fn scheme(uri: &str) -> Option<&str> {
    let (scheme, rest) = uri.split_once(':')?;
    let looks_right = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'));
    (looks_right && rest.starts_with('/')).then_some(scheme)
}

/// Resolves `.`, `..` and repeated slashes by the text alone, as Hadoop's `Path` does.
fn normal(absolute: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in absolute.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            _ => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

/// `s3://user:secret@bucket/…` without what is secret.
fn masked(uri: &str) -> String {
    let Some((scheme, rest)) = uri.split_once("://") else { return uri.to_owned() };
    // There it is a container's name.
    if ["abfs", "abfss", "wasb", "wasbs"].contains(&scheme) {
        return uri.to_owned();
    }
    let host_end = rest.find('/').unwrap_or(rest.len());
    match rest[..host_end].rfind('@') {
        Some(at) => format!("{scheme}://***{}", &rest[at..]),
        None => uri.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations_are_parsed() {
        let here = std::env::current_dir().unwrap().to_str().unwrap().to_owned();
        for (uri, want) in [
            ("/a/b", "/a/b".to_owned()),
            ("/", "/".to_owned()),
            ("/a//b/./c/../d/", "/a/b/d".to_owned()),
            ("/../a", "/a".to_owned()),
            ("file:/a/b", "/a/b".to_owned()),
            ("file:///a/b/", "/a/b".to_owned()),
            ("file://localhost/a", "/a".to_owned()),
            ("file:///a%20b/x=1", "/a%20b/x=1".to_owned()),
            ("rel/x", format!("{here}/rel/x")),
            ("./rel", format!("{here}/rel")),
            ("k:v/w", format!("{here}/k:v/w")),
        ] {
            assert_eq!(Location::parse(uri).unwrap().place, Place::Local(want), "{uri}");
        }
    }

    #[test]
    fn locations_in_stores_are_taken_apart_and_put_together_again() {
        for (uri, store, name, account, prefix, absolute) in [
            ("s3://b/x/y/", Store::S3, "b", "", "x/y", "s3://b/x/y/f"),
            ("s3a://my.bucket", Store::S3, "my.bucket", "", "", "s3a://my.bucket/f"),
            ("s3n://b//x/./y%20z", Store::S3, "b", "", "x/y%20z", "s3n://b/x/y%20z/f"),
            ("gs://b/x=1", Store::Gcs, "b", "", "x=1", "gs://b/x=1/f"),
            (
                "abfss://c@acc.dfs.core.windows.net/t",
                Store::Azure,
                "c",
                "acc",
                "t",
                "abfss://c@acc.dfs.core.windows.net/t/f",
            ),
        ] {
            let location = Location::parse(uri).unwrap();
            assert_eq!(location.absolute("f"), absolute);
            let Place::Store(bucket) = location.place else { panic!("{uri}") };
            assert_eq!(
                (bucket.store, &*bucket.name, &*bucket.account, &*bucket.prefix),
                (store, name, account, prefix),
                "{uri}"
            );
        }
    }

    #[test]
    fn locations_that_cannot_be_used_are_refused_by_name() {
        for (uri, part) in [
            ("s3a://id:secret@bucket/x", "s3a://***@bucket/x: credentials do not belong"),
            ("s3:///x", "the bucket, or container, is missing"),
            ("s3:/x", "write s3://<bucket>"),
            ("abfs://c/x", "<container>@<account>"),
            ("hdfs://nn:8020/x", "locations on hdfs"),
            ("file://host/x", "another host"),
            ("", "empty"),
            ("/a\nb", "illegal"),
            ("s3://b/a\nb", "illegal"),
        ] {
            let message = Location::parse(uri).unwrap_err().to_string();
            assert!(message.contains(part), "{uri}: {message}");
            assert!(!message.contains("secret"), "{message}");
        }
    }

    #[test]
    fn paths_that_leave_the_root_are_refused() {
        for root in ["/r", "s3://b/r"].map(|uri| Location::parse(uri).unwrap()) {
            for path in ["../x", "a/../../x", "/x", "a//b", "a/", ".", "a/./b"] {
                assert!(matches!(root.check(path), Err(Error::BadLocation { .. })), "{path}");
            }
        }
    }
}
