//! Writing records as they come, and reading them again.

use super::{Better, Key, Limit, Note, Problem, Record, Sample, Unit, Verdict};
use crate::error::{Doing, Error, Result};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The file in the results folder.
pub const FILE_NAME: &str = "results.jsonl";

/// Appends records to the file of a run.
pub struct Recorder {
    file: File,
    path: PathBuf,
    /// All that were written.
    notes: Vec<Note>,
    /// Bytes of the records that are whole.
    whole: u64,
    /// Why a record could not be written: nothing comes after it.
    broken: Option<Error>,
}

impl Recorder {
    /// An error when the folder holds an earlier run.
    pub fn check(folder: &Path) -> Result<()> {
        let path = folder.join(FILE_NAME);
        if path.exists() {
            return Err(Error::new(format!("{} holds an earlier run; name another folder with --out", path.display())));
        }
        Ok(())
    }

    /// Makes the folder and a new file in it; an earlier run's file is refused rather than overwritten.
    pub fn create(folder: &Path) -> Result<Recorder> {
        std::fs::create_dir_all(folder).doing(folder.display())?;
        Recorder::check(folder)?;
        let path = folder.join(FILE_NAME);
        let file = File::create_new(&path).doing(path.display())?;
        Ok(Recorder { file, path, notes: Vec::new(), whole: 0, broken: None })
    }

    /// Adds a record: a line is there or not. Once one could not be written, every other is refused for the same reason, so that no
    /// results are taken for whole in which some are missing in the middle.
    pub fn add(&mut self, record: &Record) -> Result<()> {
        if let Some(why) = &self.broken {
            return Err(why.clone());
        }
        let mut line = serde_json::to_vec(record).doing(self.path.display())?;
        line.push(b'\n');
        let written = self.file.write_all(&line).doing(self.path.display());
        match &written {
            Ok(()) => self.whole += line.len() as u64,
            Err(why) => {
                // What a full disk took of the line; the reader passes over it where even this fails.
                let _ = self.file.set_len(self.whole);
                self.broken = Some(why.clone());
            }
        }
        written
    }

    /// A time that was measured, with a right answer.
    pub fn time(&mut self, key: Key, round: usize, time: Duration) -> Result<()> {
        self.sample(key, round, time.as_secs_f64() * 1e3, Unit::Ms, Better::Lower, Verdict::Right)
    }

    /// Any value.
    pub fn sample(
        &mut self,
        key: Key,
        round: usize,
        value: f64,
        unit: Unit,
        better: Better,
        verdict: Verdict,
    ) -> Result<()> {
        self.add(&Record::Sample(Sample { key, round, value: Some(value), unit, better, verdict }))
    }

    /// A test that gave no value.
    pub fn missing(&mut self, key: Key, round: usize, verdict: Verdict) -> Result<()> {
        let sample = Sample { key, round, value: None, unit: Unit::Ms, better: Better::Lower, verdict };
        self.add(&Record::Sample(sample))
    }

    /// A limit of the machine.
    pub fn limit(&mut self, limit: Limit) -> Result<()> {
        self.add(&Record::Limit(limit))
    }

    /// What a reader of the figures has to know. Said again in a later repetition, it is kept once.
    pub fn note(&mut self, suite: &str, server: &str, text: impl Into<String>) -> Result<()> {
        let note = Note { suite: suite.into(), server: server.into(), text: text.into() };
        if self.notes.contains(&note) {
            return Ok(());
        }
        self.add(&Record::Note(note.clone()))?;
        self.notes.push(note);
        Ok(())
    }

    /// Something that went wrong, on standard error as well.
    pub fn problem(&mut self, server: &str, suite: &str, error: &Error) -> Result<()> {
        let about: Vec<&str> = [suite, server].into_iter().filter(|name| !name.is_empty()).collect();
        eprintln!("  {}: {error}", about.join(": "));
        let problem = Problem { server: server.into(), suite: suite.into(), text: error.to_string() };
        self.add(&Record::Problem(problem))
    }
}

/// Reads the records of a run. A last line that was cut off is left out; any other that is no record is an error with its number.
pub fn read(folder: &Path) -> Result<Vec<Record>> {
    let path = folder.join(FILE_NAME);
    let text = std::fs::read(&path).doing(path.display())?;
    let mut records = Vec::new();
    for (number, line) in text.split_inclusive(|byte| *byte == b'\n').enumerate() {
        let Some(line) = line.strip_suffix(b"\n") else { break };
        let record = serde_json::from_slice(line).doing(format!("{}: line {}", path.display(), number + 1))?;
        records.push(record);
    }
    match records.first() {
        Some(Record::Run(_)) => Ok(records),
        _ => Err(Error::new(format!("{} is no record of a run", path.display()))),
    }
}

#[cfg(test)]
mod tests {
    use super::{FILE_NAME, Recorder, read};
    use crate::error::Error;
    use crate::results::{Key, Record, RunInfo, State, Verdict};
    use std::time::Duration;

    #[test]
    fn whatever_is_cut_off_the_rest_is_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let out = folder.path().join("out");
        let mut recorder = Recorder::create(&out).expect("a new folder");
        recorder.add(&Record::Run(RunInfo { seed: 7, ..RunInfo::default() })).expect("written");
        let key = Key::new("lisa2003", "headers", "a", "time").size("large").state(State::Cold).with("connections", 2);
        recorder.time(key.clone(), 0, Duration::from_millis(3)).expect("written");
        recorder.missing(key.clone(), 1, Verdict::Failed("it went away".into())).expect("written");
        recorder.problem("a", "lisa2003", &Error::new("it went away")).expect("written");
        for _ in 0..2 {
            recorder.note("lisa2003", "a", "cold: only the contents of files").expect("written");
        }
        let records = read(&out).expect("whole");
        assert_eq!(records.len(), 5, "the same note is kept once");
        let Some(Record::Sample(sample)) = records.get(1) else { panic!("a sample comes second: {records:?}") };
        assert_eq!((&sample.key, sample.value), (&key, Some(3.0)));
        let whole = std::fs::read(out.join(FILE_NAME)).expect("there");
        let head = whole.iter().position(|byte| *byte == b'\n').expect("lines") + 1;
        for cut in head..whole.len() {
            std::fs::write(out.join(FILE_NAME), &whole[..cut]).expect("written");
            assert!(!read(&out).expect("a shorter run").is_empty());
        }
        assert!(Recorder::create(&out).is_err(), "an earlier run is not overwritten");
    }

    #[test]
    fn what_is_no_run_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(read(folder.path()).is_err());
        std::fs::write(folder.path().join(FILE_NAME), "{}\n").expect("written");
        assert!(read(folder.path()).is_err());
    }
}
