//! A testing aid: one storage call of a process goes wrong.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

const VARIABLE: &str = "HUDI_STREAMER_STORAGE_FAULT";
const DELAY: Duration = Duration::from_secs(1);

/// Kinds of calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Call {
    /// Small files whole, and the beginnings of uploads.
    Put,
    List,
    /// The end of an upload, where the file gets its name.
    Rename,
    Delete,
    Read,
}

/// What happens instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// Nothing is done.
    Fail,
    /// It is done a second later.
    Delay,
    /// What a process leaves that dies half way, and the call fails.
    Tear,
    /// The same, and the process dies of it.
    Kill,
    /// It is done, and the call fails all the same: an answer got lost, or a disk took a file and failed to sync its folder.
    Lose,
}

/// `HUDI_STREAMER_STORAGE_FAULT=<fail|delay|tear|kill|lose>:<put|list|rename|delete|read|any>:<n>`: the n-th such call of the
/// process, from 1, whatever storage it is made to. Once.
#[derive(Debug)]
pub(super) struct Faults {
    fault: Fault,
    /// `None`: any.
    call: Option<Call>,
    left: AtomicU64,
}

impl Faults {
    /// The one of this process; a text that says nothing is an error, lest a test passes by it.
    pub fn of_process() -> Result<Option<Arc<Faults>>, &'static str> {
        static OF_PROCESS: LazyLock<Result<Option<Arc<Faults>>, &'static str>> = LazyLock::new(|| {
            let Ok(text) = std::env::var(VARIABLE) else { return Ok(None) };
            let faults = parse(&text).ok_or(
                "HUDI_STREAMER_STORAGE_FAULT is to be <fail|delay|tear|kill|lose>:<put|list|rename|delete|read|any>:<n>",
            )?;
            Ok(Some(Arc::new(faults)))
        });
        OF_PROCESS.clone()
    }

    /// What is to happen to this call.
    pub fn strike(&self, call: Call) -> Option<Fault> {
        let counts = self.call.is_none_or(|only| only == call);
        (counts && self.left.fetch_sub(1, Ordering::Relaxed) == 1).then_some(self.fault)
    }
}

pub(super) fn parse(text: &str) -> Option<Faults> {
    let mut parts = text.split(':');
    let fault = match parts.next()? {
        "fail" => Fault::Fail,
        "delay" => Fault::Delay,
        "tear" => Fault::Tear,
        "kill" => Fault::Kill,
        "lose" => Fault::Lose,
        _ => return None,
    };
    let call = match parts.next()? {
        "put" => Some(Call::Put),
        "list" => Some(Call::List),
        "rename" => Some(Call::Rename),
        "delete" => Some(Call::Delete),
        "read" => Some(Call::Read),
        "any" => None,
        _ => return None,
    };
    let left = parts.next()?.parse().ok().filter(|n| *n > 0)?;
    parts.next().is_none().then_some(Faults { fault, call, left: AtomicU64::new(left) })
}

pub(super) async fn delay() {
    tokio::time::sleep(DELAY).await;
}

pub(super) fn delay_blocking() {
    std::thread::sleep(DELAY);
}

/// As `kill -9` would.
pub(super) fn die() {
    let _ = signal_hook::low_level::raise(signal_hook::consts::SIGKILL);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nth_call_of_its_kind_is_struck_and_no_other() {
        let calls = [Call::Read, Call::Put, Call::Read, Call::Put, Call::Read, Call::Put];
        for (text, want) in [
            ("fail:put:1", [None, Some(Fault::Fail), None, None, None, None]),
            ("kill:put:3", [None, None, None, None, None, Some(Fault::Kill)]),
            ("lose:read:2", [None, None, Some(Fault::Lose), None, None, None]),
            ("tear:any:3", [None, None, Some(Fault::Tear), None, None, None]),
            ("delay:delete:1", [None; 6]),
            ("fail:read:9", [None; 6]),
        ] {
            let faults = parse(text).expect(text);
            assert_eq!(calls.map(|call| faults.strike(call)), want, "{text}");
        }
    }

    #[test]
    fn a_text_that_says_nothing_is_refused() {
        for text in ["", "fail", "fail:put", "fail:put:0", "fail:put:x", "fail:write:1", "burn:put:1", "fail:put:1:2"] {
            assert!(parse(text).is_none(), "{text}");
        }
    }
}
