//! What a session holds is bounded, however large the messages and however slow the other side; and what the wire carries is the same
//! through COMPRESS.

#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress};
use mailyard_sessions::imap::{ImapSession, Settings};
use mailyard_sessions::{Output, Step};
use support::NOW;

const OUTPUT_BYTES: usize = 64 * 1024;

struct Client {
    session: ImapSession,
    out: Output,
    /// The most that ever waited in the output.
    most: usize,
}

impl Client {
    fn new(settings: Settings) -> Self {
        let session = support::session(&support::context(1, settings));
        let mut client = Client { session, out: Output::new(OUTPUT_BYTES), most: 0 };
        client.said();
        client
    }

    fn logged_in() -> Self {
        let mut client = Client::new(Settings::default());
        assert!(client.ask(b"a LOGIN ann secret\r\n").starts_with(b"a OK"));
        client
    }

    /// Lets the session go on until it wants input, and gives all that it said.
    fn said(&mut self) -> Vec<u8> {
        let mut said = Vec::new();
        loop {
            let step = self.session.step(NOW, &mut self.out);
            self.most = self.most.max(self.out.pending().len());
            said.extend_from_slice(self.out.pending());
            self.out.consume(usize::MAX);
            match step {
                Step::Output => {}
                Step::NeedInput { .. } | Step::Close => return said,
                Step::StartTls => panic!("no TLS here"),
            }
        }
    }

    fn ask(&mut self, octets: &[u8]) -> Vec<u8> {
        let mut said = Vec::new();
        let mut rest = octets;
        while !rest.is_empty() {
            let taken = self.session.receive(rest);
            rest = &rest[taken..];
            said.extend(self.said());
        }
        said
    }
}

fn text(octets: &[u8]) -> String {
    String::from_utf8_lossy(octets).into_owned()
}

/// A message of about `octets` octets that does not compress to nothing.
fn message(octets: usize) -> Vec<u8> {
    let mut message = b"Subject: large\r\n\r\n".to_vec();
    let mut number = 1u64;
    while message.len() < octets {
        number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        message.extend_from_slice(format!("{number:016x}\r\n").as_bytes());
    }
    message
}

#[test]
fn a_large_message_goes_in_and_out_in_pieces() {
    let mut client = Client::logged_in();
    let message = message(8 << 20);
    let mut append = format!("b APPEND INBOX {{{}+}}\r\n", message.len()).into_bytes();
    append.extend_from_slice(&message);
    append.extend_from_slice(b"\r\n");
    assert!(text(&client.ask(&append)).contains("b OK [APPENDUID"));
    client.ask(b"c SELECT INBOX\r\n");
    client.most = 0;
    let answer = client.ask(b"d FETCH 1 BODY.PEEK[]\r\n");
    let head = format!("* 1 FETCH (BODY[] {{{}}}\r\n", message.len());
    assert!(answer.starts_with(head.as_bytes()));
    assert!(answer[head.len()..].starts_with(&message));
    // A piece may overshoot the bound, a message must not.
    assert!(client.most < 4 * OUTPUT_BYTES, "{}", client.most);
}

#[test]
fn a_client_that_does_not_read_is_not_read_from() {
    let mut client = Client::logged_in();
    client.ask(b"b SELECT INBOX\r\n");
    // Commands come and come, and what they answer is never taken from the output.
    let commands = b"c CAPABILITY\r\n".repeat(100_000);
    let mut rest = commands.as_slice();
    loop {
        let taken = client.session.receive(rest);
        rest = &rest[taken..];
        client.session.step(NOW, &mut client.out);
        if taken == 0 {
            break;
        }
    }
    assert!(commands.len() - rest.len() < 256 * 1024, "{} octets were taken", commands.len() - rest.len());
    assert!(client.out.pending().len() < 2 * OUTPUT_BYTES);
    // Once it reads, everything is answered.
    let mut answers = 0;
    let mut said = client.said();
    while !rest.is_empty() {
        let taken = client.session.receive(rest);
        rest = &rest[taken..];
        said.extend(client.said());
        answers += text(&said).matches("c OK").count();
        said.clear();
    }
    assert_eq!(answers, 100_000);
}

#[test]
fn output_is_made_up_to_its_limit_and_no_further() {
    let answers_to = |room: &dyn Fn(usize) -> usize| {
        let mut client = Client::logged_in();
        let one = client.ask(b"b NOOP\r\n").len();
        client.out = Output::new(room(one));
        client.session.receive(&b"b NOOP\r\n".repeat(10));
        let mut made = Vec::new();
        // Asking again makes no more, as long as nothing was read.
        for _ in 0..3 {
            assert!(matches!(client.session.step(NOW, &mut client.out), Step::Output));
            made.push(client.out.pending().len() / one);
        }
        let rest = client.said().len() / one;
        assert_eq!(rest, 10, "everything is answered once it is read");
        made
    };
    assert_eq!(answers_to(&|one| 4 * one), [4, 4, 4], "four answers fill it");
    assert_eq!(answers_to(&|one| 4 * one + 1), [5, 5, 5], "an answer is not cut");
}

#[test]
fn commands_before_login_are_short() {
    let id = |octets: usize| {
        let (start, end) = ("a ID (\"x\" \"", "\")\r\n");
        format!("{start}{}{end}", "y".repeat(octets - start.len() - end.len())).into_bytes()
    };
    let mut client = Client::new(Settings::default());
    assert!(text(&client.ask(&id(16_384))).contains("a OK"));
    assert_eq!(text(&client.ask(&id(16_385))), "a BAD A limit was met (limit line_bytes_max)\r\n");
    assert!(text(&client.ask(b"a LOGIN ann secret\r\n")).starts_with("a OK"));
    assert!(text(&client.ask(&id(65_536))).contains("a OK"));
    assert_eq!(text(&client.ask(&id(65_537))), "a BAD A limit was met (limit line_bytes_max)\r\n");
}

#[test]
fn input_is_taken_up_to_its_limit_and_no_further() {
    let mut settings = Settings::default();
    settings.limits.input_bytes_max = 100;
    let mut client = Client::new(settings);
    assert_eq!(client.session.receive(&[b'x'; 100]), 100);
    assert_eq!(client.session.receive(b"x"), 0);
    client.said();
    assert_eq!(client.session.receive(&[b'x'; 101]), 100);
}

#[test]
fn many_answers_are_pulled_in_pieces() {
    let mut client = Client::logged_in();
    client.ask(b"b SELECT INBOX\r\n");
    for _ in 0..20 {
        let mut append = b"c APPEND INBOX ".to_vec();
        append.extend_from_slice(&b"{1+}\r\nx ".repeat(999));
        append.extend_from_slice(b"{1+}\r\nx\r\n");
        assert!(text(&client.ask(&append)).contains("c OK [APPENDUID"));
    }
    client.most = 0;
    let flags = text(&client.ask(b"d FETCH 1:* FLAGS\r\n"));
    assert_eq!(flags.matches("FETCH (FLAGS (").count(), 20_000);
    let stored = text(&client.ask(b"e STORE 1:* +FLAGS (\\Deleted)\r\n"));
    assert_eq!(stored.matches("FETCH (FLAGS (\\Deleted").count(), 20_000);
    let found = text(&client.ask(b"f SEARCH DELETED\r\n"));
    assert!(found.contains(" 19999 20000\r\n"));
    let sorted = text(&client.ask(b"f SORT (REVERSE ARRIVAL SUBJECT) UTF-8 ALL\r\n"));
    assert!(sorted.starts_with("* SORT 1 2 3 ") && sorted.ends_with(" 20000\r\nf OK Sorted\r\n"));
    let threads = text(&client.ask(b"f THREAD REFERENCES UTF-8 ALL\r\n"));
    assert!(threads.starts_with("* THREAD (1)(2)(3)") && threads.ends_with("(20000)\r\nf OK Threaded\r\n"));
    let expunged = text(&client.ask(b"g EXPUNGE\r\n"));
    assert!(expunged.starts_with("* 20000 EXPUNGE\r\n* 19999 EXPUNGE\r\n"));
    assert_eq!(expunged.matches("EXPUNGE\r\n").count(), 20_000);
    assert!(client.most < 2 * OUTPUT_BYTES, "{}", client.most);
}

#[test]
fn a_long_search_says_that_it_goes_on() {
    let mut client = Client::logged_in();
    client.ask(b"b SELECT INBOX\r\n");
    let message = message(1 << 20);
    let mut append = format!("c APPEND INBOX {{{}+}}\r\n", message.len()).into_bytes();
    append.extend_from_slice(&message);
    append.extend_from_slice(b"\r\n");
    client.ask(&append);
    for _ in 0..5 {
        client.ask(b"d COPY 1:* INBOX\r\n");
    }
    client.session.receive(b"e SEARCH BODY nowhere\r\nf NOOP\r\n");
    // Each slice of the work takes four seconds.
    let mut now = NOW;
    while let Step::Output = client.session.step(now, &mut client.out) {
        now.monotonic += std::time::Duration::from_secs(4);
    }
    let said = text(client.out.pending());
    assert!(now.monotonic.as_secs() >= 24, "the search was done in {:?}", now.monotonic);
    let expected = "* OK Still searching\r\n".repeat(now.monotonic.as_secs() as usize / 12);
    assert_eq!(said, expected + "* SEARCH\r\ne OK Searched\r\nf OK Nothing done\r\n");
}

#[test]
fn a_sort_and_a_thread_give_others_their_turn() {
    let mut client = Client::logged_in();
    client.ask(b"b SELECT INBOX\r\n");
    let mut append = b"c APPEND INBOX ".to_vec();
    append.extend_from_slice(&b"{14+}\r\nSubject: x\r\n\r\n ".repeat(999));
    append.extend_from_slice(b"{1+}\r\nx\r\n");
    assert!(text(&client.ask(&append)).contains("c OK [APPENDUID"));
    for _ in 0..5 {
        client.ask(b"d COPY 1:* INBOX\r\n");
    }
    // 32,000 entries: the longest piece of work is a fraction of it, and a client that is gone is noticed between two.
    for (command, steps) in [("SORT (SUBJECT)", 8), ("THREAD REFERENCES", 10), ("THREAD REFS", 10)] {
        client.session.receive(format!("e {command} UTF-8 ALL\r\n").as_bytes());
        let mut count = 0;
        while let Step::Output = client.session.step(NOW, &mut client.out) {
            if client.out.is_full() {
                break;
            }
            count += 1;
        }
        assert!(count >= steps, "{command}: {count} steps");
        client.said();
    }
}

/// Both directions of a client that compresses.
struct Compressing {
    client: Client,
    deflate: Compress,
    inflate: Decompress,
}

impl Compressing {
    fn start(mut client: Client) -> Self {
        assert_eq!(text(&client.ask(b"z COMPRESS DEFLATE\r\n")), "z OK DEFLATE active\r\n");
        let deflate = Compress::new(Compression::default(), false);
        Compressing { client, deflate, inflate: Decompress::new(false) }
    }

    fn ask(&mut self, octets: &[u8]) -> Vec<u8> {
        let mut compressed = Vec::with_capacity(octets.len() + 1024);
        self.deflate.compress_vec(octets, &mut compressed, FlushCompress::Sync).unwrap();
        let said = self.client.ask(&compressed);
        let mut plain = Vec::new();
        let mut at = 0;
        loop {
            plain.reserve(64 * 1024);
            let (taken, given) = (self.inflate.total_in(), plain.len());
            self.inflate.decompress_vec(&said[at..], &mut plain, FlushDecompress::None).unwrap();
            at += (self.inflate.total_in() - taken) as usize;
            if at == said.len() && plain.len() == given {
                return plain;
            }
        }
    }
}

#[test]
fn compression_changes_nothing_but_the_size() {
    let message = message(300_000);
    let mut append = format!("b APPEND INBOX {{{}+}}\r\n", message.len()).into_bytes();
    append.extend_from_slice(&message);
    append.extend_from_slice(b"\r\n");
    let questions: [&[u8]; 6] = [
        b"a NOOP\r\n",
        &append,
        b"c SELECT INBOX\r\n",
        b"d FETCH 1 (UID BODY.PEEK[])\r\ne FETCH 1 FLAGS\r\n",
        b"f COMPRESS DEFLATE\r\n",
        b"g LOGOUT\r\n",
    ];
    let mut plain = Client::logged_in();
    let mut compressing = Compressing::start(Client::logged_in());
    for question in questions {
        let answer = text(&compressing.ask(question));
        if question.starts_with(b"f ") {
            assert_eq!(answer, "f NO [COMPRESSIONACTIVE] DEFLATE is active already\r\n");
        } else {
            assert_eq!(answer, text(&plain.ask(question)));
        }
    }
}

#[test]
fn compression_is_not_offered_twice() {
    let mut compressing = Compressing::start(Client::logged_in());
    assert!(!text(&compressing.ask(b"a CAPABILITY\r\n")).contains("COMPRESS"));
}

#[test]
fn what_is_pipelined_behind_compress_is_compressed() {
    let mut client = Client::logged_in();
    let mut octets = b"z COMPRESS DEFLATE\r\n".to_vec();
    let mut compressed = Vec::with_capacity(100);
    let mut deflate = Compress::new(Compression::default(), false);
    deflate.compress_vec(b"a LOGOUT\r\n", &mut compressed, FlushCompress::Sync).unwrap();
    octets.extend_from_slice(&compressed);
    let said = client.ask(&octets);
    let rest = said.strip_prefix(b"z OK DEFLATE active\r\n").unwrap();
    let mut plain = Vec::with_capacity(1000);
    Decompress::new(false).decompress_vec(rest, &mut plain, FlushDecompress::None).unwrap();
    assert!(text(&plain).contains("a OK Logged out"));
}

#[test]
fn garbage_where_deflate_was_agreed_ends_the_connection() {
    let mut client = Client::logged_in();
    client.ask(b"z COMPRESS DEFLATE\r\n");
    client.session.receive(&[0xff; 64]);
    assert_eq!(client.session.step(NOW, &mut client.out), Step::Close);
}

#[test]
fn a_bomb_is_read_no_faster_than_it_is_answered() {
    let mut client = Client::logged_in();
    client.ask(b"z COMPRESS DEFLATE\r\n");
    // 64 MiB of commands, hundreds of times smaller on the wire: what they answer is never taken from the output.
    let plain = b"a CAPABILITY\r\n".repeat((64 << 20) / 14);
    let mut compressed = Vec::with_capacity(1 << 20);
    Compress::new(Compression::best(), false).compress_vec(&plain, &mut compressed, FlushCompress::Sync).unwrap();
    let mut rest = compressed.as_slice();
    loop {
        let taken = client.session.receive(rest);
        rest = &rest[taken..];
        client.session.step(NOW, &mut client.out);
        if taken == 0 {
            break;
        }
    }
    assert!(!rest.is_empty());
    assert!(client.out.pending().len() < 2 * OUTPUT_BYTES);
}
