//! Properties files, read as `DFSPropertiesConfiguration` (0.15) reads them, but for what it would drop or mangle: that is
//! told, with file and line (streamer-options.md §3).

use super::Problem;
use super::secrets::mask_line;
use std::path::{Path, PathBuf};

/// A line `key=value` and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    pub key: String,
    pub value: String,
    /// `job.properties:12`, `--hoodie-conf`.
    pub origin: String,
}

/// What was read, and what was odd about it.
#[derive(Debug, Default)]
pub(super) struct Parsed {
    pub lines: Vec<Line>,
    pub warnings: Vec<String>,
    pub problems: Vec<Problem>,
}

impl Parsed {
    fn problem(&mut self, text: String) {
        self.problems.push(Problem { code: "config-properties-file", text });
    }

    /// A file and those that it includes, in place.
    pub fn file(&mut self, path: &Path) {
        self.include(path, &mut Vec::new(), None);
    }

    fn include(&mut self, path: &Path, open: &mut Vec<PathBuf>, from: Option<&str>) {
        let from = from.map(|f| format!(" (included at {f})")).unwrap_or_default();
        if open.iter().any(|p| p == path) {
            return self.problem(format!("loop detected: {} includes itself{from}", path.display()));
        }
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(e) => {
                let at = path.display();
                let hint = if at.to_string().contains(":/") { "; it must be a local file: copy it here" } else { "" };
                return self.problem(format!("cannot read properties file {at}: {e}{hint}{from}"));
            }
        };
        open.push(path.to_path_buf());
        let name = path.file_name().map_or_else(|| path.display().to_string(), |n| n.to_string_lossy().into_owned());
        for (number, line) in text.lines().enumerate() {
            let origin = format!("{name}:{}", number + 1);
            if let Some(line) = self.split(line, &origin) {
                self.take(line, path.parent().unwrap_or(Path::new("")), open);
            }
        }
        open.pop();
    }

    /// One line from outside of any file.
    pub fn line(&mut self, line: &str, origin: &str) {
        if let Some(line) = self.split(line, origin) {
            self.take(line, Path::new(""), &mut Vec::new());
        }
    }

    /// Keeps a line, or reads the file that it includes: relative to `folder`, with or without blanks around the `=`.
    fn take(&mut self, line: Line, folder: &Path, open: &mut Vec<PathBuf>) {
        if line.key != "include" {
            return self.lines.push(line);
        }
        let other = line.value.strip_prefix("file://").unwrap_or(&line.value);
        self.include(&folder.join(other), open, Some(&line.origin));
    }

    /// Key and value of a line that has them.
    fn split(&mut self, line: &str, origin: &str) -> Option<Line> {
        let text = line.trim();
        if text.is_empty() || line.starts_with('#') {
            return None;
        }
        if text.starts_with('#') || text.starts_with('!') {
            let what = if text.starts_with('#') { "an indented comment" } else { "a comment with !" };
            self.warnings.push(format!("{origin}: {what}; Hudi would read it as a key, here it has no effect"));
            return None;
        }
        let (key, value) = match (text.split_once('='), text.split_once(char::is_whitespace)) {
            (Some((key, value)), _) => (key.trim(), value.trim()),
            (None, Some((key, value))) => (key.trim(), value.trim()),
            (None, None) => {
                let text = mask_line(text);
                self.problem(format!("{origin}: {text:?} has no `=`: Hudi would drop it; write key=value"));
                return None;
            }
        };
        if key.is_empty() {
            self.problem(format!("{origin}: {:?} has no key before the `=`", mask_line(text)));
            return None;
        }
        if value.ends_with('\\') {
            self.warnings
                .push(format!("{origin}: the backslash at the end is part of the value; lines are not continued"));
        }
        Some(Line { key: key.into(), value: value.into(), origin: origin.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(line: &str) -> Parsed {
        let mut parsed = Parsed::default();
        parsed.line(line, "f:1");
        parsed
    }

    #[test]
    fn lines_are_read_as_hudi_reads_them() {
        let cases = [
            ("k = v", Some(("k", "v"))),
            ("k=a=b", Some(("k", "a=b"))),
            ("k v w", Some(("k", "v w"))),
            ("k=", Some(("k", ""))),
            ("k=a # b", Some(("k", "a # b"))),
            ("k=a\\tb", Some(("k", "a\\tb"))),
            ("k='a   b'", Some(("k", "'a   b'"))),
            ("# c", None),
            ("", None),
        ];
        for (line, want) in cases {
            let parsed = one(line);
            assert!(parsed.problems.is_empty() && parsed.warnings.is_empty(), "{line}");
            assert_eq!(parsed.lines.first().map(|l| (l.key.as_str(), l.value.as_str())), want, "{line}");
        }
    }

    #[test]
    fn what_hudi_would_drop_or_mangle_is_told() {
        for line in ["a:b", "=v"] {
            assert!(one(line).problems[0].text.starts_with("f:1"), "{line}");
        }
        for line in ["  # k=v", "! bang=1", "k=v\\"] {
            assert!(one(line).warnings[0].starts_with("f:1"), "{line}");
        }
        assert!(one("  # k=v").lines.is_empty());
        let told = &one("sasl.password:hunter2").problems[0].text;
        assert!(told.contains("sasl.password") && !told.contains("hunter2"), "{told}");
    }

    #[test]
    fn files_include_others_but_not_themselves() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("written");
        write("a", "k=1\ninclude=b\nk=3\n");
        write("b", "k=2\n");
        let mut parsed = Parsed::default();
        parsed.file(&folder.path().join("a"));
        let got: Vec<_> = parsed.lines.iter().map(|l| (l.value.as_str(), l.origin.as_str())).collect();
        assert_eq!(got, [("1", "a:1"), ("2", "b:1"), ("3", "a:3")]);
        // Hudi takes this spelling, too; read as a key it would lose the file without a word.
        write("a", "k=1\ninclude = b\nk=3\n");
        let mut parsed = Parsed::default();
        parsed.file(&folder.path().join("a"));
        assert_eq!(parsed.lines.len(), 3, "{parsed:?}");
        let mut parsed = Parsed::default();
        parsed.line(&format!("include={}", folder.path().join("b").display()), "--hoodie-conf");
        assert_eq!(parsed.lines.first().map(|l| l.value.as_str()), Some("2"), "{parsed:?}");
        write("b", "include=a\n");
        let mut parsed = Parsed::default();
        parsed.file(&folder.path().join("a"));
        assert!(parsed.problems[0].text.contains("loop"));
        write("b", "include=gone\n");
        let mut parsed = Parsed::default();
        parsed.file(&folder.path().join("a"));
        assert!(parsed.problems[0].text.contains("gone") && parsed.problems[0].text.contains("b:1"));
    }
}
