//! After a crash: rewrites are finished or undone, torn messages cut off again.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use model::{ErrorKind, MailboxId, Result};
use platform::{Disk, Env, File};

use super::files::{Files, Unsettled};
use super::record::{Intent, Stage};
use super::{Settings, Target};
use crate::format::mbox::lock::{Access, Locker, MailboxLock};
use crate::format::mbox::rewrite::{self, Rewrite};

/// What [`recover`] says of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recovered {
    /// The file is not what it was before: something was finished, undone or cut off.
    pub is_changed: bool,
    /// Whether its fields say what programs wrote last. Otherwise they may be torn, or ours without that we remember having written them: the
    /// log wins. That stays so until [`Unsettled::settle`].
    pub fields_count: bool,
}

/// Makes a file whole after a crash, or after an error of [`super::write_back`]; at most other times it looks at a few names and does
/// nothing. To be called before anything reads the file; whoever holds its lock for writing calls [`recover_locked`].
///
/// [`ErrorKind::InUse`]: somebody else holds the lock, and there is something to do.
pub fn recover(
    env: &Env,
    locker: &Locker,
    settings: &Settings,
    path: &Path,
    dir: &Path,
    mailbox: MailboxId,
) -> Result<Recovered> {
    let files = Files::new(dir, mailbox);
    if is_needed(&*env.disk, &files)? {
        match locker.lock(path, Access::Write) {
            Ok(lock) => {
                let target = Target { env, path, lock: &lock, dir, mailbox, is_doubtful: true, has_intents: false };
                return recover_locked(target, settings);
            }
            Err(error) if error.kind() == ErrorKind::NotFound => give_up(env, settings, path, dir, mailbox)?,
            Err(error) => return Err(error),
        }
    }
    finished(&env.disk, dir, mailbox, false)
}

/// [`recover`] for who holds the lock.
pub fn recover_locked(target: Target<'_>, settings: &Settings) -> Result<Recovered> {
    let Target { env, path, lock, dir, mailbox, .. } = target;
    let (disk, files) = (&env.disk, Files::new(dir, mailbox));
    if !is_needed(&**disk, &files)? {
        return finished(disk, dir, mailbox, false);
    }
    if rewrite::is_begun(disk, &files.rewrite)? {
        // The two are there at once only when the rewrite is what becomes of the intent, see below.
        Intent::clear(&**disk, &files.append)?;
    }
    let rewritten = rewrite::recover(disk, path, Some(lock.file()), &files.rewrite, settings.rewrite)?;
    let unsettled = Unsettled::of(disk, dir, mailbox);
    if unsettled.is_doubted()? {
        write_again(&**lock.file(), settings.rewrite.copy_bytes)?;
        unsettled.trust()?;
    }
    let is_cut = match Intent::load(&**disk, &files.append)? {
        Some((intent, stage)) => cut(&target, &files, settings, &intent, &stage, lock)?,
        None => false,
    };
    Intent::clear(&**disk, &files.append)?;
    finished(disk, dir, mailbox, is_cut || rewritten == rewrite::Recovered::Finished)
}

fn is_needed(disk: &dyn Disk, files: &Files) -> Result<bool> {
    let has_intent = match disk.metadata(&files.append) {
        Ok(found) => found.len > 0,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => false,
        Err(error) => return Err(error.into()),
    };
    let is_doubted = disk.metadata(&files.writing).is_ok_and(|found| found.len > 0);
    Ok(has_intent || is_doubted || rewrite::is_pending(disk, &files.rewrite)?)
}

/// Makes durable what is read from a file. After a sync has failed the system takes for written what is not, and a power cut
/// would bring back what was there before: fields that would look as if another program had changed them.
fn write_again(file: &dyn File, piece_bytes: usize) -> Result<()> {
    let (len, mut at) = (file.len()?, 0);
    let mut piece = vec![0; piece_bytes.max(1)];
    while at < len {
        let count = usize::try_from(len - at).unwrap_or(usize::MAX).min(piece.len());
        let piece = piece.get_mut(..count).unwrap_or_default();
        file.read_exact_at(piece, at)?;
        file.write_at(piece, at)?;
        at += count as u64;
    }
    Ok(file.sync_data()?)
}

fn finished(disk: &Arc<dyn Disk>, dir: &Path, mailbox: MailboxId, is_changed: bool) -> Result<Recovered> {
    Ok(Recovered { is_changed, fields_count: !Unsettled::of(disk, dir, mailbox).is_marked()? })
}

/// The file is gone, and everything that was to be done with it.
fn give_up(env: &Env, settings: &Settings, path: &Path, dir: &Path, mailbox: MailboxId) -> Result<()> {
    let files = Files::new(dir, mailbox);
    rewrite::recover(&env.disk, path, None, &files.rewrite, settings.rewrite)?;
    let unsettled = Unsettled::of(&env.disk, dir, mailbox);
    if unsettled.is_doubted()? {
        unsettled.trust()?;
    }
    Intent::clear(&*env.disk, &files.append)
}

/// Takes out what was being added: nobody was told that it is there. What others added behind it stays. Whether there was anything.
fn cut(
    target: &Target<'_>,
    files: &Files,
    settings: &Settings,
    intent: &Intent,
    stage: &Stage,
    lock: &MailboxLock,
) -> Result<bool> {
    let file = lock.file();
    if !intent.is_of(&**file)? {
        return Ok(false);
    }
    let len = file.len()?;
    let to = match stage {
        // What stands before them may have been lost with the power: zeros that begin right here are no mail all the same.
        Stage::Grow => rewrite::zeros_end(&**file, intent.from..intent.to.min(len))?,
        Stage::Write if intent.fits(&**file)? => intent.to,
        // Others changed the file since: whatever is there now is a message to everybody.
        Stage::Write => return Ok(false),
        Stage::AtOnce(octets) => intent.reach(&**file, octets)?,
    };
    if to > len || to == intent.from {
        return Ok(false);
    }
    if to == len && *stage != Stage::Write {
        // Done twice it does no harm: what others add meanwhile does not begin with zeros, nor with what was to be added here.
        file.set_len(intent.from)?;
        file.sync_data()?;
        return Ok(true);
    }
    take_out(target, files, settings, intent.from..to)?;
    Ok(true)
}

/// Takes a range out of the file that is there by an intent, and ends that. Others may add to the file before it is known that the
/// range is gone: the intent would take what they add for ours, so a rewrite has to do it even where nothing has to move.
pub(super) fn take_out(target: &Target<'_>, files: &Files, settings: &Settings, range: Range<u64>) -> Result<()> {
    let disk = &target.env.disk;
    let file = Arc::clone(target.lock.file());
    let mut rest = Rewrite::begin(disk, target.path, file, &files.rewrite, settings.rewrite)?;
    rest.keep(range.start)?;
    rest.skip(range.end - range.start);
    // From here on the intent would speak of what others added.
    rest.run_in_place_of(&mut || Intent::clear(&**disk, &files.append))?;
    Ok(())
}
