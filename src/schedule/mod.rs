//! The plan: what will be sent, in which order, with which faults.
