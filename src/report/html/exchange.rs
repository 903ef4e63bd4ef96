//! What was sent and what came back, with what differs from the first success marked.

use serde::Serialize;
use serde_json::Value;

use crate::{
    history::{Attempt, End, Response},
    report::terminal::{clean, fit},
};

/// The exchanges written out for one case.
const MOST: usize = 12;

/// The lines shown of one body.
const MOST_LINES: usize = 60;

/// The columns shown of one line.
const MOST_COLUMNS: usize = 400;

/// Attempts that sent and got the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Exchange {
    /// Their names.
    names: Vec<String>,
    /// Request line and payload.
    request: Vec<Piece>,
    /// The key header field's value, and the tenant.
    key: String,
    tenant: String,
    /// How it ended, if not with an answer.
    end: Option<String>,
    /// The status, the fields and the body.
    answer: Vec<Piece>,
    /// Which attempt's answer the marks compare with.
    compared_with: Option<String>,
}

/// A line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Piece {
    text: String,
    /// Whether the compared one has no such line.
    differs: bool,
}

/// The exchanges of these attempts, equal ones together, and how many are left out.
pub(super) fn exchanges(attempts: &[&Attempt]) -> (Vec<Exchange>, usize) {
    let first = attempts.iter().filter(|a| success(a).is_some()).min_by_key(|a| a.timing.ended);
    let compared: Option<(&str, Vec<String>)> =
        first.and_then(|attempt| Some((attempt.name.as_str(), answer(success(attempt)?))));
    let payload = attempts.first().map(|attempt| request(attempt)).unwrap_or_default();
    let mut found: Vec<Exchange> = Vec::new();
    let mut left_out = 0;
    for attempt in attempts {
        let mut exchange = exchange(attempt, &payload);
        if let (Some((name, lines)), Some(_)) = (&compared, success(attempt))
            && *name != attempt.name
        {
            // The line of the date says nothing of the work.
            for piece in exchange.answer.iter_mut().filter(|piece| !piece.text.starts_with("date: ")) {
                piece.differs = !lines.contains(&piece.text);
            }
            exchange.compared_with = Some((*name).to_owned());
        }
        let same = |other: &Exchange| Exchange { names: Vec::new(), ..other.clone() } == exchange;
        let room = found.len() < MOST;
        match found.iter_mut().find(|other| same(other)) {
            Some(other) => other.names.push(attempt.name.clone()),
            None if room => found.push(Exchange { names: vec![attempt.name.clone()], ..exchange }),
            None => left_out += 1,
        }
    }
    (found, left_out)
}

fn success(attempt: &Attempt) -> Option<&Response> {
    attempt.response.as_ref().filter(|response| (200..300).contains(&response.status))
}

fn exchange(attempt: &Attempt, first: &[String]) -> Exchange {
    let end = match &attempt.end {
        End::Answered => None,
        End::NotSent(said) => Some(format!("not sent: {said}")),
        End::Lost(cut) => Some(format!(
            "connection {}: {}; {} bytes went out, {} came back",
            if cut.reset { "reset" } else { "closed" },
            cut.said,
            attempt.bytes_out,
            attempt.bytes_in
        )),
        End::TimedOut => Some("no whole answer in time".to_owned()),
        End::Unreadable(said) => Some(format!("unreadable answer: {said}")),
    };
    let plain = |text: String, differs| Piece { text, differs };
    Exchange {
        names: Vec::new(),
        request: request(attempt).into_iter().map(|line| plain(line.clone(), !first.contains(&line))).collect(),
        key: attempt.key_field.clone().unwrap_or_else(|| "none".to_owned()),
        tenant: attempt.tenant.clone(),
        end,
        answer: attempt.response.as_ref().map_or_else(Vec::new, answer).into_iter().map(|l| plain(l, false)).collect(),
        compared_with: None,
    }
}

fn request(attempt: &Attempt) -> Vec<String> {
    let line = attempt.request.lines().next().unwrap_or_default();
    let mut lines = vec![shown(line)];
    lines.extend(body(&attempt.payload));
    lines
}

fn answer(response: &Response) -> Vec<String> {
    let mut lines = vec![response.status.to_string()];
    lines.extend(response.fields.iter().map(|field| shown(&format!("{}: {}", field.name, field.value))));
    lines.push(String::new());
    lines.extend(body(&response.body.text));
    if !response.body.complete {
        lines.push(format!("[cut after {} bytes]", response.body.length));
    } else if response.body.text.len() as u64 != response.body.length && response.body.length > 8_192 {
        lines.push(format!("[{} bytes in all]", response.body.length));
    }
    lines
}

/// A body as lines: JSON with a line per member, anything else as it came.
fn body(text: &str) -> Vec<String> {
    let pretty = serde_json::from_str::<Value>(text)
        .ok()
        .filter(|value| value.is_object() || value.is_array())
        .and_then(|value| serde_json::to_string_pretty(&value).ok());
    let text = pretty.as_deref().unwrap_or(text);
    let all = text.lines().count();
    // A comma at the end belongs to the place of a member, not to what it says.
    let mut lines: Vec<_> =
        text.lines().take(MOST_LINES).map(|line| shown(line.strip_suffix(',').unwrap_or(line))).collect();
    if all > MOST_LINES {
        lines.push(format!("[{} more lines]", all - MOST_LINES));
    }
    lines
}

fn shown(line: &str) -> String {
    let start = line.len() - line.trim_start_matches(' ').len();
    format!("{}{}", &line[..start], fit(&clean(&line[start..], true), MOST_COLUMNS, true))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use crate::report::fixture::attempt;

    #[test]
    fn the_second_success_has_what_differs_marked() {
        let attempts = [
            attempt("a", 0, 10, 201, "pay_1"),
            attempt("b", 0, 12, 201, "pay_2"),
            attempt("c", 0, 14, 409, ""),
            attempt("d", 0, 15, 409, ""),
        ];
        let (exchanges, left_out) = exchanges(&attempts.iter().collect::<Vec<_>>());
        assert_eq!((exchanges.len(), left_out), (3, 0));
        let marked: Vec<_> = exchanges[1].answer.iter().filter(|p| p.differs).map(|p| p.text.trim()).collect();
        assert_eq!(marked, ["\"id\": \"pay_2\""]);
        assert_eq!(exchanges[1].compared_with.as_deref(), Some("a"));
        assert_eq!(exchanges[2].names, ["c", "d"]);
        assert!(exchanges[0].answer.iter().chain(&exchanges[2].answer).all(|p| !p.differs));
    }
}
