//! From findings to a verdict: one finding per rule, worst first.

use serde::{Deserialize, Serialize};

use super::{
    Decision, Finding, Gate, Reason, Verdict,
    checks::{self, CHECKS},
    expect, overlap,
    overlap::Overlap,
    seen::Seen,
    setup,
};
use crate::{history::History, schedule::Schedule, spec::id};

/// How many lines of evidence a finding keeps.
const EVIDENCE: usize = 64;

/// What one performance of a case comes to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Judgement {
    /// One finding per rule, worst first.
    pub findings: Vec<Finding>,
    /// What the case comes to.
    pub verdict: Verdict,
    /// Why it is inconclusive.
    pub reason: Option<Reason>,
    /// What was measured of attempts that were to be in flight together.
    pub overlaps: Vec<Overlap>,
}

/// What several performances of a case come to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Combined {
    /// The worst of all.
    pub judgement: Judgement,
    /// Which round decided it, by its place in the list; the first of the worst ones.
    pub round: usize,
}

/// Judges one performance of a case.
///
/// What the case itself expects counts as broken only if nothing stood in the way of the case. What holds for every
/// history counts always: evidence stays evidence.
pub fn judge(schedule: &Schedule, history: &History, gate: Gate) -> Judgement {
    let seen = Seen::new(schedule, history);
    let in_the_way = setup::in_the_way(&seen);
    let expected = expect::findings(&seen, in_the_way.as_ref());
    let always: Vec<_> = CHECKS.iter().flat_map(|check| check.check(&seen)).collect();
    let unexplained = checks::explained(&seen, &always);
    // What no expectation asks for and nothing decides is no news.
    let always = always.into_iter().filter(|f| f.decision != Decision::Undecided || schedule.rules.contains(&f.rule));
    let mut findings = merge(expected.into_iter().chain(always).chain(unexplained));
    if schedule.rules == [id::KEY_HAS_AN_EFFECT] {
        // The case only asks whether there is anything to test; what else it meets is for the other cases to say.
        findings.retain(|finding| finding.rule == id::KEY_HAS_AN_EFFECT);
    }

    let failed = findings.iter().any(|finding| finding.fails(gate));
    let undecided = findings.iter().find(|finding| finding.decision == Decision::Undecided);
    let reason = in_the_way
        .or_else(|| undecided.map(|finding| Reason { why: finding.message.clone(), remedy: remedy(&seen, finding) }));
    let verdict = match (failed, &reason) {
        (true, _) => Verdict::Failed,
        (false, Some(_)) => Verdict::Inconclusive,
        (false, None) => Verdict::Passed,
    };
    findings.extend(rest(schedule, &findings, verdict, reason.as_ref()));
    sort(&mut findings);
    let reason = reason.filter(|_| verdict == Verdict::Inconclusive);
    Judgement { findings, verdict, reason, overlaps: overlap::measure(&seen) }
}

/// What makes an undecided finding decidable, as its expectation says it.
fn remedy(seen: &Seen<'_>, finding: &Finding) -> String {
    let attempts = seen.schedule.expect.iter().map(|expectation| expect::evaluate(seen, expectation));
    let effects = seen.schedule.effects.iter().map(|effects| expect::evaluate_effects(seen, effects));
    let found = attempts.chain(effects).find_map(|fit| match fit {
        expect::Fit::Maybe(reason) | expect::Fit::Unnamed(reason) if reason.why == finding.message => {
            Some(reason.remedy)
        }
        _ => None,
    });
    found.unwrap_or_else(|| {
        "give the operation `effects` with an `id` that is unique across tenants, and run again".into()
    })
}

/// The rules of the case that no expectation and no check speaks of. Where everything that the case expects came
/// out, they hold: that is what the case was written to show. Where the case says nothing, nor do they. Where it
/// failed for another rule, they are left open.
fn rest(schedule: &Schedule, findings: &[Finding], verdict: Verdict, reason: Option<&Reason>) -> Vec<Finding> {
    let (decision, message) = match (verdict, reason) {
        (Verdict::Passed, _) => (Decision::Held, "everything came out as the case expects".to_owned()),
        (Verdict::Inconclusive, Some(reason)) => (Decision::Undecided, reason.why.clone()),
        _ => return Vec::new(),
    };
    let open = schedule.rules.iter().filter(|rule| !findings.iter().any(|finding| finding.rule == **rule));
    open.map(|rule| Finding {
        rule: *rule,
        decision,
        message: message.clone(),
        expected: Vec::new(),
        observed: Vec::new(),
        attempts: Vec::new(),
        place: None,
    })
    .collect()
}

/// How bad a decision is for its rule. What is undecided outweighs what held: the rule was not shown in full.
fn rank(decision: Decision) -> u8 {
    match decision {
        Decision::Broken => 3,
        Decision::Deviation => 2,
        Decision::Undecided => 1,
        Decision::Held => 0,
    }
}

/// One finding per rule: the worst decision with the message of the first finding that has it, and the evidence of
/// all that have it.
fn merge(all: impl Iterator<Item = Finding>) -> Vec<Finding> {
    let mut merged: Vec<Finding> = Vec::new();
    for finding in all {
        match merged.iter_mut().find(|known| known.rule == finding.rule) {
            None => merged.push(finding),
            Some(known) if rank(finding.decision) > rank(known.decision) => *known = finding,
            Some(known) if finding.decision == known.decision => absorb(known, finding),
            Some(_) => {}
        }
    }
    sort(&mut merged);
    merged
}

fn absorb(known: &mut Finding, other: Finding) {
    fn add(to: &mut Vec<String>, from: Vec<String>) {
        for text in from {
            if to.len() < EVIDENCE && !to.contains(&text) {
                to.push(text);
            }
        }
    }
    add(&mut known.expected, other.expected);
    add(&mut known.observed, other.observed);
    add(&mut known.attempts, other.attempts);
    known.place = known.place.or(other.place);
}

fn sort(findings: &mut [Finding]) {
    let order = |finding: &Finding| crate::spec::RULES.iter().position(|rule| rule.id == finding.rule.as_str());
    findings.sort_by_key(|finding| (std::cmp::Reverse(rank(finding.decision)), order(finding)));
}

/// The verdict over several rounds of one case: the worst one wins, and a finding that not every round shows says
/// which ones do. `None` without a round.
pub fn combine(rounds: Vec<Judgement>) -> Option<Combined> {
    let of = rounds.len();
    let worst = rounds.iter().map(|judgement| judgement.verdict).max()?;
    let round = rounds.iter().position(|judgement| judgement.verdict == worst)?;
    let (reason, overlaps) = (rounds[round].reason.clone(), rounds[round].overlaps.clone());
    // The deciding round comes first, so that its words are the ones that stay.
    let order = std::iter::once(round).chain((0..of).filter(|index| *index != round));
    let all: Vec<_> = order.flat_map(|index| rounds[index].findings.iter().cloned()).collect();
    let mut findings = merge(all.into_iter());
    for finding in findings.iter_mut().filter(|finding| finding.decision != Decision::Held) {
        let shows = |judgement: &Judgement| {
            judgement.findings.iter().any(|other| other.rule == finding.rule && other.decision == finding.decision)
        };
        let which: Vec<_> =
            (0..of).filter(|index| shows(&rounds[*index])).map(|index| (index + 1).to_string()).collect();
        if which.len() < of {
            let word = if which.len() == 1 { "round" } else { "rounds" };
            finding.message = format!("{} (in {word} {} of {of})", finding.message, which.join(", "));
        }
    }
    Some(Combined { judgement: Judgement { findings, verdict: worst, reason, overlaps }, round })
}
