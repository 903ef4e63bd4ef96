//! Performs a schedule: the only room that sends requests to a target.
