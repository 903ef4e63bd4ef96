//! `idemproof serve`: the reference server alone.

use super::{Exit, args::ServeArgs, signals};
use crate::reference::{Config, start};

pub(super) async fn serve(args: ServeArgs) -> Exit {
    let config = Config {
        listen: args.listen,
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
    println!("listening on http://{} (store: {store}; {faults}); Ctrl-C ends", server.addr());
    let exit = signals::next().await;
    eprintln!("stopping; work in flight is let finish");
    server.stop().await;
    // The server was asked to stop and did: that is not a failure.
    match exit {
        Exit::Interrupted | Exit::Terminated => Exit::Fine,
        other => other,
    }
}
