//! Row numbers by record key: the keys stay in their Arrow arrays.

use crate::record::{KeyedBatch, RowRef, hash_key};
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use std::sync::Arc;

/// Finds positions in a list of rows by their record key. Eight bytes a row, whatever the length of its key.
pub(crate) struct KeyTable {
    batches: Arc<Vec<KeyedBatch>>,
    rows: Arc<Vec<RowRef>>,
    slots: HashTable<Slot>,
}

#[derive(Clone, Copy)]
struct Slot {
    /// The upper half of the hash: spares most look-ups of a key that is another one.
    tag: u32,
    position: u32,
}

impl KeyTable {
    pub(crate) fn new(batches: Arc<Vec<KeyedBatch>>, rows: Arc<Vec<RowRef>>) -> KeyTable {
        KeyTable { batches, rows, slots: HashTable::new() }
    }

    /// Adds a row; rows of the same key stay.
    pub(crate) fn add(&mut self, position: u32) {
        let KeyTable { batches, rows, slots } = self;
        let hash = hash_key(key_at(batches, rows, position));
        slots.insert_unique(hash, Slot { tag: tag(hash), position }, |slot| {
            hash_key(key_at(batches, rows, slot.position))
        });
    }

    /// Adds a row in place of an earlier one of the same key, which is returned.
    pub(crate) fn replace(&mut self, position: u32) -> Option<u32> {
        let KeyTable { batches, rows, slots } = self;
        let key = key_at(batches, rows, position);
        let hash = hash_key(key);
        let same = |slot: &Slot| slot.tag == tag(hash) && key_at(batches, rows, slot.position) == key;
        match slots.entry(hash, same, |slot| hash_key(key_at(batches, rows, slot.position))) {
            Entry::Occupied(mut slot) => Some(std::mem::replace(&mut slot.get_mut().position, position)),
            Entry::Vacant(slot) => {
                slot.insert(Slot { tag: tag(hash), position });
                None
            }
        }
    }

    /// Positions of all rows with this key.
    pub(crate) fn find<'a>(&'a self, key: &'a str) -> impl Iterator<Item = u32> + 'a {
        let hash = hash_key(key);
        self.slots
            .iter_hash(hash)
            .filter(move |slot| slot.tag == tag(hash) && self.key(slot.position) == key)
            .map(|slot| slot.position)
    }

    /// Positions of all rows, in no order.
    pub(crate) fn positions(&self) -> impl Iterator<Item = u32> + '_ {
        self.slots.iter().map(|slot| slot.position)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    pub(crate) fn key(&self, position: u32) -> &str {
        key_at(&self.batches, &self.rows, position)
    }

    pub(crate) fn row(&self, position: u32) -> RowRef {
        self.rows[position as usize]
    }
}

fn tag(hash: u64) -> u32 {
    (hash >> 32) as u32
}

fn key_at<'a>(batches: &'a [KeyedBatch], rows: &[RowRef], position: u32) -> &'a str {
    let row = rows[position as usize];
    batches[row.batch as usize].keys.value(row.row as usize)
}
