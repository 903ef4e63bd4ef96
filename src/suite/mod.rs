//! YAML suites.
