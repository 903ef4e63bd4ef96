#![allow(clippy::unwrap_used)]
use std::time::Duration;

use bytes::Bytes;

use super::*;
use crate::chaos::embedded::body::Fields;
use crate::chaos::embedded::stage::Chunk;

/// A link with a clock that the test moves.
struct Bench {
    link: Link,
    start: Instant,
    at: Duration,
}

fn toxic(instance: u64, body: &str) -> Definition {
    let body =
        if body.contains("stream") { body.to_owned() } else { body.replacen('{', r#"{"stream":"upstream","#, 1) };
    Definition::create(instance, &Fields::decode(body.as_bytes()).unwrap()).unwrap()
}

fn bench(toxics: &[&str]) -> Bench {
    let toxics: Vec<Definition> = toxics.iter().zip(1..).map(|(body, instance)| toxic(instance, body)).collect();
    let start = Instant::now();
    Bench { link: Link::new(&toxics, start, Rng::seeded(7)), start, at: Duration::ZERO }
}

impl Bench {
    fn now(&self) -> Instant {
        self.start + self.at
    }

    fn send(&mut self, bytes: &[u8]) {
        let chunk = Chunk { bytes: Bytes::copy_from_slice(bytes), stamp: self.now() };
        self.link.push(Item::Data(chunk));
    }

    fn end(&mut self) {
        self.link.push(Item::End);
    }

    fn change(&mut self, change: Change) {
        let now = self.now();
        self.link.change(change, now);
    }

    /// Runs the link for that long; gives (millisecond, text) of all that came out, the end as `<end>`.
    fn run(&mut self, millis: u64) -> Vec<(u64, String)> {
        let until = self.at + Duration::from_millis(millis);
        let mut seen = Vec::new();
        loop {
            let wake = self.link.pump(self.now());
            let mut any = false;
            while let Some(item) = self.link.output().pop_front() {
                any = true;
                let text = match item {
                    Item::Data(chunk) => String::from_utf8(chunk.bytes.to_vec()).unwrap(),
                    Item::End => "<end>".to_owned(),
                };
                seen.push((self.at.as_millis() as u64, text));
            }
            if any {
                continue;
            }
            match wake.map(|wake| wake - self.start) {
                Some(wake) if wake <= until => self.at = wake,
                _ => break,
            }
        }
        self.at = until;
        seen
    }
}

fn seen(list: &[(u64, &str)]) -> Vec<(u64, String)> {
    list.iter().map(|(at, text)| (*at, (*text).to_owned())).collect()
}

#[test]
fn a_clean_link_passes_bytes_and_end_in_order() {
    let mut bench = bench(&[]);
    bench.send(b"a");
    assert!(!bench.link.wants_input(), "one chunk at a time");
    assert_eq!(bench.run(0), seen(&[(0, "a")]));
    bench.end();
    assert_eq!(bench.run(0), seen(&[(0, "<end>")]));
}

#[test]
fn latency_counts_from_arrival_and_the_end_follows_the_data() {
    let mut bench = bench(&[r#"{"type":"latency","attributes":{"latency":50}}"#]);
    bench.send(b"a");
    assert_eq!(bench.run(20), seen(&[]));
    bench.send(b"b");
    bench.end();
    assert_eq!(bench.run(1000), seen(&[(50, "a"), (70, "b"), (70, "<end>")]));
}

#[test]
fn two_latencies_add_up() {
    let latency = r#"{"type":"latency","name":"NAME","attributes":{"latency":500}}"#;
    let mut bench = bench(&[latency, &latency.replace("NAME", "b")]);
    bench.send(b"a");
    assert_eq!(bench.run(2000), seen(&[(1000, "a")]));
}

#[test]
fn jitter_never_reorders() {
    let mut bench = bench(&[r#"{"type":"latency","attributes":{"latency":50,"jitter":50}}"#]);
    for byte in b"abcdefgh" {
        bench.send(&[*byte]);
    }
    let out: String = bench.run(1000).into_iter().map(|(_, text)| text).collect();
    assert_eq!(out, "abcdefgh");
}

#[test]
fn removing_a_latency_flushes_all_of_it_at_once() {
    let mut bench = bench(&[r#"{"type":"latency","attributes":{"latency":5000}}"#]);
    bench.send(b"a");
    bench.send(b"b");
    assert_eq!(bench.run(10), seen(&[]));
    bench.end();
    bench.change(Change::Remove(1));
    assert_eq!(bench.run(0), seen(&[(10, "a"), (10, "b"), (10, "<end>")]));
}

#[test]
fn bandwidth_sends_a_slice_each_100_ms() {
    let mut bench = bench(&[r#"{"type":"bandwidth","attributes":{"rate":1}}"#]);
    bench.send(&[b'x'; 250]);
    let out: Vec<(u64, usize)> = bench.run(1000).into_iter().map(|(at, text)| (at, text.len())).collect();
    assert_eq!(out, [(100, 100), (200, 100), (250, 50)]);
}

#[test]
fn bandwidth_keeps_its_rate_over_many_chunks() {
    let mut bench = bench(&[r#"{"type":"bandwidth","attributes":{"rate":1000}}"#]);
    let mut last = 0;
    let mut sent = 0;
    while sent < 480_000 || last == 0 {
        if bench.link.wants_input() && sent < 480_000 {
            bench.send(&[b'x'; 32_000]);
            sent += 32_000;
        }
        last = bench.run(1).last().map_or(last, |(at, _)| *at);
    }
    last = bench.run(100).last().map_or(last, |(at, _)| *at);
    assert!((480..=482).contains(&last), "{last}");
}

#[test]
fn rate_zero_holds_and_a_change_or_removal_releases() {
    for change in [Change::Remove(1), Change::Update(toxic(1, r#"{"type":"bandwidth","attributes":{"rate":1000}}"#))] {
        let mut bench = bench(&[r#"{"type":"bandwidth","attributes":{"rate":0}}"#]);
        bench.send(b"held");
        bench.end();
        assert_eq!(bench.run(60_000), seen(&[]));
        bench.change(change);
        assert_eq!(bench.run(0), seen(&[(60_000, "held"), (60_000, "<end>")]));
    }
}

#[test]
fn slow_close_delays_only_the_end() {
    let mut bench = bench(&[r#"{"type":"slow_close","attributes":{"delay":300}}"#]);
    bench.send(b"a");
    assert_eq!(bench.run(0), seen(&[(0, "a")]));
    bench.end();
    assert_eq!(bench.run(1000), seen(&[(300, "<end>")]));
}

#[test]
fn removing_a_slow_close_lets_the_end_go() {
    let mut bench = bench(&[r#"{"type":"slow_close","attributes":{"delay":3000}}"#]);
    bench.end();
    assert_eq!(bench.run(10), seen(&[]));
    bench.change(Change::Remove(1));
    assert_eq!(bench.run(0), seen(&[(10, "<end>")]));
}

#[test]
fn timeout_restarts_with_each_dropped_chunk() {
    let mut bench = bench(&[r#"{"type":"timeout","attributes":{"timeout":300}}"#]);
    for _ in 0..3 {
        bench.send(b"lost");
        assert_eq!(bench.run(200), seen(&[]));
    }
    assert_eq!(bench.run(1000), seen(&[(700, "<end>")]));
    assert!(bench.link.is_closed());
}

#[test]
fn timeout_zero_swallows_for_ever_and_closes_when_removed() {
    let mut bench = bench(&[r#"{"type":"timeout"}"#]);
    bench.send(b"lost");
    assert_eq!(bench.run(1_000_000), seen(&[]));
    bench.change(Change::Remove(1));
    assert_eq!(bench.run(0), seen(&[(1_000_000, "<end>")]));
}

#[test]
fn limit_closes_at_the_last_byte_and_cuts_what_crosses() {
    let mut bench = bench(&[r#"{"type":"limit_data","attributes":{"bytes":5}}"#]);
    bench.send(b"abc");
    assert_eq!(bench.run(0), seen(&[(0, "abc")]));
    bench.send(b"defg");
    assert_eq!(bench.run(0), seen(&[(0, "de"), (0, "<end>")]));
    assert!(!bench.link.wants_input());
}

#[test]
fn limit_zero_waits_for_data() {
    let mut bench = bench(&[r#"{"type":"limit_data"}"#]);
    assert_eq!(bench.run(1000), seen(&[]));
    bench.send(b"a");
    assert_eq!(bench.run(0), seen(&[(1000, "<end>")]));
}

#[test]
fn an_update_keeps_the_count_and_a_new_instance_starts_at_zero() {
    let mut bench = bench(&[r#"{"type":"limit_data","attributes":{"bytes":100}}"#]);
    bench.send(b"abcdef");
    bench.run(0);
    bench.change(Change::Update(toxic(1, r#"{"type":"limit_data","attributes":{"bytes":4}}"#)));
    assert_eq!(bench.run(10), seen(&[]), "lowering alone closes nothing");
    bench.change(Change::Remove(1));
    bench.change(Change::Add(toxic(2, r#"{"type":"limit_data","attributes":{"bytes":4}}"#)));
    bench.send(b"ghijkl");
    assert_eq!(bench.run(0), seen(&[(10, "ghij"), (10, "<end>")]));
}

#[test]
fn lowering_below_the_count_drops_the_next_chunk_and_closes() {
    let mut bench = bench(&[r#"{"type":"limit_data","attributes":{"bytes":100}}"#]);
    bench.send(b"abcdef");
    bench.run(0);
    bench.change(Change::Update(toxic(1, r#"{"type":"limit_data","attributes":{"bytes":4}}"#)));
    bench.send(b"g");
    assert_eq!(bench.run(0), seen(&[(0, "<end>")]));
}

#[test]
fn reset_waits_for_data_drops_it_and_asks_for_a_reset() {
    let mut bench = bench(&[r#"{"type":"reset_peer","attributes":{"timeout":200}}"#]);
    assert_eq!(bench.run(1000), seen(&[]));
    bench.send(b"lost");
    assert_eq!(bench.run(1000), seen(&[(1200, "<end>")]));
    assert!(bench.link.wants_reset());
}

#[test]
fn a_reset_under_way_fires_when_removed_and_is_not_undone_by_an_update() {
    let reset = r#"{"type":"reset_peer","attributes":{"timeout":5000}}"#;
    let mut bench = bench(&[reset]);
    bench.send(b"lost");
    bench.run(100);
    bench.change(Change::Update(toxic(1, r#"{"type":"reset_peer","toxicity":0}"#)));
    assert_eq!(bench.run(100), seen(&[]));
    bench.change(Change::Remove(1));
    assert_eq!(bench.run(0), seen(&[(200, "<end>")]));
    assert!(bench.link.wants_reset());
}

#[test]
fn the_order_of_toxics_is_the_order_of_their_effects() {
    let limit = r#"{"type":"limit_data","attributes":{"bytes":2}}"#;
    let mut bench1 = bench(&[r#"{"type":"latency","attributes":{"latency":300}}"#, limit]);
    bench1.send(b"abc");
    assert_eq!(bench1.run(1000), seen(&[(300, "ab"), (300, "<end>")]));

    let mut bench2 = bench(&[limit, r#"{"type":"slow_close","attributes":{"delay":300}}"#]);
    bench2.send(b"abc");
    assert_eq!(bench2.run(1000), seen(&[(0, "ab"), (300, "<end>")]));

    let mut bench3 = bench(&[
        r#"{"type":"timeout","attributes":{"timeout":200}}"#,
        r#"{"type":"slow_close","attributes":{"delay":300}}"#,
    ]);
    assert_eq!(bench3.run(1000), seen(&[(500, "<end>")]));

    let mut bench4 = bench(&[limit, r#"{"type":"timeout"}"#]);
    bench4.send(b"abc");
    assert_eq!(bench4.run(1000), seen(&[(0, "<end>")]));

    let mut bench5 = bench(&[limit, r#"{"type":"reset_peer","attributes":{"timeout":200}}"#]);
    bench5.send(b"abc");
    assert_eq!(bench5.run(1000), seen(&[(200, "<end>")]));
    assert!(bench5.link.wants_reset());
}

#[test]
fn slices_keep_every_byte_in_order_and_near_the_average() {
    let mut bench = bench(&[r#"{"type":"slicer","attributes":{"average_size":20,"size_variation":5}}"#]);
    let text: String = (0..200u8).map(|n| char::from(b'a' + n % 26)).collect();
    bench.send(text.as_bytes());
    let out = bench.run(0);
    assert!(out.len() > 5 && out.iter().all(|(_, piece)| !piece.is_empty() && piece.len() <= 25));
    assert_eq!(out.into_iter().map(|(_, piece)| piece).collect::<String>(), text);
}

#[test]
fn slices_of_one_byte_pause_between_pieces_and_removal_flushes_the_rest() {
    let mut bench = bench(&[r#"{"type":"slicer","attributes":{"average_size":1,"delay":10000}}"#]);
    bench.send(b"abcdef");
    assert_eq!(bench.run(25), seen(&[(0, "a"), (10, "b"), (20, "c")]));
    bench.change(Change::Remove(1));
    assert_eq!(bench.run(0), seen(&[(25, "def")]));
}

#[test]
fn toxicity_zero_passes_and_an_update_to_one_bites() {
    let mut bench = bench(&[r#"{"type":"limit_data","toxicity":0,"attributes":{"bytes":1}}"#]);
    bench.send(b"abc");
    assert_eq!(bench.run(0), seen(&[(0, "abc")]));
    bench.change(Change::Update(toxic(1, r#"{"type":"limit_data","attributes":{"bytes":1}}"#)));
    bench.send(b"def");
    assert_eq!(bench.run(0), seen(&[(0, "d"), (0, "<end>")]));
}

#[test]
fn toxics_coming_and_going_lose_and_reorder_nothing() {
    let bodies = [
        r#"{"type":"latency","attributes":{"latency":3,"jitter":2}}"#,
        r#"{"type":"bandwidth","attributes":{"rate":1}}"#,
        r#"{"type":"slicer","attributes":{"average_size":2,"delay":500}}"#,
        r#"{"type":"slow_close"}"#,
        r#"{"type":"noop"}"#,
    ];
    let mut bench = bench(&[]);
    let mut rng = Rng::seeded(3);
    let (mut sent, mut got) = (String::new(), String::new());
    let mut present: Vec<u64> = Vec::new();
    for round in 1..3000u64 {
        if bench.link.wants_input() {
            let text = format!("{round},");
            bench.send(text.as_bytes());
            sent += &text;
        }
        match rng.bits() % 3 {
            0 if present.len() < 6 => {
                bench.change(Change::Add(toxic(round, bodies[(rng.bits() % 5) as usize])));
                present.push(round);
            }
            1 if !present.is_empty() => {
                let gone = present.remove((rng.bits() % present.len() as u64) as usize);
                bench.change(Change::Remove(gone));
            }
            _ => {}
        }
        got.extend(bench.run(rng.bits() % 4).into_iter().map(|(_, text)| text));
    }
    for gone in present {
        bench.change(Change::Remove(gone));
    }
    bench.end();
    got.extend(bench.run(10).into_iter().map(|(_, text)| text));
    assert_eq!(got, sent + "<end>");
}
