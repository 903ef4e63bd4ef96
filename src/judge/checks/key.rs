//! Rules about requests without a key, and about whether a key has any effect.

use std::collections::BTreeSet;

use super::{Check, found};
use crate::{
    judge::{
        Decision, Finding, classify,
        seen::{Seen, answer, outside},
    },
    spec::id,
};

/// Whether sending a key has any effect at all. Only a case that asks for it is told.
///
/// Without effect means: the same request twice and a different one, all under one key and one after the other, were
/// all answered with success, each with an identity of its own, and none with the documented marker.
pub(super) struct Effect;

impl Check for Effect {
    fn check(&self, seen: &Seen<'_>) -> Vec<Finding> {
        if !seen.schedule.rules.contains(&id::KEY_HAS_AN_EFFECT) {
            return Vec::new();
        }
        let attempts: Vec<_> = seen.sent().filter(|attempt| attempt.key.is_some()).collect();
        let successes: Vec<_> = attempts.iter().filter_map(|attempt| seen.success(attempt)).collect();
        let identities: BTreeSet<_> = successes.iter().filter_map(|success| success.identity).collect();
        let named = successes.iter().filter(|success| success.identity.is_some()).count();
        let marked = successes.iter().any(|success| classify::marked(seen, success.response) == Some(true));
        let roles: BTreeSet<_> = attempts.iter().map(|attempt| attempt.role.as_str()).collect();
        let effects = attempts.first().and_then(|attempt| seen.total(&attempt.intent).ok());
        let each = |count: u64| usize::try_from(count) == Ok(attempts.len());
        // Without identities, only effects tell a new operation from an old answer.
        let all_new = attempts.len() >= 3
            && roles.len() >= 2
            && successes.len() == attempts.len()
            && (identities.len() == attempts.len()
                || (named == 0 && effects.as_ref().is_some_and(|e| each(*e.start()))));
        let fewer = effects.as_ref().is_some_and(|e| !successes.is_empty() && !each(*e.end()));
        let refused = !successes.is_empty()
            && attempts.iter().any(|attempt| answer(attempt).is_some_and(|r| (400..500).contains(&r.status)));
        let (decision, message) = if all_new && !marked {
            let message = format!("each of {} requests under one key was an operation of its own", attempts.len());
            (Decision::Broken, format!("{message}, whatever its payload: the key has no effect"))
        } else if identities.len() < named || marked || refused || fewer {
            (Decision::Held, "a used key is not treated like a new one".to_owned())
        } else {
            return vec![found(
                id::KEY_HAS_AN_EFFECT,
                Decision::Undecided,
                "neither answers nor effects tell whether the key made a difference".to_owned(),
                &attempts,
            )];
        };
        vec![found(id::KEY_HAS_AN_EFFECT, decision, message, &attempts)]
    }
}

/// What a request without a key gets.
pub(super) struct MissingKey;

impl Check for MissingKey {
    fn check(&self, seen: &Seen<'_>) -> Vec<Finding> {
        let key = &seen.policy.key;
        let required = key.required.known().copied();
        let mut findings = Vec::new();
        for attempt in seen.sent().filter(|attempt| attempt.key_field.is_none()) {
            let Some(response) = answer(attempt).filter(|response| !outside(response.status)) else { continue };
            let status = response.status;
            let mut add = |rule, decision| {
                let message = format!("`{}` without a key was answered {status}", attempt.name);
                let shown = if decision == Decision::Held { &[][..] } else { std::slice::from_ref(&attempt) };
                findings.push(found(rule, decision, message, shown));
            };
            if seen.success(attempt).is_some() {
                if let Some(required) = required {
                    let decision = if required { Decision::Broken } else { Decision::Held };
                    add(id::MISSING_KEY_AS_DOCUMENTED, decision);
                }
                continue;
            }
            // The control: a request of the same kind with a key was accepted, so that this refusal is for the key.
            let control = seen.successes().any(|s| s.attempt.key.is_some() && s.attempt.role == attempt.role);
            let known = key.missing_status.contains(status);
            let for_the_key = control || (known && required == Some(true));
            if !(400..500).contains(&status) || !for_the_key {
                continue;
            }
            match required {
                Some(true) => {
                    add(id::MISSING_KEY_AS_DOCUMENTED, if known { Decision::Held } else { Decision::Broken });
                    add(
                        id::MISSING_KEY_IS_400,
                        match status {
                            400 => Decision::Held,
                            _ if known => Decision::Deviation,
                            _ => Decision::Broken,
                        },
                    );
                }
                Some(false) => add(id::MISSING_KEY_AS_DOCUMENTED, Decision::Broken),
                None if status == 400 => add(id::MISSING_KEY_IS_400, Decision::Held),
                None => {}
            }
        }
        findings
    }
}
