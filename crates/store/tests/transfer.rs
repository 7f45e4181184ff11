//! Import and export: what comes in, what goes out, and that the two undo each other.
#![allow(clippy::unwrap_used)]

extern crate mailyard_store as store;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::{AccountName, DateTime, Keyword, MailboxName, SystemFlag, UidSet};
use platform::sim::SimEnv;
use platform::{Disk, OpenMode, Timestamp};
use store::export::{ExportForm, ExportOptions, export};
use store::import::{ImportOptions, ImportReport, import};
use store::{Account, FlagNames, NewMessage, Options, Store};

struct Fixture {
    sim: SimEnv,
    disk: Arc<dyn Disk>,
    store: Arc<Store>,
}

fn fixture() -> Fixture {
    let sim = SimEnv::new(3);
    let env = sim.env();
    let disk = Arc::clone(&env.disk);
    disk.create_dir_all(Path::new("/mail")).unwrap();
    let store = Store::open(env, PathBuf::from("/data"), Options::default()).unwrap();
    Fixture { sim, disk, store }
}

impl Fixture {
    fn account(&self, name: &str) -> Arc<Account> {
        let name = AccountName::new(name).unwrap();
        self.store.create_account(&name).unwrap();
        self.store.account(&name).unwrap()
    }

    fn put(&self, path: &str, bytes: &[u8]) {
        let path = Path::new(path);
        self.disk.create_dir_all(platform::parent_of(path)).unwrap();
        let file = self.disk.open(path, OpenMode::Create).unwrap();
        file.set_len(0).unwrap();
        file.write_at(bytes, 0).unwrap();
    }

    fn put_at(&self, path: &str, bytes: &[u8], modified: i64) {
        self.put(path, bytes);
        let file = self.disk.open(Path::new(path), OpenMode::ReadWrite).unwrap();
        file.set_modified(Timestamp::from_seconds(modified)).unwrap();
    }
}

fn run(account: &Account, path: &str) -> ImportReport {
    let options = ImportOptions { read_ahead: false, ..ImportOptions::default() };
    import(account, Path::new(path), &options, &mut |_| ControlFlow::Continue(())).unwrap()
}

#[derive(Debug, PartialEq, Eq, Clone)]
struct Message {
    bytes: String,
    flags: String,
    date: String,
}

/// The messages of a mailbox.
fn messages(account: &Account, mailbox: &str) -> Vec<Message> {
    let id = account.mailbox(&MailboxName::new(mailbox).unwrap()).unwrap();
    let view = account.view(id, false).unwrap();
    let mut reader = account.reader();
    let read = view.all_rows().map(|entry| {
        let mut bytes = Vec::new();
        reader.read(entry.email_id, 0..u64::MAX, &mut bytes).unwrap();
        let mut flags: Vec<_> = view.keywords().names(entry.flags).collect();
        flags.sort_unstable();
        Message {
            // One character an octet.
            bytes: bytes.into_iter().map(char::from).collect(),
            flags: flags.join(" "),
            date: entry.internal_date.to_string(),
        }
    });
    read.collect()
}

fn bodies(account: &Account, mailbox: &str) -> Vec<String> {
    messages(account, mailbox).into_iter().map(|message| message.bytes).collect()
}

const FROM: &str = "From a@b Thu Aug 22 12:36:23 2002\n";

#[test]
fn an_mbox_with_everything_odd() {
    let fixture = fixture();
    let account = fixture.account("a");
    let mbox = [
        "\n",
        FROM,
        "Subject: 1\nStatus: RO\nX-Status: F\nX-Keywords: $Junk work\n\n>From here\n>>From there\nFrom nowhere\n\n\n",
        "From - Fri Aug 23 01:02:03 +0200 2002\r\nSubject: 2\r\n\r\ncrlf\r\n\r\n",
        FROM,
        "Subject: 3\nContent-Length: 43\n\nFrom x Thu Aug 22 12:36:23 2002\n>From kept\n\n",
        FROM,
        "Subject: 4\nContent-Length: 3\n\na liar\n",
        FROM,
        "Subject: 5\nX-Mozilla-Status: 0008\n\ngone\n\n",
        FROM,
        FROM,
        "X-IMAP: 1 2\nSubject: DON'T DELETE THIS MESSAGE -- FOLDER INTERNAL DATA\n\nx\n\n",
        FROM,
        "Subject: 6\n\nnul\0 and \u{e9}, no last newline",
    ];
    fixture.put("/mail/Old.mbox", mbox.concat().as_bytes());
    let report = run(&account, "/mail/Old.mbox");
    let found = messages(&account, "Old");
    assert_eq!(
        found.iter().map(|message| message.bytes.as_str()).collect::<Vec<_>>(),
        [
            "Subject: 1\r\nStatus: RO\r\nX-Status: F\r\nX-Keywords: $Junk work\r\n\r\nFrom here\r\n>From there\r\nFrom nowhere\r\n\r\n",
            "Subject: 2\r\n\r\ncrlf\r\n",
            "Subject: 3\r\nContent-Length: 43\r\n\r\nFrom x Thu Aug 22 12:36:23 2002\r\n>From kept\r\n",
            "Subject: 4\r\nContent-Length: 3\r\n\r\na liar\r\n",
            "Subject: 6\r\n\r\nnul\0 and \u{c3}\u{a9}, no last newline",
        ]
    );
    assert_eq!(found[0].flags, "$Junk \\Flagged \\Seen work");
    assert_eq!(found[0].date, "22-Aug-2002 12:36:23 +0000");
    assert_eq!(found[1].date, "23-Aug-2002 01:02:03 +0200");
    assert_eq!((report.imported, report.skipped), (5, 3));
    let notes: Vec<String> = report.notes.iter().map(|note| format!("{} {}", note.skipped, note.what)).collect();
    assert_eq!(
        notes,
        [
            "false no empty line before this From line",
            "true deleted by the program that wrote the file, which has not compacted it yet",
            "true an empty message",
            "false no empty line before this From line",
            "true not mail: what another program keeps in this file for itself",
            "false it has NUL octets",
        ]
    );
}

#[test]
fn junk_before_the_first_message_costs_no_message() {
    let fixture = fixture();
    let account = fixture.account("a");
    let message = |n: u32| format!("{FROM}Subject: {n}\n\nx\n\n");
    let junk = "\nX-Lost: its From line\n\nFrom here on text\n";
    fixture.put("/mail/junk", [junk.to_owned(), message(1), message(2)].concat().as_bytes());
    let report = run(&account, "/mail/junk");
    assert_eq!((report.imported, report.skipped), (2, 1));
    let note = &report.notes[0];
    assert_eq!((note.offset, note.skipped), (1, true));
    assert_eq!(note.what, format!("{} octets before the first From line are no message", junk.len() - 1));
    // The place is known again.
    fixture.put("/mail/junk", [junk.to_owned(), message(1), message(2), message(3)].concat().as_bytes());
    let again = run(&account, "/mail/junk");
    assert_eq!((again.imported, again.already_there, again.skipped), (1, 2, 0));
    assert_eq!(bodies(&account, "junk").len(), 3);
    // So much junk, and no more.
    for (bytes, mailboxes) in [(1 << 20, 1), ((1 << 20) + 1, 0)] {
        let mut long = vec![b'x'; bytes - 1];
        long.push(b'\n');
        long.extend_from_slice(message(1).as_bytes());
        fixture.put("/mail/long/mbox", &long);
        fixture.put("/mail/long/empty", b"");
        let account = fixture.account(&format!("long{bytes}"));
        let report = run(&account, "/mail/long");
        assert_eq!((report.imported, report.skipped), (mailboxes, 1), "{bytes}");
    }
}

#[test]
fn what_cannot_be_read_as_a_file_is_left_out() {
    let dir = tempfile::tempdir().unwrap();
    let mail = dir.path().join("mail");
    std::fs::create_dir(&mail).unwrap();
    std::fs::write(mail.join("good"), format!("{FROM}Subject: 1\n\nx\n")).unwrap();
    for name in ["circle", "circles"] {
        std::os::unix::fs::symlink(".", mail.join(name)).unwrap();
    }
    std::os::unix::fs::symlink("nowhere", mail.join("dangling")).unwrap();
    for dir in ["md/cur", "md/new"] {
        std::fs::create_dir_all(mail.join(dir)).unwrap();
    }
    std::fs::write(mail.join("md/cur/1.a:2,"), "Subject: 2\n\nx\n").unwrap();
    std::os::unix::fs::symlink("..", mail.join("md/cur/2.b:2,")).unwrap();
    // Opening a socket fails, as opening a pipe would wait.
    let _socket = std::os::unix::net::UnixListener::bind(mail.join("socket")).unwrap();
    let store = Store::open(platform::Env::real(), dir.path().join("data"), Options::default()).unwrap();
    let name = AccountName::new("a").unwrap();
    store.create_account(&name).unwrap();
    let report = run(&store.account(&name).unwrap(), mail.to_str().unwrap());
    assert_eq!((report.imported, report.skipped), (2, 5));
    let names: Vec<_> = report.notes.iter().map(|note| note.file.file_name().unwrap().to_str().unwrap()).collect();
    assert_eq!(names, ["circle", "circles", "dangling", "socket", "2.b:2,"]);
}

#[test]
fn dates_come_from_where_they_are() {
    let fixture = fixture();
    let account = fixture.account("a");
    let mbox =
        "From somebody\nReceived: by x; Thu, 1 Jan 2004 00:00:00 -0100\nDate: Fri, 2 Jan 2004 00:00:00 +0000\n\nx\n";
    fixture.put("/mail/a", mbox.as_bytes());
    run(&account, "/mail/a");
    assert_eq!(messages(&account, "a")[0].date, " 1-Jan-2004 00:00:00 -0100");
}

#[test]
fn twice_imports_nothing_twice() {
    let fixture = fixture();
    let account = fixture.account("a");
    let message = |n: u32| format!("{FROM}Subject: {n}\n\nbody\n\n");
    let mbox = |range: std::ops::Range<u32>| range.map(message).collect::<String>();
    fixture.put("/mail/a", mbox(0..5).as_bytes());
    let counts = || {
        let report = run(&account, "/mail/a");
        (report.imported, report.already_there)
    };
    assert_eq!(counts(), (5, 0));
    assert_eq!(counts(), (0, 5));
    // It has grown.
    fixture.put("/mail/a", mbox(0..7).as_bytes());
    assert_eq!(counts(), (2, 5));
    // It was rewritten: one message is gone, one is new, one is there twice now.
    fixture.put("/mail/a", (mbox(1..7) + &mbox(3..4) + &mbox(9..10)).as_bytes());
    assert_eq!(counts(), (2, 6));
    assert_eq!(counts(), (0, 8));
    // What the user has expunged does not come back, not even when the file changes.
    let id = account.mailbox(&MailboxName::new("a").unwrap()).unwrap();
    let all = UidSet::range(1, u32::MAX);
    let deleted = FlagNames { system: vec![SystemFlag::Deleted], keywords: Vec::new() };
    let request = store::StoreFlags { mode: store::StoreMode::Add, flags: deleted, unchanged_since: None };
    account.store_flags(id, &all, &request).unwrap();
    account.expunge(id, None).unwrap();
    assert_eq!(counts(), (0, 8));
    fixture.put("/mail/a", mbox(2..9).as_bytes());
    assert_eq!(counts(), (2, 5), "numbers 7 and 8 are new");
}

#[test]
fn killed_in_the_middle_and_run_again() {
    let mbox: String = (0..60).map(|n| format!("{FROM}Subject: {n}\n\n{}\n\n", "x".repeat(n * 7 % 50))).collect();
    let reference = fixture();
    let account = reference.account("a");
    reference.put("/mail/a", mbox.as_bytes());
    run(&account, "/mail/a");
    let expected = messages(&account, "a");
    let options = ImportOptions { read_ahead: false, batch_messages: 7, ..ImportOptions::default() };
    for seed in 0..200 {
        let sim = SimEnv::new(seed);
        let env = sim.env();
        let name = AccountName::new("a").unwrap();
        let store = Store::open(env.clone(), PathBuf::from("/data"), Options::default()).unwrap();
        store.create_account(&name).unwrap();
        env.disk.create_dir_all_durable(Path::new("/mail")).unwrap();
        let file = env.disk.open(Path::new("/mail/a"), OpenMode::Create).unwrap();
        file.write_at(mbox.as_bytes(), 0).unwrap();
        file.sync_all().unwrap();
        env.disk.sync_dir(Path::new("/mail")).unwrap();
        let account = store.account(&name).unwrap();
        sim.disk.crash_at(seed);
        let mut acknowledged = 0;
        let _ = import(&account, Path::new("/mail/a"), &options, &mut |progress| {
            acknowledged = progress.messages;
            ControlFlow::Continue(())
        });
        drop((account, store));
        sim.disk.clear_faults();
        if sim.disk.is_off() {
            sim.disk.restart();
        }
        let store = Store::open(env, PathBuf::from("/data"), Options::default()).unwrap();
        let account = store.account(&name).unwrap();
        if acknowledged > 0 {
            assert!(messages(&account, "a").len() as u64 >= acknowledged, "seed {seed}");
        }
        let report = import(&account, Path::new("/mail/a"), &options, &mut |_| ControlFlow::Continue(())).unwrap();
        assert_eq!(report.imported + report.already_there, 60, "seed {seed}");
        assert_eq!(messages(&account, "a"), expected, "seed {seed}");
    }
}

#[test]
fn stopping_keeps_what_is_there() {
    let fixture = fixture();
    let account = fixture.account("a");
    fixture.put("/mail/a", (0..50).map(|n| format!("{FROM}Subject: {n}\n\nx\n\n")).collect::<String>().as_bytes());
    let options = ImportOptions { batch_messages: 10, ..ImportOptions::default() };
    let mut calls = 0;
    let report = import(&account, Path::new("/mail/a"), &options, &mut |_| {
        calls += 1;
        if calls == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    let report = report.unwrap();
    assert!(report.was_stopped && report.imported < 50);
    let rest = run(&account, "/mail/a");
    assert_eq!((rest.imported, rest.already_there), (50 - report.imported, report.imported));
    assert_eq!(bodies(&account, "a").len(), 50);
}

#[test]
fn a_maildir_tree() {
    let fixture = fixture();
    let account = fixture.account("a");
    for dir in ["", "/.Sent", "/.Work.Old&-New"] {
        for name in ["cur", "new", "tmp"] {
            fixture.disk.create_dir_all(Path::new(&format!("/mail/Maildir{dir}/{name}"))).unwrap();
        }
    }
    fixture.put("/mail/Maildir/dovecot-keywords", b"0 $Junk\n1 work\n");
    fixture.put("/mail/Maildir/dovecot-uidlist", b"3 V1 N9 Gx\n7 :100.b\n8 W1 S2 :99.a:2,S\n");
    fixture.put_at("/mail/Maildir/cur/99.a:2,FSab", b"Subject: second\n\n1\n", 1_000_000_000);
    fixture.put_at("/mail/Maildir/new/100.b", b"Subject: first\nFrom x\n\n>From 2\n", 1_000_000_001);
    fixture.put_at("/mail/Maildir/new/1000.c", b"Subject: third\n\n3", 1_000_000_002);
    fixture.put_at("/mail/Maildir/.Sent/cur/1.x:2,RPS", b"Subject: s\r\n\r\n1\r\n", 5);
    fixture.put_at("/mail/Maildir/.Work.Old&-New/cur/1.y:2,", b"Subject: w\n\n1\n", 5);
    let report = run(&account, "/mail/Maildir");
    assert_eq!(report.imported, 5);
    let inbox = messages(&account, "INBOX");
    assert_eq!(
        bodies(&account, "INBOX"),
        ["Subject: first\r\nFrom x\r\n\r\n>From 2\r\n", "Subject: second\r\n\r\n1\r\n", "Subject: third\r\n\r\n3"]
    );
    assert_eq!(
        (inbox[1].flags.as_str(), inbox[1].date.as_str()),
        ("$Junk \\Flagged \\Seen work", " 9-Sep-2001 01:46:40 +0000")
    );
    assert_eq!(messages(&account, "Sent")[0].flags, "$Forwarded \\Answered \\Seen");
    assert_eq!(bodies(&account, "Work/Old&New").len(), 1);
    assert_eq!(run(&account, "/mail/Maildir").imported, 0);
    // Flags changed, a file came, and one was removed by somebody.
    fixture.disk.rename(Path::new("/mail/Maildir/new/1000.c"), Path::new("/mail/Maildir/cur/1000.c:2,S")).unwrap();
    fixture.put("/mail/Maildir/new/2000.d", b"Subject: fourth\n\n4");
    let report = run(&account, "/mail/Maildir");
    assert_eq!((report.imported, report.already_there), (1, 5));
    fixture.disk.remove(Path::new("/mail/Maildir/new/100.b")).unwrap();
    let report = run(&account, "/mail/Maildir");
    assert_eq!((report.imported, report.already_there), (0, 5));
}

#[test]
fn a_directory_of_all_kinds() {
    let fixture = fixture();
    let account = fixture.account("a");
    let mbox = format!("{FROM}Subject: 1\n\nx\n");
    for path in
        ["/mail/t/inbox", "/mail/t/lists/rust.mbox", "/mail/t/Archive", "/mail/t/Archive.sbd/2001", "/mail/t/.hidden"]
    {
        fixture.put(path, mbox.as_bytes());
    }
    fixture.put("/mail/t/notes.txt", b"no mail");
    fixture.put("/mail/t/empty", b"");
    fixture.disk.create_dir_all(Path::new("/mail/t/md/new")).unwrap();
    fixture.put("/mail/t/md/cur/1.a:2,", b"Subject: x\n\n");
    let report = run(&account, "/mail/t");
    let names: Vec<String> = account.mailboxes().iter().map(|info| info.name.to_string()).collect();
    assert_eq!(names, ["Archive", "Archive/2001", "INBOX", "empty", "lists", "lists/rust", "md"]);
    assert_eq!((report.imported, report.skipped), (5, 1));
    assert_eq!(report.notes[0].file, Path::new("/mail/t/notes.txt"));
    // Below a mailbox of one's own.
    let options = ImportOptions { mailbox: Some(MailboxName::new("old").unwrap()), ..ImportOptions::default() };
    import(&account, Path::new("/mail/t"), &options, &mut |_| ControlFlow::Continue(())).unwrap();
    assert_eq!(bodies(&account, "old/lists/rust").len(), 1);
    let nothing = import(&account, Path::new("/mail/t/notes.txt"), &options, &mut |_| ControlFlow::Continue(()));
    assert_eq!(nothing.unwrap_err().kind(), model::ErrorKind::Invalid);
}

#[test]
fn export_and_import_undo_each_other() {
    let fixture = fixture();
    let account = fixture.account("a");
    let inbox = account.mailbox(&MailboxName::inbox()).unwrap();
    let deep = account.create_mailbox(&MailboxName::new("a.b/100%").unwrap(), &[]).unwrap();
    let pieces = [
        "",
        "\r\n",
        "\n",
        "\r",
        "From x\r\n",
        ">From y\n",
        "Subject: z\r\n",
        "\r\n\r\n",
        "text",
        "\0\u{e9}",
        "Status: RO\r\n",
        "X-Mailyard: x\r\n",
        "From a@b Thu Aug 22 12:36:23 2002\r\n",
        ">>From ",
    ];
    let mut random = platform::Prng::new(5);
    let mut originals = Vec::new();
    for mailbox in [inbox, deep] {
        let mut new = Vec::new();
        for _ in 0..400 {
            let text: String = (0..1 + random.below(7)).map(|_| pieces[random.index(pieces.len())]).collect();
            if text.is_empty() {
                continue;
            }
            let mut writer = account.message_writer().unwrap();
            writer.write(text.as_bytes()).unwrap();
            let mut flags = FlagNames::default();
            flags.system.extend(model::SYSTEM_FLAGS.into_iter().filter(|_| random.below(3) == 0));
            for keyword in ["$Forwarded", "work", "$Label1"] {
                flags.keywords.extend((random.below(4) == 0).then(|| Keyword::new(keyword).unwrap()));
            }
            let unix_seconds = random.below(2_000_000_000) as i64;
            let offset_minutes = random.below(1000) as i16 - 500;
            let internal_date = Some(DateTime { unix_seconds, offset_minutes });
            new.push(NewMessage { message: writer.finish().unwrap(), flags, internal_date });
        }
        account.append(mailbox, new).unwrap();
    }
    for name in ["INBOX", "a.b/100%"] {
        originals.push(messages(&account, name));
    }
    for (form, path) in [(ExportForm::Mbox, "/mail/mbox"), (ExportForm::Maildir, "/mail/Maildir")] {
        let options = ExportOptions { form, ..ExportOptions::default() };
        let report = export(&account, Path::new(path), &options, &mut |_| ControlFlow::Continue(())).unwrap();
        assert_eq!((report.messages as usize, report.notes.len()), (originals[0].len() + originals[1].len(), 0));
        let again = export(&account, Path::new(path), &options, &mut |_| ControlFlow::Continue(()));
        assert_eq!(again.unwrap_err().kind(), model::ErrorKind::AlreadyExists);
        let copy = fixture.account(&format!("copy-{}", path.len()));
        let report = run(&copy, path);
        for (name, original) in ["INBOX", "a.b/100%"].into_iter().zip(&originals) {
            let imported = messages(&copy, name);
            assert_eq!(
                imported.len(),
                original.len(),
                "{form:?} {name}: {:?}",
                report.notes.iter().filter(|n| n.skipped).collect::<Vec<_>>()
            );
            for (a, b) in imported.iter().zip(original) {
                assert_eq!(a, b, "{form:?} {name}");
            }
        }
    }
    let _ = &fixture.sim;
}
