//! The users file on disk: read again whenever it was replaced, written as a whole.
//!
//! Only the process that holds the store's lock writes it; any process may read it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use model::{AccountName, Error, ErrorKind, Result};
use platform::{Env, Timestamp};

use super::{User, UserFile};

/// Tells one version of the file from another: what [`platform::Disk::replace_file`] and every editor change.
type Version = (u64, Timestamp, u64);

/// The users, as the file has them now.
pub struct Directory {
    env: Env,
    path: PathBuf,
    loaded: Mutex<Loaded>,
}

struct Loaded {
    version: Option<Version>,
    file: Arc<UserFile>,
}

impl Directory {
    /// The users of the data directory `data`; the file is made when it is missing.
    pub fn open(env: Env, data: &Path) -> Result<Self> {
        let path = data.join("users");
        let context = |error: Error| error.context(path.display());
        if !env.disk.exists(&path).map_err(|e| context(e.into()))? {
            env.disk.create_dir_all_durable(data).map_err(|e| context(e.into()))?;
            write(&env, &path, &UserFile::new(&*env.random)).map_err(context)?;
        }
        let (version, file) = read(&env, &path).map_err(context)?;
        Ok(Directory { env, path, loaded: Mutex::new(Loaded { version, file }) })
    }

    /// What the file says now. When it cannot be read, what it said before: a slip of an editor locks nobody out of a running server.
    pub fn current(&self) -> Arc<UserFile> {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        let version = version(&self.env, &self.path);
        if version.is_some() && version != loaded.version {
            match read(&self.env, &self.path) {
                Ok((version, file)) => {
                    for (_, wrong) in &file.odd_lines {
                        tracing::warn!(path = %self.path.display(), "users file: {wrong}");
                    }
                    *loaded = Loaded { version, file };
                }
                Err(error) => {
                    tracing::error!(path = %self.path.display(), %error, "the users file cannot be read; the old users stay");
                    // Not again for every login.
                    loaded.version = version;
                }
            }
        }
        Arc::clone(&loaded.file)
    }

    /// Adds a user or replaces its credentials.
    pub fn put(&self, user: User) -> Result<()> {
        self.change(|file| {
            file.users.insert(user.name.clone(), user);
            Ok(())
        })
    }

    /// Removes a user; [`ErrorKind::NotFound`].
    pub fn remove(&self, name: &AccountName) -> Result<()> {
        self.change(|file| match file.users.remove(name) {
            Some(_) => Ok(()),
            None => Err(Error::new(ErrorKind::NotFound, format!("there is no user {name}"))),
        })
    }

    fn change(&self, change: impl FnOnce(&mut UserFile) -> Result<()>) -> Result<()> {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        // From the file, not from memory: an editor may have been here.
        let (_, file) = read(&self.env, &self.path)?;
        let mut file = UserFile::clone(&file);
        change(&mut file)?;
        write(&self.env, &self.path, &file).map_err(|error| error.context(self.path.display()))?;
        *loaded = Loaded { version: version(&self.env, &self.path), file: Arc::new(file) };
        Ok(())
    }
}

fn version(env: &Env, path: &Path) -> Option<Version> {
    let metadata = env.disk.metadata(path).ok()?;
    Some((metadata.inode, metadata.modified, metadata.len))
}

/// The version is taken first: a file that is replaced in between is read once more the next time, never once too few.
fn read(env: &Env, path: &Path) -> Result<(Option<Version>, Arc<UserFile>)> {
    let version = version(env, path);
    let text = String::from_utf8(env.disk.read(path)?)
        .map_err(|_| Error::new(ErrorKind::Invalid, "the users file is not UTF-8"))?;
    Ok((version, Arc::new(UserFile::parse(&text)?)))
}

fn write(env: &Env, path: &Path, file: &UserFile) -> Result<()> {
    env.disk.replace_file(path, &path.with_extension("new"), file.to_text().as_bytes())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::users::{Credentials, ScramSecrets};

    fn user(name: &str, salt: &[u8]) -> User {
        let credentials = Credentials { argon2id: "$argon2id$v=19$x".into(), scram: ScramSecrets::decoy(salt, name) };
        User { name: AccountName::new(name).unwrap(), credentials }
    }

    #[test]
    fn users_come_and_go() {
        let data = tempfile::tempdir().unwrap();
        let directory = Directory::open(Env::real(), data.path()).unwrap();
        let key = directory.current().decoy_key.clone();
        directory.put(user("ann", b"1")).unwrap();
        directory.put(user("bob", b"1")).unwrap();
        directory.put(user("ann", b"2")).unwrap();
        directory.remove(&AccountName::new("bob").unwrap()).unwrap();
        let error = directory.remove(&AccountName::new("bob").unwrap()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);

        let again = Directory::open(Env::real(), data.path()).unwrap().current();
        assert_eq!(again.users.values().collect::<Vec<_>>(), [&user("ann", b"2")]);
        assert_eq!(again.decoy_key, key, "decoys stay the same");
    }

    #[test]
    fn a_replaced_file_is_read_and_a_broken_one_is_not() {
        let data = tempfile::tempdir().unwrap();
        let directory = Directory::open(Env::real(), data.path()).unwrap();
        let other = Directory::open(Env::real(), data.path()).unwrap();
        other.put(user("ann", b"1")).unwrap();
        assert_eq!(directory.current().users.len(), 1);
        std::fs::write(data.path().join("users"), "nonsense").unwrap();
        assert_eq!(directory.current().users.len(), 1);
        assert!(directory.put(user("bob", b"1")).is_err(), "what cannot be read is not overwritten");
    }
}
