//! The worked table of the checking note, as far as rules without a search decide it.

use idemproof::{
    judge::Verdict,
    schedule::Schedule,
    spec::id,
    suite::NetworkFault,
    target::{Disposal, Documented, InFlight, Mismatch, Policy},
};

use crate::build::{Build, World, id as pay, ms, policy, sent, world};

fn strict() -> World {
    world(Policy::default())
}

fn accepted(world: &World) {
    let judged = world.judged();
    assert_eq!(world.broken(), Vec::<&str>::new(), "{:#?}", judged.findings);
    assert_eq!(judged.verdict, Verdict::Passed, "{:?}", judged.reason);
}

fn refused(world: &World, rule: idemproof::spec::RuleId) {
    assert!(world.broken().contains(&rule.as_str()), "{:#?}", world.judged());
}

fn safety(world: &World, rule: idemproof::spec::RuleId) {
    refused(world, rule);
    assert_eq!(world.judged().verdict, Verdict::Failed);
}

#[test]
fn a_replay_is_accepted_and_a_second_result_is_not() {
    accepted(&strict().with([sent("a", 0, 10).ok(1), sent("b", 20, 25).ok(1)]));
    safety(&strict().with([sent("a", 0, 10).ok(1), sent("b", 2, 12).ok(2)]), id::ONE_RESULT_PER_KEY);
}

#[test]
fn a_refusal_is_right_only_while_another_attempt_may_run() {
    let overlapping = [sent("a", 0, 10).ok(1), sent("b", 3, 5).answer(409, "")];
    accepted(&strict().with(overlapping.clone()));
    safety(
        &world(policy(|p| p.in_flight = Documented::As(InFlight::Wait))).with(overlapping),
        id::IN_FLIGHT_AS_DOCUMENTED,
    );
    refused(&strict().with([sent("a", 0, 10).ok(1), sent("b", 20, 22).answer(409, "")]), id::REPLAY_RETURNS_RESULT);
    accepted(&strict().with([sent("a", 0, 10).ok(1), sent("b", 9, 30).answer(409, ""), sent("c", 15, 16).ok(1)]));
    refused(
        &strict().with([sent("a", 0, 10).ok(1), sent("b", 12, 14).answer(409, ""), sent("c", 16, 17).ok(1)]),
        id::REPLAY_RETURNS_RESULT,
    );
    accepted(&strict().with([sent("a", 0, 5).lost(), sent("b", 20, 22).answer(409, "")]));
}

#[test]
fn failures_release_or_are_stored() {
    let retried = [sent("a", 0, 10).answer(500, "oops"), sent("b", 20, 30).ok(1)];
    accepted(&strict().with(retried.clone()));
    accepted(&strict().with(retried.clone()).count("k", "default", &[pay(1)]));
    safety(
        &strict().with(retried.clone()).count("k", "default", &[pay(1), pay(2)]),
        id::FAILURE_AFTER_EFFECT_NOT_REPEATED,
    );
    let freed = world(policy(|p| p.failure_after_effect = Documented::As(Disposal::Release)));
    // Documenting that a failure frees the key is no licence to repeat the effect.
    safety(&freed.with(retried).count("k", "default", &[pay(1), pay(2)]), id::FAILURE_AFTER_EFFECT_NOT_REPEATED);
    accepted(&strict().with([sent("a", 0, 10).answer(500, "oops"), sent("b", 20, 30).answer(500, "oops")]));
    accepted(
        &strict()
            .with([
                sent("a", 0, 10).answer(500, "oops"),
                sent("b", 2, 4).answer(409, ""),
                sent("c", 12, 20).ok(1),
                sent("d", 21, 22).ok(1),
            ])
            .count("k", "default", &[pay(1)]),
    );
    safety(&strict().with([sent("a", 0, 10).ok(1), sent("b", 20, 22).answer(500, "oops")]), id::NO_5XX_FOR_LOSERS);
}

#[test]
fn another_payload_is_refused() {
    accepted(&strict().with([sent("a", 0, 10).ok(1), sent("b", 20, 22).role("changed").answer(422, "")]));
    let replayed = [sent("a", 0, 10).ok(1), sent("b", 20, 22).role("changed").ok(1)];
    safety(&strict().with(replayed.clone()), id::DIFFERENT_REQUEST_NOT_SERVED);
    accepted(&world(policy(|p| p.mismatch = Documented::As(Mismatch::Replay))).with(replayed));
    let executed = strict().with([sent("a", 0, 10).ok(1), sent("b", 20, 22).role("changed").ok(2)]);
    safety(&executed, id::DIFFERENT_REQUEST_NOT_SERVED);
    assert_eq!(executed.broken(), ["different-request-not-served"], "one bug, one invariant");
}

#[test]
fn a_marked_replay_needs_something_to_replay() {
    let marked = policy(|p| {
        p.replay.marker = Some(("idempotent-replayed".parse().unwrap(), "true".parse().unwrap()));
    });
    let early = sent("a", 0, 5).ok(1).field("idempotent-replayed", "true");
    let late = sent("b", 6, 10).ok(1);
    safety(&world(marked.clone()).with([early.clone(), late.clone()]), id::REPLAY_MARKER_AS_DOCUMENTED);
    let late = late.field("idempotent-replayed", "true");
    accepted(&world(marked).with([sent("z", 0, 0).lost(), shift(early, 9), shift(late, 9)]));
}

fn shift(mut attempt: idemproof::history::Attempt, ms: u64) -> idemproof::history::Attempt {
    let by = ms * 1000;
    attempt.timing.opened += by;
    attempt.timing.first_out = attempt.timing.first_out.map(|at| at + by);
    attempt.timing.last_out = attempt.timing.last_out.map(|at| at + by);
    attempt.timing.first_in = attempt.timing.first_in.map(|at| at + by);
    attempt.timing.ended += by;
    attempt
}

#[test]
fn retention_ends_the_promise_and_not_before() {
    let kept = || world(policy(|p| p.retention = ms(100)));
    accepted(&kept().with([sent("a", 0, 10).ok(1), sent("b", 200, 210).ok(2)]));
    safety(&kept().with([sent("a", 0, 10).ok(1), sent("b", 50, 60).ok(2)]), id::ONE_RESULT_PER_KEY);
    accepted(&kept().with([sent("a", 0, 10).ok(1), sent("b", 98, 112).ok(2)]));
}

#[test]
fn lost_attempts_leave_what_the_probe_counts() {
    let lost = || strict().with([sent("a", 0, 5).lost(), sent("b", 10, 15).lost()]);
    accepted(&strict().with([sent("a", 0, 5).lost(), sent("b", 10, 20).ok(1), sent("c", 30, 31).ok(1)]).count(
        "k",
        "default",
        &[pay(1)],
    ));
    assert_eq!(lost().judged().verdict, Verdict::Inconclusive);
    accepted(&lost().count("k", "default", &[pay(1)]));
    safety(&lost().count("k", "default", &[pay(1), pay(2)]), id::AT_MOST_ONE_EFFECT);
    safety(&strict().with([sent("a", 0, 10).ok(1)]).count("k", "default", &[]), id::ACKNOWLEDGED_EFFECT_EXISTS);
}

#[test]
fn takeovers_are_fenced() {
    let leased = || world(policy(|p| p.lease = ms(50)));
    safety(&leased().with([sent("a", 0, 100).ok(1), sent("b", 60, 90).ok(2)]), id::ONE_RESULT_PER_KEY);
    accepted(&leased().with([sent("a", 0, 100).answer(500, "fenced"), sent("b", 60, 90).ok(2)]));
    accepted(
        &leased().with([sent("a", 0, 5).lost(), sent("b", 10, 12).answer(409, ""), sent("c", 70, 80).ok(1)]).count(
            "k",
            "default",
            &[pay(1)],
        ),
    );
}

#[test]
fn a_cut_request_may_hold_the_key_for_a_moment() {
    let cut = sent("a", 0, 3).lost().fault(NetworkFault::CutRequestBody, true);
    accepted(&strict().with([cut, sent("b", 1, 2).answer(409, "")]));
}

/// The schedule of these worlds expects nothing, so that only what holds for every history speaks.
#[test]
fn nothing_is_expected_here() {
    let Schedule { expect, given, effects, .. } = strict().schedule;
    assert!(expect.is_empty() && given.is_empty() && effects.is_empty());
}
