//! The `idemproof` command. All of it lives in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    idemproof::cli::main()
}
