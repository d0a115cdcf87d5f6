//! Named points at which a test may kill the process, or stop it.

use signal_hook::consts::{SIGKILL, SIGSTOP};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Where to die, and how many passings are left.
struct Fault {
    signal: i32,
    name: String,
    passings: AtomicU64,
}

/// A testing aid: with `HUDI_STREAMER_FAULT=name[:n]` in the environment the process kills itself, as `kill -9` would,
/// when it passes the point of that name for the n-th time (the first by default). Points: `before-inflight`,
/// `while-writing`, `in-log-block`, `after-quarantine`, `before-complete`, `under-lock`, `after-complete`; of a compaction
/// `after-plan`, `in-compaction`, `before-compaction-complete`, `after-compaction-complete`; of a clean `after-clean-plan`,
/// `in-clean`, `before-clean-complete`; of archiving `in-archive`, `after-archive-file`, `in-archive-deletes`; of taking over
/// what a dead process left `in-claim`. With `stop:` before the name it stops there, as by `kill -STOP`, until it is continued.
/// Without the variable it costs one load.
pub fn fault_point(name: &str) {
    static FAULT: OnceLock<Option<Fault>> = OnceLock::new();
    let fault = FAULT.get_or_init(|| parse(&std::env::var("HUDI_STREAMER_FAULT").ok()?));
    if let Some(fault) = fault
        && fault.passed(name)
    {
        let _ = signal_hook::low_level::raise(fault.signal);
    }
}

impl Fault {
    /// Whether this passing is the one to die at.
    fn passed(&self, name: &str) -> bool {
        self.name == name && self.passings.fetch_sub(1, Ordering::Relaxed) == 1
    }
}

fn parse(text: &str) -> Option<Fault> {
    let (signal, text) = match text.strip_prefix("stop:") {
        Some(text) => (SIGSTOP, text),
        None => (SIGKILL, text),
    };
    let (name, passings) = text.rsplit_once(':').and_then(|(n, p)| Some((n, p.parse().ok()?))).unwrap_or((text, 1));
    (!name.is_empty()).then(|| Fault { signal, name: name.to_owned(), passings: AtomicU64::new(passings) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nth_passing_of_the_named_point_is_the_one() {
        for (text, name, want) in [
            ("while-writing", "while-writing", [true, false, false]),
            ("while-writing:2", "while-writing", [false, true, false]),
            ("while-writing:3", "while-writing", [false, false, true]),
            ("while-writing", "before-complete", [false, false, false]),
        ] {
            let fault = parse(text).unwrap();
            assert_eq!([(); 3].map(|()| fault.passed(name)), want, "{text} at {name}");
            let stop = parse(&format!("stop:{text}")).unwrap();
            assert_eq!([(); 3].map(|()| stop.passed(name)), want, "stop:{text} at {name}");
            assert_eq!((fault.signal, stop.signal), (SIGKILL, SIGSTOP));
        }
        assert!(parse("").is_none());
    }
}
