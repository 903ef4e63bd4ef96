//! What the terminal can show, and the errors that are said on it.

use std::io::{IsTerminal, Write as _};

use super::{Exit, args::Color};
use crate::{
    report::Style,
    run::{SelectError, StageError},
};

/// The width that text is laid out for: that of the terminal, or of `COLUMNS`, or 100; 40 to 200.
pub(super) fn width() -> usize {
    let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let terminal = terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
    terminal.or(columns).unwrap_or(100).clamp(40, 200)
}

/// The style for a stream.
pub(super) fn style(color: Color, is_terminal: bool) -> Style {
    let color = match color {
        Color::Always => true,
        Color::Never => false,
        Color::Auto => is_terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
    };
    Style { color, unicode: speaks_unicode(), width: width() }
}

fn speaks_unicode() -> bool {
    let locale =
        ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(|name| std::env::var(name).ok().filter(|v| !v.is_empty()));
    locale.is_some_and(|locale| {
        let locale = locale.to_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    })
}

/// Whether diagnostics on standard error are coloured.
pub(super) fn error_color() -> bool {
    style(Color::Auto, std::io::stderr().is_terminal()).color
}

/// Says what was asked for on standard output. A reader that has gone, such as `head`, has what it wanted; everything
/// else that stops the output is a failure.
pub(super) fn say(text: &str) -> Exit {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            eprintln!("error: cannot write to the output: {error}");
            Exit::Internal
        }
        _ => Exit::Fine,
    }
}

/// Says why suites could not be chosen.
pub(super) fn say_select_error(error: &SelectError) -> Exit {
    match error {
        SelectError::Problems(files) => {
            for problems in files {
                eprint!("{}", problems.render(error_color(), width()));
            }
        }
        other => eprintln!("error: {other}"),
    }
    Exit::Usage
}

/// Says why a run could not be set up.
pub(super) fn say_stage_error(error: &StageError) -> Exit {
    match error {
        StageError::Target(problems) => eprint!("{}", problems.render(error_color(), width())),
        other => eprintln!("error: {other}"),
    }
    Exit::Usage
}
