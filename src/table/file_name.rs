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

/// `.<fileId>_<baseInstant>.log.<version>_<writeToken>`: file id and base instant.
pub fn parse_log_file(name: &str) -> Option<(&str, InstantTime)> {
    let (slice, _version) = name.strip_prefix('.')?.split_once(".log.")?;
    let (file_id, instant) = slice.rsplit_once('_')?;
    Some((file_id, InstantTime::parse(instant)?))
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
        assert_eq!(parse_log_file(&format!(".{id}_20261130011747741.log.1_0-1-2")), Some((id, t)));
        assert_eq!(parse_log_file(".hoodie_partition_metadata"), None);
        assert_eq!(parse_log_file(&format!(".{id}_0-14-12_20261130011747741.parquet.crc")), None);
    }
}
