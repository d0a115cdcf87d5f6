//! Every flag of Hudi's Streamer (streamer-options.md §2), and ours, as data.

/// How a flag takes its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// One value, given once.
    Value,
    /// Commas part the elements, and the flag may be repeated.
    List,
    /// `key=value`, never parted, may be repeated.
    Pairs,
    /// Presence alone.
    Switch,
}

/// Whether a flag does what it says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Done,
    /// Accepted without effect, and why.
    Idle(&'static str),
    /// Not done yet, and what to do instead.
    Refused(&'static str),
}

/// A flag.
#[derive(Debug)]
pub(super) struct Flag {
    /// With its dashes.
    pub long: &'static str,
    pub aliases: &'static [&'static str],
    pub kind: Kind,
    pub value_name: &'static str,
    pub default: &'static str,
    pub doc: &'static str,
    pub required: bool,
    pub state: State,
}

impl Flag {
    /// Without its dashes.
    pub fn name(&self) -> &'static str {
        self.long.trim_start_matches('-')
    }
}

const fn flag(
    long: &'static str,
    kind: Kind,
    value_name: &'static str,
    default: &'static str,
    doc: &'static str,
) -> Flag {
    Flag { long, aliases: &[], kind, value_name, default, doc, required: false, state: State::Done }
}

const fn required(mut flag: Flag) -> Flag {
    flag.required = true;
    flag
}

const fn also(mut flag: Flag, aliases: &'static [&'static str]) -> Flag {
    flag.aliases = aliases;
    flag
}

const fn idle(long: &'static str, kind: Kind, why: &'static str) -> Flag {
    let mut flag = flag(long, kind, "VALUE", "", "for Spark");
    flag.state = State::Idle(why);
    flag
}

const fn refused(long: &'static str, kind: Kind, instead: &'static str) -> Flag {
    let mut flag = flag(long, kind, "VALUE", "", "");
    flag.state = State::Refused(instead);
    flag
}

const NO_SPARK: &str = "there is no Spark here";
const NO_SYNC: &str = "catalogs are not synced yet, run Hudi's sync tool after the job";
const NO_CLUSTERING: &str = "clustering is not done yet, run it from Spark";
const NO_BOOTSTRAP: &str = "bootstrap a table with Hudi on Spark";
const BY_PAYLOAD: &str = "merge modes are of Hudi 1.x, choose a merge rule with --payload-class";

pub(super) const FLAGS: &[Flag] = &[
    required(flag("--target-base-path", Kind::Value, "PATH", "", "Folder of the table; made when there is none")),
    required(flag("--target-table", Kind::Value, "NAME", "", "Name of the table")),
    required(flag("--table-type", Kind::Value, "TYPE", "", "COPY_ON_WRITE")),
    flag("--props", Kind::Value, "FILE", "", "Properties file"),
    flag("--hoodie-conf", Kind::Pairs, "KEY=VALUE", "", "One property, over those of the file; may be repeated"),
    flag("--source-class", Kind::Value, "CLASS", "JsonDFSSource", "Where rows come from: JsonDFSSource"),
    also(
        flag(
            "--source-ordering-field",
            Kind::Value,
            "FIELD",
            "ts",
            "Among rows of one key the one with the greatest value wins",
        ),
        &["--source-ordering-fields"],
    ),
    flag(
        "--payload-class",
        Kind::Value,
        "CLASS",
        "OverwriteWithLatestAvroPayload",
        "Merge rule: OverwriteWithLatestAvroPayload or DefaultHoodieRecordPayload",
    ),
    flag(
        "--schemaprovider-class",
        Kind::Value,
        "CLASS",
        "",
        "FilebasedSchemaProvider; without one the schema is inferred from the first batch",
    ),
    flag(
        "--transformer-class",
        Kind::List,
        "CLASS",
        "",
        "SqlQueryBasedTransformer, SqlFileBasedTransformer; several make a chain",
    ),
    flag("--source-limit", Kind::Value, "BYTES", "none", "Most input a round"),
    flag("--base-file-format", Kind::Value, "FORMAT", "PARQUET", "PARQUET"),
    flag("--op", Kind::Value, "OPERATION", "UPSERT", "UPSERT, INSERT or BULK_INSERT"),
    flag("--filter-dupes", Kind::Switch, "", "", "Drop rows whose key is stored already (INSERT, BULK_INSERT)"),
    flag(
        "--commit-on-errors",
        Kind::Switch,
        "",
        "",
        "Commit although some rows failed to be written; rows that cannot be read always fail the round",
    ),
    flag("--continuous", Kind::Switch, "", "", "Round after round until stopped"),
    flag(
        "--min-sync-interval-seconds",
        Kind::Value,
        "SECONDS",
        "0",
        "Least time from the start of a round to the next",
    ),
    flag("--checkpoint", Kind::Value, "POSITION", "", "Start after this position; counts once per distinct value"),
    flag("--ignore-checkpoint", Kind::Value, "TEXT", "", "Forget the stored position; counts once per distinct text"),
    flag("--allow-commit-on-no-checkpoint-change", Kind::Switch, "", "", "Commit also when the position did not move"),
    flag("--retry-on-source-failures", Kind::Switch, "", "", "Try a failed fetch again where that may help"),
    flag("--retry-interval-seconds", Kind::Value, "SECONDS", "30", "Wait between such tries"),
    flag(
        "--max-retry-count",
        Kind::Value,
        "COUNT",
        "3",
        "Tries in all; where it is given, also the failed rounds in a row that end a continuous job",
    ),
    flag(
        "--post-write-termination-strategy-class",
        Kind::Value,
        "CLASS",
        "",
        "NoNewDataTerminationStrategy: end a continuous job that has nothing to do",
    ),
    flag("--disable-compaction", Kind::Switch, "", "", "Merge-on-read: neither plan nor execute compactions"),
    flag(
        "--max-pending-compactions",
        Kind::Value,
        "COUNT",
        "5",
        "Merge-on-read, continuous: with more compactions waiting no round begins",
    ),
    flag(
        "--retry-last-pending-inline-compaction",
        Kind::Switch,
        "",
        "",
        "Merge-on-read, one-shot: finish the last pending compaction before the round",
    ),
    flag(
        "--compact-scheduling-weight",
        Kind::Value,
        "WEIGHT",
        "1",
        "Share of the workers that compaction beside ingestion has, against --delta-sync-scheduling-weight",
    ),
    flag("--compact-scheduling-minshare", Kind::Value, "WORKERS", "0", "Least workers of compaction"),
    flag("--delta-sync-scheduling-weight", Kind::Value, "WEIGHT", "1", "Share of the workers that ingestion keeps"),
    flag("--delta-sync-scheduling-minshare", Kind::Value, "WORKERS", "0", "Least workers that ingestion keeps"),
    flag("--dry-run", Kind::Switch, "", "", "Ours: do all but writing, and say what would be written"),
    flag("--explain", Kind::Switch, "", "", "Ours: print the plan of the round and stop"),
    flag("--log-json", Kind::Switch, "", "", "Ours: log lines as JSON"),
    flag("--no-progress", Kind::Switch, "", "", "Ours: no progress bar"),
    flag("--help-keys", Kind::Switch, "", "", "Ours: list every property key"),
    idle("--spark-master", Kind::Value, NO_SPARK),
    idle("--spark-app-name", Kind::Value, NO_SPARK),
    idle("--enable-hive-support", Kind::Switch, NO_SPARK),
    idle("--cluster-scheduling-weight", Kind::Value, NO_SPARK),
    idle("--cluster-scheduling-minshare", Kind::Value, NO_SPARK),
    idle("--max-pending-clustering", Kind::Value, NO_CLUSTERING),
    refused("--retry-last-pending-inline-clustering", Kind::Switch, NO_CLUSTERING),
    refused("--enable-hive-sync", Kind::Switch, NO_SYNC),
    refused("--enable-sync", Kind::Switch, NO_SYNC),
    refused("--force-empty-sync", Kind::Switch, NO_SYNC),
    refused("--sync-tool-classes", Kind::List, NO_SYNC),
    refused("--merge-mode", Kind::Value, BY_PAYLOAD),
    refused("--record-merge-mode", Kind::Value, BY_PAYLOAD),
    refused("--merge-strategy-id", Kind::Value, BY_PAYLOAD),
    refused("--record-merge-strategy-id", Kind::Value, BY_PAYLOAD),
    refused("--merge-impl-classes", Kind::List, BY_PAYLOAD),
    refused("--record-merge-custom-implementation-classes", Kind::List, BY_PAYLOAD),
    refused("--checkpoint-type", Kind::Value, "set the property hoodie.streamer.source.kafka.checkpoint.type"),
    refused("--initial-checkpoint-provider", Kind::Value, "give the position with --checkpoint"),
    refused("--run-bootstrap", Kind::Switch, NO_BOOTSTRAP),
    refused("--bootstrap-overwrite", Kind::Switch, NO_BOOTSTRAP),
    refused("--bootstrap-index-class", Kind::Value, NO_BOOTSTRAP),
    refused("--ingestion-metrics-class", Kind::Value, "the log has a line a round"),
    refused("--config-hot-update-strategy-class", Kind::Value, "restart the job, it goes on from its checkpoint"),
    refused("--base-path-prefix", Kind::Value, "run one process a table"),
    refused("--config-folder", Kind::Value, "run one process a table"),
];
