//! The API under test.
