//! `idemproof judge`: recorded histories, judged one line at a time.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Write},
    path::Path,
};

use super::{
    Exit,
    args::{FailOn, JudgeArgs},
    terminal,
};
use crate::{
    history::{History, Reader},
    judge::model::{Accusation, Inferred, Level, Tally},
    target::{BaseUrl, Operation, Target, process_env},
    text::Problems,
};

/// What is judged by without a policy: the default profile, which is the draft's.
const DRAFT: &str = "target: draft\noperations:\n  any: { request: POST / }\n";

/// How many accusations are printed; the rest is counted.
const SHOWN: u64 = 100;

pub(super) fn judge(args: &JudgeArgs) -> Exit {
    let target = match policy(args.policy.as_deref()) {
        Ok(target) => target,
        Err(problems) => {
            eprint!("{}", problems.render(terminal::error_color(), terminal::width()));
            return Exit::Usage;
        }
    };
    let source: Box<dyn BufRead> = if args.file == Path::new("-") {
        Box::new(BufReader::with_capacity(1 << 20, io::stdin().lock()))
    } else {
        match File::open(&args.file) {
            Ok(file) => Box::new(BufReader::with_capacity(1 << 20, file)),
            Err(error) => {
                eprintln!("error: {} cannot be read: {error}", args.file.display());
                return Exit::Usage;
            }
        }
    };
    let mut session = Session { target: Some(target), infer: args.infer, ..Session::default() };
    let bad = session.read(source);
    if let Some(problem) = &bad {
        eprintln!("error: {}: {problem}; what came before it is judged", args.file.display());
    }
    if session.summary().is_err() {
        return Exit::Internal;
    }
    let tally = session.tally;
    let undecided = tally.too_much > 0 || tally.keys == tally.vacuous;
    match () {
        () if bad.is_some() => Exit::Usage,
        () if tally.at(Level::Safety) + tally.at(Level::Policy) > 0 => Exit::Violations,
        () if tally.histories == 0 => Exit::Nothing,
        () if undecided && args.fail_on == Some(FailOn::Inconclusive) => Exit::Inconclusive,
        () => Exit::Fine,
    }
}

fn policy(path: Option<&Path>) -> Result<Target, Problems> {
    match path {
        // Nothing is sent, so a variable that is not set does no harm.
        Some(path) => {
            Target::load(path, &|name| Some(process_env(name).unwrap_or_else(|| "unset".into())), BaseUrl::Optional)
        }
        None => Target::parse(DRAFT, "draft", &|_| None, BaseUrl::Optional),
    }
}

#[derive(Default)]
struct Session {
    target: Option<Target>,
    infer: bool,
    tally: Tally,
    inferred: Inferred,
    printed: u64,
    unknown: Option<String>,
}

impl Session {
    /// Judges every history. Gives what ended the file too early.
    fn read(&mut self, source: impl BufRead) -> Option<String> {
        let reader = match Reader::new(source) {
            Ok(reader) => reader,
            Err(error) => return Some(error.to_string()),
        };
        for (index, history) in reader.enumerate() {
            let history = match history {
                Ok(history) => history,
                Err(error) => return Some(error.to_string()),
            };
            if let Some(problem) = history.contradiction() {
                return Some(format!("history {} ({}): {problem}", index + 1, history.case));
            }
            if self.one(&history).is_err() {
                return Some("the verdict cannot be written".to_owned());
            }
        }
        None
    }

    fn one(&mut self, history: &History) -> io::Result<()> {
        let Some(target) = &self.target else { return Ok(()) };
        let operation = operation(target, history, &mut self.unknown);
        let (keys, accusations) = self.tally.judge(history, operation);
        if self.infer {
            keys.iter().for_each(|key| self.inferred.add(key));
        }
        let mut out = io::stdout().lock();
        for accusation in accusations {
            self.printed += 1;
            if self.printed <= SHOWN {
                say(&mut out, history, &accusation)?;
            }
        }
        Ok(())
    }

    fn summary(&self) -> io::Result<()> {
        let mut out = io::stdout().lock();
        let tally = &self.tally;
        if self.printed > SHOWN {
            writeln!(out, "... and {} more", self.printed - SHOWN)?;
        }
        if let Some(name) = &self.unknown {
            writeln!(out, "operation `{name}` is not in the policy file; its first operation was taken instead")?;
        }
        writeln!(out, "{} histories, {} attempts, {} keys judged", tally.histories, tally.attempts, tally.keys)?;
        writeln!(
            out,
            "{} safety violations, {} wrongful refusals, {} policy deviations, {} too large to decide, {} with nothing \
             to judge from",
            tally.at(Level::Safety),
            tally.at(Level::Refusal),
            tally.at(Level::Policy),
            tally.too_much,
            tally.vacuous
        )?;
        if tally.left_out > 0 {
            writeln!(out, "{} histories have attempts that the model has no say in", tally.left_out)?;
        }
        if self.infer {
            infer(&mut out, &self.inferred)?;
        }
        Ok(())
    }
}

/// The operation of a history, or the first one.
fn operation<'a>(target: &'a Target, history: &History, unknown: &mut Option<String>) -> &'a Operation {
    let name = history.attempts.first().map_or(&history.case.operation, |attempt| &attempt.operation);
    target.operation(name).unwrap_or_else(|| {
        // With one operation there is nothing to choose.
        if target.operations.len() > 1 && unknown.is_none() {
            *unknown = Some(name.clone());
        }
        &target.operations[0]
    })
}

fn say(out: &mut impl Write, history: &History, accusation: &Accusation) -> io::Result<()> {
    let level = match accusation.level {
        Level::Safety => "SAFETY",
        Level::Refusal => "REFUSAL",
        Level::Policy => "POLICY",
    };
    writeln!(out, "{level} {} round {}: {}", history.case, history.round + 1, accusation.rule)?;
    writeln!(out, "    {}", accusation.message)
}

fn infer(out: &mut impl Write, inferred: &Inferred) -> io::Result<()> {
    writeln!(out, "a policy that explains {} keys:", inferred.keys)?;
    let known = |yes: bool, what: &str| format!("    {what}: {}", if yes { "yes" } else { "no sign of it" });
    writeln!(out, "{}", known(inferred.refuses, "refuses while another attempt is in flight"))?;
    writeln!(out, "{}", known(inferred.frees, "a failure frees the key"))?;
    writeln!(out, "{}", known(inferred.keeps, "a failure is stored"))?;
    let ms = |micros: i64| format!("{:.1} ms", micros as f64 / 1000.0);
    let limits = &inferred.limits;
    if let Some(least) = limits.stuck_at_least {
        writeln!(out, "    the mark of a dead owner may get at least {} old", ms(least))?;
    }
    if let Some(most) = limits.lease_at_most {
        writeln!(out, "    an owner may lose its key after {} at the latest", ms(most))?;
    }
    if let Some(most) = limits.retention_at_most {
        writeln!(out, "    a completed key may be forgotten after {} at the latest", ms(most))?;
    }
    Ok(())
}
