//! From an mbox file to a mailbox of the server.

use super::{MAILBOX, NAME};
use crate::cold;
use crate::error::{Doing, Error, Result};
use crate::fill::fill;
use crate::limits;
use crate::mbox;
use crate::results::{Better, Key, LIMIT, Unit, Verdict};
use crate::run::{Contestant, Run, Tools};
use crate::server::Local;
use crate::wire::{Address, Connection};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// In results.
pub const TEST: &str = "conversion";

/// Makes the mailbox from the corpus, and records the time and what it takes on the disk.
pub fn measure(contestant: &mut Contestant, account: &Address, tools: &mut Tools, round: usize) -> Result<()> {
    remove_mailbox(account)?;
    // What others have written is not to be waited for in our time.
    cold::sync(&tools.plan.work)?;
    let name = contestant.info.name.clone();
    let (took, how) = match contestant.server.local() {
        Some(local) => converted(local, account, tools)?,
        None => over_the_wire(account, tools)?,
    };
    let size = &tools.corpus.name;
    tools.recorder.time(Key::new(NAME, TEST, &name, "time").size(size), round, took)?;
    tools.recorder.note(NAME, &name, format!("conversion: {how}"))?;
    if let Some(local) = contestant.server.local() {
        let taken = taken(&local.storage(account))?;
        let key = Key::new(NAME, "storage", &name, "bytes").size(size);
        tools.recorder.sample(key, round, taken.bytes as f64, Unit::Bytes, Better::Lower, Verdict::Right)?;
        let key = Key::new(NAME, "storage", &name, "files").size(size);
        tools.recorder.sample(key, round, taken.files as f64, Unit::Count, Better::Lower, Verdict::Right)?;
    }
    Ok(())
}

/// A copy of the mbox file, synced.
pub fn limit(run: &mut Run, round: usize) -> Result<()> {
    let copy = run.work().join("folder2007-copy.mbox");
    cold::sync(run.work())?;
    let took = limits::copy_and_sync(&run.corpus.path, &copy)?;
    std::fs::remove_file(&copy).doing(copy.display())?;
    let key = Key::new(NAME, TEST, LIMIT, "time").size(&run.corpus.name);
    run.recorder.time(key, round, took)
}

/// Removes the mailbox when it is there.
pub fn remove_mailbox(account: &Address) -> Result<()> {
    let mut connection = Connection::login(account)?;
    let mailbox = connection.mailbox(MAILBOX);
    let listed = connection.command(&format!("LIST \"\" {mailbox}"))?;
    if listed.kept.iter().any(|line| line.starts_with("* LIST ")) {
        connection.command(&format!("DELETE {mailbox}"))?;
    }
    connection.command("LOGOUT").map(drop)
}

/// With the server's own tool, or by putting the file where it serves it, or as for any other server.
fn converted(local: &mut dyn Local, account: &Address, tools: &Tools) -> Result<(Duration, String)> {
    local.stop()?;
    let began = Instant::now();
    let mut how = local.convert(account, MAILBOX, &tools.corpus.path)?.map(|tool| format!("by {tool}"));
    if how.is_none()
        && let Some(path) = local.mbox(account, MAILBOX)
    {
        mbox::place(&tools.corpus.path, &path)?;
        how = Some("none: the mbox file is served as it is, after a copy".into());
    }
    cold::sync(&tools.plan.work)?;
    let took = began.elapsed();
    local.start()?;
    match how {
        Some(how) => Ok((took, how)),
        None if local.can_place() => placed(local, account, tools),
        None => over_the_wire(account, tools),
    }
}

/// A file a message, written where the server keeps them; the empty mailbox is made by the server.
fn placed(local: &mut dyn Local, account: &Address, tools: &Tools) -> Result<(Duration, String)> {
    Connection::login(account)?.renew(MAILBOX)?;
    local.stop()?;
    cold::sync(&tools.plan.work)?;
    let began = Instant::now();
    let how = local.place(account, MAILBOX, &tools.corpus.path)?;
    cold::sync(&tools.plan.work)?;
    let took = began.elapsed();
    local.start()?;
    Ok((took, format!("{how}, then syncfs")))
}

fn over_the_wire(account: &Address, tools: &Tools) -> Result<(Duration, String)> {
    let mut connection = Connection::login(account)?;
    let began = Instant::now();
    connection.renew(MAILBOX)?;
    let filled = fill(&mut connection, MAILBOX, tools.corpus)?;
    cold::sync(&tools.plan.work)?;
    Ok((began.elapsed(), format!("over the wire, {}", filled.how)))
}

/// What files take.
#[derive(Debug, Default, PartialEq, Eq)]
struct Taken {
    /// In blocks that are allocated for them, folders included.
    bytes: u64,
    files: u64,
}

fn taken(paths: &[PathBuf]) -> Result<Taken> {
    use std::os::unix::fs::MetadataExt;
    let mut taken = Taken::default();
    let mut waiting = paths.to_vec();
    while let Some(path) = waiting.pop() {
        let Ok(metadata) = path.symlink_metadata() else { continue };
        // stat(2): always in units of 512 bytes.
        taken.bytes += metadata.blocks() * 512;
        if metadata.is_dir() {
            for entry in std::fs::read_dir(&path).doing(path.display())? {
                waiting.push(entry.doing(path.display())?.path());
            }
        } else {
            taken.files += 1;
        }
    }
    if taken.files == 0 {
        return Err(Error::new("the server's storage holds no file"));
    }
    Ok(taken)
}

#[cfg(test)]
mod tests {
    use super::taken;

    #[test]
    fn what_is_taken() {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(taken(&[folder.path().to_path_buf()]).is_err());
        std::fs::create_dir(folder.path().join("a")).expect("made");
        std::fs::write(folder.path().join("a/b"), vec![1; 10_000]).expect("written");
        std::fs::write(folder.path().join("c"), b"x").expect("written");
        rustix::fs::sync();
        let taken = taken(&[folder.path().to_path_buf(), folder.path().join("gone")]).expect("looked at");
        assert_eq!(taken.files, 2);
        assert!((10_000..200_000).contains(&taken.bytes), "{taken:?}");
    }
}
