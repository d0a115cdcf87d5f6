//! What is found, under names that scripts may rely on.

use serde::Serialize;

/// Findings that are told; beyond them they are counted.
const MOST: usize = 1000;

macro_rules! kinds {
    ($($kind:ident $code:literal $weight:ident;)+) => {
        /// What is wrong, or worth a look.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub(in crate::inspect) enum Kind {
            $($kind,)+
        }

        impl Kind {
            pub fn code(self) -> &'static str {
                match self {
                    $(Kind::$kind => $code,)+
                }
            }

            fn weight(self) -> Weight {
                match self {
                    $(Kind::$kind => Weight::$weight,)+
                }
            }
        }
    };
}

kinds! {
    Properties "table-properties" Fault;
    TimelineFile "timeline-file" Fault;
    PartitionMetafile "partition-metafile" Fault;
    FileMissing "file-missing" Fault;
    SavepointFile "savepoint-file" Fault;
    FileSize "file-size" Fault;
    FileRows "file-rows" Fault;
    FileUnreadable "file-unreadable" Fault;
    BaseFile "base-file" Fault;
    BloomFilter "bloom-filter" Fault;
    KeyRange "key-range" Fault;
    MetaColumns "meta-columns" Fault;
    LogBlock "log-block" Fault;
    DuplicateKey "duplicate-key" Fault;
    SliceTwice "slice-twice" Fault;
    OrphanFile "orphan-file" Fault;
    NoChecksum "no-checksum" Note;
    NoBloomFilter "no-bloom-filter" Note;
    OpenWrite "open-write" Note;
    TornByOpenWrite "torn-by-open-write" Note;
    NotRead "not-read" Note;
    Busy "busy" Note;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Weight {
    /// A table that is whole cannot have it.
    Fault,
    /// May be as it must be.
    Note,
}

/// Its field names are those of the JSON.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(in crate::inspect) struct Finding {
    pub path: String,
    pub code: &'static str,
    pub detail: String,
}

/// As many as were found, and the first of them.
#[derive(Debug, Clone, Default)]
pub(in crate::inspect) struct Counted {
    pub found: Vec<Finding>,
    pub total: u64,
}

impl Counted {
    fn add(&mut self, finding: Finding) {
        self.total += 1;
        if self.found.len() < MOST {
            self.found.push(finding);
        }
    }
}

#[derive(Debug, Clone, Default)]
pub(in crate::inspect) struct Findings {
    pub faults: Counted,
    pub notes: Counted,
}

impl Findings {
    /// `path` is below the table.
    pub fn add(&mut self, kind: Kind, path: impl Into<String>, detail: impl Into<String>) {
        let finding = Finding { path: path.into(), code: kind.code(), detail: detail.into() };
        match kind.weight() {
            Weight::Fault => self.faults.add(finding),
            Weight::Note => self.notes.add(finding),
        }
    }

    pub fn extend(&mut self, other: Findings) {
        for (ours, theirs) in [(&mut self.faults, other.faults), (&mut self.notes, other.notes)] {
            let beyond = theirs.total - theirs.found.len() as u64;
            theirs.found.into_iter().for_each(|finding| ours.add(finding));
            ours.total += beyond;
        }
    }

    pub fn has_faults(&self) -> bool {
        self.faults.total > 0
    }

    /// By path.
    pub fn sort(&mut self) {
        self.faults.found.sort();
        self.notes.found.sort();
    }
}
