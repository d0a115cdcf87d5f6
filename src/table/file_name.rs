//! Names of data files (base-file.md §1, log-file.md §1).

use super::InstantTime;

/// `<fileId>_<writeToken>_<instant>.parquet`: file id and instant. `None` for foreign files.
pub fn parse_base_file(name: &str) -> Option<(&str, InstantTime)> {
    let mut parts = name.strip_suffix(".parquet")?.split('_');
    let (file_id, token, instant) = (parts.next()?, parts.next()?, parts.next()?);
    let is_word = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    if parts.next().is_some() || !is_word(file_id) || !is_word(token) {
        return None;
    }
    Some((file_id, InstantTime::parse(instant)?))
}

/// `.<fileId>_<baseInstant>.log.<version>_<writeToken>[.cdc]`. Ordered as `HoodieLogFile.LogFileComparator` 0.15 orders
/// the files of a group: the order in which their blocks count.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LogFileName {
    pub file_id: String,
    /// Of the slice, not of the write.
    pub base_instant: InstantTime,
    /// From 1.
    pub version: u32,
    /// `None` in names of Hudi before 0.5.
    pub token: Option<String>,
    /// Change data, which is no part of the slice's rows.
    pub cdc: bool,
}

impl LogFileName {
    /// `None` for foreign files.
    pub fn parse(name: &str) -> Option<LogFileName> {
        let (slice, rest) = name.strip_prefix('.')?.split_once(".log.")?;
        let (file_id, instant) = slice.rsplit_once('_')?;
        let (rest, cdc) = rest.strip_suffix(".cdc").map_or((rest, false), |rest| (rest, true));
        let (version, token) = rest.split_once('_').map_or((rest, None), |(version, token)| (version, Some(token)));
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let is_token = |token: &str| token.split('-').count() == 3 && token.split('-').all(is_number);
        if file_id.is_empty() || file_id.starts_with('.') || !is_number(version) || !token.is_none_or(is_token) {
            return None;
        }
        Some(LogFileName {
            file_id: file_id.to_string(),
            base_instant: InstantTime::parse(instant)?,
            version: version.parse().ok()?,
            token: token.map(str::to_string),
            cdc,
        })
    }

    fn order(&self) -> (&InstantTime, u32, &Option<String>, bool, &str) {
        (&self.base_instant, self.version, &self.token, self.cdc, &self.file_id)
    }
}

impl std::fmt::Display for LogFileName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, ".{}_{}.log.{}", self.file_id, self.base_instant, self.version)?;
        self.token.as_ref().map_or(Ok(()), |token| write!(f, "_{token}"))?;
        f.write_str(if self.cdc { ".cdc" } else { "" })
    }
}

impl Ord for LogFileName {
    fn cmp(&self, other: &LogFileName) -> std::cmp::Ordering {
        self.order().cmp(&other.order())
    }
}

impl PartialOrd for LogFileName {
    fn partial_cmp(&self, other: &LogFileName) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_data_files_are_told_from_foreign_ones() {
        let id = "e1dd29d5-4925-4be4-b53a-8ba2e45e5e2b-0";
        let t = InstantTime::parse("20261130011747741").expect("digits");
        for (name, want) in [
            (format!("{id}_0-14-12_20261130011747741.parquet"), Some((id, t.clone()))),
            (format!("{id}_0-14-12_20261130011747741.parquet.crc"), None),
            (format!("{id}_0-14-12_20261130011747741.orc"), None),
            (format!("{id}_20261130011747741.parquet"), None),
            (format!("{id}_0-14-12_x_20261130011747741.parquet"), None),
            ("part-00000-x.snappy.parquet".to_string(), None),
            (".hoodie_partition_metadata.parquet".to_string(), None),
        ] {
            assert_eq!(parse_base_file(&name), want, "{name}");
        }
    }

    #[test]
    fn names_of_log_files_are_told_from_foreign_ones_and_written_back() {
        let id = "e1dd29d5-4925-4be4-b53a-8ba2e45e5e2b-0";
        let t = "20261130011747741";
        for (rest, want) in [
            ("1_0-1-2", Some((1, Some("0-1-2"), false))),
            ("12_1-0-1", Some((12, Some("1-0-1"), false))),
            ("3", Some((3, None, false))),
            ("3_0-1-2.cdc", Some((3, Some("0-1-2"), true))),
            ("1_0-1-2.crc", None),
            ("1_0-1-2.cdc.crc", None),
            ("1_0-1", None),
            ("1_", None),
            ("_0-1-2", None),
            ("+1_0-1-2", None),
            ("99999999999_0-1-2", None),
            ("", None),
        ] {
            let name = format!(".{id}_{t}.log.{rest}");
            let parsed = LogFileName::parse(&name);
            let got = parsed.as_ref().map(|n| (n.version, n.token.as_deref(), n.cdc));
            assert_eq!(got, want, "{name}");
            if let Some(parsed) = parsed {
                assert_eq!((parsed.file_id.as_str(), parsed.base_instant.as_str()), (id, t), "{name}");
                assert_eq!(parsed.to_string(), name);
            }
        }
        for name in
            [".hoodie_partition_metadata", &format!(".{id}_0-14-12_{t}.parquet.crc"), &format!("{id}_{t}.log.1")]
        {
            assert_eq!(LogFileName::parse(name), None, "{name}");
        }
        assert_eq!(LogFileName::parse(&format!("..{id}_{t}.log.1_0-1-2")), None, "a side file of Hadoop's");
    }

    #[test]
    fn log_files_are_in_the_order_of_hudis_comparator() {
        let in_order = [
            ".f-0_20260101000000001.log.9_0-1-2",
            ".f-0_20260101000000002.log.1",
            ".f-0_20260101000000002.log.1_0-10-2",
            ".f-0_20260101000000002.log.1_0-9-2",
            ".f-0_20260101000000002.log.1_0-9-2.cdc",
            ".f-0_20260101000000002.log.2_0-1-2",
            ".f-0_20260101000000002.log.10_0-1-2",
        ];
        let mut names: Vec<LogFileName> = in_order.iter().rev().filter_map(|n| LogFileName::parse(n)).collect();
        names.sort();
        assert_eq!(names.iter().map(LogFileName::to_string).collect::<Vec<_>>(), in_order);
    }
}
