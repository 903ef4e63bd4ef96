//! Both stores against the same demands, and against each other.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::*;
use crate::reference::core::{Fingerprint, State};
use proptest::prelude::*;
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

fn payment(id: u128) -> Payment {
    Payment {
        id: format!("pay_{id}"),
        tenant: "a".into(),
        amount: i64::MAX,
        currency: "TRY".into(),
        reference: "r'\u{0}\"ü".into(),
        status: "approved",
    }
}

fn completion(owner: u128, now: Time) -> Completion {
    let headers = vec![("location".into(), format!("/payments/{owner}")), ("x".into(), "\"".into())];
    let answer = Answer { status: 201, headers, body: vec![0, 255, b'"'].into() };
    Completion { owner: OwnerToken(owner), answer, effects: vec![payment(owner)], now }
}

async fn effects(store: &Arc<dyn Store>) -> Vec<Payment> {
    store.payments("a".into(), payment(0).reference).await.unwrap()
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
        let lost = store.complete(id("a", "k"), completion(1, late), TERMS).await.unwrap();
        assert_eq!((lost, effects(store).await), (Err(LostLease), vec![]));
        store.release(id("a", "k"), OwnerToken(1)).await.unwrap();
        assert_eq!(store.complete(id("a", "k"), completion(2, late), TERMS).await.unwrap(), Ok(()));
        assert_eq!(effects(store).await, [payment(2)]);
        store.release(id("a", "k"), OwnerToken(2)).await.unwrap();
        let again = store.claim(id("a", "k"), request(1, 3, late), TERMS).await.unwrap();
        assert_eq!(again, Verdict::Replay(completion(2, late).answer));
        assert_eq!(store.payment("b".into(), "pay_2".into()).await.unwrap(), None);
        assert_eq!(store.payment("a".into(), "pay_2".into()).await.unwrap(), Some(payment(2)));
        // A second payment of one id breaks the transaction of a completion, and the record stays as it was.
        assert!(matches!(store.claim(id("a", "l"), request(1, 4, late), TERMS).await.unwrap(), Verdict::Granted(_)));
    }
    let sqlite = &both.stores[1];
    let clash = Completion { effects: vec![payment(2)], ..completion(4, T0) };
    assert!(sqlite.complete(id("a", "l"), clash, TERMS).await.is_err());
    let record = sqlite.look(id("a", "l")).await.unwrap().unwrap();
    assert!(matches!(record.state, State::Claimed { .. }));
}

#[tokio::test]
async fn a_file_keeps_its_records() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let store = Sqlite::open(&path).unwrap();
    store.claim(id("a", "k"), request(1, 1, T0), TERMS).await.unwrap();
    store.complete(id("a", "k"), completion(1, T0), TERMS).await.unwrap().unwrap();
    drop(store);
    let store = Sqlite::open(&path).unwrap();
    let verdict = store.claim(id("a", "k"), request(1, 2, T0), TERMS).await.unwrap();
    assert_eq!(verdict, Verdict::Replay(completion(1, T0).answer));
    assert_eq!(store.sweep(Time(T0.0 + 199)).await.unwrap(), 0);
    assert_eq!(store.sweep(Time(T0.0 + 200)).await.unwrap(), 1);
    assert_eq!(store.look(id("a", "k")).await.unwrap(), None);
}

#[test]
fn choices_are_read_and_shown() {
    for text in ["memory", "sqlite:a b/c:d.db"] {
        assert_eq!(text.parse::<StoreChoice>().unwrap().to_string(), text);
    }
    for text in ["", "Memory", "sqlite", "sqlite:", "sqlite::memory:", "memory:", "postgres://x"] {
        let error = text.parse::<StoreChoice>().unwrap_err().to_string();
        assert!(error.contains("sqlite:PATH"), "{error}");
    }
}

/// One use of a store.
#[derive(Debug, Clone)]
enum Use {
    Claim { tenant: u8, fingerprint: u8, owner: u8 },
    Complete { tenant: u8, owner: u8 },
    Release { tenant: u8, owner: u8 },
    Clock { by: u64 },
    Sweep,
}

fn uses() -> impl Strategy<Value = Vec<Use>> {
    let one = prop_oneof![
        4 => (0..2u8, 0..2u8, 0..4u8).prop_map(|(tenant, fingerprint, owner)| Use::Claim { tenant, fingerprint, owner }),
        3 => (0..2u8, 0..4u8).prop_map(|(tenant, owner)| Use::Complete { tenant, owner }),
        1 => (0..2u8, 0..4u8).prop_map(|(tenant, owner)| Use::Release { tenant, owner }),
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
                let effect = Payment { id: format!("pay_{run}_{paid}"), reference: run.to_string(), ..payment(0) };
                let completion = Completion { effects: vec![effect], ..completion(owner.into(), now) };
                log.push(format!("{:?}", store.complete(id_of(tenant), completion, TERMS).await.unwrap()));
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
    log.push(format!("{:?}", store.payments("a".into(), run.to_string()).await.unwrap()));
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
