//! Log and progress: seen by all, sees nobody.
