//! A PostgreSQL that is not there, goes away, is slow, or loses the answer to a commit.

use crate::client::{aside, count, keyed, pay, payment, send, until};
use crate::common::postgres::Postgres;
use crate::subject::{Subject, config, with_postgres};
use libtest_mimic::{Failed, Trial};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        Trial::test("a PostgreSQL that is not there is named, its password is not", not_there),
        with_postgres("a PostgreSQL that cannot be used is named", cannot_be_used),
        with_postgres("servers that start together create the tables once", start_together),
        with_postgres("a PostgreSQL that crashes loses and doubles nothing", crashes),
        with_postgres("a PostgreSQL that is locked refuses in time and does nothing", locked),
        with_postgres("a lost answer to a commit is found again", lost_commit),
        with_postgres("a PostgreSQL that falls silent is given up in time", silent),
        with_postgres("a restarted server goes on with what another has begun", restarted),
    ]
}

fn refusal(url: &str) -> String {
    match Subject::try_start(config(url, 1)) {
        Ok(_) => panic!("{url} is used"),
        Err(error) => error.to_string(),
    }
}

fn not_there() -> Result<(), Failed> {
    let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
    let error = refusal(&format!("postgres://me:hush@127.0.0.1:{port}/shop"));
    assert!(error.contains("cannot reach PostgreSQL") && error.contains(&port.to_string()), "{error}");
    assert!(!error.contains("hush"), "{error}");
    // Something that listens and says nothing.
    let mute = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let error = refusal(&format!("postgres://me:hush@{}/shop", mute.local_addr()?));
    assert!(error.contains("no answer within"), "{error}");
    Ok(())
}

fn cannot_be_used(postgres: &mut Postgres) -> Result<(), Failed> {
    let error = refusal(&postgres.url("nowhere"));
    assert!(error.contains("refuses the login") && error.contains("\"nowhere\" does not exist"), "{error}");
    let url = postgres.create("readonly");
    postgres.sql("postgres", "ALTER DATABASE readonly SET default_transaction_read_only = on");
    assert!(refusal(&url).contains("read-only"), "{}", refusal(&url));
    let url = postgres.create("other");
    postgres.sql("other", "CREATE SCHEMA idemproof; CREATE TABLE idemproof.idempotency_keys (mine text)");
    assert!(refusal(&url).contains("cannot be used"), "{}", refusal(&url));
    let url = postgres.create("older");
    postgres.sql("older", "CREATE SCHEMA idemproof; CREATE TABLE idemproof.version AS SELECT 99 AS version");
    assert!(refusal(&url).contains("another version"), "{}", refusal(&url));
    Ok(())
}

fn start_together(postgres: &mut Postgres) -> Result<(), Failed> {
    for round in 0..3 {
        let url = postgres.create(&format!("shop{round}"));
        let starts: Vec<_> = (0..4)
            .map(|_| {
                let url = url.clone();
                aside(move || Subject::try_start(config(&url, 1)).map(drop).map_err(|error| error.to_string()))
            })
            .collect();
        for start in starts {
            assert_eq!(start.join().expect("no panic"), Ok(()));
        }
    }
    Ok(())
}

fn crashes(postgres: &mut Postgres) -> Result<(), Failed> {
    let subject = Subject::start(&postgres.create("shop"), 2);
    let addr = subject.addr;
    assert_eq!(pay(addr, "done", "done", &[]).expect("an answer").status, 201);
    // One request is at work, and one comes, while the database is away.
    let at_work = aside(move || pay(addr, "work", "work", &[("X-Test-Delay-Ms", "800")]).expect("an answer"));
    until("it is at work", || {
        let claimed = "SELECT count(*) FROM idemproof.idempotency_keys WHERE idem_key = 'work'";
        postgres.sql("shop", claimed).trim() == "1"
    });
    postgres.crash();
    assert_eq!(at_work.join().expect("no panic").problem(), (503, "store-unavailable".into()));
    for _ in 0..3 {
        assert_eq!(pay(addr, "away", "away", &[]).expect("an answer").problem(), (503, "store-unavailable".into()));
        let list = send(addr, "GET", "/payments?reference=done", &[], "").expect("an answer");
        assert_eq!(list.problem(), (503, "store-unavailable".into()));
    }
    postgres.start_again();
    // The key that was at work is held by a dead claim until its lease ends.
    assert_eq!(pay(addr, "work", "work", &[]).expect("an answer").status, 409);
    crate::client::advance(addr, 30);
    for key in ["work", "away"] {
        let retry = pay(addr, key, key, &[]).expect("an answer");
        assert_eq!((retry.status, retry.replayed()), (201, false), "{key}");
        assert_eq!(count(addr, "/payments", key), 1);
    }
    assert!(pay(addr, "done", "done", &[]).expect("an answer").replayed());
    Ok(())
}

fn locked(postgres: &mut Postgres) -> Result<(), Failed> {
    let subject = Subject::start(&postgres.create("shop"), 1);
    let addr = subject.addr;
    // The lock goes when the session of psql ends.
    std::thread::scope(|scope| {
        let postgres = &*postgres;
        let lock = "BEGIN; LOCK TABLE idemproof.idempotency_keys IN ACCESS EXCLUSIVE MODE; SELECT pg_sleep(6); COMMIT";
        let holder = scope.spawn(move || postgres.sql("shop", lock));
        until("the lock is held", || {
            let held = "SELECT count(*) FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND granted AND relation = \
                        'idemproof.idempotency_keys'::regclass";
            postgres.sql("shop", held).trim() == "1"
        });
        let refused = pay(addr, "k", "r", &[]).expect("an answer");
        assert_eq!(refused.problem(), (503, "store-unavailable".into()));
        assert!(refused.body.contains("lock timeout"), "{refused:?}");
        holder.join().expect("the lock is given back");
    });
    assert_eq!(count(addr, "/payments", "r"), 0);
    let retry = pay(addr, "k", "r", &[]).expect("an answer");
    assert_eq!((retry.status, retry.replayed(), count(addr, "/payments", "r")), (201, false, 1));
    Ok(())
}

fn lost_commit(postgres: &mut Postgres) -> Result<(), Failed> {
    postgres.create("shop");
    let gate = Gate::open(postgres.addr());
    let subject = Subject::start(&Postgres::url_at(gate.addr, "shop"), 1);
    let addr = subject.addr;
    gate.set(LOSE_COMMIT);
    // The commit happens, and its answer does not come back.
    let lost = pay(addr, "k", "r", &[]).expect("an answer");
    assert_eq!(lost.problem(), (503, "store-unavailable".into()));
    gate.set(PASS);
    until("what was committed is seen", || count(addr, "/payments", "r") == 1);
    let retry = pay(addr, "k", "r", &[]).expect("an answer");
    assert_eq!((retry.status, retry.replayed(), count(addr, "/payments", "r")), (201, true, 1));
    Ok(())
}

fn silent(postgres: &mut Postgres) -> Result<(), Failed> {
    postgres.create("shop");
    let gate = Gate::open(postgres.addr());
    let subject = Subject::start(&Postgres::url_at(gate.addr, "shop"), 1);
    let addr = subject.addr;
    assert_eq!(pay(addr, "first", "first", &[]).expect("an answer").status, 201);
    gate.set(SWALLOW);
    let refused = pay(addr, "k", "r", &[]).expect("an answer");
    assert_eq!(refused.problem(), (503, "store-unavailable".into()));
    gate.set(PASS);
    // Whether the claim arrived is not known; if it did, it ends with its lease.
    crate::client::advance(addr, 30);
    let mut retry = pay(addr, "k", "r", &[]).expect("an answer");
    if retry.status == 503 {
        retry = pay(addr, "k", "r", &[]).expect("an answer");
    }
    assert_eq!((retry.status, count(addr, "/payments", "r")), (201, 1), "{retry:?}");
    Ok(())
}

fn restarted(postgres: &mut Postgres) -> Result<(), Failed> {
    let url = postgres.create("shop");
    let body = payment("r");
    let first = Subject::start(&url, 1);
    let crash = [("X-Test-Fail", "crash-between")];
    assert_eq!(keyed(first.addr, "POST", "/charges", "k", &body, &crash), None);
    drop(first);
    let second = Subject::start(&url, 1);
    assert_eq!(keyed(second.addr, "POST", "/charges", "k", &body, &[]).expect("an answer").status, 409);
    crate::client::advance(second.addr, 30);
    let retry = keyed(second.addr, "POST", "/charges", "k", &body, &[]).expect("an answer");
    assert_eq!((retry.status, retry.replayed()), (201, false));
    let counts = ["/payments", "/test/provider/charges"].map(|list| count(second.addr, list, "r"));
    assert_eq!(counts, [1, 1]);
    Ok(())
}

const PASS: u8 = 0;
/// Nothing goes either way; connections stay open.
const SWALLOW: u8 = 1;
/// A connection is cut when the client says COMMIT, which reaches the server.
const LOSE_COMMIT: u8 = 2;

/// What stands between the server and its database.
struct Gate {
    addr: SocketAddr,
    mode: Arc<AtomicU8>,
}

impl Gate {
    fn open(to: SocketAddr) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let addr = listener.local_addr().expect("its address");
        let mode = Arc::new(AtomicU8::new(PASS));
        let shared = Arc::clone(&mode);
        // Ends with the process; nothing is left of it but a port.
        aside(move || {
            for client in listener.incoming().flatten() {
                let Ok(server) = TcpStream::connect(to) else { continue };
                let ends = [(&client, &server, true), (&server, &client, false)];
                for (from, to, is_client) in ends {
                    let (from, to) = (from.try_clone().expect("a clone"), to.try_clone().expect("a clone"));
                    let mode = Arc::clone(&shared);
                    aside(move || pass(from, to, is_client, &mode));
                }
            }
        });
        Self { addr, mode }
    }

    fn set(&self, mode: u8) {
        self.mode.store(mode, Ordering::SeqCst);
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, is_client: bool, mode: &AtomicU8) {
    let mut buffer = [0; 16 * 1024];
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        let bytes = &buffer[..length];
        match mode.load(Ordering::SeqCst) {
            SWALLOW => continue,
            LOSE_COMMIT if is_client && bytes.windows(6).any(|window| window == b"COMMIT") => {
                // The client is cut off first, so that the answer finds nobody.
                let _ = from.shutdown(Shutdown::Both);
                let _ = to.write_all(bytes);
                return;
            }
            _ => {}
        }
        if to.write_all(bytes).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
}
