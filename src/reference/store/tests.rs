//! Both stores against the same demands, and against each other.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::*;
use crate::reference::core::{Fingerprint, State};
use proptest::prelude::*;
use serde_json::json;
use std::time::Duration;

const TERMS: Terms = Terms { lease: Duration::from_millis(30), retention: Duration::from_millis(200) };
const T0: Time = Time(1_000);

struct Both {
    _folder: tempfile::TempDir,
    stores: [Arc<dyn Store>; 2],
}

fn both() -> Both {
    let folder = tempfile::tempdir().unwrap();
    let sqlite = Sqlite::open(&folder.path().join("store.db")).unwrap();
    Both { stores: [Arc::new(Memory::default()), Arc::new(sqlite)], _folder: folder }
}

fn id(tenant: &str, key: &str) -> KeyId {
    KeyId { scope: Scope { tenant: tenant.into(), method: "POST", route: "/payments" }, key: key.into() }
}

fn request(fingerprint: u8, owner: u128, now: Time) -> Claim {
    Claim { fingerprint: Fingerprint([fingerprint; 32]), owner: OwnerToken(owner), now }
}

fn row(id: &str, reference: &str) -> Row {
    let id = RowId { kind: Kind::Payment, tenant: "a".into(), id: id.into() };
    Row { tag: format!("tag of {}", id.id), ..Row::new(id, reference, json!({"b": i64::MAX, "a": "\u{0}'\"ü"})) }
}

const REFERENCE: &str = "r'\"ü";

fn payment(id: u128) -> Row {
    row(&format!("pay_{id}"), REFERENCE)
}

fn completion(owner: u128, now: Time) -> Phase {
    let headers = vec![("location".into(), format!("/payments/{owner}")), ("x".into(), "\"".into())];
    let answer = Answer { status: 201, headers, body: vec![0, 255, b'"'].into() };
    let effects = vec![Effect::Insert(payment(owner))];
    Phase { owner: OwnerToken(owner), end: End::Answer(answer), effects, now }
}

fn answer_of(phase: &Phase) -> Answer {
    match &phase.end {
        End::Answer(answer) => answer.clone(),
        End::Point(_) => panic!("no answer"),
    }
}

fn point(owner: u128, name: &str, effects: Vec<Effect>, now: Time) -> Phase {
    let reached = Recovery { point: name.into(), saved: format!("{{\"of\":\"{name}\"}}") };
    Phase { owner: OwnerToken(owner), end: End::Point(reached), effects, now }
}

async fn effects(store: &Arc<dyn Store>) -> Vec<Row> {
    store.list(Kind::Payment, "a".into(), REFERENCE.into()).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_many_claims_is_granted() {
    let both = both();
    for store in &both.stores {
        let claims: Vec<_> = (0..32)
            .map(|owner| {
                let store = Arc::clone(store);
                tokio::spawn(async move { store.claim(id("a", "k"), request(1, owner, T0), TERMS).await.unwrap() })
            })
            .collect();
        let mut granted = 0;
        for claim in claims {
            match claim.await.unwrap() {
                Verdict::Granted(_) => granted += 1,
                verdict => assert_eq!(verdict, Verdict::InFlight(Time(T0.0 + 30))),
            }
        }
        assert_eq!(granted, 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_that_share_a_file_share_its_keys() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let stores: Vec<_> = (0..4)
        .map(|_| {
            std::thread::spawn({
                let path = path.clone();
                move || Sqlite::open(&path).unwrap()
            })
        })
        .collect();
    let stores: Vec<_> = stores.into_iter().map(|thread| Arc::new(thread.join().unwrap())).collect();
    for round in 0..10 {
        let key = format!("k{round}");
        let claims: Vec<_> = stores
            .iter()
            .enumerate()
            .map(|(owner, store)| {
                let (store, id) = (Arc::clone(store), id("a", &key));
                tokio::spawn(async move { store.claim(id, request(1, owner as u128, T0), TERMS).await.unwrap() })
            })
            .collect();
        let mut granted = 0;
        for claim in claims {
            granted += usize::from(matches!(claim.await.unwrap(), Verdict::Granted(_)));
        }
        assert_eq!(granted, 1);
    }
}

#[tokio::test]
async fn completion_and_effects_commit_together_or_not_at_all() {
    let both = both();
    for store in &both.stores {
        let late = Time(T0.0 + 30);
        assert!(matches!(store.claim(id("a", "k"), request(1, 1, T0), TERMS).await.unwrap(), Verdict::Granted(_)));
        assert!(matches!(store.claim(id("a", "k"), request(1, 2, late), TERMS).await.unwrap(), Verdict::Granted(_)));
        let lost = store.commit_phase(id("a", "k"), completion(1, late), TERMS).await.unwrap();
        assert_eq!((lost, effects(store).await), (Err(LostLease.into()), vec![]));
        let lost = store.commit_phase(id("a", "k"), point(1, "p", vec![Effect::Insert(payment(1))], T0), TERMS).await;
        assert_eq!((lost.unwrap(), effects(store).await), (Err(LostLease.into()), vec![]));
        store.release(id("a", "k"), OwnerToken(1)).await.unwrap();
        assert_eq!(store.commit_phase(id("a", "k"), completion(2, late), TERMS).await.unwrap(), Ok(()));
        assert_eq!(effects(store).await, [payment(2)]);
        store.release(id("a", "k"), OwnerToken(2)).await.unwrap();
        let again = store.claim(id("a", "k"), request(1, 3, late), TERMS).await.unwrap();
        assert_eq!(again, Verdict::Replay(answer_of(&completion(2, late))));
        assert_eq!(store.find(RowId { tenant: "b".into(), ..payment(2).id }).await.unwrap(), None);
        assert_eq!(store.find(payment(2).id).await.unwrap(), Some(payment(2)));
        // A second payment of one id breaks the transaction of a completion, and the record stays as it was.
        assert!(matches!(store.claim(id("a", "l"), request(1, 4, late), TERMS).await.unwrap(), Verdict::Granted(_)));
        let effects_of = |payments: [Row; 2]| payments.map(Effect::Insert).to_vec();
        let clash = Phase { effects: effects_of([payment(5), payment(2)]), ..completion(4, T0) };
        let refused = store.commit_phase(id("a", "l"), clash, TERMS).await.unwrap();
        assert_eq!((refused, effects(store).await), (Err(Conflict.into()), vec![payment(2)]));
        let record = store.look(id("a", "l")).await.unwrap().unwrap();
        assert!(matches!(record.state, State::Claimed { .. }));
    }
}

#[tokio::test]
async fn whoever_takes_over_goes_on_after_the_last_phase() {
    let both = both();
    for store in &both.stores {
        let (k, claim) = (id("a", "k"), |owner, now| store.claim(id("a", "k"), request(1, owner, now), TERMS));
        assert!(matches!(claim(1, T0).await.unwrap(), Verdict::Granted(_)));
        let start = point(1, "started", vec![Effect::Insert(payment(1))], Time(T0.0 + 10));
        store.commit_phase(k.clone(), start, TERMS).await.unwrap().unwrap();
        assert_eq!(claim(2, Time(T0.0 + 39)).await.unwrap(), Verdict::InFlight(Time(T0.0 + 40)));
        store.renew(k.clone(), OwnerToken(1), Time(T0.0 + 20), TERMS).await.unwrap().unwrap();
        assert_eq!(claim(2, Time(T0.0 + 49)).await.unwrap(), Verdict::InFlight(Time(T0.0 + 50)));
        let Verdict::Granted(record) = claim(3, Time(T0.0 + 50)).await.unwrap() else { panic!("refused") };
        let State::Claimed { recovery: Some(recovery), .. } = record.state else { panic!("no recovery point") };
        assert_eq!((recovery.point.as_str(), recovery.saved.as_str()), ("started", "{\"of\":\"started\"}"));
        assert_eq!(store.renew(k.clone(), OwnerToken(1), T0, TERMS).await.unwrap(), Err(LostLease));
        // Given back after a phase: the next one goes on at once, and another payload is still a mismatch.
        store.release(k.clone(), OwnerToken(3)).await.unwrap();
        assert_eq!(store.renew(k.clone(), OwnerToken(3), Time(T0.0 + 51), TERMS).await.unwrap(), Err(LostLease));
        let other = store.claim(k.clone(), request(2, 4, Time(T0.0 + 51)), TERMS).await.unwrap();
        assert_eq!(other, Verdict::Mismatch);
        assert!(matches!(claim(5, Time(T0.0 + 51)).await.unwrap(), Verdict::Granted(_)));
        let finish = Phase { effects: vec![], ..completion(5, Time(T0.0 + 52)) };
        store.commit_phase(k.clone(), finish, TERMS).await.unwrap().unwrap();
        assert!(matches!(claim(6, Time(T0.0 + 53)).await.unwrap(), Verdict::Replay(_)));
        assert_eq!(effects(store).await, [payment(1)]);
    }
}

#[tokio::test]
async fn changes_that_find_other_rows_than_they_saw_are_conflicts() {
    let both = both();
    for store in &both.stores {
        let commit = async |effects: Vec<Effect>| store.commit(effects).await.unwrap();
        let first = row("x", "one");
        assert_eq!(commit(vec![Effect::Insert(first.clone()), Effect::Insert(row("y", "one"))]).await, Ok(()));
        assert_eq!(commit(vec![Effect::Insert(row("z", "one")), Effect::Insert(row("x", "one"))]).await, Err(Conflict));
        let second = Row { reference: "two".into(), ..first.changed(json!([1])) };
        let replace = |seen: &str| vec![Effect::Replace { seen: seen.into(), row: second.clone() }];
        assert_eq!(commit(replace("other")).await, Err(Conflict));
        assert_eq!(commit(replace(&first.tag)).await, Ok(()));
        assert_eq!(commit(replace(&first.tag)).await, Err(Conflict));
        let list = async |reference: &str| store.list(Kind::Payment, "a".into(), reference.into()).await.unwrap();
        assert_eq!((list("one").await, list("two").await), (vec![row("y", "one")], vec![second.clone()]));
        let remove = |seen: &str| vec![Effect::Remove { id: first.id.clone(), seen: seen.into() }];
        assert_eq!(commit(remove(&first.tag)).await, Err(Conflict));
        assert_eq!(commit(remove(&second.tag)).await, Ok(()));
        assert_eq!((commit(remove(&second.tag)).await, store.find(first.id).await.unwrap()), (Err(Conflict), None));
        assert_eq!(list("two").await, []);
    }
}

#[tokio::test]
async fn a_file_keeps_its_records() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let store = Sqlite::open(&path).unwrap();
    store.claim(id("a", "k"), request(1, 1, T0), TERMS).await.unwrap();
    store.commit_phase(id("a", "k"), completion(1, T0), TERMS).await.unwrap().unwrap();
    drop(store);
    let store = Sqlite::open(&path).unwrap();
    let verdict = store.claim(id("a", "k"), request(1, 2, T0), TERMS).await.unwrap();
    assert_eq!(verdict, Verdict::Replay(answer_of(&completion(1, T0))));
    assert_eq!(store.sweep(Time(T0.0 + 199)).await.unwrap(), 0);
    assert_eq!(store.sweep(Time(T0.0 + 200)).await.unwrap(), 1);
    assert_eq!(store.look(id("a", "k")).await.unwrap(), None);
}

#[test]
fn choices_are_read_and_shown() {
    for text in ["memory", "sqlite:a b/c:d.db", "postgres://127.0.0.1:5432/shop"] {
        assert_eq!(text.parse::<StoreChoice>().unwrap().to_string(), text);
    }
    let secret = "postgresql://me:hush%21@db.example:5433/shop?application_name=x&password=hush".parse::<StoreChoice>();
    let secret = secret.unwrap();
    assert_eq!(secret.to_string(), "postgres://me@db.example:5433/shop");
    assert!(!format!("{secret:?}").contains("hush"));
    for text in ["", "Memory", "sqlite", "sqlite:", "sqlite::memory:", "memory:", "mysql://x:hush@y/z"] {
        let error = text.parse::<StoreChoice>().unwrap_err().to_string();
        assert!(error.contains("sqlite:PATH") && error.contains("postgres://") && !error.contains("hush"), "{error}");
    }
    for text in ["postgres:", "postgres://h:port/db", "postgres://h/db?no_such=1", "postgres://me:hush@h:x/db"] {
        let error = text.parse::<StoreChoice>().unwrap_err().to_string();
        assert!(error.contains("PostgreSQL") && !error.contains("hush"), "{text} {error}");
    }
}

/// One use of a store.
#[derive(Debug, Clone)]
enum Use {
    Claim { tenant: u8, fingerprint: u8, owner: u8 },
    Complete { tenant: u8, owner: u8 },
    Advance { tenant: u8, owner: u8, clash: bool },
    Renew { tenant: u8, owner: u8 },
    Release { tenant: u8, owner: u8 },
    Clock { by: u64 },
    Sweep,
}

fn uses() -> impl Strategy<Value = Vec<Use>> {
    let one = prop_oneof![
        4 => (0..2u8, 0..2u8, 1..5u8).prop_map(|(tenant, fingerprint, owner)| Use::Claim { tenant, fingerprint, owner }),
        3 => (0..2u8, 1..5u8).prop_map(|(tenant, owner)| Use::Complete { tenant, owner }),
        2 => (0..2u8, 1..5u8, any::<bool>()).prop_map(|(tenant, owner, clash)| Use::Advance { tenant, owner, clash }),
        1 => (0..2u8, 1..5u8).prop_map(|(tenant, owner)| Use::Renew { tenant, owner }),
        1 => (0..2u8, 1..5u8).prop_map(|(tenant, owner)| Use::Release { tenant, owner }),
        2 => (0..120u64).prop_map(|by| Use::Clock { by }),
        1 => Just(Use::Sweep),
    ];
    proptest::collection::vec(one, 1..30)
}

/// Everything that can be seen of a store while it is used.
async fn seen(store: &Arc<dyn Store>, uses: &[Use], run: u32) -> Vec<String> {
    let mut now = T0;
    let mut log = Vec::new();
    let mut paid = 0;
    let id_of = |tenant: u8| id(&tenant.to_string(), &format!("k{run}"));
    for one in uses {
        match *one {
            Use::Claim { tenant, fingerprint, owner } => {
                let request = request(fingerprint, owner.into(), now);
                log.push(format!("{:?}", store.claim(id_of(tenant), request, TERMS).await.unwrap()));
            }
            Use::Complete { tenant, owner } => {
                paid += 1;
                let effect = Effect::Insert(row(&format!("pay_{run}_{paid}"), &run.to_string()));
                let completion = Phase { effects: vec![effect], ..completion(owner.into(), now) };
                log.push(format!("{:?}", store.commit_phase(id_of(tenant), completion, TERMS).await.unwrap()));
            }
            Use::Advance { tenant, owner, clash } => {
                paid += u32::from(!clash);
                let effect = Effect::Insert(row(&format!("pay_{run}_{paid}"), &run.to_string()));
                let phase = point(owner.into(), &format!("after {paid}"), vec![effect], now);
                log.push(format!("{:?}", store.commit_phase(id_of(tenant), phase, TERMS).await.unwrap()));
            }
            Use::Renew { tenant, owner } => {
                let renewed = store.renew(id_of(tenant), OwnerToken(owner.into()), now, TERMS).await.unwrap();
                log.push(format!("{renewed:?}"));
            }
            Use::Release { tenant, owner } => {
                store.release(id_of(tenant), OwnerToken(owner.into())).await.unwrap();
            }
            Use::Clock { by } => now = Time(now.0 + by),
            Use::Sweep => {
                store.sweep(now).await.unwrap();
            }
        }
        for tenant in 0..2 {
            log.push(format!("{:?}", store.look(id_of(tenant)).await.unwrap()));
        }
    }
    log.push(format!("{:?}", store.list(Kind::Payment, "a".into(), run.to_string()).await.unwrap()));
    log
}

#[test]
fn both_stores_do_the_same() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let both = both();
    let run = std::cell::Cell::new(0);
    let config = proptest::test_runner::Config { cases: 100, failure_persistence: None, ..ProptestConfig::default() };
    let mut runner = proptest::test_runner::TestRunner::new(config);
    runner
        .run(&uses(), |uses| {
            run.set(run.get() + 1);
            let number = run.get();
            let [memory, sqlite] = &both.stores;
            let logs =
                runtime.block_on(async { (seen(memory, &uses, number).await, seen(sqlite, &uses, number).await) });
            prop_assert_eq!(logs.0, logs.1);
            Ok(())
        })
        .unwrap();
}
