//! A short way to write histories. Times are in milliseconds.

use std::{collections::BTreeMap, sync::Arc};

use idemproof::{
    history::{
        Attempt, Body, Control, Count, Cut, End, FaultRecord, History, ParsedField, Probe, ProbeResult, Response,
        Timing, Witness,
    },
    judge::{Decision, Gate, Judgement, judge},
    schedule::{CaseId, Encoding, Schedule, TimeMove},
    spec::RuleId,
    suite::{Effects, Expectation, NetworkFault, Place, Want, Window, Word},
    target::{Documented, Operation, Policy, StatusSet},
    text::{Span, Template},
};

pub(crate) const PLACE: Place = Place { line: 7, column: 3 };

/// A world: a schedule and a history that are built together.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) schedule: Schedule,
    pub(crate) history: History,
}

pub(crate) fn world(policy: Policy) -> World {
    let id = CaseId { suite: "s".into(), case: "c".into(), operation: "create".into(), vary: None };
    let operation = Operation {
        name: "create".into(),
        method: "POST".parse().unwrap(),
        path: Template::literal("/payments"),
        json: None,
        headers: Vec::new(),
        variants: BTreeMap::new(),
        success: StatusSet::class(2),
        identity: serde_json_path::JsonPath::parse("$.id").unwrap(),
        effects: None,
        policy,
    };
    World {
        schedule: Schedule {
            id: id.clone(),
            title: String::new(),
            file: "s.yaml".into(),
            place: PLACE,
            tags: Vec::new(),
            rules: Vec::new(),
            operation: Arc::new(operation),
            steps: Vec::new(),
            given: Vec::new(),
            overlap: Vec::new(),
            expect: Vec::new(),
            effects: Vec::new(),
            exclusive: false,
            waits: Span::from_millis(0),
        },
        history: History {
            case: id,
            round: 0,
            attempts: Vec::new(),
            probes: Vec::new(),
            controls: Vec::new(),
            stopped: None,
        },
    }
}

pub(crate) fn hash(text: &str) -> String {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

/// An identity that looks unique.
pub(crate) fn id(number: u64) -> String {
    format!("\"pay_{number:08x}\"")
}

/// An attempt with key `k`, payload `base` and tenant `default`, answered within these milliseconds.
pub(crate) fn sent(name: &str, from: u64, to: u64) -> Attempt {
    let attempt = Attempt {
        name: name.into(),
        burst: None,
        resend_of: None,
        operation: "create".into(),
        tenant: "default".into(),
        node: 0,
        intent: "k".into(),
        key: Some("k".into()),
        key_field: Some("\"key-of-k\"".into()),
        reference: "idp-run-k".into(),
        role: String::new(),
        encoding: Encoding::Compact,
        payload_sha256: String::new(),
        value_sha256: String::new(),
        request: "POST /payments".into(),
        payload: String::new(),
        timing: Timing {
            opened: from * 1000,
            first_out: Some(from * 1000),
            last_out: Some(from * 1000),
            first_in: Some(to * 1000),
            ended: to * 1000,
        },
        bytes_out: 100,
        bytes_in: 100,
        end: End::Answered,
        response: None,
        fault: None,
        hooks: Vec::new(),
        wire: None,
    };
    attempt.role("base")
}

/// Changes to an attempt, one word each.
pub(crate) trait Build: Sized {
    fn role(self, role: &str) -> Self;
    fn key(self, key: &str) -> Self;
    fn keyless(self) -> Self;
    fn raw(self, field: &str) -> Self;
    fn tenant(self, tenant: &str) -> Self;
    fn ok(self, number: u64) -> Self;
    fn answer(self, status: u16, body: &str) -> Self;
    fn status(self, status: u16) -> Self;
    fn field(self, name: &str, value: &str) -> Self;
    fn identity(self, identity: Option<String>) -> Self;
    fn lost(self) -> Self;
    fn timed_out(self) -> Self;
    fn fault(self, fault: NetworkFault, hit: bool) -> Self;
    fn hook(self, hook: &str) -> Self;
    fn burst(self, name: &str) -> Self;
}

impl Build for Attempt {
    /// `base:spaced` is `base` in other bytes.
    fn role(mut self, role: &str) -> Self {
        let value = role.split(':').next().unwrap();
        self.role = role.into();
        self.value_sha256 = hash(&format!("{value} {}", self.reference));
        self.payload_sha256 = hash(&format!("{role} {}", self.reference));
        self
    }
    fn key(mut self, key: &str) -> Self {
        self.intent = key.into();
        self.key = Some(key.into());
        self.key_field = Some(format!("\"key-of-{key}\""));
        self.reference = format!("idp-run-{key}");
        let role = self.role.clone();
        self.role(&role)
    }
    fn keyless(mut self) -> Self {
        self.intent = self.name.clone();
        self.key = None;
        self.key_field = None;
        self.reference = format!("idp-run-{}", self.name);
        let role = self.role.clone();
        self.role(&role)
    }
    fn raw(self, field: &str) -> Self {
        let mut attempt = self.keyless();
        attempt.key_field = Some(field.into());
        attempt
    }
    fn tenant(mut self, tenant: &str) -> Self {
        self.tenant = tenant.into();
        self
    }
    fn ok(self, number: u64) -> Self {
        let body = format!("{{\"id\":{}}}", id(number));
        let location = format!("/payments/{number}");
        let answered = self.answer(201, &body).identity(Some(id(number)));
        answered.field("location", &location).field("content-type", "application/json")
    }
    fn answer(mut self, status: u16, body: &str) -> Self {
        let body = Body { length: body.len() as u64, sha256: hash(body), text: body.into(), complete: true };
        self.response = Some(Response { status, fields: Vec::new(), body, identity: None });
        self.end = End::Answered;
        self
    }
    fn status(mut self, status: u16) -> Self {
        self.response.as_mut().unwrap().status = status;
        self
    }
    fn field(mut self, name: &str, value: &str) -> Self {
        let fields = &mut self.response.as_mut().unwrap().fields;
        fields.retain(|field| field.name != name);
        if !value.is_empty() {
            fields.push(ParsedField { name: name.into(), value: value.into() });
        }
        self
    }
    fn identity(mut self, identity: Option<String>) -> Self {
        self.response.as_mut().unwrap().identity = identity;
        self
    }
    fn lost(mut self) -> Self {
        self.response = None;
        self.timing.first_in = None;
        self.end = End::Lost(Cut { reset: true, said: "connection reset".into() });
        self
    }
    fn timed_out(mut self) -> Self {
        self.response = None;
        self.timing.first_in = None;
        self.end = End::TimedOut;
        self
    }
    fn fault(mut self, fault: NetworkFault, hit: bool) -> Self {
        let text = "as seen by the probe".to_owned();
        let witness = if hit { Witness::Witnessed(text) } else { Witness::NotWitnessed(text) };
        self.fault = Some(FaultRecord { fault, recipe: "cut".into(), witness });
        self
    }
    fn hook(mut self, hook: &str) -> Self {
        self.hooks.push(hook.into());
        self
    }
    fn burst(mut self, name: &str) -> Self {
        self.burst = Some(name.into());
        self
    }
}

impl World {
    pub(crate) fn with(mut self, attempts: impl IntoIterator<Item = Attempt>) -> Self {
        self.history.attempts.extend(attempts);
        self
    }

    /// The final count of an intent as a tenant sees it.
    pub(crate) fn count(self, intent: &str, tenant: &str, ids: &[String]) -> Self {
        let count = Count { effects: ids.len() as u64, ids: ids.to_vec(), polls: 3 };
        self.probe(intent, tenant, "final", u64::MAX / 2000, ProbeResult::Counted(count))
    }

    pub(crate) fn number(self, intent: &str, tenant: &str, effects: u64) -> Self {
        let count = Count { effects, ids: Vec::new(), polls: 3 };
        self.probe(intent, tenant, "final", u64::MAX / 2000, ProbeResult::Counted(count))
    }

    pub(crate) fn probe(mut self, intent: &str, tenant: &str, purpose: &str, at: u64, result: ProbeResult) -> Self {
        self.history.probes.push(Probe {
            intent: intent.into(),
            reference: format!("idp-run-{intent}"),
            tenant: tenant.into(),
            purpose: purpose.into(),
            began: at * 1000,
            ended: at * 1000,
            result,
        });
        self
    }

    /// Time moved by the hook.
    pub(crate) fn pass(mut self, at: u64, span: Span, past: Option<Window>) -> Self {
        self.history.controls.push(Control {
            moved: TimeMove { span, by_hook: true, past },
            began: at * 1000,
            ended: at * 1000,
            failed: None,
        });
        self
    }

    pub(crate) fn rules(mut self, rules: &[RuleId]) -> Self {
        self.schedule.rules = rules.to_vec();
        self
    }

    pub(crate) fn expect(mut self, name: &str, words: &[Word]) -> Self {
        self.schedule.expect.push(any_of(name, words));
        self
    }

    pub(crate) fn given(mut self, name: &str, words: &[Word]) -> Self {
        self.schedule.given.push(any_of(name, words));
        self
    }

    pub(crate) fn executions(mut self, name: &str, executed: u16, rest: &[Word]) -> Self {
        let want = Want::Executions { executed, rest: rest.to_vec() };
        self.schedule.expect.push(Expectation { name: name.into(), want, rule: None, place: PLACE });
        self
    }

    pub(crate) fn effects(mut self, counts: &[u64]) -> Self {
        self.schedule.effects.push(Effects { key: None, counts: counts.to_vec(), rule: None, place: PLACE });
        self
    }

    pub(crate) fn judged(&self) -> Judgement {
        judge(&self.schedule, &self.history, Gate::default())
    }

    /// What was decided about a rule.
    pub(crate) fn decided(&self, rule: RuleId) -> Option<Decision> {
        self.judged().findings.iter().find(|finding| finding.rule == rule).map(|finding| finding.decision)
    }

    /// The rules that are broken.
    pub(crate) fn broken(&self) -> Vec<&'static str> {
        let judged = self.judged();
        let broken = judged.findings.iter().filter(|finding| finding.decision == Decision::Broken);
        broken.map(|finding| finding.rule.as_str()).collect()
    }
}

fn any_of(name: &str, words: &[Word]) -> Expectation {
    Expectation { name: name.into(), want: Want::AnyOf(words.to_vec()), rule: None, place: PLACE }
}

pub(crate) fn policy(change: impl FnOnce(&mut Policy)) -> Policy {
    let mut policy = Policy::default();
    change(&mut policy);
    policy
}

pub(crate) fn ms(span: u64) -> Documented<Span> {
    Documented::As(Span::from_millis(span))
}
