//! From a suite file to a suite: every name looked up, every word read, all that is wrong told at once.

use std::path::Path;

use super::{
    Case, Need, Place, Suite, conditions, expect, extras,
    file::{CaseFile, SuiteFile, Text},
    steps::{self, Names},
};
use crate::{
    spec::{RULES, RuleId},
    text::{At, Check, Diagnostic, Problems, Redactor, Source, Spanned, Template, closest, from_yaml, most_alike},
};

const MOST_CASES: usize = 500;
const LONGEST_TITLE: usize = 120;
const LONGEST_ABOUT: usize = 500;

impl Suite {
    /// Reads a suite file.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn load(path: &Path) -> Result<Self, Problems> {
        Self::of(&Source::read(path)?)
    }

    /// Reads a suite from a text; `file_name` is what people know it by.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn parse(text: &str, file_name: &str) -> Result<Self, Problems> {
        Self::of(&Source::from_bytes(file_name, text.as_bytes())?)
    }

    fn of(source: &Source) -> Result<Self, Problems> {
        let file: SuiteFile = from_yaml(source)?;
        let mut check = Check::new(source);
        let suite = suite(&mut check, &file);
        check.finish(suite, &Redactor::new())
    }
}

impl From<At> for Place {
    fn from(at: At) -> Self {
        Self { line: at.line, column: at.column }
    }
}

fn suite(check: &mut Check<'_>, file: &SuiteFile) -> Option<Suite> {
    let name = check.name("a suite", &file.suite);
    sentence(check, "about", &file.about, LONGEST_ABOUT);
    if file.cases.value.is_empty() {
        check.error("the suite has no case", file.cases.at, "an empty list", "add a case: `- case: NAME`");
    }
    if file.cases.value.len() > MOST_CASES {
        let title = format!("the suite has {} cases", file.cases.value.len());
        let at = file.cases.value[MOST_CASES].at;
        check.error(title, at, "one too many", format!("split it: a file has at most {MOST_CASES} cases"));
        return None;
    }
    let mut names = Vec::new();
    let cases: Option<Vec<_>> = file
        .cases
        .value
        .iter()
        .map(|case_file| {
            check.unique("cases", &case_file.value.case, &mut names);
            case(check, case_file)
        })
        // Every case is looked at, also after a wrong one.
        .collect::<Vec<_>>()
        .into_iter()
        .collect();
    Some(Suite {
        name: name?,
        about: file.about.value.trim().to_owned(),
        file: check.source().name().to_owned(),
        cases: cases?,
    })
}

fn case(check: &mut Check<'_>, spanned: &Spanned<CaseFile>) -> Option<Case> {
    let file = &spanned.value;
    let name = check.name("a case", &file.case);
    let rules = rules(check, file);
    let tags: Vec<_> = file.tags.iter().filter_map(|tag| check.name("a tag", tag)).collect();
    let needs: Vec<_> =
        file.needs.iter().filter_map(|need| check.word("need", need, &[("effect-probe", Need::EffectProbe)])).collect();
    let when: Vec<_> = file.when.0.iter().filter_map(|(key, value)| conditions::read(check, key, value)).collect();
    let (steps, names) = steps::read(check, file);
    let keys = extras::keys(check, file, &names);
    let title = title(check, file);
    let vary = vary(check, file, &names);
    let expectations = expect::read(check, file, &rules, &names);
    Some(Case {
        name: name?,
        title: title?,
        place: file.case.at.into(),
        rules,
        tags,
        needs,
        keys,
        when,
        vary,
        steps,
        given: expectations.given,
        overlap: expectations.overlap,
        expect: expectations.expect,
        effects: expectations.effects,
    })
}

fn rules(check: &mut Check<'_>, file: &CaseFile) -> Vec<RuleId> {
    if file.rules.value.is_empty() {
        check.error(
            "the case tests no rule",
            file.rules.at,
            "an empty list",
            "name at least one rule that it can break",
        );
    }
    let mut seen = Vec::new();
    let mut rules = Vec::new();
    for text in &file.rules.value {
        if let Some(id) = rule(check, text)
            && check.once(text, &mut seen)
        {
            rules.push(id);
        }
    }
    rules
}

/// A rule by its name.
pub(super) fn rule(check: &mut Check<'_>, text: &Text) -> Option<RuleId> {
    let id = text.value.parse::<RuleId>().ok();
    if id.is_none() && !check.full() {
        let ids: Vec<_> = RULES.iter().map(|rule| rule.id).collect();
        let help = match closest(&text.value, ids.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("rules with similar names: {}", most_alike(&text.value, ids, 4).join(", ")),
        };
        check.error(format!("unknown rule `{}`", text.value), text.at, "no rule is called so", help);
    }
    id
}

fn sentence(check: &mut Check<'_>, what: &str, text: &Text, longest: usize) {
    if text.value.trim().is_empty() {
        check.error(format!("`{what}` is empty"), text.at, "here", "write one sentence");
    }
    let length = text.value.chars().count();
    if length > longest {
        let title = format!("`{what}` has {length} characters");
        check.error(title, text.at, "too long", format!("write at most {longest}"));
    }
}

fn title(check: &mut Check<'_>, file: &CaseFile) -> Option<Template> {
    sentence(check, "title", &file.title, LONGEST_TITLE);
    if file.title.value.trim().contains('\n') {
        check.error("the title has more than one line", file.title.at, "here", "write it on one line");
    }
    let template = match Template::parse(file.title.value.trim()) {
        Ok(template) => template,
        Err(error) => {
            check.error(error.to_string(), file.title.at, "in this title", "write ${name} with a name of `vary`");
            return None;
        }
    };
    let known = vary_names(file);
    let env: Vec<_> = template.env_names().map(|name| format!("env:{name}")).collect();
    for name in template.names().chain(env.iter().map(String::as_str)) {
        if !known.contains(&name) {
            let at = check.source().find(file.title.at, &format!("${{{name}}}"));
            check.error(
                format!("nothing gives `${{{name}}}` a value"),
                at,
                "not a name of `vary`",
                match known.first() {
                    Some(first) => format!("write ${{{first}}}"),
                    None if name.starts_with("env:") => "write the text without it".to_owned(),
                    None => format!("add `vary: {{ {name}: [2, 8, 32] }}`, or write the text without it"),
                },
            );
        }
    }
    Some(template)
}

/// The names of `vary`.
pub(super) fn vary_names(file: &CaseFile) -> Vec<&str> {
    file.vary.iter().flat_map(|vary| vary.value.0.iter().map(|(name, _)| name.value.as_str())).collect()
}

fn vary(check: &mut Check<'_>, file: &CaseFile, names: &Names) -> Option<(String, Vec<u64>)> {
    let vary = file.vary.as_ref()?;
    let [(name, values)] = vary.value.0.as_slice() else {
        let (title, at) = match vary.value.0.get(1) {
            Some((second, _)) => ("`vary` has more than one name", second.at),
            None => ("`vary` has no name", vary.at),
        };
        check.error(title, at, "here", "give exactly one name, such as `vary: { n: [2, 8, 32] }`");
        return None;
    };
    check.name("a variable", name);
    if values.value.is_empty() {
        check.error("`vary` has no value", values.at, "an empty list", "give at least one, such as [2, 8, 32]");
    }
    if !names.vary_used {
        check.error(
            format!("`{}` varies nothing", name.value),
            name.at,
            "no step uses it",
            format!("write `copies: \"${{{}}}\"` in a burst, or remove `vary`", name.value),
        );
    }
    let mut seen: Vec<&Spanned<u64>> = Vec::new();
    for value in &values.value {
        steps::copies_in_range(check, value.value, value.at);
        if let Some(first) = seen.iter().find(|other| other.value == value.value) {
            check.push(
                Diagnostic::new(format!("the value {} stands here twice", value.value))
                    .at(value.at, "again")
                    .at(first.at, "first here")
                    .help("remove one of them"),
            );
        }
        seen.push(value);
    }
    Some((name.value.clone(), values.value.iter().map(|value| value.value).collect()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::super::{
        Copies, KeyChoice, NetworkFault, Pass, ServerFault, ServerFaultPoint, Slow, Step, Want, Window, Word,
    };
    use super::*;
    use crate::{spec::id, suite::Condition, target::Disposal, text::Span};

    const TEXT: &str = r#"
suite: drops
about: Everything a suite can say.
cases:
  - case: all
    title: ${n} at once
    rules: [at-most-one-effect, mismatch-is-422]
    needs: [effect-probe]
    when: { validation_failure: store, key_required: true }
    vary: { n: [2, 32] }
    steps:
      - send: { as: first, key: k, fault: cut-response, slow: past-lease, throw: after }
      - send: { as: again, key: k, payload: changed, tenant: other, until: settled }
      - send: { as: bare }
      - send: { as: raw, raw_key: "'\"${key}'" }
      - start: { as: late, key: m, slow: 300ms }
      - join: late
      - burst: { as: dup, key: k, copies: "${n}", release: together }
      - burst: { as: four, key: k, copies: 4 }
      - pass: { past: lease }
      - pass: { for: 2s }
    given: { first: executed, overlap: [[first, again]] }
    expect:
      first: [lost, executed]
      dup: { executed: 1, rest: [replay, in-flight] }
      again: { is: mismatch, rule: mismatch-is-422 }
      effects: { k: 1, bare: [0, 1], m: { is: [1], rule: mismatch-is-422 } }
"#;

    #[test]
    fn every_word_finds_its_place_in_the_model() {
        let suite = Suite::parse(TEXT, "suites/drops.yaml")
            .unwrap_or_else(|problems| panic!("{}", problems.render(false, 100)));
        assert_eq!((suite.name.as_str(), suite.file.as_str()), ("drops", "suites/drops.yaml"));
        let case = &suite.cases[0];
        assert_eq!(case.place, Place { line: 5, column: 11 });
        assert_eq!(case.rules, [id::AT_MOST_ONE_EFFECT, id::MISMATCH_IS_422]);
        assert_eq!(case.when, [Condition::ValidationFailure(Disposal::Store), Condition::KeyRequired(true)]);
        assert_eq!(case.vary, Some(("n".to_owned(), vec![2, 32])));
        let [
            Step::Send(first),
            Step::Send(again),
            Step::Send(bare),
            Step::Send(raw),
            Step::Start(late),
            Step::Join(joined),
            Step::Burst(dup),
            Step::Burst(four),
            Step::Pass(past),
            Step::Pass(length),
        ] = case.steps.as_slice()
        else {
            panic!("{:?}", case.steps)
        };
        assert_eq!(first.fault, Some(NetworkFault::CutResponse));
        assert_eq!(
            (first.slow, first.server),
            (Some(Slow::PastLease), Some(ServerFault::Throw(ServerFaultPoint::After)))
        );
        assert_eq!((first.payload.as_str(), first.until_settled), ("base", false));
        assert_eq!(
            (again.payload.as_str(), again.tenant.as_deref(), again.until_settled),
            ("changed", Some("other"), true)
        );
        assert_eq!(bare.key, KeyChoice::None);
        assert!(matches!(&raw.key, KeyChoice::Raw(template) if template.to_string() == "'\"${key}'"));
        assert_eq!((late.slow, joined.as_str()), (Some(Slow::For(Span::from_millis(300))), "late"));
        assert_eq!((&dup.copies, &four.copies), (&Copies::Vary, &Copies::Count(4)));
        assert_eq!((past, length), (&Pass::Past(Window::Lease), &Pass::For(Span::from_secs(2))));
        assert_eq!(case.given[0].want, Want::AnyOf(vec![Word::Executed]));
        assert_eq!(case.overlap, [["first", "again"]]);
        assert_eq!(case.expect[0].want, Want::AnyOf(vec![Word::Lost, Word::Executed]));
        assert_eq!(case.expect[1].want, Want::Executions { executed: 1, rest: vec![Word::Replay, Word::InFlight] });
        assert_eq!((case.expect[2].rule, case.expect[2].place.line), (Some(id::MISMATCH_IS_422), 26));
        let effects: Vec<_> = case
            .effects
            .iter()
            .map(|effects| (effects.key.as_deref(), effects.counts.as_slice(), effects.rule))
            .collect();
        assert_eq!(
            effects,
            [
                (Some("k"), [1].as_slice(), None),
                (Some("bare"), &[0, 1], None),
                (Some("m"), &[1], Some(id::MISMATCH_IS_422))
            ]
        );
    }
}
