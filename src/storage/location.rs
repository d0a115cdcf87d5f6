//! Where a storage's root is, and how a path relative to it becomes an object's path without changing a byte.

use object_store::path::Path;

use super::{Error, Result};

/// A root on the local disk.
#[derive(Debug)]
pub(super) struct Location {
    /// As the user gave it, without trailing slashes; for messages.
    given: String,
    /// Absolute and normal: no `.`, `..`, `//`; starts with a slash, and ends with one only if it is `/`.
    absolute: String,
}

impl Location {
    /// Text before `:/` is a scheme if it looks like one; all else is a local path, relative to the current directory.
    pub fn parse(uri: &str) -> Result<Self> {
        let bad = |why: String| Error::BadLocation { uri: masked(uri), why };
        if uri.trim().is_empty() {
            return Err(bad("the location is empty".into()));
        }
        let path = match scheme(uri) {
            None => uri,
            Some("file") => match uri["file:".len()..].strip_prefix("//") {
                None => &uri["file:".len()..],
                Some(rest) if rest.starts_with('/') => rest,
                Some(rest) => rest
                    .strip_prefix("localhost")
                    .filter(|r| r.starts_with('/'))
                    .ok_or_else(|| bad("a file location on another host; write file:///path for a local one".into()))?,
            },
            Some(other) => return Err(bad(format!("locations on {other} are not done yet; use a local path"))),
        };
        let absolute = if path.starts_with('/') {
            normal(path)
        } else {
            let current = std::env::current_dir().map_err(|e| bad(format!("no current directory: {e}")))?;
            let current = current.to_str().ok_or_else(|| bad("the current directory's name is not UTF-8".into()))?;
            normal(&format!("{current}/{path}"))
        };
        Path::parse(&absolute).map_err(|e| bad(e.to_string()))?;
        let given = uri.trim_end_matches('/');
        Ok(Location { given: if given.is_empty() { "/" } else { given }.to_owned(), absolute })
    }

    /// The absolute path of `path`, with its bytes as given.
    pub fn join(&self, path: &str) -> String {
        join(&self.absolute, path)
    }

    pub fn display(&self, path: &str) -> String {
        join(&self.given, path)
    }

    /// `Path::from` would percent-encode; `Path::parse` keeps bytes. The parts are checked here, because `parse` is
    /// lenient about slashes at the ends.
    pub fn object(&self, path: &str) -> Result<Path> {
        let refuse = |why: String| Err(Error::BadLocation { uri: self.display(path), why });
        if path.starts_with('/') {
            return refuse("the path must be relative to the root".into());
        }
        if !path.is_empty() && path.split('/').any(|part| matches!(part, "" | "." | "..")) {
            return refuse("the path has an empty part, `.` or `..`".into());
        }
        if path.split('/').any(is_drive) {
            return refuse("one letter and `|` is no name for a file or folder here: object_store makes it `:`".into());
        }
        Path::parse(self.join(path)).or_else(|e| refuse(e.to_string()))
    }
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

/// Such a part of a file URL is taken for a Windows drive in its old spelling (`C|`), on any system.
fn is_drive(part: &str) -> bool {
    matches!(part.as_bytes(), [letter, b'|'] if letter.is_ascii_alphabetic())
}

/// `s3://user:secret@bucket/…` without what is secret.
fn masked(uri: &str) -> String {
    let Some((scheme, rest)) = uri.split_once("://") else { return uri.to_owned() };
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
            assert_eq!(Location::parse(uri).unwrap().absolute, want, "{uri}");
        }
    }

    #[test]
    fn locations_that_are_not_done_are_refused_by_name() {
        for (uri, part) in [
            ("s3://bucket/x", "locations on s3 are not done yet"),
            ("s3a://id:secret@bucket/x", "s3a://***@bucket/x: locations on s3a"),
            ("hdfs://nn:8020/x", "locations on hdfs"),
            ("file://host/x", "another host"),
            ("", "empty"),
            ("/a\nb", "illegal"),
        ] {
            let message = Location::parse(uri).unwrap_err().to_string();
            assert!(message.contains(part), "{uri}: {message}");
            assert!(!message.contains("secret"), "{message}");
        }
    }

    #[test]
    fn paths_that_leave_the_root_or_would_change_are_refused() {
        let root = Location::parse("/r").unwrap();
        for path in ["../x", "a/../../x", "/x", "a//b", "a/", ".", "a/./b", "x/C|/y"] {
            assert!(matches!(root.object(path), Err(Error::BadLocation { .. })), "{path}");
        }
    }
}
