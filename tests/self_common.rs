//! Tests of the helpers in `tests/common`: outside things start, answer and stop, and what cannot be had is said.

mod common;

use common::{Need, external_trial, http, peer, requires_all, toxiproxy};
use libtest_mimic::{Arguments, Failed, Trial};
use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Output};
use tempfile::TempDir;

/// Set in the runs of this program that the trials start themselves, to see what a skipped trial looks like.
const PLANTED: &str = "SELF_COMMON_PLANTED";

fn main() {
    let arguments = Arguments::from_args();
    let trials = if std::env::var_os(PLANTED).is_some() { planted() } else { trials() };
    libtest_mimic::run(&arguments, trials).exit();
}

fn trials() -> Vec<Trial> {
    let mut trials = vec![
        Trial::test("skip::is_seen_with_its_reason", skip_is_seen),
        Trial::test("skip::fails_when_everything_is_required", skip_fails_when_required),
        Trial::test("skip::only_one_means_required", only_one_means_required),
        Trial::test("need::and_starts_the_second_only_after_the_first", and_keeps_order),
        Trial::test("peer::missing_or_stale_packages_are_named", packages_are_named),
        Trial::test("peer::one_that_ends_at_once_is_an_error_with_its_words", ending_peer_is_an_error),
        external_trial("toxiproxy::starts_and_stops", toxiproxy::start, |toxi| {
            let addr = toxi.addr();
            check(http::get(addr, "/version")?.body.contains("version"), "no version")?;
            check(http::get(addr, "/proxies")?.body.trim() == "{}", "a new Toxiproxy has proxies")
        }),
    ];
    for name in ["express-idempotency", "node-idempotency-nestjs", "fastapi-idempotency-key"] {
        trials.push(external_trial(
            format!("peer::{name}_replays"),
            || peer::start(name),
            |peer| {
                let first = pay(peer.addr(), "k", 100)?;
                let replay = pay(peer.addr(), "k", 100)?;
                let other = pay(peer.addr(), "k", 250)?;
                check(first.status == 201, "the first request is not 201")?;
                check((replay.status, &replay.body) == (201, &first.body), "the replay differs")?;
                check((400..500).contains(&other.status), "another payload is not refused")?;
                let listing = http::get(peer.addr(), "/payments?reference=r")?;
                check(listing.body.matches("pay_").count() == 1, "not exactly one payment")
            },
        ));
        trials.push(Trial::ignorable_test(format!("peer::{name}_stops_when_dropped"), || {
            let peer = match peer::start(name) {
                Need::Ready(peer) => peer,
                Need::Skipped(why) => return Ok(common::skip(&why)),
            };
            let (addr, data) = (peer.addr(), peer.data_dir().to_owned());
            drop(peer);
            check(TcpStream::connect(addr).is_err(), "it still listens")?;
            check(!data.exists(), "its data folder is still there")?;
            Ok(libtest_mimic::Completion::Completed)
        }));
    }
    trials
}

/// What a machine without Node and Toxiproxy sees.
fn planted() -> Vec<Trial> {
    vec![
        external_trial("planted::toxiproxy", toxiproxy::start, |_| Ok(())),
        external_trial("planted::peer", || peer::start("express-idempotency"), |_| Ok(())),
    ]
}

fn run_planted(require_all: Option<&str>) -> Result<(Output, String), Failed> {
    let empty = TempDir::new()?;
    let mut command = Command::new(std::env::current_exe()?);
    command.env(PLANTED, "1").env("PATH", empty.path());
    command.env_remove("IDEMPROOF_TOXIPROXY_BIN").env_remove("IDEMPROOF_REQUIRE_ALL");
    if let Some(value) = require_all {
        command.env("IDEMPROOF_REQUIRE_ALL", value);
    }
    let output = command.output()?;
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    Ok((output, text))
}

fn skip_is_seen() -> Result<(), Failed> {
    let (output, text) = run_planted(None)?;
    check(output.status.success(), &text)?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    check(stderr.contains("skipped: Toxiproxy: no toxiproxy-server on the PATH"), &text)?;
    check(stderr.contains("skipped: peer express-idempotency: node is not on the PATH"), &text)?;
    check(text.contains("2 ignored") && text.contains("ignored (peer express-idempotency: node"), &text)
}

fn skip_fails_when_required() -> Result<(), Failed> {
    let (output, text) = run_planted(Some("1"))?;
    check(!output.status.success(), &text)?;
    check(text.contains("2 failed") && text.contains("nothing may be skipped"), &text)
}

fn only_one_means_required() -> Result<(), Failed> {
    check(requires_all(Some("1".into())), "1")?;
    check(!requires_all(Some("0".into())) && !requires_all(Some("".into())) && !requires_all(None), "0, empty, unset")
}

fn and_keeps_order() -> Result<(), Failed> {
    let no = |what: &str| common::Skip { what: what.to_owned(), why: "not here".to_owned() };
    let both = Need::Ready(1).and(|| Need::Ready(2));
    check(matches!(both, Need::Ready((1, 2))), "both are ready")?;
    let second = Need::Ready(1).and(|| Need::<u8>::Skipped(no("second")));
    check(matches!(second, Need::Skipped(skip) if skip.what == "second"), "the second is named")?;
    let mut started = false;
    let first = Need::<u8>::Skipped(no("first")).and(|| {
        started = true;
        Need::Ready(2)
    });
    check(matches!(first, Need::Skipped(skip) if skip.what == "first") && !started, "the second was started")
}

fn packages_are_named() -> Result<(), Failed> {
    let folder = TempDir::new()?;
    let programs = TempDir::new()?;
    let (root, path) = (folder.path(), Some(programs.path().as_os_str()));
    let says = |words: &str| match peer::installed(root, path) {
        Ok(()) => Err(Failed::from(format!("taken for installed, expected: {words}"))),
        Err(why) => check(why.contains(words), &why),
    };
    fs::write(root.join("package-lock.json"), "{}")?;
    says("node is not on the PATH")?;
    fs::write(programs.path().join("node"), "")?;
    says("its packages are not installed; run ")?;
    fs::create_dir(root.join("node_modules"))?;
    says("its packages are not installed; run ")?;
    fs::write(root.join("node_modules/.installed.lock"), "{ }")?;
    says("its packages are not those of package-lock.json")?;
    fs::write(root.join("node_modules/.installed.lock"), "{}")?;
    check(peer::installed(root, path).is_ok(), "an installed peer is not seen")?;
    fs::remove_file(root.join("package-lock.json"))?;
    fs::write(root.join("requirements.lock.txt"), "x==1")?;
    says("its packages are not installed")?;
    fs::create_dir(root.join(".venv"))?;
    fs::write(root.join(".venv/.installed.lock"), "x==1")?;
    check(peer::installed(root, path).is_ok(), "an installed Python peer is not seen")
}

fn ending_peer_is_an_error() -> Result<(), Failed> {
    let folder = TempDir::new()?;
    fs::write(folder.path().join("start.sh"), "echo cannot go on >&2\nexit 3\n")?;
    match peer::launch(folder.path(), &[]) {
        Ok(_) => Err("it was taken for a running peer".into()),
        Err(trouble) => check(trouble.contains("exit status: 3") && trouble.contains("cannot go on"), &trouble),
    }
}

fn pay(addr: SocketAddr, key: &str, amount: u32) -> std::io::Result<http::Answer> {
    let json = format!(r#"{{"amount":{amount},"currency":"TRY","reference":"r"}}"#);
    http::post(addr, "/payments", &[("Idempotency-Key", key)], &json)
}

fn check(holds: bool, otherwise: &str) -> Result<(), Failed> {
    if holds { Ok(()) } else { Err(otherwise.into()) }
}
