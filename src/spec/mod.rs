//! The rules, as data.
