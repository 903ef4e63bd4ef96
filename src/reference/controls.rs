//! What tests may ask for with header fields: slow handlers, hung owners, failures at a named moment.

use super::http::{Problem, problem};
use super::work::Halt;
use ::http::HeaderMap;
use sha2::{Digest, Sha256};
use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// A test may slow a handler or the payment network down by this much at most.
const LONGEST_DELAY: Duration = Duration::from_secs(60);

/// What the test headers of a request ask for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Controls {
    delay: Duration,
    /// The owner hangs: it does not renew its lease.
    pub(super) stall: bool,
    fail: Option<(Manner, Moment)>,
    /// Fail only this many times per tenant and reference.
    times: Option<u32>,
    network: Network,
}

/// What the payment network is asked to do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Network {
    delay: Duration,
    fail: Option<Moment>,
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

/// A moment in the life of a request at which it may fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Moment {
    /// Before any effect.
    Before,
    /// The first phase has committed, and no outside system has been called.
    Started,
    /// An outside system has done its work, and the phase that says so has not committed.
    Between,
    /// All is done, and the last commit has not begun.
    After,
    /// The last commit is done, and the answer has not been sent.
    Committed,
}

impl Moment {
    fn read(text: &str) -> Option<Self> {
        Some(match text {
            "before" => Self::Before,
            "started" => Self::Started,
            "between" => Self::Between,
            "after" => Self::After,
            "committed" => Self::Committed,
            _ => return None,
        })
    }

    fn name(self) -> &'static str {
        match self {
            Self::Before => "before the effect",
            Self::Started => "after the first phase",
            Self::Between => "between the call to the payment network and its record",
            Self::After => "after the effect",
            Self::Committed => "after the commit",
        }
    }
}

impl Controls {
    /// Reads the test headers; the error says what is wrong with one of them. `phased` says whether the operation has
    /// phases with a call to the payment network between them.
    pub(super) fn read(headers: &HeaderMap, phased: bool) -> Result<Self, String> {
        let text =
            |name| headers.get(name).map(|value| value.to_str().unwrap_or("").trim()).filter(|text| !text.is_empty());
        let delay = |name: &'static str| match text(name).map(|text| text.parse::<f64>().unwrap_or(f64::NAN)) {
            None => Ok(Duration::ZERO),
            Some(ms) if ms.is_finite() && ms >= 0.0 => {
                Ok(Duration::from_secs_f64((ms / 1000.0).min(LONGEST_DELAY.as_secs_f64())))
            }
            Some(_) => Err(format!("{name} must be a number of milliseconds, 0 or more")),
        };
        let stall = match text("x-test-stall") {
            None => false,
            Some("yes") => true,
            Some(_) => return Err("X-Test-Stall must be yes".into()),
        };
        let fail = match text("x-test-fail") {
            None => None,
            Some(text) => Some(failure(text).ok_or(
                "X-Test-Fail must be before, started, between or after, or one of these after throw- or crash-, or \
                 crash-committed",
            )?),
        };
        let times = match text("x-test-fail-times").map(str::parse) {
            None => None,
            Some(Ok(times)) => Some(times),
            Some(Err(_)) => return Err("X-Test-Fail-Times must be a whole number, 0 or more".into()),
        };
        let network_fail = match text("x-test-provider-fail") {
            None => None,
            Some("before") => Some(Moment::Before),
            Some("after") => Some(Moment::After),
            Some(_) => return Err("X-Test-Provider-Fail must be before or after".into()),
        };
        let network = Network { delay: delay("x-test-provider-delay-ms")?, fail: network_fail };
        let needs_phases =
            network != Network::default() || matches!(fail, Some((_, Moment::Started | Moment::Between)));
        if needs_phases && !phased {
            return Err("this operation calls no payment network, so nothing can happen around that call".into());
        }
        Ok(Self { delay: delay("x-test-delay-ms")?, stall, fail, times, network })
    }

    /// Whether the worker dies between the last commit and the answer. There is nothing left then that could be counted
    /// or tried again, so it dies each time.
    pub(super) fn dies_committed(self) -> bool {
        self.fail == Some((Manner::Crash, Moment::Committed))
    }

    /// What becomes of one run of the handler. Asking counts as one time.
    pub(super) fn fate(self, counts: &FailCounts, tenant: &str, reference: &str) -> Fate {
        let fails = |what| self.times.is_none_or(|times| counts.next(what, tenant, reference) <= times);
        Fate { delay: self.delay, fail: self.fail.filter(|_| fails("handler")) }
    }

    /// What becomes of one call to the payment network. Asking counts as one time.
    pub(super) fn network(self, counts: &FailCounts, tenant: &str, reference: &str) -> NetworkFate {
        let fails = |what| self.times.is_none_or(|times| counts.next(what, tenant, reference) <= times);
        let fail = self.network.fail.filter(|_| fails("network"));
        NetworkFate {
            delay: self.network.delay,
            fails_before: fail == Some(Moment::Before),
            fails_after: fail == Some(Moment::After),
        }
    }
}

fn failure(text: &str) -> Option<(Manner, Moment)> {
    let (manner, moment) = match text.split_once('-') {
        None if text == "crash" => (Manner::Crash, "before"),
        None => (Manner::Answer, text),
        Some(("throw", moment)) => (Manner::Throw, moment),
        Some(("crash", moment)) => (Manner::Crash, moment),
        Some(_) => return None,
    };
    // After the commit there is nothing left that could answer otherwise, so only a crash can be seen then.
    Moment::read(moment).filter(|moment| *moment != Moment::Committed || manner == Manner::Crash).map(|at| (manner, at))
}

/// What becomes of one run of a handler.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Fate {
    delay: Duration,
    fail: Option<(Manner, Moment)>,
}

impl Fate {
    /// Takes the time that was asked for.
    pub(super) async fn take_time(self) {
        // Even a sleep of no time waits for the next tick of the timer, 1 ms at most: no handler is faster than the
        // requests of a burst are apart, not even over a store in memory.
        tokio::time::sleep(self.delay).await;
    }

    /// Fails if this is the moment.
    pub(super) fn at(self, moment: Moment) -> Result<(), Halt> {
        match self.fail.filter(|(_, when)| *when == moment) {
            None => Ok(()),
            Some((Manner::Answer, _)) => {
                Err(Halt::Failed(problem(Problem::Internal, format!("failed {}", moment.name()))))
            }
            // Unwinds like a panic, without its message on the terminal: this one was asked for.
            Some((Manner::Throw, _)) => std::panic::resume_unwind(Box::new("X-Test-Fail")),
            Some((Manner::Crash, _)) => Err(Halt::Died),
        }
    }
}

/// What becomes of one call to the payment network.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct NetworkFate {
    pub(super) delay: Duration,
    /// It answers 502 and has done nothing.
    pub(super) fails_before: bool,
    /// It answers 502 and has done its work.
    pub(super) fails_after: bool,
}

/// How often something was asked to fail, per tenant and reference. The oldest counts are forgotten first.
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

    fn next(&self, what: &str, tenant: &str, reference: &str) -> u32 {
        let mut name = Sha256::new();
        for part in [what, tenant] {
            name.update((part.len() as u64).to_be_bytes());
            name.update(part);
        }
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    fn controls(pairs: &[(&'static str, &'static str)], phased: bool) -> Result<Controls, String> {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.insert(*name, value.parse().unwrap());
        }
        Controls::read(&headers, phased)
    }

    #[test]
    fn test_headers_are_read_and_capped() {
        assert_eq!(controls(&[], false).unwrap(), Controls::default());
        let all = [
            ("x-test-delay-ms", "1.5"),
            ("x-test-stall", "yes"),
            ("x-test-fail", "throw-between"),
            ("x-test-fail-times", "2"),
            ("x-test-provider-delay-ms", "1e300"),
            ("x-test-provider-fail", "after"),
        ];
        let expected = Controls {
            delay: Duration::from_micros(1500),
            stall: true,
            fail: Some((Manner::Throw, Moment::Between)),
            times: Some(2),
            network: Network { delay: LONGEST_DELAY, fail: Some(Moment::After) },
        };
        assert_eq!(controls(&all, true).unwrap(), expected);
        assert_eq!(controls(&[("x-test-fail", "crash")], false), controls(&[("x-test-fail", "crash-before")], false));
    }

    #[test]
    fn bad_test_headers_are_refused() {
        let bad = [
            ("x-test-delay-ms", "-1"),
            ("x-test-delay-ms", "inf"),
            ("x-test-delay-ms", "soon"),
            ("x-test-stall", "no"),
            ("x-test-fail", "later"),
            ("x-test-fail", "committed"),
            ("x-test-fail", "throw-committed"),
            ("x-test-fail", "crash-"),
            ("x-test-fail-times", "-1"),
            ("x-test-provider-fail", "between"),
            ("x-test-provider-delay-ms", "x"),
        ];
        for pair in bad {
            assert!(controls(&[pair], true).unwrap_err().to_lowercase().starts_with("x-test-"), "{pair:?}");
        }
        for pair in [("x-test-fail", "between"), ("x-test-fail", "crash-started"), ("x-test-provider-fail", "after")] {
            assert!(controls(&[pair], true).is_ok());
            assert!(controls(&[pair], false).unwrap_err().contains("payment network"));
        }
    }

    #[test]
    fn failures_are_counted_per_tenant_and_reference_within_bounds() {
        let counts = FailCounts::default();
        let next = |tenant, reference| counts.next("handler", tenant, reference);
        assert_eq!((next("a", "bc"), next("a", "bc"), next("ab", "c")), (1, 2, 1));
        assert_eq!(counts.next("network", "a", "bc"), 1);
        for i in 0..FailCounts::MOST {
            counts.next("handler", "x", &i.to_string());
        }
        let held = counts.held.lock().unwrap();
        assert_eq!((held.counts.len(), held.oldest_first.len()), (FailCounts::MOST, FailCounts::MOST));
    }
}
