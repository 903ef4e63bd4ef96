//! Every rule that holds for all histories: once held, once broken or deviating, once left open.

use idemproof::{
    judge::Decision::{self, Broken, Deviation, Held, Undecided},
    spec::{RuleId, id},
    suite::{NetworkFault, Window},
    target::{Documented, InFlight, Mismatch, Policy, ReplayStatus, StatusSet},
    text::Span,
};

use crate::build::{Build, World, id as pay, ms, policy, sent, world};

fn plain() -> World {
    world(Policy::default())
}

fn check(world: &World, rule: RuleId, wanted: Option<Decision>) {
    assert_eq!(world.decided(rule), wanted, "{rule}: {:#?}", world.judged());
}

#[test]
fn an_identity_that_several_effects_share_accuses_nobody() {
    let word = || Some("\"merchant_00012345\"".to_owned());
    let mine = || sent("a", 0, 10).ok(1).identity(word());
    let theirs = || sent("b", 20, 30).ok(2).tenant("other").identity(word());
    let both = plain().with([mine(), theirs()]);
    let own = both.clone().count("k", "default", &[pay(1)]).count("k", "other", &[pay(2)]);
    assert_eq!(own.broken(), Vec::<&str>::new());
    let leaked = both.count("k", "default", &[pay(1)]).count("k", "other", &[]);
    check(&leaked, id::NO_FOREIGN_ANSWER, Some(Broken));
    let executed_and_leaked = plain().with([sent("a", 0, 10).ok(1), sent("b", 20, 30).ok(1).tenant("other")]);
    let executed_and_leaked = executed_and_leaked.count("k", "default", &[pay(1)]).count("k", "other", &[pay(2)]);
    check(&executed_and_leaked, id::NO_FOREIGN_ANSWER, Some(Broken));
}

#[test]
fn too_few_effects_are_not_too_many() {
    let lost = plain().rules(&[id::AT_MOST_ONE_EFFECT]).effects(&[1]).with([sent("a", 0, 10).ok(1)]);
    let lost = lost.number("k", "default", 0);
    check(&lost, id::ACKNOWLEDGED_EFFECT_EXISTS, Some(Broken));
    assert_ne!(lost.decided(id::AT_MOST_ONE_EFFECT), Some(Broken));
}

#[test]
fn at_most_one_effect() {
    let rule = id::AT_MOST_ONE_EFFECT;
    let two = || plain().with([sent("a", 0, 10).ok(1), sent("b", 20, 30).ok(1)]);
    check(&two().count("k", "default", &[pay(1)]), rule, Some(Held));
    check(&two().count("k", "default", &[pay(1), pay(2)]), rule, Some(Broken));
    check(&two(), rule, None);
    // Refused, and executed all the same.
    let refused = plain().with([sent("a", 0, 10).ok(1), sent("b", 2, 4).answer(409, "")]);
    check(&refused.count("k", "default", &[pay(1), pay(2)]), rule, Some(Broken));
}

#[test]
fn a_second_effect_after_the_retention_is_right_and_a_third_is_not() {
    let rule = id::AT_MOST_ONE_EFFECT;
    let expired = || {
        world(policy(|p| p.retention = ms(3_600_000)))
            .with([sent("a", 0, 10).ok(1), sent("b", 40, 50).ok(2), sent("c", 40, 50).ok(2)])
            .pass(20, Span::from_millis(3_700_000), Some(Window::Retention))
    };
    check(&expired().count("k", "default", &[pay(1), pay(2)]), rule, Some(Held));
    check(&expired().count("k", "default", &[pay(1), pay(2), pay(3)]), rule, Some(Broken));
    check(&expired(), id::ONE_RESULT_PER_KEY, Some(Held));
    let within = world(policy(|p| p.retention = ms(3_600_000)))
        .with([sent("a", 0, 10).ok(1), sent("b", 40, 50).ok(2)])
        .pass(20, Span::from_millis(1_800_000), None);
    check(&within, id::ONE_RESULT_PER_KEY, Some(Broken));
}

#[test]
fn tenants_are_counted_apart_if_they_see_their_own_effects() {
    let rule = id::AT_MOST_ONE_EFFECT;
    let both = || plain().with([sent("a", 0, 10).ok(1), sent("b", 20, 30).tenant("other").ok(2)]);
    let own =
        |n: u64| both().count("k", "default", &[pay(1)]).count("k", "other", &(2..2 + n).map(pay).collect::<Vec<_>>());
    assert_eq!(own(1).broken(), Vec::<&str>::new());
    check(&own(2), rule, Some(Broken));
    let shared = [pay(1), pay(2)];
    let seen = both().count("k", "default", &shared).count("k", "other", &shared);
    assert_eq!(seen.broken(), Vec::<&str>::new());
    let shared = [pay(1), pay(2), pay(3)];
    check(&both().count("k", "default", &shared).count("k", "other", &shared), rule, Some(Broken));
}

#[test]
fn acknowledged_effect_exists() {
    let rule = id::ACKNOWLEDGED_EFFECT_EXISTS;
    let one = || plain().with([sent("a", 0, 10).ok(1)]);
    check(&one().count("k", "default", &[pay(1)]), rule, Some(Held));
    check(&one().count("k", "default", &[]), rule, Some(Broken));
    check(&one(), rule, None);
    let later = plain().with([sent("a", 0, 10).ok(1).status(202)]).count("k", "default", &[]);
    check(&later, rule, None);
    check(&later.rules(&[rule]), rule, Some(Undecided));
}

#[test]
fn one_result_per_key() {
    let rule = id::ONE_RESULT_PER_KEY;
    check(&plain().with([sent("a", 0, 10).ok(1), sent("b", 20, 30).ok(1)]), rule, Some(Held));
    check(&plain().with([sent("a", 0, 10).ok(1), sent("b", 20, 30).ok(2)]), rule, Some(Broken));
    let nameless = |n| sent(n, 0, 10).ok(1).identity(None);
    check(&plain().with([nameless("a"), nameless("b")]), rule, None);
    // An undocumented retention proves nothing about a long gap, and what the caller sent is no identity.
    check(&plain().with([sent("a", 0, 10).ok(1), sent("b", 70_000, 70_010).ok(2)]), rule, None);
    let echo = |n, from| sent(n, from, from + 1).ok(from).identity(Some("\"idp-run-k\"".into()));
    check(&plain().with([echo("a", 0), echo("b", 5)]), rule, None);
}

#[test]
fn no_foreign_answer() {
    let rule = id::NO_FOREIGN_ANSWER;
    let tenants = |b| plain().with([sent("a", 0, 10).ok(1), sent("b", 20, 30).tenant("other").ok(b)]);
    check(&tenants(2), rule, Some(Held));
    check(&tenants(1), rule, Some(Broken));
    let keys = |b| plain().with([sent("a", 0, 10).ok(1), sent("b", 20, 30).key("l").ok(b)]);
    check(&keys(2), rule, Some(Held));
    check(&keys(1), rule, Some(Broken));
    // Small numbers may be counted by each tenant for itself; words that every answer has are no identity.
    let numbered = |identity: &str| {
        let named = Some(identity.to_owned());
        let (a, b) = (sent("a", 0, 10).ok(1), sent("b", 20, 30).tenant("other").ok(1));
        plain().with([a.identity(named.clone()), b.identity(named)])
    };
    for identity in ["1", "\"approved\"", "\"pay_1\""] {
        check(&numbered(identity), rule, None);
        check(&numbered(identity).rules(&[rule]), rule, Some(Undecided));
        check(&numbered(identity).number("k", "default", 1).number("k", "other", 0), rule, Some(Broken));
    }
}

#[test]
fn different_request_not_served() {
    let rule = id::DIFFERENT_REQUEST_NOT_SERVED;
    let changed = |answered| plain().with([sent("a", 0, 10).ok(1), answered]);
    let b = || sent("b", 20, 30).role("changed");
    check(&changed(b().answer(422, "")), rule, Some(Held));
    check(&changed(b().ok(1)), rule, Some(Broken));
    check(&changed(b().ok(2)), rule, Some(Broken));
    check(&changed(b().answer(429, "")), rule, None);
    let executes = world(policy(|p| p.mismatch = Documented::As(Mismatch::Execute)));
    let executes = executes.with([sent("a", 0, 10).ok(1), b().ok(2)]).count("k", "default", &[pay(1), pay(2)]);
    check(&executes, rule, Some(Deviation));
    assert_eq!(executes.broken(), Vec::<&str>::new());
    // Other bytes of the same value are not another request.
    check(&plain().with([sent("a", 0, 10).ok(1), sent("b", 20, 30).role("base:spaced").ok(1)]), rule, None);
    // A corrected payload after a refusal is the first request that counts.
    let corrected = [sent("a", 0, 10).role("invalid").answer(422, ""), sent("b", 20, 30).ok(1)];
    assert_eq!(plain().with(corrected).broken(), Vec::<&str>::new());
}

#[test]
fn replays_look_like_the_original() {
    let with = |change: &dyn Fn(&mut Policy), b| world(policy(change)).with([sent("a", 0, 10).ok(1), b]);
    let b = || sent("b", 20, 30).ok(1);
    let drift = || b().status(200);
    check(&with(&|_| {}, b()), id::REPLAY_SAME_STATUS, Some(Held));
    check(&with(&|_| {}, drift()), id::REPLAY_SAME_STATUS, Some(Broken));
    let other = |p: &mut Policy| p.replay.status = ReplayStatus::Other(StatusSet::of(&[200]));
    check(&with(&other, drift()), id::REPLAY_SAME_STATUS, Some(Deviation));
    // In an overlap the one that was sent first may be the replay.
    let first_is_replay = |change: &dyn Fn(&mut Policy), from| {
        world(policy(change)).with([sent("a", 0, 10).ok(1).status(200), sent("b", from, 30).ok(1)])
    };
    check(&first_is_replay(&other, 5), id::REPLAY_SAME_STATUS, Some(Deviation));
    check(&first_is_replay(&other, 20), id::REPLAY_SAME_STATUS, Some(Broken));
    check(&first_is_replay(&|_| {}, 5), id::REPLAY_SAME_STATUS, Some(Broken));

    let body = |text: &str| sent("b", 20, 30).answer(201, text).identity(Some(pay(1)));
    check(&with(&|_| {}, b()), id::REPLAY_SAME_BODY, Some(Held));
    check(&with(&|_| {}, body(&format!("{{ \"id\" : {} }}", pay(1)))), id::REPLAY_SAME_BODY, Some(Held));
    check(&with(&|_| {}, body(&format!("{{\"id\":{},\"x\":1}}", pay(1)))), id::REPLAY_SAME_BODY, Some(Broken));
    check(&with(&|_| {}, body("").identity(None)), id::REPLAY_SAME_BODY, Some(Broken));
    let zipped = body("zzz").field("content-encoding", "gzip");
    check(&with(&|_| {}, zipped), id::REPLAY_SAME_BODY, None);

    check(&with(&|_| {}, b()), id::REPLAY_KEEPS_LOCATION, Some(Held));
    check(&with(&|_| {}, b().field("location", "")), id::REPLAY_KEEPS_LOCATION, Some(Broken));
    let drops = |p: &mut Policy| p.replay.keeps = Vec::new();
    check(&with(&drops, b().field("location", "")), id::REPLAY_KEEPS_LOCATION, Some(Deviation));
    check(&with(&drops, b().field("location", "/payments/9")), id::REPLAY_KEEPS_LOCATION, Some(Broken));

    let typed = |value| b().field("content-type", value);
    check(&with(&|_| {}, typed("Application/JSON; charset=utf-8")), id::REPLAY_KEEPS_CONTENT_TYPE, Some(Held));
    check(&with(&|_| {}, typed("text/html")), id::REPLAY_KEEPS_CONTENT_TYPE, Some(Broken));
    let bare = plain().with([sent("a", 0, 10).ok(1).field("location", ""), b()]);
    check(&bare, id::REPLAY_KEEPS_LOCATION, None);
}

#[test]
fn replay_marker_as_documented() {
    let rule = id::REPLAY_MARKER_AS_DOCUMENTED;
    let marked = || world(policy(|p| p.replay.marker = Some(("x-replay".parse().unwrap(), "true".parse().unwrap()))));
    let (a, b) = (|| sent("a", 0, 10).ok(1), || sent("b", 20, 30).ok(1));
    check(&marked().with([a(), b().field("x-replay", "true")]), rule, Some(Held));
    check(&marked().with([a(), b()]), rule, Some(Broken));
    check(&marked().with([a().field("x-replay", "true")]), rule, Some(Broken));
    check(&plain().with([a(), b()]), rule, None);
    let together = || sent("b", 0, 10).ok(1);
    check(&marked().with([a(), together()]), rule, Some(Broken));
    check(&marked().with([a().field("x-replay", "true"), together()]), rule, None);
}

#[test]
fn losers_and_late_duplicates_get_no_server_error() {
    let rule = id::NO_5XX_FOR_LOSERS;
    let with = |b| plain().with([sent("a", 0, 10).ok(1), b]);
    check(&with(sent("b", 2, 4).answer(409, "")), rule, Some(Held));
    check(&with(sent("b", 2, 4).answer(500, "")), rule, Some(Broken));
    check(&with(sent("b", 2, 4).answer(503, "")), rule, None);
    check(&with(sent("b", 2, 4).answer(503, "")).rules(&[rule]), rule, Some(Undecided));
    check(&with(sent("b", 2, 4).answer(500, "").hook("fail before")), rule, None);
    let pinned = [sent("a", 0, 1).answer(500, "").hook("fail before"), sent("b", 5, 9).answer(500, "")];
    check(&plain().with(pinned), rule, None);
}

#[test]
fn refusals_in_flight() {
    let with = |change: &dyn Fn(&mut Policy), status| {
        let winner = sent("a", 0, 10).ok(1);
        world(policy(change)).with([winner, sent("b", 2, 4).answer(status, "")])
    };
    let refuses = |p: &mut Policy| p.in_flight = Documented::As(InFlight::Refuse);
    let locked = |p: &mut Policy| p.in_flight_status = StatusSet::of(&[423]);
    check(&with(&refuses, 409), id::IN_FLIGHT_IS_409, Some(Held));
    check(&with(&refuses, 409), id::IN_FLIGHT_AS_DOCUMENTED, Some(Held));
    check(&with(&locked, 423), id::IN_FLIGHT_IS_409, Some(Deviation));
    check(&with(&refuses, 423), id::IN_FLIGHT_IS_409, Some(Broken));
    check(&with(&refuses, 423), id::IN_FLIGHT_AS_DOCUMENTED, Some(Broken));
    for noise in [401, 403, 429] {
        check(&with(&refuses, noise), id::IN_FLIGHT_IS_409, None);
        assert_eq!(with(&refuses, noise).broken(), Vec::<&str>::new());
    }
    let waits = |p: &mut Policy| p.in_flight = Documented::As(InFlight::Wait);
    check(&with(&waits, 409), id::IN_FLIGHT_AS_DOCUMENTED, Some(Broken));
    // An owner that is fenced off after its lease is no duplicate that should have waited.
    let fenced = |lease| {
        let policy = policy(|p| {
            waits(p);
            p.lease = ms(lease);
        });
        world(policy).with([sent("a", 0, 5_000).answer(409, ""), sent("b", 4_000, 5_500).ok(1)])
    };
    check(&fenced(1_000), id::IN_FLIGHT_AS_DOCUMENTED, None);
    check(&fenced(30_000), id::IN_FLIGHT_AS_DOCUMENTED, Some(Broken));
    let waited = world(policy(waits)).with([sent("a", 0, 10).ok(1), sent("b", 2, 11).ok(1)]);
    check(&waited, id::CONCURRENT_DUPLICATE_REFUSED_OR_WAITS, Some(Held));
    let raced = plain().with([sent("a", 0, 10).ok(1), sent("b", 2, 11).ok(2)]);
    check(&raced, id::CONCURRENT_DUPLICATE_REFUSED_OR_WAITS, Some(Broken));
}

#[test]
fn refusals_of_other_payloads() {
    let with = |change: &dyn Fn(&mut Policy), b| world(policy(change)).with([sent("a", 0, 10).ok(1), b]);
    let b = |status| sent("b", 20, 30).role("changed").answer(status, "");
    let refuses = |p: &mut Policy| p.mismatch = Documented::As(Mismatch::Refuse);
    let bad = |p: &mut Policy| p.mismatch_status = StatusSet::of(&[400]);
    check(&with(&refuses, b(422)), id::MISMATCH_IS_422, Some(Held));
    check(&with(&refuses, b(422)), id::MISMATCH_AS_DOCUMENTED, Some(Held));
    check(&with(&bad, b(400)), id::MISMATCH_IS_422, Some(Deviation));
    check(&with(&refuses, b(409)), id::MISMATCH_IS_422, Some(Broken));
    check(&with(&refuses, b(409)), id::MISMATCH_AS_DOCUMENTED, Some(Broken));
    check(&with(&refuses, b(401)), id::MISMATCH_AS_DOCUMENTED, None);
    let replays = |p: &mut Policy| p.mismatch = Documented::As(Mismatch::Replay);
    check(&with(&replays, sent("b", 20, 30).role("changed").ok(1)), id::MISMATCH_AS_DOCUMENTED, Some(Held));
    check(&with(&replays, sent("b", 20, 30).role("changed").ok(2)), id::MISMATCH_AS_DOCUMENTED, Some(Broken));
    check(&with(&replays, b(422)), id::MISMATCH_AS_DOCUMENTED, Some(Broken));
}

#[test]
fn missing_keys() {
    let with = |change: &dyn Fn(&mut Policy), status| {
        let keyed = sent("a", 0, 10).ok(1);
        world(policy(change)).with([keyed, sent("b", 20, 30).keyless().answer(status, "")])
    };
    let required = |p: &mut Policy| p.key.required = Documented::As(true);
    let optional = |p: &mut Policy| p.key.required = Documented::As(false);
    check(&with(&required, 400), id::MISSING_KEY_IS_400, Some(Held));
    check(&with(&required, 400), id::MISSING_KEY_AS_DOCUMENTED, Some(Held));
    check(&with(&required, 422), id::MISSING_KEY_IS_400, Some(Broken));
    let documented = |p: &mut Policy| {
        p.key.required = Documented::As(true);
        p.key.missing_status = StatusSet::of(&[422]);
    };
    check(&with(&documented, 422), id::MISSING_KEY_IS_400, Some(Deviation));
    check(&with(&optional, 400), id::MISSING_KEY_AS_DOCUMENTED, Some(Broken));
    check(&with(&required, 201), id::MISSING_KEY_AS_DOCUMENTED, Some(Broken));
    check(&with(&optional, 201), id::MISSING_KEY_AS_DOCUMENTED, Some(Held));
    check(&with(&required, 401), id::MISSING_KEY_AS_DOCUMENTED, None);
    check(&with(&|_| {}, 422), id::MISSING_KEY_AS_DOCUMENTED, None);
    check(&with(&required, 400).number("b", "default", 0), id::MISSING_KEY_NO_EFFECT, Some(Held));
    check(&with(&required, 400).number("b", "default", 1), id::MISSING_KEY_NO_EFFECT, Some(Broken));
    check(&with(&required, 400), id::MISSING_KEY_NO_EFFECT, None);
}

#[test]
fn truncated_requests_are_not_executed() {
    let rule = id::TRUNCATED_REQUEST_NOT_EXECUTED;
    let cut = |hit| plain().with([sent("a", 0, 10).lost().fault(NetworkFault::CutRequestBody, hit)]);
    check(&cut(true).number("k", "default", 0), rule, Some(Held));
    check(&cut(true).number("k", "default", 1), rule, Some(Broken));
    check(&cut(false).number("k", "default", 1), rule, None);
}

#[test]
fn keys_are_not_wedged_past_the_lease() {
    let rule = id::KEY_NEVER_WEDGED;
    let leased =
        |b| {
            world(policy(|p| p.lease = ms(30_000)))
                .with([sent("a", 0, 10).answer(500, "").hook("fail before"), b])
                .pass(15, Span::from_millis(40_000), Some(Window::Lease))
        };
    check(&leased(sent("b", 20, 30).answer(409, "")), rule, Some(Broken));
    check(&leased(sent("b", 20, 30).ok(1)), rule, Some(Held));
    check(&leased(sent("b", 12, 14).answer(409, "")), rule, None);
    let unknown = plain().with([sent("a", 0, 10).answer(500, ""), sent("b", 90_000, 90_001).answer(409, "")]);
    check(&unknown, rule, None);
}

#[test]
fn replay_returns_result() {
    let rule = id::REPLAY_RETURNS_RESULT;
    let with = |b| plain().with([sent("a", 0, 10).ok(1), b]);
    check(&with(sent("b", 20, 30).ok(1)), rule, Some(Held));
    check(&with(sent("b", 20, 30).answer(422, "")), rule, Some(Broken));
    check(&with(sent("b", 20, 30).answer(429, "")), rule, None);
    let hooked = [sent("a", 0, 10).ok(1).hook("slow 300ms"), sent("b", 20, 30).answer(422, "")];
    check(&plain().with(hooked), rule, None);
}

#[test]
fn refused_credentials_leave_the_key() {
    let rule = id::REFUSAL_BEFORE_HANDLER_LEAVES_KEY;
    let refused = || sent("a", 0, 10).tenant("stranger").answer(401, "who are you");
    let known = || sent("c", 40, 50).key("c").ok(7);
    check(&plain().with([refused(), sent("b", 20, 30).ok(1)]), rule, Some(Held));
    let again = || sent("b", 20, 30).answer(401, "who are you");
    check(&plain().with([refused(), again(), known()]), rule, Some(Broken));
    // A caller that is never served may be unknown itself, and another refusal is another matter.
    check(&plain().with([refused(), again()]), rule, None);
    check(&plain().with([refused(), sent("b", 20, 30).answer(403, "not you"), known()]), rule, None);
}

#[test]
fn replays_of_answers_that_name_nothing_are_known_by_their_marker() {
    let marker = || world(policy(|p| p.replay.marker = Some(("replayed".parse().unwrap(), "yes".parse().unwrap()))));
    let first = || sent("a", 0, 10).answer(201, "PDF 1");
    let again = |body| sent("b", 20, 30).answer(201, body).field("replayed", "yes");
    check(&marker().with([first(), again("PDF 1")]), id::REPLAY_SAME_BODY, Some(Held));
    check(&marker().with([first(), again("PDF")]), id::REPLAY_SAME_BODY, Some(Broken));
    check(&plain().with([first(), again("PDF")]), id::REPLAY_SAME_BODY, None);
}
