//! `reports/report.html` in a real browser: headless Chromium, driven through ChromeDriver.
//!
//! Leaves screenshots of both themes at three widths in the build's temporary folder.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod browser;
mod common;

use std::{fs, path::Path, process::Command};

use browser::Browser;
use common::external_trial;
use idemproof::{
    judge::{CaseResult, Verdict},
    report::{Document, Event, Options, Reports, Style, Summary, Terminal, Verbosity},
    text::Redactor,
};
use libtest_mimic::{Arguments, Trial, run};
use serde_json::json;

const ATTACK: &str =
    "</script></details><img src=x onerror=\"window.attacked=1\"><script>window.attacked=1</script><!--<script>";

/// Results of a real run against a server that is wrong.
fn real() -> Document {
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_idemproof"))
        .args([
            "run",
            "--fault",
            "check-then-act-race",
            "--no-progress",
            "concurrency",
            "fingerprint",
            "connection-drops",
        ])
        .current_dir(folder.path())
        .env("CI", "true")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_str(&fs::read_to_string(folder.path().join("reports/report.json")).unwrap()).unwrap()
}

/// The page of these results.
fn page(document: &Document, cases: &[CaseResult], path: &Path) {
    let sources = idemproof::suite::builtin_files().into_iter().map(|(name, text)| (name, text.to_owned())).collect();
    let options = Options { html: Some(path.to_owned()), sources, ..Options::default() };
    let style = Style { color: false, unicode: true, width: 100 };
    let redactor = Redactor::new();
    let terminal = Terminal::new(Box::new(std::io::sink()), style, Verbosity::Quiet, redactor.clone(), None);
    let mut reports = Reports::create(options, redactor, terminal).unwrap();
    let mut info = document.run.clone();
    info.cases = cases.len();
    reports.handle(Event::Started(info)).unwrap();
    for case in cases {
        reports.handle(Event::CaseFinished(Box::new(case.clone()))).unwrap();
    }
    reports.handle(Event::Finished(Summary::of(cases, false, document.summary.millis))).unwrap();
}

/// So many cases made of real ones, under names of their own.
fn many(document: &Document, count: usize) -> Vec<CaseResult> {
    (0..count)
        .map(|index| {
            let mut case = document.cases[index % document.cases.len()].clone();
            case.id.case = format!("{}-{index}", case.id.case);
            case
        })
        .collect()
}

fn main() {
    let arguments = Arguments::from_args();
    let trials: Vec<Trial> = vec![
        external_trial("a real report can be read, searched and operated by keyboard", browser::start, |browser| {
            reading(browser);
            Ok(())
        }),
        external_trial("two thousand cases stay quick", browser::start, |browser| {
            speed(browser);
            Ok(())
        }),
        external_trial("both themes at three widths", browser::start, |browser| {
            looks(browser);
            Ok(())
        }),
    ];
    run(&arguments, trials).exit();
}

fn reading(browser: &Browser) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("report.html");
    let mut document = real();
    // What a hostile server sends back must stay text, in a case that is written out and in one that is not.
    let mut cases = many(&document, 200);
    for case in cases.iter_mut().filter(|case| case.verdict == Verdict::Failed) {
        case.title = format!("{} {ATTACK}", case.title);
        case.findings.iter_mut().for_each(|finding| finding.message.push_str(ATTACK));
        for attempt in case.history.iter_mut().flat_map(|history| &mut history.attempts) {
            if let Some(response) = &mut attempt.response {
                response.body.text = ATTACK.to_owned();
            }
        }
    }
    document.run.target = ATTACK.to_owned();
    page(&document, &cases, &path);
    browser.size(1280, 900);
    browser.open(&path);
    let failed = cases.iter().filter(|case| case.verdict == Verdict::Failed).count();
    assert_eq!(browser.number("document.querySelectorAll('#list > details').length"), 200);
    assert!(browser.text("document.querySelector('h1').textContent").starts_with(&format!("{failed} of 200")));
    assert_eq!(browser.number("performance.getEntriesByType('resource').length"), 0, "nothing is loaded");

    // `n` opens failed cases one after the other, also those that are filled in late.
    for _ in 0..45 {
        browser.keys("n");
    }
    assert_eq!(
        browser.number("document.querySelectorAll('#list > details[open] > .body').length"),
        45.min(failed as u64)
    );
    assert!(browser.truth("document.activeElement.closest('.case').id === 'case-44'"));
    assert!(browser.truth("!!document.querySelector('#case-44 svg.tl')"));
    assert!(browser.truth("document.querySelector('#case-44 pre').textContent.includes('/payments')"));
    assert!(browser.truth("document.querySelector('#case-44').textContent.includes('- case: ')"), "the case as YAML");
    assert!(browser.truth("document.querySelector('#case-44').textContent.includes('idemproof run --fault')"));
    assert!(browser.truth("document.querySelector('#case-44').textContent.includes('</script><!--<script>') || document.querySelector('#case-44').textContent.includes('window.attacked')"));
    assert_eq!(browser.number("window.attacked || 0"), 0, "text became script");
    assert_eq!(browser.number("document.querySelectorAll('img').length"), 0);

    // Enter on a case's line closes and opens it; `/` goes to the search.
    browser.keys("\u{e007}");
    assert!(browser.truth("!document.querySelector('#case-44').open"));
    browser.keys("\u{e007}");
    assert!(browser.truth("document.querySelector('#case-44').open"));
    browser.keys("/");
    assert!(browser.truth("document.activeElement.id === 'search'"));
    browser.keys("fingerprint");
    let wanted = cases.iter().filter(|case| case.id.suite == "fingerprint").count() as u64;
    assert_eq!(browser.number("document.querySelectorAll('#list > details:not([hidden])').length"), wanted);
    browser.keys("\u{e00c}");
    assert_eq!(browser.number("document.querySelectorAll('#list > details:not([hidden])').length"), 200);

    // Every control can be reached by the Tab key alone, and has a name.
    let nameless = "[...document.querySelectorAll('input,a,[role=region],[role=img]')].filter(e => \
                    !(e.textContent.trim() || e.getAttribute('aria-label') || e.closest('label'))).length";
    assert_eq!(browser.number(nameless), 0);
    browser.run("document.activeElement.blur(); scrollTo(0, 0)");
    browser.keys("\u{e004}");
    assert!(browser.truth("document.activeElement.classList.contains('skip') || document.activeElement.closest('a,summary,input,[tabindex]') !== null"));

    // A link to a case opens it.
    browser.run("location.hash = '#case-150'");
    assert!(
        browser.eventually("document.querySelector('#case-150').open && !!document.querySelector('#case-150 > .body')")
    );
    assert_eq!(browser.errors(), Vec::<String>::new());
}

fn speed(browser: &Browser) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("report.html");
    let document = real();
    page(&document, &many(&document, 2_000), &path);
    browser.size(1280, 900);
    browser.open(&path);
    let load = browser.number("Math.round(performance.getEntriesByType('navigation')[0].loadEventEnd)");
    let timed = |what: &str| {
        browser.number(&format!(
            "(() => {{ const t = performance.now(); {what}; document.body.offsetHeight; return Math.round(performance.now() - t); }})()"
        ))
    };
    let search = "const s = document.getElementById('search'); s.value = 'fast-duplicates-1'; \
                  s.dispatchEvent(new Event('input', { bubbles: true }))";
    let filter = timed(search);
    assert!(browser.number("document.querySelectorAll('#list > details:not([hidden])').length") < 500);
    let open = timed("document.querySelector('#case-1500').hidden = false; location.hash = '#case-1500'");
    let size = fs::metadata(&path).unwrap().len() / 1024;
    eprintln!("2,000 cases, {size} KiB: loaded in {load} ms, filtered in {filter} ms, a case opened in {open} ms");
    // Ten times what a loaded machine was seen to take.
    assert!(load < 15_000 && filter < 2_000 && open < 2_000);
    assert!(browser.eventually("!!document.querySelector('#case-1500 > .body')"));
}

/// The smallest contrast of visible texts with what is behind them.
const CONTRAST: &str = "(() => {
  const parse = (c) => c.match(/[\\d.]+/g).map(Number);
  const light = (c) => { const [r, g, b] = c.slice(0, 3).map((v) => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const behind = (e) => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor); if (c.length < 4 || c[3] > 0.99) return c; } return [255, 255, 255]; };
  let worst = 99;
  for (const e of document.querySelectorAll('p, h1, h2, h3, h4, td, th, dt, dd, li, pre, mark, .badge, .why, .took, .casename, a, code, label')) {
    if (!e.offsetParent || !e.textContent.trim()) continue;
    const [a, b] = [light(parse(getComputedStyle(e).color)), light(behind(e))];
    worst = Math.min(worst, (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05));
  }
  return Math.round(worst * 100);
})()";

fn looks(browser: &Browser) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("report.html");
    let document = real();
    page(&document, &document.cases, &path);
    let shots = Path::new(env!("CARGO_TARGET_TMPDIR")).join("report-html");
    fs::create_dir_all(&shots).unwrap();
    for theme in ["light", "dark"] {
        browser.cdp(
            "Emulation.setEmulatedMedia",
            &json!({"features": [{"name": "prefers-color-scheme", "value": theme}]}),
        );
        for width in [360, 768, 1280] {
            browser.size(width, 1400);
            browser.open(&path);
            assert!(browser.truth(&format!("matchMedia('(prefers-color-scheme: {theme})').matches")));
            let sideways =
                browser.number("document.documentElement.scrollWidth - document.documentElement.clientWidth");
            assert_eq!(sideways, 0, "the page scrolls sideways at {width}");
            fs::write(shots.join(format!("{theme}-{width}-top.png")), browser.screenshot()).unwrap();
            browser.run("location.hash = '#case-0'");
            assert!(browser.eventually("document.querySelector('#case-0').open"));
            let sideways =
                browser.number("document.documentElement.scrollWidth - document.documentElement.clientWidth");
            assert_eq!(sideways, 0, "an open case scrolls sideways at {width}");
            fs::write(shots.join(format!("{theme}-{width}-case.png")), browser.screenshot()).unwrap();
            browser.run("scrollBy(0, 1300)");
            fs::write(shots.join(format!("{theme}-{width}-more.png")), browser.screenshot()).unwrap();
            let contrast = browser.number(CONTRAST);
            assert!(contrast >= 450, "{theme} at {width}: a text has a contrast of {contrast} %");
        }
    }
    eprintln!("screenshots: {}", shots.display());
}
