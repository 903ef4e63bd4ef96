//! `idemproof serve`: the reference server alone.

use std::io::Write;

use super::{Exit, args::ServeArgs, signals};
use crate::reference::{Config, start};

pub(super) async fn serve(args: ServeArgs) -> Exit {
    let config = Config {
        listen: args.listen,
        nodes: args.nodes,
        store: args.store,
        faults: args.fault.iter().copied().collect(),
        lease: args.lease.duration(),
        retention: args.retention.duration(),
    };
    let store = config.store.to_string();
    let server = match start(config).await {
        Ok(server) => server,
        Err(error) => {
            eprintln!("error: {error}");
            return Exit::Usage;
        }
    };
    let faults: Vec<_> = args.fault.iter().map(|fault| fault.name()).collect();
    let faults = if faults.is_empty() { "no faults".to_owned() } else { format!("faults: {}", faults.join(", ")) };
    // Whoever started the server may read its first line and no more, so a pipe that is closed is no reason to end.
    let mut out = std::io::stdout();
    let _ = writeln!(out, "listening on http://{} (store: {store}; {faults}); Ctrl-C ends", server.addr());
    if server.nodes().len() > 1 {
        let nodes: Vec<_> = server.nodes().iter().map(|node| format!("http://{node}")).collect();
        let _ = writeln!(out, "its nodes, in turn: {}", nodes.join(", "));
    }
    let exit = signals::next().await;
    eprintln!("stopping; work in flight is let finish");
    tokio::select! {
        () = server.stop() => {}
        second = signals::next() => {
            eprintln!("stopped at once by a second signal; keys of work in flight are free after their lease");
            return second;
        }
    }
    // The server was asked to stop and did: that is not a failure.
    match exit {
        Exit::Interrupted | Exit::Terminated => Exit::Fine,
        other => other,
    }
}
