//! Whether everything that was acknowledged is there.

use crate::error::{Doing, Error, Result};
use crate::results::Verdict;
use crate::wire::Connection;
use std::io::{BufRead, BufReader, Seek, SeekFrom};

/// Compares number and bytes of the messages in the mailboxes with those that were sent.
pub fn verdict(connection: &mut Connection, mailboxes: &[String], sent: &[Vec<u8>]) -> Result<Verdict> {
    let (mut by_status, mut by_fetch, mut bytes) = (0, 0, 0);
    for mailbox in mailboxes {
        let answer = connection.command(&format!("STATUS {} (MESSAGES)", connection.mailbox(mailbox)))?;
        by_status += answer
            .kept
            .iter()
            .find_map(|line| status_messages(line))
            .ok_or_else(|| Error::new("STATUS: no MESSAGES in the answer"))?;
        let (count, size) = sizes(connection, mailbox)?;
        by_fetch += count;
        bytes += size;
    }
    let sent_bytes = sent.iter().map(|message| message.len() as u64).sum();
    Ok(compare(sent.len() as u64, sent_bytes, by_status, by_fetch, bytes))
}

fn compare(sent: u64, sent_bytes: u64, by_status: u64, by_fetch: u64, bytes: u64) -> Verdict {
    if (by_status, by_fetch) != (sent, sent) {
        let text = format!("{sent} messages were acknowledged, STATUS says {by_status}, FETCH gives {by_fetch}");
        return Verdict::Wrong(text);
    }
    if bytes != sent_bytes {
        return Verdict::Wrong(format!("{sent_bytes} bytes were acknowledged, RFC822.SIZE comes to {bytes}"));
    }
    Verdict::Right
}

/// Number and bytes of the messages, by FETCH RFC822.SIZE.
fn sizes(connection: &mut Connection, mailbox: &str) -> Result<(u64, u64)> {
    let (_, exists) = connection.select(mailbox)?;
    if exists == 0 {
        return Ok((0, 0));
    }
    connection.record(Some(tempfile::tempfile().doing("a temporary file")?));
    let fetched = connection.command("FETCH 1:* (RFC822.SIZE)");
    let mut file = connection.record(None).ok_or_else(|| Error::new("nothing was recorded"))?;
    fetched?;
    file.seek(SeekFrom::Start(0)).doing("a temporary file")?;
    let (mut count, mut bytes) = (0, 0);
    for line in BufReader::new(file).lines() {
        if let Some(size) = fetched_size(&line.doing("a temporary file")?) {
            count += 1;
            bytes += size;
        }
    }
    Ok((count, bytes))
}

/// RFC 9051 §7.3.4 (STATUS response).
fn status_messages(line: &str) -> Option<u64> {
    let items = line.strip_prefix("* STATUS ")?.rsplit_once('(')?.1.trim_end_matches([')', ' ']);
    let mut words = items.split(' ').skip_while(|word| !word.eq_ignore_ascii_case("MESSAGES"));
    words.nth(1)?.parse().ok()
}

/// RFC 9051 §7.5.2 (FETCH response), RFC822.SIZE.
fn fetched_size(line: &str) -> Option<u64> {
    let (_, items) = line.strip_prefix("* ")?.split_once(" FETCH (")?;
    let (_, rest) = items.split_once("RFC822.SIZE ")?;
    rest.split([' ', ')']).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::{compare, fetched_size, status_messages};
    use crate::results::Verdict;

    #[test]
    fn answers() {
        assert_eq!(status_messages("* STATUS bench-1 (MESSAGES 27)"), Some(27));
        assert_eq!(status_messages("* STATUS \"(a\" (UIDNEXT 3 MESSAGES 2 )"), Some(2));
        assert_eq!(status_messages("* STATUS bench-1 (UIDNEXT 3)"), None);
        assert_eq!(fetched_size("* 3 FETCH (RFC822.SIZE 44)"), Some(44));
        assert_eq!(fetched_size("* 3 FETCH (FLAGS (\\Seen) RFC822.SIZE 7 UID 9)"), Some(7));
        assert_eq!(fetched_size("* 3 FETCH (FLAGS ())"), None);
        assert_eq!(fetched_size("B OK done"), None);
    }

    #[test]
    fn a_lost_message_is_wrong() {
        assert_eq!(compare(540, 100, 540, 540, 100), Verdict::Right);
        for (status, fetch, bytes) in [(539, 540, 100), (540, 539, 100), (541, 541, 100), (540, 540, 99)] {
            assert!(matches!(compare(540, 100, status, fetch, bytes), Verdict::Wrong(_)));
        }
    }
}
