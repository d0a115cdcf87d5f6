//! Whether the job is well: what the probes answer, and why.
//!
//! *Live* means that the loop advances: every sign of life says how long it may now be quiet, and who is silent for longer than
//! that is stuck. *Ready* means that the last round went through, or found nothing new.

use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What the job does, as the probes say it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// No round has ended yet.
    Starting,
    /// The last round went through, or found nothing new.
    Ready,
    /// The last round, or the last try in this one, failed.
    Failing,
}

impl State {
    fn name(self) -> &'static str {
        match self {
            State::Starting => "starting",
            State::Ready => "ready",
            State::Failing => "failing",
        }
    }
}

/// What is known of the job. Times of the wall clock are for people, the monotonic one decides.
#[derive(Debug)]
pub(super) struct Health {
    /// How long a round may show no sign of life.
    patience: Duration,
    state: State,
    since_ms: i64,
    /// What is going on right now: a stage, `waiting`, …
    doing: &'static str,
    last_sign: Instant,
    last_sign_ms: i64,
    /// Quiet after this is stuck.
    due: Instant,
    /// Counters that move while a stage works, and their sum when last looked at.
    moving: Vec<Arc<AtomicU64>>,
    moved: u64,
    checkpoint: Option<String>,
    last_commit: Option<String>,
    last_success_ms: Option<i64>,
    consecutive_failures: u64,
    last_error: Option<Failure>,
}

/// A failed try, as told by the probes.
#[derive(Debug, Clone)]
struct Failure {
    code: &'static str,
    text: String,
    at_ms: i64,
}

/// An answer: whether all is well, and the JSON that says why.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Answer {
    pub well: bool,
    pub body: Value,
}

impl Health {
    pub fn new(patience: Duration) -> Health {
        let (now, now_ms) = (Instant::now(), epoch_ms());
        Health {
            patience,
            state: State::Starting,
            since_ms: now_ms,
            doing: "starting",
            last_sign: now,
            last_sign_ms: now_ms,
            due: now + patience,
            moving: Vec::new(),
            moved: 0,
            checkpoint: None,
            last_commit: None,
            last_success_ms: None,
            consecutive_failures: 0,
            last_error: None,
        }
    }

    /// A sign of life: `doing` begins, and takes `expected` before it is late.
    pub fn sign(&mut self, doing: &'static str, expected: Duration) {
        self.doing = doing;
        self.last_sign = Instant::now();
        self.last_sign_ms = epoch_ms();
        self.due = self.last_sign + expected + self.patience;
    }

    /// As long as the sum of these moves, the job does.
    pub fn watch(&mut self, moving: Vec<Arc<AtomicU64>>) {
        self.moved = sum(&moving);
        self.moving = moving;
    }

    pub fn succeeded(&mut self, commit: Option<(&str, &str)>) {
        if let Some((instant, checkpoint)) = commit {
            self.last_commit = Some(instant.to_string());
            self.checkpoint = Some(checkpoint.to_string());
        }
        self.last_success_ms = Some(epoch_ms());
        self.consecutive_failures = 0;
        self.enter(State::Ready);
    }

    /// Where the job goes on from.
    pub fn resumes(&mut self, checkpoint: Option<&str>) {
        self.checkpoint = checkpoint.map(str::to_string);
    }

    /// A try failed; `whole_round` when the round ended with it.
    pub fn failed(&mut self, code: &'static str, text: String, whole_round: bool) {
        self.consecutive_failures += u64::from(whole_round);
        self.last_error = Some(Failure { code, text, at_ms: epoch_ms() });
        self.enter(State::Failing);
    }

    pub fn consecutive_failures(&self) -> u64 {
        self.consecutive_failures
    }

    fn enter(&mut self, state: State) {
        if self.state != state {
            (self.state, self.since_ms) = (state, epoch_ms());
        }
    }

    /// Whether the loop advances.
    pub fn live(&mut self) -> Answer {
        let moved = sum(&self.moving);
        if moved != self.moved {
            self.moved = moved;
            self.sign(self.doing, Duration::ZERO);
        }
        let now = Instant::now();
        let well = now <= self.due;
        let quiet = now.duration_since(self.last_sign).as_secs();
        let mut body = json!({
            "live": well,
            "doing": self.doing,
            "since": iso(self.last_sign_ms),
            "quiet_seconds": quiet,
        });
        if !well {
            let why = format!(
                "no sign of life for {quiet} s in {:?}: more than hoodie.streamer.health.stall.seconds={} allows",
                self.doing,
                self.patience.as_secs()
            );
            body["why"] = why.into();
        }
        Answer { well, body }
    }

    /// Whether rounds go through.
    pub fn ready(&self) -> Answer {
        let error = self.last_error.as_ref().map(|e| json!({"code": e.code, "text": e.text, "at": iso(e.at_ms)}));
        let body = json!({
            "ready": self.state == State::Ready,
            "state": self.state.name(),
            "since": iso(self.since_ms),
            "doing": self.doing,
            "checkpoint": self.checkpoint,
            "last_commit": self.last_commit,
            "last_success": self.last_success_ms.map(iso),
            "consecutive_failures": self.consecutive_failures,
            "last_error": error,
        });
        Answer { well: self.state == State::Ready, body }
    }
}

fn sum(counters: &[Arc<AtomicU64>]) -> u64 {
    counters.iter().fold(0, |sum, c| sum.wrapping_add(c.load(Ordering::Relaxed)))
}

pub(super) fn epoch_ms() -> i64 {
    chrono::Utc::now().timestamp_millis()
}

fn iso(ms: i64) -> String {
    chrono::DateTime::from_timestamp_millis(ms)
        .map_or_else(String::new, |t| t.to_rfc3339_opts(chrono::SecondsFormat::Millis, true))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(3600);

    #[test]
    fn ready_follows_the_last_round() {
        let mut health = Health::new(LONG);
        assert_eq!((health.ready().well, &health.ready().body["state"]), (false, &json!("starting")));
        health.failed("storage-io", "down".into(), false);
        assert!(!health.ready().well);
        assert_eq!(health.ready().body["consecutive_failures"], 0, "a retry inside a round is not a failed round");
        health.failed("storage-io", "down".into(), true);
        health.failed("storage-io", "still down".into(), true);
        let told = health.ready().body;
        assert_eq!((&told["state"], &told["consecutive_failures"]), (&json!("failing"), &json!(2)));
        assert_eq!(
            (&told["last_error"]["code"], &told["last_error"]["text"]),
            (&json!("storage-io"), &json!("still down"))
        );
        health.succeeded(Some(("20260101000000000", "t,0:5")));
        let told = health.ready();
        assert!(told.well);
        assert_eq!(
            (&told.body["last_commit"], &told.body["checkpoint"]),
            (&json!("20260101000000000"), &json!("t,0:5"))
        );
        assert_eq!(told.body["consecutive_failures"], 0);
        health.succeeded(None);
        assert_eq!(health.ready().body["checkpoint"], "t,0:5", "an idle round forgets nothing");
    }

    #[test]
    fn silence_beyond_what_was_announced_is_stuck() {
        let mut health = Health::new(Duration::ZERO);
        health.sign("waiting", LONG);
        assert!(health.live().well, "a wait that was announced");
        health.sign("write", Duration::ZERO);
        while Instant::now() <= health.due {}
        let told = health.live();
        assert!(!told.well && told.body["why"].as_str().is_some_and(|w| w.contains("write")), "{told:?}");
        let patient = Health::new(LONG).live();
        assert!(patient.well && patient.body.get("why").is_none(), "{patient:?}");
    }

    #[test]
    fn a_counter_that_moves_is_a_sign_of_life() {
        let read = Arc::new(AtomicU64::new(7));
        let mut health = Health::new(LONG);
        health.watch(vec![read.clone(), Arc::default()]);
        let before = health.due;
        health.live();
        assert_eq!(health.due, before, "nothing moved");
        read.store(8, Ordering::Relaxed);
        health.live();
        assert!(health.due > before);
    }
}
