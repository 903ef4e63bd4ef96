//! Rules about requests without a key.

use super::{Check, found};
use crate::{
    judge::{
        Decision, Finding,
        seen::{Seen, answer, outside},
    },
    spec::id,
};

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
