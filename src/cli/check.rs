//! `idemproof check`: validates files, sends nothing.

use std::path::Path;

use super::{Exit, args::CheckArgs, terminal};
use crate::{
    run,
    suite::Suite,
    target::{BaseUrl, Target, process_env},
    text::{Problems, Source},
};

pub(super) fn check(args: &CheckArgs) -> Exit {
    let mut exit = Exit::Fine;
    for name in &args.files {
        let files = match run::files(name) {
            Ok(files) => files,
            Err(error) => {
                eprintln!("error: {error}");
                exit = Exit::Usage;
                continue;
            }
        };
        for file in files {
            match check_file(Path::new(&file)) {
                Ok(said) => {
                    if terminal::say(&format!("{file}: {said}\n")) != Exit::Fine {
                        return Exit::Internal;
                    }
                }
                Err(problems) => {
                    eprint!("{}", problems.render(terminal::error_color(), terminal::width()));
                    exit = Exit::Usage;
                }
            }
        }
    }
    exit
}

/// A file that has a `target:` line is a target, every other one is a suite.
fn check_file(path: &Path) -> Result<String, Problems> {
    // Read once: a pipe has nothing to give the second time.
    let source = Source::read(path)?;
    let (name, text) = (path.display().to_string(), source.text());
    if text.lines().any(|line| line.trim_start_matches('\u{feff}').starts_with("target:")) {
        // Environment variables may be set elsewhere, so their absence is no fault of the file.
        let target = Target::parse(
            text,
            &name,
            &|name| Some(process_env(name).unwrap_or_else(|| placeholder(name))),
            BaseUrl::Required,
        )?;
        let operations = target.operations.len();
        return Ok(format!("a target with {operations} operation{}", plural(operations)));
    }
    let suite = Suite::parse(text, &name)?;
    let cases = suite.cases.len();
    Ok(format!("a suite with {cases} case{}", plural(cases)))
}

fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}

/// A value that passes as a URL and as a header field value alike.
fn placeholder(name: &str) -> String {
    format!("http://{}.invalid", name.to_lowercase().replace('_', "-"))
}
