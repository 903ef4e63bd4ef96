//! Whose proxies are whose on a shared server: a run says that it is there with a marker, and a later run removes what
//! runs have left that are there no more.
//!
//! The marker is a disabled proxy whose upstream, an address of a name that never resolves, tells the process: the
//! machine with its process space, the process id, when it started, and the time. A process that has ended on this
//! machine is known to have; of other machines, only age tells.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use reqwest::Method;
use serde_json::{Value, json};

use super::{ChaosError, Client};

/// What all our proxies are called at the beginning.
const PREFIX: &str = "idemproof-";
/// What a run's marker is called at the end.
const SUFFIX: &str = "-owner";
/// No run lasts longer than this.
const LONGEST_RUN: Duration = Duration::from_secs(24 * 3600);

/// A process, as a marker tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Owner {
    /// The machine since its last start, and the process space in it. Zero where the system does not tell.
    place: u64,
    process: u32,
    /// When the process started, in the units of the system.
    started: u64,
    /// When the marker was made, in seconds since 1970.
    made: u64,
}

impl Owner {
    fn of_this_process() -> Self {
        let process = std::process::id();
        let made = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        Self { place: place(), process, started: started(process).unwrap_or(0), made }
    }

    /// The address that the marker leads to.
    fn upstream(self) -> String {
        let Self { place, process, started, made } = self;
        format!("owner-{place:x}-{process}-{started}-{made}.invalid:1")
    }

    fn read(upstream: &str) -> Option<Self> {
        let mut parts = upstream.strip_prefix("owner-")?.strip_suffix(".invalid:1")?.split('-');
        let owner = Self {
            place: u64::from_str_radix(parts.next()?, 16).ok()?,
            process: parts.next()?.parse().ok()?,
            started: parts.next()?.parse().ok()?,
            made: parts.next()?.parse().ok()?,
        };
        parts.next().is_none().then_some(owner)
    }

    /// Whether that run is over for certain.
    fn is_gone(self, now: Self) -> bool {
        if self.place != 0 && self.place == now.place {
            return started(self.process) != Some(self.started);
        }
        now.made.saturating_sub(self.made) > LONGEST_RUN.as_secs()
    }
}

/// A number for this machine since its last start and this process space in it.
fn place() -> u64 {
    let Ok(boot) = std::fs::read_to_string("/proc/sys/kernel/random/boot_id") else { return 0 };
    let Ok(space) = std::fs::read_link("/proc/self/ns/pid") else { return 0 };
    let mut hasher = DefaultHasher::new();
    (boot, space).hash(&mut hasher);
    hasher.finish()
}

/// When a process started; `None` when there is none.
fn started(process: u32) -> Option<u64> {
    let line = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name, in parentheses, can hold anything.
    let (_, fields) = line.rsplit_once(')')?;
    fields.split_whitespace().nth(19)?.parse().ok()
}

impl Client {
    fn prefix(&self) -> String {
        format!("{PREFIX}{}-", self.shared.settings.run_id)
    }

    /// Says on the server that this run is there, and removes the proxies of earlier runs that have ended without
    /// removing theirs. Gives how many that were. Proxies of others, and of runs that may go on, are left alone.
    ///
    /// # Errors
    /// What went wrong with a call.
    pub async fn claim(&self) -> Result<usize, ChaosError> {
        let me = Owner::of_this_process();
        let list = self.api().json(Method::GET, "/proxies", None).await?;
        let empty = serde_json::Map::new();
        let proxies = list.as_object().unwrap_or(&empty);
        let mut removed = 0;
        for name in abandoned(proxies, me) {
            match self.delete_proxy(name).await {
                Ok(was_there) => removed += usize::from(was_there),
                Err(error) if error.is_wedged() => return Err(error),
                // Somebody else may be just as tidy; what is left over hurts nobody.
                Err(_) => {}
            }
        }
        let name = format!("{}{}", self.prefix().trim_end_matches('-'), SUFFIX);
        let body = json!({"name": name, "listen": "127.0.0.1:0", "upstream": me.upstream(), "enabled": false});
        self.made().insert(name.clone());
        let answer = self.api().json(Method::POST, "/proxies", Some(&body)).await.inspect_err(|error| {
            // A clear refusal means that nothing was made, or that the name is somebody else's.
            if matches!(error, ChaosError::Refused { .. }) && !error.is_wedged() {
                self.made().remove(&name);
            }
        })?;
        super::http::same("POST /proxies", "name", &Value::from(name), &answer)?;
        Ok(removed)
    }

    /// Whether the name is that of this run's marker.
    pub(super) fn is_marker(&self, name: &str) -> bool {
        name.strip_prefix(self.prefix().trim_end_matches('-')) == Some(SUFFIX)
    }
}

/// The proxies of runs that are over, each marker behind what it marks.
fn abandoned(proxies: &serde_json::Map<String, Value>, me: Owner) -> Vec<&str> {
    let (mut gone, mut living) = (Vec::new(), Vec::new());
    for (name, proxy) in proxies {
        let run = name.strip_suffix(SUFFIX).filter(|run| run.starts_with(PREFIX));
        let owner = proxy.get("upstream").and_then(Value::as_str).and_then(Owner::read);
        if let (Some(run), Some(owner)) = (run, owner) {
            if owner.is_gone(me) { gone.push((run, name)) } else { living.push(run) }
        }
    }
    let of = |name: &str, run: &str| name.strip_prefix(run).is_some_and(|rest| rest.starts_with('-'));
    let mut names = Vec::new();
    for (run, marker) in gone {
        // A run whose id begins like another's keeps what is its own.
        let mine = |name: &&String| of(name, run) && *name != marker && !living.iter().any(|other| of(name, other));
        names.extend(proxies.keys().filter(mine).map(String::as_str));
        names.push(marker.as_str());
    }
    names
}

/// Removes the proxies of a run when it is dropped, also while a panic unwinds. It works on a thread of its own, because
/// the runtime may be on its way out; at most for so long.
#[derive(Debug)]
pub struct Guard {
    client: Client,
    within: Duration,
}

impl Client {
    /// A guard for the proxies of this client and its clones. After a [`cleanup`](Self::cleanup) it has nothing to do.
    pub fn guard(&self, within: Duration) -> Guard {
        Guard { client: self.clone(), within }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if self.client.made().is_empty() {
            return;
        }
        let (client, within) = (self.client.clone(), self.within);
        let work = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(async {
                // What cannot be removed now is left to the next run.
                let _ = tokio::time::timeout(within, client.cleanup()).await;
            });
            std::io::Result::Ok(())
        });
        let _ = work.join();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::chaos::Embedded;

    fn owner(place: u64, process: u32, started: u64, made: u64) -> Owner {
        Owner { place, process, started, made }
    }

    async fn names(client: &Client) -> Vec<String> {
        let list = client.api().json(Method::GET, "/proxies", None).await.unwrap();
        list.as_object().unwrap().keys().cloned().collect()
    }

    #[test]
    fn a_marker_reads_back_as_it_was_written() {
        let me = Owner::of_this_process();
        assert_eq!(Owner::read(&me.upstream()), Some(me));
        for other in ["", "db:5432", "owner-x-1-1-1.invalid:1", "owner-1-1-1.invalid:1", "owner-1-1-1-1-1.invalid:1"] {
            assert_eq!(Owner::read(other), None, "{other}");
        }
    }

    #[test]
    fn a_run_is_over_when_its_process_is_or_after_a_day() {
        let me = Owner::of_this_process();
        assert!(!me.is_gone(me));
        if me.place != 0 {
            assert!(owner(me.place, me.process, me.started + 1, me.made).is_gone(me), "the id belongs to another now");
            assert!(owner(me.place, u32::MAX, 1, me.made).is_gone(me));
        }
        assert!(!owner(me.place ^ 1, u32::MAX, 1, me.made - 3600).is_gone(me), "another machine's");
        assert!(owner(me.place ^ 1, u32::MAX, 1, me.made - 25 * 3600).is_gone(me));
        assert!(!owner(0, u32::MAX, 1, me.made).is_gone(owner(0, 1, 1, me.made)));
    }

    #[test]
    fn only_what_ended_runs_have_left_is_removed() {
        let me = Owner::of_this_process();
        let dead = json!({"upstream": owner(me.place ^ 1, 1, 1, 0).upstream()});
        let alive = json!({"upstream": me.upstream()});
        let other = json!({"upstream": "db:5432"});
        let list = json!({
            "idemproof-a-owner": dead, "idemproof-a-case-0": other, "idemproof-a-b-case-1": other,
            "idemproof-a-b-owner": alive, "idemproof-c-case-0": other, "idemproof-d-owner": other, "redis": other,
            "a-owner": dead, "idemproof-ab-case-0": other,
        });
        assert_eq!(abandoned(list.as_object().unwrap(), me), ["idemproof-a-case-0", "idemproof-a-owner"]);
    }

    #[tokio::test]
    async fn t13_leftovers_of_an_earlier_run_are_removed_and_nothing_else() {
        let server = Embedded::start("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let crashed = Client::new(server.url(), "crashed").unwrap();
        assert_eq!(crashed.claim().await.unwrap(), 0);
        let left = crashed.create_proxy("left", "127.0.0.1:9").await.unwrap();
        // Toxics on it are no obstacle.
        left.add(crate::chaos::Stream::Upstream, crate::chaos::Toxic::Timeout { timeout_ms: 0 }).await.unwrap();
        let living = Client::new(server.url(), "living").unwrap();
        assert_eq!(living.claim().await.unwrap(), 0, "its process is this one");
        let body = json!({"name": "theirs", "listen": "127.0.0.1:0", "upstream": "x:1"});
        living.api().json(Method::POST, "/proxies", Some(&body)).await.unwrap();
        // The crashed run's process ends, as far as its marker tells.
        let gone = json!({"upstream": owner(place() ^ 1, 1, 1, 0).upstream()});
        living.api().json(Method::POST, "/proxies/idemproof-crashed-owner", Some(&gone)).await.unwrap();
        let next = Client::new(server.url(), "next").unwrap();
        assert_eq!(next.claim().await.unwrap(), 2);
        assert_eq!(names(&next).await, ["idemproof-living-owner", "idemproof-next-owner", "theirs"]);
        // A second run of the same id is told apart from the first.
        let clash = Client::new(server.url(), "next").unwrap();
        assert!(clash.claim().await.unwrap_err().to_string().contains("proxy already exists"));
        assert_eq!(clash.cleanup().await.unwrap(), 0);
        next.cleanup().await.unwrap();
        living.cleanup().await.unwrap();
        assert_eq!(names(&next).await, ["theirs"]);
        server.stop().await;
    }

    #[test]
    fn t13_a_panic_leaves_no_proxy() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let server = runtime.block_on(Embedded::start("127.0.0.1:0".parse().unwrap())).unwrap();
        let client = Client::new(server.url(), "run").unwrap();
        let watcher = client.clone();
        let panicked = std::thread::spawn(move || {
            let inner = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            inner.block_on(async {
                let _guard = client.guard(Duration::from_secs(5));
                client.claim().await.unwrap();
                client.create_proxy("a", "127.0.0.1:9").await.unwrap();
                std::panic::panic_any(());
            });
        });
        assert!(panicked.join().is_err());
        assert!(runtime.block_on(names(&watcher)).is_empty());
    }
}
