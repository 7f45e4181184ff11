//! The file that says of a directory below `accounts/` that the account is in the database.
//!
//! What else is in the directory is a copy: on its way out of the database (`coming`), or left behind when the account went in (`leaving`).
//! The word decides what a node does that finds the account nowhere, because it was killed between two steps of a change of places: who
//! was leaving is let in to the database, who was coming is here.

use std::path::Path;
use std::sync::Arc;

use index::Journal;
use model::{AccountName, Error, ErrorKind, Result};
use platform::{Disk, OpenMode};

use crate::cluster::Cluster;

const FILE: &str = "in-database";
const COMING: &[u8] = b"coming\n";
const LEAVING: &[u8] = b"leaving\n";

/// Which way the account is going, or went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Out of the database, into the directory.
    Coming,
    /// Into the database.
    Leaving,
}

/// What the directory says; `None`: the account is there, or there is no directory.
pub(crate) fn way(disk: &dyn Disk, dir: &Path) -> Result<Option<Way>> {
    match disk.read(&dir.join(FILE)) {
        Ok(word) if word == COMING => Ok(Some(Way::Coming)),
        Ok(word) if word == LEAVING => Ok(Some(Way::Leaving)),
        Ok(_) => Err(Error::new(ErrorKind::Corrupt, "says nothing that is known").context(dir.join(FILE).display())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::from(error).context(dir.join(FILE).display())),
    }
}

/// Says it, durably.
pub(super) fn set(disk: &dyn Disk, dir: &Path, way: Way) -> Result<()> {
    let word = match way {
        Way::Coming => COMING,
        Way::Leaving => LEAVING,
    };
    Ok(disk.replace_file(&dir.join(FILE), &dir.join("in-database.new"), word)?)
}

/// Makes a directory that says that the account is coming, `making` first: nobody ever finds one that says nothing.
pub(super) fn begin(disk: &dyn Disk, dir: &Path, making: &Path) -> Result<()> {
    if disk.exists(dir)? {
        return set(disk, dir, Way::Coming);
    }
    disk.create_dir_all_durable(making)?;
    let file = disk.open(&making.join(FILE), OpenMode::CreateNew)?;
    file.write_at(COMING, 0)?;
    file.sync_all()?;
    disk.sync_dir(making)?;
    disk.rename(making, dir)?;
    Ok(disk.sync_dir(platform::parent_of(dir))?)
}

/// From now on the account is in the directory.
pub(super) fn remove(disk: &dyn Disk, dir: &Path) -> Result<()> {
    disk.remove(&dir.join(FILE))?;
    Ok(disk.sync_dir(dir)?)
}

/// What stands behind an account that may have a directory; `None`: the directory itself, or there is no such account. A change of
/// places that was interrupted between its two last steps is ended.
pub(crate) fn settle(
    cluster: Option<&Arc<dyn Cluster>>,
    disk: &dyn Disk,
    dir: &Path,
    name: &AccountName,
) -> Result<Option<Arc<dyn Journal>>> {
    let way = match disk.exists(dir)? {
        true => match way(disk, dir)? {
            None => return Ok(None),
            way => way,
        },
        false => None,
    };
    let Some(cluster) = cluster else {
        let text = format!("the account {name} is in a database, and none is configured");
        return if way.is_some() { Err(Error::new(ErrorKind::Io, text)) } else { Ok(None) };
    };
    let found = cluster.find(name)?;
    if found.is_some() || way.is_none() {
        return Ok(found);
    }
    match way {
        Some(Way::Leaving) => {
            cluster.publish(name)?;
            cluster.find(name)
        }
        _ if cluster.copy(name, false)?.is_some() => remove(disk, dir).map(|()| None),
        _ => {
            let text = format!("the account {name} is neither in the database nor did it come out of it whole");
            Err(Error::new(ErrorKind::Corrupt, text))
        }
    }
}
