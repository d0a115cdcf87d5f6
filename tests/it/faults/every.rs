//! One fault after the other, until a run has no call left to hit.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, SystemTime};

use super::*;

/// What the program says when a fault of its own happens.
pub(super) const FIRED: &str = "storage fault injected";

/// After these every service has been due.
pub(super) const FURTHER_ROUNDS: i64 = 3;

/// Failures that are told; the rest is probably more of the same.
const TOLD: usize = 500;

/// What goes wrong; each at the n-th call.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fault {
    /// A call of the program to its storage: `fail:any`.
    Storage(&'static str),
    /// One request to the S3 server, which a repetition of it must mend.
    Request(Spoil, Requests),
    /// The S3 server from that request on, and for as long as the program tries.
    Outage(Spoil),
}

/// Reading changes nothing, so dying is tried at changes only.
pub(super) const OF_STORAGE: [Fault; 8] = [
    Fault::Storage("fail:any"),
    Fault::Storage("lose:put"),
    Fault::Storage("lose:rename"),
    Fault::Storage("lose:delete"),
    Fault::Storage("tear:put"),
    Fault::Storage("kill:put"),
    Fault::Storage("kill:rename"),
    Fault::Storage("kill:delete"),
];

pub(super) const OF_S3: [Fault; 9] = [
    Fault::Storage("kill:put"),
    Fault::Storage("kill:rename"),
    Fault::Storage("kill:delete"),
    Fault::Request(Spoil::Busy, Requests::All),
    Fault::Request(Spoil::Lost, Requests::Changes),
    Fault::Request(Spoil::Denied, Requests::Changes),
    Fault::Request(Spoil::Torn, Requests::All),
    Fault::Request(Spoil::Silent, Requests::All),
    Fault::Outage(Spoil::Cut),
];

/// What faults have left; what is the same is gone on from once.
#[derive(Default)]
pub(super) struct Left(Mutex<BTreeSet<String>>);

impl Left {
    /// `run`: it ended well, or not, with this.
    pub fn is_new(&self, table: &Table, run: &Run) -> bool {
        let state = format!("{}\n{}", run.code == Some(0), Plain::read(table).state());
        self.0.lock().expect("nobody panics with it").insert(state)
    }
}

/// A job at the moment before the round that meets the fault.
pub(super) struct Scenario {
    pub job: Job,
    /// Where the table is in the bucket, if it is not on a disk.
    pub folder: Option<String>,
    pub op: &'static str,
    /// What the round with the fault reads.
    pub batch: Vec<Row>,
    /// What the round after the restart reads.
    pub next: Vec<Row>,
}

impl Scenario {
    /// How it ends when nothing fails: a test says what it expects of that.
    pub fn sound(&self) -> Job {
        let mut met = self.meet(None).expect("without a fault there is nothing to miss");
        self.go_on(&mut met);
        met.job
    }

    /// Every fault at every call. `least`: calls that a round has at the very least, so that a test that hits none fails.
    pub fn survives(&self, faults: &[Fault], least: u32) {
        let sound = self.sound_outlines();
        let (left, tables, mut failures) = (Left::default(), Mutex::new(BTreeMap::new()), Vec::new());
        for fault in faults {
            let (hit, failed) = exhaust(&format!("{fault:?}"), |n| {
                let Some(mut met) = self.meet(Some((*fault, n))) else { return false };
                if left.is_new(&met.job.table, &met.run) {
                    self.go_on(&mut met);
                    self.keeps_what_a_sound_job_keeps(&mut met.job, &sound);
                    let history = Plain::read(&met.job.table).history();
                    tables.lock().expect("nobody panics with it").entry(history).or_insert(met.job);
                }
                true
            });
            println!("{fault:?}: {hit} calls");
            failures.extend(failed);
            let all_calls = matches!(fault, Fault::Storage("fail:any") | Fault::Outage(_));
            assert!(hit >= least || !all_calls || !failures.is_empty(), "{hit} calls were hit");
        }
        assert!(failures.is_empty(), "{} of the faults are not survived:\n{}", failures.len(), failures.join("\n\n"));
        let tables = tables.into_inner().expect("nobody panics with it");
        let left = left.0.into_inner().expect("nobody panics with it");
        println!("{} tables, {} histories", left.len(), tables.len());
        if peers_enabled() {
            for job in tables.values() {
                job.model.assert_read_by(&job.table, &[SPARK_0_15]);
                oracle(SPARK_0_15).validate(job.table.str(), false);
            }
        }
    }

    /// What lies in the table after some further rounds of a job that nothing fails.
    fn sound_outlines(&self) -> Vec<Vec<String>> {
        let mut job = self.sound();
        let mut outlines = vec![Plain::read(&job.table).outline()];
        for _ in 0..FURTHER_ROUNDS {
            self.one_more_round(&mut job);
            outlines.push(Plain::read(&job.table).outline());
        }
        outlines
    }

    /// At once, or some rounds later: a service that failed runs again, and tidies up, when it is due.
    fn keeps_what_a_sound_job_keeps(&self, job: &mut Job, sound: &[Vec<String>]) {
        for _ in 0..FURTHER_ROUNDS {
            let plain = Plain::read(&job.table);
            if sound.contains(&plain.outline()) && plain.strays().is_empty() {
                return;
            }
            self.one_more_round(job);
        }
        let (kept, strays) = (Plain::read(&job.table).outline(), Plain::read(&job.table).strays());
        assert!(sound.contains(&kept), "kept is {kept:#?}\na sound job keeps one of {sound:#?}");
        assert!(strays.is_empty(), "left behind: {strays:#?}");
    }

    fn one_more_round(&self, job: &mut Job) {
        let before = job.table.last_write();
        job.feed(&self.next);
        let run = job.call.clone().op(self.op).run().ok();
        self.commits_once(job, &before, &self.next, &run);
    }

    /// The job's own copy, and on S3 a gate of its own.
    fn stage(&self) -> (Job, Option<Gate>) {
        let mut job = self.job.copy();
        let Some(folder) = &self.folder else { return (job, None) };
        let s3 = S3::shared();
        let own = s3.copy(folder);
        job.call = job.call.on_s3(s3, &own, s3.endpoint());
        job.table = Table::at(s3.path(&own));
        (job, Some(Gate::before(s3.endpoint())))
    }

    /// The round with the fault; `None` where that had no call to hit.
    fn meet(&self, fault: Option<(Fault, u32)>) -> Option<Met> {
        let (mut job, gate) = self.stage();
        job.feed(&self.batch);
        let made = Plain::read(&job.table).made();
        let before = job.table.writes().pop().unwrap_or_default();
        let call = job.call.clone().op(self.op);
        let mut faulty = match &gate {
            Some(gate) => call.clone().env("AWS_ENDPOINT_URL", gate.endpoint()),
            None => call.clone(),
        };
        match (fault, &gate) {
            (Some((Fault::Storage(kind), n)), _) => {
                faulty = faulty.env("HUDI_STREAMER_STORAGE_FAULT", &format!("{kind}:{n}"));
            }
            (Some((Fault::Request(spoil, requests), n)), Some(gate)) => {
                gate.spoil(spoil, requests, n);
                if spoil == Spoil::Silent {
                    faulty = faulty.conf("fs.s3a.connection.timeout", "500");
                }
            }
            (Some((Fault::Outage(spoil), n)), Some(gate)) => {
                gate.spoil_from(spoil, Requests::All, n..);
                faulty = faulty.conf("fs.s3a.attempts.maximum", "1");
            }
            (Some((fault, _)), None) => panic!("{fault:?} needs a server"),
            (None, _) => {}
        }
        let run = faulty.run();
        let spoilt = gate.as_ref().map_or(0, Gate::open);
        if fault.is_some() && spoilt == 0 && !run.stderr.contains(FIRED) {
            run.ok();
            return None;
        }
        let killed = matches!(fault, Some((Fault::Storage(kind), _)) if kind.starts_with("kill"));
        assert_ends_well_or_with_a_name(&run, killed);
        let is_mended = matches!(fault, Some((Fault::Request(..), _)));
        let run = if is_mended { run.ok() } else { run };
        Some(Met { job, before, made, run, is_mended })
    }

    /// The restart, unless the run was to mend the fault itself, and a round after it.
    fn go_on(&self, met: &mut Met) {
        let Met { job, before, made, run, is_mended } = met;
        let is_done = run.code == Some(0);
        if is_done {
            self.commits_once(job, before, &self.batch, run);
        }
        if *is_mended {
            return;
        }
        let restart = job.call.clone().op(self.op).run().ok();
        match is_done {
            true => assert_eq!(job.table.writes().iter().filter(|i| *i > before).count(), 1, "twice\n{run}\n{restart}"),
            false => self.commits_once(job, before, &self.batch, &restart),
        }
        age(&job.table);
        self.one_more_round(job);
        let known = Plain::read(&job.table).made();
        assert!(known.is_superset(made), "neither active nor archived: {:?}\n{restart}", made.difference(&known));
    }

    /// There is one more commit than those up to `before`, its checkpoint is behind all input, and the table is the model.
    fn commits_once(&self, job: &mut Job, before: &str, rows: &[Row], run: &Run) {
        let new: Vec<String> = job.table.writes().into_iter().filter(|instant| instant.as_str() > before).collect();
        let [instant] = &new[..] else { panic!("one commit was expected after {before:?}, found {new:?}\n{run}") };
        match self.op {
            "UPSERT" => job.model.upsert(instant, rows),
            _ => job.model.insert(instant, rows),
        }
        assert_eq!(job.table.checkpoint(), job.position(), "the checkpoint\n{run}");
        job.model.assert_rows("a plain reader", &job.table, Plain::read(&job.table).rows());
    }
}

/// A job that has met a fault.
struct Met {
    job: Job,
    /// The newest commit before it.
    before: String,
    /// All commits before it.
    made: BTreeSet<String>,
    run: Run,
    is_mended: bool,
}

/// What a job that died was writing to the timelines is not touched for some minutes. These have passed.
pub(super) fn age(table: &Table) {
    for staged in table.files().iter().filter(|file| file.starts_with(".hoodie/") && file.contains('#')) {
        let file = std::fs::File::options().write(true).open(table.path.join(staged)).expect("open to set its time");
        file.set_modified(SystemTime::now() - Duration::from_secs(3600)).expect("set the modification time");
    }
}

/// A killed process says nothing; any other ends with 0, or with an error that has a code.
pub(super) fn assert_ends_well_or_with_a_name(run: &Run, killed: bool) {
    match run.code {
        None => assert!(killed, "died by a signal\n{run}"),
        Some(0) => {}
        Some(_) => {
            assert!(!run.stderr.contains("panicked"), "panicked\n{run}");
            assert!(run.stderr.lines().any(|line| line.contains("error[")), "no error with a name\n{run}");
        }
    }
}

/// Calls `attempt` with 1, 2, 3 and so on until it says that there was nothing left to hit; how often there was. Several at a
/// time. And what failed.
pub(super) fn exhaust(what: &str, attempt: impl Fn(u32) -> bool + Sync) -> (u32, Vec<String>) {
    let (next, last, failures) = (AtomicU32::new(1), AtomicBool::new(false), Mutex::new(Vec::new()));
    let worker = || {
        let mut hit = 0;
        while !last.load(Ordering::Relaxed) {
            let n = next.fetch_add(1, Ordering::Relaxed);
            match catch_unwind(AssertUnwindSafe(|| attempt(n))) {
                Ok(true) => hit += 1,
                Ok(false) => last.store(true, Ordering::Relaxed),
                Err(panic) => {
                    let why = panic.downcast_ref::<String>().cloned();
                    let why = why.or_else(|| panic.downcast_ref::<&str>().map(|why| (*why).to_owned()));
                    let mut failures = failures.lock().expect("nobody panics with it");
                    failures.push(format!("{what}:{n}: {}", why.unwrap_or_default()));
                    last.fetch_or(failures.len() >= TOLD, Ordering::Relaxed);
                }
            }
        }
        hit
    };
    // Much of it is waiting.
    let threads = 2 * thread::available_parallelism().map_or(2, usize::from);
    let hit = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().map(|worker| worker.join().expect("a worker catches panics")).sum()
    });
    (hit, failures.into_inner().expect("nobody panics with it"))
}
