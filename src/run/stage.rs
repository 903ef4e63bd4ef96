//! What a run needs around it: a target, and a Toxiproxy to hurt its connections with.

use std::{net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use crate::{
    chaos::{self, ChaosError, Client, Embedded},
    drive::{Interrupt, Interrupter},
    reference::{
        self, Need, Server, StartError,
        contract::{self, Contract, Failures, Profile},
    },
    target::{BaseUrl, Target, process_env},
    text::Problems,
};

/// The target file of the reference server. Its address is known when it runs.
const REFERENCE_TARGET: &str = include_str!("../reference/target.yaml");

/// Where the target comes from.
#[derive(Debug, Clone)]
pub enum TargetSource {
    /// The reference server, started in this process.
    Reference(Box<Reference>),
    /// A target file.
    File(PathBuf),
}

/// The reference server as a target.
#[derive(Debug, Clone, Default)]
pub struct Reference {
    /// How it is set up.
    pub config: reference::Config,
    /// The profile that its contract follows.
    pub profile: Option<&'static Profile>,
}

/// What a run is set up with.
#[derive(Debug, Clone)]
pub struct StageOptions {
    /// Where the target comes from.
    pub source: TargetSource,
    /// The URL of a running Toxiproxy; `None` starts the embedded one.
    pub toxiproxy: Option<String>,
}

/// Everything that runs around the cases. Must be torn down with [`Stage::tear_down`].
#[derive(Debug)]
pub struct Stage {
    /// The target.
    pub target: Arc<Target>,
    /// The client of the Toxiproxy in use.
    pub chaos: Client,
    /// The run's id: 8 hexadecimal digits, fresh for every run.
    pub run: String,
    /// The Toxiproxy in use, for people.
    pub proxy: String,
    /// Sees the wish to stop the run.
    pub interrupt: Interrupt,
    /// Stops the run.
    pub interrupter: Arc<Interrupter>,
    reference: Option<Server>,
    embedded: Option<Embedded>,
}

/// Why a run could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum StageError {
    /// The target file has problems.
    #[error("{0}")]
    Target(#[from] Problems),
    /// The reference server does not start.
    #[error("the reference server does not start: {0}")]
    Reference(#[from] StartError),
    /// The contract of the reference server cannot be put into a target file.
    #[error("the suites cannot be run against this contract: {0}")]
    Untestable(String),
    /// The embedded proxy does not start.
    #[error("the embedded fault proxy does not start: {0}")]
    Embedded(#[from] chaos::StartError),
    /// The Toxiproxy cannot be used.
    #[error("{0}")]
    Toxiproxy(#[from] ChaosError),
}

impl Stage {
    /// Reads the target, or starts the reference server, and starts or contacts the fault proxy.
    ///
    /// # Errors
    /// When the target file has problems, a server does not start, or the Toxiproxy does not answer as one.
    pub async fn set_up(options: &StageOptions) -> Result<Self, StageError> {
        let run = uuid::Uuid::new_v4().simple().to_string()[..8].to_owned();
        let mut reference = None;
        let target = match &options.source {
            TargetSource::File(path) => load_target(path)?,
            TargetSource::Reference(wanted) => {
                if let Some(why) = contract::untestable(&wanted.config.contract) {
                    return Err(StageError::Untestable(why));
                }
                let mut config = wanted.config.clone();
                if config.faults.iter().any(|fault| fault.needs().contains(&Need::SecondNode)) {
                    config.nodes = config.nodes.max(2);
                }
                let server = reference::start(config.clone()).await?;
                let target = reference_target(server.nodes(), &config)?;
                reference = Some(server);
                target
            }
        };
        let (embedded, chaos, proxy) = match set_up_proxy(options.toxiproxy.as_deref(), &run).await {
            Ok(parts) => parts,
            Err(error) => {
                if let Some(server) = reference {
                    server.stop().await;
                }
                return Err(error);
            }
        };
        let (interrupter, interrupt) = Interrupt::pair();
        let interrupter = Arc::new(interrupter);
        Ok(Self { target: Arc::new(target), chaos, run, proxy, interrupt, interrupter, reference, embedded })
    }

    /// The address of the reference server, if it is the target.
    pub fn reference_addr(&self) -> Option<SocketAddr> {
        self.reference.as_ref().map(Server::addr)
    }

    /// Removes the proxies of this run and stops the servers. Gives what went wrong, for people; bounded in time.
    pub async fn tear_down(self) -> Vec<String> {
        let mut warnings = Vec::new();
        match tokio::time::timeout(Duration::from_secs(10), self.chaos.cleanup()).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => warnings.push(format!("the proxies of this run could not all be removed: {error}")),
            Err(_) => warnings.push("the proxies of this run could not all be removed within 10 s".to_owned()),
        }
        if let Some(embedded) = self.embedded {
            embedded.stop().await;
        }
        if let Some(server) = self.reference {
            server.stop().await;
        }
        warnings
    }
}

fn load_target(path: &std::path::Path) -> Result<Target, StageError> {
    Target::load(path, &process_env, BaseUrl::Required).map_err(StageError::Target)
}

/// The target file of the reference server with this contract.
#[must_use]
pub fn reference_target_file(contract: &Contract) -> String {
    let mut file = String::new();
    let mut old_policy = false;
    let both = contract.failure_before != Failures::Operation && contract.failure_after != Failures::Operation;
    let skips = |line: &str| {
        (line == "    policy:" && both) ||
        // Where the contract decides for all operations, none documents something of its own.
        (line.starts_with("      failure_before_effect:") && contract.failure_before != Failures::Operation)
            || (line.starts_with("      failure_after_effect:") && contract.failure_after != Failures::Operation)
    };
    for line in REFERENCE_TARGET.lines() {
        if line == "policy:" {
            old_policy = true;
            file.push_str(&contract::policy_yaml(contract));
        } else if old_policy && !line.starts_with(' ') {
            old_policy = false;
        }
        if !old_policy && !skips(line) {
            file.push_str(line);
            file.push('\n');
        }
    }
    file
}

/// The target that the reference server is, with its nodes at these addresses.
///
/// # Errors
/// When the target file that is built in has problems; a test rules that out.
pub fn reference_target(nodes: &[SocketAddr], config: &reference::Config) -> Result<Target, StageError> {
    let file = reference_target_file(&config.contract);
    let mut target = Target::parse(&file, "reference-server.yaml", &|_| None, BaseUrl::Optional)?;
    // The payments are what everything can be seen on; other operations are asked where a fault is theirs.
    let shown: Vec<&str> = config.faults.iter().flat_map(|fault| fault.operations().iter().copied()).collect();
    target.operations.retain(|operation| {
        operation.name.starts_with("create") || shown.contains(&operation.name.as_str()) || shown.contains(&"all")
    });
    // A socket address always makes a URL.
    let nodes = nodes.iter().filter_map(|addr| url::Url::parse(&format!("http://{addr}/")).ok()).collect();
    Ok(target.with_nodes(nodes))
}

async fn set_up_proxy(url: Option<&str>, run: &str) -> Result<(Option<Embedded>, Client, String), StageError> {
    match url {
        Some(url) => {
            let client = Client::new(url, run)?;
            let version = client.version().await?;
            Ok((None, client, format!("Toxiproxy {version} at {url}")))
        }
        None => {
            let embedded = Embedded::start(SocketAddr::from(([127, 0, 0, 1], 0))).await?;
            let client = Client::new(embedded.url(), run)?;
            Ok((Some(embedded), client, "embedded".to_owned()))
        }
    }
}
