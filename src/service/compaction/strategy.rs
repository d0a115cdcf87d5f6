//! What a plan takes of the file slices that could be compacted: pure functions on what each would cost
//! (`org.apache.hudi.table.action.compact.strategy`, Hudi 0.15).

use crate::config::{CompactionSelection, SelectionStrategy};
use crate::table::FileSlice;
use chrono::{Days, NaiveDate};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// A file slice with log files.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Candidate {
    pub slice: FileSlice,
    pub cost: Cost,
}

/// What compacting a slice reads and writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cost {
    pub log_files: u64,
    pub log_bytes: u64,
    pub read_mb: u64,
    pub write_mb: u64,
}

impl Cost {
    /// Sizes in bytes; a slice without a base file is expected to become one of `max_file_size`. Megabytes are cut, not
    /// rounded, as Hudi's are (`FSUtils.getSizeInMB`).
    pub(super) fn of(base: Option<u64>, logs: impl Iterator<Item = u64>, max_file_size: u64) -> Cost {
        let mb = |bytes: u64| bytes / (1024 * 1024);
        let (log_files, log_bytes) = logs.fold((0, 0), |(files, bytes), size| (files + 1, bytes + size));
        let base = base.filter(|size| *size > 0);
        Cost {
            log_files,
            log_bytes,
            read_mb: mb(base.unwrap_or(0) + log_bytes),
            write_mb: mb(base.unwrap_or(max_file_size)),
        }
    }

    fn total_mb(&self) -> u64 {
        self.read_mb + self.write_mb
    }

    /// As plans carry it.
    pub(super) fn metrics(&self) -> BTreeMap<String, f64> {
        let metrics = [
            ("TOTAL_LOG_FILES", self.log_files),
            ("TOTAL_LOG_FILES_SIZE", self.log_bytes),
            ("TOTAL_IO_READ_MB", self.read_mb),
            ("TOTAL_IO_WRITE_MB", self.write_mb),
            ("TOTAL_IO_MB", self.total_mb()),
        ];
        metrics.into_iter().map(|(name, value)| (name.to_string(), value as f64)).collect()
    }
}

/// A partition that a strategy of days cannot place in time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NoDate {
    pub partition: String,
}

/// Which of the candidates a plan takes, in its order. `partitions`: all of the table, also those without a candidate;
/// `today`: on the clock of the machine, as in Hudi.
pub(super) fn choose(
    selection: &CompactionSelection,
    partitions: &[&str],
    mut candidates: Vec<Candidate>,
    today: NaiveDate,
) -> Result<Vec<Candidate>, NoDate> {
    match selection.strategy {
        SelectionStrategy::Unbounded => {}
        SelectionStrategy::BoundedIo => within_io(selection, &mut candidates),
        SelectionStrategy::LogFileSizeBased => {
            candidates.retain(|c| c.cost.log_bytes >= selection.log_size_threshold);
            candidates.sort_by_key(|c| Reverse(c.cost.log_bytes));
            within_io(selection, &mut candidates);
        }
        SelectionStrategy::LogFileNumBased => {
            candidates.retain(|c| c.cost.log_files >= selection.log_count_threshold);
            candidates.sort_by_key(|c| Reverse(c.cost.log_files));
            within_io(selection, &mut candidates);
        }
        SelectionStrategy::DayBased => {
            let mut days = partitions.iter().map(|p| Ok((day_of(p)?, *p))).collect::<Result<Vec<_>, NoDate>>()?;
            days.sort_by_key(|(day, _)| Reverse(*day));
            days.truncate(selection.target_partitions);
            let newest: BTreeSet<&str> = days.into_iter().map(|(_, partition)| partition).collect();
            candidates.retain(|c| newest.contains(c.slice.partition.as_str()));
            newest_day_first(&mut candidates)?;
        }
        SelectionStrategy::BoundedPartitionAware => {
            let earliest = earliest_day(selection, today);
            newest_day_first(&mut candidates)?;
            candidates.retain(|c| day_of(&c.slice.partition).is_ok_and(|day| day >= earliest));
        }
        SelectionStrategy::UnboundedPartitionAware => {
            let earliest = earliest_day(selection, today);
            newest_day_first(&mut candidates)?;
            candidates.retain(|c| day_of(&c.slice.partition).is_ok_and(|day| day < earliest));
        }
    }
    Ok(candidates)
}

/// As many as are begun before the target is reached: the last one may go over it.
fn within_io(selection: &CompactionSelection, candidates: &mut Vec<Candidate>) {
    let mut spent = 0u64;
    let mut reached = false;
    candidates.retain(|candidate| {
        let taken = !reached;
        spent = spent.saturating_add(candidate.cost.total_mb());
        reached |= spent >= selection.target_io_mb;
        taken
    });
}

fn newest_day_first(candidates: &mut [Candidate]) -> Result<(), NoDate> {
    for candidate in candidates.iter() {
        day_of(&candidate.slice.partition)?;
    }
    candidates.sort_by_key(|c| Reverse(day_of(&c.slice.partition).ok()));
    Ok(())
}

fn earliest_day(selection: &CompactionSelection, today: NaiveDate) -> NaiveDate {
    today.checked_sub_days(Days::new(selection.target_partitions as u64)).unwrap_or(NaiveDate::MIN)
}

/// `2026/01/31`, `2026-01-31`, either in Hive's style (`day=2026-01-31`, `year=2026/month=01/day=31`); what follows the
/// day, an hour say, does not count.
fn day_of(partition: &str) -> Result<NaiveDate, NoDate> {
    let no_date = || NoDate { partition: partition.to_string() };
    let values: Vec<&str> =
        partition.split('/').map(|level| level.split_once('=').map_or(level, |(_, value)| value)).collect();
    let path = values.join("/").replace('-', "/");
    let mut numbers = path.split('/').map(|part| part.parse::<u32>().ok());
    let (Some(Some(year)), Some(Some(month)), Some(Some(day))) = (numbers.next(), numbers.next(), numbers.next())
    else {
        return Err(no_date());
    };
    i32::try_from(year).ok().and_then(|year| NaiveDate::from_ymd_opt(year, month, day)).ok_or_else(no_date)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::InstantTime;

    const MB: u64 = 1024 * 1024;

    fn selection(strategy: SelectionStrategy) -> CompactionSelection {
        CompactionSelection {
            strategy,
            target_io_mb: 512_000,
            log_size_threshold: 0,
            log_count_threshold: 0,
            target_partitions: 2,
        }
    }

    /// `partition file-id base-MB log-MB,log-MB`
    fn candidate(text: &str) -> Candidate {
        let [partition, file_id, base, logs] = text.split(' ').collect::<Vec<_>>()[..] else { panic!("{text}") };
        let number = |text: &str| text.parse::<u64>().expect("a number") * MB;
        let slice = FileSlice {
            partition: partition.into(),
            file_id: file_id.into(),
            base_instant: InstantTime::parse("20260101000000000").expect("digits"),
            base_file: None,
            log_files: Vec::new(),
            pending_compaction: None,
        };
        let base = Some(base).filter(|b| *b != "-").map(number);
        Candidate { slice, cost: Cost::of(base, logs.split(',').map(number), 120 * MB) }
    }

    #[track_caller]
    fn chosen(selection: &CompactionSelection, partitions: &[&str], candidates: &[&str]) -> String {
        let today = NaiveDate::from_ymd_opt(2026, 1, 31).expect("a day");
        let candidates = candidates.iter().map(|c| candidate(c)).collect();
        let chosen = choose(selection, partitions, candidates, today).expect("days");
        chosen.iter().map(|c| c.slice.file_id.as_str()).collect::<Vec<_>>().join(" ")
    }

    const GROUPS: [&str; 4] = ["p a 10 1,1,1", "p b 20 9", "p c - 4,4", "p d 1 0,0,0,0"];

    #[test]
    fn groups_are_taken_by_their_logs_and_by_io() {
        use SelectionStrategy::*;
        let by = |strategy, change: fn(&mut CompactionSelection)| {
            let mut selection = selection(strategy);
            change(&mut selection);
            chosen(&selection, &["p"], &GROUPS)
        };
        // MB of all: a 13 + 10, b 29 + 20, c 8 + 120, d 1 + 1.
        for (name, got, want) in [
            ("all", by(Unbounded, |s| s.target_io_mb = 0), "a b c d"),
            ("largest logs first", by(LogFileSizeBased, |_| {}), "b c a d"),
            ("large logs", by(LogFileSizeBased, |s| s.log_size_threshold = 8 * MB), "b c"),
            ("up to the target", by(LogFileSizeBased, |s| s.target_io_mb = 50), "b c"),
            ("exactly the target", by(LogFileSizeBased, |s| s.target_io_mb = 49), "b"),
            ("a target of nothing still takes one", by(LogFileSizeBased, |s| s.target_io_mb = 0), "b"),
            ("most logs first", by(LogFileNumBased, |_| {}), "d a c b"),
            ("many logs", by(LogFileNumBased, |s| s.log_count_threshold = 3), "d a"),
            ("many logs, up to the target", by(LogFileNumBased, |s| s.target_io_mb = 3), "d a"),
            ("in the order of the table", by(BoundedIo, |s| s.target_io_mb = 24), "a b"),
        ] {
            assert_eq!(got, want, "{name}");
        }
    }

    #[test]
    fn days_are_taken_from_the_newest_or_from_the_oldest() {
        use SelectionStrategy::*;
        let groups =
            ["2026/01/28 a 1 1", "2026-01-30 b 1 1", "day=2026-01-29 c 1 1", "year=2026/month=1/day=31/hour=7 d 1 1"];
        let partitions: Vec<&str> = groups.iter().map(|g| g.split(' ').next().expect("a partition")).collect();
        for (name, strategy, want) in [
            ("the two newest partitions", DayBased, "d b"),
            ("up to two days back", BoundedPartitionAware, "d b c"),
            ("the others", UnboundedPartitionAware, "a"),
        ] {
            assert_eq!(chosen(&selection(strategy), &partitions, &groups), want, "{name}");
        }
        let newer = [&partitions[..], &["2026/02/01", "2026/02/02"]].concat();
        assert_eq!(chosen(&selection(DayBased), &newer, &groups), "", "the newest partitions have no log files");
        for partition in ["", "europe", "2026/13/01", "2026/01", "day=x"] {
            let got = choose(&selection(DayBased), &[partition], Vec::new(), NaiveDate::MIN);
            assert_eq!(got, Err(NoDate { partition: partition.into() }));
        }
    }

    #[test]
    fn costs_are_those_of_hudi_s_plans() {
        let cost = Cost::of(Some(434_612), [1_120, 1_014].into_iter(), 120 * MB);
        assert_eq!(cost, Cost { log_files: 2, log_bytes: 2_134, read_mb: 0, write_mb: 0 });
        let without_base = Cost::of(None, [3 * MB - 1].into_iter(), 120 * MB);
        assert_eq!((without_base.read_mb, without_base.write_mb), (2, 120));
        assert_eq!(without_base.metrics()["TOTAL_IO_MB"], 122.0);
    }
}
