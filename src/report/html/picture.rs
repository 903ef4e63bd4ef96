//! The timeline of a case as SVG: one lane per attempt, count of effects and movement of time.

use std::fmt::Write;

use super::{
    axis::{Axis, Order},
    band::{State, stretches},
};
use crate::{
    history::{Attempt, End, History, Micros},
    report::terminal::{Lane, Mark, Source, Style, clean, fit, lanes, millis},
};

/// Where the bars begin; names stand to the left.
const LEFT: f64 = 132.0;

/// Where they end.
const RIGHT: f64 = 940.0;

/// The height of a lane: its label, and its bar below.
const LANE: f64 = 38.0;

/// The height of a row of the state band.
const BAND: f64 = 24.0;

/// The most lanes of one picture; the rest is counted.
const MOST_LANES: usize = 72;

/// The columns of a label that fit beside nothing else.
const MOST_LABEL: usize = 112;

/// Which lanes are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lanes {
    /// The attempts that decide the case, the counts and the movements of time.
    Core,
    /// All of them.
    All,
}

/// One picture.
#[derive(Debug, Clone)]
pub(super) struct Picture {
    /// The SVG.
    pub(super) svg: String,
    /// How many lanes it has, and how many it leaves out.
    pub(super) lanes: usize,
    pub(super) left_out: usize,
}

/// Draws a history; `None` if there is nothing to draw.
pub(super) fn draw(history: &History, deciding: &[String], which: Lanes, order: Order) -> Option<Picture> {
    let style = Style { color: false, unicode: true, width: 200 };
    let mut all = lanes(history, deciding, &style);
    if which == Lanes::Core {
        all.retain(|lane| lane.deciding || !matches!(lane.source, Source::Attempt(_)));
    }
    let left_out = all.len().saturating_sub(MOST_LANES);
    all.truncate(MOST_LANES);
    if all.is_empty() {
        return None;
    }
    let instants = all.iter().flat_map(|lane| instants(lane, history)).collect();
    let axis = Axis::new(instants, RIGHT - LEFT, order);
    Some(Picture { svg: Canvas { history, lanes: &all, axis }.svg(), lanes: all.len(), left_out })
}

fn instants(lane: &Lane, history: &History) -> Vec<Micros> {
    let mut instants = vec![lane.from, lane.to];
    if let Source::Attempt(index) = lane.source {
        let timing = history.attempts.get(index).map(|attempt| attempt.timing);
        instants.extend(timing.into_iter().flat_map(|t| [t.last_out, t.first_in]).flatten());
    }
    instants
}

/// A stretch of a state band: from, to, what it is, and what is written into it.
type Block = (f64, f64, State, String);

struct Canvas<'a> {
    history: &'a History,
    lanes: &'a [Lane],
    axis: Axis,
}

impl Canvas<'_> {
    fn svg(&self) -> String {
        let bands = self.bands();
        let top = 22.0 + BAND * bands.len() as f64 + if bands.is_empty() { 0.0 } else { 8.0 };
        let height = top + LANE * self.lanes.len() as f64 + 4.0;
        let mut out = String::new();
        let what = format!("Timeline of {} lanes; the table below says the same in words", self.lanes.len());
        // Writing to a String cannot fail.
        let _ = write!(
            out,
            r#"<svg class="tl" viewBox="0 0 {} {height:.0}" role="img" aria-label="{}" xmlns="http://www.w3.org/2000/svg">"#,
            RIGHT + 12.0,
            escape(&what)
        );
        self.grid(&mut out, height);
        for (row, band) in bands.iter().enumerate() {
            self.band(&mut out, 20.0 + BAND * row as f64, band);
        }
        for (row, lane) in self.lanes.iter().enumerate() {
            self.lane(&mut out, top + LANE * row as f64, lane, height);
        }
        self.arrows(&mut out, top);
        out.push_str("</svg>");
        out
    }

    fn x(&self, at: Micros) -> f64 {
        LEFT + self.axis.x(at)
    }

    fn grid(&self, out: &mut String, height: f64) {
        for (x, label) in self.axis.ticks() {
            let x = LEFT + x;
            let anchor = if x > RIGHT - 40.0 { "end" } else { "start" };
            let _ = write!(
                out,
                r#"<line class="grid" x1="{x:.1}" x2="{x:.1}" y1="16" y2="{height:.0}"/><text class="tick" x="{x:.1}" y="11" text-anchor="{anchor}">{label}</text>"#
            );
        }
        for (x, length) in &self.axis.breaks {
            let x = LEFT + x;
            let _ = write!(
                out,
                r#"<rect class="break" x="{:.1}" y="14" width="20" height="{:.0}"><title>{} in which nothing happened, drawn short</title></rect>"#,
                x - 10.0,
                height - 14.0,
                millis(*length)
            );
        }
    }

    /// The state bands: one per tenant and key that has an answer to tell of it.
    fn bands(&self) -> Vec<(String, Vec<Block>)> {
        let shown: Vec<&Attempt> = self
            .lanes
            .iter()
            .filter_map(|lane| match lane.source {
                Source::Attempt(index) => self.history.attempts.get(index),
                _ => None,
            })
            .collect();
        let mut keys: Vec<(&str, &str)> =
            shown.iter().filter_map(|a| Some((a.tenant.as_str(), a.key.as_deref()?))).collect();
        keys.sort_unstable();
        keys.dedup();
        let tenants = keys.iter().any(|(tenant, _)| *tenant != keys[0].0);
        let mut bands = Vec::new();
        for (tenant, key) in keys.into_iter().take(6) {
            let of: Vec<_> =
                shown.iter().copied().filter(|a| a.tenant == tenant && a.key.as_deref() == Some(key)).collect();
            let name = if tenants { format!("{key} of {tenant}") } else { format!("key {key}") };
            let mut rows: Vec<Vec<Block>> = Vec::new();
            for stretch in stretches(&of) {
                let (from, to) = (self.x(stretch.from), stretch.to.map_or(RIGHT, |to| self.x(to)));
                let piece = (from, to, stretch.state, stretch.label);
                let free = |row: &Vec<Block>| row.iter().all(|other| other.1 <= from + 0.01);
                // What is executed again stands below what it contradicts.
                let first = usize::from(stretch.state == State::Again);
                while rows.len() <= first {
                    rows.push(Vec::new());
                }
                match rows.iter().skip(first).position(free) {
                    Some(index) => rows[first + index].push(piece),
                    None => rows.push(vec![piece]),
                }
            }
            for (index, row) in rows.into_iter().take(5).enumerate().filter(|(_, row)| !row.is_empty()) {
                bands.push((if index == 0 { name.clone() } else { String::new() }, row));
            }
        }
        bands
    }

    fn band(&self, out: &mut String, y: f64, (name, pieces): &(String, Vec<Block>)) {
        let _ = write!(out, r#"<text class="name" x="2" y="{:.0}">{}</text>"#, y + 15.0, text(name, 17));
        for (from, to, state, label) in pieces {
            let class = match state {
                State::InFlight => "inflight",
                State::Completed => "completed",
                State::Again => "again",
            };
            let room = ((to - from) / 7.2) as usize;
            let inside = room >= 12;
            // A label that does not fit inside stands at the side that has more room.
            let (x, anchor) = match (inside, *to < (LEFT + RIGHT) / 2.0) {
                (true, _) => (from + 6.0, "start"),
                (false, true) => (to + 5.0, "start"),
                (false, false) => (from - 5.0, "end"),
            };
            let most = if inside { room - 1 } else { 52 };
            let _ = write!(
                out,
                r#"<rect class="st {class}" x="{from:.1}" y="{y:.0}" width="{:.1}" height="20" rx="3"><title>{}</title></rect>"#,
                (to - from).max(2.0),
                escape(label)
            );
            // Between two stretches of one row there is no room for a label outside.
            if inside || pieces.len() == 1 {
                let _ = write!(
                    out,
                    r#"<text class="stt" x="{x:.1}" y="{:.0}" text-anchor="{anchor}">{}</text>"#,
                    y + 14.0,
                    text(label, most)
                );
            }
        }
    }

    fn lane(&self, out: &mut String, y: f64, lane: &Lane, height: f64) {
        let (from, to) = (self.x(lane.from), self.x(lane.to));
        let class = match lane.source {
            Source::Probe(_) => "probe",
            Source::Control(_) => "clock",
            Source::Attempt(index) => self.history.attempts.get(index).map_or("lost", outcome),
            Source::Several => "lost",
        };
        if matches!(lane.source, Source::Control(_)) {
            let _ = write!(
                out,
                r#"<rect class="window" x="{from:.1}" y="16" width="{:.1}" height="{:.0}"/>"#,
                (to - from).max(1.0),
                height - 16.0
            );
        }
        let bold = if lane.deciding { "name deciding" } else { "name" };
        let sign = if lane.deciding { "▸ " } else { "" };
        let label: Vec<_> = lane.label.iter().map(|(_, text)| text.as_str()).collect();
        let label = label.join(" · ");
        let wrong = if label.contains("<--") { " wrong" } else { "" };
        let _ = write!(
            out,
            r#"<g><text class="{bold}" x="2" y="{:.0}">{sign}{}</text><text class="label{wrong}" x="{LEFT}" y="{:.0}">{}</text>"#,
            y + 24.0,
            text(&lane.name, 15),
            y + 13.0,
            text(&label, MOST_LABEL)
        );
        let _ = write!(
            out,
            r#"<rect class="bar {class}" x="{from:.1}" y="{:.0}" width="{:.1}" height="11" rx="2"><title>{}: {} to {}; {}</title></rect>"#,
            y + 18.0,
            (to - from).max(2.5),
            escape(&lane.name),
            millis(lane.from.saturating_sub(self.first())),
            millis(lane.to.saturating_sub(self.first())),
            escape(&fit(&label, 300, true))
        );
        if let Source::Attempt(index) = lane.source
            && let Some(attempt) = self.history.attempts.get(index)
        {
            self.marks(out, y, attempt);
        }
        if lane.mark != Mark::Answered {
            // What became of it is not known, so it may still be under way.
            let _ = write!(
                out,
                r#"<rect class="fade" x="{to:.1}" y="{:.0}" width="{:.1}" height="11" fill="url(#fade)"/><text class="cut" x="{to:.1}" y="{:.0}">{}</text>"#,
                y + 18.0,
                (RIGHT - to).max(0.0),
                y + 28.0,
                if lane.mark == Mark::Cut { "✕" } else { "▷" }
            );
        }
        out.push_str("</g>");
    }

    /// The inner marks of an attempt: its last byte out and its first byte in.
    fn marks(&self, out: &mut String, y: f64, attempt: &Attempt) {
        let marks =
            [("last byte sent", attempt.timing.last_out), ("first byte of the answer", attempt.timing.first_in)];
        for (what, at) in marks.into_iter().filter_map(|(what, at)| Some((what, at?))) {
            let x = self.x(at);
            let _ = write!(
                out,
                r#"<line class="mark" x1="{x:.1}" x2="{x:.1}" y1="{:.0}" y2="{:.0}"><title>{what}: {}</title></line>"#,
                y + 16.0,
                y + 31.0,
                millis(at.saturating_sub(self.first()))
            );
        }
    }

    /// An arrow from the end of an attempt to the beginning of the one that sends it again.
    fn arrows(&self, out: &mut String, top: f64) {
        let attempts: Vec<(usize, &Attempt)> = self
            .lanes
            .iter()
            .enumerate()
            .filter_map(|(row, lane)| match lane.source {
                Source::Attempt(index) => Some((row, self.history.attempts.get(index)?)),
                _ => None,
            })
            .collect();
        for (position, (row, attempt)) in attempts.iter().enumerate() {
            let Some(first) = &attempt.resend_of else { continue };
            let earlier = attempts[..position]
                .iter()
                .rev()
                .find(|(_, other)| other.name == *first || other.resend_of.as_ref() == Some(first));
            let Some((from_row, other)) = earlier else { continue };
            let x = self.x(other.timing.ended);
            let to = self.x(attempt.timing.first_out.unwrap_or(attempt.timing.opened));
            let (y1, y2) = (top + LANE * *from_row as f64 + 29.0, top + LANE * *row as f64 + 23.0);
            let _ = write!(
                out,
                r#"<path class="arrow" d="M{x:.1} {y1:.0}V{y2:.0}H{to:.1}"/><path class="head" d="M{to:.1} {y2:.0}l-5 -3v6z"/>"#
            );
        }
    }

    fn first(&self) -> Micros {
        self.lanes.iter().map(|lane| lane.from).min().unwrap_or_default()
    }
}

/// The class of an attempt's outcome.
fn outcome(attempt: &Attempt) -> &'static str {
    match (&attempt.end, attempt.response.as_ref().map(|response| response.status)) {
        (End::Answered, Some(200..300)) => "ok",
        (End::Answered, Some(500..)) => "bad",
        (End::Answered, _) => "refused",
        (End::Unreadable(_), _) => "bad",
        _ => "lost",
    }
}

/// The release of a burst in microseconds: when the last byte of each attempt went out. `None` without a burst.
pub(super) fn release(history: &History) -> Option<Picture> {
    let mut bursts: Vec<&str> = history.attempts.iter().filter_map(|attempt| attempt.burst.as_deref()).collect();
    bursts.dedup();
    let burst = *bursts.first()?;
    let mut sent: Vec<_> =
        history.burst(burst).filter_map(|a| Some((a.name.as_str(), a.timing.last_out?, a.timing.first_in))).collect();
    sent.sort_by_key(|(_, at, _)| *at);
    let left_out = sent.len().saturating_sub(MOST_LANES);
    sent.truncate(MOST_LANES);
    let (first, last) = (sent.first()?.1, sent.last()?.1);
    let scale = |at: Micros| LEFT + (RIGHT - LEFT - 80.0) * ((at - first) as f64) / ((last - first) as f64).max(1.0);
    let row = if sent.len() > 12 { 14.0 } else { 20.0 };
    let height = 10.0 + row * sent.len() as f64;
    let mut out = String::new();
    let _ = write!(
        out,
        r#"<svg class="tl" viewBox="0 0 {} {height:.0}" role="img" aria-label="The {} attempts of {} were released within {} µs" xmlns="http://www.w3.org/2000/svg">"#,
        RIGHT + 12.0,
        sent.len(),
        escape(burst),
        last - first
    );
    for (index, (name, at, _)) in sent.iter().enumerate() {
        let (x, y) = (scale(*at), 8.0 + row * index as f64);
        let _ = write!(
            out,
            r#"<text class="name" x="2" y="{:.0}">{}</text><line class="grid" x1="{LEFT}" x2="{x:.1}" y1="{:.0}" y2="{:.0}"/><circle class="dot" cx="{x:.1}" cy="{:.0}" r="4"/><text class="tick" x="{:.1}" y="{:.0}">+{} µs</text>"#,
            y + 8.0,
            text(name, 17),
            y + 4.0,
            y + 4.0,
            y + 4.0,
            x + 8.0,
            y + 8.0,
            at - first
        );
    }
    out.push_str("</svg>");
    Some(Picture { svg: out, lanes: sent.len(), left_out })
}

/// Text for an SVG, at most so many columns.
fn text(text: &str, most: usize) -> String {
    escape(&fit(&clean(text, true), most, true))
}

/// Text for HTML and SVG, inside elements and attributes alike.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            _ => out.push(c),
        }
    }
    out
}
