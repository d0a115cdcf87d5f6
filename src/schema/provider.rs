//! Schema providers: `FilebasedSchemaProvider`, and those of a registry.

use super::{Error, Registry, Result, TableSchema, changes};
use crate::config::{RegistryAddress, SchemaProviderConfig, StorageConfig};
use crate::storage::Storage;
use futures::future::OptionFuture;

/// A schema provider's answer.
#[derive(Debug, Clone)]
pub struct ProvidedSchemas {
    pub source: TableSchema,
    /// `None`: same as source, or deduced from the transformed rows when there is a transformer.
    pub target: Option<TableSchema>,
}

/// Where schemas come from; asked again each round, since files and the newest versions of subjects change.
#[derive(Debug)]
pub struct SchemaProvider {
    config: SchemaProviderConfig,
    storage: StorageConfig,
    registry: Option<Registry>,
    last: Option<ProvidedSchemas>,
}

impl SchemaProvider {
    /// Connects to nothing yet. Fails for certificates that cannot be used.
    pub fn open(config: &SchemaProviderConfig, storage: &StorageConfig) -> Result<SchemaProvider> {
        let registry = match config {
            SchemaProviderConfig::Registry(subjects) => Some(Registry::open(&subjects.registry)?),
            _ => None,
        };
        Ok(SchemaProvider { config: config.clone(), storage: storage.clone(), registry, last: None })
    }

    /// Says always the same.
    pub fn of(schemas: ProvidedSchemas) -> SchemaProvider {
        let (config, storage) = (SchemaProviderConfig::None, StorageConfig::default());
        SchemaProvider { config, storage, registry: None, last: Some(schemas) }
    }

    /// The schemas as they are now, and a line in the log if they have changed; `Ok(None)` when there is no provider. What
    /// has not changed is not parsed again.
    pub async fn provide(&mut self) -> Result<Option<ProvidedSchemas>> {
        let (source, target) = match &self.config {
            SchemaProviderConfig::None => return Ok(self.last.clone()),
            SchemaProviderConfig::File { source, target } => {
                let source = self.of_file(source).await?;
                let target = OptionFuture::from(target.as_ref().map(|target| self.of_file(target))).await;
                (source, target.transpose()?)
            }
            SchemaProviderConfig::Registry(subjects) => {
                let source = self.of_subject(&subjects.source).await?;
                let target = OptionFuture::from(subjects.target.as_ref().map(|target| self.of_subject(target))).await;
                (source, target.transpose()?)
            }
        };
        if let Some(last) = &self.last {
            tell("source schema", &last.source, &source);
            if let (Some(before), Some(after)) = (&last.target, &target) {
                tell("target schema", before, after);
            }
        }
        self.last = Some(ProvidedSchemas { source, target });
        Ok(self.last.clone())
    }

    async fn of_file(&self, path: &str) -> Result<TableSchema> {
        let text = read(path, &self.storage).await?;
        self.parsed(&text).map_err(|e| Error::File { path: path.to_string(), why: e.to_string() })
    }

    async fn of_subject(&self, address: &RegistryAddress) -> Result<TableSchema> {
        let Some(registry) = &self.registry else {
            return Err(Error::internal("ask the schema registry", "there is none"));
        };
        let text = registry.subject(address).await?;
        self.parsed(&text).map_err(|e| Error::Subject { address: address.url.to_string(), why: e.to_string() })
    }

    fn parsed(&self, text: &str) -> Result<TableSchema> {
        let last = self.last.iter().flat_map(|last| std::iter::once(&last.source).chain(&last.target));
        match last.into_iter().find(|schema| *schema.given == *text) {
            Some(same) => Ok(same.clone()),
            None => TableSchema::from_avro(text),
        }
    }
}

fn tell(what: &str, before: &TableSchema, after: &TableSchema) {
    let changes = changes(&before.arrow, &after.arrow);
    if !changes.is_empty() {
        tracing::info!(changes = changes.join(", "), "the {what} has changed");
    }
}

async fn read(path: &str, config: &StorageConfig) -> Result<String> {
    let failed = |why: String| Error::File { path: path.to_string(), why };
    let (folder, name) = match path.rsplit_once('/') {
        Some(("", name)) => ("/", name),
        Some((folder, name)) => (folder, name),
        None => (".", path),
    };
    let storage = Storage::open_with(folder, config).map_err(|e| failed(e.to_string()))?;
    let bytes = storage.get(name).await.map_err(|e| failed(e.to_string()))?;
    String::from_utf8(bytes.to_vec()).map_err(|e| failed(format!("not UTF-8: {e}")))
}
