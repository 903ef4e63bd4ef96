//! The timeline of a case: one lane per attempt, count and movement of time, on one axis.

use std::collections::BTreeMap;

use super::{
    lane::{Group, Lane, Mark, Source, lanes},
    scale::Scale,
    style::{Line, Paint, Style, render},
    text::{count, millis, pad, width, wrap},
};
use crate::history::{History, Micros};

/// More attempts than this are grouped.
const MOST_LANES: usize = 8;

/// More counts and movements of time than this are left out.
const MOST_OTHERS: usize = 8;

/// The lines that a label may take.
const MOST_LABEL_LINES: usize = 6;

const INDENT: usize = 6;

/// The timeline as text.
pub(crate) fn timeline_text(history: &History, deciding: &[String], style: &Style) -> String {
    render(&timeline(history, deciding, style), style)
}

/// The timeline as lines, without a ruler if there is nothing to show.
pub(super) fn timeline(history: &History, deciding: &[String], style: &Style) -> Vec<Line> {
    let all = lanes(history, deciding, style);
    if all.is_empty() {
        return Vec::new();
    }
    let scale_of = |width| Scale::new(all.iter().flat_map(|lane| [lane.from, lane.to]).collect(), width);
    let origin = all.iter().map(|lane| lane.from).min().unwrap_or_default();
    let shown = fold(all.clone(), origin);
    let room = style.columns() - INDENT;
    let names = shown.iter().map(|lane| width(&lane.name) + 2).max().unwrap_or(0).clamp(11, (room / 4).max(11));
    let widest = shown.iter().map(|lane| label_width(&lane.label)).max().unwrap_or(0);
    let labels = widest.min((room - names) / 2);
    let axis = (room - names - labels - 3).min(64);
    let scale = scale_of(axis);
    let marks = if style.unicode { ['╱', '╱'] } else { ['/', '/'] };
    let ruler = pad("", INDENT) + &pad("time (ms)", names) + " " + &scale.ruler(marks);
    let mut lines = vec![Line::of(Paint::Dim, ruler)];
    for lane in &shown {
        lines.extend(draw(lane, &scale, names, axis, room - names - axis - 3, style));
    }
    lines
}

fn draw(lane: &Lane, scale: &Scale, names: usize, axis: usize, labels: usize, style: &Style) -> Vec<Line> {
    let mut line = Line::of(Paint::Plain, pad("", INDENT));
    let (sign, paint) = if lane.deciding { ("> ", Paint::Bold) } else { ("  ", Paint::Plain) };
    line.push(paint, pad(&format!("{sign}{}", style.fit(&lane.name, names - 2)), names + 1));
    let bar_paint = lane.label.first().map_or(Paint::Plain, |(paint, _)| *paint);
    line.push(bar_paint, pad(&bar(lane, scale, style), axis));
    line.push(Paint::Plain, "  ");
    let mut rows = label_rows(&lane.label, labels, style).into_iter();
    for (paint, text) in rows.next().unwrap_or_default() {
        line.push(paint, text);
    }
    let mut lines = vec![line];
    for row in rows {
        let mut line = Line::of(Paint::Plain, pad("", INDENT + names + 1 + axis + 2));
        row.into_iter().for_each(|(paint, text)| line.push(paint, text));
        lines.push(line);
    }
    lines
}

fn bar(lane: &Lane, scale: &Scale, style: &Style) -> String {
    let (from, to) = (scale.column(lane.from), scale.column(lane.to));
    let glyphs =
        if style.unicode { ['├', '─', '╌', '┤', '╳', '▷'] } else { ['|', '=', '~', '|', 'x', '>'] };
    let end = match lane.mark {
        Mark::Answered => glyphs[3],
        Mark::Cut => glyphs[4],
        Mark::Open => glyphs[5],
    };
    let mut bar = pad("", from);
    if to > from {
        bar.push(glyphs[0]);
        bar.extend((from + 1..to).map(|column| glyphs[if scale.is_broken(column) { 2 } else { 1 }]));
    }
    // A bar of one column shows how it ended; in Unicode an answer needs both of its ends in one.
    bar.push(if to == from && lane.mark == Mark::Answered && style.unicode { '│' } else { end });
    bar
}

fn label_width(label: &[(Paint, String)]) -> usize {
    label.iter().map(|(_, text)| width(text)).sum::<usize>() + 2 * label.len().saturating_sub(1)
}

/// The pieces of a label in rows of at most `room` columns; a piece that fits is kept in one row.
fn label_rows(label: &[(Paint, String)], room: usize, style: &Style) -> Vec<Vec<(Paint, String)>> {
    let mut rows: Vec<Vec<(Paint, String)>> = vec![Vec::new()];
    let mut used = 0;
    for (paint, text) in label {
        let gap = if used == 0 { 0 } else { 2 };
        if let Some(row) = rows.last_mut().filter(|_| used + gap + width(text) <= room) {
            row.push((*paint, pad("", gap) + text));
            used += gap + width(text);
            continue;
        }
        for piece in wrap(text, room) {
            used = width(&piece);
            match rows.last_mut() {
                Some(row) if row.is_empty() => row.push((*paint, piece)),
                _ => rows.push(vec![(*paint, piece)]),
            }
        }
    }
    if rows.len() > MOST_LABEL_LINES {
        let next = rows[MOST_LABEL_LINES].first().map(|(_, text)| text.clone()).unwrap_or_default();
        rows.truncate(MOST_LABEL_LINES);
        if let Some([(_, text)]) = rows.last_mut().map(Vec::as_mut_slice) {
            // With what follows it is too long for its row, and so ends in an ellipsis.
            *text = style.fit(&format!("{text} {}", pad(&next, room)), room);
        }
    }
    rows
}

/// The lanes to show: with too many attempts, one of each group and a line that counts its others.
fn fold(lanes: Vec<Lane>, origin: Micros) -> Vec<Lane> {
    let (attempts, others): (Vec<_>, Vec<_>) = lanes.into_iter().partition(|lane| lane.group.is_some());
    let mut shown = if attempts.len() <= MOST_LANES {
        attempts
    } else {
        let exact = |lane: &Lane| lane.group.clone();
        let without_identity = |lane: &Lane| lane.group.clone().map(|group| Group { identity: None, ..group });
        let by_group = grouped(&attempts, exact, origin);
        if by_group.len() <= MOST_LANES * 2 {
            by_group
        } else {
            let coarse = grouped(&attempts, without_identity, origin);
            if coarse.len() <= MOST_LANES * 2 { coarse } else { cut(attempts, MOST_LANES, "attempt", origin) }
        }
    };
    shown.extend(cut(others, MOST_OTHERS, "count or movement of time", origin));
    shown.sort_by_key(|lane| lane.from);
    shown
}

/// The first lane of every group (preferably one that decides), and behind it the number of the others.
fn grouped(lanes: &[Lane], group_of: impl Fn(&Lane) -> Option<Group>, origin: Micros) -> Vec<Lane> {
    let mut groups: BTreeMap<Option<Group>, Vec<&Lane>> = BTreeMap::new();
    for lane in lanes {
        groups.entry(group_of(lane)).or_default().push(lane);
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by_key(|(_, members)| members.iter().map(|lane| lane.from).min());
    let mut shown = Vec::new();
    for (group, mut members) in groups {
        members.sort_by_key(|lane| !lane.deciding);
        let keep = if members.len() == 2 { 2 } else { 1 };
        shown.extend(members.iter().take(keep).map(|lane| (*lane).clone()));
        let rest = &members[keep.min(members.len())..];
        let Some(group) = group.filter(|_| !rest.is_empty()) else { continue };
        let mut text = format!("+ {} {}", count(rest.len(), "attempt"), group.end);
        let mut ids: Vec<_> = rest.iter().filter_map(|lane| lane.group.as_ref()?.identity.as_deref()).collect();
        ids.sort_unstable();
        ids.dedup();
        match ids[..] {
            [] => {}
            [id] => text += &format!(" id={}", id.trim_matches('"')),
            _ => text += &format!(" with {} ids", ids.len()),
        }
        shown.push(summary_lane(rest.iter().copied(), text, origin));
    }
    shown
}

fn cut(mut lanes: Vec<Lane>, most: usize, noun: &str, origin: Micros) -> Vec<Lane> {
    if lanes.len() <= most {
        return lanes;
    }
    lanes.sort_by_key(|lane| (!lane.deciding, lane.from));
    let rest = lanes.split_off(most - 1);
    let text = format!("+ {} more of {noun}", rest.len());
    lanes.push(summary_lane(rest.iter(), text, origin));
    lanes
}

/// One lane that stands for several: from the first beginning to the last end.
fn summary_lane<'a>(lanes: impl Iterator<Item = &'a Lane> + Clone, text: String, origin: Micros) -> Lane {
    let from = lanes.clone().map(|lane| lane.from).min().unwrap_or(origin);
    let first = lanes.clone().map(|lane| lane.to).min().unwrap_or(from);
    let to = lanes.clone().map(|lane| lane.to).max().unwrap_or(from);
    let when = if first == to {
        format!("(at {})", millis(to - origin))
    } else {
        format!("({} to {})", millis(first.saturating_sub(origin)), millis(to - origin))
    };
    Lane {
        name: String::new(),
        from,
        to,
        mark: lanes.clone().map(|lane| lane.mark).next().unwrap_or(Mark::Open),
        label: vec![(Paint::Bold, text), (Paint::Dim, when)],
        group: None,
        deciding: false,
        source: Source::Several,
    }
}
