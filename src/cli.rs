//! Flags, spelled as Hudi's Streamer spells them.
