//! `hoodie.keep.*`, `hoodie.archive.*` and `hoodie.commits.archival.*`.

use super::*;

impl Loader<'_> {
    pub(super) fn archive(&mut self) -> ArchiveConfig {
        let services = self.boolean(&keys::TABLE_SERVICES);
        let commits = "a number of commits";
        let before = self.settings.problems.len();
        let (min, max) = (self.positive(&keys::KEEP_MIN, commits), self.positive(&keys::KEEP_MAX, commits));
        if self.settings.problems.len() == before && max <= min {
            // Hudi's own words.
            let text = format!(
                "{}: increase {}={max} to be greater than {}={min}",
                self.origin(&keys::KEEP_MAX),
                keys::KEEP_MAX.name,
                keys::KEEP_MIN.name
            );
            self.problem("config-conflict", text);
        }
        let grows = self.boolean(&keys::ARCHIVE_MERGE);
        let file_bytes = self.positive(&keys::ARCHIVE_FILE_BYTES, "a number of bytes");
        ArchiveConfig {
            automatic: self.boolean(&keys::ARCHIVE_AUTOMATIC) && services,
            min_commits: min,
            max_commits: max,
            batch: self.positive(&keys::ARCHIVE_BATCH, "a number of records"),
            file_bytes: if grows { file_bytes } else { 0 },
        }
    }
}
