//! Programs that convert an mbox file into a Maildir, and serve nothing.

use super::NAME;
use super::conversion::TEST;
use crate::cold;
use crate::error::{Doing, Error, Result};
use crate::results::{Key, Verdict};
use crate::run::Run;
use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

/// What Python runs: the arguments are the file and the Maildir.
const PYTHON: &str = "\
import mailbox, sys
to = mailbox.Maildir(sys.argv[2], create=True)
for message in mailbox.mbox(sys.argv[1], create=False): to.add(message)";

/// Its folder in the run's.
const FOLDER: &str = "folder2007-maildir";

/// A program that converts.
struct Program {
    /// In results.
    name: &'static str,
    command: Vec<OsString>,
}

fn programs(mbox: &Path, maildir: &Path) -> [Program; 2] {
    let words = |words: &[&OsString]| words.iter().map(|word| OsString::from(*word)).collect();
    let (mbox, maildir) = (OsString::from(mbox), OsString::from(maildir));
    let text = |text: &str| OsString::from(text);
    [
        Program { name: "mb2md", command: words(&[&text("mb2md"), &text("-s"), &mbox, &text("-d"), &maildir]) },
        Program {
            name: "python-mailbox",
            command: words(&[&text("python3"), &text("-c"), &text(PYTHON), &mbox, &maildir]),
        },
    ]
}

/// Measures them all, one after another; one that is not here is said to be missing.
pub fn measure(run: &mut Run, round: usize) -> Result<()> {
    let maildir = run.work().join(FOLDER);
    let mbox = run.corpus.path.canonicalize().doing(run.corpus.path.display())?;
    let parent = run.work().canonicalize().doing(run.work().display())?;
    for program in programs(&mbox, &parent.join(FOLDER)) {
        let key = Key::new(NAME, TEST, program.name, "time").size(&run.corpus.name);
        cold::sync(run.work())?;
        let converted = program.convert();
        cold::sync(run.work())?;
        match converted {
            Ok(began) => {
                let took = began.elapsed();
                let verdict = judge(&maildir, run.corpus.messages)?;
                run.recorder.note(
                    NAME,
                    program.name,
                    format!("conversion: {}, into files that nobody serves", program.name),
                )?;
                match verdict {
                    Verdict::Right => run.recorder.time(key, round, took)?,
                    wrong => run.recorder.missing(key, round, wrong)?,
                }
            }
            Err(error) => run.recorder.missing(key, round, Verdict::Unsupported(error.to_string()))?,
        }
        match std::fs::remove_dir_all(&maildir) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error).doing(maildir.display()),
            _ => {}
        }
    }
    Ok(())
}

impl Program {
    /// Runs it; when it began.
    fn convert(&self) -> Result<Instant> {
        let mut words = self.command.iter();
        let mut command = Command::new(words.next().ok_or_else(|| Error::new("no program"))?);
        command.args(words).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let began = Instant::now();
        let output = command.output().doing(self.name)?;
        if output.status.success() {
            return Ok(began);
        }
        let said = String::from_utf8_lossy(&output.stderr);
        Err(Error::new(format!("{}: {}: {}", self.name, output.status, said.lines().next().unwrap_or_default())))
    }
}

/// Whether the Maildir has all messages.
fn judge(maildir: &Path, messages: u64) -> Result<Verdict> {
    let mut found = 0;
    for name in ["new", "cur"] {
        let folder = maildir.join(name);
        found += std::fs::read_dir(&folder).doing(folder.display())?.count() as u64;
    }
    if found == messages {
        return Ok(Verdict::Right);
    }
    Ok(Verdict::Wrong(format!("{found} messages were written, {messages} are there")))
}

#[cfg(test)]
mod tests {
    use super::{judge, programs};
    use crate::results::Verdict;

    #[test]
    fn counted() {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(judge(folder.path(), 0).is_err());
        for name in ["new", "cur"] {
            std::fs::create_dir(folder.path().join(name)).expect("made");
            std::fs::write(folder.path().join(name).join("1"), "x").expect("written");
        }
        assert!(matches!(judge(folder.path(), 2), Ok(Verdict::Right)));
        assert!(matches!(judge(folder.path(), 3), Ok(Verdict::Wrong(_))));
    }

    #[test]
    fn python_converts() {
        let folder = tempfile::tempdir().expect("a folder");
        let (mbox, maildir) = (folder.path().join("mbox"), folder.path().join("maildir"));
        std::fs::write(&mbox, "From a\nA: 1\n\none\n\nFrom b\nB: 2\n\n\n").expect("written");
        let [_, python] = programs(&mbox, &maildir);
        python.convert().expect("converted");
        assert!(matches!(judge(&maildir, 2), Ok(Verdict::Right)));
    }
}
