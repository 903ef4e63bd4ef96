//! The steps of a case.

use super::{
    Burst, Copies, KeyChoice, NetworkFault, Pass, Request, ServerFault, ServerFaultPoint, Slow, Step, Window, extras,
    file::{CaseFile, PassFile, RequestFile, StepFile, Text},
    load::vary_names,
};
use crate::text::{At, Check, Diagnostic, Spanned, Template, suggestion};

const MOST_STEPS: usize = 200;
const MOST_COPIES: u64 = 64;

/// What the steps of a case define.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// The attempts and bursts, in order.
    pub(super) attempts: Vec<Spanned<String>>,
    /// The bursts among them, with their number of copies where that is fixed.
    pub(super) bursts: Vec<(String, Option<u64>)>,
    /// The key symbols, in order of first use.
    pub(super) keys: Vec<Spanned<String>>,
    /// The attempts whose effects are counted under their own name, because no symbol stands for their key.
    pub(super) keyless: Vec<String>,
    /// Whether a step uses the name of `vary`.
    pub(super) vary_used: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Send,
    Start,
    Burst,
}

/// The steps of a case, and what they define.
pub(super) fn read(check: &mut Check<'_>, file: &CaseFile) -> (Vec<Step>, Names) {
    let mut names = Names::default();
    let mut steps = Vec::new();
    let mut started: Vec<(Spanned<String>, bool)> = Vec::new();
    if file.steps.value.is_empty() {
        check.error("the case has no step", file.steps.at, "an empty list", "add one: `- send: { as: first, key: k }`");
    }
    if let Some(over) = file.steps.value.get(MOST_STEPS) {
        let title = format!("the case has {} steps", file.steps.value.len());
        check.error(title, over.at, "one too many", format!("a case has at most {MOST_STEPS}"));
        return (steps, names);
    }
    for step in &file.steps.value {
        let read = match &step.value {
            StepFile::Send(file) => request(check, file, Kind::Send, &mut names).map(Step::Send),
            StepFile::Start(file) => {
                started.push((file.name.clone(), false));
                request(check, file, Kind::Start, &mut names).map(Step::Start)
            }
            StepFile::Join(name) => join(check, name, &mut started, &names).then(|| Step::Join(name.value.clone())),
            StepFile::Burst(burst_file) => burst(check, burst_file, file, &mut names).map(Step::Burst),
            StepFile::Pass(file) => pass(check, file, step.at).map(Step::Pass),
        };
        steps.extend(read);
    }
    for (name, joined) in started {
        if !joined {
            let title = format!("`{}` is started and never joined", name.value);
            let help = format!("add a step `- join: {}`, or send it with `send`", name.value);
            check.error(title, name.at, "started here", help);
        }
    }
    for key in &names.keys {
        if names.keyless.contains(&key.value) {
            check.error(
                format!("`{}` is both a key and an attempt without one", key.value),
                key.at,
                "the key",
                "rename one of them: effects are counted under this name",
            );
        }
    }
    (steps, names)
}

fn join(check: &mut Check<'_>, name: &Text, started: &mut [(Spanned<String>, bool)], names: &Names) -> bool {
    if let Some((first, joined)) = started.iter_mut().find(|(started, _)| started.value == name.value) {
        if *joined {
            check.push(
                Diagnostic::new(format!("`{}` is joined twice", name.value))
                    .at(name.at, "it has already ended here")
                    .at(first.at, "started here")
                    .help("remove this step"),
            );
            return false;
        }
        *joined = true;
        return true;
    }
    let title = format!("`{}` was not started before this step", name.value);
    if names.attempts.iter().any(|attempt| attempt.value == name.value) {
        let help = "only what `start` began can be joined: `send` and `burst` wait by themselves";
        check.error(title, name.at, "nothing to wait for", help);
    } else {
        let candidates: Vec<_> = started.iter().map(|(name, _)| name.value.as_str()).collect();
        let help = if candidates.is_empty() {
            format!("start it before: `- start: {{ as: {}, key: k }}`", name.value)
        } else {
            suggestion(&name.value, &candidates)
        };
        check.error(title, name.at, "nothing to wait for", help);
    }
    false
}

fn request(check: &mut Check<'_>, file: &RequestFile, kind: Kind, names: &mut Names) -> Option<Request> {
    let name = check.name("an attempt", &file.name);
    check.unique("attempts", &file.name, &mut names.attempts);
    if ["effects", "overlap"].contains(&file.name.value.as_str()) {
        let title = format!("an attempt cannot be called `{}`", file.name.value);
        check.error(title, file.name.at, "a word with a meaning in `expect` and `given`", "choose another name");
    }
    let key = key(check, file, names);
    if matches!(key, Some(KeyChoice::None | KeyChoice::Raw(_))) {
        names.keyless.push(file.name.value.clone());
    }
    misplaced(check, file, kind);
    let fault = file.fault.as_ref().and_then(|fault| {
        check.word(
            "fault",
            fault,
            &[
                ("lose-response", NetworkFault::LoseResponse),
                ("cut-while-running", NetworkFault::CutWhileRunning),
                ("cut-request-body", NetworkFault::CutRequestBody),
                ("cut-response", NetworkFault::CutResponse),
            ],
        )
    });
    let payload = file.payload.as_ref().map_or(Some("base".to_owned()), |payload| payload_role(check, payload));
    let tenant = file.tenant.as_ref().and_then(|tenant| check.name("a tenant", tenant));
    let slow = file.slow.as_ref().and_then(|slow| slow_for(check, slow));
    let server = server_fault(check, file);
    let extras = extras::read(check, file);
    let until = file.until.as_ref().and_then(|until| check.word("value of `until`", until, &[("settled", true)]));
    Some(Request {
        name: name?,
        key: key?,
        payload: payload?,
        tenant,
        fault,
        slow,
        server,
        until_settled: until.unwrap_or(false),
        headers: extras.headers,
        credentials: extras.credentials,
        node: extras.node,
        wire: extras.wire,
    })
}

/// Variants of target files may be named with underscores as well.
fn payload_role(check: &mut Check<'_>, payload: &Text) -> Option<String> {
    let proper = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if payload.value.is_empty() || payload.value.len() > 64 || !payload.value.chars().all(proper) {
        check.error(
            format!("`{}` is no payload", payload.value),
            payload.at,
            "here",
            "write `base`, `reordered`, `reformatted`, `escaped`, `unreadable`, or the name of a variant of the target file, such as `changed`",
        );
        return None;
    }
    Some(payload.value.clone())
}

fn key(check: &mut Check<'_>, file: &RequestFile, names: &mut Names) -> Option<KeyChoice> {
    match (&file.key, &file.raw_key) {
        (Some(_), Some(raw)) => {
            let help = "keep `key` for a fresh key, or `raw_key` for exact characters";
            check.error("an attempt has either `key` or `raw_key`", raw.at, "the second one", help);
            None
        }
        (Some(symbol), None) => {
            check.name("a key", symbol)?;
            if ["is", "rule"].contains(&symbol.value.as_str()) {
                let title = format!("a key cannot be called `{}`", symbol.value);
                check.error(title, symbol.at, "a word with a meaning in `effects`", "choose another name");
                return None;
            }
            if names.keys.iter().all(|known| known.value != symbol.value) {
                names.keys.push(symbol.clone());
            }
            Some(KeyChoice::Symbol(symbol.value.clone()))
        }
        (None, Some(raw)) => {
            let help = "`${key}` stands for the characters of a fresh key, `${case}` for those of one that all attempts of the case have; everything else is sent as it is";
            match Template::parse(&raw.value) {
                Err(error) => {
                    check.error(error.to_string(), raw.at, "in this key", help);
                    None
                }
                Ok(template) => {
                    let unknown: Vec<_> = template
                        .names()
                        .filter(|name| !["key", "case"].contains(name))
                        .chain(template.env_names())
                        .collect();
                    for name in &unknown {
                        check.error(format!("`{name}` has no value in `raw_key`"), raw.at, "in this key", help);
                    }
                    let sent = raw.value.replace("${key}", "k").replace("${case}", "c");
                    if http::HeaderValue::from_str(&sent).is_err() {
                        let title = "`raw_key` has characters that no header field can carry";
                        check.error(title, raw.at, "here", "write visible ASCII characters and spaces");
                    }
                    unknown.is_empty().then_some(KeyChoice::Raw(template))
                }
            }
        }
        (None, None) => Some(KeyChoice::None),
    }
}

/// Keys that only some kinds of step have.
fn misplaced(check: &mut Check<'_>, file: &RequestFile, kind: Kind) {
    if let Some(until) = file.until.as_ref().filter(|_| kind != Kind::Send) {
        let title = "only `send` can go on until it is settled";
        check.error(
            title,
            until.at,
            "not in this step",
            "remove it here, and add a `send` with `until: settled` after it",
        );
    }
    for (name, text) in [("copies", &file.copies), ("release", &file.release)] {
        if let Some(text) = text.as_ref().filter(|_| kind != Kind::Burst) {
            let title = format!("only `burst` has `{name}`");
            check.error(title, text.at, "not in this step", "write `burst` for several equal attempts, or remove it");
        }
    }
}

fn slow_for(check: &mut Check<'_>, slow: &Text) -> Option<Slow> {
    if slow.value == "past-lease" {
        return Some(Slow::PastLease);
    }
    match slow.value.parse() {
        Ok(span) => Some(Slow::For(span)),
        Err(_) => {
            let title = format!("`{}` does not say how slow", slow.value);
            check.error(title, slow.at, "here", "write a length of time, such as 300ms, or `past-lease`");
            None
        }
    }
}

fn server_fault(check: &mut Check<'_>, file: &RequestFile) -> Option<ServerFault> {
    let points = [("before", ServerFaultPoint::Before), ("after", ServerFaultPoint::After)];
    let mut found: Option<(&str, ServerFault)> = None;
    for (name, text) in [("fail", &file.fail), ("throw", &file.throws), ("die", &file.die)] {
        let Some(text) = text else { continue };
        if let Some((other, _)) = found {
            let title = format!("an attempt has one of `fail`, `throw` and `die`, not both `{other}` and `{name}`");
            check.error(title, text.at, "the second one", "keep one of them");
        }
        let Some(point) = check.word(&format!("value of `{name}`"), text, &points) else { continue };
        let fault = match name {
            "fail" => ServerFault::Fail(point),
            "throw" => ServerFault::Throw(point),
            _ => ServerFault::Die(point),
        };
        found = Some((name, fault));
    }
    found.map(|(_, fault)| fault)
}

fn burst(check: &mut Check<'_>, file: &RequestFile, case: &CaseFile, names: &mut Names) -> Option<Burst> {
    let request = request(check, file, Kind::Burst, names);
    if let Some(release) = &file.release {
        check.word("value of `release`", release, &[("together", ())]);
    }
    let copies = copies(check, file, case, names);
    let count = if let Some(Copies::Count(count)) = copies { Some(u64::from(count)) } else { None };
    names.bursts.push((file.name.value.clone(), count));
    Some(Burst { request: request?, copies: copies? })
}

fn copies(check: &mut Check<'_>, file: &RequestFile, case: &CaseFile, names: &mut Names) -> Option<Copies> {
    let Some(text) = &file.copies else {
        let help = "add `copies: 8`, or `copies: \"${n}\"` together with `vary: { n: [2, 8, 32] }`";
        check.error("a burst without `copies`", file.name.at, "in this burst", help);
        return None;
    };
    if let Ok(count) = text.value.parse::<u64>() {
        return copies_in_range(check, count, text.at).map(Copies::Count);
    }
    let known = vary_names(case);
    let name = text.value.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
    match name {
        Some(name) if known.contains(&name) => {
            names.vary_used = true;
            return Some(Copies::Vary);
        }
        Some(name) => {
            let help = match known.first() {
                Some(first) => format!("write \"${{{first}}}\""),
                None => format!("add `vary: {{ {name}: [2, 8, 32] }}` to the case, or write a number"),
            };
            check.error(format!("nothing gives `${{{name}}}` a value"), text.at, "not a name of `vary`", help);
        }
        None => {
            let title = format!("`{}` is no number of copies", text.value);
            check.error(title, text.at, "here", format!("write a number from 2 to {MOST_COPIES}, or \"${{n}}\""));
        }
    }
    // A wrong name is not told a second time as a name that nothing uses.
    names.vary_used = true;
    None
}

/// The number of copies of a burst.
pub(super) fn copies_in_range(check: &mut Check<'_>, count: u64, at: At) -> Option<u16> {
    if !(2..=MOST_COPIES).contains(&count) {
        let title = format!("a burst cannot have {count} copies");
        check.error(title, at, "here", format!("write a number from 2 to {MOST_COPIES}"));
        return None;
    }
    u16::try_from(count).ok()
}

fn pass(check: &mut Check<'_>, file: &PassFile, at: At) -> Option<Pass> {
    let windows = [("lease", Window::Lease), ("retention", Window::Retention)];
    match (&file.within, &file.past, &file.length) {
        (Some(window), None, None) => check.word("window", window, &windows).map(Pass::Within),
        (None, Some(window), None) => check.word("window", window, &windows).map(Pass::Past),
        (None, None, Some(length)) => check.span(length).map(Pass::For),
        (within, past, length) => {
            let at = [within, past, length].into_iter().flatten().nth(1).map_or(at, |text| text.at);
            let help = "write one of `within: retention`, `past: lease` or `for: 2s`";
            check.error("`pass` needs exactly one length", at, "here", help);
            None
        }
    }
}
