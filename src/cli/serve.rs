//! `idemproof serve`: the reference server alone, and what can be set about it.

use std::io::Write;

use serde_json::{Value, json};

use super::{
    Exit,
    args::{ServeArgs, contract},
    signals,
};
use crate::{
    reference::{
        Config, Fault,
        contract::{Contract, PROFILES, SWITCHES},
        start,
    },
    run::reference_target_file,
};

pub(super) async fn serve(args: ServeArgs) -> Exit {
    let mut contract = contract(args.profile, &args.policy);
    if let Some(lease) = args.lease {
        contract.lease = lease.duration();
    }
    if let Some(retention) = args.retention {
        contract.retention = retention.duration();
    }
    if args.list_faults {
        return show(&args, faults(), fault_lines);
    }
    if args.list_profiles {
        return show(&args, profiles(), profile_lines);
    }
    if args.list_policies {
        return show(&args, policies(&contract), policy_lines);
    }
    if args.print_target {
        print!("{}", reference_target_file(&contract));
        return Exit::Fine;
    }
    let faults = args.fault.iter().copied().collect();
    let config = Config { listen: args.listen, nodes: args.nodes, store: args.store, faults, contract };
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
    let profile = args.profile.map_or_else(String::new, |profile| format!("profile: {}; ", profile.name));
    // Whoever started the server may read its first line and no more, so a pipe that is closed is no reason to end.
    let mut out = std::io::stdout();
    let _ = writeln!(out, "listening on http://{} (store: {store}; {profile}{faults}); Ctrl-C ends", server.addr());
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

fn show(args: &ServeArgs, list: Value, lines: fn(&Value) -> Vec<String>) -> Exit {
    if args.json {
        println!("{list:#}");
    } else {
        lines(&list).iter().for_each(|line| println!("{line}"));
    }
    Exit::Fine
}

fn text<'a>(item: &'a Value, name: &str) -> &'a str {
    item[name].as_str().unwrap_or_default()
}

fn texts(item: &Value, name: &str) -> String {
    let all: Vec<_> = item[name].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    all.join(", ")
}

fn faults() -> Value {
    let fault = |fault: &Fault| {
        let needs: Vec<_> = fault.needs().iter().map(ToString::to_string).collect();
        json!({
            "name": fault.name(), "class": fault.class().name(), "harm": fault.class().harm().to_string(),
            "help": fault.help(), "needs": needs, "operations": fault.operations(),
        })
    };
    Fault::ALL.iter().map(fault).collect()
}

fn fault_lines(list: &Value) -> Vec<String> {
    let all = || list.as_array().into_iter().flatten();
    let width = all().map(|fault| text(fault, "name").len()).max().unwrap_or_default();
    let mut lines = Vec::new();
    let mut class = "";
    for fault in all() {
        if text(fault, "class") != class {
            class = text(fault, "class");
            lines.push(format!("{class} ({})", text(fault, "harm")));
        }
        let needs = texts(fault, "needs");
        let needs = if needs.is_empty() { String::new() } else { format!(" [{needs}]") };
        lines.push(format!("  {:width$}  {}{needs}", text(fault, "name"), text(fault, "help")));
    }
    lines
}

fn profiles() -> Value {
    let all = PROFILES.iter().map(|profile| {
        json!({
            "name": profile.name, "provider": profile.provider, "source": profile.source, "as_of": profile.as_of,
            "documented": profile.documented, "assumed": profile.assumed, "beyond": profile.beyond,
        })
    });
    all.collect()
}

fn profile_lines(list: &Value) -> Vec<String> {
    let lines = list.as_array().into_iter().flatten().map(|profile| {
        let mut lines = format!(
            "{}: {} ({}, {})\n  documented: {}",
            text(profile, "name"),
            text(profile, "provider"),
            text(profile, "source"),
            text(profile, "as_of"),
            texts(profile, "documented")
        );
        for (label, value) in [("assumed", texts(profile, "assumed")), ("beyond", text(profile, "beyond").to_owned())] {
            if !value.is_empty() {
                lines.push_str(&format!("\n  {label}: {value}"));
            }
        }
        lines
    });
    lines.collect()
}

fn policies(contract: &Contract) -> Value {
    let all = SWITCHES.iter().map(|switch| {
        json!({ "name": switch.name, "values": switch.values, "help": switch.help, "value": switch.value(contract) })
    });
    all.collect()
}

fn policy_lines(list: &Value) -> Vec<String> {
    let lines = list.as_array().into_iter().flatten().map(|switch| {
        let setting = format!("{}={}", text(switch, "name"), text(switch, "value"));
        format!("{setting:42} {} ({})", text(switch, "help"), text(switch, "values"))
    });
    lines.collect()
}
