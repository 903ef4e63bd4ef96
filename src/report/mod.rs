//! What people and CI systems read.
