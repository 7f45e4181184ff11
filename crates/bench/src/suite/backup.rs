//! `backup`: saving an account with the product's own tool while the server runs, and bringing it back.
//!
//! Source: ours; it is what administrators ask of a mail store first and nobody has measured: a full backup and a second one after a
//! hundred messages, the time to read all of it back, to bring back one mailbox, and the account.
//!
//! Decisions:
//! - The account has the mail of the run in one mailbox, and up to 2,000 messages of it in another one: that is the one that comes back, as a
//!   mailbox beside the present one; the account comes back under another name. Messages are counted afterwards.
//! - `cp -a` and tar (into a file) of the same files are the yardsticks, of every server on this machine: they take no account of a server that
//!   goes on writing, check nothing and copy everything every time.
//! - Everything ends when it is on the disk: syncfs(2) is part of each time.
//! - Nothing is cold: a backup of mail that was just delivered reads what is in the page cache.
//!
//! Each repetition has a directory of backups of its own.

use super::answers::status_messages;
use super::{Suite, mail};
use crate::cold;
use crate::error::{Doing, Error, Result};
use crate::fill;
use crate::limits;
use crate::results::{Better, Key, LIMIT, Unit, Verdict};
use crate::run::{Contestant, Run, Tools};
use crate::server::Backups;
use crate::wire::{Address, Connection, Outgoing};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// In results and on the command line.
const NAME: &str = "backup";
/// The mailbox with the mail of the run.
const MAILBOX: &str = "bench";
/// The mailbox that comes back.
const PART: &str = "bench-part";
/// Under this name.
const PART_BACK: &str = "bench-part-back";
/// Messages of [`PART`] at most.
const PART_MESSAGES: usize = 2_000;
/// Messages between the full backup and the next one.
const NEW_MESSAGES: usize = 100;
/// The account that comes back.
const RESTORED: &str = "bench-restored";
/// The tests that need a backup of the product's own.
const TESTS: [&str; 5] = ["full", "after 100 messages", "verify", "restore one mailbox", "restore the account"];

/// The suite.
pub struct Backup;

impl Suite for Backup {
    fn name(&self) -> &'static str {
        NAME
    }

    fn source(&self) -> &'static str {
        "Mailyard: backups of an account, and what comes back of them"
    }

    fn about(&self) -> &'static str {
        "The account is saved with the server's own tool while the server runs: all of it, and again after 100 messages. The backup is read back \
         and compared; a mailbox of up to 2,000 messages is brought back beside the present one, and the account under another name. Each until \
         it is on the disk. cp -a and tar of the files of the same account, with a sync, stand beside. The limit of the full backup is a \
         copy of the mail of the run as one file, with a sync."
    }

    fn per_size(&self) -> bool {
        true
    }

    fn run(&self, run: &mut Run) -> Result<()> {
        let part = mail::messages(&run.corpus, part_messages(run.corpus.messages))?;
        let new = mail::messages(&run.corpus, NEW_MESSAGES)?;
        run.each(NAME, "filling", |contestant, tools| prepare(contestant, tools, &part))?;
        let began = Instant::now();
        for round in 0..run.plan.repeat {
            if !run.again(NAME, round, began)? {
                break;
            }
            run.each(NAME, "saving and restoring", |contestant, tools| {
                measure(contestant, tools, round, &new, part.len() as u64)
            })?;
            let copy = run.work().join("backup-copy.mbox");
            cold::sync(run.work())?;
            let took = limits::copy_and_sync(&run.corpus.path, &copy)?;
            std::fs::remove_file(&copy).doing(copy.display())?;
            let key = Key::new(NAME, "full", LIMIT, "time").size(&run.corpus.name);
            run.recorder.time(key, round, took)?;
        }
        Ok(())
    }
}

/// A tenth of the mail, as far as that is not more than is wanted.
fn part_messages(all: u64) -> usize {
    usize::try_from(all / 10).unwrap_or(PART_MESSAGES).clamp(1, PART_MESSAGES)
}

fn prepare(contestant: &mut Contestant, tools: &mut Tools, part: &[Vec<u8>]) -> Result<()> {
    let account = account(contestant)?;
    let how = fill::prepare(contestant.server.as_mut(), &account, MAILBOX, tools.corpus)?;
    tools.recorder.note(NAME, &contestant.info.name, format!("filling: {how}"))?;
    let mut connection = Connection::login(&account)?;
    connection.renew(PART)?;
    part.chunks(100).try_for_each(|batch| append(&mut connection, PART, batch))
}

fn append(connection: &mut Connection, mailbox: &str, messages: &[Vec<u8>]) -> Result<()> {
    let offered = connection.capabilities()?;
    let messages: Vec<Outgoing> = messages.iter().map(|bytes| Outgoing { bytes, internal_date: "" }).collect();
    connection.append_all(mailbox, &messages, &offered)
}

fn account(contestant: &mut Contestant) -> Result<Address> {
    contestant.server.accounts(1)?.into_iter().next().ok_or_else(|| Error::new("the server has no account"))
}

fn measure(
    contestant: &mut Contestant,
    tools: &mut Tools,
    round: usize,
    new: &[Vec<u8>],
    part_messages: u64,
) -> Result<()> {
    let account = account(contestant)?;
    let name = contestant.info.name.clone();
    let size = tools.corpus.name.clone();
    let key = |test: &str, measure: &str| Key::new(NAME, test, &name, measure).size(&size);
    let folder = tools.plan.work.join(format!("backup-{name}"));
    remove(&folder)?;
    let has_backups = contestant.server.local().is_some_and(|local| local.backups().is_some());
    if !has_backups {
        for test in TESTS {
            tools.unsupported(key(test, "time"), round, "it has no backups of its own, or not on this machine")?;
        }
    }
    if has_backups {
        // Before the clock runs: what it makes of new mail by itself is no part of a backup.
        let took = timed(contestant, tools, &folder, |backups| backups.save(&account, &folder))?;
        tools.recorder.time(key("full", "time"), round, took)?;
        let bytes = bytes_below(&folder)? as f64;
        tools.recorder.sample(key("full", "bytes"), round, bytes, Unit::Bytes, Better::Lower, Verdict::Right)?;

        append(&mut Connection::login(&account)?, MAILBOX, new)?;
        let took = timed(contestant, tools, &folder, |backups| backups.save(&account, &folder))?;
        tools.recorder.time(key("after 100 messages", "time"), round, took)?;

        let took = timed(contestant, tools, &folder, |backups| backups.verify(&folder))?;
        tools.recorder.time(key("verify", "time"), round, took)?;

        let took =
            timed(contestant, tools, &folder, |backups| backups.restore_mailbox(&account, &folder, PART, PART_BACK))?;
        let found = messages(&account, PART_BACK)?;
        record(tools, key("restore one mailbox", "time"), round, took, found, part_messages)?;
        Connection::login(&account)?.remove(PART_BACK)?;

        let all = messages(&account, MAILBOX)?;
        let took = timed(contestant, tools, &folder, |backups| backups.restore_account(&account, &folder, RESTORED))?;
        let restored = with_backups(contestant, |backups| backups.admit(RESTORED))?;
        let found = messages(&restored, MAILBOX)?;
        record(tools, key("restore the account", "time"), round, took, found, all)?;
        with_backups(contestant, |backups| backups.forget_account(RESTORED))?;
        remove(&folder)?;
    }
    yardsticks(contestant, tools, &account, round, &folder)
}

/// What a program takes that copies the same files and knows nothing of them.
fn yardsticks(
    contestant: &mut Contestant,
    tools: &mut Tools,
    account: &Address,
    round: usize,
    folder: &Path,
) -> Result<()> {
    let name = contestant.info.name.clone();
    let key = |test: &str| Key::new(NAME, test, &name, "time").size(&tools.corpus.name);
    let keys = [key("cp -a"), key("tar")];
    let Some(local) = contestant.server.local() else {
        let why = "only the files of a server of our own can be copied";
        return keys.into_iter().try_for_each(|key| tools.unsupported(key, round, why));
    };
    let storage: Vec<PathBuf> = local.storage(account).into_iter().filter(|path| path.exists()).collect();
    for (key, program) in keys.into_iter().zip(["cp", "tar"]) {
        std::fs::create_dir_all(folder).doing(folder.display())?;
        let mut command = Command::new(program);
        match program {
            "cp" => command.arg("-a").args(&storage).arg(folder),
            // Names that begin at the root are warned of otherwise.
            _ => command.arg("-P").arg("-cf").arg(folder.join("account.tar")).args(&storage),
        };
        cold::sync(&tools.plan.work)?;
        let began = Instant::now();
        run(&mut command)?;
        cold::sync(&tools.plan.work)?;
        tools.recorder.time(key, round, began.elapsed())?;
        remove(folder)?;
    }
    Ok(())
}

fn run(command: &mut Command) -> Result<()> {
    let shown = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output().doing(&shown)?;
    // tar says 1 when a file has changed under it: the server runs.
    let is_done = output.status.success() || shown == "tar" && output.status.code() == Some(1);
    if is_done {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(Error::new(format!("{shown}: {}: {}", output.status, said.lines().next().unwrap_or_default())))
}

fn with_backups<T>(contestant: &mut Contestant, work: impl FnOnce(&dyn Backups) -> Result<T>) -> Result<T> {
    let backups = contestant.server.local().and_then(|local| local.backups());
    work(backups.ok_or_else(|| Error::new("the server has no backups"))?)
}

/// How long it takes until its result is on the disk.
fn timed(
    contestant: &mut Contestant,
    tools: &Tools,
    folder: &Path,
    work: impl FnOnce(&dyn Backups) -> Result<()>,
) -> Result<Duration> {
    // What others have written is not to be waited for in our time.
    cold::sync(&tools.plan.work)?;
    let began = Instant::now();
    with_backups(contestant, work).doing(folder.display())?;
    cold::sync(&tools.plan.work)?;
    Ok(began.elapsed())
}

fn record(tools: &mut Tools, key: Key, round: usize, took: Duration, found: u64, expected: u64) -> Result<()> {
    let verdict = match found == expected {
        true => Verdict::Right,
        false => Verdict::Wrong(format!("{found} messages came back, {expected} were saved")),
    };
    tools.recorder.sample(key, round, took.as_secs_f64() * 1e3, Unit::Ms, Better::Lower, verdict)
}

fn messages(account: &Address, mailbox: &str) -> Result<u64> {
    let mut connection = Connection::login(account)?;
    let quoted = connection.mailbox(mailbox);
    let answer = connection.command(&format!("STATUS {quoted} (MESSAGES)"))?;
    let found = answer.kept.iter().find_map(|line| status_messages(line));
    found.ok_or_else(|| Error::new(format!("STATUS {quoted}: no number of messages")))
}

fn remove(folder: &Path) -> Result<()> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error).doing(folder.display()),
        _ => Ok(()),
    }
}

/// Octets of all files below a folder.
fn bytes_below(folder: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder).doing(folder.display())? {
        let path = entry.doing(folder.display())?.path();
        let metadata = path.symlink_metadata().doing(path.display())?;
        bytes += if metadata.is_dir() { bytes_below(&path)? } else { metadata.len() };
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::{bytes_below, part_messages, remove, run};
    use std::process::Command;

    #[test]
    fn parts() {
        assert_eq!([0, 5, 100, 58_000].map(part_messages), [1, 1, 10, 2_000]);
    }

    #[test]
    fn folders() {
        let folder = tempfile::tempdir().expect("a folder");
        let inner = folder.path().join("a");
        std::fs::create_dir(&inner).expect("made");
        std::fs::write(inner.join("1"), [0; 10]).expect("written");
        std::fs::write(folder.path().join("2"), [0; 5]).expect("written");
        assert_eq!(bytes_below(folder.path()).expect("counted"), 15);
        remove(&inner).expect("removed");
        remove(&inner).expect("not there");
        assert_eq!(bytes_below(folder.path()).expect("counted"), 5);
        assert!(run(&mut Command::new("false")).is_err());
        run(&mut Command::new("true")).expect("done");
    }
}
