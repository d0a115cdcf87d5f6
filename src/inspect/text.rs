//! Words and columns for a terminal.

use std::fmt::Write;

/// Which end of a column its cells stand at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Left,
    Right,
}

/// Columns as wide as their widest cell, two blanks between them and in front.
pub fn table(out: &mut String, columns: &[(&str, Side)], rows: Vec<Vec<String>>) {
    for line in lines(columns, rows) {
        let _ = writeln!(out, "  {line}");
    }
}

/// The lines of a table, without blanks in front.
pub fn lines(columns: &[(&str, Side)], rows: Vec<Vec<String>>) -> Vec<String> {
    let head = columns.iter().map(|(name, _)| name.to_string()).collect();
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(rows).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns.len()).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(columns).zip(&widths).map(|((cell, (_, side)), width)| match side {
            Side::Left => format!("{cell:<width$}"),
            Side::Right => format!("{cell:>width$}"),
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_string()
    };
    rows.iter().map(line).collect()
}

/// Bytes in at most six characters, in powers of 1024 as everything about Hudi's sizes is: `0 B`, `999 B`, `1.5 KB`, `120 MB`.
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KB", "MB", "GB", "TB", "PB", "EB"];
    if bytes < 1000 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    match value < 9.95 {
        true => format!("{value:.1} {}", UNITS[unit]),
        false => format!("{value:.0} {}", UNITS[unit]),
    }
}

/// A span of time in at most four characters: `0s`, `59s`, `12m`, `47h`, `300d`.
pub fn span(millis: u64) -> String {
    match millis / 1000 {
        seconds @ 0..=99 => format!("{seconds}s"),
        seconds @ 100..=5_999 => format!("{}m", seconds / 60),
        seconds @ 6_000..=359_999 => format!("{}h", seconds / 3600),
        seconds => format!("{}d", seconds / 86_400),
    }
}

/// How long something took, in at most five characters: `7ms`, `1.2s`, `48s`, `1m48s`, `12m`.
pub fn took(millis: u64) -> String {
    match millis {
        0..=999 => format!("{millis}ms"),
        1_000..=9_949 => format!("{:.1}s", millis as f64 / 1000.0),
        100_000..=599_999 => format!("{}m{:02}s", millis / 60_000, millis / 1000 % 60),
        _ => span(millis),
    }
}

/// A number with a blank between groups of three digits.
pub fn number(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() * 4 / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(' ');
        }
        out.push(digit);
    }
    out
}

/// `1 file`, `2 files`.
pub fn count(n: u64, one: &str) -> String {
    format!("{} {one}{}", number(n), if n == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_times_are_short() {
        for (bytes, want) in [
            (0, "0 B"),
            (999, "999 B"),
            (1000, "1.0 KB"),
            (10_189, "10 KB"),
            (1_023_487, "999 KB"),
            (1_023_488, "1.0 MB"),
            (125_829_120, "120 MB"),
            (u64::MAX, "16 EB"),
        ] {
            assert_eq!(size(bytes), want, "{bytes}");
            assert!(size(bytes).len() <= 6);
        }
        for (millis, want) in [
            (0, "0s"),
            (99_999, "99s"),
            (100_000, "1m"),
            (5_999_999, "99m"),
            (6_000_000, "1h"),
            (360_000_000, "4d"),
            (86_400_000 * 999, "999d"),
        ] {
            assert_eq!(span(millis), want, "{millis}");
        }
        for (millis, want) in [
            (7, "7ms"),
            (999, "999ms"),
            (1_000, "1.0s"),
            (9_949, "9.9s"),
            (9_950, "9s"),
            (108_000, "1m48s"),
            (600_000, "10m"),
        ] {
            assert_eq!(took(millis), want, "{millis}");
        }
        for (n, want) in [(0, "0"), (999, "999"), (1_000, "1 000"), (12_345_678, "12 345 678")] {
            assert_eq!(number(n), want);
        }
        assert_eq!((count(1, "file").as_str(), count(2_000, "file").as_str()), ("1 file", "2 000 files"));
    }

    #[test]
    fn columns_are_as_wide_as_they_must_be() {
        let mut out = String::new();
        let rows = vec![vec!["a".to_string(), "1".to_string()], vec!["ü22".to_string(), "10".to_string()]];
        table(&mut out, &[("n", Side::Left), ("m", Side::Right)], rows);
        assert_eq!(out, "  n     m\n  a     1\n  ü22  10\n");
    }
}
