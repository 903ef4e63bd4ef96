//! What people see when a file is wrong: one snapshot for each file in `tests/bad_files`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    fs,
    path::{Path, PathBuf},
};

use idemproof::{
    suite::{Suite, builtin_files},
    target::{BaseUrl, Target},
    text::{Problems, Source},
};
use proptest::prelude::*;

/// The environment of all tests here.
fn env(name: &str) -> Option<String> {
    match name {
        "TOKEN_A" => Some("sesame-from-env".to_owned()),
        "TOKEN_B" => Some("sesame-with\nline-break".to_owned()),
        "STAGING_URL" => Some("https://sesame:secret@staging.example.com".to_owned()),
        _ => None,
    }
}

fn files(kind: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bad_files").join(kind);
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
        .collect();
    files.sort();
    files
}

/// Checks every file of a kind against its snapshot; `read` is given the file's name and bytes.
fn check(kind: &str, read: impl Fn(&str, &[u8]) -> Result<(), Problems>) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(format!("bad_files/{kind}"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| {
        for path in files(kind) {
            let stem = path.file_stem().unwrap().to_str().unwrap().to_owned();
            let name = format!("{stem}.yaml");
            let problems = read(&name, &fs::read(&path).unwrap()).expect_err(&name);
            let shown = problems.render(false, 100);
            for word in ["sesame", "Options", "Policy", "deserialize", "serde", "usize", "unknown variant", "struct"] {
                assert!(!shown.contains(word), "{name} shows `{word}`:\n{shown}");
            }
            assert!(!problems.to_string().contains("sesame"), "{name}");
            insta::assert_snapshot!(stem, shown);
        }
    });
}

fn text(name: &str, bytes: &[u8]) -> Result<String, Problems> {
    Source::from_bytes(name, bytes).map(|source| source.text().to_owned())
}

#[test]
fn bad_suites_are_explained() {
    check("suite", |name, bytes| Suite::parse(&text(name, bytes)?, name).map(drop));
}

#[test]
fn bad_targets_are_explained() {
    check("target", |name, bytes| Target::parse(&text(name, bytes)?, name, &env, BaseUrl::Required).map(drop));
}

#[test]
fn a_file_that_is_huge_or_absent_or_a_folder_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let huge = folder.path().join("huge.yaml");
    fs::write(&huge, format!("suite: {}", "x".repeat(1024 * 1024))).unwrap();
    let told = Suite::load(&huge).unwrap_err().to_string();
    assert!(told.contains("larger than 1 MiB"), "{told}");
    let told = Suite::load(&folder.path().join("absent.yaml")).unwrap_err().to_string();
    assert!(told.contains("cannot be read") && told.contains("absent.yaml"), "{told}");
    let told = Target::load(folder.path(), &env, BaseUrl::Required).unwrap_err().to_string();
    assert!(told.contains("cannot be read"), "{told}");
}

#[test]
fn a_file_with_more_cases_than_allowed_is_refused() {
    let mut text = "suite: many\nabout: Too many.\ncases:\n".to_owned();
    for index in 0..501 {
        text.push_str(&format!(
            "- {{ case: c{index}, title: T, rules: [at-most-one-effect], steps: [{{ send: {{ as: a, key: k }} }}], expect: {{ a: success }} }}\n"
        ));
    }
    let told = Suite::parse(&text, "many.yaml").unwrap_err().to_string();
    assert!(told.contains("501 cases") || told.contains("more than 20,000 values"), "{told}");
}

#[test]
fn files_made_to_take_long_do_not() {
    let many: String = (0..4000).map(|index| format!("      {}{index}: success\n", "a".repeat(60))).collect();
    let attempts: String =
        (0..200).map(|index| format!("      - send: {{ as: {}{index}, key: k }}\n", "b".repeat(60))).collect();
    let text = format!(
        "suite: s\nabout: A.\ncases:\n  - case: c\n    title: T\n    rules: [at-most-one-effect]\n    steps:\n{attempts}    expect:\n{many}"
    );
    let problems = Suite::parse(&text, "many.yaml").unwrap_err();
    assert!(problems.list().len() <= 100 && problems.render(false, 100).contains("and perhaps more"));
    for text in ["a:".repeat(500_000), "token: x=".repeat(100_000), "://a@".repeat(200_000), "[".repeat(1_000_000)] {
        read_as_both(&text);
    }
}

#[test]
fn a_byte_order_mark_and_windows_line_ends_are_fine() {
    let (name, text) = builtin_files().remove(0);
    let windows = format!("\u{feff}{}", text.replace('\n', "\r\n"));
    assert!(Suite::parse(&windows, &name).is_ok());
}

/// A target that uses everything.
const TARGET: &str = include_str!("bad_files/good_target.yaml");

/// A suite that uses everything.
const SUITE: &str = include_str!("bad_files/good_suite.yaml");

#[test]
fn the_good_files_are_good() {
    Target::parse(TARGET, "good.yaml", &env, BaseUrl::Required)
        .unwrap_or_else(|problems| panic!("{}", problems.render(false, 100)));
    Suite::parse(SUITE, "good.yaml").unwrap_or_else(|problems| panic!("{}", problems.render(false, 100)));
}

/// Reads a text as both kinds of file, and shows what is wrong with it.
fn read_as_both(text: &str) {
    if let Err(problems) = Suite::parse(text, "x.yaml") {
        assert!(!problems.render(true, 60).is_empty() && !problems.to_string().is_empty());
    }
    if let Err(problems) = Target::parse(text, "x.yaml", &env, BaseUrl::Optional) {
        assert!(!problems.render(true, 60).is_empty() && !problems.to_string().is_empty());
    }
}

/// One change to a text: what is inserted in place of `len` characters at a place.
fn mutated(text: &str, changes: &[(usize, usize, String)]) -> String {
    let mut chars: Vec<char> = text.chars().collect();
    for (at, len, insert) in changes {
        let at = at % (chars.len() + 1);
        let end = (at + len).min(chars.len());
        chars.splice(at..end, insert.chars());
    }
    chars.into_iter().collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        match Source::from_bytes("x.yaml", &bytes) {
            Ok(source) => read_as_both(source.text()),
            Err(problems) => prop_assert!(!problems.render(false, 60).is_empty()),
        }
    }

    #[test]
    fn random_yaml_like_text_never_panics(text in "[a-z:\\-\\[\\]{},&*!|>'\"$#%@ \n\t\u{e9}\u{1F600}]{0,200}") {
        read_as_both(&text);
    }

    #[test]
    fn mutated_files_never_panic(
        changes in proptest::collection::vec(
            (any::<usize>(), 0usize..12, "[a-zA-Z0-9:\\-\\[\\]{},&*!|>'\"$#%@ \n\t\u{e9}\u{1F600}\r]{0,6}"),
            1..4,
        ),
        which in any::<bool>(),
    ) {
        read_as_both(&mutated(if which { SUITE } else { TARGET }, &changes));
    }
}
