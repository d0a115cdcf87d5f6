//! Catalogs that learn of a completed commit. Empty until Hive sync comes; `--enable-sync` is refused by name.
