//! POP3 conversations without sockets: each as it stands, octet by octet, and with an output that is full after every line.

#![allow(clippy::unwrap_used, reason = "tests")]

#[allow(dead_code, reason = "what other tests share")]
mod support;

use std::sync::Arc;
use std::time::Duration;

use mailyard_sessions::pop3::{Context, Pop3Session, Settings};
use mailyard_sessions::{Connection, Now, Output, ProtocolSession, Step};
use model::{AccountName, MailboxName, SystemFlag, Uid};
use store::{Account, FlagNames, NewMessage, View};
use support::{Everybody, NOW};

const MAIL: [&str; 3] = [
    "Subject: one\r\n\r\n.\r\n..dots\r\nthree\r\nfour\r\n",
    "Subject: two\r\n\r\nno line end",
    "Subject: three\r\n\r\n",
];

fn context() -> Arc<Context> {
    let store = support::context(1, Default::default()).store.clone();
    Arc::new(Context {
        store,
        authenticator: Arc::new(Everybody),
        observer: Arc::new(()),
        settings: Settings::default(),
    })
}

fn account(context: &Context) -> Arc<Account> {
    let name = AccountName::new("ann").unwrap();
    if context.store.accounts().unwrap().is_empty() {
        context.store.create_account(&name).unwrap();
        let account = context.store.account(&name).unwrap();
        let inbox = account.mailbox(&MailboxName::inbox()).unwrap();
        for text in MAIL {
            let mut writer = account.message_writer().unwrap();
            writer.write(text.as_bytes()).unwrap();
            let message = writer.finish().unwrap();
            account
                .append(inbox, vec![NewMessage { message, flags: FlagNames::default(), internal_date: None }])
                .unwrap();
        }
    }
    context.store.account(&name).unwrap()
}

fn inbox(account: &Arc<Account>) -> View {
    account.view(account.mailbox(&MailboxName::inbox()).unwrap(), false).unwrap()
}

struct Client {
    session: Pop3Session,
    out: Output,
    now: Now,
    is_closed: bool,
    piece: usize,
}

impl Client {
    fn new(context: &Arc<Context>, loopback: bool, piece: usize, output: usize) -> Client {
        let connection = Connection { loopback, starttls_available: true, ..Connection::default() };
        let session = Pop3Session::new(Arc::clone(context), connection, Arc::new(|| ()), NOW);
        Client { session, out: Output::new(output), now: NOW, is_closed: false, piece }
    }

    fn said(&mut self) -> String {
        let mut said = Vec::new();
        loop {
            let step = self.session.step(self.now, &mut self.out);
            said.extend_from_slice(self.out.pending());
            self.out.consume(usize::MAX);
            match step {
                Step::Output => {}
                Step::NeedInput { .. } => break,
                Step::StartTls => self.session.tls_started(Default::default()),
                Step::Close => {
                    self.is_closed = true;
                    break;
                }
            }
        }
        String::from_utf8(said).unwrap()
    }

    fn ask(&mut self, text: &str) -> String {
        let mut said = String::new();
        for piece in text.as_bytes().chunks(self.piece) {
            let mut rest = piece;
            while !rest.is_empty() {
                let taken = self.session.receive(rest);
                rest = &rest[taken..];
                said += &self.said();
            }
        }
        said
    }
}

/// Plays `C:`/`S:` lines in each cut; `S:` lines are compared whole, and `S: +OK` alone lets pass any text behind it.
fn play(script: &str) {
    for (piece, output) in [(1 << 20, 1 << 20), (1, 1 << 20), (7, 1)] {
        let context = context();
        account(&context);
        let mut client = Client::new(&context, true, piece, output);
        let mut said = client.said();
        let mut lines = script.lines().map(str::trim).filter(|line| !line.is_empty()).peekable();
        while let Some(line) = lines.next() {
            if let Some(command) = line.strip_prefix("C: ") {
                assert_eq!(said, "", "before {line}");
                // What follows without an answer between is sent at once (PIPELINING).
                let mut all = format!("{command}\r\n");
                while let Some(next) = lines.peek().and_then(|line| line.strip_prefix("C: ")) {
                    all += &format!("{next}\r\n");
                    lines.next();
                }
                said = client.ask(&all);
                continue;
            }
            let expected = line.strip_prefix("S:").unwrap().trim_start();
            let (found, rest) = said.split_once("\r\n").unwrap_or_else(|| panic!("nothing came for {line}: {said:?}"));
            let is_right = match expected {
                "+OK" | "-ERR" => found.starts_with(expected),
                expected => found.trim_end() == expected,
            };
            assert!(is_right, "expected {expected:?}, found {found:?}");
            said = rest.to_owned();
        }
        assert_eq!(said, "");
    }
}

#[test]
fn a_whole_session() {
    play(
        "S: +OK Mailyard ready
         C: STAT
         S: -ERR
         C: USER ann
         S: +OK
         C: PASS any thing
         S: +OK 3 messages (85 octets)
         C: USER ann
         S: -ERR
         C: STAT
         C: LIST
         C: LIST 2
         C: UIDL 3
         S: +OK 3 85
         S: +OK
         S: 1 40
         S: 2 27
         S: 3 18
         S: .
         S: +OK 2 27
         S: +OK
         C: RETR 1
         S: +OK 40 octets
         S: Subject: one
         S:
         S: ..
         S: ...dots
         S: three
         S: four
         S: .
         C: RETR 2
         S: +OK 27 octets
         S: Subject: two
         S:
         S: no line end
         S: .
         C: TOP 1 2
         S: +OK
         S: Subject: one
         S:
         S: ..
         S: ...dots
         S: .
         C: TOP 1 0
         S: +OK
         S: Subject: one
         S:
         S: .
         C: TOP 3 100
         S: +OK
         S: Subject: three
         S:
         S: .
         C: DELE 2
         S: +OK
         C: DELE 2
         S: -ERR
         C: RETR 2
         S: -ERR
         C: STAT
         S: +OK 2 58
         C: LIST
         S: +OK
         S: 1 40
         S: 3 18
         S: .
         C: RSET
         S: +OK
         C: STAT
         S: +OK 3 85
         C: RETR 4
         S: -ERR
         C: RETR 0
         S: -ERR
         C: RETR x
         S: -ERR
         C: XYZZY
         S: -ERR
         C: NOOP
         S: +OK
         C: QUIT
         S: +OK",
    );
}

#[test]
fn what_there_is() {
    play(
        "S: +OK
         C: CAPA
         S: +OK
         S: TOP
         S: UIDL
         S: PIPELINING
         S: RESP-CODES
         S: AUTH-RESP-CODE
         S: UTF8
         S: EXPIRE NEVER
         S: USER
         S: SASL PLAIN LOGIN SCRAM-SHA-256
         S: STLS
         S: IMPLEMENTATION Mailyard
         S: .
         C: AUTH
         S: +OK
         S: PLAIN
         S: LOGIN
         S: SCRAM-SHA-256
         S: .
         C: AUTH GSSAPI
         S: -ERR That mechanism is not there
         C: AUTH PLAIN
         S: +
         C: *
         S: -ERR Given up
         C: AUTH PLAIN !
         S: -ERR That is not base64
         C: AUTH PLAIN
         S: +
         C: AGFubgBzZWNyZXQ=
         S: +OK 3 messages (85 octets)
         C: CAPA
         S: +OK
         S: TOP
         S: UIDL
         S: PIPELINING
         S: RESP-CODES
         S: AUTH-RESP-CODE
         S: UTF8
         S: EXPIRE NEVER
         S: IMPLEMENTATION Mailyard
         S: .
         C: QUIT
         S: +OK",
    );
}

#[test]
fn deletions_come_at_quit_and_not_before() {
    let context = context();
    let account = account(&context);
    let mut client = Client::new(&context, true, 1 << 20, 1 << 20);
    client.ask("USER ann\r\nPASS x\r\nRETR 1\r\nRETR 2\r\nDELE 1\r\nDELE 3\r\n");
    drop(client);
    assert_eq!(inbox(&account).exists(), 3, "a lost connection deletes nothing");
    let mut client = Client::new(&context, true, 1 << 20, 1 << 20);
    let mut other = Client::new(&context, true, 1 << 20, 1 << 20);
    for client in [&mut client, &mut other] {
        client.ask("USER ann\r\nPASS x\r\n");
    }
    assert!(client.ask("RETR 2\r\nDELE 1\r\nDELE 3\r\nQUIT\r\n").ends_with("+OK Goodbye\r\n") && client.is_closed);
    let view = inbox(&account);
    let left: Vec<(Uid, bool)> = view.all_rows().map(|entry| (entry.uid, entry.flags.has(SystemFlag::Seen))).collect();
    assert_eq!(left, [(Uid::new(2).unwrap(), true)]);
    // The other session keeps its numbers; what is gone is told so, or still there to be read.
    assert!(other.ask("STAT\r\n").starts_with("+OK 3 85"));
    assert!(other.ask("DELE 1\r\nDELE 2\r\nQUIT\r\n").ends_with("+OK Goodbye\r\n"));
    assert_eq!(inbox(&account).exists(), 0);
}

#[test]
fn names_stay() {
    let context = context();
    account(&context);
    let names = || {
        let mut client = Client::new(&context, true, 1 << 20, 1 << 20);
        client.ask("USER ann\r\nPASS x\r\n");
        client
            .ask("UIDL\r\n")
            .lines()
            .filter_map(|line| line.split_once(' '))
            .map(|(_, name)| name.to_owned())
            .collect::<Vec<_>>()
    };
    let before = names();
    assert_eq!(before.len(), 3);
    assert!(before.iter().zip(["00000001", "00000002", "00000003"]).all(|(name, uid)| name.starts_with(uid)));
    let mut client = Client::new(&context, true, 1 << 20, 1 << 20);
    client.ask("USER ann\r\nPASS x\r\nDELE 2\r\nQUIT\r\n");
    assert_eq!(names(), [before[0].clone(), before[2].clone()]);
}

#[test]
fn passwords_need_protection() {
    let context = context();
    let mut client = Client::new(&context, false, 1 << 20, 1 << 20);
    client.said();
    assert!(client.ask("USER ann\r\n").starts_with("-ERR [AUTH]"));
    assert!(client.ask("AUTH PLAIN\r\n").starts_with("-ERR [AUTH]"));
    assert!(!client.ask("CAPA\r\n").contains("USER"));
    // What was slipped in before the handshake is not heard after it.
    assert_eq!(client.ask("STLS\r\nUSER ann\r\n"), "+OK Begin TLS\r\n");
    assert!(client.ask("PASS x\r\n").starts_with("-ERR USER comes first"));
    assert!(client.ask("STLS\r\n").starts_with("-ERR"));
    assert!(client.ask("USER ann\r\nPASS x\r\n").contains("+OK 0 messages"));
}

#[test]
fn patience_ends() {
    let context = context();
    account(&context);
    let mut client = Client::new(&context, true, 1 << 20, 1 << 20);
    client.ask("USER ann\r\nPASS x\r\nDELE 1\r\n");
    client.now.monotonic += Duration::from_secs(29 * 60);
    assert!(client.ask("NOOP\r\n").starts_with("+OK"));
    client.now.monotonic += Duration::from_secs(30 * 60);
    assert!(client.said().starts_with("-ERR [SYS/TEMP] Autologout") && client.is_closed);
    assert_eq!(inbox(&account(&context)).exists(), 3, "nothing is deleted without QUIT");

    let mut client = Client::new(&context, true, 1 << 20, 1 << 20);
    let said = client.ask(&"GET / HTTP/1.1\r\n".repeat(9));
    assert!(client.is_closed && said.matches("-ERR").count() == 5, "{said}");

    let mut client = Client::new(&context, true, 1 << 20, 1 << 20);
    client.said();
    assert_eq!(client.ask(&("x".repeat(1 << 20) + "\r\nNOOP\r\n")).matches("-ERR").count(), 2);

    let mut client = Client::new(&context, true, 1 << 20, 1 << 20);
    client.ask("USER ann\r\nPASS x\r\n");
    client.session.shut_down();
    assert!(client.said().starts_with("-ERR [SYS/TEMP]") && client.is_closed);
}

#[test]
fn a_large_message_goes_out_in_pieces() {
    let context = context();
    let account = account(&context);
    let text = format!("Subject: large\r\n\r\n{}", ".line\r\n".repeat(1 << 18));
    let mut writer = account.message_writer().unwrap();
    writer.write(text.as_bytes()).unwrap();
    let message = writer.finish().unwrap();
    let id = account.mailbox(&MailboxName::inbox()).unwrap();
    account.append(id, vec![NewMessage { message, flags: FlagNames::default(), internal_date: None }]).unwrap();
    let mut client = Client::new(&context, true, 1 << 20, 64 << 10);
    client.ask("USER ann\r\nPASS x\r\n");
    let said = client.ask("RETR 4\r\n");
    let (head, rest) = said.split_once("\r\n").unwrap();
    assert_eq!(head, format!("+OK {} octets", text.len()));
    assert!(rest == text.replace("\r\n.", "\r\n..") + ".\r\n");
}
