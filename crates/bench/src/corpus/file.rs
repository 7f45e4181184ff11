//! An mbox file that is there: the mail of a run.

use crate::error::{Doing, Error, Result};
use crate::mbox;
use std::io::Read;
use std::path::{Path, PathBuf};

/// A mailbox to measure with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Corpus {
    /// The name of the size, or the file's name without its ending.
    pub name: String,
    /// The mbox file.
    pub path: PathBuf,
    /// Messages in it.
    pub messages: u64,
    /// Bytes of the file.
    pub bytes: u64,
}

impl Corpus {
    /// Opens and counts; an error when the file is no mbox.
    pub fn open(path: &Path) -> Result<Corpus> {
        let mut head = [0; 5];
        let mut file = std::fs::File::open(path).doing(path.display())?;
        let bytes = file.metadata().doing(path.display())?.len();
        if bytes == 0 {
            return Err(Error::new(format!("{} is empty", path.display())));
        }
        let begins = file.read_exact(&mut head).is_ok() && head == *b"From ";
        if !begins {
            return Err(Error::new(format!("{} is no mbox file: it does not begin with \"From \"", path.display())));
        }
        let mut messages = 0;
        mbox::each_message(path, |_| {
            messages += 1;
            Ok(true)
        })?;
        let name = path.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        Ok(Corpus { name, path: path.to_path_buf(), messages, bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::Corpus;

    #[test]
    fn only_an_mbox_is_opened() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("three.mbox");
        std::fs::write(&path, "From a\nA: 1\n\none\n\nFrom b\nB: 2\n\n\nFrom c\nC: 3\n\nx\n").expect("written");
        let corpus = Corpus::open(&path).expect("an mbox");
        assert_eq!((corpus.name.as_str(), corpus.messages), ("three", 3));
        for bad in ["", "Fro", "Subject: x\n\ny\n"] {
            std::fs::write(&path, bad).expect("written");
            assert!(Corpus::open(&path).is_err(), "{bad:?}");
        }
        assert!(Corpus::open(folder.path()).is_err());
    }
}
