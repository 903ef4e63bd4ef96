//! The business: what a payment is, how it is made, and the test headers that make it slow or fail.
//!
//! Nothing here knows about keys. The effect goes into a [`Work`], and whoever runs the handler commits it.

use super::core::Answer;
use super::fault::{Fault, FaultSet};
use super::http::{Problem, problem};
use super::policy::Ending;
use super::store::{Payment, Store, StoreError};
use ::http::HeaderMap;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The status of every payment made here.
pub(super) const APPROVED: &str = "approved";

/// A test may slow a handler down by this much at most.
const LONGEST_DELAY: Duration = Duration::from_secs(60);

/// What the test headers ask for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Controls {
    delay: Duration,
    fail: Option<(Manner, Moment)>,
    /// Fail only this many times per tenant and reference.
    times: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    /// The handler answers 500.
    Answer,
    /// The handler unwinds.
    Throw,
    /// The worker that serves the request dies.
    Crash,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Moment {
    Before,
    After,
}

impl Controls {
    /// Reads `X-Test-Delay-Ms`, `X-Test-Fail` and `X-Test-Fail-Times`; the error says what is wrong with one of them.
    pub(super) fn read(headers: &HeaderMap) -> Result<Self, String> {
        let text =
            |name| headers.get(name).map(|value| value.to_str().unwrap_or("").trim()).filter(|text| !text.is_empty());
        let delay = match text("x-test-delay-ms").map(|text| text.parse::<f64>().unwrap_or(f64::NAN)) {
            None => Duration::ZERO,
            Some(ms) if ms.is_finite() && ms >= 0.0 => {
                Duration::from_secs_f64((ms / 1000.0).min(LONGEST_DELAY.as_secs_f64()))
            }
            Some(_) => return Err("X-Test-Delay-Ms must be a number of milliseconds, 0 or more".into()),
        };
        let fail = match text("x-test-fail") {
            None => None,
            Some("before") => Some((Manner::Answer, Moment::Before)),
            Some("after") => Some((Manner::Answer, Moment::After)),
            Some("throw-before") => Some((Manner::Throw, Moment::Before)),
            Some("throw-after") => Some((Manner::Throw, Moment::After)),
            Some("crash" | "crash-before") => Some((Manner::Crash, Moment::Before)),
            Some("crash-after") => Some((Manner::Crash, Moment::After)),
            Some(_) => return Err("X-Test-Fail must be before, after, or one of these after throw- or crash-".into()),
        };
        let times = match text("x-test-fail-times").map(str::parse) {
            None => None,
            Some(Ok(times)) => Some(times),
            Some(Err(_)) => return Err("X-Test-Fail-Times must be a whole number, 0 or more".into()),
        };
        Ok(Self { delay, fail, times })
    }
}

/// How often a handler was asked to fail, per tenant and reference. The oldest counts are forgotten first.
#[derive(Debug, Default)]
pub(super) struct FailCounts {
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    counts: HashMap<[u8; 32], u32>,
    oldest_first: VecDeque<[u8; 32]>,
}

impl FailCounts {
    const MOST: usize = 10_000;

    fn next(&self, tenant: &str, reference: &str) -> u32 {
        let mut name = Sha256::new();
        name.update((tenant.len() as u64).to_be_bytes());
        name.update(tenant);
        name.update(reference);
        let name: [u8; 32] = name.finalize().into();
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let Held { counts, oldest_first } = &mut *held;
        if !counts.contains_key(&name) {
            oldest_first.push_back(name);
            if oldest_first.len() > Self::MOST {
                oldest_first.pop_front().map(|oldest| counts.remove(&oldest));
            }
        }
        let count = counts.entry(name).or_insert(0);
        *count = count.saturating_add(1);
        *count
    }
}

/// The unit of work of one execution: effects wait here for the commit, together with the completed record.
pub(super) struct Work {
    store: Arc<dyn Store>,
    faults: FaultSet,
    effects: Mutex<Vec<Payment>>,
}

impl Work {
    pub(super) fn new(store: Arc<dyn Store>, faults: FaultSet) -> Self {
        Self { store, faults, effects: Mutex::default() }
    }

    async fn add(&self, payment: Payment) -> Result<(), StoreError> {
        if self.faults.contains(Fault::RecordAfterEffect) {
            return self.store.commit(vec![payment]).await;
        }
        self.effects.lock().unwrap_or_else(PoisonError::into_inner).push(payment);
        Ok(())
    }

    /// The effects to commit; none are left.
    pub(super) fn take(&self) -> Vec<Payment> {
        std::mem::take(&mut self.effects.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// One run of the handler: who asks for what, and what tests ask for.
#[derive(Debug, Clone)]
pub(super) struct Order {
    pub(super) tenant: String,
    pub(super) body: Value,
    pub(super) controls: Controls,
}

/// How a run of the handler ended.
#[derive(Debug)]
pub(super) enum Run {
    /// It has an answer.
    Ended(Ending, Answer),
    /// Its worker died, so there is nobody to answer or to clean up.
    Died,
}

/// Makes a payment.
pub(super) async fn run(order: Order, work: Arc<Work>, counts: &FailCounts) -> Run {
    let Order { tenant, body, controls } = order;
    let payment = match validate(tenant, &body) {
        Ok(payment) => payment,
        Err(reason) => return Run::Ended(Ending::Rejected, problem(Problem::InvalidPayment, reason)),
    };
    let fail = controls
        .fail
        .filter(|_| controls.times.is_none_or(|times| counts.next(&payment.tenant, &payment.reference) <= times));
    tokio::time::sleep(controls.delay).await;
    if let Some(end) = fail_at(Moment::Before, fail) {
        return end;
    }
    if let Err(error) = work.add(payment.clone()).await {
        return Run::Ended(Ending::Failed, problem(Problem::StoreUnavailable, error.to_string()));
    }
    fail_at(Moment::After, fail).unwrap_or_else(|| created(&payment))
}

fn fail_at(moment: Moment, fail: Option<(Manner, Moment)>) -> Option<Run> {
    let (manner, _) = fail.filter(|(_, when)| *when == moment)?;
    Some(match manner {
        Manner::Answer => {
            let detail = match moment {
                Moment::Before => "failed before the effect",
                Moment::After => "failed after the effect",
            };
            Run::Ended(Ending::Failed, problem(Problem::Internal, detail))
        }
        // Unwinds like a panic, without its message on the terminal: this one was asked for.
        Manner::Throw => std::panic::resume_unwind(Box::new("X-Test-Fail")),
        Manner::Crash => Run::Died,
    })
}

fn validate(tenant: String, body: &Value) -> Result<Payment, &'static str> {
    let body = body.as_object().ok_or("the body must be a JSON object")?;
    let text = |name| body.get(name).and_then(Value::as_str);
    let amount = body.get("amount").and_then(Value::as_i64).filter(|amount| *amount > 0);
    let currency =
        text("currency").filter(|text| text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_alphabetic()));
    let reference = text("reference").filter(|text| !text.is_empty());
    Ok(Payment {
        id: format!("pay_{}", uuid::Uuid::new_v4().simple()),
        tenant,
        amount: amount.ok_or("amount must be a positive integer")?,
        currency: currency.ok_or("currency must have 3 letters")?.to_owned(),
        reference: reference.ok_or("reference must be a string that is not empty")?.to_owned(),
        status: APPROVED,
    })
}

fn created(payment: &Payment) -> Run {
    match serde_json::to_vec(payment) {
        Ok(body) => {
            let headers =
                [("content-type", "application/json".into()), ("location", format!("/payments/{}", payment.id))];
            let headers = headers.map(|(name, value)| (name.to_owned(), value)).to_vec();
            Run::Ended(Ending::Succeeded, Answer { status: 201, headers, body: body.into() })
        }
        Err(error) => Run::Ended(Ending::Failed, problem(Problem::Internal, error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use serde_json::json;

    fn controls(pairs: &[(&'static str, &'static str)]) -> Result<Controls, String> {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.insert(*name, value.parse().unwrap());
        }
        Controls::read(&headers)
    }

    #[test]
    fn test_headers_are_read_and_capped() {
        assert_eq!(controls(&[]).unwrap(), Controls::default());
        let all = [("x-test-delay-ms", "1.5"), ("x-test-fail", "throw-after"), ("x-test-fail-times", "2")];
        let expected =
            Controls { delay: Duration::from_micros(1500), fail: Some((Manner::Throw, Moment::After)), times: Some(2) };
        assert_eq!(controls(&all).unwrap(), expected);
        assert_eq!(controls(&[("x-test-delay-ms", "1e300")]).unwrap().delay, LONGEST_DELAY);
    }

    #[test]
    fn bad_test_headers_are_refused() {
        let bad = [
            ("x-test-delay-ms", "-1"),
            ("x-test-delay-ms", "inf"),
            ("x-test-delay-ms", "soon"),
            ("x-test-fail", "later"),
            ("x-test-fail-times", "-1"),
        ];
        for pair in bad {
            assert!(controls(&[pair]).unwrap_err().starts_with("X-Test-"), "{pair:?}");
        }
    }

    #[test]
    fn payments_are_validated() {
        let good = json!({"amount": 1, "currency": "TRY", "reference": "r", "more": [1]});
        assert_eq!(validate("t".into(), &good).unwrap().currency, "TRY");
        let bad = [
            json!([]),
            json!(null),
            json!({}),
            json!({"amount": 0, "currency": "TRY", "reference": "r"}),
            json!({"amount": 1.0, "currency": "TRY", "reference": "r"}),
            json!({"amount": "1", "currency": "TRY", "reference": "r"}),
            json!({"amount": true, "currency": "TRY", "reference": "r"}),
            json!({"amount": u64::MAX, "currency": "TRY", "reference": "r"}),
            json!({"amount": 1, "currency": "TR", "reference": "r"}),
            json!({"amount": 1, "currency": "T1Y", "reference": "r"}),
            json!({"amount": 1, "currency": "TRY", "reference": ""}),
            json!({"amount": 1, "currency": "TRY"}),
        ];
        for body in bad {
            assert!(validate("t".into(), &body).is_err(), "{body}");
        }
    }

    #[test]
    fn failures_are_counted_per_tenant_and_reference_within_bounds() {
        let counts = FailCounts::default();
        assert_eq!((counts.next("a", "bc"), counts.next("a", "bc"), counts.next("ab", "c")), (1, 2, 1));
        for i in 0..FailCounts::MOST {
            counts.next("x", &i.to_string());
        }
        let held = counts.held.lock().unwrap();
        assert_eq!((held.counts.len(), held.oldest_first.len()), (FailCounts::MOST, FailCounts::MOST));
    }
}
