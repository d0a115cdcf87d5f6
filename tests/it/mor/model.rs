//! Merge-on-read as one would write it in an afternoon: per key the row of the base file and what the log says of it.

use std::collections::{BTreeMap, BTreeSet};

use crate::support::*;

/// How a reader folds what logs say of a key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Merge {
    /// Hudi 0.15: rows of a log by ordering value, under every rule; a delete is final for the base row, and of no weight
    /// for the rows that follow it.
    Hudi015,
    /// The readers of Hudi 1.0 and hudi-rs: by arrival where the rule is [`Rule::Arrival`], else all by ordering value.
    Hudi1,
}

impl Merge {
    pub fn of(reader: Reader) -> Merge {
        if reader == SPARK_0_15 { Merge::Hudi015 } else { Merge::Hudi1 }
    }
}

/// Who wrote a batch: the two put deletes by flag differently under [`Rule::EventTime`].
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Writer {
    /// A row with the flag, so that its ordering value counts against the base row too.
    Ours,
    /// An entry of a delete block.
    Spark,
}

#[derive(Clone)]
struct Version {
    row: Row,
    instant: String,
}

#[derive(Clone)]
enum Change {
    Row(Version),
    /// No ordering value: by arrival (an entry with `IntWrapper 0`).
    Gone {
        instant: String,
        ordering: Option<i64>,
    },
}

#[derive(Default)]
struct Slot {
    base: Option<Version>,
    log: Vec<Change>,
    /// How many changes the pending compaction takes.
    planned: usize,
}

/// Rows by (partition path, record key). New keys go to base files, changes of known ones to log files: the table's
/// writers must have `hoodie.parquet.small.file.limit=0`, or only snapshots compare.
pub struct MorModel {
    slots: BTreeMap<(String, String), Slot>,
    partition: Option<&'static str>,
    rule: Rule,
    columns: BTreeSet<String>,
    pending: Option<String>,
    /// Records that the pending compaction will leave nothing of, and whose keys have come again: elsewhere, since nobody would
    /// find them on top of a base file without them.
    dying: BTreeMap<(String, String), Slot>,
}

impl MorModel {
    /// `columns`: all of the table's. Key `id`, ordering `ts`, partition `""`.
    pub fn new(rule: Rule, columns: &[&str]) -> MorModel {
        let columns = columns.iter().map(|c| c.to_string()).collect();
        MorModel { slots: BTreeMap::new(), partition: None, rule, columns, pending: None, dying: BTreeMap::new() }
    }

    pub fn partitioned(mut self, field: &'static str) -> MorModel {
        self.partition = Some(field);
        self
    }

    /// What base files hold already, as a read-optimised query gave it.
    pub fn load(&mut self, read_optimized: &[Row]) {
        for (slot, version) in read_optimized.iter().map(read) {
            self.columns.extend(version.row.keys().cloned());
            self.slots.entry(slot).or_default().base = Some(version);
        }
    }

    /// What log files hold besides, as a snapshot query gave it.
    pub fn load_logs(&mut self, snapshot: &[Row]) {
        let snapshot: BTreeMap<_, _> = snapshot.iter().map(read).collect();
        let mut slots = std::mem::take(&mut self.slots);
        for (key, slot) in &mut slots {
            let now = self.current(slot, "", Merge::Hudi015);
            match (now, snapshot.get(key)) {
                (Some(_), None) => slot.log.push(Change::Gone { instant: String::new(), ordering: None }),
                (now, Some(then)) if now.is_none_or(|now| now.instant != then.instant) => {
                    slot.log.push(Change::Row(then.clone()));
                }
                _ => {}
            }
        }
        self.slots = slots;
        self.columns.extend(snapshot.values().flat_map(|version| version.row.keys().cloned()));
    }

    /// A delta commit of an UPSERT.
    pub fn upsert(&mut self, instant: &str, batch: &[Row], writer: Writer) {
        let mut winners: BTreeMap<(String, String), &Row> = BTreeMap::new();
        for row in batch {
            let key = (self.partition.map_or(String::new(), |field| text(&row[field])), text(&row["id"]));
            if winners.get(&key).is_none_or(|seen| ordering(row) >= ordering(seen)) {
                winners.insert(key, row);
            }
        }
        for (key, row) in winners {
            let mut row = row.clone();
            for column in &self.columns {
                row.entry(column.as_str()).or_insert(Value::Null);
            }
            if !deleted(&row) && self.is_dying(&key) {
                assert!(writer == Writer::Ours, "{row:?}: Hudi puts it where nobody will find it");
                self.dying.extend(self.slots.remove_entry(&key));
            }
            let slot = self.slots.entry(key).or_default();
            let unseen = slot.base.is_none() && !slot.log.is_empty();
            assert!(!unseen, "{row:?}: no index over base files finds a key that only a log has");
            let (gone, instant) = (deleted(&row), instant.to_owned());
            match (&slot.base, gone) {
                (None, true) => {}
                (None, false) => slot.base = Some(Version { row, instant }),
                (Some(_), true) if writer == Writer::Spark || self.rule == Rule::Arrival => {
                    slot.log.push(Change::Gone { instant, ordering: Some(ordering(&row)) });
                }
                (Some(_), _) => slot.log.push(Change::Row(Version { row, instant })),
            }
        }
        self.forget_empty();
    }

    /// A delta commit of deletes by key: tombstones, or Spark's `delete` operation.
    pub fn delete(&mut self, instant: &str, ids: &[&str]) {
        for ((_, id), slot) in &mut self.slots {
            if ids.contains(&id.as_str()) && slot.base.is_some() {
                slot.log.push(Change::Gone { instant: instant.to_owned(), ordering: None });
            }
        }
    }

    /// A compaction of all that logs have now is planned.
    pub fn plan(&mut self, instant: &str) {
        assert_eq!(self.pending, None, "the model knows one pending compaction at a time, not {instant} too");
        self.pending = Some(instant.to_owned());
        self.slots.values_mut().for_each(|slot| slot.planned = slot.log.len());
    }

    /// The planned compaction is completed; whoever did it, logs are folded as Hudi 0.15 does.
    pub fn complete(&mut self, instant: &str) {
        assert_eq!(self.pending.take().as_deref(), Some(instant), "the compaction that was planned");
        let mut slots = std::mem::take(&mut self.slots);
        for slot in slots.values_mut() {
            let later = slot.log.split_off(slot.planned);
            slot.base = self.current(slot, "", Merge::Hudi015).cloned();
            slot.log = later;
            slot.planned = 0;
        }
        self.slots = slots;
        self.dying.clear();
        self.forget_empty();
    }

    /// Whether the pending compaction leaves nothing of it.
    fn is_dying(&self, key: &(String, String)) -> bool {
        let Some(slot) = self.slots.get(key).filter(|slot| self.pending.is_some() && slot.base.is_some()) else {
            return false;
        };
        let planned = Slot { base: slot.base.clone(), log: slot.log[..slot.planned].to_vec(), planned: 0 };
        self.current(&planned, "", Merge::Hudi015).is_none()
    }

    pub fn pending(&self) -> Option<&str> {
        self.pending.as_deref()
    }

    pub fn snapshot(&self, by: Merge) -> Vec<Row> {
        self.rows(|slot| self.current(slot, "", by))
    }

    pub fn read_optimized(&self) -> Vec<Row> {
        let mut rows = self.rows(|slot| slot.base.as_ref());
        rows.extend(self.rows_of(&self.dying, |slot| slot.base.as_ref()));
        rows
    }

    /// An incremental query since `begin`: the rows of the snapshot that were written later.
    pub fn since(&self, begin: &str) -> Vec<Row> {
        self.rows(|slot| self.current(slot, "", Merge::Hudi015).filter(|version| version.instant.as_str() > begin))
    }

    /// Rows that lose against older ones, which such a query may show all the same: Spark merges without what was written
    /// before `begin`, where its files do not bring that along.
    fn late_since(&self, begin: &str) -> Vec<Row> {
        self.rows(|slot| {
            let wins = self.current(slot, "", Merge::Hudi015).is_some_and(|version| version.instant.as_str() > begin);
            self.current(slot, begin, Merge::Hudi015).filter(|_| !wins)
        })
    }

    /// Ids of the rows that a snapshot has.
    pub fn ids(&self) -> BTreeSet<String> {
        self.snapshot(Merge::Hudi015).iter().map(|row| text(&row["id"])).collect()
    }

    /// Whether Spark must not be given a row of this key now: it is deleted in what the pending compaction takes, so that a new
    /// one would be in a log alone in the end, where no index over base files finds it.
    pub fn buried(&self, id: &str) -> bool {
        let known = self.slots.iter().any(|((_, key), _)| key == id);
        self.pending.is_some() && known && !self.ids().contains(id)
    }

    /// Every reader sees this table by every query that it knows, and Hudi's own classes find nothing at fault. An
    /// incremental query is made since each of `begins`.
    #[track_caller]
    pub fn check(&self, table: &Table, begins: &[String]) {
        // hudi-rs does not see the log files that wait for a pending compaction, whoever wrote them.
        let readers = if self.pending.is_some() { &READERS[..2] } else { &READERS };
        each_reader(readers, |reader| self.check_read_by(reader, table, begins));
        oracle(SPARK_0_15).validate(table.str(), false);
    }

    /// As [`MorModel::check`], by one reader.
    pub fn check_read_by(&self, reader: Reader, table: &Table, begins: &[String]) {
        self.compare(reader, table, &[], &self.snapshot(Merge::of(reader)), &[]);
        if reader == HUDI_RS {
            return;
        }
        self.compare(reader, table, &["--query", "read_optimized"], &self.read_optimized(), &[]);
        // By arrival, Spark 1.0 gives late rows and still orders deletes: nothing that one could call right.
        if reader == SPARK_0_15 || self.rule == Rule::EventTime {
            for begin in begins {
                let query = ["--query", "incremental", "--begin", begin];
                self.compare(reader, table, &query, &self.since(begin), &self.late_since(begin));
            }
        }
    }

    fn compare(&self, reader: Reader, table: &Table, query: &[&str], want: &[Row], tolerated: &[Row]) {
        let mut got = oracle(reader).query(table.str(), query);
        got.retain(|row| {
            !tolerated.iter().any(|late| late.iter().all(|(column, value)| row.get(column) == Some(value)))
        });
        assert_rows(&format!("{reader:?} reads {} {}", table.str(), query.join(" ")), table, want, got, &[]);
    }

    fn rows<'a>(&'a self, of: impl Fn(&'a Slot) -> Option<&'a Version>) -> Vec<Row> {
        self.rows_of(&self.slots, of)
    }

    fn rows_of<'a>(
        &self,
        slots: &'a BTreeMap<(String, String), Slot>,
        of: impl Fn(&'a Slot) -> Option<&'a Version>,
    ) -> Vec<Row> {
        let row = |((partition, key), slot): (&(String, String), &'a Slot)| {
            let version = of(slot)?;
            let mut row = version.row.clone();
            for (column, value) in [(META[0], &version.instant), (META[2], key), (META[3], partition)] {
                row.insert(column.into(), value.as_str().into());
            }
            Some(row)
        };
        slots.iter().filter_map(row).collect()
    }

    fn current<'a>(&self, slot: &'a Slot, since: &str, by: Merge) -> Option<&'a Version> {
        let base = slot.base.as_ref().filter(|base| base.instant.as_str() > since);
        let later = slot.log.iter().filter(|change| change.instant() > since || since.is_empty());
        let change = later.reduce(|held, next| if self.stays(held, next, by) { held } else { next });
        let late = |base: &Version, change: &Change| {
            let weighed = self.rule == Rule::EventTime && (by == Merge::Hudi1 || matches!(change, Change::Row(_)));
            weighed && change.ordering().is_some_and(|change| ordering(&base.row) > change)
        };
        match (base, change) {
            (Some(base), Some(change)) if late(base, change) => Some(base),
            (_, Some(Change::Row(version))) => (!deleted(&version.row)).then_some(version),
            (_, Some(Change::Gone { .. })) => None,
            (base, None) => base,
        }
    }

    /// Whether the earlier of two changes in a log stays.
    fn stays(&self, held: &Change, next: &Change, by: Merge) -> bool {
        let newer = matches!((held.ordering(), next.ordering()), (Some(held), Some(next)) if held > next);
        match by {
            Merge::Hudi015 => newer && matches!(held, Change::Row(_)),
            Merge::Hudi1 => newer && self.rule == Rule::EventTime,
        }
    }

    fn forget_empty(&mut self) {
        self.slots.retain(|_, slot| slot.base.is_some() || !slot.log.is_empty());
    }
}

impl Change {
    fn instant(&self) -> &str {
        match self {
            Change::Row(version) => &version.instant,
            Change::Gone { instant, .. } => instant,
        }
    }

    fn ordering(&self) -> Option<i64> {
        match self {
            Change::Row(version) => Some(ordering(&version.row)),
            Change::Gone { ordering, .. } => *ordering,
        }
    }
}

/// A row as a reader gave it: where it belongs, and without Hudi's columns.
fn read(row: &Row) -> ((String, String), Version) {
    let slot = (text(&row[META[3]]), text(&row[META[2]]));
    let data = row.iter().filter(|(column, _)| !META.contains(&column.as_str()));
    (slot, Version { row: data.map(|(c, v)| (c.clone(), v.clone())).collect(), instant: text(&row[META[0]]) })
}

fn ordering(row: &Row) -> i64 {
    row["ts"].as_i64().expect("ordering values of the tests are integers")
}

fn deleted(row: &Row) -> bool {
    row.get("_hoodie_is_deleted") == Some(&Value::Bool(true))
}

/// Runs `check` for all readers side by side.
#[track_caller]
pub fn each_reader(readers: &[Reader], check: impl Fn(Reader) + Sync) {
    let check = &check;
    let failed: Vec<Reader> = std::thread::scope(|scope| {
        let threads: Vec<_> = readers.iter().map(|r| (*r, scope.spawn(move || check(*r)))).collect();
        threads.into_iter().filter_map(|(reader, thread)| thread.join().is_err().then_some(reader)).collect()
    });
    assert!(failed.is_empty(), "{failed:?} disagree: see above");
}
