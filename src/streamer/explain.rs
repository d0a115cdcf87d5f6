//! `--explain`: the stages of a round as a tree, the last one first, as databases show their plans.

use super::round::Streamer;
use crate::config::{Operation, TableType};
use crate::transform::{self, Transformed};

impl Streamer {
    pub(super) fn explain(&self, transformed: &Transformed) -> String {
        let stages = match (self.config.operation, self.config.table.table_type) {
            (Operation::Upsert, TableType::CopyOnWrite) => {
                "write: small files first, then new file groups; merge handles rewrite tagged file groups\ntag\nprecombine\nkey"
            }
            (Operation::Upsert, TableType::MergeOnRead) => {
                "write: small files first, then new file groups; updates to the logs of tagged file groups\ntag\nprecombine\nkey"
            }
            (Operation::Insert, _) => "write: small files first, then new file groups\nkey",
            (Operation::BulkInsert, _) => "write: one open file a worker and partition\nkey",
        };
        let settings = format!(
            "index={:?} payload={:?} sort={:?} workers={}",
            self.config.index.index_type,
            self.rule.0,
            self.config.write.bulk_insert_sort_mode,
            self.config.write.workers
        );
        let mut text = format!("commit: {} ({settings})\n", self.operation_name());
        let mut depth = 1;
        for line in stages.lines() {
            text.push_str(&format!("{}{line}\n", "  ".repeat(depth)));
            depth += 1;
        }
        for line in transform::explain(transformed).lines() {
            text.push_str(&format!("{}{line}\n", "  ".repeat(depth)));
        }
        text
    }
}
