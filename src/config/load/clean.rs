//! `hoodie.clean.*` and `hoodie.cleaner.*`.

use super::*;

/// More at a time only wait in line; Hudi's default is a number of Spark tasks.
const MOST_AT_A_TIME: usize = 32;

/// Which policy a job has that names none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::config) enum PolicyKind {
    Commits,
    Hours,
    FileVersions,
}

impl Loader<'_> {
    /// Of a job that writes.
    pub(super) fn clean(&mut self) -> CleanConfig {
        let wanted = self.boolean(&keys::CLEAN_AUTOMATIC) && self.boolean(&keys::TABLE_SERVICES);
        let beside = self.boolean(&keys::CLEAN_ASYNC) && self.raw.has("--continuous");
        let mode = match (wanted, beside) {
            (false, _) => CleanMode::Off,
            (true, false) => CleanMode::Inline,
            (true, true) => CleanMode::Beside,
        };
        self.clean_in(mode)
    }

    /// Of `hudi-streamer clean`, which cleans whatever the job does.
    pub(super) fn clean_in(&mut self, mode: CleanMode) -> CleanConfig {
        let tasks: usize = self.positive(&keys::CLEAN_PARALLELISM, "a number");
        CleanConfig {
            mode,
            policy: self.clean_policy(),
            max_commits: self.number(&keys::CLEAN_MAX_COMMITS, "a number of commits"),
            incremental: self.boolean(&keys::CLEAN_INCREMENTAL),
            allow_multiple: self.boolean(&keys::CLEAN_MULTIPLE),
            parallelism: tasks.min(MOST_AT_A_TIME),
        }
    }

    /// Where it is not named, it is that of the one key that says how much to retain (`HoodieCleanConfig.CLEANER_POLICY`, Hudi 0.15).
    fn clean_policy(&mut self) -> CleanPolicy {
        let retained = [
            (&keys::CLEAN_COMMITS, PolicyKind::Commits),
            (&keys::CLEAN_HOURS, PolicyKind::Hours),
            (&keys::CLEAN_VERSIONS, PolicyKind::FileVersions),
        ];
        let given: Vec<PolicyKind> =
            retained.into_iter().filter(|(key, _)| self.given(key).is_some()).map(|(_, kind)| kind).collect();
        let inferred = match given[..] {
            [one] => one,
            _ => PolicyKind::Commits,
        };
        let kind = match self.given(&keys::CLEAN_POLICY) {
            Some(_) => self.key_choice(&keys::CLEAN_POLICY, &choices::CLEAN_POLICIES, PolicyKind::Commits),
            None => inferred,
        };
        for (key, of) in retained {
            if of != kind && self.given(key).is_some() {
                let text = format!("{}: {} has no effect under this cleaning policy", self.origin(key), key.name);
                self.settings.warnings.push(text);
            }
        }
        match kind {
            PolicyKind::Commits => {
                CleanPolicy::KeepLatestCommits { commits: self.positive(&keys::CLEAN_COMMITS, "a number of commits") }
            }
            PolicyKind::Hours => {
                CleanPolicy::KeepLatestByHours { hours: self.positive(&keys::CLEAN_HOURS, "a number of hours") }
            }
            PolicyKind::FileVersions => CleanPolicy::KeepLatestFileVersions {
                versions: self.positive(&keys::CLEAN_VERSIONS, "a number of file versions"),
            },
        }
    }
}
