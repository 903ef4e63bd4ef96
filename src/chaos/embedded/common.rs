//! What all proxies of a server share: the seed, the clock's beginning, the counters and the room for connections.

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::Semaphore;

use super::metrics::Metrics;

/// File descriptors that are left to the API, to files and to everybody else in this process.
const RESERVE: usize = 128;
/// The limit of file descriptors where the system does not tell.
const USUAL_LIMIT: usize = 1024;
/// More proxied connections than this are never served at a time.
const MOST: usize = 16 * 1024;

/// Shared by all proxies of a server.
#[derive(Debug)]
pub(super) struct Common {
    /// Where all randomness comes from.
    pub(super) seed: u64,
    /// Instants are told in microseconds since then.
    pub(super) since: Instant,
    pub(super) metrics: Metrics,
    /// Connections that may be open at a time. Further clients wait in the queue of the system, so that the API keeps
    /// file descriptors of its own.
    pub(super) room: Arc<Semaphore>,
}

impl Common {
    pub(super) fn new(seed: u64) -> Arc<Self> {
        let room = Arc::new(Semaphore::new(connections_for(descriptor_limit())));
        Arc::new(Self { seed, since: Instant::now(), metrics: Metrics::default(), room })
    }

    /// A seed for one proxy. It depends on the server's seed and on the name alone.
    pub(super) fn seed_for(&self, name: &str) -> u64 {
        // FNV-1a: the same on every machine and in every version of this program.
        let hash = name
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        hash ^ self.seed
    }
}

/// How many callers of the API may be connected at a time.
pub(super) fn callers() -> usize {
    (descriptor_limit() / 8).clamp(4, 64)
}

/// Two descriptors a connection, after the reserve; a small limit leaves half.
fn connections_for(limit: usize) -> usize {
    limit.saturating_sub(RESERVE).max(limit / 4).div_ceil(2).clamp(1, MOST)
}

/// How many file descriptors this process may have.
fn descriptor_limit() -> usize {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"));
    match line.and_then(|line| line.split_whitespace().next()) {
        Some("unlimited") => usize::MAX,
        Some(number) => number.parse().unwrap_or(USUAL_LIMIT),
        None => USUAL_LIMIT,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_descriptors_for_the_api() {
        assert_eq!(connections_for(1024), 448);
        assert_eq!(connections_for(64), 8);
        assert_eq!(connections_for(0), 1);
        assert_eq!(connections_for(usize::MAX), MOST);
    }

    #[test]
    fn seeds_differ_by_name_and_are_the_same_every_time() {
        let (one, other) = (Common::new(7), Common::new(7));
        assert_eq!(one.seed_for("a"), other.seed_for("a"));
        assert_ne!(one.seed_for("a"), one.seed_for("b"));
        assert_ne!(one.seed_for("a"), Common::new(8).seed_for("a"));
    }
}
