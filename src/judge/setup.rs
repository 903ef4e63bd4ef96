//! What keeps a case from saying anything: a set-up that was not reached, a fault that did not strike.

use super::{Reason, expect, expect::Fit, overlap, seen::Seen, words};
use crate::{
    history::{Attempt, End, Witness},
    suite::{NetworkFault, Word},
};

/// The first thing that stood in the way of the case, if anything did.
pub(super) fn in_the_way(seen: &Seen<'_>) -> Option<Reason> {
    stopped(seen)
        .or_else(|| given(seen))
        .or_else(|| fault(seen))
        .or_else(|| time(seen))
        .or_else(|| not_together(seen))
        .or_else(|| vacuous(seen))
}

fn stopped(seen: &Seen<'_>) -> Option<Reason> {
    let why = seen.history.stopped.as_ref()?;
    Some(Reason {
        why: format!("the case stopped before its last step: {why}"),
        remedy: "remove what stopped it, and run again".into(),
    })
}

fn given(seen: &Seen<'_>) -> Option<Reason> {
    seen.schedule.given.iter().find_map(|expectation| {
        let attempt = seen.history.attempt(&expectation.name);
        match expect::evaluate(seen, expectation) {
            Fit::Yes => None,
            Fit::Maybe(reason) | Fit::Unnamed(reason) => Some(reason),
            Fit::No(_) => Some(Reason {
                why: match attempt {
                    Some(attempt) => {
                        format!("`{}` {}, so the case was not set up", attempt.name, words::ending(attempt))
                    }
                    None => format!("`{}` did not come out as the case needs it", expectation.name),
                },
                remedy: format!(
                    "check the payload and `success` of operation `{}` in the target file",
                    seen.schedule.id.operation
                ),
            }),
        }
    })
}

fn fault(seen: &Seen<'_>) -> Option<Reason> {
    seen.history.attempts.iter().find_map(|attempt| {
        let fault = attempt.fault.as_ref()?;
        let Witness::NotWitnessed(why) = &fault.witness else { return None };
        if fault.fault == NetworkFault::CutWhileRunning && shown_running(seen, attempt) {
            return None;
        }
        Some(Reason {
            why: format!("nothing shows that the fault on `{}` struck as meant: {why}", attempt.name),
            remedy: match fault.fault {
                NetworkFault::CutWhileRunning => {
                    "give the target a `slow` hook, or `effects`, so that the arrival of the request can be seen".into()
                }
                _ => "give the operation `effects`, and see that the proxy reaches the target".into(),
            },
        })
    })
}

/// Whether a refusal as in flight, for which nothing but this attempt can be the reason, shows that it had arrived.
fn shown_running(seen: &Seen<'_>, attempt: &Attempt) -> bool {
    seen.sent().filter(|other| seen.words(other).may_be(Word::InFlight)).any(|refused| {
        let rivals: Vec<_> = seen.rivals(refused).collect();
        let may_run =
            |other: &&&Attempt| seen.may_run_during(other, refused) && !seen.words(other).may_be(Word::InFlight);
        rivals.iter().any(|other| std::ptr::eq(*other, attempt)) && rivals.iter().filter(may_run).count() == 1
    })
}

fn time(seen: &Seen<'_>) -> Option<Reason> {
    let failed = seen.history.controls.iter().find_map(|control| control.failed.as_ref());
    failed.map(|why| Reason {
        why: format!("time could not be made to pass: {why}"),
        remedy: "check the `advance_clock` hook of the target file".into(),
    })
}

fn not_together(seen: &Seen<'_>) -> Option<Reason> {
    seen.schedule.overlap.iter().find_map(|names| {
        let (first, second) = overlap::apart(seen, names)?;
        let name = if first == second { format!("`{first}`") } else { format!("`{first}` and `{second}`") };
        Some(expect::no_overlap(&name))
    })
}

/// Nothing determinate: no attempt was answered, and no effect was counted.
fn vacuous(seen: &Seen<'_>) -> Option<Reason> {
    let answered = seen.history.attempts.iter().any(|attempt| attempt.end == End::Answered);
    let counted = seen.history.probes.iter().any(|p| matches!(p.result, crate::history::ProbeResult::Counted(_)));
    if answered || counted {
        return None;
    }
    Some(match seen.history.attempts.iter().find_map(words::noise) {
        Some(reason) => reason,
        None => Reason {
            why: "no attempt was answered and no effect was counted".into(),
            remedy: "give the operation `effects` in the target file".into(),
        },
    })
}
