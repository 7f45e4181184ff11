//! Where the mail of a new account lives: what was asked for over what the configuration says, and whether the paths can be used.
//!
//! Nothing is made here; paths that could not be used are refused before there is an account.

use std::path::Path;

use model::{AccountName, Error, ErrorKind, Result};
use platform::Disk;
use store::format::mbox::lock::Method;
use store::{AccountFormat, MaildirLayout};

use super::{AccountForm, LayoutForm, NewMail};
use crate::config::{Config, FormatSection, Layout, MailFormat, MaildirSection, MboxSection};

/// What the configuration says of it.
#[derive(Clone, Debug, Default)]
pub struct NewMailDefaults {
    format: FormatSection,
    mbox: MboxSection,
    maildir: MaildirSection,
}

impl NewMailDefaults {
    /// Of a configuration.
    pub fn of(config: &Config) -> Self {
        NewMailDefaults { format: config.format.clone(), mbox: config.mbox.clone(), maildir: config.maildir.clone() }
    }

    /// The format of a new account of `name`; paths that cannot be used are an error that says why.
    pub fn resolve(&self, name: &AccountName, wish: NewMail, disk: &dyn Disk) -> Result<AccountFormat> {
        let form = wish.format.unwrap_or(match self.format.default {
            MailFormat::Native => AccountForm::Native,
            MailFormat::Mbox => AccountForm::Mbox,
            MailFormat::Sql => AccountForm::Sql,
            MailFormat::Maildir => AccountForm::Maildir,
        });
        if wish.inbox.is_some() && form != AccountForm::Mbox {
            return Err(invalid("--inbox is for --format mbox only".to_owned()));
        }
        if wish.layout.is_some() && form != AccountForm::Maildir {
            return Err(invalid("--layout is for --format maildir only".to_owned()));
        }
        match form {
            AccountForm::Native | AccountForm::Sql if wish.mail_root.is_some() => {
                Err(invalid("--mail-root is for --format mbox and --format maildir only".to_owned()))
            }
            AccountForm::Native => Ok(AccountFormat::Native),
            AccountForm::Sql => Ok(AccountFormat::Sql),
            AccountForm::Mbox => {
                let inbox = wish.inbox.unwrap_or_else(|| self.mbox.inbox.of(name.as_str()));
                let root = wish.mail_root.unwrap_or_else(|| self.mbox.root.of(name.as_str()));
                self.check_inbox(&inbox, disk)?;
                check_root(&root, &inbox, disk)?;
                Ok(AccountFormat::Mbox { inbox, root })
            }
            AccountForm::Maildir => {
                let root = wish.mail_root.unwrap_or_else(|| self.maildir.root.of(name.as_str()));
                let layout = wish.layout.unwrap_or(match self.maildir.layout {
                    Layout::MaildirPlusPlus => LayoutForm::MaildirPlusPlus,
                    Layout::Fs => LayoutForm::Fs,
                });
                check_there(&root, disk)?;
                let layout = match layout {
                    LayoutForm::MaildirPlusPlus => MaildirLayout::MaildirPlusPlus,
                    LayoutForm::Fs => MaildirLayout::Fs,
                };
                Ok(AccountFormat::Maildir { root, layout })
            }
        }
    }

    /// The file may be missing: delivery makes it, or the first message. Its directory may not.
    fn check_inbox(&self, inbox: &Path, disk: &dyn Disk) -> Result<()> {
        let shown = inbox.display();
        if !inbox.is_absolute() || inbox.file_name().is_none() {
            return Err(invalid(format!("{shown} is no absolute path of a file")));
        }
        match disk.metadata(inbox) {
            Ok(found) if found.is_file => {}
            Ok(_) => return Err(invalid(format!("{shown} is no plain file: the INBOX has to be an mbox file"))),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(Error::from(error).context(shown)),
        }
        let directory = platform::parent_of(inbox);
        match disk.metadata(directory) {
            Ok(found) if found.is_dir => {}
            Ok(_) => return Err(invalid(format!("{} is no directory", directory.display()))),
            Err(error) => return Err(Error::from(error).context(format!("the directory of {shown}"))),
        }
        let makes_dotlocks = self.mbox.write_locks.0.contains(&Method::Dotlock);
        if makes_dotlocks && rustix::fs::access(directory, rustix::fs::Access::WRITE_OK).is_err() {
            return Err(Error::new(
                ErrorKind::NotPermitted,
                format!(
                    "no file can be made in {}, as the dotlock of {shown} must be: give this user the right (on Debian, the group \
                     mail), or leave \"dotlock\" out of mbox.write_locks if no other program uses dotlocks",
                    directory.display()
                ),
            ));
        }
        Ok(())
    }
}

/// The directory may be missing, but not everything above it.
fn check_root(root: &Path, inbox: &Path, disk: &dyn Disk) -> Result<()> {
    let shown = root.display();
    if root.starts_with(inbox) {
        return Err(invalid(format!("{shown} lies below the INBOX, which is a file")));
    }
    if inbox.starts_with(root) && platform::parent_of(inbox) != root {
        return Err(invalid(format!("the INBOX {} lies below a mailbox of {shown}", inbox.display())));
    }
    check_there(root, disk)
}

/// A directory that may be missing, but not everything above it.
fn check_there(root: &Path, disk: &dyn Disk) -> Result<()> {
    let shown = root.display();
    if !root.is_absolute() {
        return Err(invalid(format!("{shown} is no absolute path")));
    }
    let there = root.ancestors().find_map(|path| match disk.metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        result => Some((path, result)),
    });
    match there {
        Some((_, Ok(found))) if found.is_dir => Ok(()),
        Some((path, Err(error))) => Err(Error::from(error).context(path.display())),
        Some((path, Ok(_))) => Err(invalid(format!("{} is no directory", path.display()))),
        None => Err(invalid(format!("nothing above {shown} exists"))),
    }
}

fn invalid(text: String) -> Error {
    Error::new(ErrorKind::Invalid, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use platform::real::RealDisk;

    fn resolve(wish: NewMail, defaults: &NewMailDefaults) -> Result<AccountFormat> {
        defaults.resolve(&AccountName::new("ann").unwrap(), wish, &RealDisk)
    }

    fn mbox(inbox: &Path, root: &Path) -> NewMail {
        NewMail {
            format: Some(AccountForm::Mbox),
            inbox: Some(inbox.into()),
            mail_root: Some(root.into()),
            layout: None,
        }
    }

    #[test]
    fn what_is_not_said_is_configured() {
        let place = tempfile::tempdir().unwrap();
        let native = NewMailDefaults::default();
        assert_eq!(resolve(NewMail::default(), &native).unwrap(), AccountFormat::Native);

        let text = |end: &str| format!("{}/%u{end}", place.path().display());
        let mut config = Config::default();
        config.format.default = MailFormat::Mbox;
        config.mbox.inbox.0 = text("");
        config.mbox.root.0 = text("-mail");
        let configured = NewMailDefaults::of(&config);
        let expected = AccountFormat::Mbox { inbox: place.path().join("ann"), root: place.path().join("ann-mail") };
        assert_eq!(resolve(NewMail::default(), &configured).unwrap(), expected);
        let wish = NewMail { format: Some(AccountForm::Native), ..NewMail::default() };
        assert_eq!(resolve(wish, &configured).unwrap(), AccountFormat::Native);
    }

    #[test]
    fn paths_that_cannot_be_used_are_refused() {
        let place = tempfile::tempdir().unwrap();
        let (dir, file) = (place.path().join("dir"), place.path().join("file"));
        std::fs::create_dir(&dir).unwrap();
        std::fs::write(&file, "").unwrap();
        let mail = dir.join("mail");
        for (inbox, root, why) in [
            (dir.as_path(), mail.as_path(), "no plain file"),
            (&place.path().join("missing/in"), &mail, "the directory of"),
            (Path::new("in"), &mail, "no absolute path"),
            (&file, Path::new("mail"), "no absolute path"),
            (&file, &file, "which is a file"),
            (&file, &file.join("below"), "which is a file"),
            (&dir.join("in"), &file, "is no directory"),
            (&dir.join("x"), place.path(), "below a mailbox"),
        ] {
            let error = resolve(mbox(inbox, root), &NewMailDefaults::default()).unwrap_err();
            assert!(error.to_string().contains(why), "{error} instead of {why}");
        }
        assert!(resolve(mbox(&file, &mail), &NewMailDefaults::default()).is_ok());
        assert!(resolve(mbox(&dir.join("not-yet"), &dir), &NewMailDefaults::default()).is_ok());
        let wish = NewMail { inbox: Some(file), ..NewMail::default() };
        assert!(resolve(wish, &NewMailDefaults::default()).unwrap_err().to_string().contains("--format mbox"));
    }
}
