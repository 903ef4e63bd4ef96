//! What a case itself expects, and what keeps it from saying anything.

use idemproof::{
    judge::{Decision, Gate, Verdict, combine, judge},
    spec::id,
    suite::{
        NetworkFault,
        Word::{self, BadKey, Executed, InFlight, Lost, Mismatch, MissingKey, Rejected, Replay, ServerError, Success},
    },
    target::Policy,
};

use crate::build::{Build, PLACE, World, id as pay, sent, world};

const RULE: idemproof::spec::RuleId = id::LOST_RESPONSE_RECOVERABLE;

fn case() -> World {
    world(Policy::default()).rules(&[RULE])
}

fn comes_to(world: &World, verdict: Verdict, about: &str) {
    let judged = world.judged();
    assert_eq!(judged.verdict, verdict, "{judged:#?}");
    let said = judged.reason.map(|reason| format!("{}; {}", reason.why, reason.remedy)).unwrap_or_default();
    let said = said + &judged.findings.iter().map(|finding| finding.message.as_str()).collect::<String>();
    assert!(said.contains(about), "`{about}` is not in `{said}`");
}

#[test]
fn an_answer_that_is_not_expected_breaks_the_first_rule_at_its_place() {
    let world = case().with([sent("a", 0, 10).answer(418, "teapot")]).expect("a", &[Success]);
    let judged = world.judged();
    assert_eq!(judged.verdict, Verdict::Failed);
    let finding = &judged.findings[0];
    assert_eq!((finding.rule, finding.decision, finding.place), (RULE, Decision::Broken, Some(PLACE)));
    assert_eq!(finding.message, "`a` was answered 418 teapot; expected success");
    assert_eq!(finding.attempts, ["a"]);
}

#[test]
fn words_are_told_by_identity_and_order() {
    let two = || case().with([sent("a", 0, 10).ok(1), sent("b", 20, 30).ok(1)]);
    comes_to(&two().expect("a", &[Executed]).expect("b", &[Replay]), Verdict::Passed, "as the case expects");
    comes_to(&two().expect("b", &[Executed]), Verdict::Failed, "expected executed");
    let waited = || case().with([sent("a", 0, 10).ok(1), sent("b", 2, 11).ok(1)]);
    comes_to(&waited().expect("a", &[Executed]).expect("b", &[Replay]), Verdict::Passed, "");
    let refused = || case().with([sent("a", 0, 10).ok(1), sent("b", 2, 4).answer(409, "")]);
    comes_to(&refused().expect("b", &[InFlight]), Verdict::Passed, "");
    comes_to(&refused().expect("b", &[Rejected]), Verdict::Failed, "409");
    let late = case().with([sent("a", 0, 10).ok(1), sent("b", 20, 30).answer(409, "")]);
    comes_to(&late.expect("b", &[Replay, InFlight]), Verdict::Failed, "409");
    let changed = case().with([sent("a", 0, 10).ok(1), sent("b", 20, 30).role("changed").answer(422, "")]);
    comes_to(&changed.expect("b", &[Mismatch]), Verdict::Passed, "");
    comes_to(&case().with([sent("a", 0, 5).answer(422, "")]).expect("a", &[Mismatch]), Verdict::Failed, "422");
    comes_to(&case().with([sent("a", 0, 5).answer(422, "")]).expect("a", &[Rejected]), Verdict::Passed, "");
}

#[test]
fn what_a_name_cannot_tell_the_counts_decide() {
    let lost = || case().with([sent("a", 0, 5).lost().fault(NetworkFault::LoseResponse, true), sent("b", 9, 12).ok(1)]);
    comes_to(&lost().expect("b", &[Replay]), Verdict::Inconclusive, "nothing shows whether `b`");
    let counted = lost().expect("b", &[Replay]).effects(&[1]);
    comes_to(&counted.clone().count("k", "default", &[pay(1)]), Verdict::Passed, "");
    comes_to(&counted.count("k", "default", &[pay(1), pay(2)]), Verdict::Failed, "expected 1");
    let uncounted = lost().expect("a", &[Lost]).expect("b", &[Success]).effects(&[1]);
    comes_to(&uncounted, Verdict::Inconclusive, "give the operation `effects`");
}

#[test]
fn noise_is_never_an_accusation() {
    for (status, remedy) in [(401, "credentials of tenant `default`"), (429, "limits.rate"), (503, "available")] {
        let noisy = case().with([sent("a", 0, 10).answer(status, "")]);
        comes_to(
            &noisy.clone().expect("a", &[Success]).effects(&[1]).number("k", "default", 0),
            Verdict::Inconclusive,
            remedy,
        );
        comes_to(&noisy.given("a", &[Success]).expect("a", &[Success]), Verdict::Inconclusive, remedy);
    }
    let burst = [sent("d#1", 0, 10).ok(1).burst("d"), sent("d#2", 0, 10).answer(429, "").burst("d")];
    comes_to(&case().with(burst).executions("d", 1, &[Replay, InFlight]), Verdict::Inconclusive, "limits.rate");
    let hung = case().with([sent("a", 0, 10).ok(1), sent("b", 20, 30).timed_out()]);
    comes_to(&hung.expect("b", &[Success]), Verdict::Inconclusive, "limits.timeout");
    let hooked = [sent("a", 0, 5).answer(500, "").hook("fail before"), sent("b", 9, 12).answer(422, "")];
    comes_to(&case().with(hooked).expect("b", &[Success]), Verdict::Inconclusive, "compares header fields");
}

#[test]
fn a_fault_must_have_struck() {
    let lost =
        |hit| case().with([sent("a", 0, 5).lost().fault(NetworkFault::LoseResponse, hit), sent("b", 9, 12).ok(1)]);
    comes_to(&lost(true).expect("b", &[Success]), Verdict::Passed, "");
    comes_to(&lost(false).expect("b", &[Success]), Verdict::Inconclusive, "nothing shows that the fault");
    let cut = |status| {
        let cut = sent("a", 0, 5).lost().fault(NetworkFault::CutWhileRunning, false);
        case().with([cut, sent("b", 6, 8).answer(status, ""), sent("c", 20, 30).ok(1)]).expect("c", &[Success])
    };
    comes_to(&cut(409), Verdict::Passed, "");
    comes_to(&cut(400), Verdict::Inconclusive, "nothing shows that the fault");
    let dull = case().with([sent("a", 0, 5).ok(1).hook("fail before")]).expect("a", &[ServerError]);
    comes_to(&dull, Verdict::Inconclusive, "was to be disturbed");
}

fn burst(answers: &[&dyn Fn(idemproof::history::Attempt) -> idemproof::history::Attempt], apart: bool) -> World {
    let members = answers.iter().enumerate().map(|(index, answer)| {
        let at = if apart { index as u64 * 20 } else { index as u64 };
        answer(sent(&format!("d#{}", index + 1), at, at + 10)).burst("d")
    });
    case().with(members.collect::<Vec<_>>())
}

#[test]
fn a_burst_executes_as_often_as_wanted() {
    let ok = |number: u64| move |attempt: idemproof::history::Attempt| attempt.ok(number);
    let refused = |attempt: idemproof::history::Attempt| attempt.answer(409, "");
    let rest: &[Word] = &[Replay, InFlight];
    let wants = |world: World| world.executions("d", 1, rest);
    comes_to(&wants(burst(&[&ok(1), &refused, &refused], false)), Verdict::Passed, "");
    comes_to(&wants(burst(&[&ok(1), &ok(1), &ok(1)], false)), Verdict::Passed, "");
    comes_to(&wants(burst(&[&ok(1), &ok(2), &refused], false)), Verdict::Failed, "2 of 3 attempts");
    comes_to(&wants(burst(&[&ok(1), &ok(1), &ok(2), &ok(2)], false)), Verdict::Failed, "2 of 4 attempts");
    comes_to(&wants(burst(&[&refused, &refused], false)), Verdict::Failed, "0 of 2 attempts");
    comes_to(&wants(burst(&[&ok(1), &ok(1)], true)), Verdict::Inconclusive, "no overlap was measured");
    let nameless = |attempt: idemproof::history::Attempt| attempt.ok(1).identity(None);
    comes_to(&wants(burst(&[&nameless, &nameless], false)), Verdict::Inconclusive, "how many attempts");
    let counted = wants(burst(&[&nameless, &nameless], false)).effects(&[1]).number("k", "default", 1);
    comes_to(&counted, Verdict::Passed, "");
    let failed = |attempt: idemproof::history::Attempt| attempt.answer(500, "db");
    comes_to(&wants(burst(&[&ok(1), &failed], false)), Verdict::Failed, "500 db");
}

#[test]
fn overlap_is_measured_and_needed() {
    let two = |from| {
        let mut world = case().with([sent("a", 0, 10).ok(1), sent("b", from, from + 10).ok(1)]).expect("b", &[Replay]);
        world.schedule.overlap = vec![vec!["a".into(), "b".into()]];
        world
    };
    comes_to(&two(5), Verdict::Passed, "");
    assert_eq!(two(5).judged().overlaps[0].together, 2);
    comes_to(&two(15), Verdict::Inconclusive, "no overlap was measured for `a` and `b`");
}

#[test]
fn nothing_determinate_is_inconclusive_and_so_is_a_stop() {
    let lost = case().with([sent("a", 0, 5).lost(), sent("b", 6, 9).lost()]);
    comes_to(&lost, Verdict::Inconclusive, "got no whole answer");
    let mut stopped = case().with([sent("a", 0, 5).ok(1)]);
    stopped.history.stopped = Some("interrupted".into());
    comes_to(&stopped, Verdict::Inconclusive, "interrupted");
    let mut proof = stopped.with([sent("b", 6, 9).ok(2)]);
    proof.history.stopped = Some("interrupted".into());
    comes_to(&proof, Verdict::Failed, "under one key");
    comes_to(&case(), Verdict::Inconclusive, "no attempt was answered");
}

#[test]
fn an_unmet_given_keeps_expectations_quiet_and_invariants_loud() {
    let unmet = || case().with([sent("a", 0, 5).answer(400, "no")]).given("a", &[Success]).expect("b", &[Replay]);
    let quiet = unmet().with([sent("b", 6, 9).answer(400, "no")]);
    comes_to(&quiet, Verdict::Inconclusive, "`a` was answered 400 no");
    comes_to(&unmet().with([sent("b", 6, 9).ok(1), sent("c", 10, 12).ok(2)]), Verdict::Failed, "under one key");
}

#[test]
fn the_worst_round_wins_and_is_named() {
    let good = case().with([sent("a", 0, 10).ok(1), sent("b", 2, 12).ok(1)]).judged();
    let bad = case().with([sent("a", 0, 10).ok(1), sent("b", 2, 12).ok(2)]).judged();
    let open = case().judged();
    let combined = combine(vec![good.clone(), good.clone(), bad.clone(), open.clone(), good.clone()]).unwrap();
    assert_eq!((combined.judgement.verdict, combined.round), (Verdict::Failed, 2));
    assert!(combined.judgement.findings[0].message.ends_with("(in round 3 of 5)"), "{combined:#?}");
    let combined = combine(vec![good.clone(), open]).unwrap();
    assert_eq!((combined.judgement.verdict, combined.round), (Verdict::Inconclusive, 1));
    assert!(combined.judgement.reason.is_some());
    let combined = combine(vec![bad.clone(), bad]).unwrap();
    assert!(!combined.judgement.findings[0].message.contains("round"));
    assert_eq!(combine(vec![good]).unwrap().judgement.verdict, Verdict::Passed);
    assert_eq!(combine(Vec::new()), None);
}

#[test]
fn the_gate_decides_about_the_draft() {
    let world = case().with([sent("a", 0, 10).ok(1), sent("b", 20, 30).role("changed").answer(409, "")]);
    assert_eq!(world.judged().verdict, Verdict::Passed);
    let strict = judge(&world.schedule, &world.history, Gate { strict_draft: true });
    assert_eq!(strict.verdict, Verdict::Failed);
    assert_eq!(strict.findings[0].rule, id::MISMATCH_IS_422);
}

#[test]
fn refusals_for_the_key_itself() {
    let raw = case().with([sent("a", 0, 5).raw("\"open").answer(400, "")]);
    comes_to(&raw.clone().expect("a", &[BadKey]), Verdict::Passed, "");
    comes_to(&raw.expect("a", &[Success]), Verdict::Failed, "400");
    let keyless = case().with([sent("a", 0, 5).keyless().answer(400, "")]);
    comes_to(&keyless.clone().expect("a", &[MissingKey]), Verdict::Passed, "");
    comes_to(&keyless.expect("a", &[BadKey]), Verdict::Failed, "400");
}

#[test]
fn a_burst_of_64_is_judged_at_once() {
    let members = (1..=64).map(|index| sent(&format!("d#{index}"), 0, 10).ok(1).burst("d"));
    let world = case().with(members.collect::<Vec<_>>()).executions("d", 1, &[Replay]).number("k", "default", 1);
    comes_to(&world, Verdict::Passed, "as the case expects");
}
