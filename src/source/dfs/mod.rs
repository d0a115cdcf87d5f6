//! Files of a folder, picked by modification time and path as Hudi's `DFSPathSelector` does.
