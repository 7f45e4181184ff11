//! Whatever a client sends: no panic, bounded answers, and the same answers however the octets are cut.

#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use mailyard_sessions::imap::{ImapSession, Settings};
use mailyard_sessions::{Output, Step};
use platform::Prng;
use sha2::{Digest, Sha256};
use support::NOW;

/// Sends `octets` in pieces of what `cut` says; gives all that is said.
fn talk(session: &mut ImapSession, octets: &[u8], mut cut: impl FnMut() -> usize, room: usize) -> Vec<u8> {
    let (mut said, mut out) = (Vec::new(), Output::new(room));
    let mut rest = octets;
    loop {
        let piece = cut().clamp(1, rest.len().max(1)).min(rest.len());
        let taken = session.receive(&rest[..piece]);
        rest = &rest[taken..];
        loop {
            let step = session.step(NOW, &mut out);
            said.extend_from_slice(out.pending());
            out.consume(usize::MAX);
            match step {
                Step::Output => {}
                Step::NeedInput { .. } => break,
                Step::Close | Step::StartTls => return said,
            }
        }
        if rest.is_empty() {
            return said;
        }
    }
}

/// Pieces of which commands are made, right ones and wrong ones.
const PIECES: [&str; 72] = [
    "a ",
    "b2 ",
    "UID ",
    "SELECT ",
    "EXAMINE ",
    "INBOX ",
    "x/y ",
    "\"q\\\"s\" ",
    "{3}\r\nabc ",
    "{3+}\r\nabc ",
    "{0+}\r\n ",
    "~{2+}\r\n\0\0 ",
    "APPEND INBOX {5+}\r\nhello",
    "APPEND INBOX (\\Seen) {1+}\r\nx {1+}\r\ny",
    "FETCH ",
    "1 ",
    "1:* ",
    "* ",
    "$ ",
    "4,2:3 ",
    "FLAGS ",
    "(FLAGS UID) ",
    "BODY[] ",
    "BODY.PEEK[1.MIME]<0.5> ",
    "BINARY.SIZE[1] ",
    "ENVELOPE ",
    "BODYSTRUCTURE ",
    "STORE ",
    "+FLAGS ",
    "-FLAGS.SILENT ",
    "(\\Deleted kw) ",
    "EXPUNGE ",
    "COPY ",
    "MOVE ",
    "CREATE ",
    "DELETE ",
    "RENAME ",
    "LIST ",
    "\"\" ",
    "% ",
    "(SUBSCRIBED RECURSIVEMATCH) ",
    "RETURN (STATUS (MESSAGES)) ",
    "LSUB ",
    "SEARCH ",
    "RETURN (SAVE ALL) ",
    "OR SEEN ",
    "NOT ",
    "TEXT h ",
    "CHARSET UTF-8 ",
    "SORT ",
    "(REVERSE SUBJECT DATE) ",
    "UTF-8 ",
    "THREAD REFERENCES ",
    "ESEARCH ",
    "IN (personal) ",
    "RETURN (UPDATE PARTIAL 1:2) ",
    "CANCELUPDATE c ",
    "ENABLE QRESYNC ",
    "ENABLE IMAP4rev2 ",
    "(QRESYNC (1 1)) ",
    "STATUS ",
    "(MESSAGES UNSEEN) ",
    "IDLE",
    "DONE",
    "NOOP",
    "CLOSE",
    "UNSELECT",
    "REPLACE ",
    "\r\n",
    "\r\n",
    "\r\n",
    "\n",
];

/// Whole commands, so that the pieces find something to work on.
const COMMANDS: [&str; 12] = [
    "c SELECT INBOX\r\n",
    "c APPEND INBOX (\\Seen) {22+}\r\nSubject: short\r\n\r\nhi\r\n\r\n",
    "c FETCH 1:* (UID FLAGS BODY[])\r\n",
    "c SEARCH RETURN (SAVE) ALL\r\n",
    "c SORT (SUBJECT) UTF-8 ALL\r\n",
    "c UID SORT RETURN (UPDATE) (DATE) UTF-8 NOT DELETED\r\n",
    "c THREAD REFS UTF-8 ALL\r\n",
    "c SEARCH RETURN (UPDATE) SEEN\r\n",
    "c STORE 1:* +FLAGS (\\Deleted)\r\n",
    "c EXPUNGE\r\n",
    "c CREATE x/y\r\n",
    "c LIST \"\" *\r\n",
];

fn conversation(prng: &mut Prng) -> Vec<u8> {
    let mut octets = b"l LOGIN ann x\r\nc SELECT INBOX\r\n".to_vec();
    for _ in 0..prng.between(5, 60) {
        match prng.below(10) {
            0 => octets.push(prng.u64() as u8),
            1..=3 => octets.extend_from_slice(prng.pick(&COMMANDS).unwrap().as_bytes()),
            _ => octets.extend_from_slice(prng.pick(&PIECES).unwrap().as_bytes()),
        }
    }
    octets.extend_from_slice(b"\r\nz NOOP\r\n");
    octets
}

#[test]
fn however_it_is_cut_the_answers_are_the_same() {
    let mut lasted = 0;
    for seed in 0..1000 {
        let octets = conversation(&mut Prng::new(seed));
        let fresh = || support::session(&support::context(seed, Settings::default()));
        let whole = talk(&mut fresh(), &octets, || usize::MAX, 1 << 20);
        assert!(whole.starts_with(b"* OK"), "SEED={seed}");
        let mut prng = Prng::new(seed);
        let cut = talk(&mut fresh(), &octets, || prng.between(1, 20) as usize, 64);
        let text = |octets: &[u8]| String::from_utf8_lossy(octets).into_owned();
        assert_eq!(text(&whole), text(&cut), "SEED={seed} {:?}", text(&octets));
        lasted += usize::from(text(&whole).contains("\nz OK "));
    }
    // Conversations that end early find little.
    assert!(lasted > 500, "{lasted}");
}

#[test]
fn noise_is_answered_with_bad_and_an_end() {
    for seed in 0..300 {
        let mut prng = Prng::new(seed);
        let mut octets = vec![0; 4096];
        prng.fill(&mut octets);
        let mut session = support::session(&support::context(seed, Settings::default()));
        let said = talk(&mut session, &octets, || prng.between(1, 500) as usize, 100);
        assert!(said.starts_with(b"* OK"), "SEED={seed}");
    }
}

fn hmac(key: &[u8], message: &[u8]) -> [u8; 32] {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
    mac.update(message);
    mac.finalize().into_bytes().into()
}

/// An honest SCRAM client, by the formulas of RFC 5802 §3, over the wire of IMAP.
#[test]
fn scram_lets_in_who_has_the_password() {
    for (password, right) in [("secret", true), ("guess", false)] {
        let mut session = support::session(&support::context(1, Settings::default()));
        let mut ask = |line: &str| {
            let said = talk(&mut session, format!("{line}\r\n").as_bytes(), || usize::MAX, 1 << 20);
            String::from_utf8(said).unwrap()
        };
        let bare = "n=ann,r=fyko+d2lbbFgONRv9qkxdawL";
        let said = ask(&format!("a AUTHENTICATE SCRAM-SHA-256 {}", STANDARD.encode(format!("n,,{bare}"))));
        let challenge = said.lines().find_map(|line| line.strip_prefix("+ ")).unwrap();
        let server_first = String::from_utf8(STANDARD.decode(challenge).unwrap()).unwrap();
        let field = |name: &str| server_first.split(',').find_map(|field| field.strip_prefix(name)).unwrap();
        let mut salted = [0u8; 32];
        let salt = STANDARD.decode(field("s=")).unwrap();
        pbkdf2::pbkdf2_hmac::<Sha256>(password.as_bytes(), &salt, field("i=").parse().unwrap(), &mut salted);
        let client_key = hmac(&salted, b"Client Key");
        let without_proof = format!("c=biws,r={}", field("r="));
        let message = format!("{bare},{server_first},{without_proof}");
        let mut proof = hmac(&Sha256::digest(client_key), message.as_bytes());
        proof.iter_mut().zip(client_key).for_each(|(octet, key)| *octet ^= key);
        let said = ask(&STANDARD.encode(format!("{without_proof},p={}", STANDARD.encode(proof))));
        if right {
            let verifier = hmac(&hmac(&salted, b"Server Key"), message.as_bytes());
            assert_eq!(said, format!("+ {}\r\n", STANDARD.encode(format!("v={}", STANDARD.encode(verifier)))));
            assert!(ask("").starts_with("a OK [CAPABILITY"));
        } else {
            assert_eq!(said, "a NO [AUTHENTICATIONFAILED] Wrong user or password\r\n");
        }
    }
}
