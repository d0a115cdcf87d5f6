//! Marker files under `.hoodie/.temp/<instant>/`: written direct, read direct and timeline-server (table-services.md §7).

use super::{Error, InstantTime, Result, in_folder};
use crate::storage::{FileInfo, Storage};
use bytes::Bytes;

/// Why a data file was to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MarkerType {
    /// The first base file of a file group.
    Create,
    /// The next base file of a file group.
    Merge,
    /// A log file (merge-on-read).
    Append,
}

/// Says that a write meant to make `path` (relative to the table).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marker {
    pub path: String,
    pub marker_type: MarkerType,
}

impl Marker {
    fn name(&self) -> String {
        let word = match self.marker_type {
            MarkerType::Create => "CREATE",
            MarkerType::Merge => "MERGE",
            MarkerType::Append => "APPEND",
        };
        format!("{}.marker.{word}", self.path)
    }

    fn parse(name: &str) -> Option<Marker> {
        let (path, word) = name.rsplit_once(".marker.")?;
        let marker_type = match word {
            "CREATE" => MarkerType::Create,
            "MERGE" => MarkerType::Merge,
            "APPEND" => MarkerType::Append,
            _ => return None,
        };
        Some(Marker { path: path.to_string(), marker_type })
    }
}

/// Folder of the markers of all instants.
pub(super) const TEMP_FOLDER: &str = ".hoodie/.temp";

/// The markers of one instant.
#[derive(Debug, Clone)]
pub struct Markers {
    pub storage: Storage,
    pub instant: InstantTime,
}

impl Markers {
    /// Markers of an instant; nothing is read or written.
    pub fn new(storage: &Storage, instant: &InstantTime) -> Markers {
        Markers { storage: storage.clone(), instant: instant.clone() }
    }

    fn folder(&self) -> String {
        format!("{TEMP_FOLDER}/{}", self.instant)
    }

    /// To be called before the data file comes to be: a failed write is rolled back by its markers.
    pub async fn create(&self, marker: &Marker) -> Result<()> {
        self.storage.create(&format!("{}/{}", self.folder(), marker.name()), Bytes::new()).await?;
        Ok(())
    }

    /// All markers, whichever way they were written; fails on what is no marker, so that a rollback can look at the data
    /// files instead.
    pub async fn list(&self) -> Result<Vec<Marker>> {
        let folder = self.folder();
        let malformed = |path: String, why: &str| Error::Marker { path, why: why.to_string() };
        match self.storage.get_opt(&format!("{folder}/MARKERS.type")).await? {
            Some(kind) if kind.as_ref() == b"TIMELINE_SERVER_BASED" => return self.list_of_timeline_server().await,
            Some(kind) if kind.as_ref() != b"DIRECT" => {
                return Err(malformed(format!("{folder}/MARKERS.type"), "of an unknown type"));
            }
            _ => {}
        }
        let mut markers = Vec::new();
        for file in self.storage.list_recursive(&folder, &|_| true).await? {
            let name = file.path.strip_prefix(&folder).map_or(file.path.as_str(), |name| name.trim_start_matches('/'));
            if name == "MARKERS.type" {
                continue;
            }
            let marker = Marker::parse(name).ok_or_else(|| malformed(file.path.clone(), "not a marker's name"))?;
            markers.push(marker);
        }
        Ok(markers)
    }

    async fn list_of_timeline_server(&self) -> Result<Vec<Marker>> {
        let folder = self.folder();
        let mut markers = Vec::new();
        for file in self.storage.list(&folder).await?.files {
            let number = file.path.strip_prefix(&in_folder(&folder, "MARKERS")).unwrap_or_default();
            if number.is_empty() || !number.bytes().all(|b| b.is_ascii_digit()) {
                continue;
            }
            let malformed = |why: String| Error::Marker { path: self.storage.display(&file.path), why };
            let content = self.storage.get(&file.path).await?;
            let text = std::str::from_utf8(&content).map_err(|_| malformed("not UTF-8".to_string()))?;
            for line in text.lines().filter(|line| !line.is_empty()) {
                let marker =
                    Marker::parse(line).ok_or_else(|| malformed(format!("`{line:.200}` is not a marker's name")))?;
                if !markers.contains(&marker) {
                    markers.push(marker);
                }
            }
        }
        Ok(markers)
    }

    /// The files that they are in, for the times.
    pub async fn files(&self) -> Result<Vec<FileInfo>> {
        Ok(self.storage.list_recursive(&self.folder(), &|_| true).await?)
    }

    /// Once the instant is completed or rolled back.
    pub async fn remove_all(&self) -> Result<()> {
        Ok(self.storage.delete_folder(&self.folder()).await?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn markers() -> (tempfile::TempDir, Markers) {
        let folder = tempfile::tempdir().expect("a folder");
        let storage = Storage::open(folder.path().to_str().expect("utf-8")).expect("storage");
        let instant = InstantTime::parse("20260101000000001").expect("digits");
        (folder, Markers::new(&storage, &instant))
    }

    fn marker(path: &str, marker_type: MarkerType) -> Marker {
        Marker { path: path.to_string(), marker_type }
    }

    #[tokio::test]
    async fn direct_markers_are_listed_and_removed() {
        let (_folder, markers) = markers();
        let mut want = vec![
            marker("a=1/b=%2F/f-0_0-0-0_20260101000000001.parquet", MarkerType::Create),
            marker("g-0_0-0-0_20260101000000001.parquet", MarkerType::Merge),
            marker("p/.h-0_20250101000000001.log.1_0-0-0", MarkerType::Append),
        ];
        for marker in &want {
            markers.create(marker).await.expect("created");
        }
        let mut got = markers.list().await.expect("listed");
        got.sort_by(|a, b| a.path.cmp(&b.path));
        want.sort_by(|a, b| a.path.cmp(&b.path));
        assert_eq!(got, want);
        markers.remove_all().await.expect("removed");
        markers.remove_all().await.expect("removed again");
        assert_eq!(markers.list().await.expect("listed"), []);
    }

    #[tokio::test]
    async fn markers_of_the_timeline_server_are_read() {
        let (_folder, markers) = markers();
        let put = async |name: &str, text: &'static str| {
            let path = format!(".hoodie/.temp/20260101000000001/{name}");
            markers.storage.put(&path, Bytes::from_static(text.as_bytes())).await.expect("put");
        };
        put("MARKERS.type", "TIMELINE_SERVER_BASED").await;
        put("MARKERS0", "eu/a.parquet.marker.CREATE\neu/b.parquet.marker.MERGE").await;
        put("MARKERS12", "eu/a.parquet.marker.CREATE\nc.parquet.marker.MERGE\n").await;
        let want = [
            marker("eu/a.parquet", MarkerType::Create),
            marker("eu/b.parquet", MarkerType::Merge),
            marker("c.parquet", MarkerType::Merge),
        ];
        assert_eq!(markers.list().await.expect("listed"), want);
        put("MARKERS1", "eu/a.parq").await;
        assert_eq!(markers.list().await.expect_err("torn line").code(), "table-marker");
    }
}
