//! How often an intent has taken effect.

use std::{collections::BTreeSet, ops::RangeInclusive};

use super::seen::{Seen, unique_looking};
use crate::{
    history::{Attempt, Count, History, NOBODY, ProbeResult},
    judge::Reason,
    suite::Effects,
};

/// How the counts of several tenants relate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum View {
    /// Each tenant sees its own effects only, or there is one tenant.
    Own,
    /// Tenants may see each other's effects: so many there are in all.
    Shared(RangeInclusive<u64>),
}

/// The tenants that sent attempts of an intent.
pub(super) fn tenants<'a>(seen: &Seen<'a>, intent: &str) -> BTreeSet<&'a str> {
    // Nobody can be asked about nobody's effects.
    let own = |attempt: &&Attempt| attempt.intent == intent && attempt.tenant != NOBODY;
    seen.sent().filter(own).map(|attempt| attempt.tenant.as_str()).collect()
}

/// How many effects an intent has had, over all tenants that sent it.
pub(super) fn total(seen: &Seen<'_>, intent: &str) -> Result<RangeInclusive<u64>, Reason> {
    let counts = counts(seen, intent)?;
    Ok(match view(&counts) {
        View::Shared(range) => range,
        View::Own => {
            let sum = counts.iter().map(|count| count.effects).fold(0, u64::saturating_add);
            sum..=sum
        }
    })
}

/// The final count of each tenant that sent the intent.
pub(super) fn counts<'a>(seen: &Seen<'a>, intent: &str) -> Result<Vec<&'a Count>, Reason> {
    let tenants = tenants(seen, intent);
    if tenants.is_empty() {
        return Err(Reason {
            why: format!("nothing was sent for `{intent}`"),
            remedy: "see why the case stopped before it".into(),
        });
    }
    let of = |tenant: &str| match seen.history.final_count(intent, tenant).map(|probe| &probe.result) {
        Some(ProbeResult::Counted(count)) => Ok(count),
        Some(ProbeResult::Failed(why)) => Err(Reason {
            why: format!("the effects of `{intent}` could not be counted: {why}"),
            remedy: "check `effects` of the operation in the target file".into(),
        }),
        None => Err(Reason {
            why: format!("the effects of `{intent}` were not counted"),
            remedy: "give the operation `effects` in the target file: a GET that shows what was made".into(),
        }),
    };
    tenants.into_iter().map(of).collect()
}

/// Whether several tenants see each other's effects.
pub(super) fn view(counts: &[&Count]) -> View {
    let nonzero: Vec<_> = counts.iter().filter(|count| count.effects > 0).collect();
    if nonzero.len() < 2 {
        return View::Own;
    }
    let sum = nonzero.iter().map(|count| count.effects).fold(0, u64::saturating_add);
    let largest = nonzero.iter().map(|count| count.effects).max().unwrap_or(0);
    let ids: Vec<BTreeSet<_>> = nonzero.iter().map(|count| count.ids.iter().collect()).collect();
    if nonzero.iter().zip(&ids).any(|(count, ids)| ids.len() as u64 != count.effects) {
        return View::Shared(largest..=sum);
    }
    let distinct: BTreeSet<_> = ids.iter().flatten().collect();
    let distinct_count = distinct.len() as u64;
    if distinct_count == sum {
        return View::Own;
    }
    // Equal small numbers may also be effects that each tenant numbers for itself.
    let repeated = distinct.iter().filter(|id| ids.iter().filter(|set| set.contains(**id)).count() > 1);
    let sure = repeated.clone().all(|id| unique_looking(id));
    View::Shared(distinct_count..=if sure { distinct_count } else { sum })
}

/// The count that was taken right after an attempt.
pub(super) fn after(history: &History, attempt: &Attempt) -> Option<u64> {
    let purpose = format!("after {}", attempt.name);
    let probe = history.probes.iter().find(|probe| {
        probe.purpose == purpose
            && probe.intent == attempt.intent
            && probe.tenant == attempt.tenant
            && probe.began >= attempt.timing.ended
    })?;
    match &probe.result {
        ProbeResult::Counted(count) => Some(count.effects),
        ProbeResult::Failed(_) => None,
    }
}

/// The intent that an expectation about effects speaks of.
pub(super) fn intent<'a>(seen: &Seen<'a>, effects: &'a Effects) -> Option<&'a str> {
    effects.key.as_deref().or_else(|| {
        let first = seen.history.attempts.iter().find(|attempt| attempt.key.is_some());
        first.or(seen.history.attempts.first()).map(|attempt| attempt.intent.as_str())
    })
}

/// Whether the number of effects is one of those that are right; `None` if it may be.
pub(super) fn fits(total: &RangeInclusive<u64>, counts: &[u64]) -> Option<bool> {
    let within = counts.iter().filter(|count| total.contains(count)).count() as u64;
    match within {
        0 => Some(false),
        n if n == total.end() - total.start() + 1 => Some(true),
        _ => None,
    }
}
