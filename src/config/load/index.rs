//! How keys are found.

use super::*;

impl Loader<'_> {
    pub(super) fn index(&mut self) -> IndexConfig {
        let index_type = self.key_choice(&keys::INDEX_TYPE, &choices::INDEXES, IndexType::Simple);
        let update = match index_type {
            IndexType::GlobalBloom => &keys::BLOOM_UPDATE_PATH,
            _ => &keys::SIMPLE_UPDATE_PATH,
        };
        IndexConfig {
            index_type,
            update_partition_path: self.boolean(update),
            cache_bytes: self.number(&keys::INDEX_CACHE, "a number of bytes"),
            buckets: self.buckets(index_type),
        }
    }

    fn buckets(&mut self, index_type: IndexType) -> Option<BucketConfig> {
        if index_type != IndexType::Bucket {
            for key in [&keys::BUCKET_ENGINE, &keys::BUCKETS, &keys::BUCKET_FIELDS] {
                if self.given(key).is_some() {
                    let index = keys::INDEX_TYPE.name;
                    self.settings.warnings.push(format!("{} has no effect without {index}=BUCKET", key.name));
                }
            }
            return None;
        }
        self.key_choice(&keys::BUCKET_ENGINE, &choices::BUCKET_ENGINES, ());
        let record_key_fields = self.list(&keys::RECORD_KEY);
        let mut hash_fields = self.list(&keys::BUCKET_FIELDS);
        let other = hash_fields.iter().find(|field| !record_key_fields.contains(field));
        if let Some(other) = other.filter(|_| !record_key_fields.is_empty()) {
            let text = format!(
                "{}: {} must name fields of the record key ({}), which {other} is not",
                self.origin(&keys::BUCKET_FIELDS),
                keys::BUCKET_FIELDS.name,
                record_key_fields.join(",")
            );
            self.problem("config-conflict", text);
        }
        if hash_fields.is_empty() {
            hash_fields = record_key_fields;
        }
        // A bucket's number has eight digits in the name of a file.
        let count = self
            .number_that(&keys::BUCKETS, "a whole number from 1 to 100000000", |n: u32| (1..=100_000_000).contains(&n));
        Some(BucketConfig { count, hash_fields })
    }

    /// What does not go with the bucket index.
    pub(super) fn of_buckets(&mut self, table_type: TableType, operation: Operation, filter_dupes: bool) {
        if filter_dupes && table_type == TableType::MergeOnRead {
            let text = "--filter-dupes with hoodie.index.type=BUCKET on a MERGE_ON_READ table is not done: new keys are in \
                        log files, where no index finds them; use --op UPSERT, or another index";
            self.problem("config-unsupported", text.into());
        }
        if operation == Operation::BulkInsert && self.given(&keys::SORT_MODE).is_some() {
            let text =
                format!("{} has no effect with hoodie.index.type=BUCKET: rows go to buckets", keys::SORT_MODE.name);
            self.settings.warnings.push(text);
        }
    }
}
