//! The documentation is held to the code: its examples are checked by the loaders that users meet, and its tables are
//! made from the tables of the code. `UPDATE_DOCS=1 cargo test --test docs` writes what is made.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{fmt::Write, fs, path::Path};

use idemproof::{
    cli::{self, Exit},
    reference::Fault,
    spec::RULES,
    suite::Suite,
    target::{BaseUrl, Target},
};

fn path(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn read(name: &str) -> String {
    fs::read_to_string(path(name)).unwrap()
}

/// Compares a file with what it must be, or writes it.
fn must_be(name: &str, wanted: &str) {
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(path(name), wanted).unwrap();
    }
    let found = fs::read_to_string(path(name)).unwrap_or_default();
    assert!(found == wanted, "{name} is not what the code says; run UPDATE_DOCS=1 cargo test --test docs");
}

/// The part of a file between two marks replaced.
fn with_table(name: &str, mark: &str, rows: &str) -> String {
    let text = read(name);
    let (begin, end) = (format!("<!-- {mark} -->\n"), format!("<!-- end of {mark} -->\n"));
    let (before, rest) = text.split_once(&begin).unwrap_or_else(|| panic!("{name} has no {begin}"));
    let after = rest.split_once(&end).map_or(rest, |(_, after)| after);
    format!("{before}{begin}{rows}{end}{after}")
}

fn blocks<'a>(text: &'a str, language: &str) -> Vec<&'a str> {
    let fence = format!("```{language}\n");
    text.split(&fence).skip(1).map(|rest| rest.split("```").next().unwrap()).collect()
}

#[test]
fn yaml_examples_are_valid() {
    let mut seen = 0;
    for name in ["README.md", "docs/suite.md", "docs/target.md"] {
        for block in blocks(&read(name), "yaml") {
            seen += 1;
            if block.starts_with("target:") {
                let env = |_: &str| Some("http://localhost".to_owned());
                if let Err(problems) = Target::parse(block, name, &env, BaseUrl::Required) {
                    panic!("{}", problems.render(false, 100));
                }
            } else if let Err(problems) = Suite::parse(block, name) {
                panic!("{}", problems.render(false, 100));
            }
        }
    }
    assert_eq!(seen, 3);
}

#[test]
fn the_readme_has_the_table_of_exit_codes() {
    let rows: Vec<_> = Exit::ALL.iter().map(|exit| format!("| {} | {} |", exit.code(), exit.meaning())).collect();
    assert!(read("README.md").contains(&rows.join("\n")), "expected in README.md:\n{}", rows.join("\n"));
}

#[test]
fn the_readme_has_the_table_of_faults() {
    let mut rows = String::from("| fault | what it breaks |\n|---|---|\n");
    for fault in Fault::ALL {
        writeln!(rows, "| `{}` | {} |", fault.name(), fault.help()).unwrap();
    }
    must_be("README.md", &with_table("README.md", "faults", &rows));
}

#[test]
fn the_rules_are_listed() {
    let mut text = String::from("# Rules\n\nEvery rule, made from the catalogue in `src/spec/catalogue.rs`.\n");
    let mut score = None;
    for rule in RULES {
        if score != Some(rule.score) {
            score = Some(rule.score);
            write!(text, "\n## {}\n\n| rule | says | source | catalogue |\n|---|---|---|---|\n", rule.score).unwrap();
        }
        writeln!(text, "| `{}` | {} | {} | {} |", rule.id, rule.statement, rule.source, rule.catalogue.join(", "))
            .unwrap();
    }
    must_be("docs/rules.md", &text);
}

#[test]
fn every_option_is_listed() {
    let mut text = String::from("# The command line\n\nMade from the definitions in `src/cli/args.rs`.\n");
    let mut command = cli::command().term_width(100);
    command.build();
    let mut add = |command: &mut clap::Command, name: &str| {
        let help: Vec<_> = command.render_long_help().to_string().lines().map(|l| l.trim_end().to_owned()).collect();
        write!(text, "\n## {name}\n\n```text\n{}\n```\n", help.join("\n").trim_end()).unwrap();
    };
    let mut top = command.clone();
    add(&mut top, "idemproof");
    for sub in command.get_subcommands_mut().filter(|sub| sub.get_name() != "help") {
        let name = format!("idemproof {}", sub.get_name());
        let mut sub = sub.clone().term_width(100);
        add(&mut sub, &name);
    }
    must_be("docs/cli.md", &text);
}

/// What a schema lacks or forbids of a value: the parts of JSON Schema that docs/report.schema.json uses.
fn mismatch(
    schema: &serde_json::Value,
    root: &serde_json::Value,
    value: &serde_json::Value,
    at: &str,
) -> Option<String> {
    if let Some(name) = schema["$ref"].as_str() {
        return mismatch(root.pointer(name.trim_start_matches('#')).unwrap(), root, value, at);
    }
    if let Some(any) = schema["anyOf"].as_array() {
        let found: Vec<_> = any.iter().map(|schema| mismatch(schema, root, value, at)).collect();
        return if found.iter().any(Option::is_none) { None } else { found.into_iter().flatten().next() };
    }
    if let Some(words) = schema["enum"].as_array() {
        return (!words.contains(value)).then(|| format!("{at}: {value} is not listed"));
    }
    if let Some(properties) = schema["properties"].as_object() {
        let Some(object) = value.as_object() else { return Some(format!("{at} is no object")) };
        let missing =
            schema["required"].as_array().unwrap().iter().find(|name| !object.contains_key(name.as_str().unwrap()));
        if let Some(name) = missing {
            return Some(format!("{at} has no {name}"));
        }
        return object.iter().find_map(|(name, value)| match properties.get(name) {
            None => Some(format!("{at}.{name} is not in the schema")),
            Some(schema) => mismatch(schema, root, value, &format!("{at}.{name}")),
        });
    }
    match value {
        serde_json::Value::Array(items) if schema.get("items").is_some() => {
            items.iter().find_map(|item| mismatch(&schema["items"], root, item, &format!("{at}[]")))
        }
        _ => None,
    }
}

#[test]
fn the_schema_of_the_report_has_every_member() {
    let schema: serde_json::Value = serde_json::from_str(&read("docs/report.schema.json")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let status = std::process::Command::new(env!("CARGO_BIN_EXE_idemproof"))
        .args([
            "run",
            "--shard",
            "1/1",
            "--fault",
            "check-then-act-race",
            "fingerprint",
            "connection-drops",
            "lease",
            "keys",
        ])
        .current_dir(folder.path())
        .stdout(std::process::Stdio::null())
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(1));
    let report = fs::read_to_string(folder.path().join("reports/report.json")).unwrap();
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    assert_eq!(mismatch(&schema, &schema, &report, "report"), None);
    // It can tell: a member that is missing or unknown is found.
    let mut other = report.clone();
    other["cases"][0].as_object_mut().unwrap().remove("verdict");
    assert!(mismatch(&schema, &schema, &other, "report").unwrap().contains("verdict"));
    let mut other = report;
    other["run"]["new"] = 1.into();
    assert!(mismatch(&schema, &schema, &other, "report").unwrap().contains("run.new"));
}
