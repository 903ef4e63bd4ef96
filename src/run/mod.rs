//! Takes cases from suite to finding and emits events.
