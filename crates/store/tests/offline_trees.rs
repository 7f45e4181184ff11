//! Trees that other servers have left: what they say of UIDs, flags and dates comes with the mail.
#![allow(clippy::unwrap_used)]

extern crate mailyard_store as store;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::{AccountName, MailboxName, SystemFlag, UidSet};
use platform::sim::SimEnv;
use platform::{Disk, OpenMode, Timestamp};
use store::import::{ImportOptions, ImportReport, import};
use store::{Account, FlagNames, Options, Store, StoreFlags, StoreMode};

struct Fixture {
    _sim: SimEnv,
    disk: Arc<dyn Disk>,
    account: Arc<Account>,
}

fn fixture() -> Fixture {
    let sim = SimEnv::new(5);
    let env = sim.env();
    let disk = Arc::clone(&env.disk);
    disk.create_dir_all(Path::new("/mail")).unwrap();
    let store = Store::open(env, PathBuf::from("/data"), Options::default()).unwrap();
    let name = AccountName::new("ann").unwrap();
    store.create_account(&name).unwrap();
    let account = store.account(&name).unwrap();
    Fixture { _sim: sim, disk, account }
}

impl Fixture {
    fn put(&self, path: &str, bytes: impl AsRef<[u8]>) {
        let path = Path::new(path);
        self.disk.create_dir_all(platform::parent_of(path)).unwrap();
        let file = self.disk.open(path, OpenMode::Create).unwrap();
        file.set_len(0).unwrap();
        file.write_at(bytes.as_ref(), 0).unwrap();
        file.set_modified(Timestamp::from_seconds(1_000_000_000)).unwrap();
    }

    /// A Maildir with these files in `cur`.
    fn maildir(&self, path: &str, names: &[&str]) {
        for dir in ["cur", "new", "tmp"] {
            self.disk.create_dir_all(&Path::new(path).join(dir)).unwrap();
        }
        names.iter().for_each(|name| self.put(&format!("{path}/cur/{name}"), format!("Subject: {name}\n\nx\n")));
    }

    fn run(&self, path: &str) -> ImportReport {
        self.run_with(path, &ImportOptions { read_ahead: false, ..ImportOptions::default() })
    }

    fn run_with(&self, path: &str, options: &ImportOptions) -> ImportReport {
        import(&self.account, Path::new(path), options, &mut |_| ControlFlow::Continue(())).unwrap()
    }

    /// `UIDVALIDITY UIDNEXT`, then `UID subject flags` for each message.
    fn shown(&self, mailbox: &str) -> Vec<String> {
        let id = self.account.mailbox(&MailboxName::new(mailbox).unwrap()).unwrap();
        let status = self.account.status(id).unwrap();
        let mut out = vec![format!("{} {}", status.uid_validity, status.uid_next.unwrap())];
        let view = self.account.view(id, false).unwrap();
        let mut reader = self.account.reader();
        for entry in view.all_rows() {
            let mut bytes = Vec::new();
            reader.read(entry.email_id, 0..u64::MAX, &mut bytes).unwrap();
            let text = String::from_utf8(bytes).unwrap();
            let subject = text.lines().find_map(|line| line.strip_prefix("Subject: ")).unwrap();
            let mut flags: Vec<_> = view.keywords().names(entry.flags).collect();
            flags.sort_unstable();
            out.push(format!("{} {subject} {}", entry.uid, flags.join(" ")).trim_end().to_owned());
        }
        out
    }

    fn subscribed(&self) -> Vec<String> {
        let infos = self.account.mailboxes().into_iter().filter(|info| info.subscribed);
        infos.map(|info| info.name.as_str().to_owned()).collect()
    }
}

fn notes(report: &ImportReport) -> Vec<String> {
    report.notes.iter().map(|note| format!("{}: {}", note.file.display(), note.what)).collect()
}

#[test]
fn a_maildir_of_dovecot_and_what_came_since() {
    let fixture = fixture();
    fixture.maildir("/mail/ann", &["3.c,S=16,W=19:2,Sab", "1.a:2,", "9.new:2,F", "2.b:2,RPz"]);
    fixture.put("/mail/ann/dovecot-uidlist", "3 V777 N12 Gabc\n4 :1.a:2,S\n7 W19 :2.b\n8 :gone\n9 :3.c,S=16,W=19\n");
    fixture.put("/mail/ann/dovecot-keywords", "0 $Label1\n1 Work\n");
    fixture.put("/mail/ann/subscriptions", "V\t2\n\nINBOX\nEntw&APw-rfe\tSub\nelsewhere\n");
    fixture.maildir("/mail/ann/.Entw&APw-rfe.Sub", &["5.x:2,"]);
    fixture.put("/mail/ann/.Entw&APw-rfe.Sub/dovecot-uidlist", "3 V778 N2\n1 :5.x\n");
    fixture.maildir("/mail/ann/.none", &[]);
    fixture.put("/mail/ann/.none/dovecot-uidlist", "3 V779 N40\n");
    let report = fixture.run("/mail/ann");
    assert_eq!((report.imported, report.already_there, report.skipped), (5, 0, 0));
    assert_eq!(
        notes(&report),
        [
            "/mail/ann/dovecot-keywords: 1 messages have keyword letters that no line of it explains: these keywords are lost"
        ]
    );
    let inbox = [
        "777 13",
        "4 1.a:2,",
        "7 2.b:2,RPz $Forwarded \\Answered",
        "9 3.c,S=16,W=19:2,Sab $Label1 Work \\Seen",
        "12 9.new:2,F \\Flagged",
    ];
    assert_eq!(fixture.shown("INBOX"), inbox);
    assert_eq!(fixture.shown("Entwürfe/Sub"), ["778 2", "1 5.x:2,"]);
    assert_eq!(fixture.shown("none"), ["779 40"]);
    assert_eq!(fixture.subscribed(), ["Entwürfe/Sub", "INBOX", "elsewhere"]);

    // Again: nothing, and what was changed here since stays.
    let id = fixture.account.mailbox(&MailboxName::inbox()).unwrap();
    let flags = FlagNames { system: vec![SystemFlag::Draft], keywords: Vec::new() };
    let request = StoreFlags { mode: StoreMode::Replace, flags, unchanged_since: None };
    fixture.account.store_flags(id, &UidSet::range(4, 4), &request).unwrap();
    let report = fixture.run("/mail/ann");
    assert_eq!((report.imported, report.already_there), (0, 5));
    assert_eq!(fixture.shown("INBOX")[1], "4 1.a:2, \\Draft");

    // The server has gone on: it has given the guest a UID after that of an even newer message, and flags have changed.
    fixture.maildir("/mail/ann", &["10.later:2,"]);
    fixture.disk.rename(Path::new("/mail/ann/cur/1.a:2,"), Path::new("/mail/ann/cur/1.a:2,S")).unwrap();
    fixture.put("/mail/ann/dovecot-uidlist", "3 V777 N14\n4 :1.a\n7 :2.b\n9 :3.c,S=16,W=19\n12 :10.later\n13 :9.new\n");
    let report = fixture.run("/mail/ann");
    assert_eq!((report.imported, report.already_there), (1, 5));
    let shown = fixture.shown("INBOX");
    assert_eq!(shown[1], "4 1.a:2, \\Seen");
    assert_eq!(shown[4..], ["12 9.new:2,F \\Flagged", "13 10.later:2,"], "each once");
    assert_eq!(fixture.run("/mail/ann").imported, 0);
}

#[test]
fn a_guest_that_was_removed_takes_no_message_with_it() {
    let fixture = fixture();
    fixture.maildir("/mail/ann", &["1.a", "2.b"]);
    fixture.put("/mail/ann/dovecot-uidlist", "3 V5 N2\n1 :1.a\n");
    fixture.put("/mail/ann/subscriptions", "INBOX\n");
    fixture.run("/mail/ann");
    assert_eq!(fixture.shown("INBOX"), ["5 3", "1 1.a", "2 2.b"]);
    fixture.disk.remove(Path::new("/mail/ann/cur/2.b")).unwrap();
    fixture.maildir("/mail/ann", &["3.c"]);
    fixture.put("/mail/ann/dovecot-uidlist", "3 V5 N3\n1 :1.a\n2 :3.c\n");
    assert_eq!(fixture.run("/mail/ann").imported, 1);
    assert_eq!(fixture.shown("INBOX"), ["5 4", "1 1.a", "2 2.b", "3 3.c"]);
}

#[test]
fn directories_as_levels() {
    let fixture = fixture();
    fixture.maildir("/mail/Maildir", &["1.a"]);
    fixture.put("/mail/Maildir/dovecot-uidlist", "3 V5 N2\n1 :1.a\n");
    fixture.maildir("/mail/Maildir/pure/Entw&APw-rfe", &["2.b"]);
    fixture.put("/mail/Maildir/pure/Entw&APw-rfe/dovecot-uidlist", "1 6 8\n7 2.b\n");
    fixture.put("/mail/Maildir/subscriptions", "pure/Entw&APw-rfe\n");
    let report = fixture.run("/mail/Maildir");
    assert_eq!(report.imported, 2);
    assert_eq!(fixture.shown("pure/Entwürfe"), ["6 8", "7 2.b"]);
    assert_eq!(fixture.subscribed(), ["pure/Entwürfe"]);
}

#[test]
fn a_maildir_of_courier() {
    let fixture = fixture();
    fixture.maildir("/mail/ann", &["1.a,S=16:2,S", "2.b,S=16:2,"]);
    fixture.put("/mail/ann/courierimapuiddb", "1 795331411 4\n1 1.a,S=16\n3 2.b,S=16\n");
    fixture.put("/mail/ann/courierimapkeywords/:list", "$Label1\nfoo\n\n1.a,S=16:0 1\n");
    fixture.put("/mail/ann/courierimapkeywords/.5984439.2.b,S=16", "bar\n");
    fixture.put("/mail/ann/courierimapsubscribed", "INBOX\nINBOX.Entwürfe\n");
    fixture.maildir("/mail/ann/.Entwürfe", &["3.c:2,"]);
    fixture.put("/mail/ann/.Entwürfe/courierimapuiddb", "1 9 2\n1 3.c\n");
    let report = fixture.run("/mail/ann");
    assert_eq!((report.imported, notes(&report)), (3, Vec::new()));
    assert_eq!(fixture.shown("INBOX"), ["795331411 4", "1 1.a,S=16:2,S $Label1 \\Seen foo", "3 2.b,S=16:2, bar"]);
    assert_eq!(fixture.shown("Entwürfe"), ["9 2", "1 3.c:2,"]);
    assert_eq!(fixture.subscribed(), ["Entwürfe", "INBOX"]);
}

#[test]
fn mbox_files_of_dovecot() {
    let fixture = fixture();
    let from = "From a@b Thu Aug 22 12:36:23 2002\n";
    fixture.put(
        "/mail/ann/Entw&APw-rfe/Sub",
        [
            from,
            "Subject: 1\nX-IMAPbase: 1108746240 0000000009 foo\nX-UID: 3\nStatus: RO\nX-Keywords: foo        \nContent-Length: 2\n\nx\n\n",
            from,
            "Subject: 2\nX-UID: 7\nStatus: O\nX-Status: F\n\ny\n\n",
            from,
            "Subject: 3\n\nz\n",
        ]
        .concat(),
    );
    fixture.put("/mail/ann/.subscriptions", "V\t2\n\nEntw&APw-rfe\tSub\n");
    let report = fixture.run("/mail/ann");
    assert_eq!((report.imported, notes(&report)), (3, Vec::new()));
    assert_eq!(fixture.shown("Entwürfe/Sub"), ["1108746240 11", "3 1 \\Seen foo", "7 2 \\Flagged", "10 3"]);
    let id = fixture.account.mailbox(&MailboxName::new("Entwürfe/Sub").unwrap()).unwrap();
    let view = fixture.account.view(id, false).unwrap();
    let first = view.all_rows().next().unwrap();
    let mut bytes = Vec::new();
    fixture.account.reader().read(first.email_id, 0..u64::MAX, &mut bytes).unwrap();
    assert_eq!(String::from_utf8(bytes).unwrap(), "Subject: 1\r\n\r\nx\r\n", "as its server has served it");
    assert_eq!(first.internal_date.to_string(), "22-Aug-2002 12:36:23 +0000");
    assert_eq!(fixture.run("/mail/ann").imported, 0);
}

/// The files of a mailbox that Cyrus 3.6.1 wrote.
fn cyrus(fixture: &Fixture, from: &str, to: &str) {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/cyrus-3.6").join(from);
    for entry in std::fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        fixture.put(&format!("{to}/{}", entry.file_name().to_str().unwrap()), std::fs::read(entry.path()).unwrap());
    }
}

#[test]
fn a_spool_of_cyrus() {
    let fixture = fixture();
    cyrus(&fixture, "inbox", "/mail/spool/uuid/k/5/k5sz6");
    cyrus(&fixture, "sub", "/mail/spool/uuid/7/b/7bvjj");
    let report = fixture.run("/mail/spool");
    assert_eq!((report.imported, notes(&report)), (5, Vec::new()));
    let inbox = [
        "1795332183 6",
        "1 x0 $Label1 \\Seen foo",
        "2 x1",
        "3 x2 $Forwarded \\Answered \\Flagged",
        "5 x4 \\Draft \\Seen bar",
    ];
    assert_eq!(fixture.shown("INBOX"), inbox);
    assert_eq!(fixture.shown("Entwürfe/Sub"), ["1795332184 2", "1 x9 zz"]);
    let id = fixture.account.mailbox(&MailboxName::inbox()).unwrap();
    let view = fixture.account.view(id, false).unwrap();
    let first = view.all_rows().next().unwrap();
    assert_eq!(first.internal_date.to_string(), " 1-Feb-2003 03:05:00 +0000");
    assert!(first.modseq.0 > 7, "above what clients know");
    assert_eq!(fixture.run("/mail/spool").imported, 0);

    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/cyrus-3.6/sub.db");
    fixture.put("/mail/sub.db", std::fs::read(path).unwrap());
    assert_eq!(fixture.run("/mail/sub.db").imported, 0);
    assert!(fixture.subscribed().contains(&"Entwürfe/Sub".to_owned()));
}

#[test]
fn a_spool_of_many_users_and_a_file_that_is_gone() {
    let fixture = fixture();
    // As before 3.6: the path is the name.
    let header = |flags: &str| {
        let fixed = b"\xa1\x02\x8b\x0dCyrus mailbox header\n\"The best thing about this system was that it had lots of goals.\"\n\t--Jim Morris on Andrew\n";
        [&fixed[..], format!("user.x\tid\n{flags}\nx\tlrs\t\n").as_bytes()].concat()
    };
    for user in ["ann", "bob"] {
        cyrus(&fixture, "inbox", &format!("/mail/spool/a/user/{user}/old^box"));
        fixture.put(&format!("/mail/spool/a/user/{user}/old^box/cyrus.header"), header("foo  $Forwarded b(d"));
    }
    fixture.disk.remove(Path::new("/mail/spool/a/user/bob/old^box/2.")).unwrap();
    let options = ImportOptions { owner: Some("bob@example.org".to_owned()), ..ImportOptions::default() };
    let report = fixture.run_with("/mail/spool", &options);
    assert_eq!((report.imported, report.skipped), (3, 2));
    let notes = notes(&report);
    assert!(
        notes[0].contains("those of ann") && notes.iter().any(|note| note.contains("2.: it cannot be opened")),
        "{notes:?}"
    );
    assert!(notes.iter().any(|note| note.contains("\"b(d\" is no keyword")), "{notes:?}");
    assert!(notes.iter().any(|note| note.contains("1 flags have no name")), "{notes:?}");
    assert_eq!(
        fixture.shown("old.box"),
        ["1795332183 6", "1 x0 \\Seen foo", "3 x2 $Forwarded \\Answered \\Flagged", "5 x4 \\Draft \\Seen"]
    );
}

#[test]
fn a_mailbox_with_mail_of_its_own_keeps_it() {
    let fixture = fixture();
    fixture.maildir("/mail/ann", &["1.a"]);
    fixture.put("/mail/ann/dovecot-uidlist", "3 V5 N9\n8 :1.a\n");
    fixture.put("/mail/ann/subscriptions", "INBOX\n");
    fixture.maildir("/mail/other", &["2.b"]);
    let options = ImportOptions { mailbox: Some(MailboxName::inbox()), ..ImportOptions::default() };
    fixture.run_with("/mail/other", &options);
    let report = fixture.run("/mail/ann");
    assert!(notes(&report)[0].contains("has mail of its own"), "{:?}", notes(&report));
    assert_eq!(fixture.shown("INBOX")[1..], ["1 2.b", "2 1.a"]);
    assert_eq!(fixture.run("/mail/ann").imported, 0);
    // Another UIDVALIDITY: nobody knows which message is which.
    fixture.put("/mail/ann/dovecot-uidlist", "3 V6 N9\n8 :1.a\n");
    assert_eq!((fixture.run("/mail/ann").imported, fixture.run("/mail/ann").skipped), (0, 1));
}
