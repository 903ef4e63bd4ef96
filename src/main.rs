//! The `idemproof` command. All of it lives in the library.

fn main() {}
