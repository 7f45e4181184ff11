//! The programs that scan.

use super::Rates;
use super::parts::Mailbox;
use crate::error::{Doing, Error, Result};
use crate::results::Verdict;
use crate::usage::Usage;
use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A process scans its file as often as takes about this long.
const LONG_ENOUGH: Duration = Duration::from_millis(500);
/// And not more often than this: arguments have a limit (execve(2)).
const TIMES_MAX: f64 = 2_000.0;

/// What Python runs for each file that is named.
const PYTHON: &str = "import mailbox, sys\nfor path in sys.argv[1:]: print(len(mailbox.mbox(path, create=False)))";

const SYSTEM_PYTHON: &str = "/usr/bin/python3";

/// A program that prints the number of messages of each file it is given.
pub struct Program {
    /// In results.
    pub name: &'static str,
    command: Vec<OsString>,
    /// What it says for `--version`, or why it cannot be measured.
    version: std::result::Result<String, String>,
}

/// How a measurement went.
pub enum Outcome {
    /// All processes came to their end.
    Scanned {
        /// How fast.
        rates: Rates,
        /// Whether they found what is there.
        verdict: Verdict,
    },
    /// The program is not here.
    Missing(String),
    /// A process failed.
    Failed(String),
}

/// All programs, those that are not here included.
pub fn all(mailyard: Option<&Path>) -> Vec<Program> {
    let words = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
    let mailyard = mailyard.map_or_else(|| "mailyard".into(), |path| path.as_os_str().to_os_string());
    let scan = [mailyard].into_iter().chain(words(&["scan", "--quiet", "--count"])).collect();
    // What is called python3 elsewhere may be a script that looks for a Python first.
    let python = if Path::new(SYSTEM_PYTHON).is_file() { SYSTEM_PYTHON } else { "python3" };
    vec![
        // A program without this subcommand has a version nevertheless; its help is what tells.
        Program::new("mailyard-scan", scan, &["scan", "--help"]),
        Program::new("mailutils", words(&["messages", "--no-config", "-q"]), &["--version"]),
        Program::new("python-mailbox", words(&[python, "-c", PYTHON]), &["--version"]),
        Program::new("grep", words(&["grep", "-hc", "^From "]), &["--version"]),
    ]
}

impl Program {
    fn new(name: &'static str, command: Vec<OsString>, asked: &[&str]) -> Program {
        let program = command.first().cloned().unwrap_or_default();
        let shown = Path::new(&program).display().to_string();
        let version = match Command::new(&program).args(asked).stdin(Stdio::null()).output() {
            Err(error) => Err(format!("{shown}: {error}")),
            Ok(output) if !output.status.success() => Err(format!("{shown} has no `{}`", asked.join(" "))),
            Ok(output) => Ok(String::from_utf8_lossy(&output.stdout).lines().next().unwrap_or_default().to_string()),
        };
        Program { name, command, version }
    }

    /// For the reader of the figures.
    pub fn explained(&self) -> String {
        let command: Vec<_> = self.command.iter().skip(1).map(|word| word.to_string_lossy()).collect();
        let program = self.command.first().map(Path::new).and_then(Path::file_name).unwrap_or_default();
        let version = self.version.as_ref().unwrap_or_else(|why| why);
        format!("{} {}: {version}", program.to_string_lossy(), command.join(" ").replace('\n', "; "))
    }

    /// Scans all files at once, a process each.
    pub fn scan(&self, files: &[&Mailbox], quick: bool) -> Outcome {
        if let Err(why) = &self.version {
            return Outcome::Missing(why.clone());
        }
        match self.measured(files, quick) {
            Ok((rates, verdict)) => Outcome::Scanned { rates, verdict },
            Err(error) => Outcome::Failed(error.to_string()),
        }
    }

    fn measured(&self, files: &[&Mailbox], quick: bool) -> Result<(Rates, Verdict)> {
        let Some(first) = files.first() else { return Err(Error::new("no file")) };
        let began = Instant::now();
        self.run(&[first], 1)?;
        let times = if quick { 1 } else { times(began.elapsed()) };
        let before = Usage::own()?;
        let began = Instant::now();
        let counts = self.run(files, times)?;
        let wall = began.elapsed();
        let cpu = (Usage::own()? - before).cpu();
        let bytes = files.iter().map(|file| file.bytes).sum::<u64>() * times as u64;
        Ok((Rates::of(bytes, wall, cpu), judge(files, &counts, times)))
    }

    /// Starts a process for each file, which it gets named so many times; gives what each printed.
    fn run(&self, files: &[&Mailbox], times: usize) -> Result<Vec<String>> {
        let mut children = Vec::new();
        for file in files {
            let mut words = self.command.iter();
            let mut command = Command::new(words.next().ok_or_else(|| Error::new("no program"))?);
            command.args(words).args(std::iter::repeat_n(&file.path, times));
            // Other locales make grep look at characters instead of bytes.
            command.env("LC_ALL", "C").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
            children.push(command.spawn().doing(self.name)?);
        }
        let mut counts = Vec::new();
        for child in children {
            // A line a scan is less than a pipe holds; nobody waits for us.
            let output = child.wait_with_output().doing(self.name)?;
            if !output.status.success() {
                return Err(Error::new(format!("{}: {}", self.name, output.status)));
            }
            counts.push(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        Ok(counts)
    }
}

/// How often a file is to be scanned, when once takes so long.
fn times(once: Duration) -> usize {
    (LONG_ENOUGH.as_secs_f64() / once.as_secs_f64().max(1e-6)).ceil().clamp(1.0, TIMES_MAX) as usize
}

/// Every scan has to have found all messages: a line each, the number its last word.
fn judge(files: &[&Mailbox], printed: &[String], times: usize) -> Verdict {
    for (file, printed) in files.iter().zip(printed) {
        let counts: Vec<u64> =
            printed.lines().filter_map(|line| line.split_whitespace().next_back()?.parse().ok()).collect();
        if let Some(count) = counts.iter().find(|count| **count != file.messages) {
            return Verdict::Wrong(format!("{count} messages found, {} are there", file.messages));
        }
        if counts.len() != times {
            return Verdict::Wrong(format!("{} of {times} files were counted", counts.len()));
        }
    }
    Verdict::Right
}

impl Rates {
    /// From what was done in what time.
    pub fn of(bytes: u64, wall: Duration, cpu: Duration) -> Rates {
        let rate = |time: Duration| bytes as f64 / time.as_secs_f64().max(1e-9);
        // The clock of processor time may tick more slowly than a short scan takes.
        Rates { wall: rate(wall), processor: rate(cpu.max(TICK)) }
    }
}

/// times(2): a hundredth of a second on Linux.
const TICK: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests {
    use super::{Outcome, Program, judge, times};
    use crate::results::Verdict;
    use crate::suite::scan2002::parts::Mailbox;
    use std::time::Duration;

    #[test]
    fn counts() {
        let file = Mailbox { path: "x".into(), messages: 3, bytes: 9 };
        assert_eq!(judge(&[&file, &file], &["3\n3\n".into(), "/a b 2/x: 3\nx 3\n".into()], 2), Verdict::Right);
        for wrong in ["3\n4\n", "3\n", "", "x\n3\n", "3 x\n3\n"] {
            assert!(matches!(judge(&[&file], &[wrong.into()], 2), Verdict::Wrong(_)), "{wrong:?}");
        }
        assert_eq!((times(Duration::ZERO), times(Duration::from_millis(200)), times(Duration::MAX)), (2_000, 3, 1));
    }

    #[test]
    fn the_floor_counts_and_what_is_missing_is_said() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("mbox");
        std::fs::write(&path, "From a\n\nx\n\nFrom b\n\ny\n\n").expect("written");
        let scan = |command: &[&str], messages| {
            let command = command.iter().map(std::ffi::OsString::from).collect();
            let file = Mailbox { path: path.clone(), messages, bytes: 22 };
            Program::new("p", command, &["--version"]).scan(&[&file, &file], true)
        };
        assert!(matches!(scan(&["grep", "-hc", "^From "], 2), Outcome::Scanned { verdict: Verdict::Right, .. }));
        assert!(matches!(scan(&["grep", "-hc", "^From "], 3), Outcome::Scanned { verdict: Verdict::Wrong(_), .. }));
        assert!(matches!(scan(&["grep", "-hc", "--no-such-option"], 2), Outcome::Failed(_)));
        assert!(matches!(scan(&["/no/such/program"], 2), Outcome::Missing(_)));
    }
}
