//! Every argument of every subcommand. The doc comments are the help.

use std::{net::SocketAddr, path::PathBuf};

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::{
    reference::{
        Config, Fault, MOST_NODES, StoreChoice,
        contract::{Contract, Profile, Setting},
    },
    run::{Reference, Shard},
    spec::RuleId,
    text::Span,
};

/// Tells whether an HTTP API does the work once when a keyed request is sent again.
///
/// Without a subcommand it runs the suites. Without a target it starts its own reference server and runs them
/// against that.
#[derive(Debug, Parser)]
#[command(name = "idemproof", version, args_conflicts_with_subcommands = true, after_help = EXITS)]
pub(super) struct Cli {
    #[command(subcommand)]
    pub(super) command: Option<Command>,
    #[command(flatten)]
    pub(super) run: RunArgs,
}

/// Shown under the help. A test compares it with the table of exit codes.
const EXITS: &str = "\
Exit codes:
    0  all fine
    1  a rule is broken
    2  wrong arguments, suite or target file, or the target or Toxiproxy cannot be reached
    3  a case was inconclusive and --fail-on inconclusive was given, or --time-limit was over
    4  no case was selected, or none of them came to a pass or a failure
    5  a failure of idemproof's own, such as a report that cannot be written
  130  ended by Ctrl-C; the reports are written
  143  ended by SIGTERM; the reports are written";

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Run suites against a target and judge what happens.
    Run(RunArgs),
    /// Run the reference server alone.
    Serve(ServeArgs),
    /// Run the fault proxy alone: the API of Toxiproxy 2.12, and more below /idemproof
    Proxy(ProxyArgs),
    /// Check suite and target files without sending anything.
    Check(CheckArgs),
    /// Show which cases would run, and why others would not.
    List(ListArgs),
    /// Put the reports of all shards of a run together.
    Merge(MergeArgs),
    /// Print a completion script for a shell.
    Completions(CompletionsArgs),
    /// Print the manual page, or write all pages into a folder.
    Man(ManArgs),
    /// Judge recorded histories without sending anything.
    Judge(JudgeArgs),
    /// Show every rule, and the rows of the catalogue that are none.
    Rules(RulesArgs),
    /// Tell what a rule means, why it matters, how it breaks and how to fix it.
    Explain(ExplainArgs),
}

/// Which cases, and of which target.
#[derive(Debug, Clone, Args)]
pub(super) struct ChoiceArgs {
    /// Suites: built-in names, SUITE/CASE of a built-in suite, YAML files, or folders of them [default: all built-in suites]
    #[arg(value_name = "SUITE")]
    pub(super) suites: Vec<String>,
    /// The target file. Without it, the reference server is started and tested
    #[arg(long, value_name = "FILE")]
    pub(super) target: Option<PathBuf>,
    /// Start the reference server with this fault; may be given several times (see `idemproof serve --list-faults`)
    #[arg(long, value_name = "NAME", conflicts_with = "target")]
    pub(super) fault: Vec<Fault>,
    /// Give the reference server this provider's documented contract (see `idemproof serve --list-profiles`)
    #[arg(long, value_name = "NAME", conflicts_with = "target")]
    pub(super) profile: Option<&'static Profile>,
    /// Set one policy switch of the reference server; may be given several times (see `idemproof serve --list-policies`)
    #[arg(long, value_name = "SWITCH=VALUE", conflicts_with = "target")]
    pub(super) policy: Vec<Setting>,
    /// Only cases whose name contains this; several mean any of them
    #[arg(long, value_name = "TEXT")]
    pub(super) filter: Vec<String>,
    /// Only cases with this tag; several mean any of them
    #[arg(long, value_name = "TAG")]
    pub(super) tag: Vec<String>,
    /// Only cases that test this rule; several mean any of them
    #[arg(long, value_name = "RULE")]
    pub(super) rule: Vec<RuleId>,
    /// The longest time that one case may wait for a lease or a retention to end
    #[arg(long, value_name = "TIME", default_value = "10s")]
    pub(super) max_wait: Span,
}

impl ChoiceArgs {
    /// The reference server as these arguments want it.
    pub(super) fn reference(&self) -> Reference {
        let faults = self.fault.iter().copied().collect();
        let config = Config { faults, contract: contract(self.profile, &self.policy), ..Config::default() };
        Reference { config, profile: self.profile }
    }
}

/// The contract of a profile with more settings.
pub(super) fn contract(profile: Option<&'static Profile>, settings: &[Setting]) -> Contract {
    profile.map(Profile::contract).unwrap_or_default().with(settings)
}

#[derive(Debug, Clone, Args)]
pub(super) struct RunArgs {
    #[command(flatten)]
    pub(super) choice: ChoiceArgs,
    /// Use this running Toxiproxy (2.2 or later) instead of the embedded one
    #[arg(long, value_name = "URL", env = "TOXIPROXY_URL", hide_env_values = true)]
    pub(super) toxiproxy: Option<String>,
    /// How often each case is performed; the worst round decides
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(super) rounds: u32,
    /// How many cases may be performed side by side
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(super) jobs: u16,
    #[command(flatten)]
    pub(super) gate: GateArgs,
    /// Begin no further case after N cases that fail the gate
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) max_failures: Option<u32>,
    /// Begin no further case after this time; what is left is inconclusive, and the exit code is 3 if nothing failed
    #[arg(long, value_name = "TIME")]
    pub(super) time_limit: Option<Span>,
    /// Run one part of several: 2/5, or auto/5 and auto with the index (and count) of Kubernetes, GitLab, CircleCI or Buildkite
    #[arg(long, value_name = "INDEX/COUNT")]
    pub(super) shard: Option<Shard>,
    /// How long to wait for the target to accept connections
    #[arg(long, value_name = "TIME", default_value = "5s")]
    pub(super) wait_for_target: Span,
    /// Where report.html, junit.xml, report.json, summary.md and history.jsonl are written
    #[arg(long, value_name = "FOLDER", default_value = "reports")]
    pub(super) reports: PathBuf,
    /// Show what would be sent, and send nothing
    #[arg(long)]
    pub(super) dry_run: bool,
    /// When to use colour
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    pub(super) color: Color,
    /// Show no progress bar
    #[arg(long)]
    pub(super) no_progress: bool,
}

/// What makes the exit code red.
#[derive(Debug, Clone, Args)]
pub(super) struct GateArgs {
    /// Make a broken SHOULD of the draft fail its case too
    #[arg(long, value_name = "WHAT")]
    pub(super) strict: Option<Strict>,
    /// Exit with 3 when a case is inconclusive
    #[arg(long, value_name = "WHAT")]
    pub(super) fail_on: Option<FailOn>,
    /// Let a case pass the gate that failed in some of its --rounds only
    #[arg(long)]
    pub(super) allow_flaky: bool,
    /// Let the findings in this file pass the gate, so that only new ones fail it
    #[arg(long, value_name = "FILE")]
    pub(super) baseline: Option<PathBuf>,
    /// Write the findings of this run to the baseline instead of comparing with it
    #[arg(long, requires = "baseline")]
    pub(super) record_baseline: bool,
}

#[derive(Debug, Clone, Args)]
pub(super) struct MergeArgs {
    /// The report.json of every shard, or folders with them
    #[arg(value_name = "REPORT", required = true)]
    pub(super) reports: Vec<PathBuf>,
    #[command(flatten)]
    pub(super) gate: GateArgs,
    /// Where the merged reports are written
    #[arg(long, value_name = "FOLDER", default_value = "reports")]
    pub(super) into: PathBuf,
    /// When to use colour
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    pub(super) color: Color,
}

#[derive(Debug, Clone, Args)]
pub(super) struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL")]
    pub(super) shell: clap_complete::Shell,
}

#[derive(Debug, Clone, Args)]
pub(super) struct ManArgs {
    /// Write a page for every subcommand into this folder
    #[arg(value_name = "FOLDER")]
    pub(super) folder: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Strict {
    /// The SHOULDs of the draft.
    Draft,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum FailOn {
    /// Inconclusive cases.
    Inconclusive,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Color {
    /// On a terminal, unless NO_COLOR is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

#[derive(Debug, Clone, Args)]
pub(super) struct ServeArgs {
    /// The address to listen on
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8080")]
    pub(super) listen: SocketAddr,
    /// How many nodes serve. With several, the address spreads connections over them, and they take the ports after it
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=i64::from(MOST_NODES)))]
    pub(super) nodes: u16,
    /// Where keys and payments are kept: memory, sqlite:PATH, or postgres://USER:PASSWORD@HOST:PORT/DATABASE
    #[arg(long, value_name = "STORE", default_value = "memory")]
    pub(super) store: StoreChoice,
    /// Break the server in this way; may be given several times (see --list-faults)
    #[arg(long, value_name = "NAME")]
    pub(super) fault: Vec<Fault>,
    /// Keep this provider's documented contract (see --list-profiles)
    #[arg(long, value_name = "NAME")]
    pub(super) profile: Option<&'static Profile>,
    /// Set one policy switch, after the profile; may be given several times (see --list-policies)
    #[arg(long, value_name = "SWITCH=VALUE")]
    pub(super) policy: Vec<Setting>,
    /// How long a running owner holds a key before another attempt may take it over; the same as --policy lease=TIME
    #[arg(long, value_name = "TIME")]
    pub(super) lease: Option<Span>,
    /// How long a completed key is kept; the same as --policy ttl=TIME
    #[arg(long, value_name = "TIME")]
    pub(super) retention: Option<Span>,
    /// Print the target file that describes this server, and do not start it
    #[arg(long)]
    pub(super) print_target: bool,
    /// Show every fault, and do not start
    #[arg(long)]
    pub(super) list_faults: bool,
    /// Show every profile with its source and date, and do not start
    #[arg(long)]
    pub(super) list_profiles: bool,
    /// Show every policy switch with its values and its value here, and do not start
    #[arg(long)]
    pub(super) list_policies: bool,
    /// Show lists as JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Clone, Args)]
pub(super) struct ProxyArgs {
    /// The address that the API listens on
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8474")]
    pub(super) listen: SocketAddr,
    /// Proxies to start with: a JSON array of objects with name, listen, upstream and enabled
    #[arg(long, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
    /// Where jitter, toxicity and slice points come from [default: a different one each time, which is printed]
    #[arg(long, value_name = "N")]
    pub(super) seed: Option<u64>,
    /// Show byte counters at /metrics
    #[arg(long)]
    pub(super) metrics: bool,
}

#[derive(Debug, Clone, Args)]
pub(super) struct CheckArgs {
    /// Suite and target files, or folders of suite files
    #[arg(value_name = "FILE", required = true)]
    pub(super) files: Vec<String>,
}

#[derive(Debug, Clone, Args)]
pub(super) struct ListArgs {
    #[command(flatten)]
    pub(super) choice: ChoiceArgs,
    /// Print JSON: one object with a `cases` list
    #[arg(long)]
    pub(super) json: bool,
    /// Show for each rule how many cases test it, and how many of them would run
    #[arg(long)]
    pub(super) coverage: bool,
}

#[derive(Debug, Clone, Args)]
pub(super) struct RulesArgs {
    /// Print JSON: one object with the draft's name, `rules` and `uncovered`
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Clone, Args)]
pub(super) struct ExplainArgs {
    /// The rule's name, such as at-most-one-effect
    #[arg(value_name = "RULE")]
    pub(super) rule: RuleId,
}

#[derive(Debug, Clone, Args)]
pub(super) struct JudgeArgs {
    /// A file of histories, such as reports/history.jsonl; `-` reads standard input
    #[arg(value_name = "FILE")]
    pub(super) file: PathBuf,
    /// The target file whose operations document the policy [default: what the draft recommends]
    #[arg(long, value_name = "FILE")]
    pub(super) policy: Option<PathBuf>,
    /// Print what the histories say about a policy that explains all of them
    #[arg(long)]
    pub(super) infer: bool,
    /// Exit with 3 when a key was too much to search, or nothing could be judged from
    #[arg(long, value_name = "WHAT")]
    pub(super) fail_on: Option<FailOn>,
}

/// The whole command line as clap knows it, for documentation that is generated from it.
pub fn command() -> clap::Command {
    <Cli as clap::CommandFactory>::command()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Exit;

    #[test]
    fn the_arguments_are_consistent() {
        command().debug_assert();
    }

    #[test]
    fn the_help_shows_the_table_of_exit_codes() {
        let lines: Vec<_> = Exit::ALL.iter().map(|exit| format!("{:5}  {}", exit.code(), exit.meaning())).collect();
        assert_eq!(EXITS, format!("Exit codes:\n{}", lines.join("\n")));
    }
}
