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
    let place = error.location().map(at).unwrap_or_default();
    if let Some(diagnostic) = habit(source, place) {
        return diagnostic;
    }
    match error {
        Error::AliasError { error, .. } => explain(error, source),
        Error::SerdeUnknownField { field, expected, .. } => Diagnostic::new(format!("unknown key `{field}`"))
            .at(place, "this key means nothing here")
            .help(suggestion(field, expected)),
        Error::SerdeUnknownVariant { variant, expected, .. } => {
            Diagnostic::new(format!("unknown word `{variant}`"))
                .at(place, "this word means nothing here")
                .help(suggestion(variant, expected))
        }
        Error::SerdeMissingField { field, .. } => Diagnostic::new(format!("`{field}` is missing"))
            .at(place, "in the map that this belongs to")
            .help(format!("add a line `{field}: ...`")),
        Error::DuplicateMappingKey { key, .. } => {
            let title = key.as_ref().map_or("a key stands here twice".to_owned(), |key| {
                format!("the key `{}` stands here twice", key.trim_matches('"'))
            });
            Diagnostic::new(title)
                .at(place, "already given above, in the same map")
                .help("remove one of them; if this is a list of steps or cases, start each with `- `")
        }
        Error::ExpectedMappingEndAfterEnumVariantValue { .. } => Diagnostic::new("two steps in one list item")
            .at(place, "a step has one key")
            .help("start each step with `- ` on a line of its own"),
        Error::ExternallyTaggedEnumExpectedScalarOrMapping { .. }
        | Error::ExpectedStringKeyForExternallyTaggedEnum { .. } => {
            Diagnostic::new("this is not a step").at(place, "here").help("a step looks like `- send: { as: first, key: k }`")
        }
        Error::MultipleDocuments { .. } => Diagnostic::new("a second document starts in this file")
            .at(place, "here")
            .help("write one document in each file: remove the line `---`"),
        Error::NullIntoString { .. } => {
            Diagnostic::new("a value is missing").at(place, "nothing is given here").help("write a value, or remove the key")
        }
        Error::InvalidBooleanStrict { .. } => {
            Diagnostic::new("not a yes-or-no value").at(place, "here").help("write `true` or `false`")
        }
        Error::UnknownAnchor { .. } => Diagnostic::new("`*` refers to a name that nothing is called by")
            .at(place, "here")
            .help("give the value a name with `&name` above, or put the text in quotes"),
        Error::MergeValueNotMapOrSeqOfMaps { .. } => {
            Diagnostic::new("`<<` needs a map to take keys from").at(place, "here").help("write `<<: *name` for a map named `&name`")
        }
        Error::Budget { breach, .. } => budget(breach, place),
        Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. }
        | Error::AliasReplayCounterOverflow { .. } => too_many(place),
        Error::SerdeInvalidType { unexpected, expected, .. } => {
            wrong_type(&plain(expected), Some(&plain(unexpected)), place)
        }
        Error::SerdeInvalidValue { unexpected, expected, .. } => {
            wrong_type(&plain(expected), Some(&plain(unexpected)), place)
        }
        Error::SerdeInvalidLength { expected, .. } => wrong_type(&plain(expected), None, place),
        Error::Unexpected { expected, .. } => wrong_type(&plain(expected), found(source, place), place),
        Error::InvalidScalar { ty, .. } => wrong_type(&plain(ty), found(source, place), place),
        Error::UnexpectedSequenceEnd { .. } | Error::UnexpectedMappingEnd { .. } | Error::ContainerEndMismatch { .. } => {
            Diagnostic::new("something ends here that was not finished").at(place, "here").help("check the brackets")
        }
        Error::Message { msg, .. } => message(msg, place),
        Error::Eof { .. } => Diagnostic::new("the file ends too early").at(place, "here").help("finish the last value"),
        _ => Diagnostic::new("this is not valid YAML").at(place, "here").help("check indentation, quotes and brackets"),
    }
}

/// Mistakes that people make by habit and that YAML reads as something else.
fn habit(source: &Source, place: At) -> Option<Diagnostic> {
    let rest = source.text().get(place.offset..).filter(|_| place.line > 0)?;
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
        return Some(
            Diagnostic::new("a tab in the indentation")
                .at(source.place(tab, 1), "YAML indents with spaces only")
                .help("replace the tabs at the start of the line by spaces"),
        );
    }
    let open = unquoted_placeholder(line)?;
    Some(
        Diagnostic::new("a placeholder inside { } needs quotes")
            .at(source.place(line_start + open, 2), "YAML reads the brace as the start of a map")
            .help("put the whole value in double quotes, such as \"${n}\""),
    )
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
    let title = match found {
        Some(found) => format!("expected {expected}, found {found}"),
        None => format!("expected {expected}"),
    };
    Diagnostic::new(title).at(place, format!("this should be {expected}"))
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
        _ => None,
    }
}

fn budget(breach: &BudgetBreach, place: At) -> Diagnostic {
    match breach {
        BudgetBreach::Depth { .. } => Diagnostic::new("values are nested deeper than 32 levels")
            .at(place, "too deep")
            .help("flatten the payload, or check the brackets"),
        BudgetBreach::Documents { .. } => Diagnostic::new("a second document starts in this file")
            .at(place, "here")
            .help("write one document in each file: remove the line `---`"),
        _ => too_many(place),
    }
}

fn too_many(place: At) -> Diagnostic {
    Diagnostic::new("the file has more than 20,000 values")
        .at(place, "the limit is passed here")
        .help("split the file; every use of an alias (`*name`) counts as all the values it stands for")
}

/// What the parser underneath says about broken YAML.
fn message(text: &str, place: At) -> Diagnostic {
    let text = text.lines().next().unwrap_or_default().trim();
    Diagnostic::new(format!("this is not valid YAML: {text}"))
        .at(place, "here")
        .help("check indentation, quotes and brackets")
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
        other => return other.strip_prefix("struct ").map_or_else(|| other.to_owned(), |_| "a map".to_owned()),
    };
    known.to_owned()
}
