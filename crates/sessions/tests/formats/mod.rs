//! The formats that accounts of the tests can have, so that one suite is played on each; and where a format may answer otherwise.

#![allow(dead_code, reason = "each test file uses a part")]

use std::path::{Path, PathBuf};

use model::{AccountName, MailboxName, SystemFlag};
use platform::{Disk, OpenMode};
use store::{Account, AccountFormat, FlagNames, MaildirLayout, NewMessage, Store};

/// Where the mail of an account lives, and how a test's messages get there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// In the log.
    Native,
    /// In mbox files, appended through the store.
    Mbox,
    /// In mbox files, put there by another program.
    Delivered,
    /// In Maildirs.
    Maildir,
    /// In a database.
    Sql,
}

const FILES: &[Format] = &[Format::Mbox, Format::Delivered];
/// Those with a file or a directory for each mailbox.
const NAMED: &[Format] = &[Format::Mbox, Format::Delivered, Format::Maildir];
const OF_OTHERS: &[Format] = &[Format::Delivered];
const DATABASE: &[Format] = &[Format::Sql];

/// The dialogues have the numbers that come after those for accounts on the simulated disk.
const OTHER_NONCES: &str = "nothing on the disk has drawn random numbers before";
/// What becomes of a write when the database fails is tested with databases (`crates/store-sql/tests`).
const NOT_A_DISK: &str = "the disk of a node has nothing that a command waits for";

/// No checksum stands in an mbox file, and anyone may change it: what decays there is another message from then on.
const NOT_DAMAGE: &str = "a message that changes in the file is another message, not a damaged one";

/// What is different in a format, and why: scenarios by file and name that are not played on it.
pub const DIFFERENT: &[(&[Format], &str, &str)] = &[
    (NAMED, "mailboxes.txt: names over the limit", "no file name has 1000 octets; the limit is file_name_bytes_max"),
    (
        OF_OTHERS,
        "fetch-damaged.txt: a damaged message: the others are answered, and the command ends with NO",
        NOT_DAMAGE,
    ),
    (OF_OTHERS, "search-damaged.txt: a search passes over a damaged message, and says so", NOT_DAMAGE),
    (OF_OTHERS, "storage.txt: damage is confined to the message that it hit", NOT_DAMAGE),
    (
        OF_OTHERS,
        "search-damaged.txt: damaged messages are sorted and threaded as if their headers were empty",
        NOT_DAMAGE,
    ),
    (
        OF_OTHERS,
        "fetch-header.txt: BODY[HEADER] has the empty line",
        "a header that no empty line ends is served with one: other programs add it when they write the file",
    ),
    (DATABASE, "storage.txt: a write that fails is not acknowledged, and nothing is written after it", NOT_A_DISK),
    (DATABASE, "storage.txt: a full disk", NOT_A_DISK),
    (DATABASE, "authenticate.txt: SCRAM begins, and a wrong proof ends it", OTHER_NONCES),
    (DATABASE, "authenticate.txt: SCRAM for a user who is not there goes as far as for one who is", OTHER_NONCES),
    (DATABASE, "authenticate.txt: SCRAM-PLUS begins", OTHER_NONCES),
    (
        FILES,
        "storage.txt: a full disk",
        "a file that was changed in the instant in which it was read is read again, and there is no room for what is derived from it",
    ),
];

impl Format {
    /// Whether a scenario is played on it.
    pub fn plays(self, scenario: &str) -> bool {
        !DIFFERENT.iter().any(|(formats, name, _)| formats.contains(&self) && scenario == *name)
    }

    /// Makes an account.
    pub fn create(self, store: &Store, name: &AccountName) {
        let format = match self {
            Format::Native => AccountFormat::Native,
            Format::Sql => AccountFormat::Sql,
            Format::Maildir => {
                let place = place(name);
                store.env().disk.create_dir_all_durable(&place).unwrap();
                AccountFormat::Maildir { root: place.join("Maildir"), layout: MaildirLayout::Fs }
            }
            Format::Mbox | Format::Delivered => {
                let place = place(name);
                store.env().disk.create_dir_all_durable(&place).unwrap();
                AccountFormat::Mbox { inbox: place.join("inbox"), root: place.join("mail") }
            }
        };
        store.create_account_as(name, &format).unwrap();
    }

    /// Puts a message into a mailbox that is there.
    pub fn put(
        self,
        store: &Store,
        account: &Account,
        mailbox: &MailboxName,
        octets: &[u8],
        flags: FlagNames,
        unix_seconds: Option<i64>,
    ) -> model::Result<()> {
        let id = account.mailbox(mailbox)?;
        if self == Format::Delivered {
            let path = file_of(account.name(), mailbox);
            deliver(&*store.env().disk, &path, octets, &flags, unix_seconds.unwrap_or(store.env().clock.now().seconds));
            return account.refresh(id);
        }
        let mut writer = account.message_writer()?;
        writer.write(octets)?;
        let internal_date = unix_seconds.map(model::DateTime::utc);
        account.append(id, vec![NewMessage { message: writer.finish()?, flags, internal_date }])?;
        Ok(())
    }
}

fn place(name: &AccountName) -> PathBuf {
    Path::new("/mail").join(name.as_str())
}

/// The file of a mailbox.
fn file_of(name: &AccountName, mailbox: &MailboxName) -> PathBuf {
    if mailbox.is_inbox() {
        return place(name).join("inbox");
    }
    place(name).join("mail").join(mailbox.as_str().replace('/', ".sbd/"))
}

/// Appends a message to a file as a delivery agent would that knows the fields for flags.
fn deliver(disk: &dyn Disk, path: &Path, octets: &[u8], flags: &FlagNames, unix_seconds: i64) {
    let file = disk.open(path, OpenMode::Create).unwrap();
    let at = file.len().unwrap();
    let mut text = format!("From sender@example.org {}\n", asctime(unix_seconds)).into_bytes();
    text.extend_from_slice(fields(flags).as_bytes());
    for line in with_line_feeds(octets).split_inclusive(|octet| *octet == b'\n') {
        let unquoted = line.iter().position(|octet| *octet != b'>').unwrap_or(line.len());
        if line[unquoted..].starts_with(b"From ") {
            text.push(b'>');
        }
        text.extend_from_slice(line);
    }
    text.push(b'\n');
    file.write_at(&text, at).unwrap();
    file.sync_data().unwrap();
}

/// Line ends as in files: each CRLF is a LF.
fn with_line_feeds(octets: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(octets.len());
    for line in octets.split_inclusive(|octet| *octet == b'\n') {
        match line.strip_suffix(b"\r\n") {
            Some(line) => out.extend_from_slice(&[line, b"\n"].concat()),
            None => out.extend_from_slice(line),
        }
    }
    out
}

/// What a client gets of a message that was delivered into a file: every line ends with CRLF (`docs/format-mbox.md`).
pub fn as_served(octets: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(octets.len());
    for octet in with_line_feeds(octets) {
        if octet == b'\n' && out.last() != Some(&b'\r') {
            out.push(b'\r');
        }
        out.push(octet);
    }
    out
}

/// `Status`, `X-Status` and `X-Keywords`.
fn fields(flags: &FlagNames) -> String {
    let letters = |known: &[(SystemFlag, char)]| -> String {
        known.iter().filter(|(flag, _)| flags.system.contains(flag)).map(|(_, letter)| *letter).collect()
    };
    let mut text = String::new();
    let status = letters(&[(SystemFlag::Seen, 'R')]);
    let x_status = letters(&[
        (SystemFlag::Answered, 'A'),
        (SystemFlag::Flagged, 'F'),
        (SystemFlag::Draft, 'T'),
        (SystemFlag::Deleted, 'D'),
    ]);
    let keywords: Vec<&str> = flags.keywords.iter().map(model::Keyword::as_str).collect();
    for (name, value) in [("Status", status), ("X-Status", x_status), ("X-Keywords", keywords.join(" "))] {
        if !value.is_empty() {
            text.push_str(&format!("{name}: {value}\n"));
        }
    }
    text
}

/// asctime(3), in UTC, of times after 1970.
fn asctime(unix_seconds: i64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [(&str, i64); 12] = [
        ("Jan", 31),
        ("Feb", 28),
        ("Mar", 31),
        ("Apr", 30),
        ("May", 31),
        ("Jun", 30),
        ("Jul", 31),
        ("Aug", 31),
        ("Sep", 30),
        ("Oct", 31),
        ("Nov", 30),
        ("Dec", 31),
    ];
    let (mut day, second) = (unix_seconds.div_euclid(86_400), unix_seconds.rem_euclid(86_400));
    let weekday = DAYS[day.rem_euclid(7) as usize];
    let is_leap = |year: i64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let mut year = 1970;
    while day >= 365 + i64::from(is_leap(year)) {
        day -= 365 + i64::from(is_leap(year));
        year += 1;
    }
    let mut month = 0;
    let days_of = |month: usize| MONTHS[month].1 + i64::from(month == 1 && is_leap(year));
    while day >= days_of(month) {
        day -= days_of(month);
        month += 1;
    }
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{weekday} {} {:2} {hour:02}:{minute:02}:{second:02} {year}", MONTHS[month].0, day + 1)
}
