//! What the history checker costs: `cargo run --release --example checker_cost [FILE]`.
//!
//! Prints the time for each family of histories of 5 to 60 overlapping attempts, and for cores of 10 attempts. With a
//! file name, writes a file of one million attempts over 100,000 keys there, for `idemproof judge`.

use std::{
    fs::File,
    hint::black_box,
    io::{self, BufWriter},
    time::{Duration, Instant},
};

use idemproof::{
    history::{Attempt, Body, End, Header, History, Response, Timing, Writer},
    judge::model::{Answer, BUDGET, KeyHistory, Observation, Outcome, Rules, explain, weaken},
    schedule::{CaseId, Encoding},
};

fn main() -> io::Result<()> {
    families();
    cores();
    match std::env::args().nth(1) {
        Some(path) => million(&path),
        None => Ok(()),
    }
}

fn overlapping(count: i64, outcome: impl Fn(i64) -> Outcome) -> KeyHistory {
    let observations = (0..count)
        .map(|index| Observation { from: index, to: 1_000 + index, payload: 0, outcome: outcome(index) })
        .collect();
    KeyHistory { observations }
}

fn median(mut work: impl FnMut()) -> Duration {
    let mut times: Vec<_> = (0..21)
        .map(|_| {
            let began = Instant::now();
            work();
            began.elapsed()
        })
        .collect();
    times.sort_unstable();
    times[times.len() / 2]
}

/// A name, and what the attempt of this number of so many comes to.
type Family = (&'static str, fn(i64, i64) -> Outcome);

const FAMILIES: [Family; 5] = [
    ("1 ok, rest 409", |index, _| if index == 0 { Outcome::Success(Some(1)) } else { Outcome::Conflict }),
    ("all same id", |_, _| Outcome::Success(Some(1))),
    ("half lost", |index, _| if index % 2 == 0 { Outcome::Lost } else { Outcome::Success(Some(1)) }),
    ("illegal: two ids", |index, _| Outcome::Success(Some(u32::from(index == 1)))),
    (
        "5xx chain, then ok",
        |index, count| {
            if index + 1 == count { Outcome::Success(Some(1)) } else { Outcome::Failure(None) }
        },
    ),
];

fn families() {
    let rules = Rules { late: 5, ..Rules::default() };
    println!("{:20} {}", "overlapping", FAMILIES.map(|(name, _)| format!("{name:>20}")).concat());
    for count in [5, 10, 20, 40, 60] {
        let times = FAMILIES.map(|(_, outcome)| {
            let history = overlapping(count, |index| outcome(index, count));
            let took = median(|| {
                assert_ne!(black_box(explain(black_box(&history), &rules, BUDGET)), Answer::TooMuch);
            });
            format!("{:>17} µs", took.as_micros())
        });
        println!("{count:<20} {}", times.concat());
    }
}

fn cores() {
    let rules = Rules { late: 5, ..Rules::default() };
    for (name, outcome) in FAMILIES {
        // A second result makes any of them wrong.
        let history = overlapping(10, |index| if index == 9 { Outcome::Success(Some(7)) } else { outcome(index, 9) });
        let mut size = 0;
        let took = median(|| size = weaken(black_box(&history), &rules.any_refusal(), BUDGET).len());
        println!("core of 10, {name:20} {:>6} µs, {size} observations", took.as_micros());
    }
}

/// Ten attempts with each key: a success, refusals while it runs, replays after it.
fn million(path: &str) -> io::Result<()> {
    let mut writer = Writer::new(BufWriter::new(File::create(path)?), &Header::new("cost", "made-up"))?;
    for key in 0..100_000_u64 {
        let attempts = (0..10).map(|index| attempt(key, index)).collect();
        let case = CaseId {
            suite: "cost".into(),
            case: "overlap".into(),
            operation: "create".into(),
            vary: Some(("key".into(), key)),
        };
        let history = History { case, round: 0, attempts, probes: Vec::new(), controls: Vec::new(), stopped: None };
        writer.write(&history)?;
    }
    io::Write::flush(&mut writer.into_inner())
}

fn attempt(key: u64, index: u64) -> Attempt {
    let replay = index > 4;
    let from = key * 100 + if replay { 2_000 + index } else { index };
    let ended = if index == 0 { key * 100 + 1_000 } else { from + 50 };
    let answered = index == 0 || replay;
    let identity = format!("\"pay_{key:08x}\"");
    let text = if answered { format!("{{\"id\":{identity}}}") } else { "{\"title\":\"in flight\"}".to_owned() };
    let body = Body { length: text.len() as u64, sha256: format!("{key:064x}"), text, complete: true };
    Attempt {
        name: format!("a{index}"),
        burst: None,
        resend_of: None,
        operation: "create".into(),
        tenant: "default".into(),
        node: 0,
        intent: "k".into(),
        key: Some("k".into()),
        key_field: Some(format!("\"key-{key}\"")),
        reference: format!("ref-{key}"),
        role: "base".into(),
        encoding: Encoding::Compact,
        payload_sha256: format!("{key:064x}"),
        value_sha256: format!("{key:064x}"),
        wire: None,
        request: "POST /payments".into(),
        payload: "{\"amount\":100}".into(),
        timing: Timing { opened: from, first_out: Some(from), last_out: Some(from), first_in: Some(ended), ended },
        bytes_out: 200,
        bytes_in: 200,
        end: End::Answered,
        response: Some(Response {
            status: if answered { 201 } else { 409 },
            fields: Vec::new(),
            body,
            identity: answered.then_some(identity),
        }),
        fault: None,
        hooks: Vec::new(),
    }
}
