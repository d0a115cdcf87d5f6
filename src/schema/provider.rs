//! Schema providers: `FilebasedSchemaProvider`, so far.

use super::{Error, Result, TableSchema};
use crate::config::SchemaProviderConfig;
use crate::storage::Storage;

/// A schema provider's answer.
#[derive(Debug, Clone)]
pub struct ProvidedSchemas {
    pub source: TableSchema,
    /// `None`: same as source, or deduced from the transformed rows when there is a transformer.
    pub target: Option<TableSchema>,
}

/// Reads the provider's schemas; `Ok(None)` when there is no provider.
pub async fn provide(config: &SchemaProviderConfig) -> Result<Option<ProvidedSchemas>> {
    match config {
        SchemaProviderConfig::None => Ok(None),
        SchemaProviderConfig::File { source, target } => {
            let source = read(source).await?;
            let target = match target {
                Some(target) => Some(read(target).await?),
                None => None,
            };
            Ok(Some(ProvidedSchemas { source, target }))
        }
    }
}

async fn read(path: &str) -> Result<TableSchema> {
    let failed = |why: String| Error::File { path: path.to_string(), why };
    let (folder, name) = match path.rsplit_once('/') {
        Some(("", name)) => ("/", name),
        Some((folder, name)) => (folder, name),
        None => (".", path),
    };
    let storage = Storage::open(folder).map_err(|e| failed(e.to_string()))?;
    let bytes = storage.get(name).await.map_err(|e| failed(e.to_string()))?;
    let text = std::str::from_utf8(&bytes).map_err(|e| failed(format!("not UTF-8: {e}")))?;
    TableSchema::from_avro(text).map_err(|e| failed(e.to_string()))
}
