//! The command line: one file per subcommand, thin.

mod args;
mod check;
mod dry_run;
mod exit;
mod explain;
mod generate;
mod judge;
mod list;
mod merge;
mod proxy;
mod rules;
mod run;
mod serve;
mod signals;
mod terminal;

use std::process::ExitCode;

use clap::Parser;

pub use args::command;
pub use exit::Exit;

use self::args::{Cli, Command};

/// Parses the arguments of this process, does what they ask, and gives the exit code.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are asked for and go to standard output; everything else is a usage error.
            let exit = if error.use_stderr() { Exit::Usage } else { Exit::Fine };
            // A closed pipe is the only way for this to fail, and then there is nobody left to tell.
            let _ = error.print();
            return exit.into();
        }
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("error: the async runtime does not start: {error}");
            return Exit::Internal.into();
        }
    };
    let exit = runtime.block_on(async {
        match cli.command {
            None => run::run(cli.run).await,
            Some(Command::Run(args)) => run::run(args).await,
            Some(Command::Serve(args)) => serve::serve(args).await,
            Some(Command::Proxy(args)) => proxy::proxy(args).await,
            Some(Command::Check(args)) => check::check(&args),
            Some(Command::List(args)) => list::list(&args).await,
            Some(Command::Merge(args)) => merge::merge(&args),
            Some(Command::Completions(args)) => generate::completions(&args),
            Some(Command::Man(args)) => generate::man(&args),
            Some(Command::Judge(args)) => judge::judge(&args),
            Some(Command::Rules(args)) => rules::rules(&args),
            Some(Command::Explain(args)) => explain::explain(&args),
        }
    });
    // A blocking call of a store may still be under way; its thread is not waited for.
    runtime.shutdown_timeout(std::time::Duration::from_millis(200));
    exit.into()
}
