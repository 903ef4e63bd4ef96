//! Random histories, mostly of servers that nobody would build: the search and its reductions decide as trying
//! everything does.

use idemproof::judge::model::{Answer, BUDGET, Bound, KeyHistory, Observation, Outcome, Rules, Time, explain};

use crate::exhaustive::explains;

/// Numbers that are the same in every run.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, most: u64) -> u64 {
        self.next() % most.max(1)
    }

    pub(crate) fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    pub(crate) fn between(&mut self, from: Time, to: Time) -> Time {
        from + Time::try_from(self.below(u64::try_from(to - from + 1).unwrap())).unwrap()
    }
}

fn rules(dice: &mut Dice) -> Rules {
    let bound = |dice: &mut Dice| match dice.below(8) {
        0 => Bound::Unknown,
        1 | 2 => Bound::AtLeast(dice.between(1, 8)),
        _ => Bound::Never,
    };
    let retention = bound(dice);
    // A key that is never forgotten cannot be forgotten in time.
    let longest = match retention {
        Bound::Never => None,
        Bound::Unknown => Some(dice.between(0, 9)),
        Bound::AtLeast(least) => Some(least + dice.between(0, 5)),
    };
    Rules {
        conflict: dice.chance(70),
        release: dice.chance(60),
        store: dice.chance(50),
        fingerprint: dice.chance(70),
        held_after_release: dice.chance(30),
        lease: bound(dice),
        stuck: dice.chance(30).then(|| dice.between(1, 8)),
        retention,
        retention_most: longest.filter(|_| dice.chance(40)),
        late: dice.between(0, 3),
        cancels: dice.chance(20),
        gateway_repeats: false,
        refuses_freely: dice.chance(15),
    }
}

fn history(dice: &mut Dice) -> KeyHistory {
    let ids = dice.between(1, 2) as u64;
    let count = dice.between(1, 5);
    let mut observations: Vec<_> = (0..count)
        .map(|_| {
            let from = dice.between(0, 12);
            let id = |dice: &mut Dice| (!dice.chance(10)).then(|| dice.below(ids) as u32);
            let outcome = match dice.below(17) {
                0..=4 => Outcome::Success(id(dice)),
                5 => Outcome::Replayed(id(dice)),
                6 | 7 => Outcome::Failure(dice.chance(50).then(|| dice.below(2) as u32)),
                8 | 9 => Outcome::Conflict,
                10 => Outcome::Mismatch,
                11 => Outcome::Refused,
                12 => Outcome::Cut,
                13 => Outcome::Rejected,
                _ => Outcome::Lost,
            };
            let payload = u32::from(dice.chance(20));
            Observation { from, to: from + dice.between(0, 9), payload, outcome }
        })
        .collect();
    if dice.chance(40) {
        let from = if dice.chance(70) { 100 } else { dice.between(0, 20) };
        let count = dice.below(3) as u32;
        observations.push(Observation { from, to: from + 1, payload: 0, outcome: Outcome::Effects(count, count) });
    }
    KeyHistory { observations }
}

/// `IDEMPROOF_HISTORIES=200000 cargo test --test checker decides_as_exhaustive` is the whole of it.
#[test]
fn the_search_decides_as_exhaustive_search_does() {
    let count = std::env::var("IDEMPROOF_HISTORIES").ok().and_then(|n| n.parse().ok()).unwrap_or(6_000);
    let mut accepted = 0;
    for seed in 0..count {
        let mut dice = Dice::new(seed);
        let rules = rules(&mut dice);
        let history = history(&mut dice);
        let wanted = explains(&history, &rules);
        let found = explain(&history, &rules, BUDGET);
        assert_ne!(found, Answer::TooMuch, "seed {seed}");
        assert_eq!(
            found == Answer::Explained,
            wanted,
            "seed {seed}: {rules:?}\n{}",
            history.observations.iter().map(|o| format!("{o:?}\n")).collect::<String>()
        );
        accepted += u64::from(wanted);
    }
    println!("{count} histories, {accepted} explained");
    assert!(accepted * 10 > count && accepted * 10 < count * 9, "{accepted} of {count} explained: no test of both");
}
