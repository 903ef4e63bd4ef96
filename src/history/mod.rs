//! The record of what happened, on one clock.
