//! What may stand where a mailbox file should be, on a real file system: nothing of it hangs or harms, and nothing of the others is lost.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use model::ErrorKind;
use platform::Env;
use store::{Account, AccountFormat, Moment, Options, Store};

use crate::support::*;

struct Place {
    dir: tempfile::TempDir,
    store: Arc<Store>,
    account: Arc<Account>,
}

impl Place {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(Env::real(), dir.path().join("data"), Options::default()).unwrap();
        fs::create_dir(dir.path().join("mail")).unwrap();
        let format = AccountFormat::Mbox { inbox: dir.path().join("inbox"), root: dir.path().join("mail") };
        store.create_account_as(&ann(), &format).unwrap();
        let account = store.account(&ann()).unwrap();
        Place { dir, store, account }
    }

    fn inbox(&self) -> std::path::PathBuf {
        self.dir.path().join("inbox")
    }

    fn numbers(&self) -> Vec<String> {
        let inbox = self.account.mailbox(&name("INBOX")).unwrap();
        numbers(&self.account, inbox).into_iter().map(|(_, number)| number).collect()
    }
}

fn texts(from: u32, to: u32) -> String {
    (from..=to).map(|n| message(n, "")).collect()
}

fn make_pipe(path: &Path) {
    let made = std::process::Command::new("mkfifo").arg(path).status().unwrap();
    assert!(made.success());
}

#[test]
fn no_plain_files() {
    let place = Place::new();
    let mail = place.dir.path().join("mail");
    make_pipe(&mail.join("pipe"));
    fs::create_dir(mail.join("directory")).unwrap();
    std::os::unix::fs::symlink("nowhere", mail.join("dangling")).unwrap();
    std::os::unix::fs::symlink("loop", mail.join("loop")).unwrap();
    fs::write(mail.join("elsewhere.lock"), "").unwrap();
    fs::write(place.dir.path().join("other"), texts(1, 1)).unwrap();
    std::os::unix::fs::symlink("../other", mail.join("link")).unwrap();
    let listed: Vec<String> = place.account.mailboxes().into_iter().map(|info| info.name.to_string()).collect();
    assert_eq!(listed, ["INBOX", "link"]);
    let link = place.account.mailbox(&name("link")).unwrap();
    assert_eq!(numbers(&place.account, link).len(), 1);
    append(&place.account, link, &served(2), "");
    // The link stays one.
    assert!(fs::symlink_metadata(mail.join("link")).unwrap().is_symlink());
    assert!(fs::read_to_string(place.dir.path().join("other")).unwrap().contains("Subject: 2"));
    // A mailbox of a name that something else has.
    let made = place.account.create_mailbox(&name("directory"), &[]).unwrap();
    append(&place.account, made, &served(3), "");
    assert_eq!(place.account.view(made, false).unwrap().all_rows().count(), 1);
    assert!(mail.join("directory").is_dir());
    assert!(fs::read_to_string(mail.join("directory=2F")).unwrap().contains("Subject: 3"));
    let made = place.account.create_mailbox(&name("pipe"), &[]).unwrap();
    append(&place.account, made, &served(4), "");
    assert!(fs::read_to_string(mail.join("pipe=2F")).unwrap().contains("Subject: 4"));
}

#[test]
fn the_file_becomes_something_else() {
    let place = Place::new();
    let inbox = place.account.mailbox(&name("INBOX")).unwrap();
    fs::write(place.inbox(), texts(1, 3)).unwrap();
    assert_eq!(place.numbers(), ["1", "2", "3"]);
    // Replaced by another file, as some programs write.
    fs::write(place.dir.path().join("new"), texts(2, 4)).unwrap();
    fs::rename(place.dir.path().join("new"), place.inbox()).unwrap();
    assert_eq!(place.numbers(), ["2", "3", "4"]);
    // A directory, a pipe, no mbox: an error, and no message is taken for expunged.
    let aside = place.dir.path().join("aside");
    fs::rename(place.inbox(), &aside).unwrap();
    let makers: [fn(&Path); 3] =
        [|path| fs::create_dir(path).unwrap(), make_pipe, |path| fs::write(path, "no mail\n").unwrap()];
    for make in makers {
        make(&place.inbox());
        assert_eq!(place.account.refresh(inbox).unwrap_err().kind(), ErrorKind::Invalid);
        assert_eq!(place.account.view(inbox, false).unwrap().exists(), 3);
        append(&place.account, inbox, &served(9), "\\Deleted");
        place.account.expunge(inbox, None).unwrap();
        assert!(place.account.write_back(inbox, Moment::Close).is_err());
        if place.inbox().is_dir() {
            fs::remove_dir(place.inbox()).unwrap();
        } else {
            fs::remove_file(place.inbox()).unwrap();
        }
    }
    fs::rename(&aside, place.inbox()).unwrap();
    assert_eq!(place.numbers(), ["2", "3", "4"]);
    // Cut in the middle of a message, then gone.
    let text = texts(2, 4);
    fs::write(place.inbox(), &text[..text.len() - 10]).unwrap();
    assert_eq!(place.numbers().len(), 3);
    fs::remove_file(place.inbox()).unwrap();
    assert_eq!(place.numbers(), [""; 0]);
    append(&place.account, inbox, &served(7), "");
    assert_eq!(place.numbers(), ["7"]);
    assert_eq!(place.account.check().unwrap().findings, []);
    drop(place.store);
}

/// A directory above is not there: an unmounted file system is no reason to expunge anything.
#[test]
fn the_place_is_gone() {
    let place = Place::new();
    let mail = place.dir.path().join("mail");
    fs::write(mail.join("a"), texts(1, 2)).unwrap();
    let a = place.account.mailbox(&name("a")).unwrap();
    assert_eq!(numbers(&place.account, a).len(), 2);
    fs::rename(&mail, place.dir.path().join("away")).unwrap();
    assert!(place.account.refresh(a).is_err());
    assert_eq!(place.account.view(a, false).unwrap().exists(), 2);
    fs::rename(place.dir.path().join("away"), &mail).unwrap();
    assert_eq!(numbers(&place.account, a).len(), 2);
}
