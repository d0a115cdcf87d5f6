//! Tables made by Hudi, read and continued.
