//! The house keeps its order: who may use whom, how long a file may be, who may touch the disk.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use regex::Regex;

/// Room, and the rooms it may use. `main`, `lib`, `error`, `front`, `demo` and `streamer` may use all.
const MAY_USE: &[(&str, &[&str])] = &[
    ("cli", &["config"]),
    ("source", &["config", "codec", "schema", "storage", "observe"]),
    ("transform", &["config", "source", "observe"]),
    ("inspect", &["config", "index", "slice", "record", "schema", "table", "storage", "observe"]),
    ("service", &["config", "write", "index", "slice", "record", "schema", "table", "storage", "observe"]),
    ("sync", &["config", "table", "storage", "observe"]),
    ("write", &["config", "index", "slice", "record", "codec", "schema", "table", "storage", "observe"]),
    ("index", &["config", "slice", "record", "schema", "table", "storage", "observe"]),
    ("slice", &["config", "record", "codec", "schema", "table", "storage", "observe"]),
    ("record", &["config"]),
    ("codec", &["config", "schema"]),
    ("schema", &["config", "storage"]),
    ("table", &["storage"]),
    ("storage", &["config", "observe"]),
    ("config", &[]),
    ("observe", &[]),
];
const MAY_USE_ALL: &[&str] = &["main", "lib", "error", "front", "demo", "streamer"];

const LONGEST_FILE: usize = 600;

fn sources() -> Vec<(PathBuf, String)> {
    fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).expect("list src") {
            let path = entry.expect("list src").path();
            match path.is_dir() {
                true => walk(&path, found),
                false if path.extension().is_some_and(|e| e == "rs") => found.push(path),
                false => {}
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    walk(&root, &mut found);
    found.sort();
    let read = |p: PathBuf| {
        (p.strip_prefix(&root).expect("below src").to_owned(), fs::read_to_string(&p).expect("read a source"))
    };
    found.into_iter().map(read).collect()
}

/// The room a file belongs to: its folder below `src`, or its own name.
fn room(path: &Path) -> String {
    let first = path.iter().next().expect("a relative path").to_string_lossy();
    first.trim_end_matches(".rs").to_owned()
}

/// The text without comments, so that doc links are free.
fn code(text: &str) -> String {
    text.lines().map(|line| if line.trim_start().starts_with("//") { "" } else { line }).collect::<Vec<_>>().join("\n")
}

/// First segments of every path that starts at the crate's root, groups (`use crate::{a::X, b}`) taken apart.
fn used(code: &str) -> BTreeSet<String> {
    let path = Regex::new(r"\bcrate::\s*(?:(\w+)|\{)").expect("a good pattern");
    let word = Regex::new(r"^\s*(\w+)").expect("a good pattern");
    let mut rooms = BTreeSet::new();
    for found in path.captures_iter(code) {
        if let Some(name) = found.get(1) {
            rooms.insert(name.as_str().to_owned());
            continue;
        }
        let (mut depth, mut item) = (0, String::new());
        for c in code[found.get(0).expect("the whole match").end()..].chars() {
            match c {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 => {
                    rooms.extend(word.captures(&item).map(|w| w[1].to_owned()));
                    item.clear();
                    continue;
                }
                _ => {}
            }
            item.push(c);
        }
        rooms.extend(word.captures(&item).map(|w| w[1].to_owned()));
    }
    rooms
}

#[test]
fn no_room_imports_one_that_stands_above_it() {
    let mut wrong = Vec::new();
    for (path, text) in sources() {
        let room = room(&path);
        if MAY_USE_ALL.contains(&room.as_str()) {
            continue;
        }
        let Some((_, allowed)) = MAY_USE.iter().find(|(name, _)| *name == room) else {
            wrong.push(format!("{}: the room `{room}` is not in this test's list", path.display()));
            continue;
        };
        for other in used(&code(&text)) {
            if other != room && !allowed.contains(&other.as_str()) {
                wrong.push(format!("{}: `{room}` may not use `crate::{other}`", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn imports_are_found_in_every_spelling() {
    let code = "use crate::table::View;\nuse crate::{storage::{Storage, Error}, config,\n write::x};\nlet x = crate::record::Key::new();";
    assert_eq!(used(code).into_iter().collect::<Vec<_>>(), ["config", "record", "storage", "table", "write"]);
}

#[test]
fn no_source_file_is_longer_than_one_can_hold_in_mind() {
    let long =
        sources().into_iter().map(|(path, text)| (path, text.lines().count())).filter(|(_, n)| *n > LONGEST_FILE);
    let long: Vec<_> = long.map(|(path, n)| format!("{}: {n} lines", path.display())).collect();
    assert!(long.is_empty(), "split these (limit {LONGEST_FILE}):\n{}", long.join("\n"));
}

#[test]
fn the_table_room_reaches_files_only_through_storage() {
    let product =
        |text: &str| code(text).split("#[cfg(test)]\nmod tests {").next().is_some_and(|code| code.contains("std::fs"));
    let is_test = |path: &Path| path.ends_with("tests.rs") || path.iter().any(|part| part == "tests");
    let sources = sources().into_iter().filter(|(path, _)| room(path) == "table" && !is_test(path));
    let touching = sources.filter(|(_, text)| product(text));
    let touching: Vec<_> = touching.map(|(path, _)| path.display().to_string()).collect();
    assert!(touching.is_empty(), "std::fs in {}", touching.join(", "));
}
