//! Giving letters to keywords in `dovecot-keywords`, under the lock that Dovecot takes for it: the file is replaced as a whole while
//! `dovecot-uidlist.lock` is there.

use std::path::Path;
use std::time::Duration;

use model::{Keyword, Result};
use platform::{Env, OpenMode};

use super::keywords::Keywords;
use super::{KEYWORDS_FILE, LOCK_FILE};
use crate::format::adoption::read_if_there;

/// A lock that nobody has touched for so long was left behind: Dovecot's own rule.
const STALE_AFTER: Duration = Duration::from_secs(120);

/// How often, and how long in between, a lock is asked for that somebody has.
const LOCK_TRIES: usize = 100;
const LOCK_PAUSE: Duration = Duration::from_millis(5);

/// The lock of a mailbox's lists; removed when it is dropped.
#[derive(Debug)]
pub(super) struct ListLock<'a> {
    env: &'a Env,
    path: std::path::PathBuf,
}

impl<'a> ListLock<'a> {
    /// `None`: another program has it.
    pub(super) fn try_take(env: &'a Env, maildir: &Path) -> Result<Option<Self>> {
        let path = maildir.join(LOCK_FILE);
        for _ in 0..2 {
            match env.disk.open(&path, OpenMode::CreateNew) {
                Ok(_file) => return Ok(Some(ListLock { env, path })),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error.into()),
            }
            let Ok(found) = env.disk.metadata(&path) else { continue };
            if found.modified.saturating_add(STALE_AFTER) > env.clock.now() {
                return Ok(None);
            }
            let _ = env.disk.remove(&path);
        }
        Ok(None)
    }
}

impl<'a> ListLock<'a> {
    /// Like [`ListLock::try_take`], and waits for a moment: others hold it no longer, as a rule.
    pub(super) fn take(env: &'a Env, maildir: &Path) -> Result<Option<Self>> {
        for _ in 0..LOCK_TRIES {
            if let Some(taken) = Self::try_take(env, maildir)? {
                return Ok(Some(taken));
            }
            env.clock.sleep(LOCK_PAUSE);
        }
        Ok(None)
    }
}

impl Drop for ListLock<'_> {
    fn drop(&mut self) {
        // One that stays is stale soon.
        let _ = self.env.disk.remove(&self.path);
    }
}

/// Gives letters to keywords, as long as there are any, and says what all letters stand for then. `None`: the file is locked.
pub(super) fn assign(env: &Env, maildir: &Path, names: &[&Keyword]) -> Result<Option<Keywords>> {
    let Some(_lock) = ListLock::try_take(env, maildir)? else { return Ok(None) };
    let path = maildir.join(KEYWORDS_FILE);
    let mut keywords =
        read_if_there(&*env.disk, &path)?.map_or_else(Keywords::default, |bytes| Keywords::parse(&bytes));
    let before = keywords.clone();
    for name in names {
        keywords.assign(name);
    }
    if keywords != before {
        let mut temporary = path.clone();
        temporary.as_mut_os_string().push(".tmp");
        env.disk.replace_file(&path, &temporary, &keywords.write())?;
    }
    Ok(Some(keywords))
}
