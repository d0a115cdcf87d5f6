//! The life of a table: inserts, delta commits with late rows and deletes, compactions, deaths at every point, and Spark
//! beside us. After each turn all readers see what the model has, by every query.

use super::*;

/// Deaths of rounds in which a compaction is due, in the order in which they come.
const COMPACTION_DEATHS: [&str; 4] =
    ["after-plan", "in-compaction", "before-compaction-complete", "after-compaction-complete"];

/// Rows of round number `round`: of eight keys of fifty, ordering values up to two rounds late, one in six a delete.
fn batch(dice: &mut Dice, round: i64) -> Vec<Row> {
    let mut rows = Vec::new();
    for _ in 0..8 {
        let (key, ts) = (dice.roll(50), round * 10 + dice.roll(30) - 20);
        rows.push(if dice.roll(6) == 0 { gone(key, ts) } else { event(key, ts) });
    }
    // No batch is empty. Each new key makes a file group, which readers have to open each time.
    rows.push(event(round % 7, round * 10));
    if round % 3 == 0 {
        rows.push(event(100 + round, round * 10));
    }
    rows
}

/// Rows that Spark writes: its deletes are of keys that nobody else touches, since readers differ in what may follow one.
fn sparks(round: i64, model: &MorModel) -> Vec<Row> {
    let own = 200 + round;
    let known = [event(round % 9, round * 10 - 15), event(round % 5, round * 10 + 5)];
    let mut rows: Vec<Row> = known.into_iter().filter(|row| !model.buried(&text(&row["id"]))).collect();
    rows.extend([event(own, round), gone(own - 1, round)]);
    rows
}

#[test]
fn a_table_lives_through_everything_and_every_reader_sees_the_model() {
    needs_peers!();
    let mut job = MorJob::new(BY_EVENT_TIME, |call| call);
    let mut dice = Dice(7);
    let mut deaths = COMPACTION_DEATHS.into_iter();
    job.upsert(&(0..50).map(|key| event(key, 1 + key % 3)).collect::<Vec<_>>());
    assert!(job.table.log_files().is_empty(), "new keys go to base files");

    for round in 1..=20 {
        let rows = batch(&mut dice, round);
        match round {
            2 => {
                job.upsert_killed_at("in-log-block", &rows);
                job.check();
                job.upsert(&[]);
            }
            7 => {
                job.upsert_killed_at("before-complete", &rows);
                job.check();
                // Spark rolls back what we left behind, and we read the batch again.
                let theirs = sparks(round, &job.model);
                job.spark_upserts(SPARK_0_15, &theirs);
                job.upsert(&[]);
            }
            _ if job.compaction_is_due() => match deaths.next() {
                Some(point) => {
                    job.upsert_killed_at(point, &rows);
                    job.check();
                    assert_eq!(job.model.pending().is_none(), point == "after-compaction-complete", "{point}");
                    if point == "after-plan" {
                        // Both go on while the plan is pending, and Spark carries it out.
                        let rows = batch(&mut dice, round);
                        job.upsert_by(&job.call.clone().switch("--disable-compaction"), &rows);
                        let theirs = sparks(round, &job.model);
                        job.spark_upserts(SPARK_1_0, &theirs);
                        job.check();
                        job.spark_compacts(SPARK_0_15, "run_compact");
                        job.check();
                    }
                }
                None => drop(job.upsert(&rows)),
            },
            4 | 13 => {
                let theirs = sparks(round, &job.model);
                job.spark_upserts(if round == 4 { SPARK_0_15 } else { SPARK_1_0 }, &theirs);
                job.upsert(&rows);
            }
            _ => drop(job.upsert(&rows)),
        }
    }
    assert_eq!(deaths.next(), None, "every death was died");
    job.check();

    // Spark plans, both go on, we carry it out: in a round of ours, and as a command of its own.
    for (turn, by_command) in [(21, false), (22, true)] {
        let idle = job.call.clone().switch("--disable-compaction");
        let rows = batch(&mut dice, turn);
        job.upsert_by(&idle, &rows);
        let theirs = sparks(turn, &job.model);
        job.spark_upserts(SPARK_0_15, &theirs);
        job.spark_compacts(if by_command { SPARK_1_0 } else { SPARK_0_15 }, "schedule_compact");
        assert!(job.model.pending().is_some(), "Spark has planned");
        let rows = batch(&mut dice, turn);
        job.upsert_by(&idle, &rows);
        job.spark_upserts(SPARK_0_15, &[event(3, turn * 10 + 8)]);
        job.check();
        if by_command {
            let execute = job.compact("execute");
            job.run(&execute);
        } else {
            job.upsert(&[event(4, turn * 10 + 8)]);
        }
        assert_eq!(job.model.pending(), None, "we have compacted");
        job.check();
    }
    oracle(SPARK_1_0).validate(job.table.str(), false);
    assert_eq!(job.table.pending(), Vec::<String>::new());
    assert!(!job.table.files().iter().any(|f| f.starts_with(".hoodie/.temp/")), "markers are left");
}
