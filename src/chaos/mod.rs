//! Network faults: the vocabulary, a client of the Toxiproxy API, and an embedded server of the same API.
