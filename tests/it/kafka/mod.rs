//! Topics into tables: a file a behaviour. All of them want the broker, so all run under `HUDI_PEERS_TESTS=1` only.

mod chaos;
mod peers;
mod positions;
mod quarantine;
mod tombstones;
