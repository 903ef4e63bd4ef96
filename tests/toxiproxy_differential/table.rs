//! The table of results. It says nothing that differs from run to run, so that a change in it is a change.

use std::fmt::Write;

/// A row on both servers.
pub(crate) struct Compared {
    room: &'static str,
    row: &'static str,
    /// What was seen; nothing when the row failed there.
    pub(crate) embedded: Option<Vec<String>>,
    pub(crate) real: Option<Vec<String>>,
}

impl Compared {
    pub(crate) fn new(room: &'static str, row: &'static str) -> Self {
        Self { room, row, embedded: None, real: None }
    }

    pub(crate) fn agrees(&self) -> bool {
        self.embedded.is_some() && kinds(self.embedded.as_deref()) == kinds(self.real.as_deref())
    }

    /// What differs, for people.
    pub(crate) fn difference(&self) -> String {
        let (embedded, real) = (kinds(self.embedded.as_deref()), kinds(self.real.as_deref()));
        let only = |name: &str, these: &[String], those: &[String]| {
            let only: Vec<_> = these.iter().filter(|line| !those.contains(line)).take(10).collect();
            format!("  {name}: {only:#?}\n")
        };
        match (&embedded, &real) {
            (Some(e), Some(r)) => format!("{}\n{}{}", self.row, only("embedded", e, r), only("real", r, e)),
            (e, r) => {
                format!("{}: passes on the embedded one: {}, on the real one: {}", self.row, e.is_some(), r.is_some())
            }
        }
    }
}

/// What was seen, in an order that callers side by side cannot change, each thing once: how often a row had to look is
/// a matter of speed.
fn kinds(seen: Option<&[String]>) -> Option<Vec<String>> {
    seen.map(|seen| {
        let mut kinds = seen.to_vec();
        kinds.sort();
        kinds.dedup();
        kinds
    })
}

pub(crate) fn write(compared: &[Compared]) -> String {
    let mut text = String::from(
        "# The embedded server and Toxiproxy 2.12.0, row by row\n\n\
         Written by `cargo test --test toxiproxy_differential real_toxiproxy`. *Seen* counts the different things that a\n\
         row has seen: answers of the API (status, type, body without names and ports), bytes in order (length and digest),\n\
         FIN or RST, and whether it came at once or later. Rows agree when all of it is equal.\n\n\
         | row | where | seen | embedded | real | agree |\n|---|---|---:|---|---|---|\n",
    );
    let word = |holds: bool| if holds { "holds" } else { "FAILS" };
    for row in compared {
        let seen = kinds(row.embedded.as_deref()).map_or(0, |seen| seen.len());
        let agree = if row.agrees() { "yes" } else { "NO" };
        let (embedded, real) = (word(row.embedded.is_some()), word(row.real.is_some()));
        let _ = writeln!(text, "| {} | {} | {seen} | {embedded} | {real} | {agree} |", row.row, row.room);
    }
    text
}
