//! Keeping secrets out of everything that is shown or written.

use std::sync::{Arc, RwLock};

/// What a secret is replaced with.
const MASK: &str = "***";

/// Values shorter than this are not masked: they would blank out ordinary text.
const SHORTEST: usize = 4;

/// Knows the secret values of a run and masks them in any text.
///
/// One redactor is made per process, filled while target files are resolved, and used by every sink. Clones
/// share the same list. A value is masked as written, percent-encoded, JSON-escaped and base64-encoded (alone,
/// and at each of the three alignments inside a longer encoded text, as in Basic authentication).
#[derive(Debug, Clone, Default)]
pub struct Redactor {
    needles: Arc<RwLock<Vec<String>>>,
}

impl Redactor {
    /// A redactor that knows no secret yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Remembers a secret value. Values of fewer than 4 bytes are ignored.
    pub fn add(&self, secret: &str) {
        if secret.len() < SHORTEST {
            return;
        }
        let percent = percent_encode(secret);
        let every_byte: String = secret.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let mut forms = vec![secret.to_owned(), percent.replace("%20", "+"), percent, every_byte];
        forms.extend(forms.clone().iter().map(|form| lower_hex(form)));
        if let Ok(json) = serde_json::to_string(secret) {
            forms.push(json[1..json.len() - 1].to_owned());
        }
        forms.extend(base64_forms(secret.as_bytes()));
        if let Ok(mut needles) = self.needles.write() {
            for form in forms {
                if form.len() >= SHORTEST && !needles.contains(&form) {
                    needles.push(form);
                }
            }
            // The longest first, so that a secret that contains another is masked as a whole.
            needles.sort_by_key(|needle| std::cmp::Reverse(needle.len()));
        }
    }

    /// The text with every known secret masked.
    pub fn redact(&self, text: &str) -> String {
        let Ok(needles) = self.needles.read() else { return MASK.to_owned() };
        let mut out = text.to_owned();
        for needle in needles.iter().filter(|needle| text.contains(needle.as_str())) {
            out = out.replace(needle.as_str(), MASK);
        }
        out
    }
}

fn percent_encode(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
            _ => format!("%{byte:02X}"),
        })
        .collect()
}

/// The same percent-encoded text with its hexadecimal digits in lower case.
fn lower_hex(text: &str) -> String {
    let mut pieces = text.split('%');
    let mut out = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let digits = piece.len().min(2);
        out.push('%');
        out.push_str(&piece.get(..digits).unwrap_or_default().to_lowercase());
        out.push_str(piece.get(digits..).unwrap_or(piece));
    }
    out
}

/// The part of a base64 text that depends on the secret alone, for each of the three positions that the secret
/// can have inside a longer text.
fn base64_forms(secret: &[u8]) -> Vec<String> {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    (0..3usize)
        .map(|shift| {
            let mut bytes = vec![0u8; shift];
            bytes.extend_from_slice(secret);
            let whole_bits = bytes.len() * 8;
            let first = (shift * 8).div_ceil(6);
            let last = whole_bits / 6;
            (first..last)
                .map(|index| {
                    let bit = index * 6;
                    let high = u16::from(bytes[bit / 8]) << 8;
                    let low = bytes.get(bit / 8 + 1).copied().map_or(0, u16::from);
                    let six = ((high | low) >> (10 - bit % 8)) & 0x3f;
                    char::from(ALPHABET[usize::from(six)])
                })
                .collect()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_a_secret_in_each_of_its_forms() {
        let redactor = Redactor::new();
        redactor.add("s3cr\"t/tok en");
        for text in
            ["x s3cr\"t/tok en y", "x=s3cr%22t%2Ftok%20en", "x=s3cr%22t%2ftok+en", "{\"a\":\"s3cr\\\"t/tok en\"}"]
        {
            assert!(!redactor.redact(text).contains("tok"), "{text}");
        }
        // base64 of `user:s3cr"t/tok en` and of `ab:s3cr"t/tok en`.
        for encoded in ["dXNlcjpzM2NyInQvdG9rIGVu", "YWI6czNjciJ0L3RvayBlbg=="] {
            assert!(redactor.redact(encoded).contains(MASK), "{encoded}");
        }
    }

    #[test]
    fn leaves_other_text_and_short_values_alone() {
        let redactor = Redactor::new();
        redactor.add("abc");
        assert_eq!(redactor.redact("abcabc"), "abcabc");
    }

    #[test]
    fn masks_the_longer_of_two_nested_secrets_first() {
        let redactor = Redactor::new();
        redactor.add("token");
        redactor.add("token-and-more");
        assert_eq!(redactor.redact("a token-and-more b"), "a *** b");
    }
}
