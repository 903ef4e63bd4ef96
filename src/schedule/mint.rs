//! Fresh keys and references, as a pure function of where they are used.

use sha2::{Digest, Sha256};
use uuid::Builder;

use super::CaseId;

/// Makes the keys and references of one performance of one case.
///
/// Two performances differ in the run, the case, the round or the try, and so in every key and reference. The
/// same performance always gives the same ones, so that a recorded run can be read back.
#[derive(Debug, Clone)]
pub struct Mint {
    seed: [u8; 32],
    run: String,
}

impl Mint {
    /// The mint of one performance. `run` is unique per run, `round` per repetition of the case within it.
    pub fn new(run: &str, case: &CaseId, round: u32) -> Self {
        let seed = Sha256::new()
            .chain_update(run.as_bytes())
            .chain_update([0])
            .chain_update(case.to_string().as_bytes())
            .chain_update([0])
            .chain_update(round.to_be_bytes())
            .finalize()
            .into();
        Self { seed, run: run.to_owned() }
    }

    /// The run's id.
    pub fn run(&self) -> &str {
        &self.run
    }

    /// The characters of the key that `name` stands for: a UUID of version 4, 36 characters.
    ///
    /// All keys of one performance begin alike and differ in the last 8 characters, so that a server that compares
    /// only the beginning of a key takes two of them for one.
    pub fn key(&self, name: &str) -> String {
        let (mut bytes, own) = (self.bytes("key", ""), self.bytes("key", name));
        bytes[12..].copy_from_slice(&own[12..]);
        Builder::from_random_bytes(bytes).into_uuid().to_string()
    }

    /// The unique value that the effects of `intent` are counted under: `idp-RUN-` and 16 hexadecimal digits.
    pub fn reference(&self, intent: &str) -> String {
        let hex: String = self.bytes("reference", intent)[..8].iter().map(|byte| format!("{byte:02x}")).collect();
        format!("idp-{}-{hex}", self.run)
    }

    fn bytes(&self, kind: &str, name: &str) -> [u8; 16] {
        let digest = Sha256::new()
            .chain_update(self.seed)
            .chain_update(kind.as_bytes())
            .chain_update([0])
            .chain_update(name.as_bytes())
            .finalize();
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&digest[..16]);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(case: &str) -> CaseId {
        CaseId { suite: "s".into(), case: case.into(), operation: "o".into(), vary: None }
    }

    #[test]
    fn everything_that_tells_performances_apart_changes_the_key() {
        let base = Mint::new("run1", &id("a"), 0);
        let others = [Mint::new("run2", &id("a"), 0), Mint::new("run1", &id("b"), 0), Mint::new("run1", &id("a"), 1)];
        for other in &others {
            assert_ne!(other.key("k"), base.key("k"));
            assert_ne!(other.reference("k"), base.reference("k"));
        }
        assert_ne!(base.key("k"), base.key("l"));
        assert_eq!(base.key("k"), Mint::new("run1", &id("a"), 0).key("k"));
    }

    #[test]
    fn keys_of_one_performance_differ_only_at_their_end() {
        let mint = Mint::new("r", &id("a"), 0);
        let (k, l) = (mint.key("k"), mint.key("l"));
        assert_eq!(k[..28], l[..28]);
        assert_ne!(k[28..], l[28..]);
    }

    #[test]
    fn keys_are_version_4_uuids() {
        let key = Mint::new("r", &id("a"), 0).key("k");
        assert_eq!(uuid::Uuid::parse_str(&key).unwrap().get_version_num(), 4);
    }
}
