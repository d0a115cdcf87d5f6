//! What goes wrong inside a record: made where it is met, given its path while the call stack unwinds.

use super::JsonError;
use super::scan::Cursor;
use std::borrow::Cow;
use std::fmt::Write;

/// Boxed, so that the result that every value's function returns stays one word.
pub(crate) type Fallible<T = ()> = Result<T, Box<Fail>>;

/// Why a value does not fit its field, as the second half of a sentence that begins with the value.
pub(crate) type Why = Cow<'static, str>;

/// Characters of a value that a message shows (`cases/07`): enough to find it, too few to spill a record into a log.
const SHOWN: usize = 200;

#[derive(Debug)]
pub(crate) enum Fail {
    Malformed {
        why: Why,
        at: usize,
    },
    /// `from`: where the value starts.
    Value {
        path: Vec<Step>,
        why: Why,
        from: usize,
    },
    Missing {
        path: Vec<Step>,
    },
}

/// One step of the way to a field.
#[derive(Debug)]
pub(crate) enum Step {
    Field(String),
    Item(usize),
    Key(String),
}

impl Fail {
    /// The same failure, seen from one level further up. `path` holds the innermost step first.
    pub(crate) fn under(mut self: Box<Self>, step: Step) -> Box<Fail> {
        match &mut *self {
            Fail::Malformed { .. } => {}
            Fail::Value { path, .. } | Fail::Missing { path } => path.push(step),
        }
        self
    }

    pub(crate) fn into_error(self, text: &str) -> JsonError {
        match self {
            Fail::Malformed { why, at } => JsonError::Malformed { why: why.into_owned(), at: at + 1 },
            Fail::Value { path, why, from } => JsonError::Value {
                field: display(&path),
                value: shown(Cursor::new(text, from).value_text()),
                why: why.into_owned(),
                at: from + 1,
            },
            Fail::Missing { path } => JsonError::Missing { field: display(&path) },
        }
    }
}

/// The first [`SHOWN`] characters of `text`.
pub(crate) fn shown(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn display(path: &[Step]) -> String {
    let mut out = String::new();
    for step in path.iter().rev() {
        match step {
            Step::Field(name) if out.is_empty() => out.push_str(name),
            Step::Field(name) => _ = write!(out, ".{name}"),
            Step::Item(i) => _ = write!(out, "[{i}]"),
            Step::Key(key) => _ = write!(out, "[{:?}]", shown(key)),
        }
    }
    out
}
