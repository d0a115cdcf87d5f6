//! Exact decimals: from the text of numbers, and to the text that Java gives them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::fmt::Write;

/// A number as it is written: `±(whole.fraction) × 10^exponent`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Decimal<'a> {
    negative: bool,
    whole: &'a str,
    fraction: &'a str,
    exponent: i64,
    /// Written without point and exponent, so that Jackson reads it as an integer and not as a `BigDecimal`.
    integer: bool,
}

/// Why a decimal is not the whole number (of some unit) that is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Misfit {
    /// Digits would have to be cut off.
    Fraction,
    /// Too large.
    Range,
}

impl<'a> Decimal<'a> {
    /// What `java.math.BigDecimal` reads: JSON's numbers, and `+1`, `01`, `.5`, `5.`; `None` for any other text.
    pub(super) fn parse(text: &'a str) -> Option<Decimal<'a>> {
        let (negative, rest) = match text.as_bytes().first()? {
            b'-' => (true, &text[1..]),
            b'+' => (false, &text[1..]),
            _ => (false, text),
        };
        let (mantissa, exponent) = match rest.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, Some(exponent)),
            None => (rest, None),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
        if !digits(whole) || !digits(fraction) || whole.len() + fraction.len() == 0 {
            return None;
        }
        let integer = exponent.is_none() && mantissa.len() == whole.len();
        let exponent = match exponent {
            None => 0,
            // Java's own limit: the scale is an int.
            Some(text) => i64::from(text.parse::<i32>().ok()?),
        };
        Some(Decimal { negative, whole, fraction, exponent, integer })
    }

    /// The number times `10^scale`, exactly.
    pub(super) fn unscaled(&self, scale: i8) -> Result<i128, Misfit> {
        let mut value = 0i128;
        let mut zeros = 0;
        let mut too_long = false;
        for digit in self.whole.bytes().chain(self.fraction.bytes()) {
            match (digit - b'0', value) {
                (0, 0) => {}
                (0, _) => zeros += 1,
                (digit, _) => {
                    match times_power_of_ten(value, zeros + 1).and_then(|v| v.checked_add(i128::from(digit))) {
                        Some(longer) => value = longer,
                        None => too_long = true,
                    }
                    zeros = 0;
                }
            }
        }
        let shift = self.exponent - self.fraction.len() as i64 + i64::from(scale) + zeros;
        match value {
            0 => Ok(0),
            _ if shift < 0 => Err(Misfit::Fraction),
            _ if too_long => Err(Misfit::Range),
            _ => {
                let value = times_power_of_ten(value, shift).ok_or(Misfit::Range)?;
                Ok(if self.negative { -value } else { value })
            }
        }
    }

    /// Appends the number as Java prints what Jackson reads it as: `BigInteger.toString`, or `BigDecimal.toString`.
    /// `None`: beyond the scale that Java has.
    pub(super) fn java_text(&self, out: &mut String) -> Option<()> {
        let significant = self.whole.trim_start_matches('0');
        let fraction = if significant.is_empty() { self.fraction.trim_start_matches('0') } else { self.fraction };
        let digits = match [significant, fraction].concat() {
            digits if digits.is_empty() => String::from("0"),
            digits => digits,
        };
        if self.negative && digits != "0" {
            out.push('-');
        }
        if self.integer {
            out.push_str(&digits);
            return Some(());
        }
        let scale = i64::from(i32::try_from(self.fraction.len() as i64 - self.exponent).ok()?);
        let len = digits.len() as i64;
        let adjusted = len - 1 - scale;
        if scale >= 0 && adjusted >= -6 {
            if scale < len {
                let (whole, fraction) = digits.split_at((len - scale) as usize);
                out.push_str(whole);
                out.push_str(if fraction.is_empty() { "" } else { "." });
                out.push_str(fraction);
            } else {
                out.push_str("0.");
                out.extend(std::iter::repeat_n('0', (scale - len) as usize));
                out.push_str(&digits);
            }
            return Some(());
        }
        let (first, rest) = digits.split_at(1);
        out.push_str(first);
        out.push_str(if rest.is_empty() { "" } else { "." });
        out.push_str(rest);
        if adjusted != 0 {
            _ = write!(out, "E{adjusted:+}");
        }
        Some(())
    }
}

fn times_power_of_ten(value: i128, power: i64) -> Option<i128> {
    value.checked_mul(10i128.checked_pow(u32::try_from(power).ok()?)?)
}

/// The unscaled value that Kafka Connect writes as Base64 of big-endian two's complement (Hudi 1.0.2 reads it too).
///
/// Only with padding as the standard wants it, where Java would also take `abc`; and the words that stand for "no
/// value" are none, though their four letters are Base64: both would turn text into a number that nobody wrote.
pub(super) fn from_base64(text: &str) -> Option<i128> {
    if ["null", "none"].iter().any(|word| text.eq_ignore_ascii_case(word)) {
        return None;
    }
    let bytes = STANDARD.decode(text).ok()?;
    let negative = *bytes.first()? >= 0x80;
    let sign = if negative { 0xff } else { 0 };
    let (high, low) = bytes.split_at(bytes.len().saturating_sub(16));
    let mut wide = [sign; 16];
    wide[16 - low.len()..].copy_from_slice(low);
    let value = i128::from_be_bytes(wide);
    (high.iter().all(|b| *b == sign) && (value < 0) == negative).then_some(value)
}
