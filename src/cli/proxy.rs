//! `idemproof proxy`: the embedded Toxiproxy alone.

use std::path::Path;

use super::{Exit, args::ProxyArgs, signals};
use crate::chaos::{Embedded, Settings};

/// Largest file of proxies to start with, in bytes: what the API reads at most.
const MAX_CONFIG: u64 = 1024 * 1024;

pub(super) async fn proxy(args: ProxyArgs) -> Exit {
    let config = match args.config.as_deref().map(read).transpose() {
        Ok(config) => config,
        Err(trouble) => return usage(&trouble),
    };
    let settings = Settings { listen: args.listen, seed: args.seed, metrics: args.metrics };
    let server = match Embedded::start_with(settings).await {
        Ok(server) => server,
        Err(error) => return usage(&error.to_string()),
    };
    let made = match config {
        Some(config) => server.populate(&config).await,
        None => Ok(0),
    };
    let made = match made {
        Ok(made) => made,
        Err(error) => {
            server.stop().await;
            return usage(&error.to_string());
        }
    };
    println!("listening on {} (seed: {}; proxies: {made}); Ctrl-C ends", server.url(), server.seed());
    let exit = signals::next().await;
    server.stop().await;
    // The server was asked to stop and did: that is not a failure.
    match exit {
        Exit::Interrupted | Exit::Terminated => Exit::Fine,
        other => other,
    }
}

fn usage(trouble: &str) -> Exit {
    eprintln!("error: {trouble}");
    Exit::Usage
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    let trouble = |error| format!("{}: {error}", path.display());
    let length = std::fs::metadata(path).map_err(trouble)?.len();
    if length > MAX_CONFIG {
        return Err(format!("{}: it has {length} bytes, and at most {MAX_CONFIG} are read", path.display()));
    }
    std::fs::read(path).map_err(trouble)
}
