//! What the YAML reader says, in the words of people who write files.

use serde_saphyr::{Error, budget::BudgetBreach};

use super::{
    diagnostic::{At, Diagnostic},
    suggest::suggestion,
    yaml::{Source, at},
};

/// The reader's error as a diagnostic.
pub(super) fn explain(error: &Error, source: &Source) -> Diagnostic {
    let error = error.without_snippet();
    let mut place = error.location().map(at).unwrap_or_default();
    if place.offset == usize::MAX {
        place = source.located(place);
    }
    if let Some(diagnostic) = habit(source, place) {
        return diagnostic;
    }
    match error {
        Error::AliasError { error, .. } => explain(error, source),
        Error::SerdeUnknownField { field, expected, .. } => Diagnostic::new(format!("unknown key `{field}`"))
            .at(place, "this key means nothing here")
            .help(suggestion(field, expected)),
        Error::SerdeUnknownVariant { variant, expected, .. } => Diagnostic::new(format!("unknown word `{variant}`"))
            .at(place, "this word means nothing here")
            .help(suggestion(variant, expected)),
        Error::SerdeMissingField { field, .. } => Diagnostic::new(format!("`{field}` is missing"))
            .at(place, "the map that ends here needs it")
            .help(format!("add a line `{field}: ...`")),
        Error::DuplicateMappingKey { key, .. } => {
            let title = key.as_ref().map_or("a key stands here twice".to_owned(), |key| {
                format!("the key `{}` stands here twice", key.trim_matches('"'))
            });
            Diagnostic::new(title)
                .at(place, "already given above, in the same map")
                .help("remove one of them, or start a new list item with `- `")
        }
        Error::ExpectedMappingEndAfterEnumVariantValue { .. } => Diagnostic::new("two steps in one list item")
            .at(place, "a step has one key")
            .help("start each step with `- ` on a line of its own"),
        Error::ExternallyTaggedEnumExpectedScalarOrMapping { .. }
        | Error::ExpectedStringKeyForExternallyTaggedEnum { .. } => Diagnostic::new("this is not a step")
            .at(place, "here")
            .help("a step looks like `- send: { as: first, key: k }`"),
        Error::MultipleDocuments { .. } => second_document(source, place),
        Error::NullIntoString { .. } => Diagnostic::new("a value is missing")
            .at(place, "nothing is given here")
            .help("write a value, or remove the key"),
        Error::InvalidBooleanStrict { .. } => {
            Diagnostic::new("not a yes-or-no value").at(place, "here").help("write `true` or `false`")
        }
        Error::UnknownAnchor { .. } => Diagnostic::new("`*` refers to a name that nothing is called by")
            .at(place, "here")
            .help("give the value a name with `&name` above, or put the text in quotes"),
        Error::MergeValueNotMapOrSeqOfMaps { .. } => Diagnostic::new("`<<` needs a map to take keys from")
            .at(place, "here")
            .help("write `<<: *name` for a map named `&name`"),
        Error::Budget { breach, .. } => budget(breach, source, place),
        Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. }
        | Error::AliasReplayCounterOverflow { .. } => too_many(place),
        Error::SerdeInvalidType { unexpected, expected, .. }
        | Error::SerdeInvalidValue { unexpected, expected, .. } => {
            wrong_type(expected, Some(&plain(unexpected)), place)
        }
        Error::SerdeInvalidLength { expected, .. } => wrong_type(expected, None, place),
        Error::Unexpected { expected, .. } => wrong_type(expected, found(source, place), place),
        Error::InvalidScalar { ty, .. } => wrong_type(ty, found(source, place), place),
        Error::UnexpectedSequenceEnd { .. }
        | Error::UnexpectedMappingEnd { .. }
        | Error::ContainerEndMismatch { .. } => {
            Diagnostic::new("something ends here that was not finished").at(place, "here").help("check the brackets")
        }
        Error::Message { msg, .. } => Diagnostic::new(msg.as_str()).at(place, "here"),
        Error::ExternalMessage { msg, .. } => broken(msg, source, place),
        Error::Eof { .. } => Diagnostic::new("the file ends too early").at(place, "here").help("finish the last value"),
        _ => Diagnostic::new("this is not valid YAML").at(place, "here").help("check indentation, quotes and brackets"),
    }
}

/// Mistakes that people make by habit and that YAML reads as something else.
fn habit(source: &Source, place: At) -> Option<Diagnostic> {
    let rest = source.text().get(place.offset..).filter(|_| place.line > 0)?;
    if let Some((start, word)) = bare_item_before(source, place) {
        return Some(
            Diagnostic::new(format!("`- {word}` says nothing more"))
                .at(source.place(start, word.len()), "a name without its values")
                .help(format!("write them behind it: `- {word}: {{ name: value }}`")),
        );
    }
    let line_start = source.text()[..place.offset].rfind('\n').map_or(0, |index| index + 1);
    let line = source.text()[line_start..].lines().next().unwrap_or_default();
    if rest.starts_with("{{") || value_after_key(rest).is_some_and(|value| value.starts_with("{{")) {
        let place = source.find(place, "{{");
        return Some(
            Diagnostic::new("`{{...}}` is not a placeholder")
                .at(At { len: 2, ..place }, "YAML reads this as a map")
                .help("write ${name} or ${env:NAME}, in quotes where it stands inside { }"),
        );
    }
    if line.trim_start_matches(' ').starts_with('\t') {
        let tab = line_start + line.find('\t').unwrap_or_default();
        return Some(self::tab(source.place(tab, 1)));
    }
    let open = unquoted_placeholder(line)?;
    Some(
        Diagnostic::new("a placeholder inside { } needs quotes")
            .at(source.place(line_start + open, 2), "YAML reads the brace as the start of a map")
            .help("put the whole value in double quotes, such as \"${n}\""),
    )
}

/// A list item `- word` on the line before a place that stands left of it.
fn bare_item_before(source: &Source, place: At) -> Option<(usize, &str)> {
    let before = source.text()[..place.offset].rsplit_once('\n')?.0;
    let line = before.rsplit('\n').next()?;
    let word = line.trim().strip_prefix("- ")?.trim();
    let indent = line.len() - line.trim_start().len();
    let column = usize::try_from(place.column).unwrap_or(usize::MAX);
    let bare = column <= indent + 1 && !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase() || c == '-');
    bare.then(|| (before.len() - line.len() + indent + 2, word))
}

/// What stands after `key: ` on this line.
fn value_after_key(rest: &str) -> Option<&str> {
    let line = rest.lines().next()?;
    line.split_once(": ").map(|(_, value)| value.trim_start())
}

/// The place of a `${` that is outside of quotes and inside of braces.
fn unquoted_placeholder(line: &str) -> Option<usize> {
    let mut quote = None;
    let mut depth = 0usize;
    for (index, c) in line.char_indices() {
        match (quote, c) {
            (Some(open), c) if open == c => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None, '{') => depth += 1,
            (None, '}') => depth = depth.saturating_sub(1),
            (None, '$') if depth > 0 && line[index..].starts_with("${") => return Some(index),
            _ => {}
        }
    }
    None
}

fn wrong_type(expected: &str, found: Option<&str>, place: At) -> Diagnostic {
    let expected = plain(expected);
    let help = match expected.as_str() {
        "a list" => "write a list: [a, b], or one item a line, each starting with `- `".to_owned(),
        "a map" => "write names and values: { name: value }, or one `name: value` a line".to_owned(),
        "a text" => "write one value; put it in quotes if it has special characters".to_owned(),
        other => format!("write {other}"),
    };
    let title = match found {
        Some(found) => format!("{found} cannot stand here"),
        None => "this value cannot stand here".to_owned(),
    };
    let label = if expected.len() > 30 { "here".to_owned() } else { format!("this should be {expected}") };
    Diagnostic::new(title).at(place, label).help(help)
}

/// What stands at a place, by its first character.
fn found(source: &Source, place: At) -> Option<&'static str> {
    let rest = source.text().get(place.offset..).filter(|_| place.line > 0)?;
    let first_line = rest.lines().next().unwrap_or_default();
    match rest.chars().next()? {
        '[' => Some("a list"),
        '-' if rest[1..].starts_with([' ', '\n', '\r']) => Some("a list"),
        '{' => Some("a map"),
        '"' | '\'' => Some("a text"),
        _ if first_line.contains(": ") || first_line.trim_end().ends_with(':') => Some("a map"),
        c if c.is_alphanumeric() => Some("a single value"),
        '}' | ']' | ',' => Some("nothing"),
        _ => None,
    }
}

fn budget(breach: &BudgetBreach, source: &Source, place: At) -> Diagnostic {
    match breach {
        BudgetBreach::Depth { .. } => Diagnostic::new("values are nested deeper than 32 levels")
            .at(place, "too deep")
            .help("flatten the payload, or check the brackets"),
        BudgetBreach::Documents { .. } => second_document(source, place),
        _ => too_many(place),
    }
}

fn too_many(place: At) -> Diagnostic {
    Diagnostic::new("the file has more than 20,000 values")
        .at(place, "the limit is passed here")
        .help("split the file; every use of an alias (`*name`) counts as all the values it stands for")
}

/// What the parser underneath says about broken YAML.
fn broken(text: &str, source: &Source, place: At) -> Diagnostic {
    let text = text.lines().next().unwrap_or_default().trim();
    if text.contains("tab") {
        return tab(source.find(place, "\t"));
    }
    if text.contains("mapping values are not allowed") {
        return Diagnostic::new("a second `: ` in one value")
            .at(place, "here")
            .help("put a text that has a colon and a space in it in quotes, or check the indentation");
    }
    if let Some(open) = open_bracket(&source.text()[..place.offset.min(source.text().len())]) {
        return Diagnostic::new("a bracket is not closed")
            .at(source.place(open, 1), "opened here")
            .at(place, "not closed up to here")
            .help("close it, and put texts with special characters in quotes");
    }
    if text.contains("block") || text.contains("indent") {
        return Diagnostic::new("the indentation does not fit")
            .at(place, "neither inside the lines above nor beside them")
            .help("indent this line exactly as the others that it belongs to");
    }
    Diagnostic::new(format!("this is not valid YAML: {text}"))
        .at(place, "here")
        .help("check indentation, quotes and brackets, here and in the lines before")
}

fn tab(at: At) -> Diagnostic {
    Diagnostic::new("a tab in the indentation")
        .at(At { len: 1, ..at }, "YAML indents with spaces only")
        .help("replace the tabs at the start of the line by spaces")
}

fn second_document(source: &Source, place: At) -> Diagnostic {
    let line = source.text().get(..place.offset).and_then(|before| before.rfind("\n---"));
    let place = line.map_or(place, |index| source.place(index + 1, 3));
    Diagnostic::new("a second document starts in this file")
        .at(place, "here")
        .help("write one document in each file: remove the line `---`")
}

/// The last bracket of a text that is still open at its end.
fn open_bracket(text: &str) -> Option<usize> {
    let mut open = Vec::new();
    let mut quote = None;
    let mut last = '\n';
    let mut comment = false;
    for (index, c) in text.char_indices() {
        match (quote, c) {
            (_, '\n') => comment = false,
            _ if comment => {}
            (Some(mark), c) if mark == c => quote = None,
            (Some(_), _) => {}
            (None, '#') if last.is_whitespace() => comment = true,
            (None, '"' | '\'') if last.is_whitespace() || "[{,:".contains(last) => quote = Some(c),
            (None, '[' | '{') if last.is_whitespace() || "[{,:".contains(last) => open.push(index),
            (None, ']' | '}') => drop(open.pop()),
            _ => {}
        }
        last = c;
    }
    open.pop()
}

/// A type as serde names it, in plain words.
fn plain(name: &str) -> String {
    let name = name.trim();
    let known = match name {
        "sequence" | "a sequence" | "sequence start" => "a list",
        "map" | "a map" | "mapping" | "mapping start" => "a map",
        "string" | "a string" | "string scalar" | "str" | "borrowed string" => "a text",
        "unit value" | "null" => "nothing",
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number",
        "i8" | "i16" | "i32" | "i64" => "a whole number",
        "f32" | "f64" => "a number",
        "bool" | "boolean" | "a boolean" => "true or false",
        "scalar" | "a scalar" => "a single value",
        other if other.starts_with("struct ") => "a map",
        other => {
            let kinds = [("string ", "the text "), ("integer ", "the number "), ("floating point ", "the number ")];
            let kind = kinds.iter().find_map(|(from, to)| Some(format!("{to}{}", other.strip_prefix(from)?)));
            return kind.unwrap_or_else(|| other.replace("boolean `", "`"));
        }
    };
    known.to_owned()
}
