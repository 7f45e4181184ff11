//! Users for servers that ask the system: the server sees a list of the run's at `/etc/passwd`, the system's users and the accounts.

use super::daemon::Site;
use crate::error::{Doing, Result};
use crate::server::tree::{Mount, write};
use std::path::PathBuf;

const USERS: &str = "/etc/passwd";
/// The password of all accounts, as crypt(5) writes it.
const PASSWORD: &str = "$1$mailyard$xW51jGjdvB7FF1otpjWC1.";

fn path(site: &Site) -> PathBuf {
    site.config().join("passwd")
}

/// Shows the list to a server that is started; it has to be there by then, and is written in place later.
pub fn mount(site: &Site) -> Result<Mount> {
    let path = path(site);
    if !path.exists() {
        std::fs::copy(USERS, &path).doing(USERS)?;
    }
    Ok(Mount::Bind { from: path, at: USERS.into() })
}

/// Writes the list and makes the accounts' folders.
pub fn set(site: &Site, users: &[String]) -> Result<()> {
    let (uid, gid) = site.owner;
    let mut text = std::fs::read_to_string(USERS).doing(USERS)?;
    for user in users {
        let home = site.mail().join(user);
        site.make_owned(&home)?;
        text.push_str(&format!("{user}:{PASSWORD}:{uid}:{gid}::{}:/bin/sh\n", home.display()));
    }
    write(&path(site), &text)
}
