//! Every property under a fixed budget of random input. A failure names the property and the input, ready to become a sample.

use mailyard_fuzz::mutate::{Random, mutated};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Inputs for each property: some seconds each.
const BUDGET: usize = 400_000;

/// Inputs for a property that makes a store.
const SESSIONS: usize = 20_000;

/// Runs a property on mutated samples. The first byte of each input says how the rest is cut.
fn run(name: &str, property: fn(&[u8]), samples: &[&[u8]], words: &[&[u8]]) {
    run_for(BUDGET, name, property, samples, words);
}

fn run_for(budget: usize, name: &str, property: fn(&[u8]), samples: &[&[u8]], words: &[&[u8]]) {
    let mut random = Random(0x006d_6169_6c79_6172);
    for number in 0..budget {
        let mut input = vec![random.below(40) as u8];
        input.extend(mutated(&mut random, samples, words));
        if catch_unwind(AssertUnwindSafe(|| property(&input))).is_err() {
            panic!("{name} fails on input {number}: b\"{}\"", input.escape_ascii());
        }
    }
}

#[test]
fn imap_command() {
    let samples: &[&[u8]] = &[
        b"a1 FETCH 1:*,7 (FLAGS UID BODY.PEEK[1.2.HEADER.FIELDS (Subject {4}\r\nFrom)]<0.100> BINARY.SIZE[1])\r\n",
        b"b UID SEARCH RETURN (ALL COUNT) CHARSET UTF-8 OR (NOT SUBJECT \"x\\\"y\") KEYWORD $a SINCE 1-Feb-2003 MODSEQ 5\r\n",
        b"c APPEND \"In box\" (\\Seen kw) \" 7-Feb-1994 21:52:25 -0800\" {5+}\r\nhello ~{3}\r\nx\0y\r\n",
        b"d STORE 2,4:* (UNCHANGEDSINCE 12) +FLAGS.SILENT (\\Deleted $b)\r\n",
        b"e LIST (SUBSCRIBED) \"\" (\"%\" \"a/*\") RETURN (CHILDREN STATUS (MESSAGES UIDNEXT))\r\n",
        b"f SELECT {5}\r\nINBOX (QRESYNC (67890007 90060115194045000 41:211,214:541 (1:3 4:6)))\r\n",
        b"g LOGIN joe \"pass word\"\r\nh AUTHENTICATE PLAIN AGpvZQBw\r\ni IDLE\r\nDONE\r\n",
        b"m UID SORT RETURN (PARTIAL 1:5 UPDATE) (REVERSE SUBJECT DISPLAYFROM) {5}\r\nUTF-8 FROM x\r\nn CANCELUPDATE \"m\"\r\n",
        b"o THREAD REFERENCES US-ASCII ALL\r\np ESEARCH IN (selected subtree (a \"b c\")) RETURN (CONTEXT) CHARSET utf-8 1:5\r\n",
        b"j UID MOVE $ \"&ZeVnLIqe-\"\r\nk REPLACE 4 Drafts {2+}\r\nhi\r\nl ID (\"name\" NIL)\r\n",
    ];
    let words: &[&[u8]] = &[
        b"\r\n",
        b"{3}\r\n",
        b"{3+}\r\n",
        b"~{1}\r\n",
        b"(",
        b")",
        b" ",
        b"\"",
        b"\\",
        b"*",
        b"$",
        b"1:*",
        b"NIL",
        b"UID ",
        b"BODY[",
        b"]",
        b"OR ",
        b"NOT ",
        b"4294967295",
        b"18446744073709551615",
        b"\0",
        b"\xc3\xa9",
        b"\\Seen",
        b"APPEND x ",
        b"RETURN (",
        b"REVERSE ",
        b"mailboxes ",
    ];
    run("imap::command", mailyard_fuzz::imap::command, samples, words);
}

#[test]
fn imap_response() {
    let samples: &[&[u8]] = &[
        b"* 12 FETCH (FLAGS (\\Seen $x) UID 9 BODY[HEADER] {4}\r\na: b RFC822.SIZE 44827 MODSEQ (5) EMAILID (M1))\r\n",
        b"* 1 FETCH (ENVELOPE (\"date\" NIL ((\"n\" NIL \"m\" \"h\")) NIL NIL NIL NIL NIL \"<a>\" \"<b>\"))\r\n",
        b"* OK [UIDVALIDITY 3857529045] valid\r\n* 172 EXISTS\r\na1 OK [READ-WRITE] done\r\n+ idling\r\n",
        b"* LIST (\\HasNoChildren) \"/\" \"a b\"\r\n* STATUS x (MESSAGES 2 UIDNEXT 4)\r\n* ESEARCH (TAG \"a\") UID ALL 1:3,5\r\n",
        b"* FLAGS (\\Answered kw)\r\n* CAPABILITY IMAP4rev2 AUTH=PLAIN\r\n* VANISHED (EARLIER) 41,43:116\r\n* BYE\r\n",
    ];
    let words: &[&[u8]] = &[
        b"\r\n",
        b"{3}\r\n",
        b"~{2}\r\n",
        b"(",
        b")",
        b"[",
        b"]",
        b"\"",
        b"NIL",
        b"* ",
        b"1:*",
        b"\0",
        b" ",
        b"\\",
        b"0",
    ];
    run("imap::response", mailyard_fuzz::imap::response, samples, words);
}

#[test]
fn lmtp_session() {
    let samples: &[&[u8]] = &[
        b"LHLO a.example\r\nMAIL FROM:<x@a> SIZE=9 BODY=8BITMIME\r\nRCPT TO:<ann@b>\r\nDATA\r\na: b\r\n\r\n..\r\nt\r\n.\r\nQUIT\r\n",
        b"LHLO [1.2.3.4]\r\nMAIL FROM:<>\r\nRCPT TO:<ann>\r\nRCPT TO:<bob>\r\nRCPT TO:<no>\r\nDATA\r\n.a\n.\nb\r.\r\n.\r\n",
        b"LHLO a\r\nMAIL FROM:<x@a> BODY=BINARYMIME ENVID=q\r\nRCPT TO:<bob>\r\nBDAT 5\r\na\0\r\n.BDAT 3 LAST\r\n.\r\nNOOP\r\n",
        b"LHLO a\r\nMAIL FROM:<\xc3\xa9@a> SMTPUTF8 RET=HDRS\r\nRCPT TO:<bob> NOTIFY=NEVER\r\nRSET\r\nVRFY x\r\nHELP\r\nSTARTTLS\r\n",
    ];
    let words: &[&[u8]] = &[
        b"\r\n",
        b"\n",
        b"\r",
        b".",
        b"\r\n.\r\n",
        b"\n.\r\n",
        b"DATA\r\n",
        b"BDAT 1\r\n",
        b"BDAT 0 LAST\r\n",
        b"BDAT 4300 LAST\r\n",
        b"RSET\r\n",
        b"MAIL FROM:<>\r\n",
        b"RCPT TO:<ann>\r\n",
        b"RCPT TO:<ann+x@b>\r\n",
        b"LHLO a\r\n",
        b" ENVID=q",
        b"\0",
        b"\xff",
        b"@",
        b"<",
        b">",
    ];
    run_for(SESSIONS, "lmtp::session", mailyard_fuzz::lmtp::session, samples, words);
}

#[test]
fn mime_message() {
    let samples: &[&[u8]] = &[
        b"From: a@b\r\nSubject: =?utf-8?q?x=C3=A9?=\r\nContent-Type: multipart/mixed; boundary=\"b 1\"\r\n\r\npre\r\n--b 1\r\n\
          Content-Type: text/plain; charset*=utf-8''us-ascii\r\n\r\none\r\n--b 1\r\nContent-Type: message/rfc822\r\n\r\n\
          Subject: in\r\n\r\ntwo\r\n--b 1--\r\npost\r\n",
        b"Content-Type: multipart/alternative; boundary=x\n\n--x\nContent-Transfer-Encoding: base64\n\naGVs\nbG8=\n--x\n\
          Content-Type: text/html\nContent-Transfer-Encoding: quoted-printable\n\n<p>a=20b=\nc</p>\n--x--\n",
        b"To: undisclosed:;, \"q\\\"\" <x@[1.2.3.4]> (c (d)), =?koi8-r?B?8tXT?= <r@s>\r\nDate: Thu, 1 Jan 70 00:00 GMT\r\n\r\n\0body",
        b"Content-Type: text/plain\r\nContent-Disposition: attachment; filename*0=a; filename*1*=%20b\r\n folded\r\nno colon here\r\n\r\n",
    ];
    let words: &[&[u8]] = &[
        b"\r\n",
        b"\n",
        b"\r",
        b"\r\n\r\n",
        b"--b 1\r\n",
        b"--x\n",
        b"--",
        b"boundary=x",
        b"Content-Type: ",
        b"message/rfc822",
        b"multipart/digest",
        b"=?utf-8?b?",
        b"?=",
        b"=",
        b";",
        b":",
        b"\"",
        b"(",
        b")",
        b"<",
        b">",
        b"\0",
        b"\xff\xfe",
        b"charset=utf-16",
        b"*0*=",
    ];
    run("mime::message", mailyard_fuzz::mime::message, samples, words);
}

#[test]
fn mbox_file() {
    let samples: &[&[u8]] = &[
        b"From a@b Thu Aug 22 12:36:23 2002\nSubject: 1\nStatus: RO   \nX-UID: 7\n\n>From here\n>>From there\nFrom nowhere\n\n",
        b"From - Fri Aug 23 01:02:03 +0200 2002\r\nSubject: 2\r\n\r\ncrlf\r\n\r\n",
        b"From a Thu, 22 Aug 2002 12:36 -0130\nContent-Length: 43\n\nFrom x Thu Aug 22 12:36:23 2002\n>From kept\n\n",
        b"From MAILER-DAEMON\nReceived: x\n\ty\nSubject: z\n\n\x01\n\n",
        b"\n\nFrom a Thu Aug 22 12:36 EDT 2002 remote from uunet\nX-Keywords: a b\n\x01\x01: x\n\n\x01nul\0\x01",
    ];
    let words: &[&[u8]] = &[
        b"\n",
        b"\n\n",
        b"\r\n",
        b"From ",
        b"\nFrom ",
        b"\n>From ",
        b"From a@b Thu Aug 22 12:36:23 2002\n",
        b"From a@b\nA: b\nC: d\n",
        b"Content-Length: 3\n",
        b"Content-Length: 1500\n\n\x01",
        b"content-length:",
        b"Content-Length: 4000\n",
        b"\x01",
        b"\x01\x01\x01",
        b"\0",
        b"F",
        b">",
        b"A: b\n",
    ];
    run("mbox::file", mailyard_fuzz::mbox::file, samples, words);
}

/// Opening and reading an account takes longer than parsing a line.
const ACCOUNTS: usize = 4_000;

fn run_on_disk(name: &str, property: fn(&[u8])) {
    let mut random = Random(0x006c_6f67);
    property(&[]);
    for number in 0..ACCOUNTS {
        let input: Vec<u8> = (0..6 * (1 + random.below(4))).map(|_| random.below(256) as u8).collect();
        if catch_unwind(AssertUnwindSafe(|| property(&input))).is_err() {
            panic!("{name} fails on input {number}: b\"{}\"", input.escape_ascii());
        }
    }
}

#[test]
fn log_files() {
    run_on_disk("disk::log_files", mailyard_fuzz::disk::log_files);
}

#[test]
fn index_files() {
    run_on_disk("disk::index_files", mailyard_fuzz::disk::index_files);
}
