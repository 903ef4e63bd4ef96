//! Collecting everything that is wrong with a file before saying so.

use super::{
    Redactor, Span,
    diagnostic::{At, Diagnostic, MOST_PROBLEMS, Problems},
    suggest::suggestion,
    yaml::{Source, Spanned},
};

/// Collects the problems of one file.
#[derive(Debug)]
pub struct Check<'a> {
    source: &'a Source,
    list: Vec<Diagnostic>,
}

impl<'a> Check<'a> {
    /// No problem so far.
    pub fn new(source: &'a Source) -> Self {
        Self { source, list: Vec::new() }
    }

    /// The file.
    pub fn source(&self) -> &'a Source {
        self.source
    }

    /// Notes a problem. More than a hundred help nobody and are not kept.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        if !self.full() {
            self.list.push(diagnostic);
        }
    }

    /// Whether so many problems are noted that there is no need to look for more.
    pub fn full(&self) -> bool {
        self.list.len() >= MOST_PROBLEMS
    }

    /// Notes a problem at one place.
    pub fn error(&mut self, title: impl Into<String>, at: At, label: impl Into<String>, help: impl Into<String>) {
        self.push(Diagnostic::new(title).at(at, label).help(help));
    }

    /// The value, if nothing was wrong.
    ///
    /// # Errors
    /// Everything that was noted.
    pub fn finish<T>(self, value: Option<T>, redactor: &Redactor) -> Result<T, Problems> {
        let problems = Problems::check(self.source, self.list, redactor);
        match (problems, value) {
            (Ok(()), Some(value)) => Ok(value),
            (Err(problems), _) => Err(problems),
            (Ok(()), None) => Err(Problems::one(self.source, Diagnostic::new("the file could not be understood"))),
        }
    }

    /// One of a few words. `what` names the kind of word, such as "fault".
    pub fn word<T: Copy>(&mut self, what: &str, text: &Spanned<String>, words: &[(&str, T)]) -> Option<T> {
        let found = words.iter().find(|(word, _)| *word == text.value).map(|(_, value)| *value);
        if found.is_none() && !self.full() {
            let names: Vec<_> = words.iter().map(|(word, _)| *word).collect();
            let title = if what.starts_with("value of") {
                format!("`{}` is no {what}", text.value)
            } else {
                format!("unknown {what} `{}`", text.value)
            };
            self.error(title, text.at, "this word means nothing here", suggestion(&text.value, &names));
        }
        found
    }

    /// A length of time.
    pub fn span(&mut self, text: &Spanned<String>) -> Option<Span> {
        let parsed = text.value.parse();
        if parsed.is_err() {
            self.error(
                format!("`{}` is not a length of time", text.value),
                text.at,
                "here",
                "write a whole number and a unit, such as 250ms, 30s, 5m, 24h or 7d; the longest is 10 years",
            );
        }
        parsed.ok()
    }

    /// A name in kebab-case of at most 64 characters. `what` names what is called so.
    pub fn name(&mut self, what: &str, text: &Spanned<String>) -> Option<String> {
        let name = &text.value;
        let proper = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let good = (1..=64).contains(&name.len())
            && name.chars().all(proper)
            && !name.starts_with('-')
            && !name.ends_with('-')
            && !name.contains("--");
        if good {
            return Some(name.clone());
        }
        let better = kebab(name);
        self.error(
            format!("`{name}` is no name for {what}"),
            text.at,
            "not in kebab-case",
            if better.is_empty() || better.len() > 64 {
                "write 1 to 64 lower-case letters, digits and single hyphens, such as `response-lost`".to_owned()
            } else {
                format!("write lower-case letters, digits and single hyphens: `{better}`")
            },
        );
        None
    }

    /// Notes a second mention of something in a list. Returns whether it is the first.
    pub fn once(&mut self, text: &Spanned<String>, seen: &mut Vec<Spanned<String>>) -> bool {
        if let Some(first) = seen.iter().find(|other| other.value == text.value) {
            self.push(
                Diagnostic::new(format!("`{}` stands here twice", text.value))
                    .at(text.at, "again")
                    .at(first.at, "first here")
                    .help("remove one of them"),
            );
            return false;
        }
        seen.push(text.clone());
        true
    }

    /// Notes a second use of a name. Returns whether it is the first.
    pub fn unique(&mut self, what: &str, name: &Spanned<String>, seen: &mut Vec<Spanned<String>>) -> bool {
        if let Some(first) = seen.iter().find(|other| other.value == name.value) {
            self.push(
                Diagnostic::new(format!("two {what} are called `{}`", name.value))
                    .at(name.at, "the second one")
                    .at(first.at, "the first one")
                    .help("give one of them another name"),
            );
            return false;
        }
        seen.push(name.clone());
        true
    }
}

/// The name that was probably meant.
fn kebab(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars().take(100) {
        if c.is_ascii_alphanumeric() {
            out.push(c.to_ascii_lowercase());
        } else if !out.ends_with('-') && !out.is_empty() {
            out.push('-');
        }
    }
    out.trim_end_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn better_names() {
        assert_eq!(kebab("Response Lost__twice!"), "response-lost-twice");
        assert_eq!(kebab("ß"), "");
    }
}
