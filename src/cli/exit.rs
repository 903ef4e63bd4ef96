//! The one table of exit codes.

use std::process::ExitCode;

/// What the command's exit code says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// All fine.
    Fine,
    /// A rule is broken.
    Violations,
    /// The arguments, a suite file or a target file are wrong, or the target or the Toxiproxy cannot be reached.
    Usage,
    /// A case was inconclusive, and `--fail-on inconclusive` was given or the time limit was over.
    Inconclusive,
    /// No case was selected, or none of those selected came to a pass or a failure: nothing is known of the target.
    Nothing,
    /// Something failed that is not the target's doing: reports could not be written.
    Internal,
    /// Ended by Ctrl-C. The reports are written.
    Interrupted,
    /// Ended by SIGTERM. The reports are written.
    Terminated,
}

impl Exit {
    /// Every exit, in the order of the documentation.
    pub const ALL: [Self; 8] = [
        Self::Fine,
        Self::Violations,
        Self::Usage,
        Self::Inconclusive,
        Self::Nothing,
        Self::Internal,
        Self::Interrupted,
        Self::Terminated,
    ];

    /// The number.
    pub const fn code(self) -> u8 {
        match self {
            Self::Fine => 0,
            Self::Violations => 1,
            Self::Usage => 2,
            Self::Inconclusive => 3,
            Self::Nothing => 4,
            Self::Internal => 5,
            Self::Interrupted => 130,
            Self::Terminated => 143,
        }
    }

    /// What it means, in one line.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Fine => "all fine",
            Self::Violations => "a rule is broken",
            Self::Usage => "wrong arguments, suite or target file, or the target or Toxiproxy cannot be reached",
            Self::Inconclusive => {
                "a case was inconclusive and --fail-on inconclusive was given, or --time-limit was over"
            }
            Self::Nothing => "no case was selected, or none of them came to a pass or a failure",
            Self::Internal => "a failure of idemproof's own, such as a report that cannot be written",
            Self::Interrupted => "ended by Ctrl-C; the reports are written",
            Self::Terminated => "ended by SIGTERM; the reports are written",
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}
