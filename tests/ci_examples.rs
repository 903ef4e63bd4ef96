//! The action and the examples for CI systems are held to the command line.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{fs, path::Path, process::Command};

use idemproof::cli;
use serde_json::Value;

fn read(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap()
}

/// The commands in a text, as the words of a shell without its variables.
fn commands(text: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for line in text.lines() {
        for start in ["idemproof run ", "idemproof merge "] {
            let Some((_, rest)) = line.split_once(start) else { continue };
            let rest = rest.split(['#', '|', '&']).next().unwrap();
            let words = format!("{start}{rest}").replace("$PART", "1").replace("$CI_NODE_INDEX", "1");
            let words = words.split_whitespace().map(|word| word.trim_matches(['"', '\'', ']', '`', ',']).to_owned());
            found.push(words.filter(|word| !word.is_empty()).collect());
        }
    }
    found
}

#[test]
fn every_command_is_one_that_idemproof_takes() {
    let mut seen = 0;
    // `--shard auto` is read from variables, which this process does not have.
    for name in [
        "docs/ci/github.yml",
        "docs/ci/gitlab.yml",
        "docs/ci/Jenkinsfile",
        "docs/ci/kubernetes.yaml",
        "docs/ci/README.md",
    ] {
        for words in commands(&read(name)) {
            seen += 1;
            let words: Vec<_> =
                words.into_iter().map(|word| if word.starts_with("auto") { "1/8".into() } else { word }).collect();
            if let Err(error) = cli::command().try_get_matches_from(&words) {
                panic!("{name}: {words:?}: {error}");
            }
        }
    }
    assert!(seen >= 9, "{seen}");
}

#[test]
fn the_yaml_files_are_right() {
    let parse =
        |name: &str| serde_saphyr::from_str::<Value>(&read(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    let github = parse("docs/ci/github.yml");
    let action = parse(".github/actions/idemproof/action.yml");
    let used = &github["jobs"]["idemproof"]["steps"][2];
    assert_eq!(used["uses"], "./.idemproof/.github/actions/idemproof");
    for input in used["with"].as_object().unwrap().keys() {
        assert!(action["inputs"].get(input).is_some(), "the action has no input {input}");
    }
    // Every line of `arguments` is one word.
    let mut words = vec!["idemproof", "run"];
    words.extend(used["with"]["arguments"].as_str().unwrap().lines());
    cli::command().try_get_matches_from(words).unwrap();
    assert_eq!(action["runs"]["using"], "composite");
    let script = action["runs"]["steps"][1]["run"].as_str().unwrap();
    assert!(!script.contains("${{"), "inputs must not become part of a script");
    assert_eq!(parse("docs/ci/gitlab.yml")["idempotency"]["parallel"], 4);
    let job = parse("docs/ci/kubernetes.yaml");
    assert_eq!((&job["spec"]["completionMode"], &job["spec"]["completions"]), (&"Indexed".into(), &8.into()));
}

#[test]
fn the_step_of_the_action_passes_its_inputs_and_the_exit_code() {
    if Command::new("bash").arg("--version").output().is_err() {
        eprintln!("skipped: bash is not on the PATH");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let binary = Path::new(env!("CARGO_BIN_EXE_idemproof")).parent().unwrap();
    let path = std::env::join_paths(
        std::iter::once(binary.to_owned()).chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())),
    );
    let step = |suites: &str, arguments: &str| {
        let output = Command::new("bash")
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join(".github/actions/idemproof/run.sh"))
            .current_dir(folder.path())
            .env("PATH", path.as_ref().unwrap())
            .env("CI", "true")
            .env("SUITES", suites)
            .env("ARGUMENTS", arguments)
            .env("REPORTS", "out put")
            .env("GITHUB_OUTPUT", folder.path().join("outputs"))
            .output()
            .unwrap();
        (output.status.code().unwrap(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    assert_eq!(step("keys validation", ""), (0, String::new()));
    assert!(folder.path().join("out put/report.html").exists());
    assert_eq!(step("fingerprint", "--fault\npayload-mismatch-ignored\n").0, 1);
    assert_eq!(step("", "--filter\nno case; touch pwned").0, 4);
    assert!(!folder.path().join("pwned").exists());
    assert_eq!(fs::read_to_string(folder.path().join("outputs")).unwrap(), "exit-code=0\nexit-code=1\nexit-code=4\n");
}
