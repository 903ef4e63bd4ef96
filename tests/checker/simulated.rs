//! Simulated servers, right and wrong ones, on a lossy network: nothing wrong is said of the right ones, and enough is
//! seen of the others.

use std::{cmp::Reverse, collections::BinaryHeap};

use idemproof::judge::model::{
    BUDGET, FOREVER, KeyHistory, Level, Observation, Outcome, Rules, Ruling, Time, judge_key,
};

use crate::random::Dice;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Server {
    Correct,
    CheckThenAct(Time),
    NoFingerprint,
    EffectThenFailure,
    Forgets,
    NeverReleases,
    StaleReads,
    ClientGone,
    FreshIds,
    SpuriousMismatch,
    RefusesAndExecutes,
    StoresLate,
}

/// What is stored for the key. Times in microseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Slot {
    Free,
    InFlight(usize),
    Done { payload: u32, answer: Outcome, at: Time },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Arrives(usize),
    Takes(usize),
    Finishes(usize),
    Stores(usize),
    Hangs(usize),
}

struct Attempt {
    payload: u32,
    start: Time,
    service: Time,
    back: Time,
    /// When its connection is cut.
    cut: Option<Time>,
    reaches: bool,
    fails: bool,
    end: Option<(Time, Outcome)>,
}

struct World {
    server: Server,
    waits: bool,
    stores: bool,
    slot: Slot,
    attempts: Vec<Attempt>,
    waiting: Vec<usize>,
    events: BinaryHeap<Reverse<(Time, u32, Event)>>,
    count: u32,
    next_id: u32,
    effects: u32,
    used: bool,
}

impl World {
    fn at(&mut self, time: Time, event: Event) {
        self.count += 1;
        self.events.push(Reverse((time, self.count, event)));
    }

    fn reply(&mut self, index: usize, now: Time, answer: Outcome) {
        let attempt = &mut self.attempts[index];
        let back = now + attempt.back;
        if attempt.end.is_none() && attempt.cut.is_none_or(|cut| cut > back) {
            attempt.end = Some((back, answer));
        }
    }

    fn handle(&mut self, now: Time, event: Event, dice: &mut Dice) {
        match event {
            Event::Arrives(index) => self.arrives(index, now, dice),
            Event::Takes(index) => self.take(index, now),
            Event::Finishes(index) => self.finishes(index, now),
            Event::Stores(index) => {
                let answer = Outcome::Success(Some(self.next_id));
                self.next_id += 1;
                self.store(index, now, answer);
            }
            Event::Hangs(index) => {
                // The handler is dropped with its connection, after the effect.
                if self.slot == Slot::InFlight(index) {
                    self.effects += 1;
                    self.free(now);
                }
            }
        }
    }

    fn arrives(&mut self, index: usize, now: Time, dice: &mut Dice) {
        let payload = self.attempts[index].payload;
        if let Slot::Done { at, .. } = self.slot
            && self.server == Server::Forgets
            && now > at + 5_000
        {
            self.slot = Slot::Free;
        }
        if self.server == Server::SpuriousMismatch && !self.used && dice.chance(40) {
            return self.reply(index, now, Outcome::Mismatch);
        }
        match self.slot {
            Slot::Free => {
                if let Server::CheckThenAct(gap) = self.server {
                    self.at(now + gap, Event::Takes(index));
                } else {
                    self.take(index, now);
                }
            }
            Slot::InFlight(owner) => {
                if self.attempts[owner].payload != payload && self.server != Server::NoFingerprint {
                    self.reply(index, now, Outcome::Mismatch);
                } else if self.waits {
                    self.waiting.push(index);
                } else {
                    if self.server == Server::RefusesAndExecutes && dice.chance(30) {
                        self.effects += 1;
                    }
                    self.reply(index, now, Outcome::Conflict);
                }
            }
            Slot::Done { at, .. } if self.server == Server::StaleReads && now < at + 8_000 => {
                self.reply(index, now, Outcome::Conflict);
            }
            Slot::Done { payload: held, answer, .. } => {
                let other = held != payload && self.server != Server::NoFingerprint;
                let fresh = Outcome::Success(Some(self.next_id));
                let answer = match answer {
                    _ if other => Outcome::Mismatch,
                    Outcome::Success(_) if self.server == Server::FreshIds => {
                        self.next_id += 1;
                        fresh
                    }
                    answer => answer,
                };
                self.reply(index, now, answer);
            }
        }
    }

    fn take(&mut self, index: usize, now: Time) {
        self.used = true;
        self.slot = Slot::InFlight(index);
        let end = now + self.attempts[index].service;
        if let Some(cut) = self.attempts[index].cut
            && self.server == Server::ClientGone
            && cut > now
            && cut < end
        {
            return self.at(cut, Event::Hangs(index));
        }
        self.at(end, Event::Finishes(index));
    }

    fn finishes(&mut self, index: usize, now: Time) {
        if self.attempts[index].fails {
            let answer = Outcome::Failure(Some(1_000 + index as u32));
            self.reply(index, now, answer);
            match self.server {
                Server::NeverReleases => {}
                Server::EffectThenFailure => {
                    self.effects += 1;
                    self.free(now);
                }
                _ if self.stores => self.store(index, now, answer),
                _ => self.free(now),
            }
        } else {
            self.effects += 1;
            let answer = Outcome::Success(Some(self.next_id));
            self.reply(index, now, answer);
            if self.server == Server::StoresLate {
                // The same result, later.
                return self.at(now + 8_000, Event::Stores(index));
            }
            self.next_id += 1;
            self.store(index, now, answer);
        }
    }

    fn store(&mut self, index: usize, now: Time, answer: Outcome) {
        let payload = self.attempts[index].payload;
        self.slot = Slot::Done { payload, answer, at: now };
        for waiting in std::mem::take(&mut self.waiting) {
            let same = self.attempts[waiting].payload == payload || self.server == Server::NoFingerprint;
            self.reply(waiting, now, if same { answer } else { Outcome::Mismatch });
        }
    }

    fn free(&mut self, now: Time) {
        self.slot = Slot::Free;
        let mut waiting = std::mem::take(&mut self.waiting).into_iter();
        if let Some(next) = waiting.next() {
            self.take(next, now);
        }
        self.waiting = waiting.collect();
    }
}

/// A random schedule performed on a simulated server: the history without and with the count of effects.
fn perform(server: Server, dice: &mut Dice, declared: &mut Rules) -> (KeyHistory, KeyHistory) {
    let waits = dice.chance(40) && server != Server::RefusesAndExecutes;
    let stores = dice.chance(40) && server != Server::EffectThenFailure;
    *declared = Rules { conflict: !waits || dice.chance(30), late: 5_000, ..Rules::default() };
    (declared.store, declared.release) = match (stores, dice.chance(30)) {
        (_, true) => (true, true),
        (stores, _) => (stores, !stores),
    };
    let mut world = World {
        server,
        waits,
        stores,
        slot: Slot::Free,
        attempts: Vec::new(),
        waiting: Vec::new(),
        events: BinaryHeap::new(),
        count: 0,
        next_id: 1,
        effects: 0,
        used: false,
    };
    for index in 0..usize::try_from(dice.between(2, 10)).unwrap() {
        let start = dice.between(0, 60_000);
        let arrives = start + dice.between(100, 2_000);
        let attempt = Attempt {
            payload: u32::from(dice.chance(10)),
            start,
            service: dice.between(1_000, 10_000),
            back: dice.between(100, 1_000),
            cut: dice.chance(20).then(|| start + dice.between(200, 9_000)),
            reaches: dice.chance(95),
            fails: dice.chance(20),
            end: None,
        };
        if attempt.reaches && attempt.cut.is_none_or(|cut| cut > arrives) {
            world.at(arrives, Event::Arrives(index));
        }
        world.attempts.push(attempt);
    }
    while let Some(Reverse((now, _, event))) = world.events.pop() {
        world.handle(now, event, dice);
    }
    let observations = world.attempts.iter().map(|attempt| {
        let (to, outcome) = attempt.end.unwrap_or((attempt.cut.unwrap_or(attempt.start + 200_000), Outcome::Lost));
        Observation { from: attempt.start, to: to.max(attempt.start), payload: attempt.payload, outcome }
    });
    let without = KeyHistory { observations: observations.collect() };
    let mut with = without.clone();
    let outcome = Outcome::Effects(world.effects, world.effects);
    with.observations.push(Observation { from: FOREVER - 1, to: FOREVER, payload: 0, outcome });
    (without, with)
}

/// How many histories in a hundred are flagged at each level, with and without the count.
fn flagged(server: Server, histories: u64) -> [[f64; 3]; 2] {
    let mut counts = [[0_u32; 3]; 2];
    for seed in 0..histories {
        let mut dice = Dice::new(seed ^ 0x5eed);
        let mut rules = Rules::default();
        let (without, with) = perform(server, &mut dice, &mut rules);
        for (column, history) in [with, without].iter().enumerate() {
            match judge_key(history, &rules, BUDGET) {
                Ruling::Accepted { .. } => {}
                Ruling::Rejected { level, .. } => counts[column][level as usize] += 1,
                Ruling::TooMuch => panic!("{server:?}, seed {seed}"),
            }
            if server == Server::Correct {
                let found = judge_key(history, &rules, BUDGET);
                assert!(matches!(found, Ruling::Accepted { .. }), "seed {seed}: {found:?}\n{rules:?}\n{history:#?}");
            }
        }
    }
    counts.map(|row| row.map(|count| f64::from(count) * 100.0 / histories as f64))
}

/// `IDEMPROOF_SIMULATED=40000 cargo test --test checker simulated -- --nocapture` is the whole table.
#[test]
fn simulated_servers_are_told_apart() {
    use Server::*;
    let histories = std::env::var("IDEMPROOF_SIMULATED").ok().and_then(|n| n.parse().ok()).unwrap_or(400);
    // What must be flagged at least, in a hundred: by any level with the count, as safety with and without it.
    let floors = [
        (Correct, 0.0, 0.0, 0.0),
        (CheckThenAct(100), 0.4, 0.4, 0.3),
        (CheckThenAct(3_000), 15.0, 13.0, 11.0),
        (NoFingerprint, 22.0, 22.0, 22.0),
        (EffectThenFailure, 11.0, 11.0, 0.0),
        (Forgets, 65.0, 60.0, 55.0),
        (NeverReleases, 4.0, 0.0, 0.0),
        (StaleReads, 25.0, 0.0, 0.0),
        (ClientGone, 7.0, 7.0, 0.0),
        (FreshIds, 55.0, 55.0, 55.0),
        (SpuriousMismatch, 25.0, 0.0, 0.0),
        (RefusesAndExecutes, 7.0, 7.0, 0.0),
        (StoresLate, 10.0, 0.0, 0.0),
    ];
    println!("{:22} with count: policy refusal safety | without", "server");
    for (server, any, safety, blind) in floors {
        let [with, without] = flagged(server, histories);
        let show = |row: [f64; 3]| row.map(|percent| format!("{percent:6.1}")).join(" ");
        println!("{:22} {} | {}", format!("{server:?}"), show(with), show(without));
        assert!(with.iter().sum::<f64>() >= any, "{server:?} is flagged too rarely");
        assert!(with[Level::Safety as usize] >= safety, "{server:?} is flagged too rarely as harm");
        assert!(without[Level::Safety as usize] >= blind, "{server:?} is flagged too rarely as harm without a count");
    }
}
