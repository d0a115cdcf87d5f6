//! The answers for people.

use super::form::{Position, date};
use super::show::{Entry, InForce, Meaning, Shown};
use super::topic::Partition;
use crate::inspect::text::Side::{Left, Right};
use crate::inspect::text::{span, table};
use crate::source::kafka::Offsets;
use std::collections::BTreeSet;
use std::fmt::Write;

/// What `checkpoint show` says.
pub(super) fn report(shown: &Shown) -> String {
    let mut out = String::new();
    let mut line = |name: &str, value: &str| {
        let _ = writeln!(out, "{name:<10} {value}");
    };
    let name = shown.table_name.as_deref().unwrap_or("no name");
    line("table", &format!("{} ({name})", shown.table));
    match &shown.position {
        None => line("position", "none: no commit of the active timeline carries one"),
        Some(position) => in_force(position, &mut line),
    }
    let next = &shown.next_run;
    let from = next.checkpoint.as_deref().map(|c| format!(" ({c})")).unwrap_or_default();
    line("next run", &format!("{}{from}", next.why));
    for open in &shown.open_writes {
        line(
            "open",
            &format!("{open}: the next write rolls it back, unless its writer is alive or it is a clustering"),
        );
    }
    if let Some(position) = shown.position.as_ref().filter(|p| !p.meaning.partitions.is_empty()) {
        out.push('\n');
        partitions(&position.meaning, &mut out);
    }
    history(shown, &mut out);
    out.truncate(out.trim_end().len());
    out
}

fn in_force(position: &InForce, line: &mut impl FnMut(&str, &str)) {
    let date = position.meaning.time.as_deref().map(|time| format!(" = {time}")).unwrap_or_default();
    line("position", &format!("{}{date}", position.checkpoint.as_deref().unwrap_or("none, but a reset key")));
    let since = position.committed_at.as_deref().and_then(ago).map(|ago| format!(", completed {ago} ago"));
    let archived = if position.archived { ", which another writer has archived" } else { "" };
    line("  held by", &format!("{}{}{archived}", position.instant, since.unwrap_or_default()));
    // Whoever shares the table with other jobs wants to see theirs, too.
    let InForce { checkpoint, v1, v2, reset_key, ignore_key, .. } = position;
    let told = [checkpoint, v1, v2, reset_key, ignore_key];
    for (key, value) in position.keys.iter().filter(|(_, value)| !told.into_iter().flatten().any(|told| told == *value))
    {
        line("  besides", &format!("{key}={value}"));
    }
    if position.archived {
        return;
    }
    let spelled = match (&position.v1, &position.v2) {
        (Some(v1), Some(v2)) if v1 == v2 => "for Hudi 0.x and 1.x alike (V1, V2)".to_string(),
        (Some(v1), Some(v2)) => format!("differently for Hudi 0.x (V1: {v1}) and 1.x (V2: {v2}), which is taken here"),
        (Some(_), None) => "for Hudi 0.x alone (V1)".into(),
        (None, Some(_)) => "for Hudi 1.x alone (V2): a Streamer of Hudi 0.x would not find it".into(),
        (None, None) => "not at all".into(),
    };
    line("  written", &spelled);
    for (flag, key) in [("--checkpoint", &position.reset_key), ("--ignore-checkpoint", &position.ignore_key)] {
        if let Some(key) = key {
            line("  counted", &format!("{flag} {key}, which does not count again"));
        }
    }
}

/// How long ago that was.
fn ago(rfc3339: &str) -> Option<String> {
    let then = chrono::DateTime::parse_from_rfc3339(rfc3339).ok()?;
    let millis = chrono::Utc::now().signed_duration_since(then).num_milliseconds();
    Some(span(u64::try_from(millis).unwrap_or(0)))
}

fn partitions(meaning: &Meaning, out: &mut String) {
    let _ = writeln!(out, "topic {}", meaning.topic.as_deref().unwrap_or_default());
    let number = |number: Option<i64>| number.map_or("–".to_string(), |n| n.to_string());
    if let Some(why) = &meaning.lag_unknown {
        let rows = meaning.partitions.iter().map(|p| vec![p.partition.to_string(), number(p.offset)]);
        table(out, &[("partition", Right), ("position", Right)], rows.collect());
        let _ = writeln!(out, "  the lag is not told: {why}");
        return;
    }
    let row = |p: &Partition| {
        let numbers = [p.offset, p.earliest, p.end, p.lag].map(number);
        let note = p.note.clone().unwrap_or_default();
        [p.partition.to_string()].into_iter().chain(numbers).chain([note]).collect()
    };
    let mut rows: Vec<Vec<String>> = meaning.partitions.iter().map(row).collect();
    rows.push(vec!["total".into(), String::new(), String::new(), String::new(), number(meaning.lag), String::new()]);
    let columns =
        [("partition", Right), ("position", Right), ("earliest", Right), ("end", Right), ("lag", Right), ("", Left)];
    table(out, &columns, rows);
}

fn history(shown: &Shown, out: &mut String) {
    if shown.history.is_empty() {
        return;
    }
    let older = match shown.older_commits {
        0 => String::new(),
        n => format!(", {n} older left out"),
    };
    let _ = writeln!(out, "\nhistory (newest first{older})");
    let columns = [
        ("instant", Left),
        ("action", Left),
        ("operation", Left),
        ("inserted", Right),
        ("updated", Right),
        ("deleted", Right),
        ("position", Left),
    ];
    let rows = shown.history.iter().map(|e: &Entry| {
        let position = match (&e.checkpoint, &e.set_in_place_of) {
            (None, _) => "– (another writer's, or a service's)".to_string(),
            (Some(checkpoint), None) => checkpoint.clone(),
            (Some(checkpoint), Some(before)) => format!("{checkpoint} (set by hand, before: {before})"),
        };
        let numbers = [e.inserted, e.updated, e.deleted].map(|n| n.to_string());
        [e.instant.clone(), e.action.clone(), e.operation.clone()]
            .into_iter()
            .chain(numbers)
            .chain([position])
            .collect()
    });
    table(out, &columns, rows.collect());
}

/// What setting a position changes: by partition, where both positions have partitions.
pub(super) fn change(before: Option<&str>, after: &str) -> String {
    let read = |text: &str| Position::read(text).ok();
    let mut out = format!("{} → {after}", before.unwrap_or("none"));
    match (before.and_then(read), read(after)) {
        (Some(Position::Files(before)), Some(Position::Files(after))) => {
            let what = if after < before {
                "files of the time between are read again"
            } else {
                "files of the time between are skipped"
            };
            let name = |millis| date(millis).unwrap_or_else(|| "no time".into());
            let _ = write!(out, "\n{} → {}: {what}", name(before), name(after));
        }
        (
            Some(Position::Kafka(Offsets { topic: old_topic, next: old })),
            Some(Position::Kafka(Offsets { topic, next: new })),
        ) if old_topic == topic => {
            let partitions: BTreeSet<i32> = old.keys().chain(new.keys()).copied().collect();
            let text = |offset: Option<&i64>| offset.map_or("–".to_string(), i64::to_string);
            let rows = partitions.iter().map(|p| {
                let (old, new) = (old.get(p), new.get(p));
                vec![p.to_string(), text(old), text(new), moved(old.copied(), new.copied())]
            });
            out.push('\n');
            table(&mut out, &[("partition", Right), ("before", Right), ("after", Right), ("", Left)], rows.collect());
            out.truncate(out.trim_end().len());
        }
        _ => {}
    }
    out
}

fn moved(old: Option<i64>, new: Option<i64>) -> String {
    match (old, new) {
        (Some(old), Some(new)) if new < old => format!("{} offsets are read again", old - new),
        (Some(old), Some(new)) if new > old => format!("{} offsets are skipped", new - old),
        (Some(_), Some(_)) => "stays".into(),
        (None, _) => "is new".into(),
        (_, None) => "is left out".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_told_by_partition() {
        let text = change(Some("t,0:10,1:5,2:7"), "t,0:4,1:9,3:0");
        let lines: Vec<String> = text.lines().map(|l| l.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        let want = [
            "t,0:10,1:5,2:7 → t,0:4,1:9,3:0",
            "partition before after",
            "0 10 4 6 offsets are read again",
            "1 5 9 4 offsets are skipped",
            "2 7 – is left out",
            "3 – 0 is new",
        ];
        assert_eq!(lines, want);
        assert!(
            change(Some("1700000001000"), "1700000000000")
                .contains("2023-11-14T22:13:20Z: files of the time between are read again")
        );
        assert_eq!(change(None, "5"), "none → 5");
        assert_eq!(change(Some("a,0:1"), "b,0:1"), "a,0:1 → b,0:1");
    }
}
