//! Steps: announced, timed, their output shown and kept, summed up at the end.

use crate::tree::Tree;
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// What a task says when it cannot go on is for a person to read.
pub type Result<T> = std::result::Result<T, String>;

/// How a step ended when nothing was wrong.
pub enum Outcome {
    /// It ran and found nothing.
    Passed,
    /// It ran, and this is worth a line in the summary.
    PassedWith(String),
    /// It could not run, for a reason that the tree is not to blame for; the text says what is missing.
    Skipped(String),
}

/// One finished step.
struct Finished {
    name: String,
    took: Duration,
    ending: Ending,
}

enum Ending {
    Passed(String),
    Skipped(String),
    Failed(String),
}

/// The steps of one task.
pub struct Report<'t> {
    /// The checkout.
    pub tree: &'t Tree,
    keep_going: bool,
    logs: PathBuf,
    began: Instant,
    steps: Vec<Finished>,
    last_words: Vec<String>,
}

/// Where one step writes.
pub struct Log {
    file: File,
    path: PathBuf,
}

impl<'t> Report<'t> {
    /// An empty report; its logs go to `target/xtask/`.
    pub fn new(tree: &'t Tree, keep_going: bool) -> Result<Self> {
        let logs = tree.target().join("xtask");
        std::fs::create_dir_all(&logs).map_err(|e| format!("{}: {e}", logs.display()))?;
        Ok(Report { tree, keep_going, logs, began: Instant::now(), steps: Vec::new(), last_words: Vec::new() })
    }

    /// Whether an earlier step failed and the rest is not to be run.
    fn stopped(&self) -> bool {
        !self.keep_going && self.failures() > 0
    }

    fn failures(&self) -> usize {
        self.steps.iter().filter(|step| matches!(step.ending, Ending::Failed(_))).count()
    }

    /// Runs one step, unless an earlier one failed.
    pub fn step(&mut self, name: &str, work: impl FnOnce(&Tree, &mut Log) -> Result<Outcome>) {
        if self.stopped() {
            return;
        }
        println!("\n==> {name}  (at {})", clock(self.began.elapsed()));
        let began = Instant::now();
        let result = Log::create(&self.logs, self.steps.len(), name).and_then(|mut log| {
            let result = work(self.tree, &mut log);
            if let Err(error) = &result {
                log.say(error);
            }
            result.map_err(|error| format!("{}\n     whole output: {}", first_line(&error), log.path.display()))
        });
        let took = began.elapsed();
        let ending = match result {
            Ok(Outcome::Passed) => Ending::Passed(String::new()),
            Ok(Outcome::PassedWith(note)) => Ending::Passed(note),
            Ok(Outcome::Skipped(why)) => {
                println!("SKIPPED: {why}");
                Ending::Skipped(why)
            }
            Err(error) => Ending::Failed(error),
        };
        let word = match ending {
            Ending::Passed(_) => "passed",
            Ending::Skipped(_) => "skipped",
            Ending::Failed(_) => "FAILED",
        };
        println!("<== {name}: {word} in {}", clock(took));
        self.steps.push(Finished { name: name.to_string(), took, ending });
    }

    /// Lines to be repeated after the summary, so that they are the last thing that is seen.
    pub fn last_words(&mut self, lines: Vec<String>) {
        self.last_words.extend(lines);
    }

    /// Prints the summary; true when nothing failed.
    pub fn finish(self) -> bool {
        println!(
            "\n==> summary, {} in all; every output is kept in {}",
            clock(self.began.elapsed()),
            self.logs.display()
        );
        for step in &self.steps {
            let (word, note) = match &step.ending {
                Ending::Passed(note) => ("ok", note),
                Ending::Skipped(note) => ("SKIPPED", note),
                Ending::Failed(note) => ("FAILED", note),
            };
            println!(
                "  {word:8}{:>8}  {}{}{note}",
                clock(step.took),
                step.name,
                if note.is_empty() { "" } else { ": " }
            );
        }
        let failures = self.failures();
        if failures > 0 {
            println!("{failures} of {} steps FAILED", self.steps.len());
        }
        for line in &self.last_words {
            println!("{line}");
        }
        failures == 0
    }
}

impl Log {
    fn create(folder: &Path, number: usize, name: &str) -> Result<Log> {
        let plain: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        let path = folder.join(format!("{:02}-{plain}.log", number + 1));
        let file = File::create(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        Ok(Log { file, path })
    }

    /// Prints a line and keeps it.
    pub fn say(&mut self, line: &str) {
        println!("{line}");
        // A log that cannot be written is no reason to fail the check.
        let _ = writeln!(self.file, "{line}");
    }

    /// Runs a command, its standard output and error shown and kept in the order they came; an error when it fails or is not done
    /// after `minutes`. Gives back what it printed.
    pub fn run(&mut self, command: &Command, minutes: u32) -> Result<String> {
        let shown = words(command);
        self.say(&format!("$ {shown}"));
        let mut limited = limited(command, minutes);
        let (mut output, writer) = std::io::pipe().map_err(|e| format!("pipe: {e}"))?;
        let second = writer.try_clone().map_err(|e| format!("pipe: {e}"))?;
        limited.stdin(Stdio::null()).stdout(writer).stderr(second);
        let mut child = limited.spawn().map_err(|e| format!("{shown}: {e}"))?;
        // The command holds the pipe's write ends; while it lives, no end would ever be read.
        drop(limited);
        let mut all = Vec::new();
        let mut chunk = vec![0; 1 << 16];
        loop {
            let count = output.read(&mut chunk).map_err(|e| format!("{shown}: {e}"))?;
            let Some(piece) = chunk.get(..count).filter(|piece| !piece.is_empty()) else {
                break;
            };
            let mut screen = std::io::stdout();
            let _ = screen.write_all(piece).and_then(|()| screen.flush());
            let _ = self.file.write_all(piece);
            all.extend_from_slice(piece);
        }
        let status = child.wait().map_err(|e| format!("{shown}: {e}"))?;
        match status.code() {
            Some(0) => Ok(String::from_utf8_lossy(&all).into_owned()),
            // What timeout(1) exits with when the time was up.
            Some(124 | 137) => Err(format!("not done after {minutes} minutes: {shown}")),
            _ => Err(format!("{shown}: {status}")),
        }
    }
}

/// The same command under timeout(1), which kills the whole process group when the time is up.
fn limited(command: &Command, minutes: u32) -> Command {
    let mut limited = Command::new("timeout");
    limited.arg("--kill-after=10").arg(format!("{minutes}m")).arg(command.get_program()).args(command.get_args());
    if let Some(folder) = command.get_current_dir() {
        limited.current_dir(folder);
    }
    for (key, value) in command.get_envs() {
        match value {
            Some(value) => limited.env(key, value),
            None => limited.env_remove(key),
        };
    }
    limited
}

/// The command as one would type it.
fn words(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    let mut words = vec![program.to_string_lossy().into_owned()];
    words.extend(command.get_args().map(|argument| argument.to_string_lossy().into_owned()));
    words.join(" ")
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// Minutes and seconds.
fn clock(time: Duration) -> String {
    if time.as_secs() < 60 {
        format!("{:.1}s", time.as_secs_f64())
    } else {
        format!("{}m{:02}s", time.as_secs() / 60, time.as_secs() % 60)
    }
}
