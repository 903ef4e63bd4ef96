//! The arrows between the rooms: reads `src/` and fails on a reference that the table in `src/lib.rs` does not allow.
//!
//! It reads tokens, not text, so comments and strings do not count, and it follows `crate::`, `super::`, `self::` and
//! nested `use` groups wherever they stand: in imports, in code, in macros and in test modules.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn no_room_knows_more_than_the_table_allows() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let table = Table::parse(&read(&src.join("lib.rs"))).unwrap();
    let files = rust_files(&src);
    assert!(files.len() > table.rooms.len(), "only {} files found under {}", files.len(), src.display());
    let violations: Vec<String> =
        files.iter().flat_map(|file| violations(&table, file.strip_prefix(&src).unwrap(), &read(file))).collect();
    assert!(
        violations.is_empty(),
        "{} references run against the table of rooms in src/lib.rs:\n{}",
        violations.len(),
        violations.join("\n")
    );
}

#[test]
fn the_table_lists_every_room_and_has_no_circles() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let table = Table::parse(&read(&src.join("lib.rs"))).unwrap();
    let on_disk: BTreeSet<String> = rust_files(&src)
        .iter()
        .map(|file| home(file.strip_prefix(&src).unwrap()))
        .filter_map(|path| path.first().cloned())
        .collect();
    let listed: BTreeSet<String> = table.rooms.keys().cloned().collect();
    assert_eq!(listed, on_disk, "the table of rooms (left) and the folders in src (right) differ");
    assert_eq!(table.circle(), None, "rooms that know each other");
}

fn read(file: &Path) -> String {
    fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut entries: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for entry in entries {
        if entry.is_dir() {
            files.extend(rust_files(&entry));
        } else if entry.extension().is_some_and(|extension| extension == "rs") {
            files.push(entry);
        }
    }
    files
}

/// The table of rooms: for each room the rooms it may know.
struct Table {
    rooms: BTreeMap<String, BTreeSet<String>>,
}

impl Table {
    /// Reads the table with the columns room, job and may know out of the documentation of the crate.
    fn parse(lib: &str) -> Result<Self, String> {
        let rows: Vec<Vec<&str>> = lib
            .lines()
            .filter_map(|line| line.strip_prefix("//!"))
            .filter_map(|line| line.trim().strip_prefix('|')?.strip_suffix('|'))
            .map(|line| line.split('|').map(str::trim).collect())
            .collect();
        let (header, rows) = rows.split_first().ok_or("src/lib.rs documents no table of rooms")?;
        if header != &["room", "job", "may know"] {
            return Err(format!("the table in src/lib.rs has the columns {header:?}, not room, job, may know"));
        }
        // `mod@` tells rustdoc that a module is meant and not a primitive type of the same name.
        let bare = |cell: &str| cell.trim_matches(['[', ']', '`', ' ']).trim_start_matches("mod@").to_owned();
        let rows: Vec<&Vec<&str>> = rows.iter().filter(|row| !row.iter().all(|cell| cell.starts_with("--"))).collect();
        let names: BTreeSet<String> = rows.iter().map(|row| bare(row[0])).collect();
        let mut rooms = BTreeMap::new();
        for row in rows {
            let &[room, _, knows] = row.as_slice() else {
                return Err(format!("a row of the table in src/lib.rs has not three cells: {row:?}"));
            };
            let list = |cell: &str| cell.split(',').map(bare).collect::<BTreeSet<String>>();
            let knows = match knows.strip_prefix("everything") {
                Some("") => names.clone(),
                Some(rest) => {
                    let but = rest.trim().strip_prefix("but").ok_or(format!("cannot read {knows:?}"))?;
                    names.difference(&list(but)).cloned().collect()
                }
                None if knows == "nothing" => BTreeSet::new(),
                None => list(knows),
            };
            if let Some(unknown) = knows.difference(&names).next() {
                return Err(format!("the row of {room} names {unknown:?}, which is not a room"));
            }
            if rooms.insert(bare(room), knows).is_some() {
                return Err(format!("{room} has two rows"));
            }
        }
        Ok(Self { rooms })
    }

    fn allows(&self, room: &str, known: &str) -> bool {
        room == known || self.rooms.get(room).is_some_and(|rooms| rooms.contains(known))
    }

    /// Two rooms that reach each other, if there are any.
    fn circle(&self) -> Option<(String, String)> {
        let reach = |from: &String| {
            let mut seen = BTreeSet::new();
            let mut next: Vec<&String> = self.rooms[from].iter().filter(|to| *to != from).collect();
            while let Some(room) = next.pop() {
                if seen.insert(room.clone()) {
                    next.extend(&self.rooms[room]);
                }
            }
            seen
        };
        self.rooms.keys().find_map(|a| {
            let reached = reach(a);
            let back = reached.iter().find(|b| *b != a && reach(b).contains(a))?;
            Some((a.clone(), back.clone()))
        })
    }
}

/// What the file at `path` (from `src/`) refers to against the table, one line each.
fn violations(table: &Table, path: &Path, source: &str) -> Vec<String> {
    let home = home(path);
    // The crate root itself only declares the rooms and belongs to none.
    let Some(room) = home.first() else { return Vec::new() };
    let knows = |room: &str| match table.rooms.get(room) {
        Some(rooms) if rooms.is_empty() => "nothing".to_owned(),
        Some(rooms) => rooms.iter().filter(|known| *known != room).cloned().collect::<Vec<_>>().join(", "),
        None => "nothing, because it is not in the table".to_owned(),
    };
    references(&home, source)
        .into_iter()
        .filter(|reference| !table.allows(room, &reference.to))
        .map(|Reference { line, to }| {
            let place = format!("src/{}:{line}", path.display());
            if table.rooms.contains_key(&to) {
                format!("{place}: room `{room}` may not know `{to}`; it may know {}", knows(room))
            } else {
                format!(
                    "{place}: room `{room}` refers to `crate::{to}`, which is not a room; name the room it comes from"
                )
            }
        })
        .collect()
}

/// The module path of a file: `judge/order.rs` is `judge::order`, `judge/mod.rs` is `judge`, `lib.rs` is the root.
fn home(path: &Path) -> Vec<String> {
    let mut modules: Vec<String> =
        path.with_extension("").iter().map(|part| part.to_string_lossy().into_owned()).collect();
    match modules.last().map(String::as_str) {
        Some("mod") => drop(modules.pop()),
        Some("lib") if modules.len() == 1 => modules.clear(),
        // The program is the doorstep of the command line.
        Some("main") if modules.len() == 1 => modules = vec!["cli".to_owned()],
        _ => {}
    }
    modules
}

/// A path that leaves through the crate root and what it names there.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Reference {
    line: usize,
    to: String,
}

/// Everything the source of the module `home` names at the crate root, in order.
fn references(home: &[String], source: &str) -> Vec<Reference> {
    let tokens = tokens(source);
    let mut walk = Walk { tokens: &tokens, found: Vec::new(), walked: BTreeSet::new() };
    // The inline modules around the current token, each with the number of open braces outside it.
    let mut inline: Vec<(String, usize)> = Vec::new();
    let mut braces = 0;
    for at in 0..tokens.len() {
        match walk.text(at) {
            "{" => {
                if let Some([keyword, name]) = at.checked_sub(2).map(|from| &tokens[from..at])
                    && keyword.text == "mod"
                {
                    inline.push((name.text.clone(), braces));
                }
                braces += 1;
            }
            "}" => {
                braces = braces.saturating_sub(1);
                inline.pop_if(|(_, outside)| *outside == braces);
            }
            "crate" | "super" | "self" | "idemproof" if walk.starts_path(at) => {
                let mut module = home.to_vec();
                module.extend(inline.iter().map(|(name, _)| name.clone()));
                walk.follow(at, module);
            }
            _ => {}
        }
    }
    walk.found
}

struct Walk<'a> {
    tokens: &'a [Token],
    found: Vec<Reference>,
    /// Where the paths inside groups begin that were walked from the path before the group.
    walked: BTreeSet<usize>,
}

impl Walk<'_> {
    /// The token at `at`, or nothing behind the last.
    fn text(&self, at: usize) -> &str {
        self.tokens.get(at).map_or("", |token| token.text.as_str())
    }

    /// Whether the token at `at` is the first of a path, `::idemproof` included, that has not been walked.
    fn starts_path(&self, at: usize) -> bool {
        let before = |back: usize| at.checked_sub(back).map_or("", |at| self.text(at));
        let goes_on = before(1) == "::" && before(2) != "use" && before(2).starts_with(is_name_start);
        // `self as T` is a value; the root under another name hides what is taken from it.
        let renamed = self.text(at) != "self" && self.text(at + 1) == "as";
        !goes_on && (self.text(at + 1) == "::" || renamed) && !self.walked.contains(&at)
    }

    /// Walks the path or group at `at`, where `module` is what came before it, and notes what it names at the crate
    /// root. Gives the place after it.
    fn follow(&mut self, mut at: usize, mut module: Vec<String>) -> usize {
        self.walked.insert(at);
        loop {
            match self.text(at) {
                "crate" | "idemproof" => module.clear(),
                "super" => drop(module.pop()),
                "self" => {}
                "{" => {
                    at += 1;
                    while !matches!(self.text(at), "}" | "") {
                        at = if self.text(at) == "," { at + 1 } else { self.follow(at, module.clone()) };
                    }
                    return at + 1;
                }
                // A name cannot lead back to the root: `super` stands at the start of a path only.
                _ => break,
            }
            if self.text(at + 1) != "::" {
                break;
            }
            at += 2;
        }
        if module.is_empty()
            && let Some(Token { line, text }) = self.tokens.get(at)
        {
            self.found.push(Reference { line: *line, to: text.clone() });
        }
        skip_path(self.tokens, at)
    }
}

/// The place after the path, group and new name that start at `at`.
fn skip_path(tokens: &[Token], mut at: usize) -> usize {
    let mut open = 0;
    while let Some(token) = tokens.get(at) {
        match token.text.as_str() {
            "{" => open += 1,
            "}" if open == 0 => return at,
            "}" => open -= 1,
            "," | ";" if open == 0 => return at,
            _ => {}
        }
        at += 1;
    }
    at
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Token {
    line: usize,
    text: String,
}

fn is_name_start(c: char) -> bool {
    c.is_alphabetic() || c == '_'
}

/// The names, `::` and single signs of a source; comments, strings, characters, lifetimes and numbers are left out.
fn tokens(source: &str) -> Vec<Token> {
    let chars: Vec<char> = source.chars().collect();
    let at = |i: usize| chars.get(i).copied().unwrap_or('\0');
    let mut tokens = Vec::new();
    let (mut i, mut line) = (0, 1);
    while i < chars.len() {
        let start = i;
        match chars[i] {
            '/' if at(i + 1) == '/' => i = end_of_line(&chars, i),
            '/' if at(i + 1) == '*' => i = end_of_block_comment(&chars, i),
            '"' => i = end_of_string(&chars, i),
            '\'' => i = end_of_quote(&chars, i),
            ':' if at(i + 1) == ':' => {
                tokens.push(Token { line, text: "::".to_owned() });
                i += 2;
            }
            c if is_name_start(c) => {
                while at(i).is_alphanumeric() || at(i) == '_' {
                    i += 1;
                }
                let name: String = chars[start..i].iter().collect();
                let hashes = chars[i..].iter().take_while(|c| **c == '#').count();
                match (name.as_str(), at(i + hashes)) {
                    ("r" | "br" | "cr", '"') => i = end_of_raw_string(&chars, i, hashes),
                    ("b" | "c", '"') if hashes == 0 => i = end_of_string(&chars, i),
                    ("b", '\'') if hashes == 0 => i = end_of_quote(&chars, i),
                    // A raw name, `r#type`: the name itself is the next token.
                    ("r", c) if hashes == 1 && is_name_start(c) => i += 1,
                    _ => tokens.push(Token { line, text: name }),
                }
            }
            c if c.is_numeric() => {
                while at(i).is_alphanumeric() || at(i) == '_' {
                    i += 1;
                }
            }
            c => {
                if !c.is_whitespace() {
                    tokens.push(Token { line, text: c.to_string() });
                }
                i += 1;
            }
        }
        line += chars[start..i.min(chars.len())].iter().filter(|c| **c == '\n').count();
    }
    tokens
}

fn end_of_line(chars: &[char], from: usize) -> usize {
    from + chars[from..].iter().take_while(|c| **c != '\n').count()
}

fn end_of_block_comment(chars: &[char], from: usize) -> usize {
    let (mut i, mut open) = (from, 0);
    while i < chars.len() {
        match (chars[i], chars.get(i + 1)) {
            ('/', Some('*')) => (open, i) = (open + 1, i + 2),
            ('*', Some('/')) => (open, i) = (open - 1, i + 2),
            _ => i += 1,
        }
        if open == 0 {
            break;
        }
    }
    i
}

/// The place after the string whose opening quote stands at `from`.
fn end_of_string(chars: &[char], from: usize) -> usize {
    let mut i = from + 1;
    while i < chars.len() && chars[i] != '"' {
        i += if chars[i] == '\\' { 2 } else { 1 };
    }
    i + 1
}

/// The place after the raw string whose `hashes` stand at `from`.
fn end_of_raw_string(chars: &[char], from: usize, hashes: usize) -> usize {
    let mut i = from + hashes + 1;
    while i < chars.len() {
        let closing = chars[i + 1..].iter().take_while(|c| **c == '#').count();
        if chars[i] == '"' && closing >= hashes {
            return i + 1 + hashes;
        }
        i += 1;
    }
    i
}

/// The place after the character or lifetime whose quote stands at `from`.
fn end_of_quote(chars: &[char], from: usize) -> usize {
    match (chars.get(from + 1), chars.get(from + 2)) {
        // The escaped sign may be a quote itself; what follows up to the closing quote is none.
        (Some('\\'), _) => from + 4 + chars[(from + 3).min(chars.len())..].iter().take_while(|c| **c != '\'').count(),
        (Some(_), Some('\'')) => from + 3,
        _ => from + 1 + chars[from + 1..].iter().take_while(|c| c.is_alphanumeric() || **c == '_').count(),
    }
}

mod extractor {
    use super::*;

    fn found(home: &[&str], source: &str) -> Vec<String> {
        let home: Vec<String> = home.iter().map(|part| (*part).to_owned()).collect();
        references(&home, source).into_iter().map(|reference| format!("{} {}", reference.line, reference.to)).collect()
    }

    const LIB: &str = "//! | room | job | may know |\n//! |---|---|---|\n//! | [`text`] | reads, writes | nothing |\n\
                       //! | [`mod@spec`] | rules | text |\n//! | [`run`] | runs | everything but `cli` |\n\
                       //! | [`cli`] | the command | everything |\n";

    #[test]
    fn finds_imports_and_paths_in_code() {
        assert_eq!(
            found(&["a"], "use crate::judge::Verdict;\nfn f() -> crate::spec::Rule { crate::text::f() }"),
            ["1 judge", "2 spec", "2 text"]
        );
        assert_eq!(found(&["a"], "pub(crate) use crate::judge;"), ["1 judge"]);
        assert_eq!(found(&["a"], "pub(in crate::a) fn f(x: &'static crate::b::B) {}"), ["1 a", "1 b"]);
        assert_eq!(found(&["a"], "macro_rules! m { () => { $crate::drive::go() }; }"), ["1 drive"]);
        assert_eq!(found(&["cli"], "fn main() { idemproof::cli::main() }\nuse ::idemproof::run;"), ["1 cli", "2 run"]);
        assert_eq!(found(&["a"], "use crate::r#judge::x;"), ["1 judge"]);
    }

    #[test]
    fn follows_nested_groups() {
        let source = "use crate::{\n    judge::{self, Verdict as V},\n    spec,\n    text::{a::{b, c}, d::*},\n};\nuse std::{fs, io};";
        assert_eq!(found(&["a"], source), ["2 judge", "3 spec", "4 text"]);
        assert_eq!(found(&["a"], "use {crate::judge, std::fs, super::spec};"), ["1 judge", "1 spec"]);
        assert_eq!(found(&["a", "b"], "use super::{c, super::judge::V};"), ["1 judge"]);
        assert_eq!(found(&["a", "b"], "use self::{super::super::{judge, spec::X}, y};"), ["1 judge", "1 spec"]);
    }

    #[test]
    fn counts_supers_from_the_module_they_stand_in() {
        assert_eq!(found(&["a"], "use super::judge::V;"), ["1 judge"]);
        assert_eq!(found(&["a", "b"], "use super::judge::V;"), [""; 0]);
        assert_eq!(found(&["a", "b"], "use super::super::judge;"), ["1 judge"]);
        assert_eq!(found(&["a"], "use self::super::judge;"), ["1 judge"]);
        let tests = "fn f() { loop {} }\n#[cfg(test)]\nmod tests {\n use super::*;\n use super::super::judge;\n fn g() {}\n}\nuse super::spec;";
        assert_eq!(found(&["a"], tests), ["5 judge", "8 spec"]);
        assert_eq!(
            found(&["a"], "mod x { mod y { use super::super::b; use super::super::super::judge; } }"),
            ["1 judge"]
        );
    }

    #[test]
    fn globs_and_renames_of_the_root_are_named() {
        assert_eq!(found(&["a"], "use crate::*;"), ["1 *"]);
        assert_eq!(found(&["a"], "use super::*;"), ["1 *"]);
        assert_eq!(found(&["a"], "use crate as root;"), ["1 crate"]);
        assert_eq!(found(&["a"], "use crate::{self as root};"), ["1 self"]);
        assert_eq!(found(&["a"], "fn f(self: &Self) { self.x(); let y = self as &dyn T; }"), [""; 0]);
    }

    #[test]
    fn ignores_comments_strings_characters_and_lifetimes() {
        let source = "//! crate::a\n/// [`crate::b`]\n// crate::c\n/* crate::d /* crate::e */ crate::f */\n\
                      const A: &str = \"crate::g \\\" crate::h\"; const B: &str = r#\"crate::i \" crate::j\"#;\n\
                      const C: &[u8] = b\"crate::k\"; const D: char = '\"'; const E: char = '\\''; const F: u8 = b'\"';\n\
                      fn f<'a>(x: &'a str) -> char { '\\u{1F600}' }\nuse crate::judge;";
        assert_eq!(found(&["x"], source), ["8 judge"]);
    }

    #[test]
    fn a_planted_import_is_named_with_file_line_and_rooms() {
        let table = Table::parse(LIB).unwrap();
        let of = |path: &str, source: &str| violations(&table, Path::new(path), source);
        assert_eq!(
            of("spec/rule.rs", "use crate::text::x;\nuse crate::{spec::y, run::Event};"),
            ["src/spec/rule.rs:2: room `spec` may not know `run`; it may know text"]
        );
        assert_eq!(
            of("text/mod.rs", "mod tests {\n use super::super::spec;\n}"),
            ["src/text/mod.rs:2: room `text` may not know `spec`; it may know nothing"]
        );
        assert_eq!(of("run/mod.rs", "use crate::{cli, spec, text};").len(), 1);
        assert_eq!(of("main.rs", "use idemproof::{cli, run, spec};"), [""; 0]);
        assert_eq!(of("lib.rs", "pub mod cli; pub use crate::run::x;"), [""; 0]);
        assert!(of("cli/mod.rs", "use crate::Event;")[0].contains("`crate::Event`, which is not a room"));
        assert!(of("new/mod.rs", "use crate::text;")[0].contains("`new` may not know `text`"));
    }

    #[test]
    fn reads_the_table() {
        let table = Table::parse(LIB).unwrap();
        let rooms = |room: &str| table.rooms[room].iter().map(String::as_str).collect::<Vec<_>>();
        assert_eq!(rooms("text"), [""; 0]);
        assert_eq!(rooms("spec"), ["text"]);
        assert_eq!(rooms("run"), ["run", "spec", "text"]);
        assert_eq!(rooms("cli"), ["cli", "run", "spec", "text"]);
        assert_eq!(table.circle(), None);
        let broken = LIB.replace("| rules | text |", "| rules | txt |");
        assert!(Table::parse(&broken).err().unwrap().contains("\"txt\", which is not a room"));
        assert!(Table::parse("//! no table").is_err());
        assert!(Table::parse("//! | room | may know |").is_err());
        let circle = LIB.replace("| nothing |", "| spec |");
        assert_eq!(Table::parse(&circle).unwrap().circle(), Some(("spec".to_owned(), "text".to_owned())));
    }
}
