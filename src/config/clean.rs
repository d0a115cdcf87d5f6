//! What the cleaner keeps, when it looks, and who runs it.

/// How old files are removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CleanConfig {
    pub mode: CleanMode,
    pub policy: CleanPolicy,
    /// `hoodie.clean.max.commits`: writes after the last clean from which on another is looked for.
    pub max_commits: usize,
    /// `hoodie.cleaner.incremental.mode`: only partitions that were written since are looked at.
    pub incremental: bool,
    /// `hoodie.clean.allow.multiple`: a new plan also where one waits that cannot be executed now.
    pub allow_multiple: bool,
    /// `hoodie.cleaner.parallelism`: folders listed, or files deleted, at a time.
    pub parallelism: usize,
}

/// What the job that writes the table does about cleaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CleanMode {
    /// Nothing: `hoodie.clean.automatic=false`.
    Off,
    /// Behind each commit.
    Inline,
    /// In a task of its own beside the rounds of a continuous job: `hoodie.clean.async`.
    Beside,
}

/// `hoodie.cleaner.policy` (`HoodieCleaningPolicy`, Hudi 0.15), with what it retains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CleanPolicy {
    KeepLatestCommits { commits: usize },
    KeepLatestByHours { hours: u32 },
    KeepLatestFileVersions { versions: usize },
}

impl CleanPolicy {
    /// Hudi's word for it, as in plans and metadata.
    pub fn as_str(self) -> &'static str {
        match self {
            CleanPolicy::KeepLatestCommits { .. } => "KEEP_LATEST_COMMITS",
            CleanPolicy::KeepLatestByHours { .. } => "KEEP_LATEST_BY_HOURS",
            CleanPolicy::KeepLatestFileVersions { .. } => "KEEP_LATEST_FILE_VERSIONS",
        }
    }
}
