//! The suites that are built into the binary.

use include_dir::{Dir, include_dir};

use super::Suite;
use crate::text::Problems;

static SUITES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/suites");

/// The built-in suite files as (`suites/NAME.yaml`, text), by name.
pub fn builtin_files() -> Vec<(String, &'static str)> {
    let mut files: Vec<_> = SUITES
        .files()
        .filter(|file| file.path().extension().is_some_and(|extension| extension == "yaml"))
        .filter_map(|file| Some((format!("suites/{}", file.path().display()), file.contents_utf8()?)))
        .collect();
    files.sort();
    files
}

/// The built-in suites, by name.
///
/// # Errors
/// What is wrong with the first wrong one. Our tests keep that from happening.
pub fn builtin_suites() -> Result<Vec<Suite>, Problems> {
    builtin_files().iter().map(|(name, text)| Suite::parse(text, name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_in_suites_is_built_in_and_right() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/suites");
        let on_disk = std::fs::read_dir(folder)
            .unwrap()
            .filter(|entry| entry.as_ref().unwrap().path().extension().is_some_and(|e| e == "yaml"))
            .count();
        let suites = builtin_suites().unwrap_or_else(|problems| panic!("{}", problems.render(false, 100)));
        assert_eq!(suites.len(), on_disk, "a new file needs a new build of this crate");
        assert!(on_disk > 0);
        for suite in suites {
            assert_eq!(suite.file, format!("suites/{}.yaml", suite.name), "a suite is named as its file");
        }
    }
}
