//! What an attempt may have beyond key, payload and faults: header fields, no credentials, a node, exact bytes.

use http::{HeaderName, HeaderValue};

use super::{
    Credentials, KeyForm, KeyLength, Wire, WireBody,
    file::{CaseFile, RequestFile, Text, WireFile},
    steps::Names,
};
use crate::text::{Check, Template};

/// The longest key that a suite may ask for, in characters.
const LONGEST_KEY: u32 = 65_536;
/// The most lines that a wire attempt may add.
const MOST_LINES: usize = 16;

/// The extras of one attempt.
#[derive(Debug, Default)]
pub(super) struct Extras {
    pub(super) headers: Vec<(HeaderName, HeaderValue)>,
    pub(super) credentials: Credentials,
    pub(super) node: Option<usize>,
    pub(super) wire: Option<Wire>,
}

pub(super) fn read(check: &mut Check<'_>, file: &RequestFile) -> Extras {
    let mut extras = Extras::default();
    for (name, value) in file.headers.iter().flat_map(|entries| &entries.0) {
        let field = HeaderName::from_bytes(name.value.as_bytes())
            .ok()
            .zip(HeaderValue::from_str(&value.value).ok().filter(|_| value.value.trim() == value.value));
        match field {
            Some(field) => extras.headers.push(field),
            None => {
                let title = format!("`{}` is no header field", name.value);
                check.error(title, name.at, "here", "write a name and visible ASCII characters");
            }
        }
    }
    if let Some(text) = &file.credentials {
        let words = [("none", Credentials::None), ("wrong", Credentials::Wrong)];
        extras.credentials = check.word("value of `credentials`", text, &words).unwrap_or_default();
    }
    if let Some(text) = &file.node {
        match text.value.parse::<usize>().ok().and_then(|node| node.checked_sub(1)) {
            Some(node) => extras.node = Some(node),
            None => {
                let title = format!("`{}` is no node", text.value);
                check.error(title, text.at, "here", "write its place under `nodes`, from 1");
            }
        }
    }
    if let Some(spanned) = &file.wire {
        for (name, text) in [("fault", &file.fault), ("copies", &file.copies), ("until", &file.until)] {
            if let Some(text) = text {
                let title = format!("`wire` and `{name}` cannot be had together");
                check.error(title, text.at, "exact bytes are sent once, on a connection of their own", "remove it");
            }
        }
        if let (Some(_), Some(raw)) = (&spanned.value.key_lines, &file.raw_key) {
            check.error("`key_lines` and `raw_key` say the same", raw.at, "the second one", "remove it");
        }
        extras.wire = Some(wire(check, &spanned.value));
    }
    extras
}

fn wire(check: &mut Check<'_>, file: &WireFile) -> Wire {
    let body = file.body.as_ref().and_then(|text| {
        check.word(
            "value of `body`",
            text,
            &[
                ("whole", WireBody::Whole),
                ("chunked", WireBody::Chunked),
                ("chunked-cut", WireBody::ChunkedCut),
                ("trickle", WireBody::Trickle),
                ("expect", WireBody::Expect),
                ("expect-abandoned", WireBody::ExpectAbandoned),
                ("pipelined", WireBody::Pipelined),
            ],
        )
    });
    let body = body.unwrap_or_default();
    if let Some(first) = file.trailer.first().filter(|_| body != WireBody::Chunked) {
        check.error("a trailer without chunks", first.at, "it has no place", "add `body: chunked`");
    }
    Wire {
        key_lines: file.key_lines.as_ref().map(|lines| templates(check, lines)),
        trailer: templates(check, &file.trailer),
        body,
    }
}

fn templates(check: &mut Check<'_>, lines: &[Text]) -> Vec<Template> {
    if let Some(over) = lines.get(MOST_LINES) {
        check.error("too many lines", over.at, "one too many", format!("write at most {MOST_LINES}"));
    }
    lines.iter().filter_map(|line| template(check, line, &["name", "NAME", "field", "key", "other"])).collect()
}

fn template(check: &mut Check<'_>, text: &Text, known: &[&str]) -> Option<Template> {
    let template = match Template::parse(&text.value) {
        Ok(template) => template,
        Err(error) => {
            check.error(error.to_string(), text.at, "here", "placeholders look like ${key}");
            return None;
        }
    };
    let unknown = template.names().find(|name| !known.contains(name)).or_else(|| template.env_names().next());
    if let Some(unknown) = unknown {
        let names: Vec<_> = known.iter().map(|name| format!("${{{name}}}")).collect();
        let title = format!("nothing gives `${{{unknown}}}` a value here");
        check.error(title, text.at, "here", format!("known here: {}", names.join(", ")));
        return None;
    }
    Some(template)
}

/// The forms of the case's keys. Each must be used, and each that has a length must say where it is padded.
pub(super) fn keys(check: &mut Check<'_>, file: &CaseFile, names: &Names) -> Vec<(String, KeyForm)> {
    let mut forms = Vec::new();
    for (symbol, spanned) in &file.keys.0 {
        if names.keys.iter().all(|key| key.value != symbol.value) {
            let title = format!("no attempt has the key `{}`", symbol.value);
            check.error(title, symbol.at, "used by nothing", "remove it, or write `key:` with this name in a step");
        }
        let form = &spanned.value;
        let Some(chars) = template(check, &form.chars, &["key", "pad"]) else { continue };
        let length = form.length.as_ref().and_then(|text| length(check, text));
        if chars.names().any(|name| name == "pad") != form.length.is_some() {
            let help = "write both, such as `{ chars: \"${key}${pad}\", length: 255 }`";
            check.error("`${pad}` and `length` belong together", form.chars.at, "one without the other", help);
        }
        let beyond = form
            .beyond_limits
            .as_ref()
            .and_then(|text| check.word("value of `beyond_limits`", text, &[("true", true), ("false", false)]));
        let form = KeyForm { chars, length, beyond_limits: beyond.unwrap_or(false) };
        forms.push((symbol.value.clone(), form));
    }
    forms
}

fn length(check: &mut Check<'_>, text: &Text) -> Option<KeyLength> {
    match text.value.as_str() {
        "longest" => Some(KeyLength::Longest),
        "too-long" => Some(KeyLength::TooLong),
        number => match number.parse::<u32>() {
            Ok(length) if (1..=LONGEST_KEY).contains(&length) => Some(KeyLength::Of(length)),
            _ => {
                let help = format!("write a number from 1 to {LONGEST_KEY}, `longest` or `too-long`");
                check.error(format!("`{number}` is no length of a key"), text.at, "here", help);
                None
            }
        },
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::super::{Step, Suite};
    use super::*;

    fn parse(key: &str, step: &str) -> Result<Suite, String> {
        let text = format!(
            "suite: s\nabout: a\ncases:\n  - case: c\n    title: t\n    rules: [at-most-one-effect]\n    keys: {{ {key} }}\n    steps:\n      - send: {{ as: a, key: k, {step} }}\n    expect: {{ a: success }}\n"
        );
        Suite::parse(&text, "s.yaml").map_err(|problems| problems.render(false, 100))
    }

    #[test]
    fn every_extra_finds_its_place() {
        let step = "headers: { X-A: b }, credentials: none, node: 2, wire: { key_lines: [\"${name}: ${field}\"], body: chunked, trailer: [\"x: y\"] }";
        let suite = parse("k: { chars: \"${key}${pad}\", length: longest }", step).unwrap();
        let case = &suite.cases[0];
        assert_eq!(case.keys[0].1.length, Some(KeyLength::Longest));
        let Step::Send(request) = &case.steps[0] else { panic!() };
        assert_eq!((request.credentials, request.node, request.headers.len()), (Credentials::None, Some(1), 1));
        let wire = request.wire.as_ref().unwrap();
        assert_eq!((wire.body, wire.trailer.len(), wire.key_lines.as_ref().unwrap().len()), (WireBody::Chunked, 1, 1));
    }

    #[test]
    fn what_cannot_be_is_told() {
        for (key, step, said) in [
            ("k: { chars: \"${key}\", length: 9 }", "payload: base", "belong together"),
            ("l: { chars: x }", "payload: base", "no attempt has the key"),
            ("k: { chars: \"${nope}\" }", "payload: base", "nope"),
            ("k: { chars: x }", "node: 0", "no node"),
            ("k: { chars: x }", "wire: { trailer: [a] }", "without chunks"),
            ("k: { chars: x }", "wire: { body: odd }", "odd"),
            ("k: { chars: x }", "fault: lose-response, wire: { body: chunked }", "cannot be had together"),
            ("k: { chars: x }", "headers: { \"a b\": c }", "no header field"),
        ] {
            let error = parse(key, step).unwrap_err();
            assert!(error.contains(said), "{said}: {error}");
        }
    }
}
