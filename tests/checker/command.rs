//! `idemproof judge` on good, wrong and hostile files, and the schema of the format.

use std::{
    io::Write,
    process::{Command, Stdio},
};

use serde_json::{Value, json};

const HEADER: &str = r#"{"idemproof_history":1,"run":"r","target":"t","idemproof":"0"}"#;

fn attempt(name: &str, from: u64, to: u64, status: u16, id: Option<u32>) -> Value {
    let identity = id.map(|id| format!("\"pay_{id:08x}\""));
    json!({
        "name": name, "operation": "create", "tenant": "default", "node": 0, "intent": "k", "key": "k",
        "key_field": "\"key-1\"", "reference": "ref", "role": "base", "encoding": "compact", "payload_sha256": "p",
        "value_sha256": "v", "request": "POST /", "payload": "", "bytes_out": 1, "bytes_in": 1,
        "timing": {"opened": from * 1000, "first_out": from * 1000, "last_out": null, "first_in": null, "ended": to * 1000},
        "end": "answered",
        "response": {"status": status, "fields": [], "identity": identity,
            "body": {"length": 0, "sha256": "", "text": "\u{1b}[31m", "complete": true}},
    })
}

fn history(attempts: &[Value]) -> Value {
    let case = json!({"suite": "s", "case": "c", "operation": "create"});
    json!({"case": case, "round": 0, "attempts": attempts, "probes": [], "controls": []})
}

fn file(histories: &[Value]) -> String {
    let lines = histories.iter().map(|history| format!("{history}\n"));
    std::iter::once(format!("{HEADER}\n")).chain(lines).collect()
}

fn judge(text: &[u8], options: &[&str]) -> (i32, String, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_idemproof"))
        .args(["judge", "-"])
        .args(options)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A file that is refused early is not read to its end.
    let _ = child.stdin.take().unwrap().write_all(text);
    let output = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn good() -> Value {
    history(&[attempt("a", 0, 10, 201, Some(1)), attempt("b", 3, 5, 409, None), attempt("c", 20, 25, 201, Some(1))])
}

/// Three attempts of which only the whole shows that it cannot be: the refusal lies after the completion.
fn twice() -> Value {
    history(&[attempt("a", 0, 10, 201, Some(1)), attempt("b", 30, 32, 409, None), attempt("c", 40, 50, 201, Some(2))])
}

#[test]
fn good_histories_pass_and_say_what_they_show() {
    let (code, out, err) = judge(file(&[good(), good()]).as_bytes(), &["--infer"]);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    assert!(out.contains("2 histories, 6 attempts, 2 keys judged"), "{out}");
    assert!(out.contains("refuses while another attempt is in flight: yes"), "{out}");
    // The order of lines in a file and of attempts in a line says nothing.
    let mut reversed = good();
    reversed["attempts"].as_array_mut().unwrap().reverse();
    assert_eq!(judge(file(&[reversed]).as_bytes(), &[]).0, 0);
}

#[test]
fn a_second_result_is_told_with_its_core() {
    let (code, out, err) = judge(file(&[good(), twice()]).as_bytes(), &[]);
    assert_eq!((code, err.as_str()), (1, ""), "{out}");
    assert!(out.contains("SAFETY s/c [create] round 1: one-result-per-key"), "{out}");
    assert!(out.contains("`a` was answered 201") && out.contains("`c` was answered 201"), "{out}");
    assert!(!out.contains("`b`"), "the refusal is not needed: {out}");
    assert!(!out.contains('\u{1b}'), "control characters of a file reach the terminal: {out:?}");
}

#[test]
fn a_result_of_another_tenant_is_harm() {
    let mut other = attempt("b", 20, 25, 201, Some(1));
    other["tenant"] = json!("other");
    let (code, out, _) = judge(file(&[history(&[attempt("a", 0, 10, 201, Some(1)), other])]).as_bytes(), &[]);
    assert_eq!(code, 1);
    assert!(out.contains("SAFETY s/c [create] round 1: no-foreign-answer"), "{out}");
    let mut refused = attempt("b", 20, 25, 409, None);
    refused["tenant"] = json!("other");
    let (code, out, _) = judge(file(&[history(&[attempt("a", 0, 10, 201, Some(1)), refused])]).as_bytes(), &[]);
    assert_eq!(code, 0, "a suspicion is not a proof: {out}");
    assert!(out.contains("REFUSAL s/c [create] round 1: tenants-do-not-share-keys"), "{out}");
}

#[test]
fn what_ends_a_file_is_said_and_what_came_before_is_judged() {
    let whole = file(&[twice(), good()]);
    let cut = &whole.as_bytes()[..whole.len() - 40];
    let mut back = attempt("x", 5, 9, 201, Some(1));
    back["timing"]["ended"] = json!(1);
    let cases: [(Vec<u8>, &str); 4] = [
        (cut.to_vec(), "line 3: not a history"),
        (file(&[twice(), history(&[back])]).into_bytes(), "`x` ends before it begins"),
        (
            file(&[twice(), history(&[attempt("y", 0, 1, 201, None), attempt("y", 2, 3, 201, None)])]).into_bytes(),
            "two attempts are called `y`",
        ),
        ([whole.as_bytes(), b"\xff\xfe{\n"].concat(), "line 4: not a history"),
    ];
    for (text, problem) in cases {
        let (code, out, err) = judge(&text, &[]);
        assert_eq!(code, 2, "{out}{err}");
        assert!(err.contains(problem), "`{problem}` is not in {err}");
        assert!(out.contains("one-result-per-key"), "what came before is lost: {out}");
    }
    for text in ["", "hello", "{}", "{\"idemproof_history\":9}"] {
        let (code, _, err) = judge(text.as_bytes(), &[]);
        assert!(code == 2 && err.starts_with("error: "), "{code} {err}");
    }
}

#[test]
fn a_documented_time_decides_to_the_millisecond() {
    let folder = tempfile::tempdir().unwrap();
    let policy = folder.path().join("policy.yaml");
    let text = "target: t\noperations:\n  create: { request: POST / }\npolicy: { retention: 100s }\n";
    std::fs::write(&policy, text).unwrap();
    let with = |from: u64| {
        let text = file(&[history(&[attempt("a", 0, 10, 201, Some(1)), attempt("b", from, from + 10, 201, Some(2))])]);
        judge(text.as_bytes(), &["--policy", policy.to_str().unwrap()])
    };
    let (code, out, err) = with(80_000);
    assert_eq!(code, 1, "{out}{err}");
    assert!(out.contains("right only if a completed key may be forgotten after 80.010 s"), "{out}");
    // A second is left for clocks that count whole ones.
    assert_eq!(with(98_989).0, 1);
    assert_eq!(with(98_990).0, 0);
}

#[test]
fn nothing_to_judge_from_is_no_pass_for_a_gate() {
    let mut lost = attempt("a", 0, 10, 201, None);
    lost["end"] = json!("timed-out");
    lost["response"] = Value::Null;
    let text = file(&[history(&[lost])]);
    assert_eq!(judge(text.as_bytes(), &[]).0, 0);
    assert_eq!(judge(text.as_bytes(), &["--fail-on", "inconclusive"]).0, 3);
    assert_eq!(judge(format!("{HEADER}\n").as_bytes(), &[]).0, 4);
}

/// Whether a value is what a part of the schema says. Knows the keywords that the schema uses.
fn fits(schema: &Value, root: &Value, value: &Value) -> bool {
    let types = |name: &str| match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "integer" => value.is_i64() || value.is_u64(),
        other => panic!("type {other}"),
    };
    schema.as_object().unwrap().iter().all(|(keyword, wanted)| match keyword.as_str() {
        "$schema" | "$defs" | "title" | "description" => true,
        "$ref" => fits(root.pointer(&wanted.as_str().unwrap()[1..]).unwrap(), root, value),
        "type" => match wanted {
            Value::String(name) => types(name),
            names => names.as_array().unwrap().iter().any(|name| types(name.as_str().unwrap())),
        },
        "const" => value == wanted,
        "enum" => wanted.as_array().unwrap().contains(value),
        "minimum" => value.as_i64().is_none_or(|number| number >= wanted.as_i64().unwrap()),
        "maximum" => value.as_i64().is_none_or(|number| number <= wanted.as_i64().unwrap()),
        "required" => wanted.as_array().unwrap().iter().all(|name| value.get(name.as_str().unwrap()).is_some()),
        "properties" => {
            // The schema lists everything that this program writes.
            let known = wanted.as_object().unwrap();
            let members = value.as_object().into_iter().flatten();
            members.into_iter().all(|(name, value)| known.get(name).is_some_and(|part| fits(part, root, value)))
        }
        "items" => value.as_array().into_iter().flatten().all(|item| fits(wanted, root, item)),
        "oneOf" => wanted.as_array().unwrap().iter().filter(|part| fits(part, root, value)).count() == 1,
        other => panic!("keyword {other}"),
    })
}

#[test]
fn the_schema_describes_what_is_read_and_written() {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/history.schema.json")).unwrap();
    let schema: Value = serde_json::from_str(&text).unwrap();
    let reports = tempfile::tempdir().unwrap();
    let run = Command::new(env!("CARGO_BIN_EXE_idemproof"))
        .args(["run", "connection-drops", "tenants", "--no-progress", "--reports"])
        .arg(reports.path())
        .output()
        .unwrap();
    let histories = std::fs::read_to_string(reports.path().join("history.jsonl"))
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&run.stderr)));
    assert!(histories.lines().count() > 3);
    let mut kinds = std::collections::BTreeSet::new();
    for line in histories.lines().chain(file(&[good()]).lines()) {
        let value: Value = serde_json::from_str(line).unwrap();
        assert!(fits(&schema, &schema, &value), "{line}");
        kinds.insert(value.get("attempts").is_some());
        let mut other = value.clone();
        other.as_object_mut().unwrap().remove(if value.get("run").is_some() { "run" } else { "case" });
        assert!(!fits(&schema, &schema, &other), "the schema takes anything");
    }
    assert_eq!(kinds.len(), 2);
}
