//! A table as one would write it in an afternoon: a map by key, and two merge rules. What the program wrote is compared
//! with it row for row.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::thread;

use serde_json::Value;

use super::compare::{META, assert_rows, text};
use super::{READERS, Reader, Row, Table, oracle};

/// Which of a stored row and an incoming one stays. Inside one batch both rules keep the greater ordering value, and of
/// equal ones the later (table version 6, as Hudi 0.15).
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// OverwriteWithLatestAvroPayload: the incoming row.
    Arrival,
    /// DefaultHoodieRecordPayload: the greater ordering value, of equal ones the incoming.
    EventTime,
}

#[derive(Clone)]
struct Stored {
    row: Row,
    /// Instant that wrote the row's current values.
    instant: String,
}

/// Partition path and record key of a row.
type KeyOf = dyn Fn(&Row) -> (String, String) + Send + Sync;

/// Rows by (partition path, record key).
#[derive(Clone)]
pub struct Model {
    rows: BTreeMap<(String, String), Vec<Stored>>,
    key: Arc<KeyOf>,
    rule: Rule,
    ordering: &'static str,
    columns: BTreeSet<String>,
    /// A key is held once in the whole table, not once a partition.
    global: bool,
    ignored: Vec<String>,
}

impl Model {
    /// `columns`: all of the table's, so that an absent field reads as null. Partition `""`, key `id`, ordering `ts`.
    pub fn new(columns: &[&str]) -> Model {
        Model {
            rows: BTreeMap::new(),
            key: Arc::new(|row| (String::new(), text(&row["id"]))),
            rule: Rule::Arrival,
            ordering: "ts",
            columns: columns.iter().map(|c| c.to_string()).collect(),
            global: false,
            ignored: Vec::new(),
        }
    }

    /// A global index that lets keys move between partitions.
    pub fn global(mut self) -> Model {
        self.global = true;
        self
    }

    /// Leaves a column out of comparisons: readers differ in it, whoever wrote the table.
    pub fn ignoring(mut self, column: &str) -> Model {
        self.ignored.push(column.to_owned());
        self
    }

    /// How a row's (partition path, record key) is made.
    pub fn keyed_by(mut self, key: impl Fn(&Row) -> (String, String) + Send + Sync + 'static) -> Model {
        self.key = Arc::new(key);
        self
    }

    /// Partitioned by the plain value of a column.
    pub fn partitioned(self, field: &'static str) -> Model {
        self.keyed_by(move |row| (text(&row[field]), text(&row["id"])))
    }

    pub fn rule(mut self, rule: Rule) -> Model {
        self.rule = rule;
        self
    }

    /// What the table held already: rows as a reader gives them, Hudi's columns included.
    pub fn load(&mut self, read: &[Row]) {
        for row in read {
            let slot = (text(&row[META[3]]), text(&row[META[2]]));
            let instant = text(&row[META[0]]);
            let data: Row =
                row.iter().filter(|(k, _)| !META.contains(&k.as_str())).map(|(k, v)| (k.clone(), v.clone())).collect();
            self.columns.extend(data.keys().cloned());
            self.rows.entry(slot).or_default().push(Stored { row: data, instant });
        }
    }

    /// An UPSERT round that made `instant`.
    pub fn upsert(&mut self, instant: &str, batch: &[Row]) {
        let mut winners: BTreeMap<(String, String), Row> = BTreeMap::new();
        for row in batch {
            let slot = (self.key)(row);
            match winners.get(&slot) {
                Some(seen) if !self.wins(row, seen) => {}
                _ => {
                    winners.insert(slot, row.clone());
                }
            }
        }
        for (slot, row) in winners {
            if self.global {
                self.rows.retain(|(partition, key), _| *key != slot.1 || *partition == slot.0);
            }
            let late = |stored: &Stored| self.rule == Rule::EventTime && !self.wins(&row, &stored.row);
            if self.rows.get(&slot).is_some_and(|stored| stored.iter().any(late)) {
                continue;
            }
            if row.get("_hoodie_is_deleted") == Some(&Value::Bool(true)) {
                self.rows.remove(&slot);
                continue;
            }
            self.rows.insert(slot, vec![Stored { row: self.filled(row), instant: instant.to_owned() }]);
        }
    }

    /// An INSERT or BULK_INSERT round: every row is kept, equal keys or not.
    pub fn insert(&mut self, instant: &str, batch: &[Row]) {
        for row in batch {
            let stored = Stored { row: self.filled(row.clone()), instant: instant.to_owned() };
            self.rows.entry((self.key)(row)).or_default().push(stored);
        }
    }

    pub fn len(&self) -> usize {
        self.rows.values().map(Vec::len).sum()
    }

    fn wins(&self, incoming: &Row, stored: &Row) -> bool {
        let [a, b] = [incoming, stored]
            .map(|row| row[self.ordering].as_i64().expect("ordering values of the tests are integers"));
        a >= b
    }

    fn filled(&self, mut row: Row) -> Row {
        for column in &self.columns {
            row.entry(column.as_str()).or_insert(Value::Null);
        }
        row
    }

    /// The table, read by Spark 0.15.0, Spark 1.0.2 and hudi-rs, holds exactly these rows, and Hudi's own columns are
    /// as they should be.
    #[track_caller]
    pub fn assert_equals(&self, table: &Table) {
        self.assert_read_by(table, &READERS);
    }

    #[track_caller]
    pub fn assert_read_by(&self, table: &Table, readers: &[Reader]) {
        let reads = thread::scope(|scope| {
            let read = |reader: Reader| move || (reader, oracle(reader).read(table.str()));
            let threads: Vec<_> = readers.iter().map(|r| scope.spawn(read(*r))).collect();
            threads.into_iter().map(|t| t.join()).collect::<Vec<_>>()
        });
        for read in reads {
            let (reader, rows) = read.unwrap_or_else(|_| panic!("a reader fails on {}: see above", table.str()));
            self.assert_rows(&format!("{reader:?} reads {}", table.str()), table, rows);
        }
    }

    /// These rows, read by `who`, are the table's.
    #[track_caller]
    pub fn assert_rows(&self, who: &str, table: &Table, rows: Vec<Row>) {
        let mut want: Vec<Row> = Vec::new();
        for ((partition, key), stored) in &self.rows {
            for s in stored {
                let mut row = s.row.clone();
                row.insert(META[0].into(), s.instant.as_str().into());
                row.insert(META[2].into(), key.as_str().into());
                row.insert(META[3].into(), partition.as_str().into());
                want.push(row);
            }
        }
        assert_rows(who, table, &want, rows, &self.ignored);
    }
}
