//! What must hold, and what must come of a case.

use super::{
    Effects, Expectation, Want, Word,
    file::{CaseFile, CountsFile, EffectsFile, Text, WantFile, WantMap},
    load,
    steps::Names,
};
use crate::{
    spec::RuleId,
    text::{At, Check, Diagnostic, Spanned, suggestion},
};

const WORDS: [(&str, Word); 11] = [
    ("executed", Word::Executed),
    ("replay", Word::Replay),
    ("success", Word::Success),
    ("in-flight", Word::InFlight),
    ("mismatch", Word::Mismatch),
    ("missing-key", Word::MissingKey),
    ("bad-key", Word::BadKey),
    ("rejected", Word::Rejected),
    ("server-error", Word::ServerError),
    ("lost", Word::Lost),
    ("timed-out", Word::TimedOut),
];

/// What a case says about its attempts.
#[derive(Debug, Default)]
pub(super) struct Expectations {
    pub(super) given: Vec<Expectation>,
    pub(super) overlap: Vec<Vec<String>>,
    pub(super) expect: Vec<Expectation>,
    pub(super) effects: Vec<Effects>,
}

/// The expectations of a case, with their names looked up among those of its steps.
pub(super) fn read(check: &mut Check<'_>, file: &CaseFile, rules: &[RuleId], names: &Names) -> Expectations {
    let mut context = Context { check, rules, names };
    let mut all = Expectations::default();
    if let Some(given) = &file.given {
        all.given = context.expectations(&given.value.wants, "given");
        all.overlap = given.value.overlap.iter().filter_map(|group| context.overlap(group)).collect();
    }
    match &file.expect {
        Some(expect) => {
            all.expect = context.expectations(&expect.value.wants, "expect");
            if let Some(effects) = &expect.value.effects {
                all.effects = context.effects(effects);
            }
            if let Some(overlap) = &expect.value.overlap {
                let help = "move it under `given`: attempts that did not overlap prove nothing";
                context.check.error("`overlap` is not an outcome", overlap.at, "here", help);
            }
            if expect.value.wants.is_empty() && expect.value.effects.is_none() {
                context.check.error("the case expects nothing", expect.at, "empty", "name an attempt and its outcome");
            }
        }
        None => context.check.error(
            format!("the case `{}` expects nothing", file.case.value),
            file.case.at,
            "in this case",
            "add `expect:` with what must come of its attempts, such as `expect: { first: executed, effects: 1 }`",
        ),
    }
    all
}

struct Context<'a, 'b> {
    check: &'a mut Check<'b>,
    rules: &'a [RuleId],
    names: &'a Names,
}

impl Context<'_, '_> {
    fn expectations(&mut self, wants: &[(Text, Spanned<WantFile>)], place: &str) -> Vec<Expectation> {
        wants.iter().filter_map(|(name, want)| self.expectation(name, want, place)).collect()
    }

    fn expectation(&mut self, name: &Text, want: &Spanned<WantFile>, place: &str) -> Option<Expectation> {
        if !self.known(name, place) {
            return None;
        }
        let (want, rule) = match &want.value {
            WantFile::Words(words) => {
                let words = Spanned { value: words.clone(), at: want.at };
                (self.words(&words.items(), want.at).map(Want::AnyOf), None)
            }
            WantFile::Map(map) => {
                let rule = map.rule.as_ref().and_then(|rule| self.rule(rule));
                (self.want(name, map, want.at), rule)
            }
        };
        Some(Expectation { name: name.value.clone(), want: want?, rule, place: name.at.into() })
    }

    /// Whether a step has this name.
    fn known(&mut self, name: &Text, place: &str) -> bool {
        if self.names.attempts.iter().any(|attempt| attempt.value == name.value) {
            return true;
        }
        if self.check.full() {
            return false;
        }
        let help = match (place, name.value.as_str()) {
            ("given", "effects") => "`effects` belongs under `expect`".to_owned(),
            _ => {
                let names: Vec<_> = self.names.attempts.iter().map(|attempt| attempt.value.as_str()).collect();
                if names.is_empty() { "name a step with `as`".to_owned() } else { suggestion(&name.value, &names) }
            }
        };
        self.check.error(format!("no step is called `{}`", name.value), name.at, "unknown attempt", help);
        false
    }

    fn want(&mut self, name: &Text, map: &WantMap, at: At) -> Option<Want> {
        match (&map.is, &map.executed, &map.rest) {
            (Some(is), None, None) => self.words(&is.items(), is.at).map(Want::AnyOf),
            (None, Some(executed), Some(rest)) => {
                let rest_at = rest.at;
                let rest = self.words(&rest.items(), rest_at);
                self.executions(name, executed)?;
                Some(Want::Executions { executed: executed.value, rest: rest? })
            }
            (None, Some(executed), None) => {
                let help = "add what the others may come to, such as `rest: [replay, in-flight]`";
                self.check.error("`executed` without `rest`", executed.at, "here", help);
                None
            }
            (None, None, Some(rest)) => {
                let help = "add how many attempts execute: `executed: 1`";
                self.check.error("`rest` without `executed`", rest.at, "here", help);
                None
            }
            (Some(is), _, _) => {
                let help = "keep `is` for one set of outcomes, or `executed` and `rest` for a burst";
                self.check.error("`is` together with `executed` or `rest`", is.at, "here", help);
                None
            }
            (None, None, None) => {
                let help =
                    "write `is: [replay, in-flight]`, or for a burst `executed: 1` and `rest: [replay, in-flight]`";
                self.check.error("no outcome is given", at, "in this map", help);
                None
            }
        }
    }

    /// Whether a burst can have so many executions.
    fn executions(&mut self, name: &Text, executed: &Spanned<u16>) -> Option<()> {
        let Some((_, copies)) = self.names.bursts.iter().find(|(burst, _)| *burst == name.value) else {
            if self.names.attempts.iter().any(|attempt| attempt.value == name.value) {
                let help = format!("`{}` is one attempt: write an outcome, such as `executed`", name.value);
                self.check.error("only a burst has a number of executions", executed.at, "here", help);
            }
            return None;
        };
        if let Some(copies) = copies.filter(|copies| u64::from(executed.value) > *copies) {
            let title = format!("{} executions of {copies} copies", executed.value);
            self.check.error(title, executed.at, "more than there are attempts", format!("write at most {copies}"));
            return None;
        }
        Some(())
    }

    fn words(&mut self, texts: &[Text], at: At) -> Option<Vec<Word>> {
        if texts.is_empty() {
            self.check.error("no outcome is given", at, "an empty list", "name at least one, such as `success`");
        }
        let mut words: Vec<Word> = Vec::new();
        let mut wrong = texts.is_empty();
        for text in texts {
            if text.value.parse::<u16>().is_ok() {
                let help = "outcomes are meanings, such as `in-flight`; the target's policy says which status that is";
                let title = format!("`{}` is not an outcome", text.value);
                self.check.error(title, text.at, "a suite knows no status", help);
                wrong = true;
                continue;
            }
            match self.check.word("outcome", text, &WORDS) {
                Some(word) if words.contains(&word) => {
                    let title = format!("the outcome `{}` stands here twice", text.value);
                    self.check.error(title, text.at, "again", "remove it");
                }
                Some(word) => words.push(word),
                None => wrong = true,
            }
        }
        (!wrong).then_some(words)
    }

    /// A rule that is one of the case's.
    fn rule(&mut self, text: &Text) -> Option<RuleId> {
        let id = load::rule(self.check, text)?;
        if !self.rules.contains(&id) {
            let title = format!("the case does not test the rule `{id}`");
            self.check.error(title, text.at, "not in `rules` of this case", format!("add `{id}` to `rules`"));
            return None;
        }
        Some(id)
    }

    fn overlap(&mut self, group: &Spanned<Vec<Text>>) -> Option<Vec<String>> {
        let mut seen: Vec<Text> = Vec::new();
        for name in &group.value {
            self.known(name, "given");
            if let Some(first) = seen.iter().find(|other| other.value == name.value) {
                self.check.push(
                    Diagnostic::new(format!("`{}` cannot overlap with itself", name.value))
                        .at(name.at, "again")
                        .at(first.at, "first here")
                        .help("name another attempt"),
                );
            }
            seen.push(name.clone());
        }
        if group.value.len() < 2 {
            let help =
                "name at least two, such as `overlap: [[first, second]]`; a burst is checked without being named";
            self.check.error("an overlap of fewer than two attempts", group.at, "here", help);
            return None;
        }
        Some(group.value.iter().map(|name| name.value.clone()).collect())
    }

    fn effects(&mut self, file: &Spanned<EffectsFile>) -> Vec<Effects> {
        match &file.value {
            EffectsFile::One(counts) => {
                if self.names.keys.is_empty() {
                    let help = match self.names.keyless.first() {
                        Some(name) => format!("name the attempt: `effects: {{ {name}: 1 }}`"),
                        None => "send something first".to_owned(),
                    };
                    self.check.error("no attempt of this case has a key", file.at, "effects of which one?", help);
                }
                self.counts(None, counts, file.at).into_iter().collect()
            }
            EffectsFile::ByKey(entries) => {
                if entries.is_empty() {
                    self.check.error("`effects` is empty", file.at, "here", "write a count, such as `effects: 1`");
                }
                entries
                    .iter()
                    .filter_map(|(key, counts)| {
                        let known = self.effects_key(key);
                        let EffectsFile::One(counts) = &counts.value else {
                            let help = format!("write a count, such as `{}: 1`", key.value);
                            self.check.error("a map of keys inside a key", counts.at, "here", help);
                            return None;
                        };
                        let effects = self.counts(Some(key.value.clone()), counts, key.at);
                        effects.filter(|_| known)
                    })
                    .collect()
            }
        }
    }

    /// Whether effects can be counted under a name.
    fn effects_key(&mut self, key: &Text) -> bool {
        let mut names: Vec<_> = self.names.keys.iter().map(|key| key.value.as_str()).collect();
        names.extend(self.names.keyless.iter().map(String::as_str));
        if names.contains(&key.value.as_str()) {
            return true;
        }
        if self.check.full() {
            return false;
        }
        let help = if self.names.attempts.iter().any(|attempt| attempt.value == key.value) {
            format!("`{}` has a key: effects are counted under the name of that key", key.value)
        } else if names.is_empty() {
            "give a step a key, such as `key: k`".to_owned()
        } else {
            suggestion(&key.value, &names)
        };
        let title = format!("`{}` is neither a key nor an attempt without one", key.value);
        self.check.error(title, key.at, "effects of what?", help);
        false
    }

    fn counts(&mut self, key: Option<String>, file: &CountsFile, at: At) -> Option<Effects> {
        if file.counts.is_empty() {
            self.check.error("no count of effects is given", at, "here", "write a count, such as 1 or [0, 1]");
            return None;
        }
        let rule = match &file.rule {
            Some(text) => Some(self.rule(text)?),
            None => None,
        };
        Some(Effects { key, counts: file.counts.clone(), rule, place: at.into() })
    }
}
