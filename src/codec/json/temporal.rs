//! Dates and times from ISO 8601 text, as Hudi 1.0.2's converter takes them; whatever would need a guess is refused.

use super::fail::Why;
use chrono::{Datelike, NaiveDate};

/// Days from 0001-01-01, day 1, to 1970-01-01.
const EPOCH_DAY: i32 = 719_163;

/// What is left of a text.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    /// A number of exactly `count` digits.
    fn number(&mut self, count: usize) -> Option<u32> {
        let (digits, rest) = self.0.split_at_checked(count)?;
        let value = digits.iter().try_fold(0, |v, b| b.is_ascii_digit().then(|| v * 10 + u32::from(b - b'0')))?;
        self.0 = rest;
        Some(value)
    }

    fn eat(&mut self, any: &[u8]) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        any.contains(first).then(|| {
            self.0 = rest;
            *first
        })
    }

    fn date(&mut self) -> Option<i32> {
        let year = self.number(4)?;
        self.eat(b"-")?;
        let month = self.number(2)?;
        self.eat(b"-")?;
        let day = self.number(2)?;
        Some(NaiveDate::from_ymd_opt(i32::try_from(year).ok()?, month, day)?.num_days_from_ce() - EPOCH_DAY)
    }

    /// `hh:mm`, then seconds, then a fraction, both optional: seconds, and the fraction's digits.
    fn time(&mut self) -> Option<(i64, &'a [u8])> {
        let hours = self.number(2).filter(|h| *h < 24)?;
        self.eat(b":")?;
        let minutes = self.number(2).filter(|m| *m < 60)?;
        let mut seconds = 0;
        let mut fraction: &'a [u8] = &[];
        if self.eat(b":").is_some() {
            seconds = self.number(2).filter(|s| *s < 60)?;
            if self.eat(b".").is_some() {
                let len = self.0.iter().take_while(|b| b.is_ascii_digit()).count();
                if len == 0 {
                    return None;
                }
                (fraction, self.0) = self.0.split_at(len);
            }
        }
        Some((i64::from(hours * 3600 + minutes * 60 + seconds), fraction))
    }

    /// Seconds east of Greenwich; at most 18 hours, as in Java. `None`: not a zone.
    fn zone(&mut self) -> Option<i64> {
        let sign = match self.eat(b"Zz+-")? {
            b'+' => 1,
            b'-' => -1,
            _ => return Some(0),
        };
        let hours = self.number(2)?;
        let minutes = match (self.eat(b":"), self.0) {
            (None, []) => 0,
            _ => self.number(2).filter(|m| *m < 60)?,
        };
        let seconds = i64::from(hours * 3600 + minutes * 60);
        (seconds <= 18 * 3600).then_some(sign * seconds)
    }
}

/// `fraction` of a second in units of which `per_second` make one; refused when the unit cannot hold it exactly.
fn units(fraction: &[u8], per_second: i64) -> Result<i64, Why> {
    let mut unit = per_second;
    let mut total = 0;
    for digit in fraction {
        unit /= 10;
        if unit == 0 && *digit != b'0' {
            return Err(Why::Borrowed(match per_second {
                1_000 => "is finer than a millisecond, the unit of the field",
                _ => "is finer than a microsecond, the unit of the field",
            }));
        }
        total += i64::from(digit - b'0') * unit;
    }
    Ok(total)
}

/// Days since 1970-01-01 of `yyyy-mm-dd`.
pub(super) fn date(text: &str) -> Result<i32, Why> {
    let mut rest = Rest(text.as_bytes());
    match (rest.date(), rest.0) {
        (Some(days), []) => Ok(days),
        _ => Err(Why::Borrowed("is not a date like 2024-03-10")),
    }
}

/// Units since midnight of `hh:mm[:ss[.fraction]]`.
pub(super) fn time(text: &str, per_second: i64) -> Result<i64, Why> {
    let mut rest = Rest(text.as_bytes());
    match (rest.time(), rest.0) {
        (Some((seconds, fraction)), []) => Ok(seconds * per_second + units(fraction, per_second)?),
        _ => Err(Why::Borrowed("is not a time like 10:15:30")),
    }
}

/// Units since 1970-01-01T00:00Z of an ISO date and time. `local`: a wall-clock time, which must not name a zone;
/// else a text without a zone is in UTC.
pub(super) fn timestamp(text: &str, per_second: i64, local: bool) -> Result<i64, Why> {
    let unreadable = Why::Borrowed(match local {
        true => "is not a local time like 2024-03-10T02:30:00",
        false => "is not a time like 2024-03-10T02:30:00Z",
    });
    let mut rest = Rest(text.as_bytes());
    let Some(days) = rest.date() else { return Err(unreadable) };
    if rest.eat(b"Tt ").is_none() {
        return Err(unreadable);
    }
    let Some((seconds, fraction)) = rest.time() else {
        return Err(unreadable);
    };
    let zone = match (rest.0, local) {
        ([], _) => 0,
        (_, true) => return Err(Why::Borrowed("names a zone, but the field is a local time, which has none")),
        (_, false) => match (rest.zone(), rest.0) {
            (Some(zone), []) => zone,
            _ => return Err(unreadable),
        },
    };
    Ok((i64::from(days) * 86_400 + seconds - zone) * per_second + units(fraction, per_second)?)
}
