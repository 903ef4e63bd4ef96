//! What each lane of a timeline says: attempts, counts of effects, and movements of time.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    style::{Paint, Style},
    text::{count, millis},
};
use crate::{
    history::{Attempt, Control, End, History, Micros, Probe, ProbeResult, Witness},
    schedule::Encoding,
    suite::Window,
};

/// How the bar of a lane ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::report) enum Mark {
    /// With an answer.
    Answered,
    /// The connection was cut, or nothing was sent.
    Cut,
    /// It is not known to have ended.
    Open,
}

/// One line of a timeline.
#[derive(Debug, Clone)]
pub(in crate::report) struct Lane {
    /// What is written in front of it. Clean.
    pub name: String,
    /// Where its bar begins.
    pub from: Micros,
    /// Where its bar ends.
    pub to: Micros,
    /// How its bar ends.
    pub mark: Mark,
    /// What is written behind it. Clean.
    pub label: Vec<(Paint, String)>,
    /// What attempts are told apart by when there are too many of them.
    pub group: Option<Group>,
    /// Whether it is one of the attempts that decide the case.
    pub deciding: bool,
    /// What it shows.
    pub source: Source,
}

/// What a lane shows, by its place in the history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::report) enum Source {
    /// An attempt.
    Attempt(usize),
    /// A count of effects.
    Probe(usize),
    /// A movement of time.
    Control(usize),
    /// Several of these.
    Several,
}

/// What attempts are told apart by when there are too many of them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::report) struct Group {
    /// How it ended: `answered 409`.
    pub end: String,
    /// What else is peculiar to it: payload, tenant, faults.
    pub traits: Vec<String>,
    /// The identity in its answer.
    pub identity: Option<String>,
}

/// The lanes of a history, in the order in which they begin.
pub(in crate::report) fn lanes(history: &History, deciding: &[String], style: &Style) -> Vec<Lane> {
    let context = Context::of(history);
    let attempts = history.attempts.iter().enumerate().map(|(index, attempt)| {
        let named = |name: &String| *name == attempt.name || Some(name) == attempt.burst.as_ref();
        let lane = context.attempt(attempt, deciding.iter().any(named), style);
        Lane { source: Source::Attempt(index), ..lane }
    });
    let probes = history.probes.iter().enumerate().map(|(index, probe)| {
        let lane = probe_lane(probe, context.intents > 1, style);
        Lane { source: Source::Probe(index), ..lane }
    });
    let controls = history.controls.iter().enumerate().map(|(index, control)| {
        let lane = control_lane(control, style);
        Lane { source: Source::Control(index), ..lane }
    });
    let mut lanes: Vec<_> = attempts.chain(probes).chain(controls).collect();
    lanes.sort_by_key(|lane| lane.from);
    lanes
}

/// What the attempts of a history have in common, and so need not say each.
struct Context<'a> {
    tenants: usize,
    nodes: usize,
    keys: usize,
    intents: usize,
    /// The first success of each tenant and key: its name and its identity.
    first: BTreeMap<(&'a str, &'a str), &'a Attempt>,
}

impl<'a> Context<'a> {
    fn of(history: &'a History) -> Self {
        let attempts = &history.attempts;
        let mut first: BTreeMap<(&str, &str), &Attempt> = BTreeMap::new();
        for attempt in attempts {
            let (Some(key), Some(_)) = (&attempt.key, identity_of_success(attempt)) else { continue };
            let entry = first.entry((&attempt.tenant, key)).or_insert(attempt);
            if attempt.timing.ended < entry.timing.ended {
                *entry = attempt;
            }
        }
        Self {
            tenants: attempts.iter().map(|a| &a.tenant).collect::<BTreeSet<_>>().len(),
            nodes: attempts.iter().map(|a| a.node).collect::<BTreeSet<_>>().len(),
            keys: attempts.iter().map(|a| &a.key).collect::<BTreeSet<_>>().len(),
            intents: history.probes.iter().map(|p| (&p.intent, &p.tenant)).collect::<BTreeSet<_>>().len(),
            first,
        }
    }

    fn attempt(&self, attempt: &Attempt, deciding: bool, style: &Style) -> Lane {
        let clean = |text: &str| style.clean(text);
        let from = attempt.timing.first_out.unwrap_or(attempt.timing.opened);
        let to = attempt.timing.ended.max(from);
        let (mark, paint, end, said) = ending(attempt, millis(to - from));
        let traits = self.traits(attempt);
        let mut label = vec![(paint, clean(&said))];
        let identity = identity_of_success(attempt);
        if let Some(identity) = identity {
            label.push((Paint::Plain, format!("id={}", clean(identity.trim_matches('"')))));
        }
        label.extend(self.relation(attempt, identity, style));
        label.extend(traits.iter().map(|text| (Paint::Plain, clean(text))));
        if let (Some((paint, text)), Some(fault)) = (label.last_mut(), &attempt.fault) {
            // The fault is the last of the traits.
            let (Witness::Witnessed(how) | Witness::NotWitnessed(how)) = &fault.witness;
            *text = format!("{text} ({})", clean(how));
            *paint = if matches!(fault.witness, Witness::Witnessed(_)) { Paint::Plain } else { Paint::Yellow };
        }
        let group = Group { end: clean(&end), traits, identity: identity.map(clean) };
        Lane {
            name: clean(&attempt.name),
            from,
            to,
            mark,
            label,
            group: Some(group),
            deciding,
            source: Source::Attempt(0),
        }
    }

    /// Whether a success names what the first success of its key names.
    fn relation(&self, attempt: &Attempt, identity: Option<&str>, style: &Style) -> Option<(Paint, String)> {
        let first = self.first.get(&(&attempt.tenant, attempt.key.as_deref()?))?;
        let identity = identity?;
        if first.name == attempt.name {
            return None;
        }
        let name = style.clean(&first.name);
        Some(if identity_of_success(first) == Some(identity) {
            (Paint::Dim, format!("as {name}"))
        } else {
            (Paint::RedBold, format!("<-- not what {name} got"))
        })
    }

    fn traits(&self, attempt: &Attempt) -> Vec<String> {
        let mut traits = Vec::new();
        match (&attempt.key, &attempt.key_field) {
            (Some(key), _) if self.keys > 1 => traits.push(format!("key {key}")),
            (Some(_), _) => {}
            (None, Some(field)) => traits.push(format!("key field {field}")),
            (None, None) => traits.push("without a key".to_owned()),
        }
        if self.tenants > 1 {
            traits.push(format!("tenant {}", attempt.tenant));
        }
        if self.nodes > 1 {
            traits.push(format!("node {}", attempt.node.saturating_add(1)));
        }
        if attempt.role != "base" {
            traits.push(format!("payload {}", attempt.role));
        } else if attempt.encoding != Encoding::Compact {
            traits.push(format!("payload {}", word(&attempt.encoding)));
        }
        traits.extend(attempt.hooks.iter().cloned());
        if let Some(fault) = &attempt.fault {
            let seen = if matches!(fault.witness, Witness::Witnessed(_)) { "witnessed" } else { "not witnessed" };
            traits.push(format!("{} {seen}", word(&fault.fault)));
        }
        traits
    }
}

/// The bar's end, the paint, how it ended without times, and the same with them.
fn ending(attempt: &Attempt, took: String) -> (Mark, Paint, String, String) {
    let status = attempt.response.as_ref().map(|response| response.status);
    match &attempt.end {
        End::Answered => {
            let status = status.unwrap_or_default();
            let reason = http::StatusCode::from_u16(status).ok().and_then(|code| code.canonical_reason());
            let paint = match status {
                200..300 => Paint::Green,
                500.. => Paint::Red,
                _ => Paint::Cyan,
            };
            let said = format!("{status} {}", reason.unwrap_or_default()).trim_end().to_owned();
            (Mark::Answered, paint, format!("answered {status}"), said)
        }
        End::NotSent(said) => (Mark::Cut, Paint::Yellow, "not sent".to_owned(), format!("not sent: {said}")),
        End::Lost(cut) => {
            let how = if cut.reset { "reset" } else { "closed" };
            let arrived = status.map(|status| format!(" inside the answer {status}")).unwrap_or_default();
            let end = format!("lost, connection {how}{arrived}");
            (Mark::Cut, Paint::Yellow, end, format!("connection {how} after {took}{arrived}"))
        }
        End::TimedOut => {
            (Mark::Open, Paint::Yellow, "without an answer".to_owned(), format!("no whole answer in {took}"))
        }
        End::Unreadable(said) => {
            (Mark::Cut, Paint::Red, "with something unreadable".to_owned(), format!("unreadable answer: {said}"))
        }
    }
}

pub(in crate::report) fn identity_of_success(attempt: &Attempt) -> Option<&str> {
    let response = attempt.response.as_ref().filter(|response| (200..300).contains(&response.status))?;
    response.identity.as_deref().filter(|_| attempt.end == End::Answered)
}

fn probe_lane(probe: &Probe, several: bool, style: &Style) -> Lane {
    let (mark, mut label) = match &probe.result {
        ProbeResult::Counted(counted) => {
            let number = usize::try_from(counted.effects).unwrap_or(usize::MAX);
            let mut label = vec![(Paint::Bold, count(number, "effect"))];
            if !counted.ids.is_empty() {
                let ids: Vec<_> = counted.ids.iter().take(4).map(|id| id.trim_matches('"')).collect();
                let more = if counted.ids.len() > 4 { ", .." } else { "" };
                label.push((Paint::Plain, style.clean(&format!("{}{more}", ids.join(", ")))));
            }
            (Mark::Answered, label)
        }
        ProbeResult::Failed(why) => (Mark::Cut, vec![(Paint::Yellow, style.clean(&format!("not counted: {why}")))]),
    };
    if several {
        label.push((Paint::Plain, style.clean(&format!("of {} for {}", probe.intent, probe.tenant))));
    }
    if probe.purpose != "final" {
        label.push((Paint::Dim, style.clean(&probe.purpose)));
    }
    let to = probe.ended.max(probe.began);
    Lane {
        name: "probe".to_owned(),
        from: probe.began,
        to,
        mark,
        label,
        group: None,
        deciding: false,
        source: Source::Probe(0),
    }
}

fn control_lane(control: &Control, style: &Style) -> Lane {
    let moved = control.moved;
    let how = if moved.by_hook { "by the target's clock" } else { "by waiting" };
    let what = match moved.past {
        Some(Window::Lease) => format!("lease passed: {} {how}", moved.span),
        Some(Window::Retention) => format!("retention passed: {} {how}", moved.span),
        None => format!("{} {how}", moved.span),
    };
    let (mark, label) = match &control.failed {
        None => (Mark::Answered, vec![(Paint::Cyan, what)]),
        Some(why) => (Mark::Cut, vec![(Paint::Yellow, style.clean(&format!("not done: {what}: {why}")))]),
    };
    let to = control.ended.max(control.began);
    Lane {
        name: "time".to_owned(),
        from: control.began,
        to,
        mark,
        label,
        group: None,
        deciding: false,
        source: Source::Control(0),
    }
}

/// The kebab-case word that a value is written as in files.
fn word<T: serde::Serialize>(value: &T) -> String {
    let json = serde_json::to_value(value).unwrap_or_default();
    json.as_str().unwrap_or_default().to_owned()
}
