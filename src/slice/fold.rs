//! The second pass over the logs: one winner a key (log-file.md §10; `HoodieMergedLogRecordScanner`, 0.15).

use super::blocks::LogBlocks;
use super::ordering::Orderings;
use super::rows::{Contents, Origin, Place, RowReader};
use super::{Error, Fault, Result, SliceOptions};
use crate::record::hash_key;
use crate::schema::TableSchema;
use crate::table::log_file::{BlockKind, DeleteRecord, decode_deletes};
use arrow::array::{Array, AsArray, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema};
use hashbrown::HashTable;
use std::sync::Arc;

/// The meta column of the record key.
pub(crate) const RECORD_KEY: &str = "_hoodie_record_key";
pub(super) const IS_DELETED: &str = "_hoodie_is_deleted";

/// What the logs say of each key, in the order in which the keys came first. Each key is kept once, end to end with the
/// others; a record is known by its place.
pub(super) struct Winners {
    slots: HashTable<Slot>,
    keys: String,
    ends: Vec<usize>,
    pub entries: Vec<Entry>,
    ordering: Orderings,
}

#[derive(Clone, Copy)]
struct Slot {
    /// The upper half of the hash: spares most look-ups of a key that is another one.
    tag: u32,
    /// More than 2³² would be more than 100 GB of entries.
    entry: u32,
}

/// A row of the base file whose key the logs have, and the key's entry.
pub(super) type Match = (u32, u32);

/// The last word on a key.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pub what: What,
    /// Of a record.
    pub place: Place,
    /// The record's length in the log.
    pub bytes: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    Row,
    /// A record that says of itself that it is deleted.
    FlaggedRow,
    /// By a delete block.
    Deleted,
}

/// Folds the blocks that count; also gives the number of their records.
pub(super) fn fold(contents: &mut Contents, deciding: &Deciding, batch_rows: usize) -> Result<(Winners, u64)> {
    let mut reader = RowReader::new(&deciding.schema, batch_rows);
    let mut fold = Fold { winners: Winners::new(deciding), deciding, records: 0 };
    for number in 0..contents.blocks.blocks.len() as u32 {
        let mut sink = |blocks: &LogBlocks, batch: RecordBatch, origins: &[Origin]| fold.add(blocks, &batch, origins);
        if contents.blocks.blocks[number as usize].block.kind != BlockKind::Delete {
            reader.read(contents, number, None, &mut sink)?;
            continue;
        }
        // Deletes must find what came before them.
        reader.finish(&contents.blocks, &mut sink)?;
        fold.delete(&contents.blocks, number)?;
    }
    reader.finish(&contents.blocks, &mut |blocks: &LogBlocks, batch: RecordBatch, origins: &[Origin]| {
        fold.add(blocks, &batch, origins)
    })?;
    Ok((fold.winners, fold.records))
}

/// The columns that decide between records: key, ordering value, whether a record is deleted.
pub(super) struct Deciding {
    schema: TableSchema,
    ordering: Option<Arc<Field>>,
}

impl Deciding {
    /// Whether records may say of themselves that they are deleted.
    pub fn has_flags(&self) -> bool {
        self.schema.arrow.column_with_name(IS_DELETED).is_some()
    }

    pub fn of(options: &SliceOptions) -> std::result::Result<Deciding, Fault> {
        let fields = options.schema.arrow.fields();
        let ordering = options.ordering_field.as_ref().and_then(|name| Some(fields.find(name)?.1.clone()));
        let decides = |field: &&Arc<Field>| {
            field.name() == RECORD_KEY
                || (field.name() == IS_DELETED && *field.data_type() == DataType::Boolean)
                || ordering.as_ref().is_some_and(|ordering| ordering.name() == field.name())
        };
        let arrow: Vec<Arc<Field>> = fields.iter().filter(decides).cloned().collect();
        if let Some(field) = ordering.as_ref().filter(|field| !Orderings::takes(field.data_type())) {
            let (field, data_type) = (field.name().clone(), field.data_type().to_string());
            return Err(Fault::OrderingType { field, data_type });
        }
        let schema = TableSchema { arrow: Arc::new(Schema::new(arrow)), ..options.schema.clone() };
        Ok(Deciding { schema, ordering })
    }
}

struct Fold<'a> {
    winners: Winners,
    deciding: &'a Deciding,
    records: u64,
}

impl Fold<'_> {
    fn delete(&mut self, blocks: &LogBlocks, number: u32) -> Result<()> {
        let (reader, log) = blocks.reader(number);
        let content = reader.content(&log.block)?;
        for delete in decode_deletes(&content).map_err(|e| blocks.fault(number, e))? {
            self.winners.delete(&delete.map_err(|e| blocks.fault(number, e))?);
        }
        Ok(())
    }

    fn add(&mut self, blocks: &LogBlocks, batch: &RecordBatch, origins: &[Origin]) -> Result<()> {
        self.records += origins.len() as u64;
        let keys = batch.column_by_name(RECORD_KEY).map(|keys| keys.as_string::<i32>());
        let keys = keys.filter(|keys| keys.null_count() == 0).ok_or_else(|| null_key(blocks, batch, origins))?;
        let flags = batch.column_by_name(IS_DELETED).map(|flags| flags.as_boolean());
        let mut values = Orderings::None;
        if let Some(field) = &self.deciding.ordering
            && let Some(column) = batch.column_by_name(field.name())
        {
            if let Some(row) = (0..column.len()).find(|row| column.is_null(*row)) {
                let (field, key) = (field.name().clone(), keys.value(row).to_string());
                return Err(blocks.fault(origins[row].place.block, Fault::NullOrdering { field, key }));
            }
            values = self.winners.ordering.of(column);
        }
        for (row, origin) in origins.iter().enumerate() {
            let flagged = flags.is_some_and(|flags| flags.is_valid(row) && flags.value(row));
            let what = if flagged { What::FlaggedRow } else { What::Row };
            let entry = Entry { what, place: origin.place, bytes: origin.bytes };
            self.winners.put(keys.value(row), entry, &values, row);
        }
        Ok(())
    }
}

#[cold]
fn null_key(blocks: &LogBlocks, batch: &RecordBatch, origins: &[Origin]) -> Error {
    let row = batch.column_by_name(RECORD_KEY).and_then(|keys| (0..keys.len()).find(|row| keys.is_null(*row)));
    let place = origins.get(row.unwrap_or_default()).map(|origin| origin.place).unwrap_or_default();
    blocks.fault(place.block, Fault::NullKey { record: place.row })
}

impl Winners {
    fn new(deciding: &Deciding) -> Winners {
        let ordering = Orderings::new(deciding.ordering.as_ref().map(|field| field.data_type()));
        Winners { slots: HashTable::new(), keys: String::new(), ends: Vec::new(), entries: Vec::new(), ordering }
    }

    /// A record: it wins unless what is there is a record of a greater ordering value. After a delete every record wins.
    #[inline]
    fn put(&mut self, key: &str, entry: Entry, values: &Orderings, row: usize) {
        match self.find_or_add(key) {
            Ok(known) => {
                let at = known as usize;
                if self.entries[at].what == What::Deleted || !self.ordering.is_greater(at, values, row) {
                    self.entries[at] = entry;
                    self.ordering.set(at, values, row);
                }
            }
            Err(()) => {
                self.entries.push(entry);
                self.ordering.push(values, row);
            }
        }
    }

    /// A record that is deleted by a delete block.
    fn delete(&mut self, delete: &DeleteRecord<'_>) {
        let entry = Entry { what: What::Deleted, place: Place::default(), bytes: 0 };
        match self.find_or_add(delete.key) {
            Ok(known) => {
                let at = known as usize;
                let stays = self.entries[at].what != What::Deleted
                    && self.ordering.is_greater_than_deletes(at, &delete.ordering);
                if !stays {
                    self.entries[at] = entry;
                }
            }
            Err(()) => {
                self.entries.push(entry);
                self.ordering.push_any();
            }
        }
    }

    /// The number of a key's entry; `Err`: the key is new, and the caller is to push its entry.
    #[inline]
    fn find_or_add(&mut self, key: &str) -> std::result::Result<u32, ()> {
        let Winners { slots, keys, ends, .. } = self;
        let hash = hash_key(key);
        let same = |slot: &Slot| slot.tag == tag(hash) && key_at(keys, ends, slot.entry) == key;
        if let Some(slot) = slots.find(hash, same) {
            return Ok(slot.entry);
        }
        let entry = ends.len() as u32;
        keys.push_str(key);
        ends.push(keys.len());
        slots.insert_unique(hash, Slot { tag: tag(hash), entry }, |slot| hash_key(key_at(keys, ends, slot.entry)));
        Err(())
    }

    /// The entry of a key.
    #[inline]
    pub fn find(&self, key: &str) -> Option<u32> {
        let hash = hash_key(key);
        let same = |slot: &Slot| slot.tag == tag(hash) && key_at(&self.keys, &self.ends, slot.entry) == key;
        self.slots.find(hash, same).map(|slot| slot.entry)
    }

    /// The keys that the logs have too.
    pub fn matches(&self, keys: &StringArray) -> Vec<Match> {
        match self.entries.is_empty() {
            true => Vec::new(),
            false => (0..).zip(keys).filter_map(|(row, key)| Some((row, self.find(key?)?))).collect(),
        }
    }

    /// Whether the row of an entry is needed for a stored row of its key. `compares`: the rule looks at ordering values.
    pub fn is_wanted(&self, entry: u32, compares: bool) -> bool {
        match self.entries[entry as usize].what {
            What::Row => true,
            What::FlaggedRow => compares,
            What::Deleted => false,
        }
    }

    /// Bytes in use.
    pub fn memory(&self) -> usize {
        self.slots.allocation_size()
            + self.keys.capacity()
            + self.ends.capacity() * size_of::<usize>()
            + self.entries.capacity() * size_of::<Entry>()
            + self.ordering.memory()
    }
}

fn tag(hash: u64) -> u32 {
    (hash >> 32) as u32
}

fn key_at<'k>(keys: &'k str, ends: &[usize], entry: u32) -> &'k str {
    let start = (entry as usize).checked_sub(1).map_or(0, |before| ends[before]);
    &keys[start..ends[entry as usize]]
}
