//! LMTP conversations without sockets: each as it stands, octet by octet, and with an output that is full after every line.

#![allow(clippy::unwrap_used, reason = "tests")]

mod line_client;

use std::sync::Arc;

use line_client::{CUTS, Client, NOW, WHOLE};
use mailyard_sessions::lmtp::{Address, Context, Destination, LmtpSession, OverQuota, Place, Recipients, Settings};
use mailyard_sessions::{Connection, ProtocolSession, Work};
use model::{AccountName, Error, ErrorKind, MailboxName};
use platform::sim::SimEnv;
use store::{Options, OwnLimit, OwnLimits, Store};

/// `ann`, `bob` and `cid`, and their mailboxes by `+` and, strictly, by `/`.
struct Three;

impl Recipients for Three {
    fn destination(&self, address: &Address) -> model::Result<Destination> {
        let local = address.local();
        let (user, place) = match (local.split_once('+'), local.split_once('/')) {
            (Some((user, detail)), _) => (user, Place::IfThere(MailboxName::new(detail)?)),
            (_, Some((user, name))) => (user, Place::Exactly(MailboxName::new(name)?)),
            _ => (local, Place::Inbox),
        };
        match user {
            "ann" | "bob" | "cid" => Ok(Destination { account: AccountName::new(user)?, place }),
            "broken" => Err(Error::new(ErrorKind::Io, "nothing can be looked up")),
            _ => Err(Error::new(ErrorKind::NotFound, "no such user")),
        }
    }
}

fn context_with(sim: &SimEnv, settings: Settings, message_bytes_max: u64) -> Arc<Context> {
    let options = Options { message_bytes_max, ..Options::default() };
    let store = Store::open(sim.env(), "/store".into(), options).unwrap();
    Arc::new(Context { store, recipients: Arc::new(Three), observer: Arc::new(()), settings })
}

fn context() -> Arc<Context> {
    context_with(&SimEnv::new(1), Settings::default(), 100_000)
}

/// The messages of a mailbox.
fn messages(context: &Context, user: &str, mailbox: &str) -> Vec<String> {
    let Ok(account) = context.store.account(&AccountName::new(user).unwrap()) else { return Vec::new() };
    let view = account.view(account.mailbox(&MailboxName::new(mailbox).unwrap()).unwrap(), false).unwrap();
    let mut reader = account.reader();
    let mut read = |entry: store::Entry| {
        let mut bytes = Vec::new();
        reader.read(entry.email_id, 0..u64::from(entry.size), &mut bytes).unwrap();
        bytes.iter().map(|byte| char::from(*byte)).collect()
    };
    view.all_rows().map(&mut read).collect()
}

fn client(context: &Arc<Context>, cut: (usize, usize)) -> Client<LmtpSession> {
    let peer = Some([192, 0, 2, 7].into());
    let connection = Connection { id: 5, peer, starttls_available: true, ..Connection::default() };
    Client::new(LmtpSession::new(Arc::clone(context), connection, Arc::new(|| ()), NOW), cut)
}

/// Plays a conversation in each cut: `C:` lines are sent with CRLF, or as they are after `C-`, with `\r`, `\n`, `\0` and `\xff` written so.
/// What follows without an answer between is sent at once (PIPELINING).
fn play(script: &str) -> Arc<Context> {
    let mut last = None;
    for cut in CUTS {
        let context = context();
        let mut client = client(&context, cut);
        let mut said = client.said();
        let mut sent: Vec<u8> = Vec::new();
        for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let (kind, text) = line.split_at(2);
            let text = text.trim_start();
            match kind {
                "C:" => sent.extend_from_slice(format!("{text}\r\n").as_bytes()),
                "C-" => {
                    let text =
                        text.replace("\\r", "\r").replace("\\n", "\n").replace("\\0", "\0").replace("\\xff", "\u{ff}");
                    sent.extend(text.chars().map(|c| u8::try_from(u32::from(c)).unwrap()));
                }
                _ => {
                    if !sent.is_empty() {
                        assert_eq!(said, "", "before {line}");
                        said = client.ask(std::mem::take(&mut sent));
                    }
                    let (found, rest) =
                        said.split_once("\r\n").unwrap_or_else(|| panic!("nothing came for {line}: {said:?}"));
                    assert!(found.starts_with(text), "expected {text:?}, found {found:?}");
                    said = rest.to_owned();
                }
            }
        }
        assert_eq!(said, "");
        assert!(sent.is_empty(), "the script ends with an answer");
        last = Some(context);
    }
    last.unwrap()
}

const TO_ANN: &str = "Return-Path: <bea@a.example>\r\nDelivered-To: ann@b.example\r\nReceived: from a.example ([192.0.2.7])\r\n\tby localhost \
    with LMTP id 3b9aca00.5.1\r\n\tfor <ann@b.example>; Sun, 9 Sep 2001 01:46:40 +0000\r\n";

#[test]
fn one_message_and_its_fields() {
    let context = play(
        "S: 220 localhost LMTP Mailyard
         C: LHLO a.example
         S: 250-localhost
         S: 250-PIPELINING
         S: 250-8BITMIME
         S: 250-SMTPUTF8
         S: 250-CHUNKING
         S: 250-BINARYMIME
         S: 250-STARTTLS
         S: 250-ENHANCEDSTATUSCODES
         S: 250 SIZE 95904
         C: MAIL FROM:<bea@a.example> BODY=8BITMIME SIZE=100
         S: 250 2.1.0
         C: RCPT TO:<ann@b.example>
         S: 250 2.1.5
         C: DATA
         S: 354
         C- Subject: x\\r\\n\\r\\n..\\r\\n...a\\r\\nb\\0\\xff\\r\\n.\\r\\n
         S: 250 2.1.5 <ann@b.example> Delivered
         C: QUIT
         S: 221 2.0.0",
    );
    assert_eq!(messages(&context, "ann", "INBOX"), [format!("{TO_ANN}Subject: x\r\n\r\n.\r\n..a\r\nb\0\u{ff}\r\n")]);
}

#[test]
fn pipelined_to_several_and_some_unknown() {
    let context = play(
        "S: 220
         C: LHLO a.example
         C: MAIL FROM:<>
         C: RCPT TO:<ann@b.example>
         C: RCPT TO:<nobody@b.example>
         C: RCPT TO:<broken>
         C: RCPT TO:<bob/none>
         C: RCPT TO:<bob>
         C: DATA
         S: 250-localhost
         S: 250-
         S: 250-
         S: 250-
         S: 250-
         S: 250-
         S: 250-
         S: 250-
         S: 250 SIZE
         S: 250 2.1.0
         S: 250 2.1.5
         S: 550 5.1.1 <nobody@b.example> There is no such user here
         S: 451 4.3.0 <broken>
         S: 250 2.1.5
         S: 250 2.1.5
         S: 354
         C: Subject: y
         C:
         C: text
         C: .
         C: RSET
         C: QUIT
         S: 250 2.1.5 <ann@b.example> Delivered
         S: 550 5.2.0 <bob/none> There is no such mailbox
         S: 250 2.1.5 <bob> Delivered
         S: 250 2.0.0
         S: 221",
    );
    let received = "Received: from a.example ([192.0.2.7])\r\n\tby localhost with LMTP id 3b9aca00.5.1; Sun, 9 Sep 2001 01:46:40 +0000\r\n";
    let text = "Subject: y\r\n\r\ntext\r\n";
    let to = |address: &str| format!("Return-Path: <>\r\nDelivered-To: {address}\r\n{received}{text}");
    assert_eq!(messages(&context, "ann", "INBOX"), [to("ann@b.example")]);
    assert_eq!(messages(&context, "bob", "INBOX"), [to("bob")]);
}

#[test]
fn chunks() {
    let context = play(
        "S: 220
         C: LHLO a.example
         C: NOOP
         S: 250-localhost
         S: 250-
         S: 250-
         S: 250-
         S: 250-
         S: 250-
         S: 250-
         S: 250-
         S: 250 SIZE
         S: 250 2.0.0
         C: BDAT 4
         C- junk
         S: 503 5.5.1
         C: MAIL FROM:<bea@a.example> BODY=BINARYMIME
         C: BDAT 4 LAST
         C- junk
         C: NOOP
         S: 250 2.1.0
         S: 250 2.0.0
         C: MAIL FROM:<bea@a.example> BODY=BINARYMIME
         C: RCPT TO:<ann@b.example>
         C: DATA
         S: 250 2.1.0
         S: 250 2.1.5
         S: 503 5.5.1
         C: BDAT 5
         C- a\\n.\\r\\n
         C: BDAT 0
         C: RCPT TO:<bob>
         C: BDAT 7 LAST
         C- .\\r\\nQUIT
         C: NOOP
         S: 250 2.0.0
         S: 250 2.0.0
         S: 503 5.5.1
         S: 250 2.1.5 <ann@b.example>
         S: 250 2.0.0
         C: BDAT many
         C: MAIL FROM:<is@part.of.the.message>
         S: 501 5.5.4",
    );
    assert_eq!(messages(&context, "ann", "INBOX"), [format!("{TO_ANN}a\n.\r\n.\r\nQUIT")]);
    assert!(messages(&context, "bob", "INBOX").is_empty());
}

#[test]
fn only_crlf_dot_crlf_ends_a_message() {
    let context = play(
        "S: 220
         C: LHLO a.example
         S: 250-localhost
         S: 250-
         S: 250-
         S: 250-
         S: 250-
         S: 250-
         S: 250-
         S: 250-
         S: 250 SIZE
         C: MAIL FROM:<bea@a.example>
         C: RCPT TO:<ann@b.example>
         C: DATA
         S: 250
         S: 250
         S: 354
         C- a\\n.\\nMAIL FROM:<x>\\r\\n.\\nb\\r\\n.\\rc\\r.\\r\\n\\n.\\r\\nd\\r\\n.\\r\\n
         S: 250 2.1.5",
    );
    let stored = "a\n.\nMAIL FROM:<x>\r\n\nb\r\n\rc\r.\r\n\n.\r\nd\r\n";
    assert_eq!(messages(&context, "ann", "INBOX"), [format!("{TO_ANN}{stored}")]);
}

#[test]
fn what_is_out_of_order_is_refused() {
    play(
        "S: 220
         C: MAIL FROM:<>
         S: 503 5.5.1
         C: EHLO a.example
         S: 500
         C: HELO a.example
         S: 500
         C: NOOP
         C: VRFY ann
         C: HELP
         S: 250 2.0.0
         S: 252 2.5.2
         S: 214 2.0.0
         C: STARTTLS
         S: 220 2.0.0
         C: STARTTLS
         S: 502
         C: LHLO a.example
         S: 250-localhost
         S: 250-PIPELINING
         S: 250-
         S: 250-
         S: 250-
         S: 250-BINARYMIME
         S: 250-ENHANCEDSTATUSCODES
         S: 250 SIZE
         C: RCPT TO:<ann>
         C: DATA
         S: 503 5.5.1
         S: 503 5.5.1
         C: MAIL FROM:<bea@a.example> SIZE=95905
         S: 552 5.3.4
         C: MAIL FROM:<bea@a.example> SIZE=95904
         C: MAIL FROM:<bea@a.example>
         C: RCPT TO:<änn>
         C: RCPT TO:<nobody>
         C: DATA
         S: 250
         S: 503 5.5.1
         S: 553 5.6.7
         S: 550 5.1.1
         S: 503 5.5.1
         C: RSET
         C: MAIL FROM:<änn@a.example> SMTPUTF8
         S: 250
         S: 250
         C: QUIT
         S: 221",
    );
}

fn open(context: &Arc<Context>, recipients: &[&str]) -> Client<LmtpSession> {
    let mut client = client(context, WHOLE);
    client.said();
    client.ask(b"LHLO a.example\r\nMAIL FROM:<bea@a.example>\r\n");
    for recipient in recipients {
        assert!(client.ask(format!("RCPT TO:<{recipient}>\r\n").as_bytes()).starts_with("250"));
    }
    client
}

#[test]
fn details_and_the_mailboxes_that_are_there() {
    let context = context();
    let text = b"DATA\r\nx\r\n.\r\n";
    open(&context, &["ann"]).ask(text);
    let account = context.store.account(&AccountName::new("ann").unwrap()).unwrap();
    account.create_mailbox(&MailboxName::new("lists/rust").unwrap(), &[]).unwrap();
    for address in ["ann+lists/rust", "ann+none", "ann/lists/rust"] {
        assert!(open(&context, &[address]).ask(text).contains("\r\n250 2.1.5"), "{address}");
    }
    assert_eq!(messages(&context, "ann", "lists/rust").len(), 2);
    assert_eq!(messages(&context, "ann", "INBOX").len(), 2);
}

#[test]
fn what_is_too_large_is_read_to_its_end_and_refused() {
    let context = context();
    let line = "x".repeat(998) + "\r\n";
    let mut client = open(&context, &["ann", "bob"]);
    let said = client.ask(format!("DATA\r\n{}.\r\nNOOP\r\n", line.repeat(96)).as_bytes());
    let replies: Vec<&str> = said.lines().map(|line| &line[..9]).collect();
    assert_eq!(replies, ["354 Send ", "552 5.3.4", "552 5.3.4", "250 2.0.0"]);
    // The same in chunks; the first one that is over says so.
    client.ask(b"MAIL FROM:<>\r\nRCPT TO:<ann>\r\n");
    for (chunk, reply) in
        [("BDAT 50000", "250"), ("BDAT 50000", "552"), ("BDAT 1", "552"), ("BDAT 0 LAST", "552 5.3.4 <ann>")]
    {
        let octets: usize = chunk.split(' ').nth(1).unwrap().parse().unwrap();
        let said = client.ask(format!("{chunk}\r\n{}", "y".repeat(octets)).as_bytes());
        assert!(said.starts_with(reply) && said.lines().count() == 1, "{chunk}: {said}");
    }
    assert!(messages(&context, "ann", "INBOX").is_empty());
    assert!(messages(&context, "bob", "INBOX").is_empty());
    // At the limit.
    let mut client = open(&context, &["ann", "bob"]);
    let said = client.ask(format!("BDAT 95904 LAST\r\n{}", "z".repeat(95_904)).as_bytes());
    assert_eq!(said.matches("250 2.1.5").count(), 2, "{said}");
    for (user, messages) in ["ann", "bob"].map(|user| (user, messages(&context, user, "INBOX"))) {
        assert!(messages.len() == 1 && messages[0].ends_with(&"z".repeat(95_904)), "{user}");
    }
}

#[test]
fn many_recipients_and_one_more() {
    let settings = Settings { recipients_max: 100, ..Settings::default() };
    let context = context_with(&SimEnv::new(1), settings, 1 << 20);
    let everybody: Vec<&str> = ["ann", "bob", "cid", "ann"].into_iter().cycle().take(100).collect();
    let mut client = open(&context, &everybody);
    assert!(client.ask(b"RCPT TO:<ann>\r\n").starts_with("452 4.5.3"));
    client.ask(b"DATA\r\n");
    client.session.receive(b"x\r\n.\r\n");
    assert_eq!(client.session.work(), Work::SeveralAccounts);
    let said = client.said();
    let replies: Vec<String> = everybody.iter().map(|user| format!("250 2.1.5 <{user}> Delivered")).collect();
    assert_eq!(said.lines().collect::<Vec<_>>(), replies);
    assert_eq!(messages(&context, "ann", "INBOX").len(), 50);
    assert_eq!(client.session.work(), Work::Ordinary);
}

#[test]
fn a_full_disk_is_a_reply_and_nothing_stays_behind() {
    let sim = SimEnv::new(1);
    let context = context_with(&sim, Settings::default(), 10 << 20);
    open(&context, &["ann", "bob"]).ask(b"DATA\r\nx\r\n.\r\n");
    sim.disk.set_capacity(Some(sim.disk.used_bytes() + (1 << 20)));
    let mut client = open(&context, &["ann", "bob"]);
    let said = client.ask(format!("BDAT {0} LAST\r\n{1}", 5 << 20, "x".repeat(5 << 20)).as_bytes());
    assert_eq!(said.matches("452 4.3.1 <").count(), 2, "{said}");
    // Small ones go on.
    assert!(open(&context, &["ann"]).ask(b"DATA\r\ny\r\n.\r\n").contains("250 2.1.5"));
    assert_eq!(messages(&context, "ann", "INBOX").len(), 2);
    assert_eq!(messages(&context, "bob", "INBOX").len(), 1);
}

#[test]
fn lines_and_silence_have_limits() {
    let context = context();
    let mut client = client(&context, WHOLE);
    client.said();
    assert!(client.ask(format!("NOOP {}\r\nNOOP\r\n", "x".repeat(5000)).as_bytes()).starts_with("500 5.5.2"));
    for _ in 0..20 {
        client.ask(b"GET / HTTP/1.1\r\n");
    }
    assert!(client.is_closed);

    let mut client = open(&context, &["ann"]);
    client.ask(b"DATA\r\nhalf of");
    client.now.monotonic += Settings::default().idle_time_max;
    assert!(client.said().starts_with("421 4.4.2") && client.is_closed);

    // A stop lets a message that is coming in come.
    let mut client = open(&context, &["ann"]);
    client.ask(b"DATA\r\nhalf of");
    client.session.shut_down();
    assert_eq!(client.said(), "");
    let said = client.ask(b" it\r\n.\r\n");
    assert!(said.starts_with("250 2.1.5") && said.contains("\r\n421 4.3.2") && client.is_closed, "{said}");
    assert_eq!(messages(&context, "ann", "INBOX").len(), 1);
}

fn limit_messages(context: &Context, user: &str, most: u64) {
    let account = context.store.account(&AccountName::new(user).unwrap()).unwrap();
    let limits = OwnLimits { messages: OwnLimit::Limit(most), ..OwnLimits::default() };
    account.set_own_limits(limits).unwrap();
}

#[test]
fn a_full_account_is_refused_alone() {
    let text = b"DATA\r\nx\r\n.\r\n";
    for (over_quota, reply) in [(OverQuota::Retry, "452 4.2.2"), (OverQuota::Reject, "552 5.2.2")] {
        let settings = Settings { over_quota, ..Settings::default() };
        let context = context_with(&SimEnv::new(1), settings, 100_000);
        open(&context, &["ann", "bob", "cid"]).ask(text);
        limit_messages(&context, "bob", 2);
        let replies = |said: String| said.lines().skip(1).map(|line| line[..9].to_owned()).collect::<Vec<_>>();
        // The last one that fits.
        let said = open(&context, &["ann", "bob", "cid"]).ask(text);
        assert_eq!(replies(said), ["250 2.1.5"; 3]);
        let said = open(&context, &["ann", "bob", "cid"]).ask(text);
        assert_eq!(replies(said), ["250 2.1.5", reply, "250 2.1.5"]);
        for (user, count) in [("ann", 3), ("bob", 2), ("cid", 3)] {
            assert_eq!(messages(&context, user, "INBOX").len(), count, "{user}");
        }
    }
}

#[test]
fn a_delivery_that_is_repeated_is_recognised_by_its_id() {
    let context = context();
    let deliver = |envelope: &str, recipients: &[&str], text: &str| {
        let mut client = client(&context, WHOLE);
        client.said();
        client.ask(format!("LHLO a.example\r\nMAIL FROM:<bea@a.example>{envelope}\r\n"));
        for recipient in recipients {
            client.ask(format!("RCPT TO:<{recipient}>\r\n"));
        }
        // Later, so that the fields on top are others.
        client.now.unix_seconds += 60;
        let said = client.ask(format!("DATA\r\n{text}\r\n.\r\n"));
        assert_eq!(said.matches("\r\n250 2.1.5").count(), recipients.len(), "{said}");
    };
    let count = |user| messages(&context, user, "INBOX").len();
    deliver(" ENVID=QQ314159", &["ann"], "x");
    // The answers were lost: everybody is delivered to again.
    for _ in 0..2 {
        deliver(" ENVID=QQ314159", &["ann", "bob"], "x");
        assert_eq!((count("ann"), count("bob")), (1, 1));
    }
    // Another id, another text, or none of an id at all.
    deliver(" ENVID=QQ314160", &["ann"], "x");
    deliver(" ENVID=QQ314160", &["ann"], "y");
    assert_eq!(count("ann"), 3);
    deliver("", &["ann"], "y");
    deliver("", &["ann"], "y");
    assert_eq!(count("ann"), 5);
    // So many are remembered.
    for n in 1..store::DELIVERIES_MAX {
        deliver(&format!(" ENVID=n{n}"), &["bob"], "x");
    }
    let before = count("bob");
    deliver(" ENVID=QQ314159", &["bob"], "x");
    assert_eq!(count("bob"), before);
    deliver(" ENVID=one-more", &["bob"], "x");
    deliver(" ENVID=QQ314159", &["bob"], "x");
    assert_eq!(count("bob"), before + 2, "the oldest is forgotten");
}

#[test]
fn parameters_of_reports_are_for_those_who_were_offered_them() {
    for (offers_dsn, replies) in [(false, ["555 5.5.4", "555 5.5.4"]), (true, ["250 2.1.0", "250 2.1.5"])] {
        let context = context_with(&SimEnv::new(1), Settings { offers_dsn, ..Settings::default() }, 100_000);
        let mut client = client(&context, WHOLE);
        assert_eq!(client.ask("LHLO a.example\r\n").contains("\r\n250-DSN\r\n"), offers_dsn);
        assert!(client.ask("MAIL FROM:<bea@a.example> RET=HDRS ENVID=x\r\n").starts_with(replies[0]));
        client.ask("RSET\r\nMAIL FROM:<bea@a.example> ENVID=x\r\n");
        assert!(client.ask("RCPT TO:<ann> NOTIFY=FAILURE ORCPT=rfc822;ann@a.example\r\n").starts_with(replies[1]));
    }
}
