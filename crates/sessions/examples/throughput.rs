//! What a session costs without sockets: FETCH and SEARCH over a generated mailbox, from the segments of a store on a real disk.
//!
//! `cargo run --release -p mailyard-sessions --example throughput [messages] [only] [repeats]` prints for each command octets and lines a
//! second, the best of the repeats; `only` keeps the commands that contain it.

#![allow(clippy::unwrap_used, reason = "an example")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use mailyard_sessions::imap::{Context, ImapSession, PlainTextLogin, Settings};
use mailyard_sessions::{Authenticator, Connection, Now, Output, Refusal, ScramCredentials, Step};
use model::{AccountName, DateTime, MailboxName, SystemFlag};
use platform::Env;
use store::{FlagNames, NewMessage, Options, Store};

struct Anyone;

impl Authenticator for Anyone {
    fn verify_password(&self, _: &Connection, user: &str, _: &str) -> Result<AccountName, Refusal> {
        AccountName::new(user).map_err(|_| Refusal::wrong_credentials(Duration::ZERO))
    }

    fn scram_credentials(&self, _: &Connection, _: &str) -> ScramCredentials {
        ScramCredentials::derive("", Vec::new(), 4096)
    }

    fn scram_finished(&self, _: &Connection, user: &str, _: bool) -> Result<AccountName, Refusal> {
        self.verify_password(&Connection::default(), user, "")
    }
}

fn main() {
    let messages: u32 = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(50_000);
    let only = std::env::args().nth(2).unwrap_or_default();
    let repeats: u32 = std::env::args().nth(3).and_then(|n| n.parse().ok()).unwrap_or(5);
    let dir = std::env::temp_dir().join(format!("mailyard-throughput-{}", std::process::id()));
    let mut options = Options::default();
    // Nearly all is sealed: what is measured is what a mailbox of some age costs.
    options.log.tail_bytes_max = 1 << 20;
    let store = Store::open(Env::real(), dir.clone(), options).unwrap();
    fill(&store, messages);
    while store.maintain().unwrap() {}
    let context = Context {
        store: Arc::clone(&store),
        authenticator: Arc::new(Anyone),
        observer: Arc::new(()),
        settings: Settings { plain_text_login: PlainTextLogin::Always, ..Settings::default() },
    };
    let now = Now { monotonic: Duration::ZERO, unix_seconds: 1_000_000_000 };
    let mut session = ImapSession::new(Arc::new(context), Connection::default(), Arc::new(|| {}), now);
    let mut out = Output::new(64 * 1024);
    for command in ["", "l LOGIN ann x", "s EXAMINE INBOX"] {
        run(&mut session, &mut out, now, command);
    }
    for command in [
        "a UID FETCH 1:* FLAGS",
        "a FETCH 1:* (UID RFC822.SIZE INTERNALDATE)",
        "a FETCH 1:* (FLAGS UID RFC822.SIZE INTERNALDATE ENVELOPE)",
        "a FETCH 1:* BODY.PEEK[HEADER]",
        "a FETCH 1:* BODY.PEEK[HEADER.FIELDS (Subject From)]",
        "a FETCH 1:* BODYSTRUCTURE",
        "a FETCH 1:* BODY",
        "a FETCH 1:* PREVIEW",
        "a FETCH 1:* BODY.PEEK[]",
        "a FETCH 1:* BODY.PEEK[1]",
        "a SEARCH ALL",
        "a SEARCH UNSEEN",
        "a SEARCH SINCE 1-Jan-2001 LARGER 1000",
        "a SEARCH FROM person12",
        "a SEARCH SENTSINCE 1-Jan-2001",
        "a SEARCH BODY wombat",
    ] {
        if !command.contains(&only) {
            continue;
        }
        let (mut best, mut octets) = (f64::MAX, 0);
        for _ in 0..repeats {
            let start = Instant::now();
            octets = run(&mut session, &mut out, now, command);
            best = best.min(start.elapsed().as_secs_f64());
        }
        println!(
            "{command:60} {:8.2} ms {:9.1} MB/s {:8.2} M messages/s",
            best * 1e3,
            octets as f64 / best / 1e6,
            f64::from(messages) / best / 1e6
        );
    }
    std::fs::remove_dir_all(dir).unwrap();
}

fn fill(store: &Store, messages: u32) {
    let name = AccountName::new("ann").unwrap();
    store.create_account(&name).unwrap();
    let account = store.account(&name).unwrap();
    let inbox = account.mailbox(&MailboxName::new("INBOX").unwrap()).unwrap();
    let mut batch = Vec::new();
    for n in 0..messages {
        let received: String = (0..n % 5).map(|hop| format!("Received: from host{hop}.example.org (host{hop} [192.0.2.{hop}]) by mx{n}.example.net with ESMTP id {:08x}; Mon, 6 Aug 2001 12:00:{:02} +0000\r\n", n * 7919, n % 60)).collect();
        let text = format!(
            "{received}Date: Mon, {} Aug 2001 12:00:00 +0000\r\nFrom: Person {} <person{}@example.org>\r\nTo: ann@example.org\r\nSubject: message number {n} about {}\r\nMessage-ID: <{n}.{:x}@example.org>\r\nMIME-Version: 1.0\r\nContent-Type: text/plain; charset=us-ascii\r\n\r\n{}",
            n % 28 + 1,
            n % 997,
            n % 997,
            n % 31,
            n * 31,
            "The quick brown fox jumps over the lazy dog, again and again.\r\n".repeat((n % 60) as usize)
        );
        let mut writer = account.message_writer().unwrap();
        writer.write(text.as_bytes()).unwrap();
        let mut flags = FlagNames::default();
        if n % 3 > 0 {
            flags.system.push(SystemFlag::Seen);
        }
        if n % 10 == 0 {
            flags.system.push(SystemFlag::Flagged);
        }
        let date = Some(DateTime::utc(990_000_000 + i64::from(n)));
        batch.push(NewMessage { message: writer.finish().unwrap(), flags, internal_date: date });
        if batch.len() == 1000 || n + 1 == messages {
            account.append(inbox, std::mem::take(&mut batch)).unwrap();
        }
    }
}

/// Sends a command and takes all that is said; returns its octets.
fn run(session: &mut ImapSession, out: &mut Output, now: Now, command: &str) -> u64 {
    let line = if command.is_empty() { String::new() } else { format!("{command}\r\n") };
    let mut rest = line.as_bytes();
    let mut octets = 0;
    loop {
        let taken = session.receive(rest);
        rest = &rest[taken..];
        let step = session.step(now, out);
        let said = out.pending();
        octets += said.len() as u64;
        if said.windows(5).take(200).any(|window| window == b" BAD ") {
            panic!("{command}: {}", String::from_utf8_lossy(said));
        }
        let sent = said.len();
        out.consume(sent);
        match step {
            Step::NeedInput { .. } if rest.is_empty() => return octets,
            Step::Close | Step::StartTls => panic!("{command}"),
            _ => {}
        }
    }
}
