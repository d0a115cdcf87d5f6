//! Commands of an operator that fail at any call: asked for again, they come to their end, and the job goes on.

use super::every::{FIRED, FURTHER_ROUNDS, Left, assert_ends_well_or_with_a_name, exhaust};
use super::*;

const FAULTS: [&str; 8] =
    ["fail:any", "lose:put", "lose:rename", "lose:delete", "tear:put", "kill:put", "kill:rename", "kill:delete"];

/// A command over a table.
struct Command {
    job: Job,
    call: Streamer,
    /// The table once the command is done.
    after: Model,
    /// What the next round of the job reads: what was taken back, and what is new.
    next: Vec<Row>,
}

impl Command {
    fn survives_every_fault(&self, least: u32) {
        let (left, mut hits, mut failures) = (Left::default(), 0, Vec::new());
        for kind in FAULTS {
            let (hit, failed) = exhaust(kind, |n| self.survives(&format!("{kind}:{n}"), &left));
            println!("{kind}: {hit} calls");
            hits += hit;
            failures.extend(failed);
        }
        assert!(failures.is_empty(), "{} of the faults are not survived:\n{}", failures.len(), failures.join("\n\n"));
        assert!(hits >= least, "{hits} calls were hit");
    }

    /// `false`: there was no call to hit.
    fn survives(&self, fault: &str, left: &Left) -> bool {
        let mut job = self.job.copy();
        let call = self.call.clone().moved(&self.job.scratch.path(""), &job.scratch.path(""));
        let run = call.clone().env("HUDI_STREAMER_STORAGE_FAULT", fault).run();
        if !run.stderr.contains(FIRED) {
            run.ok();
            return false;
        }
        assert_ends_well_or_with_a_name(&run, fault.starts_with("kill"));
        if !left.is_new(&job.table, &run) {
            return true;
        }
        // Done already, it may refuse.
        let again = call.run();
        assert_ends_well_or_with_a_name(&again, false);
        job.model = self.after.clone();
        job.model.assert_rows("a plain reader", &job.table, Plain::read(&job.table).rows());
        let before = job.table.writes().pop().unwrap_or_default();
        every::age(&job.table);
        job.feed(&self.next[self.next.len() - 1..]);
        let round = job.call.run().ok();
        let new: Vec<String> = job.table.writes().into_iter().filter(|instant| *instant > before).collect();
        let [instant] = &new[..] else { panic!("one commit was expected after {before:?}, found {new:?}\n{round}") };
        job.model.upsert(instant, &self.next);
        assert_eq!(job.table.checkpoint(), job.position(), "the checkpoint\n{round}");
        job.model.assert_rows("a plain reader", &job.table, Plain::read(&job.table).rows());
        for ts in 30..30 + FURTHER_ROUNDS {
            if !Plain::read(&job.table).strays().is_empty() {
                job.upsert(&batch(2..4, ts));
            }
        }
        let strays = Plain::read(&job.table).strays();
        assert!(strays.is_empty(), "left behind: {strays:#?}\nfirst {run}\nthen {again}\nthe round {round}");
        true
    }
}

fn command(job: &Job, words: &[&str]) -> Streamer {
    Streamer::bare().after(words).flag("--target-base-path", &job.table.path)
}

#[test]
fn rollback() {
    for table_type in TABLE_TYPES {
        let mut job = written(new_job(table_type, |call| call), 2);
        let after = job.model.clone();
        let taken_back = batch_and_gone(3..7, &[1], 9);
        let instant = job.upsert(&taken_back);
        let call = command(&job, &["rollback"]).flag("--instant", &instant);
        let next = [taken_back, batch(2..3, 10)].concat();
        Command { job, call, after, next }.survives_every_fault(40);
    }
}

#[test]
fn restore_to_a_savepoint() {
    for table_type in TABLE_TYPES {
        let mut job = written(new_job(table_type, compacting), 2);
        command(&job, &["savepoint", "create"]).run().ok();
        let after = job.model.clone();
        let taken_back = [batch_and_gone(3..7, &[1], 9), batch(5..8, 10)];
        taken_back.iter().for_each(|rows| drop(job.upsert(rows)));
        let call = command(&job, &["restore"]);
        let next = [taken_back.concat(), batch(2..3, 11)].concat();
        Command { job, call, after, next }.survives_every_fault(60);
    }
}

#[test]
fn services() {
    // Behind the job's back: so far it has done none of this itself.
    let alone = |call: Streamer| {
        call.switch("--disable-compaction")
            .conf("hoodie.clean.automatic", "false")
            .conf("hoodie.archive.automatic", "false")
    };
    for words in [&["clean"][..], &["archive"], &["savepoint", "create"], &["compact", "--mode", "scheduleAndExecute"]]
    {
        println!("{words:?}");
        let mut job = new_job("MERGE_ON_READ", compacting);
        let call = job.call.clone();
        job.call = alone(call.clone());
        job = written(job, 6);
        // A clean wants base files that are older than those before the newest.
        for ts in 7..9 {
            if words[0] != "compact" {
                job.compact("scheduleAndExecute").run().ok();
            }
            job.upsert(&batch(1..5, ts));
        }
        job.call = call;
        let after = job.model.clone();
        let call = compacting(super::services(command(&job, words)));
        Command { job, call, after, next: batch(2..3, 10) }.survives_every_fault(10);
    }
}
