//! Results without secrets. Texts are masked before they are cut, wrapped or escaped, because half a secret, or a
//! secret with a line break in it, would no longer be recognised.

use super::RunInfo;
use crate::{
    history::{
        Attempt, Body, Control, Count, Cut, End, FaultRecord, History, ParsedField, Probe, ProbeResult, Response,
        Witness,
    },
    judge::{CaseResult, Finding, Reason},
    schedule::CaseId,
    text::Redactor,
};

/// A text on its way out of the program.
pub(crate) fn redacted(redactor: &Redactor, text: String) -> String {
    redactor.redact(&text)
}

/// The response fields whose values are credentials, whoever made them.
const CREDENTIALS: [&str; 5] = ["set-cookie", "cookie", "authorization", "proxy-authorization", "x-api-key"];

/// A name on its way out of the program.
pub(super) fn mask_id(redactor: &Redactor, id: &mut CaseId) {
    let CaseId { suite, case, operation, vary } = id;
    mask(redactor, [suite, case, operation]);
    mask(redactor, vary.iter_mut().map(|(name, _)| name));
}

/// What is known of a run, without secrets.
pub(super) fn masked_run(redactor: &Redactor, run: &RunInfo) -> RunInfo {
    let mut run = run.clone();
    let RunInfo {
        run: id,
        target,
        nodes,
        profile,
        version,
        reference_faults,
        proxy,
        shard: _,
        cases: _,
        began_unix: _,
        again,
    } = &mut run;
    mask(redactor, [id, target, profile, version, proxy, again]);
    mask(redactor, nodes.iter_mut().chain(reference_faults));
    run
}

/// A result without secrets.
pub(super) fn masked_case(redactor: &Redactor, case: &CaseResult) -> CaseResult {
    let mut case = case.clone();
    // Every field is named here, so that a new one cannot be forgotten.
    let CaseResult {
        id,
        title,
        file,
        place: _,
        rules: _,
        verdict: _,
        reason,
        findings,
        millis: _,
        rounds: _,
        overlaps: _,
        failed_rounds: _,
        history,
    } = &mut case;
    mask_id(redactor, id);
    mask(redactor, [title, file]);
    if let Some(Reason { why, remedy }) = reason {
        mask(redactor, [why, remedy]);
    }
    for finding in findings {
        let Finding { rule: _, decision: _, message, expected, observed, attempts, place: _ } = finding;
        mask(redactor, std::iter::once(message).chain(expected).chain(observed).chain(attempts));
    }
    if let Some(history) = history {
        mask_history(redactor, history);
    }
    case
}

fn mask_history(redactor: &Redactor, history: &mut History) {
    let History { case, round: _, attempts, probes, controls, stopped } = history;
    mask_id(redactor, case);
    mask(redactor, stopped.as_mut());
    attempts.iter_mut().for_each(|attempt| mask_attempt(redactor, attempt));
    for probe in probes {
        let Probe { intent, reference, tenant, purpose, began: _, ended: _, result } = probe;
        mask(redactor, [intent, reference, tenant, purpose]);
        match result {
            ProbeResult::Counted(Count { effects: _, ids, polls: _ }) => mask(redactor, ids),
            ProbeResult::Failed(why) => mask(redactor, [why]),
        }
    }
    for control in controls {
        let Control { moved: _, began: _, ended: _, failed } = control;
        mask(redactor, failed.as_mut());
    }
}

fn mask_attempt(redactor: &Redactor, attempt: &mut Attempt) {
    let Attempt {
        name,
        burst,
        resend_of,
        operation,
        tenant,
        node: _,
        intent,
        key,
        key_field,
        reference,
        role,
        encoding: _,
        payload_sha256: _,
        value_sha256: _,
        request,
        payload,
        timing: _,
        bytes_out: _,
        bytes_in: _,
        end,
        response,
        fault,
        hooks,
        wire,
    } = attempt;
    mask(redactor, [name, operation, tenant, intent, reference, role, request, payload]);
    mask(redactor, [burst, resend_of, key, key_field, wire].into_iter().flatten().chain(hooks));
    match end {
        End::Answered | End::TimedOut => {}
        End::NotSent(said) | End::Unreadable(said) => mask(redactor, [said]),
        End::Lost(Cut { reset: _, said }) => mask(redactor, [said]),
    }
    if let Some(Response { status: _, fields, body, identity }) = response {
        let Body { length: _, sha256: _, text, complete: _ } = body;
        mask(redactor, std::iter::once(text).chain(identity));
        for ParsedField { name, value } in fields {
            if CREDENTIALS.contains(&name.as_str()) {
                "***".clone_into(value);
            }
            mask(redactor, [name, value]);
        }
    }
    if let Some(FaultRecord { fault: _, recipe, witness }) = fault {
        let (Witness::Witnessed(text) | Witness::NotWitnessed(text)) = witness;
        mask(redactor, [recipe, text]);
    }
}

fn mask<'a>(redactor: &Redactor, texts: impl IntoIterator<Item = &'a mut String>) {
    for text in texts {
        *text = redacted(redactor, std::mem::take(text));
    }
}
