//! Hiding secret-looking values of a source text before any of it is shown.

use super::diagnostic::is_bidi;

/// A source text that can be shown: every byte stands where it stood.
pub(super) struct Masked {
    /// The text.
    pub(super) text: String,
    /// The values that were hidden.
    pub(super) secrets: Vec<String>,
}

/// Lines longer than this are masked as a whole.
const LONGEST_READ: usize = 64 * 1024;

/// Names that have one of these in them have secret values.
const SECRET_NAMES: [&str; 11] = [
    "authorization",
    "token",
    "password",
    "passwd",
    "secret",
    "apikey",
    "cookie",
    "credential",
    "privatekey",
    "accesskey",
    "passphrase",
];

/// Whether a value under this name is to be kept secret.
pub fn is_secret_name(name: &str) -> bool {
    let folded: String = name.chars().filter(|c| c.is_alphanumeric()).map(|c| c.to_ascii_lowercase()).collect();
    SECRET_NAMES.iter().any(|secret| folded.contains(secret))
}

/// Masks the values under secret names, the user names and passwords of URLs, and control characters.
pub(super) fn masked(text: &str) -> Masked {
    let mut bytes = text.as_bytes().to_vec();
    let mut secrets = Vec::new();
    let mut hide = |start: usize, end: usize, secrets: &mut Vec<String>| {
        for (from, to) in outside_placeholders(text, start, end) {
            let secret = text[from..to].trim_matches([' ', '\t', '\r', '"', '\'']);
            if !secret.is_empty() {
                secrets.push(secret.to_owned());
                secrets.extend(secret.split_ascii_whitespace().skip(1).map(str::to_owned));
            }
            bytes[from..to]
                .iter_mut()
                .filter(|byte| !matches!(byte, b'\n' | b'\r' | b' ' | b'"' | b'\''))
                .for_each(|b| *b = b'*');
        }
    };
    // Everything that is indented deeper than a secret name on a line before it belongs to that name.
    let mut inside: Option<usize> = None;
    let mut long = Vec::new();
    let mut offset = 0;
    for line in text.split_inclusive('\n') {
        let body = line.trim_end_matches(['\n', '\r']);
        // A line of this length is never shown, and reading it closely would take long.
        if body.len() > LONGEST_READ {
            long.push(offset..offset + body.len());
            offset += line.len();
            continue;
        }
        let indent = body.len() - body.trim_start_matches([' ', '-']).len();
        if !body.trim().is_empty() && inside.is_some_and(|limit| indent <= limit) {
            inside = None;
        }
        if inside.is_some() {
            hide(offset, offset + body.len(), &mut secrets);
        } else {
            for (start, end) in secret_values(body) {
                hide(offset + start, offset + end, &mut secrets);
                inside = Some(indent);
            }
        }
        for (start, end) in url_credentials(body) {
            hide(offset + start, offset + end, &mut secrets);
        }
        offset += line.len();
    }
    for range in long {
        bytes[range].fill(b'*');
    }
    for (index, c) in text.char_indices() {
        if (c.is_control() && !matches!(c, '\n' | '\r' | '\t')) || is_bidi(c) {
            bytes[index..index + c.len_utf8()].fill(b'?');
        }
    }
    Masked { text: String::from_utf8_lossy(&bytes).into_owned(), secrets }
}

/// The ranges of the values of secret names within a line.
fn secret_values(line: &str) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut done = 0;
    let first_brace = line.find('{').unwrap_or(line.len());
    for (colon, _) in line.match_indices(':') {
        // A name is looked for in the few bytes before its colon only, so that a long line takes no longer than a
        // text of the same length in short lines.
        let near = (colon.saturating_sub(64)..=colon).find(|index| line.is_char_boundary(*index)).unwrap_or(colon);
        let name_start = near + line[near..colon].rfind(['{', '[', ',', ' ', '\t']).map_or(0, |index| index + 1);
        let name = line[name_start..colon].trim_matches(['"', '\'']);
        let value = &line[colon + 1..];
        if colon < done || !is_secret_name(name) || name.contains("${") {
            continue;
        }
        let skipped = value.len() - value.trim_start().len();
        let value = value.trim_start();
        let len = match value.chars().next() {
            Some(quote @ ('"' | '\'')) => quoted_len(value, quote),
            // A map is looked through name by name.
            Some('{') | None => continue,
            // An unquoted value with spaces in a flow map ends at a comma or a brace outside of a placeholder.
            Some(_) if first_brace < colon => unquoted_len(value),
            Some(_) => value.len(),
        };
        done = colon + 1 + skipped + len;
        found.push((colon + 1 + skipped, done));
    }
    for (sign, _) in line.match_indices('=') {
        let name =
            line[..sign].rsplit(|c: char| !c.is_alphanumeric() && c != '-' && c != '_').next().unwrap_or_default();
        if sign >= done && is_secret_name(name) {
            let value = &line[sign + 1..];
            let len = value.find(['&', ' ', '"', '\'', ',', ';', '#']).unwrap_or(value.len());
            done = sign + 1 + len;
            found.push((sign + 1, done));
        }
    }
    // A name whose value comes on the next lines.
    if let Some(name) = line.trim_end().strip_suffix(':')
        && is_secret_name(name.rsplit([' ', '\t']).next().unwrap_or(name))
    {
        found.push((line.len(), line.len()));
    }
    found
}

fn quoted_len(value: &str, quote: char) -> usize {
    let mut escaped = false;
    for (index, c) in value.char_indices().skip(1) {
        if c == quote && !escaped {
            return index + 1;
        }
        escaped = quote == '"' && c == '\\' && !escaped;
    }
    value.len()
}

fn unquoted_len(value: &str) -> usize {
    let mut in_placeholder = false;
    for (index, c) in value.char_indices() {
        match c {
            '{' if value[..index].ends_with('$') => in_placeholder = true,
            '}' if in_placeholder => in_placeholder = false,
            ',' | '}' | ']' => return index,
            _ => {}
        }
    }
    value.len()
}

/// The ranges of `user:password` in the URLs of a line.
fn url_credentials(line: &str) -> Vec<(usize, usize)> {
    line.match_indices("://")
        .filter_map(|(index, _)| {
            let start = index + 3;
            let rest = &line[start..];
            let end = rest.find(['/', '?', '#', ' ', '"', '\'']).unwrap_or(rest.len());
            rest[..end].rfind('@').map(|at| (start, start + at))
        })
        .collect()
}

/// The parts of a range that are not inside a `${...}`, which names a secret and does not show it.
fn outside_placeholders(text: &str, start: usize, end: usize) -> Vec<(usize, usize)> {
    let mut parts = Vec::new();
    let mut from = start;
    while let Some(open) = text[from..end].find("${").map(|index| from + index) {
        let Some(close) = text[open..end].find('}').map(|index| open + index + 1) else { break };
        parts.push((from, open));
        from = close;
    }
    parts.push((from, end));
    parts.into_iter().filter(|(from, to)| from < to).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_what_stands_under_a_secret_name() {
        for text in [
            "Authorization: Bearer sesame",
            "h: { Authorization: \"Bearer sesame\", X-Ok: fine }",
            "h: { Authorization: Bearer sesame, X-Ok: fine }",
            "x-api-key: 'sesame'",
            "'X-API-Key': sesame",
            "password:\n  sesame\nX-Ok: fine",
            "password: |\n  sesame\n  sesame\nX-Ok: fine",
            "token: \"a\n  sesame\"",
            "- token: sesame",
            "base_url: https://me:sesame@host/path",
            "{\"client_secret\":\"sesame\"}",
            "url: http://host/?a=b&access_token=sesame&c=fine",
            "session_cookie: a b=sesame; c",
        ] {
            let masked = masked(text);
            assert_eq!(masked.text.len(), text.len());
            assert!(!masked.text.contains("sesame"), "{}", masked.text);
            assert_eq!(masked.text.contains("fine"), text.contains("fine"), "{}", masked.text);
            assert!(masked.secrets.iter().any(|secret| secret.contains("sesame")), "{:?}", masked.secrets);
        }
    }

    #[test]
    fn leaves_the_rest_readable() {
        for text in [
            "headers: { Authorization: \"${env:TOKEN}\", X: y }",
            "url: https://host/a@b",
            "steps:\n  - send: { as: first, key: k }\n",
            "key: { header: Idempotency-Key }",
        ] {
            assert_eq!(masked(text).text, text);
        }
    }
}
