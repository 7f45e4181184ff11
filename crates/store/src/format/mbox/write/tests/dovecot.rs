//! Debian's Dovecot on the same file: it reads what we wrote, we read what it wrote. Where it is not installed that is said, and nothing is tested.

use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use super::*;

/// Dovecot serves nobody as root.
const NOBODY: u32 = 65_534;

struct Bed {
    dir: tempfile::TempDir,
    inbox: PathBuf,
}

impl Bed {
    /// `None`: there is no Dovecot.
    fn new(content: &[u8]) -> Option<Bed> {
        let dir = tempfile::tempdir().unwrap();
        let (inbox, mail, journals) = (dir.path().join("inbox"), dir.path().join("mail"), dir.path().join("journals"));
        for dir in [&mail, &journals] {
            std::fs::create_dir(dir).unwrap();
        }
        std::fs::write(&inbox, content).unwrap();
        let at = dir.path().display();
        let config = format!(
            "mail_location = mbox:{at}/mail:INBOX={at}/inbox\nbase_dir = {at}/run\nstate_dir = {at}/run\nlog_path = \
             {at}/log\nssl = no\nfirst_valid_uid = 0\nmbox_write_locks = fcntl\nnamespace inbox {{\n  inbox = yes\n}}\n"
        );
        std::fs::write(dir.path().join("dovecot.conf"), config).unwrap();
        if std::fs::metadata(&inbox).unwrap().uid() == 0 {
            for path in [dir.path(), &inbox, &mail] {
                chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
            }
        }
        let bed = Bed { dir, inbox };
        match Command::new("doveadm").arg("--version").output() {
            Ok(_) => Some(bed),
            Err(_) => {
                eprintln!("doveadm is not installed");
                None
            }
        }
    }

    fn doveadm(&self, arguments: &[&str]) -> String {
        let mut command = Command::new("doveadm");
        command.arg("-c").arg(self.dir.path().join("dovecot.conf")).args(["-f", "flow"]).args(arguments);
        command.env("USER", "nobody").env("HOME", self.dir.path()).current_dir(self.dir.path());
        if std::fs::metadata(&self.inbox).unwrap().uid() == NOBODY {
            command.uid(NOBODY).gid(NOBODY);
        }
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.is_empty(), "{arguments:?}: {said}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// `uid=N flags=...` of each message, the flags in order.
    fn list(&self) -> Vec<String> {
        let lines = self.doveadm(&["fetch", "uid flags", "mailbox", "INBOX", "all"]);
        let sorted = |line: &str| {
            let (uid, flags) = line.split_once(" flags=").unwrap();
            let mut flags: Vec<&str> = flags.split(' ').filter(|flag| !flag.is_empty()).collect();
            flags.sort_unstable();
            format!("{uid} {}", flags.join(" "))
        };
        lines.lines().map(sorted).collect()
    }

    fn seen(&self) -> Vec<Seen> {
        look(&std::fs::read(&self.inbox).unwrap()).unwrap()
    }

    fn write(&self, work: &Work) {
        let env = Env::real();
        let policy = LockPolicy { write: vec![Method::Fcntl], ..LockPolicy::default() };
        let lock = Locker::new(env.clone(), policy).lock(&self.inbox, Access::Write).unwrap();
        let dir = self.dir.path().join("journals");
        let target = Target {
            env: &env,
            path: &self.inbox,
            lock: &lock,
            dir: &dir,
            mailbox: MAILBOX,
            is_doubtful: false,
            has_intents: false,
        };
        let places: Vec<Place> = self.seen().iter().enumerate().map(|(n, seen)| seen.place(n as u64)).collect();
        let job = Job {
            places: &mut places.iter().copied(),
            fate: &mut |number, _, _| Ok(work.fates[number].clone()),
            removed_bytes: 1,
            base: &work.base,
            append: &mut work.append.iter().map(New::outgoing),
            placed: &mut |_| Ok(()),
        };
        write_back(target, &Settings::default(), job).unwrap().unsettled.settle().unwrap();
    }
}

fn wanted(uid: u32, flags: &[FileFlags], names: &[&str]) -> Wanted {
    let flags = flags.iter().fold(FileFlags::OLD, |all, flag| all.with(*flag));
    Wanted { uid, flags, keywords: names.iter().map(|name| Keyword::new(name).unwrap()).collect() }
}

#[test]
fn both_ways() {
    let first = b"From a@b Thu Aug 22 12:36:23 2002\nSubject: one\n\n1\n\nFrom a@b Thu Aug 22 12:36:23 2002\nSubject: two\nStatus: \
                  R\n\n2\n";
    let Some(bed) = Bed::new(first) else { return };
    let all = [FileFlags::SEEN, FileFlags::ANSWERED, FileFlags::FLAGGED, FileFlags::DELETED, FileFlags::DRAFT];
    let keywords = ["$Forwarded", "Junk"].map(|name| Keyword::new(name).unwrap()).to_vec();
    let base = ImapBase { uid_validity: 1_034_567_890, last_uid: 12, keywords };
    let served = b"Subject: three\r\n\r\nFrom a@b Thu Aug 22 12:36:23 2002\r\n\r\n>From me".to_vec();
    let new =
        New { id: 3, served, wanted: wanted(12, &[FileFlags::SEEN], &["Junk"]), date: DateTime::utc(0), piece: 9 };
    let fates = vec![Fate::Update(wanted(4, &all, &["$Forwarded", "Junk"])), Fate::Update(wanted(9, &[], &[]))];
    bed.write(&Work { fates, append: vec![new], base: base.clone() });

    // What we wrote is what it says, and it finds nothing to correct.
    let written = std::fs::read(&bed.inbox).unwrap();
    let status = bed.doveadm(&["mailbox", "status", "messages uidnext uidvalidity", "INBOX"]);
    assert_eq!(status.trim(), "INBOX messages=3 uidnext=13 uidvalidity=1034567890");
    let everything = "uid=4 $Forwarded Junk \\Answered \\Deleted \\Draft \\Flagged \\Seen";
    assert_eq!(bed.list(), [everything, "uid=9 ", "uid=12 Junk \\Seen"]);
    let body = bed.doveadm(&["fetch", "body", "mailbox", "INBOX", "uid", "12"]);
    assert!(body.contains(">From a@b Thu Aug 22") && body.contains(">>From me"), "{body}");
    assert_eq!(std::fs::read(&bed.inbox).unwrap(), written);

    // What it writes is what we read, and the messages are the same.
    let digests = |seen: &[Seen]| seen.iter().map(|seen| seen.measured.digest).collect::<Vec<_>>();
    let before = digests(&bed.seen());
    bed.doveadm(&["flags", "remove", "\\Seen \\Deleted $Forwarded", "mailbox", "INBOX", "uid", "4"]);
    bed.doveadm(&["flags", "add", "\\Answered \\Flagged Later", "mailbox", "INBOX", "uid", "9"]);
    let after = bed.seen();
    assert_eq!(digests(&after), before);
    let meta = |n: usize| after[n].measured.meta.clone();
    let flags = FileFlags::OLD.with(FileFlags::ANSWERED).with(FileFlags::FLAGGED);
    assert_eq!(meta(0).flags.without(FileFlags::COMPLETE), flags.with(FileFlags::DRAFT));
    assert_eq!(meta(1).flags.without(FileFlags::COMPLETE), flags);
    let names = |n: usize| meta(n).keywords.iter().map(Keyword::to_string).collect::<Vec<_>>();
    assert_eq!((names(0), names(1)), (vec!["Junk".into()], vec!["Later".into()]));
    assert_eq!((meta(0).uid, meta(1).uid, meta(2).uid), (Some(4), Some(9), Some(12)));
    assert_eq!(meta(0).base.unwrap().uid_validity, 1_034_567_890);

    // Ours in what it left, and one goes: filler does not keep it from understanding.
    let fates = vec![Fate::Remove, Fate::Update(wanted(9, &[FileFlags::SEEN], &["Later", "Junk"])), Fate::Keep];
    bed.write(&Work { fates, append: Vec::new(), base: ImapBase { last_uid: 14, ..base } });
    assert_eq!(bed.list(), ["uid=9 Junk Later \\Seen", "uid=12 Junk \\Seen"]);
    let status = bed.doveadm(&["mailbox", "status", "uidnext uidvalidity", "INBOX"]);
    assert_eq!(status.trim(), "INBOX uidnext=15 uidvalidity=1034567890");
}
