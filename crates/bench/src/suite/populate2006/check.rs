//! Whether everything that was acknowledged is there.

use crate::error::{Doing, Error, Result};
use crate::results::Verdict;
use crate::suite::answers::{fetched_size, status_messages};
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
    // A mailbox that is open cannot be deleted on every server.
    connection.command("CLOSE")?;
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

#[cfg(test)]
mod tests {
    use super::compare;
    use crate::results::Verdict;

    #[test]
    fn a_lost_message_is_wrong() {
        assert_eq!(compare(540, 100, 540, 540, 100), Verdict::Right);
        for (status, fetch, bytes) in [(539, 540, 100), (540, 539, 100), (541, 541, 100), (540, 540, 99)] {
            assert!(matches!(compare(540, 100, status, fetch, bytes), Verdict::Wrong(_)));
        }
    }
}
