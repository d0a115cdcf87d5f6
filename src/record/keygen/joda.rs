//! The part of Joda's date patterns that partition paths are made with: compiled once, then formatted and parsed.

use chrono::{DateTime, Datelike, FixedOffset, NaiveDate, NaiveDateTime, Offset, TimeZone, Timelike, Utc};
use std::fmt::Write;

/// One piece of a pattern; the number is how often its letter stands.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Literal(String),
    Year(usize),
    Month(usize),
    Day(usize),
    Hour24(usize),
    Hour12(usize),
    Minute(usize),
    Second(usize),
    Fraction(usize),
    AmPm,
    /// `Z` (+0530) or `ZZ` (+05:30).
    Offset(bool),
    Weekday(usize),
}

/// A compiled pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pattern(Vec<Token>);

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// A time zone of a key generator: a name of the tz database, `UTC`, or an offset such as `GMT+5:30` or `+05:30`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Zone {
    Fixed(FixedOffset),
    Named(chrono_tz::Tz),
}

impl Zone {
    pub fn parse(text: &str) -> Option<Zone> {
        let offset = text.strip_prefix("GMT").or_else(|| text.strip_prefix("UTC")).unwrap_or(text);
        if offset.is_empty() || text == "Z" {
            return Some(Zone::Fixed(Utc.fix()));
        }
        if let Some(sign) = [('+', 1), ('-', -1)].iter().find(|(c, _)| offset.starts_with(*c)).map(|(_, s)| *s) {
            let digits = &offset[1..];
            let (hours, minutes) = match digits.split_once(':') {
                Some(parts) => parts,
                None => digits.split_at_checked(digits.len().min(2))?,
            };
            let minutes = if minutes.is_empty() { "0" } else { minutes };
            let part = |text: &str, most: i32| text.parse::<i32>().ok().filter(|n| (0..=most).contains(n));
            return FixedOffset::east_opt(sign * (part(hours, 23)? * 3600 + part(minutes, 59)? * 60)).map(Zone::Fixed);
        }
        text.parse().ok().map(Zone::Named)
    }

    fn at(self, time: DateTime<Utc>) -> DateTime<FixedOffset> {
        match self {
            Zone::Fixed(offset) => time.with_timezone(&offset),
            Zone::Named(zone) => time.with_timezone(&zone).fixed_offset(),
        }
    }

    /// A wall-clock time in this zone. In a gap or an overlap the earlier reading counts.
    fn local(self, time: NaiveDateTime) -> Option<DateTime<FixedOffset>> {
        match self {
            Zone::Fixed(offset) => offset.from_local_datetime(&time).earliest(),
            Zone::Named(zone) => zone.from_local_datetime(&time).earliest().map(|t| t.fixed_offset()),
        }
    }
}

/// What was read: a time, with the offset that stood in the text or that the zone gave.
pub(super) fn in_zone(time: DateTime<Utc>, zone: Zone) -> DateTime<FixedOffset> {
    zone.at(time)
}

impl Pattern {
    /// Refuses letters that mean something to Joda but are not done here, naming them.
    pub fn compile(pattern: &str) -> Result<Pattern, String> {
        let mut tokens: Vec<Token> = Vec::new();
        let mut chars = pattern.chars().peekable();
        let mut literal = String::new();
        while let Some(c) = chars.next() {
            if c == '\'' {
                if chars.peek() == Some(&'\'') {
                    chars.next();
                    literal.push('\'');
                    continue;
                }
                loop {
                    match chars.next() {
                        Some('\'') => break,
                        Some(c) => literal.push(c),
                        None => return Err(format!("pattern {pattern:?} has a quote without its twin")),
                    }
                }
                continue;
            }
            if !c.is_ascii_alphabetic() {
                literal.push(c);
                continue;
            }
            let mut count = 1;
            while chars.peek() == Some(&c) {
                chars.next();
                count += 1;
            }
            if !literal.is_empty() {
                tokens.push(Token::Literal(std::mem::take(&mut literal)));
            }
            tokens.push(match c {
                'y' | 'Y' => Token::Year(count),
                'M' => Token::Month(count),
                'd' => Token::Day(count),
                'H' => Token::Hour24(count),
                'h' => Token::Hour12(count),
                'm' => Token::Minute(count),
                's' => Token::Second(count),
                'S' => Token::Fraction(count),
                'a' => Token::AmPm,
                'Z' if count <= 2 => Token::Offset(count == 2),
                'E' => Token::Weekday(count),
                other => return Err(format!("pattern letter {other} of {pattern:?} is not done yet")),
            });
        }
        if !literal.is_empty() {
            tokens.push(Token::Literal(literal));
        }
        Ok(Pattern(tokens))
    }

    /// Whether texts can be read by it. Joda reads a two-digit year in the century around now: a text would get another
    /// partition when the clock has moved on.
    pub fn reads_two_digit_years(&self) -> bool {
        self.0.contains(&Token::Year(2))
    }

    pub fn format(&self, time: DateTime<FixedOffset>) -> String {
        let mut out = String::new();
        for token in &self.0 {
            let done = match token {
                Token::Literal(text) => out.write_str(text),
                Token::Year(2) => write!(out, "{:02}", time.year().rem_euclid(100)),
                Token::Year(n) => write!(out, "{:0n$}", time.year()),
                Token::Month(3) => out.write_str(&MONTHS[time.month0() as usize][..3]),
                Token::Month(n) if *n > 3 => out.write_str(MONTHS[time.month0() as usize]),
                Token::Month(n) => write!(out, "{:0n$}", time.month()),
                Token::Day(n) => write!(out, "{:0n$}", time.day()),
                Token::Hour24(n) => write!(out, "{:0n$}", time.hour()),
                Token::Hour12(n) => write!(out, "{:0n$}", time.hour12().1),
                Token::Minute(n) => write!(out, "{:0n$}", time.minute()),
                Token::Second(n) => write!(out, "{:0n$}", time.second()),
                Token::Fraction(n) => {
                    let nanos = format!("{:09}", time.nanosecond());
                    write!(out, "{:0<n$}", &nanos[..(*n).min(9)])
                }
                Token::AmPm => out.write_str(if time.hour12().0 { "PM" } else { "AM" }),
                Token::Offset(colon) => out.write_str(&time.format(if *colon { "%:z" } else { "%z" }).to_string()),
                Token::Weekday(n) if *n > 3 => write!(out, "{}", time.format("%A")),
                Token::Weekday(_) => write!(out, "{}", time.format("%a")),
            };
            done.expect("a string takes every text");
        }
        out
    }

    /// The time in `text`. An offset in the text counts; without one the text is a wall-clock time in `zone` (UTC if
    /// there is none). With a zone the result is turned to it, else it keeps its own offset.
    pub fn parse(&self, text: &str, zone: Option<Zone>) -> Option<DateTime<FixedOffset>> {
        let mut rest = text;
        let (mut year, mut month, mut day) = (1970, 1, 1);
        let (mut hour, mut hour12, mut pm, mut minute, mut second, mut nanos) = (0, None, false, 0, 0, 0u32);
        let mut offset = None;
        for (i, token) in self.0.iter().enumerate() {
            // A number that another number follows at once has exactly the pattern's width.
            let adjacent = self
                .0
                .get(i + 1)
                .is_some_and(|t| !matches!(t, Token::Literal(_) | Token::AmPm | Token::Offset(_) | Token::Weekday(_)));
            let width = |n: usize, most: usize| if adjacent { n } else { most.max(n) };
            match token {
                Token::Literal(literal) => rest = rest.strip_prefix(literal.as_str())?,
                Token::Year(n) => (year, rest) = number(rest, width(*n, 9))?,
                Token::Month(n) if *n >= 3 => {
                    let index =
                        MONTHS.iter().position(|m| rest.get(..3).is_some_and(|r| r.eq_ignore_ascii_case(&m[..3])))?;
                    let full = MONTHS[index].len();
                    let long = rest.get(..full).is_some_and(|r| r.eq_ignore_ascii_case(MONTHS[index]));
                    rest = &rest[if long { full } else { 3 }..];
                    month = index as u32 + 1;
                }
                Token::Month(n) => (month, rest) = number(rest, width(*n, 2))?,
                Token::Day(n) => (day, rest) = number(rest, width(*n, 2))?,
                Token::Hour24(n) => (hour, rest) = number(rest, width(*n, 2))?,
                Token::Hour12(n) => {
                    let (value, tail) = number::<u32>(rest, width(*n, 2))?;
                    // 13 under `hh` is a mistake in the pattern, as in Joda, not one o'clock.
                    hour12 = Some(value).filter(|h| (1..=12).contains(h));
                    hour12?;
                    rest = tail;
                }
                Token::Minute(n) => (minute, rest) = number(rest, width(*n, 2))?,
                Token::Second(n) => (second, rest) = number(rest, width(*n, 2))?,
                Token::Fraction(n) => {
                    let digits = rest.bytes().take(width(*n, 9)).take_while(u8::is_ascii_digit).count();
                    if digits == 0 {
                        return None;
                    }
                    nanos = format!("{:0<9}", &rest[..digits.min(9)]).parse().ok()?;
                    rest = &rest[digits..];
                }
                Token::AmPm => {
                    let word = rest.get(..2)?;
                    pm = word.eq_ignore_ascii_case("pm");
                    if !pm && !word.eq_ignore_ascii_case("am") {
                        return None;
                    }
                    rest = &rest[2..];
                }
                Token::Offset(_) => {
                    let length = if rest.starts_with('Z') {
                        1
                    } else {
                        rest.bytes().take_while(|b| b"+-:0123456789".contains(b)).count()
                    };
                    let Zone::Fixed(found) = Zone::parse(&rest[..length])? else { return None };
                    offset = Some(found);
                    rest = &rest[length..];
                }
                Token::Weekday(_) => rest = rest.trim_start_matches(|c: char| c.is_alphabetic()),
            }
        }
        if !rest.is_empty() {
            return None;
        }
        if let Some(h) = hour12 {
            hour = (h % 12) + if pm { 12 } else { 0 };
        }
        let local = NaiveDate::from_ymd_opt(year, month, day)?.and_hms_nano_opt(hour, minute, second, nanos)?;
        let time = match offset {
            Some(offset) => offset.from_local_datetime(&local).single()?,
            None => zone.unwrap_or(Zone::Fixed(Utc.fix())).local(local)?,
        };
        Some(match zone {
            Some(zone) => zone.at(time.with_timezone(&Utc)),
            None => time,
        })
    }
}

fn number<T: std::str::FromStr>(text: &str, most: usize) -> Option<(T, &str)> {
    let digits = text.bytes().take(most).take_while(u8::is_ascii_digit).count();
    Some((text.get(..digits)?.parse().ok()?, &text[digits..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_format() {
        let time = in_zone(
            DateTime::from_timestamp_millis(1_709_951_400_123).expect("a time"),
            Zone::parse("UTC").expect("UTC"),
        );
        let cases = [
            ("yyyy/MM/dd", "2024/03/09"),
            ("yyyy-MM-dd HH:mm:ss.SSS", "2024-03-09 02:30:00.123"),
            ("yyyy-MM-dd'T'HH:mm:ssZ", "2024-03-09T02:30:00+0000"),
            ("hh a", "02 AM"),
            ("'year='yyyy''MMM", "year=2024'Mar"),
            ("yyyyMMdd ZZ", "20240309 +00:00"),
        ];
        for (pattern, want) in cases {
            assert_eq!(Pattern::compile(pattern).expect(pattern).format(time), want, "{pattern}");
        }
        assert!(Pattern::compile("yyyy w").is_err_and(|e| e.contains("letter w")));
    }

    #[test]
    fn texts_parse_with_their_zone_or_the_given_one() {
        let iso = Pattern::compile("yyyy-MM-dd'T'HH:mm:ssZ").expect("a pattern");
        let kept = iso.parse("2024-03-09T04:00:00+05:30", None).expect("parses");
        assert_eq!(kept.to_rfc3339(), "2024-03-09T04:00:00+05:30");
        let turned = iso.parse("2024-03-09T04:00:00+05:30", Zone::parse("UTC")).expect("parses");
        assert_eq!(turned.to_rfc3339(), "2024-03-08T22:30:00+00:00");
        let compact = Pattern::compile("yyyyMMddHHmmss").expect("a pattern");
        let wall = compact.parse("20240309040000", Zone::parse("America/New_York")).expect("parses");
        assert_eq!(wall.to_rfc3339(), "2024-03-09T04:00:00-05:00");
        for bad in ["2024", "20240309040000x", "20241309040000", ""] {
            assert_eq!(compact.parse(bad, None), None, "{bad:?}");
        }
        let half = Pattern::compile("yyyy-MM-dd hh:mm a").expect("a pattern");
        let late = half.parse("2024-03-09 12:30 PM", None).expect("parses");
        assert_eq!(late.to_rfc3339(), "2024-03-09T12:30:00+00:00");
        for bad in ["2024-03-09 13:30 PM", "2024-03-09 00:30 AM"] {
            assert_eq!(half.parse(bad, None), None, "{bad:?}");
        }
        for bad in ["+999999999:00", "+24:00", "+05:60", "+-5:30", "+"] {
            assert_eq!(iso.parse(&format!("2024-03-09T04:00:00{bad}"), None), None, "{bad:?}");
        }
    }

    #[test]
    fn zones_have_many_spellings() {
        for (text, seconds) in [("UTC", 0), ("GMT", 0), ("GMT+5:30", 19_800), ("+05:30", 19_800), ("-0800", -28_800)] {
            let want = FixedOffset::east_opt(seconds).map(Zone::Fixed);
            assert_eq!(Zone::parse(text), want, "{text}");
        }
        assert!(matches!(Zone::parse("Europe/Amsterdam"), Some(Zone::Named(_))));
        for bad in ["Mars/Olympus", "+1é", "GMT+99:00"] {
            assert_eq!(Zone::parse(bad), None, "{bad}");
        }
    }
}
