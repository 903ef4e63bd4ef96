//! Whether an effect probe shows anything at all.
//!
//! A probe with a slip in its path or JSONPath counts nothing, ever. Judged by it, every success would be an effect
//! that was lost. So the probe of each operation is tried once before the cases: one keyed request that succeeds must
//! leave an effect that the probe counts. A server that loses every effect looks the same from outside; both are
//! told as a probe that shows nothing, and no count is believed.

use std::sync::Arc;

use crate::{
    history::{End, History, ProbeResult},
    schedule::{AttemptPlan, CaseId, Encoding, Extra, PlannedKey, Schedule, Step},
    suite::Place,
    target::{Operation, Target},
    text::Span,
};

const NAME: &str = "effect";

/// One keyed request of the operation's base payload, by the first tenant.
pub(super) fn schedule(operation: &Arc<Operation>, target: &Target) -> Schedule {
    let attempt = AttemptPlan {
        name: NAME.to_owned(),
        key: PlannedKey::Symbol(NAME.to_owned()),
        intent: NAME.to_owned(),
        role: "base".to_owned(),
        payload: operation.json.clone(),
        encoding: Encoding::Compact,
        tenant: target.default_tenant().name.clone(),
        node: 0,
        hook_headers: Vec::new(),
        fault: None,
        slow: None,
        server: None,
        timeout: target.limits.timeout,
        extra: Extra::default(),
    };
    Schedule {
        id: CaseId {
            suite: "set-up".to_owned(),
            case: "effect-probe".to_owned(),
            operation: operation.name.clone(),
            vary: None,
        },
        title: "The effect probe shows an effect".to_owned(),
        file: String::new(),
        place: Place { line: 1, column: 1 },
        tags: Vec::new(),
        rules: Vec::new(),
        operation: Arc::clone(operation),
        steps: vec![Step::Send { attempt: Box::new(attempt), until_settled: false }],
        given: Vec::new(),
        overlap: Vec::new(),
        expect: Vec::new(),
        effects: Vec::new(),
        exclusive: false,
        waits: Span::from_millis(0),
    }
}

/// Why the probe is not to be believed, if the history of [`schedule`] shows that.
pub(super) fn blind(operation: &Operation, history: &History) -> Option<String> {
    let attempt = history.attempt(NAME)?;
    let status = attempt.response.as_ref().filter(|_| attempt.end == End::Answered)?.status;
    let probe = history.final_count(NAME, &attempt.tenant)?;
    let ProbeResult::Counted(count) = &probe.result else { return None };
    (operation.success.contains(status) && count.effects == 0).then(|| {
        format!("the effect probe showed nothing after a request that was answered {status}, before any case was begun")
    })
}
