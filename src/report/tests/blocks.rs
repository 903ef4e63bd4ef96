//! Every block that a person reads, as it is.

use indicatif::{ProgressDrawTarget, TermLike};

use super::{super::render_case, *};
use crate::{
    history::{Body, End},
    judge::{CaseResult, Verdict},
    report::{Event, Options, Reports, Summary, Terminal, Verbosity},
    text::Redactor,
};

fn block(case: &CaseResult, width: usize, unicode: bool) -> String {
    render_case(case, &style(width, unicode), &origin())
}

#[test]
fn race_of_2() {
    insta::assert_snapshot!("race_2_80_unicode", block(&fixture::race(2), 80, true));
    insta::assert_snapshot!("race_2_120_ascii", block(&fixture::race(2), 120, false));
}

#[test]
fn race_of_8() {
    insta::assert_snapshot!("race_8_80_ascii", block(&fixture::race(8), 80, false));
    insta::assert_snapshot!("race_8_120_unicode", block(&fixture::race(8), 120, true));
}

#[test]
fn race_of_32_is_folded() {
    insta::assert_snapshot!("race_32_80_unicode", block(&fixture::race(32), 80, true));
    insta::assert_snapshot!("race_32_80_ascii", block(&fixture::race(32), 80, false));
    insta::assert_snapshot!("race_32_120_unicode", block(&fixture::race(32), 120, true));
}

#[test]
fn a_race_that_everybody_wins_is_folded_too() {
    let mut case = fixture::race(32);
    let history = case.history.as_mut().unwrap();
    for (index, attempt) in history.attempts.iter_mut().enumerate() {
        *attempt = fixture::attempt(&attempt.name, attempt.timing.opened, 300_000, 201, &format!("ch_{index}"));
    }
    insta::assert_snapshot!("race_32_all_executed_100", block(&case, 100, true));
}

#[test]
fn lost_response() {
    insta::assert_snapshot!("lost_80_unicode", block(&fixture::lost_response(), 80, true));
    insta::assert_snapshot!("lost_120_ascii", block(&fixture::lost_response(), 120, false));
}

#[test]
fn takeover_after_a_lease() {
    insta::assert_snapshot!("takeover_80_ascii", block(&fixture::takeover(), 80, false));
    insta::assert_snapshot!("takeover_120_unicode", block(&fixture::takeover(), 120, true));
}

#[test]
fn inconclusive_and_skipped() {
    insta::assert_snapshot!("inconclusive_80_unicode", block(&fixture::inconclusive(), 80, true));
    insta::assert_snapshot!("skipped_80_unicode", block(&fixture::skipped(), 80, true));
    insta::assert_snapshot!("passed_80_unicode", block(&fixture::passed(), 80, true));
}

#[test]
fn what_a_server_sends_cannot_write_on_the_terminal() {
    let mut case = fixture::lost_response();
    let history = case.history.as_mut().unwrap();
    let response = history.attempts[1].response.as_mut().unwrap();
    let text = "\u{1b}]0;owned\u{7}\u{1b}[2J支付成功 \u{202e}desrever\r\nnext".repeat(20);
    response.body = Body { length: text.len() as u64, sha256: "x".into(), text, complete: false };
    response.identity = Some("\"\u{9b}31m\"".into());
    history.attempts[0].end = End::Unreadable("\u{1b}[31mHTTP/9".into());
    let shown = block(&case, 80, true);
    assert!(shown.chars().all(|c| c == '\n' || !c.is_control()), "{shown}");
    insta::assert_snapshot!("hostile_80_unicode", shown);
}

#[test]
fn colours_change_nothing_but_colours() {
    for case in [fixture::race(8), fixture::takeover(), fixture::inconclusive(), fixture::skipped()] {
        let plain = block(&case, 80, true);
        let colored = render_case(&case, &Style { color: true, ..style(80, true) }, &origin());
        let stripped = String::from_utf8(strip(colored.as_bytes())).unwrap();
        // A coloured line may keep blanks inside its last colour.
        let trimmed = |text: &str| text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n");
        assert_eq!(trimmed(&stripped), trimmed(&plain));
        assert!(colored.contains("\u{1b}["));
    }
}

/// Takes `ESC [ ... m` out.
fn strip(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut inside = false;
    for byte in bytes {
        match byte {
            0x1b => inside = true,
            b'm' if inside => inside = false,
            _ if inside => {}
            _ => out.push(*byte),
        }
    }
    out
}

#[test]
fn a_run_as_plain_lines() {
    insta::assert_snapshot!("run_80_unicode", whole_run(80, true, Verbosity::Normal));
    let quiet = whole_run(100, false, Verbosity::Quiet);
    assert!(quiet.is_ascii() && !quiet.contains("PASS") && !quiet.contains("SKIP  "));
}

fn whole_run(width: usize, unicode: bool, verbosity: Verbosity) -> String {
    let screen = Screen::default();
    let terminal = Terminal::new(Box::new(screen.clone()), style(width, unicode), verbosity, Redactor::new(), None);
    let mut reports = Reports::create(Options::default(), Redactor::new(), terminal).unwrap();
    let cases = [
        fixture::passed(),
        fixture::race(2),
        fixture::inconclusive(),
        fixture::skipped(),
        fixture::passed(),
        fixture::lost_response(),
    ];
    reports.handle(Event::Started(fixture::run())).unwrap();
    for case in cases {
        reports.handle(Event::CaseStarted(case.id.clone())).unwrap();
        reports.handle(Event::CaseFinished(Box::new(case))).unwrap();
    }
    let summary = Summary::of(reports.results(), false, 12_345);
    reports.handle(Event::Finished(summary)).unwrap();
    screen.text()
}

#[test]
fn progress_goes_on_beside_the_blocks() {
    let screen = Screen::default();
    let drawn = Drawn::default();
    // Without a limit on frames per second, so that what is drawn does not depend on time.
    let target = ProgressDrawTarget::term_like_with_hz(Box::new(drawn.clone()), 255);
    let mut terminal =
        Terminal::new(Box::new(screen.clone()), style(80, true), Verbosity::Normal, Redactor::new(), Some(target));
    terminal.started(&fixture::run()).unwrap();
    terminal.case_finished(&fixture::passed(), &origin()).unwrap();
    terminal.case_started(&fixture::takeover().id);
    terminal.case_started(&fixture::lost_response().id);
    // A block is written between two drawings of the bar, so the bar is drawn after it.
    terminal.case_finished(&fixture::race(2), &origin()).unwrap();
    assert!(!screen.text().contains("PASS") && screen.text().contains("FAIL"));
    let bar = drawn.0.text();
    let last = bar.rsplit('━').next().unwrap();
    assert!(last.contains("2/5  1 failed  connection-drops/response-lost"), "{last}");
    terminal.finished(&[fixture::passed()], &Summary::of(&[fixture::passed()], false, 5), &[]).unwrap();
    assert!(screen.text().ends_with("1 passed in 5 ms\n"));
}

/// What a progress bar draws.
#[derive(Clone, Default)]
struct Drawn(Screen);

impl std::fmt::Debug for Drawn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Drawn")
    }
}

impl TermLike for Drawn {
    fn width(&self) -> u16 {
        80
    }
    fn move_cursor_up(&self, _: usize) -> io::Result<()> {
        Ok(())
    }
    fn move_cursor_down(&self, _: usize) -> io::Result<()> {
        Ok(())
    }
    fn move_cursor_right(&self, _: usize) -> io::Result<()> {
        Ok(())
    }
    fn move_cursor_left(&self, _: usize) -> io::Result<()> {
        Ok(())
    }
    fn write_line(&self, text: &str) -> io::Result<()> {
        self.write_str(text)
    }
    fn write_str(&self, text: &str) -> io::Result<()> {
        self.0.clone().write_all(text.as_bytes())
    }
    fn clear_line(&self) -> io::Result<()> {
        Ok(())
    }
    fn flush(&self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn nothing_run_is_not_shown_as_well() {
    let screen = Screen::default();
    let mut terminal =
        Terminal::new(Box::new(screen.clone()), style(80, true), Verbosity::Normal, Redactor::new(), None);
    terminal.finished(&[], &Summary::of(&[], true, 5), &[]).unwrap();
    assert!(screen.text().contains("no case was run in 5 ms, interrupted"), "{}", screen.text());
    let verdicts = [Verdict::Passed, Verdict::Skipped, Verdict::Inconclusive, Verdict::Failed];
    for verdict in verdicts {
        assert!(!block(&fixture::case("s", "c", verdict), 40, false).is_empty());
    }
}
