//! LMTP: a conversation is the same however the stream was cut, what is stored is what was sent, and no octet of a message is taken for
//! a command.

use std::sync::Arc;
use std::time::Duration;

use model::{AccountName, Error, ErrorKind, MailboxName, Result};
use platform::sim::SimEnv;
use sessions::lmtp::{Address, Context, Destination, LmtpSession, Place, Recipients, Settings};
use sessions::{Connection, Now, Output, ProtocolSession, Step};
use store::{Options, Store};

/// So small that inputs meet it.
const MESSAGE_BYTES_MAX: u64 = 4096 + 200;

/// What the fields that are put on top end with.
const TRACE_END: &[u8] = b"; Sun, 9 Sep 2001 01:46:40 +0000\r\n";

const USERS: [&str; 2] = ["ann", "bob"];

struct Two;

impl Recipients for Two {
    fn destination(&self, address: &Address) -> Result<Destination> {
        let user = USERS.iter().find(|user| **user == address.local());
        let user = user.ok_or_else(|| Error::new(ErrorKind::NotFound, "no such user"))?;
        Ok(Destination { account: AccountName::new(user)?, place: Place::Inbox })
    }
}

/// A client's stream, after the first byte, which says how it is cut.
pub fn session(data: &[u8]) {
    let Some((cut, stream)) = data.split_first() else { return };
    let whole = converse(stream, stream.len().max(1), 1 << 20);
    let (answers, messages) = &whole;
    assert!(answers.starts_with("220 "), "{answers}");
    for message in messages {
        let fields = message.windows(TRACE_END.len()).position(|window| window == TRACE_END).expect("fields on top");
        let mut sent = stream.iter();
        let is_sent = message[fields + TRACE_END.len()..].iter().all(|octet| sent.any(|other| other == octet));
        assert!(is_sent, "octets that nobody sent: {}", message.escape_ascii());
    }
    let delivered = answers.matches("> Delivered\r\n").count();
    // A delivery that is repeated under its id is answered as the first was, and not stored again.
    let is_repeated = stream.windows(6).any(|word| word.eq_ignore_ascii_case(b"ENVID="));
    assert!(
        delivered == messages.len() || is_repeated && delivered > messages.len(),
        "each message has its answer: {answers}"
    );
    assert_eq!(
        converse(stream, usize::from(*cut) + 1, 1),
        whole,
        "the same octets in other cuts are another conversation"
    );
}

/// What the server says, and what it has then.
fn converse(stream: &[u8], piece: usize, output: usize) -> (String, Vec<Vec<u8>>) {
    let now = Now { monotonic: Duration::ZERO, unix_seconds: 1_000_000_000 };
    let options = Options { message_bytes_max: MESSAGE_BYTES_MAX, ..Options::default() };
    let store = Store::open(SimEnv::new(1).env(), "/store".into(), options).unwrap();
    let settings = Settings { recipients_max: 3, offers_dsn: true, ..Settings::default() };
    let context = Arc::new(Context { store, recipients: Arc::new(Two), observer: Arc::new(()), settings });
    let connection = Connection { starttls_available: true, ..Connection::default() };
    let mut session = LmtpSession::new(Arc::clone(&context), connection, Arc::new(|| ()), now);
    let mut out = Output::new(output);
    let mut said = Vec::new();
    let mut is_closed = step(&mut session, now, &mut out, &mut said);
    for mut rest in stream.chunks(piece) {
        while !rest.is_empty() && !is_closed {
            rest = &rest[session.receive(rest)..];
            is_closed = step(&mut session, now, &mut out, &mut said);
        }
    }
    let messages = USERS.iter().flat_map(|user| messages(&context.store, user)).collect();
    (String::from_utf8(said).unwrap(), messages)
}

/// Lets the session go on; whether it is over. TLS ends it: what is behind is not for these eyes.
fn step(session: &mut LmtpSession, now: Now, out: &mut Output, said: &mut Vec<u8>) -> bool {
    loop {
        let step = session.step(now, out);
        said.extend_from_slice(out.pending());
        out.consume(usize::MAX);
        match step {
            Step::Output => {}
            Step::NeedInput { .. } => return false,
            Step::StartTls | Step::Close => return true,
        }
    }
}

fn messages(store: &Store, user: &str) -> Vec<Vec<u8>> {
    let Ok(account) = store.account(&AccountName::new(user).unwrap()) else { return Vec::new() };
    let view = account.view(account.mailbox(&MailboxName::inbox()).unwrap(), false).unwrap();
    let mut reader = account.reader();
    let mut read = |entry: store::Entry| {
        let mut bytes = Vec::new();
        reader.read(entry.email_id, 0..u64::from(entry.size), &mut bytes).unwrap();
        bytes
    };
    view.all_rows().map(&mut read).collect()
}
