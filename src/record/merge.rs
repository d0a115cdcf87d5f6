//! Merge rules: what becomes of an incoming record and the stored one of the same key (semantics.md §3).

use super::{Error, Result};
use crate::config::PayloadClass;
use arrow::array::{Array, ArrayRef, BooleanArray};
use arrow::compute::cast;
use arrow::compute::kernels::cmp;
use arrow::datatypes::DataType;

/// A payload class, as a rule on columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MergeRule(pub PayloadClass);

impl MergeRule {
    /// Whether the rule looks at the stored row's ordering value.
    pub fn needs_stored_ordering(self) -> bool {
        self.0 == PayloadClass::DefaultHoodieRecord
    }

    /// For matched pairs: true where the stored row stays (it is copied with its own commit time). A tie, or a stored row
    /// without a value, goes to the incoming row; a delete competes like any other record.
    pub fn keeps_stored(self, stored: &ArrayRef, incoming: &ArrayRef) -> Result<BooleanArray> {
        if !self.needs_stored_ordering() {
            return Ok(BooleanArray::from(vec![false; incoming.len()]));
        }
        let unsupported = |e| Error::Unsupported { what: format!("ordering values cannot be compared: {e}") };
        // After an evolution the two may differ in width; the wider one holds both.
        let wide = if rank(stored.data_type()) > rank(incoming.data_type()) {
            stored.data_type()
        } else {
            incoming.data_type()
        };
        let stored = cast(stored, wide).map_err(unsupported)?;
        let incoming = cast(incoming, wide).map_err(unsupported)?;
        let newer = cmp::gt(&stored, &incoming).map_err(unsupported)?;
        Ok(BooleanArray::from_iter(newer.iter().map(|kept| Some(kept == Some(true)))))
    }
}

fn rank(data_type: &DataType) -> u8 {
    match data_type {
        DataType::Int32 => 1,
        DataType::Int64 => 2,
        DataType::Float32 => 3,
        DataType::Float64 => 4,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Int32Array, Int64Array};
    use std::sync::Arc;

    /// `payloads.json` is the output of Hudi's own classes.
    #[test]
    fn stored_rows_stay_where_hudis_classes_keep_them() {
        let vectors: serde_json::Value =
            serde_json::from_str(include_str!("../../tests/vectors/payloads.json")).expect("vectors");
        let mut checked = 0;
        for case in vectors["cases"].as_array().expect("a list") {
            let rule = match case["payload"].as_str() {
                Some("OverwriteWithLatestAvroPayload") => MergeRule(PayloadClass::OverwriteWithLatest),
                Some("DefaultHoodieRecordPayload") => MergeRule(PayloadClass::DefaultHoodieRecord),
                _ => continue,
            };
            let Some(outcome) = case["combineAndGetUpdateValue(stored)"].as_str() else { continue };
            let value =
                |name: &str| Arc::new(Int64Array::from(vec![case[name].as_i64().expect("a number")])) as ArrayRef;
            let kept = rule.keeps_stored(&value("stored_or_earlier_ts"), &value("incoming_ts")).expect("longs compare");
            assert_eq!(kept.value(0), outcome.contains("same object"), "{case}");
            checked += 1;
        }
        assert!(checked > 6, "only {checked} cases apply");
    }

    #[test]
    fn widths_may_differ_and_nulls_lose() {
        let rule = MergeRule(PayloadClass::DefaultHoodieRecord);
        let stored = Arc::new(Int32Array::from(vec![Some(5), Some(7), None])) as ArrayRef;
        let incoming = Arc::new(Int64Array::from(vec![5, 6, 1])) as ArrayRef;
        let kept = rule.keeps_stored(&stored, &incoming).expect("numbers compare");
        assert_eq!(kept, BooleanArray::from(vec![false, true, false]));
    }
}
