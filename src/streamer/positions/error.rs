//! Why a position is not told, or not set.

/// What is wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error(
        "there is no table at {table}: correct --target-base-path; where the first run of a new table starts, its flag \
         --checkpoint says"
    )]
    NoTable { table: String },
    #[error("position {:?}: {why}", cut(checkpoint))]
    Malformed { checkpoint: String, why: String },
    #[error(
        "position {:?} is one of {form}, and the source is {source_name}{}: give its own form, or name the right source with \
         --source-class", cut(checkpoint), by_default(*given)
    )]
    Foreign { checkpoint: String, form: &'static str, source_name: &'static str, given: bool },
    #[error("position {:?} is doubtful: {doubts}; set it all the same with --force", cut(checkpoint))]
    Doubtful { checkpoint: String, doubts: String },
    #[error(
        "table {table}: a write is open at {instant}, begun {seconds} s ago, so a writer may be at work: stop it and try again, \
         or have the open write rolled back with --force"
    )]
    OpenWrite { table: String, instant: String, seconds: i64 },
    #[error(
        "table {table} has no schema yet, which a commit must carry: let the first run commit rows, and start it with \
         --checkpoint"
    )]
    NoSchema { table: String },
    #[error("the brokers are not configured: set bootstrap.servers and hoodie.streamer.source.kafka.topic")]
    NoBroker,
    #[error(
        "group {group} has committed no offset for partition {partitions} of topic {topic}: correct the group, or use \
         from-timestamp or from-earliest"
    )]
    NoGroupOffset { group: String, topic: String, partitions: String },
    #[error("{source_name}{} has no consumer groups: name a Kafka source with --source-class", by_default(*given))]
    NoGroups { source_name: &'static str, given: bool },
}

/// Positions of wide topics are long.
fn cut(checkpoint: &str) -> String {
    const MOST: usize = 200;
    match checkpoint.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &checkpoint[..end]),
        None => checkpoint.to_string(),
    }
}

fn by_default(given: bool) -> &'static str {
    if given { "" } else { " (the default)" }
}

impl Error {
    /// Stable name of the error.
    pub fn code(&self) -> &'static str {
        match self {
            Error::NoTable { .. } => "checkpoint-no-table",
            Error::Malformed { .. } => "checkpoint-malformed",
            Error::Foreign { .. } => "checkpoint-foreign",
            Error::Doubtful { .. } => "checkpoint-doubtful",
            Error::OpenWrite { .. } => "checkpoint-open-write",
            Error::NoSchema { .. } => "checkpoint-no-schema",
            Error::NoBroker => "checkpoint-no-broker",
            Error::NoGroupOffset { .. } => "checkpoint-no-group-offset",
            Error::NoGroups { .. } => "checkpoint-no-groups",
        }
    }

    /// Whether what was asked for is at fault, and not the state of the table.
    pub fn is_configuration(&self) -> bool {
        !matches!(self, Error::OpenWrite { .. } | Error::NoSchema { .. } | Error::NoGroupOffset { .. })
    }
}
