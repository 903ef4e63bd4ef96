//! Decides rules from a history and a policy.
