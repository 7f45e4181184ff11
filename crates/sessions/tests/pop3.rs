//! POP3 conversations without sockets: each as it stands, octet by octet, and with an output that is full after every line.

#![allow(clippy::unwrap_used, reason = "tests")]

mod line_client;
#[allow(dead_code, reason = "what other tests share")]
mod support;

use std::sync::Arc;
use std::time::Duration;

use line_client::{CUTS, Client, NOW, WHOLE};
use mailyard_sessions::pop3::{Context, Pop3Session, Settings};
use mailyard_sessions::{Connection, ProtocolSession};
use model::{AccountName, MailboxName, SystemFlag, Uid};
use store::{Account, FlagNames, NewMessage, View};
use support::Everybody;

const MAIL: [&str; 3] = [
    "Subject: one\r\n\r\n.\r\n..dots\r\nthree\r\nfour\r\n",
    "Subject: two\r\n\r\nno line end",
    "Subject: three\r\n\r\n",
];

fn context() -> Arc<Context> {
    context_with(Settings::default())
}

fn context_with(settings: Settings) -> Arc<Context> {
    let store = support::context(1, Default::default()).store.clone();
    Arc::new(Context {
        store,
        authenticator: Arc::new(Everybody),
        observer: Arc::new(()),
        last_logins: Arc::default(),
        settings,
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

fn client(context: &Arc<Context>, loopback: bool, cut: (usize, usize)) -> Client<Pop3Session> {
    let connection = Connection { loopback, starttls_available: true, ..Connection::default() };
    Client::new(Pop3Session::new(Arc::clone(context), connection, Arc::new(|| ()), NOW), cut)
}

/// Somebody on this machine.
fn local(context: &Arc<Context>) -> Client<Pop3Session> {
    client(context, true, WHOLE)
}

/// Plays `C:`/`S:` lines in each cut; `S:` lines are compared whole, and `S: +OK` alone lets pass any text behind it.
fn play(script: &str) {
    for cut in CUTS {
        let context = context();
        account(&context);
        let mut client = client(&context, true, cut);
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
         S: UTF8 USER
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
         S: UTF8 USER
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
    let mut client = local(&context);
    client.ask("USER ann\r\nPASS x\r\nRETR 1\r\nRETR 2\r\nDELE 1\r\nDELE 3\r\n");
    drop(client);
    assert_eq!(inbox(&account).exists(), 3, "a lost connection deletes nothing");
    let mut client = local(&context);
    let mut other = local(&context);
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
        let mut client = local(&context);
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
    let mut client = local(&context);
    client.ask("USER ann\r\nPASS x\r\nDELE 2\r\nQUIT\r\n");
    assert_eq!(names(), [before[0].clone(), before[2].clone()]);
}

#[test]
fn passwords_need_protection() {
    let context = context();
    let mut client = client(&context, false, WHOLE);
    client.said();
    assert!(client.ask("USER ann\r\n").starts_with("-ERR [AUTH]"));
    assert!(client.ask("AUTH PLAIN\r\n").starts_with("-ERR [AUTH]"));
    assert!(!client.ask("CAPA\r\n").contains("\r\nUSER\r\n"));
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
    let mut client = local(&context);
    client.ask("USER ann\r\nPASS x\r\nDELE 1\r\n");
    client.now.monotonic += Duration::from_secs(29 * 60);
    assert!(client.ask("NOOP\r\n").starts_with("+OK"));
    client.now.monotonic += Duration::from_secs(30 * 60);
    assert!(client.said().starts_with("-ERR [SYS/TEMP] Autologout") && client.is_closed);
    assert_eq!(inbox(&account(&context)).exists(), 3, "nothing is deleted without QUIT");

    let mut client = local(&context);
    let said = client.ask("GET / HTTP/1.1\r\n".repeat(9));
    assert!(client.is_closed && said.matches("-ERR").count() == 5, "{said}");

    let mut client = local(&context);
    client.said();
    assert_eq!(client.ask("x".repeat(1 << 20) + "\r\nNOOP\r\n").matches("-ERR").count(), 2);

    let mut client = local(&context);
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
    let mut client = client(&context, true, (1 << 20, 64 << 10));
    client.ask("USER ann\r\nPASS x\r\n");
    let said = client.ask("RETR 4\r\n");
    let (head, rest) = said.split_once("\r\n").unwrap();
    assert_eq!(head, format!("+OK {} octets", text.len()));
    assert!(rest == text.replace("\r\n.", "\r\n..") + ".\r\n");
}

#[test]
fn names_are_formed_as_other_servers_do_it() {
    for (format, form) in
        [("%08Xu%08Xv", "0000000{u}{V}"), ("UID%u-%v", "UID{u}-{v}"), ("%v-%u", "{v}-{u}"), ("%u", "{u}")]
    {
        let context = context_with(Settings { uidl_format: format.parse().unwrap(), ..Settings::default() });
        let validity = inbox(&account(&context)).uid_validity().get();
        let mut client = local(&context);
        client.ask("USER ann\r\nPASS x\r\n");
        let name = |uid: &str| {
            let name = form.replace("{u}", uid).replace("{v}", &validity.to_string());
            name.replace("{V}", &format!("{validity:08X}"))
        };
        assert_eq!(client.ask("UIDL 2\r\n"), format!("+OK 2 {}\r\n", name("2")), "{format}");
        let all: String = ["1", "2", "3"].map(|uid| format!("{uid} {}\r\n", name(uid))).concat();
        assert_eq!(client.ask("UIDL\r\n"), format!("+OK\r\n{all}.\r\n"), "{format}");
    }
}

#[test]
fn who_comes_back_too_soon_is_told_so() {
    let context = context_with(Settings { login_delay: Duration::from_secs(60), ..Settings::default() });
    account(&context);
    let mut first = local(&context);
    assert!(first.ask("CAPA\r\n").contains("\r\nLOGIN-DELAY 60\r\n"));
    assert!(first.ask("USER ann\r\nPASS x\r\nQUIT\r\n").contains("+OK 3 messages"));
    let mut second = local(&context);
    second.said();
    assert!(second.ask("USER ann\r\nPASS x\r\n").contains("-ERR [LOGIN-DELAY]"));
    assert!(second.ask("USER bob\r\nPASS x\r\n").contains("+OK 0 messages"));
    let mut third = local(&context);
    third.now.monotonic += Duration::from_secs(60);
    assert!(third.ask("USER ann\r\nPASS x\r\n").contains("+OK 3 messages"));
}

#[test]
fn what_was_retrieved_goes_where_nothing_may_stay() {
    let context = context_with(Settings { keep_retrieved: false, ..Settings::default() });
    let account = account(&context);
    let mut client = local(&context);
    assert!(client.ask("CAPA\r\n").contains("\r\nEXPIRE 0\r\n"));
    client.ask("USER ann\r\nPASS x\r\nRETR 1\r\nTOP 2 0\r\nDELE 3\r\nQUIT\r\n");
    let left: Vec<u32> = inbox(&account).all_rows().map(|entry| entry.uid.get()).collect();
    assert_eq!(left, [2], "only what was retrieved whole");
}

#[test]
fn messages_and_names_in_utf8() {
    let context = context();
    let name = AccountName::new("jörg").unwrap();
    context.store.create_account(&name).unwrap();
    let account = context.store.account(&name).unwrap();
    let text = "Subject: Grüße\r\nFrom: jörg@müller.example\r\n\r\nü\r\n";
    let mut writer = account.message_writer().unwrap();
    writer.write(text.as_bytes()).unwrap();
    let message = NewMessage { message: writer.finish().unwrap(), flags: FlagNames::default(), internal_date: None };
    account.append(account.mailbox(&MailboxName::inbox()).unwrap(), vec![message]).unwrap();
    let mut client = local(&context);
    client.said();
    assert!(
        client
            .ask("UTF8\r\nUSER jörg\r\nPASS pässword\r\n")
            .ends_with(&format!("+OK 1 messages ({} octets)\r\n", text.len()))
    );
    assert_eq!(client.ask("RETR 1\r\n"), format!("+OK {} octets\r\n{text}.\r\n", text.len()));
    assert!(client.ask("UTF8\r\n").starts_with("-ERR"), "RFC 6856 §2.1: before the login only");
}

#[test]
fn many_sessions_at_once_delete_what_each_was_told_to() {
    let context = context();
    let account = account(&context);
    let id = account.mailbox(&MailboxName::inbox()).unwrap();
    let message = |n: u32| {
        let mut writer = account.message_writer().unwrap();
        writer.write(format!("Subject: {n}\r\n\r\n").as_bytes()).unwrap();
        NewMessage { message: writer.finish().unwrap(), flags: FlagNames::default(), internal_date: None }
    };
    account.append(id, (0..97).map(message).collect()).unwrap();
    let everybody_is_in = std::sync::Barrier::new(4);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (context, everybody_is_in) = (&context, &everybody_is_in);
            scope.spawn(move || {
                let mut client = local(context);
                client.ask("USER ann\r\nPASS x\r\n");
                everybody_is_in.wait();
                // Each its own quarter, and all of them the first one.
                for number in (1..=100).filter(|number| number % 4 == thread || *number == 1) {
                    assert!(client.ask(format!("RETR {number}\r\nDELE {number}\r\n")).ends_with("+OK Marked\r\n"));
                }
                assert!(client.ask("QUIT\r\n").ends_with("+OK Goodbye\r\n"));
            });
        }
    });
    assert_eq!(inbox(&account).exists(), 0);
}
