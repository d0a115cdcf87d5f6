//! How files are written: base files, log files, and which rows go where.

use super::*;

impl Loader<'_> {
    pub(super) fn write(&mut self) -> WriteConfig {
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        let workers = match self.given(&keys::WORKERS) {
            Some(_) => self.positive(&keys::WORKERS, "a whole number"),
            None => cores,
        };
        WriteConfig {
            parquet: ParquetConfig {
                codec: self.key_choice(&keys::CODEC, &choices::CODECS, ParquetCodec::Gzip),
                max_file_size: self.positive(&keys::MAX_FILE_SIZE, "a number of bytes"),
                block_size: self.positive(&keys::BLOCK_SIZE, "a number of bytes"),
                page_size: self.positive(&keys::PAGE_SIZE, "a number of bytes"),
                dictionary_enabled: self.boolean(&keys::DICTIONARY),
                compression_ratio: self
                    .number_that(&keys::COMPRESSION_RATIO, "a number above 0", |n: f64| n.is_finite() && n > 0.0),
            },
            log: LogConfig {
                max_file_size: self.positive(&keys::LOG_MAX_SIZE, "a number of bytes"),
                // Readers take a block's length as an int, and a block may exceed its limit by what one batch brings.
                max_block_size: self.number_that(
                    &keys::LOG_BLOCK_MAX_SIZE,
                    "a number of bytes above 0 and up to 1073741824 (1 GiB)",
                    |n: u64| n > 0 && n <= 1 << 30,
                ),
                block_format: self.key_choice(
                    &keys::LOG_BLOCK_FORMAT,
                    &choices::LOG_BLOCK_FORMATS,
                    LogBlockFormat::Avro,
                ),
            },
            bloom: BloomConfig {
                num_entries: self.positive(&keys::BLOOM_ENTRIES, "a whole number"),
                fpp: self.number_that(&keys::BLOOM_FPP, "a number between 0 and 1", |n: f64| n > 0.0 && n < 1.0),
                dynamic: self.key_choice(&keys::BLOOM_TYPE, &choices::BLOOM_TYPES, true),
                dynamic_max_entries: self.positive(&keys::BLOOM_MAX_ENTRIES, "a whole number"),
            },
            small_file_limit: self.number(&keys::SMALL_FILE_LIMIT, "a number of bytes"),
            small_file_limit_explicit: self.given(&keys::SMALL_FILE_LIMIT).is_some(),
            small_file_candidates: self.number(&keys::SMALL_FILE_CANDIDATES, "a whole number"),
            record_size_estimate: self.positive(&keys::RECORD_SIZE_ESTIMATE, "a number of bytes"),
            record_size_estimation_threshold: self.number_that(
                &keys::RECORD_SIZE_THRESHOLD,
                "a number of 0 or more",
                |n: f64| n.is_finite() && n >= 0.0,
            ),
            insert_auto_split: self.boolean(&keys::AUTO_SPLIT),
            insert_split_size: self.positive(&keys::SPLIT_SIZE, "a whole number"),
            bulk_insert_sort_mode: self.key_choice(&keys::SORT_MODE, &choices::SORT_MODES, BulkInsertSortMode::None),
            allow_duplicate_on_inserts: self.boolean(&keys::ALLOW_DUPLICATES),
            reconcile_schema: self.boolean(&keys::RECONCILE),
            set_null_for_missing_columns: self.boolean(&keys::SET_NULL),
            allow_column_drop: self.boolean(&keys::COLUMN_DROP),
            memory: self.memory(),
            workers,
        }
    }
}
