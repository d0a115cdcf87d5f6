//! Any history of a file group, against a map of boxed rows that is told the same.

use super::*;
use proptest::prelude::*;
use std::collections::HashMap;

/// One write to the group's logs: a data block, and a delete block if it deletes.
#[derive(Debug, Clone)]
struct Write {
    /// Key, ordering value, whether it is flagged as deleted.
    rows: Vec<(u8, i64, bool)>,
    /// Key, and the ordering value if it has one.
    deletes: Vec<(u8, Option<i64>)>,
    form: Form,
    /// The file lacks its last bytes.
    is_torn: bool,
    fate: Fate,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Form {
    Avro,
    /// With the schema of before an evolution.
    OldAvro,
    Parquet,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Fate {
    Completed,
    /// Completed, and no longer on the timeline.
    Archived,
    Failed,
    /// The rollback's instant may be greater than that of the write that follows.
    RolledBack {
        is_late: bool,
    },
    /// Likewise, and neither is on the timeline any more: by its instant the write counts.
    RolledBackAndArchived,
}

fn write() -> impl Strategy<Value = Write> {
    let form = prop_oneof![3 => Just(Form::Avro), 1 => Just(Form::OldAvro), 1 => Just(Form::Parquet)];
    let fate = prop_oneof![
        6 => Just(Fate::Completed),
        2 => Just(Fate::Archived),
        2 => Just(Fate::RolledBackAndArchived),
        1 => Just(Fate::Failed),
        2 => any::<bool>().prop_map(|is_late| Fate::RolledBack { is_late }),
    ];
    let rows = prop::collection::vec((0..12_u8, 0..6_i64, prop::bool::weighted(0.2)), 1..8);
    let deletes = prop::collection::vec((0..12_u8, prop::option::of(0..6_i64)), 0..3);
    (rows, deletes, form, prop::bool::weighted(0.1), fate).prop_map(|(rows, deletes, form, is_torn, fate)| Write {
        rows,
        deletes,
        form,
        is_torn,
        fate,
    })
}

#[derive(Debug, Clone)]
struct History {
    /// Keys and ordering values.
    base: Option<Vec<(u8, i64)>>,
    writes: Vec<Write>,
}

fn history() -> impl Strategy<Value = History> {
    let base = prop::option::weighted(0.9, prop::collection::vec((0..12_u8, 0..6_i64), 0..20));
    (base, prop::collection::vec(write(), 0..8)).prop_map(|(base, writes)| History { base, writes })
}

fn key(number: u8) -> String {
    // Not all of one length.
    "k".repeat(1 + usize::from(number % 3)) + &number.to_string()
}

impl History {
    fn base_rows(&self) -> Option<Vec<Row>> {
        let row = |(at, (number, ts)): (usize, &(u8, i64))| row(&time(0), &key(*number), *ts, &format!("base {at}"));
        self.base.as_ref().map(|base| base.iter().enumerate().map(row).collect())
    }

    fn rows(&self, number: usize) -> Vec<Row> {
        let Write { rows, form, .. } = &self.writes[number];
        let row = |(at, (number_of_key, ts, deleted)): (usize, &(u8, i64, bool))| Row {
            deleted: *deleted,
            text: (*form != Form::OldAvro).then(|| format!("write {number} row {at}")),
            ..row(&self.time(number), &key(*number_of_key), *ts, "")
        };
        rows.iter().enumerate().map(row).collect()
    }

    fn time(&self, number: usize) -> String {
        time(10 + 10 * number)
    }

    fn group(&self) -> Group {
        let mut group = Group::new(self.base_rows().as_deref());
        if self.archived_until() > 0 {
            group.timeline.clear();
        }
        for (number, write) in self.writes.iter().enumerate() {
            let at = self.time(number);
            let rows = self.rows(number);
            let mut blocks = vec![match write.form {
                Form::Avro => data(&at, &schema(), &rows),
                Form::OldAvro => data(&at, &old_schema(), &rows),
                Form::Parquet => parquet_data(&at, &schema(), &rows),
            }];
            if !write.deletes.is_empty() {
                let ordering = |ts: Option<i64>| ts.map_or(OrderingValue::Int(0), OrderingValue::Long);
                blocks.push(deletes(&at, write.deletes.iter().map(|(k, ts)| (key(*k), ordering(*ts))).collect()));
            }
            group.log(blocks, if write.is_torn { 20 } else { 0 });
            match self.fate(number) {
                Fate::Completed => group.completed(&at),
                Fate::Archived => {}
                Fate::Failed => group.timeline.push(format!("{at}.deltacommit.inflight")),
                Fate::RolledBack { is_late } => {
                    let rollback_at = time(10 + 10 * number + if is_late { 16 } else { 5 });
                    group.timeline.push(format!("{rollback_at}.rollback"));
                    group.log(vec![rollback(&rollback_at, &at)], 0);
                }
                Fate::RolledBackAndArchived => {
                    group.log(vec![rollback(&time(10 + 10 * number + 5), &at)], 0);
                }
            }
        }
        group
    }

    fn archived_until(&self) -> usize {
        let is_archived = |write: &&Write| matches!(write.fate, Fate::Archived | Fate::RolledBackAndArchived);
        self.writes.iter().take_while(is_archived).count()
    }

    /// Only what is older than all else can be archived.
    fn fate(&self, number: usize) -> Fate {
        match self.writes[number].fate {
            Fate::Archived if number >= self.archived_until() => Fate::Completed,
            Fate::RolledBackAndArchived if number >= self.archived_until() => Fate::RolledBack { is_late: false },
            fate => fate,
        }
    }

    /// Whether the write's blocks count. An archived one is older than the timeline, if that has begun at all.
    fn counts(&self, number: usize) -> bool {
        match self.fate(number) {
            Fate::Completed => true,
            Fate::Archived => (0..self.writes.len()).any(|n| self.fate(n) == Fate::Completed),
            Fate::Failed | Fate::RolledBack { .. } | Fate::RolledBackAndArchived => false,
        }
    }

    fn expected(&self, payload: PayloadClass, has_ordering: bool) -> Vec<Row> {
        #[derive(Clone)]
        enum Said {
            Row(Row),
            Deleted,
        }
        let mut order: Vec<String> = Vec::new();
        let mut said: HashMap<String, Said> = HashMap::new();
        for (number, write) in self.writes.iter().enumerate().filter(|(number, _)| self.counts(*number)) {
            let (deletes_are_lost, rows_are_lost) = (write.is_torn, write.is_torn && write.deletes.is_empty());
            for new in self.rows(number).into_iter().filter(|_| !rows_are_lost) {
                if !said.contains_key(&new.key) {
                    order.push(new.key.clone());
                }
                match said.get(&new.key) {
                    Some(Said::Row(old)) if has_ordering && old.ts > new.ts => {}
                    _ => {
                        said.insert(new.key.clone(), Said::Row(new));
                    }
                }
            }
            for (number, ts) in write.deletes.iter().filter(|_| !deletes_are_lost) {
                let key = key(*number);
                if !said.contains_key(&key) {
                    order.push(key.clone());
                }
                match (said.get(&key), ts) {
                    (Some(Said::Row(old)), Some(ts)) if has_ordering && old.ts > Some(*ts) => {}
                    _ => {
                        said.insert(key, Said::Deleted);
                    }
                }
            }
        }
        let compares = has_ordering && payload == PayloadClass::DefaultHoodieRecord;
        let mut rows = Vec::new();
        let base = self.base_rows().unwrap_or_default();
        for stored in &base {
            match said.get(&stored.key) {
                None => rows.push(stored.clone()),
                Some(Said::Deleted) => {}
                Some(Said::Row(new)) if compares && stored.ts > new.ts => rows.push(stored.clone()),
                Some(Said::Row(new)) if new.deleted => {}
                Some(Said::Row(new)) => rows.push(new.clone()),
            }
        }
        for key in order {
            if let Said::Row(new) = &said[&key]
                && !new.deleted
                && base.iter().all(|stored| stored.key != key)
            {
                rows.push(new.clone());
            }
        }
        rows
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn any_history_reads_as_its_twin(
        history in history(),
        memory in 0..3000_usize,
        batch_rows in 1..9_usize,
        whole in prop::collection::vec(any::<bool>(), 3),
        last_joins in 0..4_u64,
    ) {
        let group = history.group();
        for payload in [PayloadClass::OverwriteWithLatest, PayloadClass::DefaultHoodieRecord] {
            for ordering_field in [Some("ts".to_string()), None] {
                let want = history.expected(payload, ordering_field.is_some());
                let enough = SliceOptions { ordering_field, batch_rows, ..options(payload) };
                let (got, counts) = group.merge(&enough).unwrap();
                prop_assert_eq!(&got, &want, "{:?}", payload);
                let stored = history.base.as_ref().map_or(0, Vec::len) as u64;
                prop_assert_eq!(want.len() as u64, stored + counts.inserts - counts.deletes);
                for memory in [enough.memory, memory] {
                    let groups = WholeGroups { whole: whole.clone(), last_joins };
                    let (parts, _) = group.merge_parts(&SliceOptions { memory, ..enough.clone() }, groups).unwrap();
                    prop_assert_eq!(&parts, &want, "{:?} by row groups {:?}", payload, whole);
                }
                let (windowed, few) = group.merge(&SliceOptions { memory, ..enough }).unwrap();
                prop_assert_eq!(&windowed, &want, "{:?} with {} bytes", payload, memory);
                prop_assert_eq!(Counts { batches: few.batches, ..counts }, few);
            }
        }
    }
}

#[test]
fn row_groups_come_whole_where_no_row_is_gone() {
    let base: Vec<Row> = (0..21).map(|at| row(&time(0), &format!("k{at}"), 0, "base")).collect();
    let mut group = Group::new(Some(&base));
    let (update, new) = (row(&time(10), "k3", 1, "changed"), row(&time(10), "new", 1, "new"));
    group.log(vec![data(&time(10), &schema(), &[update, new])], 0);
    group.log(vec![deletes(&time(10), vec![("k8".to_string(), OrderingValue::Long(1))])], 0);
    group.completed(&time(10));
    let options = options(PayloadClass::OverwriteWithLatest);
    for (name, whole, last_joins, want) in [
        ("all but that with a delete", [true, true, true], u64::MAX, 2),
        ("those that are asked for", [false, true, true], u64::MAX, 1),
        ("the last one not where rows follow", [true, true, true], 1, 1),
        ("or as many as are asked for", [true, true, true], 2, 2),
        ("none", [false, false, false], u64::MAX, 0),
    ] {
        let groups = WholeGroups { whole: whole.to_vec(), last_joins };
        let (rows, got) = group.merge_parts(&options, groups).unwrap();
        assert_eq!(got, want, "{name}");
        assert_eq!(rows, group.merge(&options).unwrap().0, "{name}");
    }
}
