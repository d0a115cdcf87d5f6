//! Merged slices against a model.
