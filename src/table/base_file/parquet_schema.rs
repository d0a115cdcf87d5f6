//! The Parquet schema of a base file (base-file.md §3).

use std::sync::Arc;

use arrow::datatypes::Schema;
use parquet::arrow::ArrowSchemaConverter;
use parquet::basic::{ConvertedType, Type as PhysicalType};
use parquet::errors::Result;
use parquet::schema::types::{SchemaDescriptor, Type, TypePtr};

/// As parquet-rs converts it, with standard three-level lists and maps, but for decimals: they are fixed-size binary of
/// the smallest size whatever their precision, as Avro's `fixed`, because Hudi reads base files with an Avro schema when
/// it merges and an INT32 or INT64 is then no decimal.
pub(super) fn of_arrow(schema: &Schema) -> Result<SchemaDescriptor> {
    let converter = ArrowSchemaConverter::new().with_coerce_types(true).schema_root("schema");
    let converted = converter.convert(schema)?;
    Ok(SchemaDescriptor::new(with_fixed_decimals(&converted.root_schema_ptr())?))
}

fn with_fixed_decimals(tpe: &TypePtr) -> Result<TypePtr> {
    let info = tpe.get_basic_info();
    let logical = info.logical_type_ref().cloned();
    let changed = match tpe.as_ref() {
        Type::GroupType { fields, .. } => {
            let fields = fields.iter().map(with_fixed_decimals).collect::<Result<_>>()?;
            let group = Type::group_type_builder(info.name())
                .with_fields(fields)
                .with_converted_type(info.converted_type())
                .with_logical_type(logical)
                .with_id(info.has_id().then(|| info.id()));
            if info.has_repetition() { group.with_repetition(info.repetition()) } else { group }.build()?
        }
        Type::PrimitiveType { scale, precision, .. } if info.converted_type() == ConvertedType::DECIMAL => {
            Type::primitive_type_builder(info.name(), PhysicalType::FIXED_LEN_BYTE_ARRAY)
                .with_length(decimal_bytes(*precision))
                .with_precision(*precision)
                .with_scale(*scale)
                .with_repetition(info.repetition())
                .with_logical_type(logical)
                .with_id(info.has_id().then(|| info.id()))
                .build()?
        }
        Type::PrimitiveType { .. } => return Ok(Arc::clone(tpe)),
    };
    Ok(Arc::new(changed))
}

/// The smallest signed integer that holds every decimal of the precision, in bytes.
fn decimal_bytes(precision: i32) -> i32 {
    let bits = f64::from(precision) * std::f64::consts::LOG2_10;
    ((bits + 1.0) / 8.0).ceil() as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_take_the_bytes_that_their_precision_needs() {
        let want = |precision: u32| {
            (1..=16u32).find(|n| (1i128 << (8 * n - 1).min(126)) >= 10i128.pow(precision)).unwrap_or(16)
        };
        for precision in 1..=38 {
            assert_eq!(decimal_bytes(precision), want(precision as u32) as i32, "{precision}");
        }
        assert_eq!([2, 6, 10, 18, 19, 38].map(decimal_bytes), [1, 3, 5, 8, 9, 16]);
    }
}
