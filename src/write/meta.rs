//! The five meta columns, built as columns (base-file.md §2).

use arrow::array::{Array, ArrayRef, StringArray, StringBuilder};
use std::fmt::Write;
use std::sync::Arc;

/// Position of `_hoodie_commit_time`, … among the columns of a base file.
pub(super) const COMMIT_TIME: usize = 0;
pub(super) const RECORD_KEY: usize = 2;
pub(super) const FILE_NAME: usize = 4;
/// How many meta columns stand before the data columns.
pub(super) const META_COLUMN_COUNT: usize = crate::table::META_COLUMNS.len();

/// What the meta columns of one data file say.
#[derive(Debug)]
pub(super) struct MetaColumns {
    instant: Constant,
    partition: Constant,
    file_name: Constant,
    /// `<instant>_<taskPartitionId>_`
    seqno_prefix: String,
}

impl MetaColumns {
    /// `task`: another one for each file of an instant, or seqnos collide.
    pub(super) fn new(instant: &str, task: u32, partition: &str, file_name: &str) -> MetaColumns {
        MetaColumns {
            instant: Constant::new(instant),
            partition: Constant::new(partition),
            file_name: Constant::new(file_name),
            seqno_prefix: format!("{instant}_{task}_"),
        }
    }

    /// The meta columns of records that this write adds or changes; `positions`: of each in the file.
    pub(super) fn of_written(
        &mut self,
        keys: StringArray,
        positions: impl Iterator<Item = u64>,
    ) -> [ArrayRef; META_COLUMN_COUNT] {
        let rows = keys.len();
        let mut seqnos = StringBuilder::with_capacity(rows, rows * (self.seqno_prefix.len() + 6));
        for position in positions {
            write!(seqnos, "{}{position}", self.seqno_prefix).expect("a string builder takes any text");
            seqnos.append_value("");
        }
        [
            self.instant.column(rows),
            Arc::new(seqnos.finish()),
            Arc::new(keys),
            self.partition.column(rows),
            self.file_name.column(rows),
        ]
    }

    /// What the column `_hoodie_file_name` says.
    pub(super) fn file_name_text(&self) -> &str {
        &self.file_name.text
    }

    /// The column `_hoodie_file_name` of `rows` records, copied ones too.
    pub(super) fn file_name(&mut self, rows: usize) -> ArrayRef {
        self.file_name.column(rows)
    }
}

/// A column of one text, kept so that each batch only takes a slice.
#[derive(Debug)]
struct Constant {
    text: String,
    column: StringArray,
}

impl Constant {
    fn new(text: &str) -> Constant {
        Constant { text: text.to_string(), column: StringArray::new_null(0) }
    }

    fn column(&mut self, rows: usize) -> ArrayRef {
        if self.column.len() < rows {
            self.column = StringArray::from_iter_values(std::iter::repeat_n(&self.text, rows));
        }
        Arc::new(self.column.slice(0, rows))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::AsArray;

    #[test]
    fn written_records_get_instant_seqno_key_partition_and_file_name() {
        let mut meta = MetaColumns::new("20240101000000000", 7, "p=1", "f.parquet");
        let columns = meta.of_written(StringArray::from(vec!["a", "b"]), [3, 9].into_iter());
        let rows: Vec<Vec<&str>> =
            (0..2).map(|i| columns.iter().map(|c| c.as_string::<i32>().value(i)).collect()).collect();
        assert_eq!(
            rows,
            [
                ["20240101000000000", "20240101000000000_7_3", "a", "p=1", "f.parquet"],
                ["20240101000000000", "20240101000000000_7_9", "b", "p=1", "f.parquet"],
            ]
        );
    }

    #[test]
    fn constant_columns_have_the_length_asked_for() {
        let mut meta = MetaColumns::new("1", 0, "", "f.parquet");
        for rows in [0, 5, 2, 9] {
            assert_eq!(meta.file_name(rows).len(), rows);
        }
    }
}
