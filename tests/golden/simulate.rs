//! Simulated servers: right ones are never accused, and each kind of wrong one is convicted often enough.
//!
//! A server is a state machine per tenant and key. Requests arrive after a random delay, take a random time, and
//! some callers go away early. Everything is drawn from a fixed seed.

use std::collections::BTreeMap;

use idemproof::{
    history::{Attempt, Cut, End, Header, Writer, read},
    judge::{Decision, Gate, Judgement, Verdict, judge},
    spec::{RuleId, id},
    suite::{
        NetworkFault, Window,
        Word::{Executed, Replay, ServerError, Success},
    },
    target::{Disposal, Documented, InFlight, Mismatch, Policy},
    text::Span,
};

use crate::build::{Build, World, id as pay, ms, policy, sent, world};

const HOUR: u64 = 3_600_000;

/// A small generator of numbers (splitmix64), so that the histories are the same on every machine.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bug {
    None,
    Race,
    MismatchIgnored,
    CrossTenant,
    StatusDrift,
    PinnedFailure,
    RetentionShort,
    Wedge,
    RecordAfterEffect,
}

#[derive(Debug, Clone, Copy)]
struct Config {
    bug: Bug,
    waits: bool,
    stores: bool,
}

impl Config {
    fn draw(bug: Bug, dice: &mut Dice) -> Self {
        let stores = dice.one_in(2) && !matches!(bug, Bug::PinnedFailure | Bug::Wedge);
        Self { bug, waits: dice.one_in(2), stores }
    }

    /// What this server documents; now and then it documents less.
    fn policy(self, dice: &mut Dice) -> Policy {
        let (flight, different) = (!dice.one_in(4), !dice.one_in(4));
        policy(|p| {
            if flight {
                p.in_flight = Documented::As(if self.waits { InFlight::Wait } else { InFlight::Refuse });
            }
            if different {
                p.mismatch = Documented::As(Mismatch::Refuse);
            }
            p.failure_before_effect = Documented::As(if self.stores { Disposal::Store } else { Disposal::Release });
            p.retention = ms(HOUR);
            p.lease = ms(30_000);
        })
    }
}

/// What a caller does.
#[derive(Debug, Clone)]
struct Call {
    name: String,
    tenant: &'static str,
    key: &'static str,
    role: &'static str,
    at: u64,
    there: u64,
    service: u64,
    back: u64,
    /// Gone this long after the request was sent.
    gone: Option<u64>,
    fails: bool,
}

#[derive(Debug, Clone)]
struct Record {
    role: &'static str,
    since: u64,
    /// When the owner is done; its answer holds from then on.
    until: u64,
    status: u16,
    number: u64,
    released: bool,
}

/// Performs the calls; `moved` is when the clock was moved past the retention, if it was.
fn perform(config: Config, calls: &[Call], moved: Option<u64>, world: World) -> World {
    let mut order: Vec<&Call> = calls.iter().collect();
    order.sort_by_key(|call| call.at + call.there);
    let mut records: BTreeMap<(&str, &str), Record> = BTreeMap::new();
    let mut effects: BTreeMap<(&str, &str), Vec<String>> = BTreeMap::new();
    let mut attempts: Vec<Attempt> = Vec::new();
    let mut number = 0;
    for call in order {
        let now = call.at + call.there;
        let tenant = if config.bug == Bug::CrossTenant { "any" } else { call.tenant };
        let place = (tenant, call.key);
        let expired = |record: &Record| {
            let moved = moved.is_some_and(|moved| record.until < moved && moved <= now);
            moved || (config.bug == Bug::RetentionShort && record.until + 5 <= now)
        };
        let free = |record: &Record| (record.released && record.until <= now) || expired(record);
        let record = records.get(&place).filter(|record| !free(record)).cloned();
        let raced = |record: &Record| config.bug == Bug::Race && now < record.since + 3;
        let (status, answer, at) = match record.filter(|record| !raced(record)) {
            None => {
                number += 1;
                let until = now + call.service;
                let lost_record = config.bug == Bug::RecordAfterEffect && call.gone.is_some();
                let (status, released) = match (call.fails, config.bug) {
                    (true, Bug::PinnedFailure) => (500, false),
                    (true, _) => (500, !config.stores),
                    (false, _) => (201, lost_record),
                };
                if !call.fails {
                    effects.entry((call.tenant, call.key)).or_default().push(pay(number));
                }
                let forever = call.fails && config.bug == Bug::Wedge;
                let (until_record, released) = if forever { (u64::MAX, false) } else { (until, released) };
                let record = Record { role: call.role, since: now, until: until_record, status, number, released };
                records.insert(place, record);
                (status, number, until)
            }
            Some(record) if record.role != call.role && config.bug != Bug::MismatchIgnored => (422, 0, now),
            Some(record) if record.until > now && (!config.waits || record.until == u64::MAX) => (409, 0, now),
            Some(record) => {
                let drifts = config.bug == Bug::StatusDrift && record.status == 201;
                (if drifts { 200 } else { record.status }, record.number, now.max(record.until))
            }
        };
        attempts.push(recorded(call, status, answer, at + call.back));
    }
    attempts.sort_by_key(|attempt| attempt.timing.opened);
    let mut world = world.with(attempts);
    for key in ["k", "l"] {
        for tenant in ["default", "other"] {
            world = world.count(key, tenant, effects.get(&(tenant, key)).map_or(&[][..], |ids| ids));
        }
    }
    match moved {
        Some(at) => world.pass(at, Span::from_millis(HOUR + HOUR / 10), Some(Window::Retention)),
        None => world,
    }
}

fn recorded(call: &Call, status: u16, number: u64, ended: u64) -> Attempt {
    let ended = ended.max(call.at + 1);
    let attempt = sent(&call.name, call.at, ended).key(call.key).role(call.role).tenant(call.tenant);
    let mut attempt = match status {
        200 | 201 => attempt.ok(number).status(status),
        _ => attempt.answer(status, "refused"),
    };
    if call.fails {
        attempt = attempt.hook("fail before");
    }
    if let Some(gone) = call.gone.filter(|gone| call.at + gone < ended) {
        attempt.timing.ended = (call.at + gone) * 1000;
        attempt.timing.first_in = None;
        attempt.end = End::Lost(Cut { reset: false, said: "closed".into() });
        attempt.response = None;
        attempt = attempt.fault(NetworkFault::LoseResponse, true);
    }
    attempt
}

/// Any calls at any time; nothing is expected but what holds always.
fn soup(config: Config, dice: &mut Dice) -> World {
    let count = 2 + dice.below(8);
    let moved = dice.one_in(4).then_some(50_000);
    let tight = dice.one_in(2);
    let calls: Vec<_> = (0..count)
        .map(|index| {
            let span = if tight { 4 } else { 80 };
            let late = moved.is_some() && dice.one_in(2);
            Call {
                name: format!("a{index}"),
                tenant: if dice.one_in(4) { "other" } else { "default" },
                key: if dice.one_in(6) { "l" } else { "k" },
                role: if dice.one_in(5) { "changed" } else { "base" },
                at: 1000 + if late { 60_000 } else { 0 } + dice.below(span),
                there: dice.below(4),
                service: 1 + dice.below(20),
                back: 1 + dice.below(4),
                gone: dice.one_in(5).then(|| 1 + dice.below(30)),
                fails: dice.one_in(6),
            }
        })
        .collect();
    perform(config, &calls, moved, world(config.policy(dice)))
}

/// One call after the other, the first one disturbed, and what must come of it.
fn story(config: Config, dice: &mut Dice) -> World {
    let disturbed = dice.below(3);
    let call = |name: &str, at: u64| Call {
        name: name.into(),
        tenant: "default",
        key: "k",
        role: "base",
        at,
        there: 1,
        service: 10,
        back: 1,
        gone: None,
        fails: false,
    };
    let mut first = call("first", 1000);
    first.fails = disturbed == 1;
    first.gone = (disturbed == 2).then_some(5);
    let calls = [first, call("retry", 1100 + dice.below(50)), call("again", 1300)];
    let world = world(config.policy(dice));
    let world = match (disturbed, config.stores) {
        (0, _) => world.expect("first", &[Executed]).expect("retry", &[Replay]).effects(&[1]),
        (1, true) => world.expect("retry", &[ServerError]).effects(&[0]),
        (1, false) => world.expect("retry", &[Executed]).expect("again", &[Replay]).effects(&[1]),
        _ => world.expect("retry", &[Success]).expect("again", &[Replay]).effects(&[1]),
    };
    let rule = if disturbed == 1 { id::FAILURE_BEFORE_EFFECT_AS_DOCUMENTED } else { id::LOST_RESPONSE_RECOVERABLE };
    perform(config, &calls, None, world.rules(&[rule]))
}

fn strictly(world: &World) -> Judgement {
    judge(&world.schedule, &world.history, Gate { strict_draft: true })
}

fn each(bug: Bug, rounds: usize, mut visit: impl FnMut(Config, World)) {
    let mut dice = Dice(2026);
    for round in 0..rounds {
        let config = Config::draw(bug, &mut dice);
        let world = if round % 2 == 0 { soup(config, &mut dice) } else { story(config, &mut dice) };
        visit(config, world);
    }
}

#[test]
fn a_right_server_is_never_accused() {
    let mut passed = 0;
    each(Bug::None, 6000, |config, world| {
        let judged = strictly(&world);
        let accused = judged.findings.iter().any(|f| matches!(f.decision, Decision::Broken | Decision::Deviation));
        assert!(!accused && judged.verdict != Verdict::Failed, "{config:?} {judged:#?} {:#?}", world.history);
        passed += usize::from(judged.verdict == Verdict::Passed);
    });
    assert!(passed > 5900, "right servers mostly pass, and {passed} of 6000 did");
}

/// How many of a thousand histories of a wrong server convict it, and by which rules.
fn convictions(bug: Bug) -> (usize, BTreeMap<RuleId, usize>) {
    let (mut convicted, mut rules) = (0, BTreeMap::new());
    each(bug, 1000, |_, world| {
        let judged = judge(&world.schedule, &world.history, Gate::default());
        convicted += usize::from(judged.verdict == Verdict::Failed);
        for finding in judged.findings.iter().filter(|finding| finding.decision == Decision::Broken) {
            *rules.entry(finding.rule).or_insert(0) += 1;
        }
    });
    (convicted, rules)
}

#[test]
fn wrong_servers_are_convicted_by_the_right_rule() {
    // The floors lie a little below what was measured.
    let floors = [
        (Bug::Race, 150, id::ONE_RESULT_PER_KEY),
        (Bug::MismatchIgnored, 130, id::DIFFERENT_REQUEST_NOT_SERVED),
        (Bug::CrossTenant, 120, id::NO_FOREIGN_ANSWER),
        (Bug::StatusDrift, 420, id::REPLAY_SAME_STATUS),
        (Bug::PinnedFailure, 110, id::FAILURE_BEFORE_EFFECT_AS_DOCUMENTED),
        (Bug::RetentionShort, 550, id::ONE_RESULT_PER_KEY),
        (Bug::Wedge, 110, id::FAILURE_BEFORE_EFFECT_AS_DOCUMENTED),
        (Bug::RecordAfterEffect, 190, id::AT_MOST_ONE_EFFECT),
    ];
    for (bug, floor, rule) in floors {
        let (convicted, rules) = convictions(bug);
        assert!(convicted >= floor, "{bug:?}: {convicted} of 1000 convicted, {rules:?}");
        assert!(rules.get(&rule).is_some_and(|count| *count * 2 >= floor), "{bug:?}: {rule} in {rules:?}");
    }
}

#[test]
fn a_history_that_was_written_down_is_judged_alike() {
    let mut worlds = Vec::new();
    each(Bug::Race, 100, |_, world| worlds.push(world));
    let mut writer = Writer::new(Vec::new(), &Header::new("run", "simulated")).unwrap();
    worlds.iter().for_each(|world| writer.write(&world.history).unwrap());
    let (header, histories) = read(&writer.into_inner()[..]).unwrap();
    assert_eq!((header.target.as_str(), histories.len()), ("simulated", worlds.len()));
    for (world, history) in worlds.iter().zip(&histories) {
        assert_eq!(
            judge(&world.schedule, history, Gate::default()),
            judge(&world.schedule, &world.history, Gate::default())
        );
    }
}
