//! One request as a line for a shell.

use super::text::width;

/// Words quoted for a POSIX shell and joined; broken with `\` between words where the line gets longer than
/// `room`. A single longer word stays whole, because breaking it would change it.
pub(super) fn shell_lines(words: &[String], room: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in words {
        // Two columns are kept for the backslash.
        if !line.is_empty() && width(&line) + 1 + width(word) + 2 > room {
            lines.push(line + " \\");
            line = "  ".to_owned();
        } else if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.push(line);
    lines
}

/// The curl words that send a request again, already quoted. An option and its value are one word, so that they
/// stay on one line.
pub(super) fn curl(method: &str, url: &str, fields: &[(&str, &str)], payload: &str) -> Vec<String> {
    let mut words = vec!["curl -i".to_owned(), format!("-X {}", quote(method))];
    words.extend(fields.iter().map(|(name, value)| format!("-H {}", quote(&field(name, value)))));
    if !payload.is_empty() {
        words.push(format!("--data-raw {}", quote(payload)));
    }
    words.push(quote(url));
    words
}

/// curl drops a field written with a colon and no value; a semicolon sends it empty.
fn field(name: &str, value: &str) -> String {
    if value.is_empty() { format!("{name};") } else { format!("{name}: {value}") }
}

/// A word for a shell. Characters that must not reach a terminal raw are written in `$'...'`, which bash, zsh and
/// ksh read.
pub(super) fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    if word.chars().all(|c| c == ' ' || c.is_ascii_graphic()) {
        return format!("'{}'", word.replace('\'', r"'\''"));
    }
    let escaped: String = word
        .chars()
        .map(|c| match c {
            '\\' => r"\\".to_owned(),
            '\'' => r"\'".to_owned(),
            '\n' => r"\n".to_owned(),
            '\t' => r"\t".to_owned(),
            '\r' => r"\r".to_owned(),
            _ if c == ' ' || c.is_ascii_graphic() => c.to_string(),
            // Octal has a fixed length of three digits, so that what follows cannot be read as part of it.
            _ => c.encode_utf8(&mut [0; 4]).bytes().map(|byte| format!("\\{byte:03o}")).collect(),
        })
        .collect();
    format!("$'{escaped}'")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use std::process::Command;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_line_is_broken_between_words_only() {
        let words = curl("POST", "http://h/p", &[("Idempotency-Key", "k1")], r#"{"a":"it's"}"#);
        let lines = shell_lines(&words, 44);
        assert_eq!(
            lines,
            ["curl -i -X POST -H 'Idempotency-Key: k1' \\", r#"  --data-raw '{"a":"it'\''s"}' http://h/p"#]
        );
    }

    #[test]
    fn an_empty_field_is_sent_empty() {
        assert_eq!(curl("GET", "http://h", &[("K", "")], "")[2], "-H 'K;'");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn a_shell_reads_back_what_was_quoted(words in proptest::collection::vec("[^\0]{0,20}", 1..4)) {
            if Command::new("bash").arg("--version").output().is_err() {
                eprintln!("skipped: there is no bash to read the words back with");
                return Ok(());
            }
            let quoted: Vec<_> = words.iter().map(|word| quote(word)).collect();
            let script = format!("printf '%s\\0' {}", shell_lines(&quoted, 20).join("\n"));
            prop_assert!(!quoted.concat().chars().any(|c| c.is_control()));
            let output = Command::new("bash").args(["--norc", "-c", &script]).output().unwrap();
            let read: Vec<_> = String::from_utf8(output.stdout).unwrap().split_terminator('\0').map(str::to_owned).collect();
            prop_assert_eq!(read, words);
        }
    }
}
