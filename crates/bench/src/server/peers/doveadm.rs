//! `doveadm import`: Dovecot's own way from an mbox file to any of its formats. `doveadm index`: to its full-text index.

use super::daemon::Site;
use crate::error::{Doing, Error, Result};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

const PROGRAM: &str = "/usr/bin/doveadm";

/// Makes the mailbox of the user from the mbox file, with the configuration that the server uses. `None` when the program is not in the
/// system's folders: an unpacked one is only seen by the server.
pub fn import(site: &Site, user: &str, mailbox: &str, mbox: &Path) -> Result<Option<String>> {
    if site.installed.tree.is_some() || !Path::new(PROGRAM).is_file() {
        return Ok(None);
    }
    // The mailbox is called as its file is; a folder with nothing else in it is what is imported.
    let source = site.work.join("import");
    std::fs::create_dir_all(&source).doing(source.display())?;
    offer(mbox, &source.join(mailbox))?;
    // A sync for each message is for a server that acknowledges each; who converts syncs once, at the end.
    let from = format!("mbox:{}:INDEX=MEMORY", source.display());
    let done = run(site, user, &["-o", "mail_fsync=never"], &["import", &from, "", "all"]);
    std::fs::remove_dir_all(&source).doing(source.display())?;
    done?;
    Ok(Some("doveadm import (mail_fsync=never), then syncfs".into()))
}

/// Brings the full-text index of the mailbox up to date.
pub fn index(site: &Site, user: &str, mailbox: &str) -> Result<String> {
    if site.installed.tree.is_some() {
        return Err(Error::new("an unpacked doveadm cannot be run: install dovecot-fts-xapian"));
    }
    run(site, user, &[], &["index", mailbox])?;
    Ok("doveadm index".into())
}

/// Runs doveadm as the owner of the mail, with the configuration that the server uses.
fn run(site: &Site, user: &str, options: &[&str], command: &[&str]) -> Result<()> {
    let mut doveadm = Command::new(PROGRAM);
    // Without -u there is no question to the server who the user is: the environment says it.
    doveadm.args(options).arg("-c").arg(site.config().join("dovecot.conf")).args(command);
    doveadm.env("USER", user).env("HOME", site.mail().join(user)).stdin(Stdio::null());
    if site.root {
        doveadm.uid(site.owner.0).gid(site.owner.1);
    }
    let output = doveadm.output().doing(PROGRAM)?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).trim().to_string();
        return Err(Error::new(format!("doveadm {}: {}: {said}", command.join(" "), output.status)));
    }
    Ok(())
}

/// Makes the file available to the mail's owner under another name, without a copy where that is possible.
fn offer(mbox: &Path, at: &Path) -> Result<()> {
    const READABLE_BY_OTHERS: u32 = 0o004;
    let mode = mbox.metadata().doing(mbox.display())?.permissions().mode();
    if mode & READABLE_BY_OTHERS != 0 && std::fs::hard_link(mbox, at).is_ok() {
        return Ok(());
    }
    std::fs::copy(mbox, at).doing(at.display())?;
    std::fs::set_permissions(at, std::fs::Permissions::from_mode(0o644)).doing(at.display())
}

#[cfg(test)]
mod tests {
    use super::offer;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    #[test]
    fn a_link_where_possible() {
        let folder = tempfile::tempdir().expect("a folder");
        let (mbox, link, copy) = (folder.path().join("a"), folder.path().join("b"), folder.path().join("c"));
        std::fs::write(&mbox, "From x\n").expect("written");
        let mode = |mode| std::fs::set_permissions(&mbox, std::fs::Permissions::from_mode(mode)).expect("set");
        mode(0o644);
        offer(&mbox, &link).expect("offered");
        assert_eq!(link.metadata().expect("there").ino(), mbox.metadata().expect("there").ino());
        mode(0o600);
        offer(&mbox, &copy).expect("offered");
        assert_eq!(copy.metadata().expect("there").permissions().mode() & 0o777, 0o644);
    }
}
