//! What the case itself expects: of attempts, of bursts and of effects.

use super::{
    Decision, Finding, Reason, classify, effects, overlap,
    seen::{Seen, fails},
    words,
};
use crate::{
    history::{Attempt, End},
    spec::{RuleId, id},
    suite::{Effects, Expectation, Place, Want, Word},
};

/// How an expectation came out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fit {
    /// As expected.
    Yes,
    /// Otherwise.
    No(Miss),
    /// Not decided.
    Maybe(Reason),
    /// All that is not known is which success was the execution; a right number of effects decides it.
    Unnamed(Reason),
}

/// What came instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Miss {
    message: String,
    expected: Vec<String>,
    observed: Vec<String>,
    attempts: Vec<String>,
}

/// How an expectation about attempts came out.
pub(super) fn evaluate(seen: &Seen<'_>, expectation: &Expectation) -> Fit {
    let fit = fit(seen, expectation);
    let Fit::Unnamed(reason) = fit else { return fit };
    let intent = overlap::called(seen, &expectation.name).first().map(|attempt| attempt.intent.as_str());
    let decided = seen.schedule.effects.iter().any(|expected| {
        effects::intent(seen, expected) == intent && matches!(evaluate_effects(seen, expected), Fit::Yes)
    });
    if decided { Fit::Yes } else { Fit::Maybe(reason) }
}

fn fit(seen: &Seen<'_>, expectation: &Expectation) -> Fit {
    let burst: Vec<_> = seen.history.burst(&expectation.name).collect();
    let members = if burst.is_empty() { seen.history.attempt(&expectation.name).into_iter().collect() } else { burst };
    if members.is_empty() {
        return Fit::Maybe(Reason {
            why: format!("`{}` was not sent", expectation.name),
            remedy: "see why the case stopped before it".into(),
        });
    }
    match &expectation.want {
        Want::AnyOf(wanted) => {
            let mut worst = Fit::Yes;
            for member in members {
                match one(seen, member, wanted) {
                    no @ Fit::No(_) => return no,
                    maybe @ Fit::Maybe(_) => worst = maybe,
                    unnamed @ Fit::Unnamed(_) if worst == Fit::Yes => worst = unnamed,
                    _ => {}
                }
            }
            worst
        }
        Want::Executions { executed, rest } => {
            executions(seen, &expectation.name, &members, usize::from(*executed), rest)
        }
    }
}

/// Whether one attempt came to one of these.
fn one(seen: &Seen<'_>, attempt: &Attempt, wanted: &[Word]) -> Fit {
    match seen.words(attempt).fit(wanted) {
        Some(true) if matches!(attempt.end, End::NotSent(_)) && attempt.fault.is_none() => unexpected(attempt),
        Some(true) => Fit::Yes,
        None => Fit::Unnamed(Reason {
            why: format!("nothing shows whether `{}` did the work or was given another attempt's answer", attempt.name),
            remedy: "declare the operation's `identity`, a replay marker, or `effects` in the target file".into(),
        }),
        Some(false) => instead(seen, attempt, wanted),
    }
}

/// What to make of an attempt that came to something else.
fn instead(seen: &Seen<'_>, attempt: &Attempt, wanted: &[Word]) -> Fit {
    let broken = |word: &Word| matches!(word, Word::Lost | Word::TimedOut | Word::ServerError);
    let made_to_fail = attempt.fault.is_some() || fails(attempt, "");
    if wanted.iter().all(broken) && made_to_fail {
        return Fit::Maybe(Reason {
            why: format!("`{}` was to be disturbed, and {}", attempt.name, words::ending(attempt)),
            remedy: "check that the hooks and the proxy of the target file reach the target".into(),
        });
    }
    if words::noise(attempt).is_some() {
        return unexpected(attempt);
    }
    if classify::hook_may_explain(seen, attempt) {
        return Fit::Maybe(Reason {
            why: format!(
                "`{}` {}, and the hook's header fields tell its request from the first one",
                attempt.name,
                words::ending(attempt)
            ),
            remedy: "declare the hook as a request of its own, if the API compares header fields as well".into(),
        });
    }
    Fit::No(Miss {
        message: format!("`{}` {}; expected {}", attempt.name, words::ending(attempt), words::names(wanted)),
        expected: wanted.iter().map(|word| words::name(*word).to_owned()).collect(),
        observed: vec![words::line(attempt)],
        attempts: vec![attempt.name.clone()],
    })
}

fn unexpected(attempt: &Attempt) -> Fit {
    Fit::Maybe(words::noise(attempt).unwrap_or_else(|| Reason {
        why: format!("`{}` {}", attempt.name, words::ending(attempt)),
        remedy: "look into the target's log for this request".into(),
    }))
}

/// Whether exactly so many members of a burst did the work, and all others came to one of `rest`.
fn executions(seen: &Seen<'_>, name: &str, members: &[&Attempt], wanted: usize, rest: &[Word]) -> Fit {
    let together = overlap::together(members);
    if together < 2 {
        return Fit::Maybe(no_overlap(name));
    }
    let of = |member: &Attempt| seen.words(member);
    let strangers: Vec<_> =
        members.iter().filter(|m| !of(m).may_be(Word::Executed) && of(m).fit(rest) == Some(false)).collect();
    for stranger in &strangers {
        if let no @ Fit::No(_) = instead(seen, stranger, rest) {
            return no;
        }
    }
    // Of overlapping equal answers one is called the execution: the words of the others do not have it.
    let sure = |m: &Attempt| {
        of(m).may_be(Word::Executed)
            && (of(m).is_either() || of(m).is_just(Word::Executed))
            && !rest.contains(&Word::Executed)
    };
    let unknown = |m: &Attempt| {
        of(m).is_just(Word::Lost)
            || of(m).is_just(Word::TimedOut)
            || (of(m).may_be(Word::Executed) && !of(m).is_either() && !of(m).is_just(Word::Executed))
    };
    let did = members.iter().filter(|m| sure(m)).count();
    let may_have = members.iter().filter(|m| unknown(m)).count();
    let miss = |count: usize| {
        Fit::No(Miss {
            message: format!(
                "{count} of {} attempts of `{name}` did the work; expected {wanted} ({together} were in flight together)",
                members.len()
            ),
            expected: vec![format!("{wanted} executed, the rest {}", words::names(rest))],
            observed: members.iter().map(|member| words::line(member)).collect(),
            attempts: members.iter().map(|member| member.name.clone()).collect(),
        })
    };
    if did > wanted {
        return miss(did);
    }
    if let Some(stranger) = strangers.first() {
        return unexpected(stranger);
    }
    if did + may_have < wanted && !rest.contains(&Word::Executed) {
        return miss(did + may_have);
    }
    if did == wanted && members.iter().all(|m| sure(m) || of(m).fit(rest) == Some(true)) {
        return Fit::Yes;
    }
    Fit::Unnamed(Reason {
        why: format!("nothing shows how many attempts of `{name}` did the work"),
        remedy: "declare the operation's `identity` or `effects` in the target file".into(),
    })
}

/// The reason of a case whose attempts were not in flight together.
pub(super) fn no_overlap(name: &str) -> Reason {
    Reason {
        why: format!("no overlap was measured for {name}"),
        remedy: "let the target's `slow` hook hold the handler, or run closer to the target".into(),
    }
}

/// How an expectation about effects came out.
pub(super) fn evaluate_effects(seen: &Seen<'_>, expected: &Effects) -> Fit {
    let Some(intent) = effects::intent(seen, expected) else {
        return Fit::Maybe(Reason { why: "nothing was sent".into(), remedy: "see why the case stopped".into() });
    };
    let total = match seen.total(intent) {
        Ok(total) => total,
        Err(reason) => return Fit::Maybe(reason),
    };
    match effects::fits(&total, &expected.counts) {
        Some(true) => Fit::Yes,
        None => Fit::Maybe(Reason {
            why: format!("the tenants' counts for `{intent}` do not show whether they count the same effects"),
            remedy: "give `effects` an `id` that is unique across tenants".into(),
        }),
        Some(false) => {
            let mine = seen.history.attempts.iter().filter(|attempt| attempt.intent == intent);
            let too_few = expected.counts.iter().all(|count| count > total.end());
            let disturbed = mine.clone().filter(|a| a.fault.is_none() && !fails(a, "")).find_map(words::noise);
            if let Some(reason) = disturbed.filter(|_| too_few) {
                return Fit::Maybe(reason);
            }
            let counts = expected.counts.iter().map(u64::to_string).collect::<Vec<_>>();
            let found = if total.start() == total.end() {
                total.start().to_string()
            } else {
                format!("{} to {}", total.start(), total.end())
            };
            Fit::No(Miss {
                message: format!("`{intent}` has taken effect {found} times; expected {}", counts.join(" or ")),
                expected: counts.iter().map(|count| format!("effects: {count}")).collect(),
                observed: mine.clone().map(words::line).chain([format!("effects of {intent}: {found}")]).collect(),
                attempts: mine.map(|attempt| attempt.name.clone()).collect(),
            })
        }
    }
}

/// The findings of all expectations of the case. While something stood in the way, nothing counts as broken.
pub(super) fn findings(seen: &Seen<'_>, in_the_way: Option<&Reason>) -> Vec<Finding> {
    let schedule = seen.schedule;
    let attempts = schedule.expect.iter().map(|e| (e.rule, e.place, &e.name, evaluate(seen, e), None));
    let none = String::new();
    let effects = schedule
        .effects
        .iter()
        .map(|e| (rule_of(seen, e), e.place, &none, evaluate_effects(seen, e), nothing_done(seen, e)));
    let mut findings: Vec<Finding> = Vec::new();
    for (rule, place, name, fit, nothing_done) in attempts.chain(effects) {
        let Some(rule) = rule.or(schedule.rules.first().copied()) else { continue };
        findings.push(finding(rule, place, name, fit, in_the_way.or(nothing_done.as_ref())));
    }
    findings
}

/// Rules that say that something is not done, or not done again. Too few effects break none of them.
const FORBIDDING: &[RuleId] = &[
    id::AT_MOST_ONE_EFFECT,
    id::DIFFERENT_REQUEST_NOT_SERVED,
    id::FAILURE_AFTER_EFFECT_NOT_REPEATED,
    id::LIVE_LEASE_NOT_TAKEN_OVER,
    id::MISSING_KEY_NO_EFFECT,
    id::PIPELINED_DUPLICATE_EXECUTES_ONCE,
    id::TRUNCATED_REQUEST_NOT_EXECUTED,
];

/// The rule that a wrong number of effects breaks, which one that forbids effects is not when there are too few.
fn rule_of(seen: &Seen<'_>, expected: &Effects) -> Option<RuleId> {
    let rule = expected.rule.or(seen.schedule.rules.first().copied())?;
    let Some(intent) = effects::intent(seen, expected) else { return Some(rule) };
    if !FORBIDDING.contains(&rule) || !too_few(seen, expected) {
        return Some(rule);
    }
    let acknowledged = seen.successes().any(|success| success.attempt.intent == intent);
    let other = || seen.schedule.rules.iter().copied().find(|other| !FORBIDDING.contains(other));
    if acknowledged { Some(id::ACKNOWLEDGED_EFFECT_EXISTS) } else { other().or(Some(rule)) }
}

fn too_few(seen: &Seen<'_>, expected: &Effects) -> bool {
    effects::intent(seen, expected).is_some_and(|intent| {
        seen.total(intent).is_ok_and(|total| expected.counts.iter().all(|count| count > total.end()))
    })
}

/// Why too few effects say nothing of a rule that forbids them.
fn nothing_done(seen: &Seen<'_>, expected: &Effects) -> Option<Reason> {
    let forbidding = rule_of(seen, expected).is_some_and(|rule| FORBIDDING.contains(&rule));
    (forbidding && too_few(seen, expected)).then(|| Reason {
        why: "no attempt did the work, and the rule says only what must not be done".into(),
        remedy: "see the answers of the attempts".into(),
    })
}

fn finding(rule: RuleId, place: Place, name: &str, fit: Fit, in_the_way: Option<&Reason>) -> Finding {
    let mut finding = Finding {
        rule,
        decision: Decision::Held,
        message: "came out as the case expects".into(),
        expected: Vec::new(),
        observed: Vec::new(),
        attempts: if name.is_empty() { Vec::new() } else { vec![name.to_owned()] },
        place: None,
    };
    match (fit, in_the_way) {
        (Fit::Yes, _) => {}
        (Fit::No(miss), reason) => {
            finding.decision = if reason.is_some() { Decision::Undecided } else { Decision::Broken };
            finding.message = match reason {
                Some(reason) => format!("{}; it says nothing, because {}", miss.message, reason.why),
                None => miss.message,
            };
            finding.expected = miss.expected;
            finding.observed = miss.observed;
            finding.attempts = miss.attempts;
            finding.place = Some(place);
        }
        (Fit::Maybe(reason) | Fit::Unnamed(reason), _) => {
            finding.decision = Decision::Undecided;
            finding.message = reason.why;
            finding.place = Some(place);
        }
    }
    finding
}
