//! A report file that is always whole: written beside its place, then moved there.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// Why a report cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// Its folder cannot be made.
    #[error("cannot create the folder `{}` for reports: {source}; name a folder that can be written", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It cannot be written.
    #[error("cannot write the report `{}`: {source}; free its place, or name another folder for reports", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// A report file.
#[derive(Debug)]
pub struct ReportFile {
    path: PathBuf,
    beside: PathBuf,
}

impl ReportFile {
    /// Makes the folder, shows that the file can be written, and removes what an earlier run left in its place,
    /// so that it cannot be taken for a report of this run.
    ///
    /// # Errors
    /// When the folder cannot be made or the file cannot be written.
    pub fn create(path: &Path) -> Result<Self, FileError> {
        make_folder(path)?;
        let file = Self::beside(path);
        file.write(b"")?;
        fs::remove_file(path).map_err(|source| file.error(source))?;
        Ok(file)
    }

    /// A file that is replaced only when there is something to write.
    pub(super) fn beside(path: &Path) -> Self {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        Self { path: path.to_owned(), beside: path.with_file_name(format!(".{name}.{}.tmp", std::process::id())) }
    }

    /// Replaces the file in one step.
    ///
    /// # Errors
    /// When it cannot be written; the file is then as it was.
    pub fn write(&self, contents: &[u8]) -> Result<(), FileError> {
        let written = fs::write(&self.beside, contents).and_then(|()| fs::rename(&self.beside, &self.path));
        written.map_err(|source| {
            // The first error is the one that tells; the leftover may not even exist.
            let _ = fs::remove_file(&self.beside);
            self.error(source)
        })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn error(&self, source: io::Error) -> FileError {
        FileError::Write { path: self.path.clone(), source }
    }
}

/// Makes the folder of a file.
pub(super) fn make_folder(path: &Path) -> Result<(), FileError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(|source| FileError::Folder { path: folder.to_owned(), source })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn a_file_is_replaced_as_a_whole_and_leaves_nothing_beside() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/er/junit.xml");
        let file = ReportFile::create(&path).unwrap();
        assert!(!path.exists());
        file.write(b"one").unwrap();
        file.write(b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn a_place_that_cannot_be_written_is_found_at_once() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("file"), "").unwrap();
        let error = ReportFile::create(&folder.path().join("file/junit.xml")).unwrap_err();
        assert!(matches!(error, FileError::Folder { .. }) && error.to_string().contains("file"), "{error}");
        fs::create_dir_all(folder.path().join("junit.xml/inside")).unwrap();
        let error = ReportFile::create(&folder.path().join("junit.xml")).unwrap_err();
        assert!(matches!(error, FileError::Write { .. }) && error.to_string().contains("junit.xml"), "{error}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }
}
