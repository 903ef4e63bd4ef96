//! Which cases are run.

use std::path::Path;

use crate::{
    schedule::{Allowed, Planned, compile},
    spec::RuleId,
    suite::{Suite, builtin_suites},
    target::Target,
    text::{Problems, closest},
};

/// What is chosen to be run. Everything that is given must hold.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// Suite files, folders of suite files, names of built-in suites, or `SUITE/CASE` of a built-in one; all built-in
    /// suites if empty.
    pub suites: Vec<String>,
    /// Parts of case names; any of them is enough.
    pub filters: Vec<String>,
    /// Tags; any of them is enough.
    pub tags: Vec<String>,
    /// Rules; any of them is enough.
    pub rules: Vec<RuleId>,
}

/// Why suites could not be chosen.
#[derive(Debug, thiserror::Error)]
pub enum SelectError {
    /// Suite files have problems.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Problems(Vec<Problems>),
    /// No built-in suite or file has this name.
    #[error("there is no suite `{name}`{}", suggestion(.nearest.as_deref()))]
    NoSuite {
        /// What was asked for.
        name: String,
        /// The nearest name of a built-in suite.
        nearest: Option<String>,
    },
    /// A suite has no case of this name.
    #[error("the suite `{suite}` has no case `{case}`{}", suggestion(.nearest.as_deref()))]
    NoCase {
        /// The suite.
        suite: String,
        /// What was asked for.
        case: String,
        /// The nearest name of one of its cases.
        nearest: Option<String>,
    },
    /// A folder cannot be read, or has no suite in it.
    #[error("the folder `{folder}` has no suites: {why}")]
    NoFolder {
        /// The folder.
        folder: String,
        /// What stands in the way.
        why: String,
    },
}

fn suggestion(nearest: Option<&str>) -> String {
    nearest.map_or_else(
        || {
            "; `idemproof list` shows the built-in ones, and a file is given by its path, such as suites/my.yaml"
                .to_owned()
        },
        |nearest| format!("; did you mean `{nearest}`?"),
    )
}

/// Loads the chosen suites; all problems of all files are reported together.
///
/// # Errors
/// When a name is unknown or a file has problems.
pub fn select(names: &[String]) -> Result<Vec<Suite>, SelectError> {
    let builtin = builtin_suites().map_err(|problems| SelectError::Problems(vec![problems]))?;
    if names.is_empty() {
        return Ok(builtin);
    }
    let mut suites: Vec<Suite> = Vec::new();
    let mut problems = Vec::new();
    for name in names {
        if looks_like_path(name) {
            for file in files(name)? {
                match Suite::load(Path::new(&file)) {
                    Ok(suite) => suites.push(suite),
                    Err(found) => problems.push(found),
                }
            }
        } else {
            add_builtin(&builtin, name, &mut suites)?;
        }
    }
    if problems.is_empty() { Ok(suites) } else { Err(SelectError::Problems(problems)) }
}

fn looks_like_path(name: &str) -> bool {
    let path = Path::new(name);
    path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml")
        || path.is_dir()
        || path.is_file()
}

/// The suite files of a path: itself, or the `.yaml` and `.yml` files of a folder in the order of their names.
///
/// # Errors
/// When a folder cannot be read or holds none.
pub fn files(name: &str) -> Result<Vec<String>, SelectError> {
    if !Path::new(name).is_dir() {
        return Ok(vec![name.to_owned()]);
    }
    let error = |why: String| SelectError::NoFolder { folder: name.to_owned(), why };
    let entries = std::fs::read_dir(name).map_err(|reason| error(reason.to_string()))?;
    let mut files: Vec<String> = entries
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml"))
        .map(|path| path.display().to_string())
        .collect();
    files.sort();
    if files.is_empty() { Err(error("no file in it ends in .yaml or .yml".to_owned())) } else { Ok(files) }
}

fn add_builtin(builtin: &[Suite], name: &str, suites: &mut Vec<Suite>) -> Result<(), SelectError> {
    let (suite_name, case_name) = name.split_once('/').map_or((name, None), |(suite, case)| (suite, Some(case)));
    let suite = builtin.iter().find(|suite| suite.name == suite_name).ok_or_else(|| SelectError::NoSuite {
        name: suite_name.to_owned(),
        nearest: closest(suite_name, builtin.iter().map(|suite| suite.name.as_str())).map(str::to_owned),
    })?;
    let mut cases = suite.cases.clone();
    if let Some(case_name) = case_name {
        cases.retain(|case| case.name == case_name);
        if cases.is_empty() {
            let names = suite.cases.iter().map(|case| case.name.as_str());
            return Err(SelectError::NoCase {
                suite: suite_name.to_owned(),
                case: case_name.to_owned(),
                nearest: closest(case_name, names).map(str::to_owned),
            });
        }
    }
    match suites.iter_mut().find(|known| known.name == suite.name && known.file == suite.file) {
        Some(known) => {
            known.cases.extend(
                cases
                    .into_iter()
                    .filter(|case| known.cases.iter().all(|old| old.name != case.name))
                    .collect::<Vec<_>>(),
            );
        }
        None => suites.push(Suite { cases, ..suite.clone() }),
    }
    Ok(())
}

/// Compiles the suites against the target and keeps what the selection lets through.
pub fn plan(suites: &[Suite], target: &Target, allowed: Allowed, selection: &Selection) -> Vec<Planned> {
    let all = suites.iter().flat_map(|suite| compile(suite, target, allowed));
    all.filter(|planned| {
        let (id, tags, rules) = match planned {
            Planned::Run(schedule) => (schedule.id.to_string(), &schedule.tags, &schedule.rules),
            Planned::Skip(skipped) => (skipped.id.to_string(), &skipped.tags, &skipped.rules),
        };
        let any = |wanted: &[String], has: &dyn Fn(&str) -> bool| wanted.is_empty() || wanted.iter().any(|w| has(w));
        any(&selection.filters, &|part| id.contains(part))
            && any(&selection.tags, &|tag| tags.iter().any(|known| known == tag))
            && (selection.rules.is_empty() || selection.rules.iter().any(|rule| rules.contains(rule)))
    })
    .collect()
}
