//! The mailboxes that the work is done in: what is in them, what may be asked of them, and what the right answers are.

use crate::random::Random;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

/// The mailbox that is appended to and watched; the others keep what they were filled with.
pub const INBOX: &str = "bench-in";

/// Searches that are prepared for a mailbox.
const QUESTIONS: usize = 8;

/// Messages that are used again and again, with what the answers are worked out from.
pub struct Pool {
    /// As they are appended.
    pub messages: Vec<Vec<u8>>,
    headers: Vec<Header>,
}

/// Values of header fields, unfolded, in lower case; a field that occurs twice has both values, with a line end between.
#[derive(Clone, Debug, Default)]
struct Header {
    from: String,
    to: String,
    subject: String,
    message_id: String,
}

/// A mailbox of one user.
pub struct Mailbox {
    /// Its name without the prefix of the server.
    pub name: String,
    /// Which messages of the pool it holds, in this order: message 1 is the first.
    pub messages: Range<usize>,
    /// Searches and their answers.
    pub questions: Vec<Question>,
}

/// A search over several header fields (RFC 9051 §6.4.4) and the messages that match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// What stands after `SEARCH `.
    pub keys: String,
    /// Message numbers, rising.
    pub hits: Arc<[u32]>,
}

impl Pool {
    /// Keeps the messages whose From, To and Subject are plain ASCII and not encoded (RFC 2047), so that the right answer of a search is
    /// the same for a server that decodes and for one that looks at the bytes.
    pub fn new(messages: Vec<Vec<u8>>) -> Pool {
        let (messages, headers) = messages
            .into_iter()
            .filter_map(|message| {
                let header = Header::of(&message)?;
                Some((message, header))
            })
            .unzip();
        Pool { messages, headers }
    }

    /// The mailboxes of a user, of these sizes; each user's begin elsewhere in the pool.
    pub fn mailboxes(&self, sizes: &[usize], user: usize, random: &mut Random) -> Vec<Mailbox> {
        let mut mailboxes = Vec::new();
        let mut at = user.wrapping_mul(sizes.iter().sum());
        for (number, size) in sizes.iter().enumerate() {
            // A mailbox is a run of the pool, so one that is too small for the mailbox gives a smaller mailbox.
            let size = (*size).min(self.messages.len());
            let free = (self.messages.len() - size).max(1);
            let first = at % free;
            at = at.wrapping_add(size);
            let messages = first..first + size;
            let questions = self.questions(messages.clone(), random);
            mailboxes.push(Mailbox { name: format!("bench-{}", number + 1), messages, questions });
        }
        mailboxes
    }

    fn questions(&self, messages: Range<usize>, random: &mut Random) -> Vec<Question> {
        let headers = self.headers.get(messages).unwrap_or_default();
        (0..QUESTIONS).filter_map(|number| question(headers, number, random)).collect()
    }
}

type Matches<'h> = dyn Fn(&Header) -> bool + 'h;

/// A search that at least one of the messages matches; of four kinds in turn.
fn question(headers: &[Header], kind: usize, random: &mut Random) -> Option<Question> {
    let one = headers.get(random.below(headers.len()))?;
    let other = headers.get(random.below(headers.len()))?;
    let (from, other_from) = (address(&one.from)?, address(&other.from)?);
    let domain = from.rsplit_once('@')?.1;
    let subject = word(&one.subject).unwrap_or_default();
    let (keys, matches): (String, Box<Matches>) = match kind % 4 {
        0 => (
            format!("FROM \"{from}\" SUBJECT \"{subject}\""),
            Box::new(|header| header.from.contains(from) && header.subject.contains(subject)),
        ),
        1 => (
            format!("OR FROM \"{from}\" FROM \"{other_from}\" NOT SUBJECT \"{subject}\""),
            Box::new(|header| {
                (header.from.contains(from) || header.from.contains(other_from)) && !header.subject.contains(subject)
            }),
        ),
        2 => {
            let to = address(&one.to).unwrap_or_default();
            (
                format!("FROM \"{domain}\" TO \"{to}\" SUBJECT \"{subject}\""),
                Box::new(move |header| {
                    header.from.contains(domain) && header.to.contains(to) && header.subject.contains(subject)
                }),
            )
        }
        _ => {
            // A message identifier may be anything that its writer thought of; what would need escapes is left out.
            let id = one.message_id.trim_matches(['<', '>']);
            let plain = |byte: u8| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\';
            let id = id.bytes().all(plain).then_some(id)?;
            (
                format!("FROM \"{from}\" HEADER Message-ID \"{id}\""),
                Box::new(move |header| header.from.contains(from) && header.message_id.contains(id)),
            )
        }
    };
    // An empty string matches everything (RFC 9051 §6.4.4), which is another question.
    if keys.contains("\"\"") {
        return None;
    }
    let hits = (1..).zip(headers).filter(|(_, header)| matches(header)).map(|(number, _)| number).collect();
    Some(Question { keys, hits })
}

/// An address that every server reads alike: word characters around an `@`, alone or between angle brackets. What senders write else is often
/// no address at all (`<Undisclosed Recipients@example.org>`), and what a search makes of that is the server's affair.
fn address(value: &str) -> Option<&str> {
    let part = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
    let at = value.find('@')?;
    let (before, after) = (value.get(..at)?, value.get(at + 1..)?);
    let before = before.len() - before.bytes().rev().take_while(|byte| part(*byte)).count();
    let after = at + 1 + after.bytes().take_while(|byte| part(*byte)).count();
    let found = value.get(before..after)?;
    let is_bracketed = value.get(..before)?.ends_with('<') && value.get(after..)?.starts_with('>');
    let is_whole = (is_bracketed || value.trim() == found) && !found.starts_with('@') && !found.ends_with('@');
    (is_whole && found.len() > "a@b".len()).then_some(found)
}

/// The longest word.
fn word(value: &str) -> Option<&str> {
    value.split(|letter: char| !letter.is_ascii_alphanumeric()).max_by_key(|word| word.len()).filter(|w| w.len() > 2)
}

impl Header {
    /// `None` when the message is not for the pool.
    fn of(message: &[u8]) -> Option<Header> {
        let end = memchr::memmem::find(message, b"\r\n\r\n")?;
        let text = std::str::from_utf8(message.get(..end)?).ok()?.to_ascii_lowercase();
        // RFC 5322 §2.2.3: a line that begins with white space continues the field.
        let unfolded = text.replace("\r\n ", " ").replace("\r\n\t", "\t");
        let mut header = Header::default();
        let mut seen = BTreeSet::new();
        for line in unfolded.split("\r\n") {
            let (name, value) = line.split_once(':')?;
            let field = match name {
                "from" => &mut header.from,
                "to" => &mut header.to,
                "subject" => &mut header.subject,
                "message-id" => &mut header.message_id,
                _ => continue,
            };
            // Servers differ in which of two fields they search.
            if !seen.insert(name.to_string()) || !value.is_ascii() || value.contains("=?") {
                return None;
            }
            field.push_str(value.trim());
        }
        Some(header)
    }
}

#[cfg(test)]
mod tests {
    use super::{Header, Pool, address, word};
    use crate::random::Random;

    fn message(number: usize) -> Vec<u8> {
        let text = format!(
            "From: Person {number} <p{}@host{}.example>\r\nTo: list@\r\n example.org\r\nSubject: Re: topic{} again\r\n\
             Message-ID: <{number}@x>\r\n\r\nbody\r\n",
            number % 5,
            number % 3,
            number % 7
        );
        text.into_bytes()
    }

    #[test]
    fn answers_are_those_of_the_messages() {
        let pool = Pool::new((0..100).map(message).collect());
        let mailboxes = pool.mailboxes(&[60, 10], 3, &mut Random::new(1));
        assert_eq!(mailboxes.len(), 2);
        for mailbox in &mailboxes {
            assert!(mailbox.questions.len() >= 4, "{}", mailbox.questions.len());
            let range = mailbox.messages.clone();
            for question in mailbox.questions.iter().filter(|question| question.keys.starts_with("FROM \"p")) {
                let from = question.keys.split('"').nth(1).unwrap_or_default();
                assert!(!question.hits.is_empty());
                for hit in question.hits.iter() {
                    let bytes = &pool.messages[range.start + *hit as usize - 1];
                    assert!(memchr::memmem::find(bytes, from.as_bytes()).is_some(), "{question:?}");
                }
            }
        }
        let again = pool.mailboxes(&[60, 10], 3, &mut Random::new(1));
        assert!(mailboxes.iter().zip(&again).all(|(one, other)| one.questions == other.questions));
        assert_eq!(pool.mailboxes(&[1000], 7, &mut Random::new(1))[0].messages, 0..100, "no more than there are");
    }

    #[test]
    fn headers() {
        let header = Header::of(b"From: A@B.c\r\nSubject: one\r\n two\r\nX: \xc3\xa4\r\n\r\n").expect("plain");
        assert_eq!((header.from.as_str(), header.subject.as_str()), ("a@b.c", "one two"));
        for odd in
            [&b"From: =?utf-8?q?a?= <a@b.c>\r\n\r\n"[..], b"To: a\r\nTo: b\r\n\r\n", b"From: a", b"From: \xff\r\n\r\n"]
        {
            assert!(Header::of(odd).is_none(), "{odd:?}");
        }
    }

    #[test]
    fn nothing_that_needs_escapes_is_asked_for() {
        for id in ["<a\"b@c>", "<a\\b@c>", "<a b@c>", ""] {
            let text = format!("From: a@b.example\r\nSubject: word\r\nMessage-ID: {id}\r\n\r\nbody\r\n");
            let pool = Pool::new(vec![text.into_bytes(); 3]);
            let mailboxes = pool.mailboxes(&[3], 0, &mut Random::new(1));
            let questions: Vec<&str> = mailboxes[0].questions.iter().map(|question| question.keys.as_str()).collect();
            assert!(
                !questions.is_empty() && questions.iter().all(|keys| !keys.contains("Message-ID")),
                "{questions:?}"
            );
        }
    }

    #[test]
    fn words() {
        assert_eq!(address("\"a b\" <c.d@e.f>, x@y"), Some("c.d@e.f"));
        assert_eq!(address(" x@y.z"), Some("x@y.z"));
        assert_eq!(address("<undisclosed recipients@x.y>"), None);
        assert_eq!(address("nobody"), None);
        assert_eq!(address("@"), None);
        assert_eq!(word("re: a longest one"), Some("longest"));
        assert_eq!(word("a b"), None);
    }
}
