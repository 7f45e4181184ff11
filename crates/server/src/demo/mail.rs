//! The sample mail: messages of the directory `demo/` of this crate, with mailboxes and flags.
//!
//! Each message shows one thing that mail does: a charset, a structure, an odd header. They are delivered as the bytes that they are.

use model::{DateTime, Keyword, MailboxName, Result, SpecialUse, SystemFlag};
use store::{Account, FlagNames, NewMessage};

/// A mailbox with its messages.
struct Sample {
    name: &'static str,
    special_use: &'static [SpecialUse],
    messages: &'static [Message],
}

/// A message: its bytes, and flags as IMAP writes them, separated by spaces.
struct Message {
    bytes: &'static [u8],
    flags: &'static str,
}

macro_rules! sample {
    ($file:literal, $flags:literal) => {
        Message { bytes: include_bytes!(concat!("../../demo/", $file, ".eml")), flags: $flags }
    };
}

const SAMPLES: &[Sample] = &[
    Sample {
        name: "INBOX",
        special_use: &[],
        messages: &[
            sample!("inbox/01-welcome", ""),
            sample!("inbox/02-html-only", "\\Seen"),
            sample!("inbox/03-alternative", "\\Seen \\Answered $Label1"),
            sample!("inbox/04-picture", "\\Seen \\Flagged"),
            sample!("inbox/05-pdf-rfc2231", "\\Seen $HasAttachment"),
            sample!("inbox/06-related", "\\Seen $Label2"),
            sample!("inbox/10-thread-01", "\\Seen"),
            sample!("inbox/11-thread-02", "\\Seen"),
            sample!("inbox/12-thread-03", "\\Seen"),
            sample!("inbox/13-thread-04", "\\Seen"),
            sample!("inbox/14-thread-05", "\\Seen"),
            sample!("inbox/15-thread-06", "\\Seen"),
            sample!("inbox/16-thread-07", "\\Seen"),
            sample!("inbox/17-thread-08", "\\Seen"),
            sample!("inbox/18-thread-09", "\\Seen"),
            sample!("inbox/19-thread-10", ""),
            sample!("inbox/20-thread-11", ""),
            sample!("inbox/21-thread-12", ""),
            sample!("inbox/30-iso-2022-jp", ""),
            sample!("inbox/31-koi8-r", ""),
            sample!("inbox/32-gb18030", ""),
            sample!("inbox/33-windows-1252", ""),
            sample!("inbox/34-right-to-left", ""),
            sample!("inbox/35-nested", ""),
            sample!("inbox/36-digest", ""),
            sample!("inbox/37-signed", "\\Flagged"),
            sample!("inbox/38-invitation", "\\Flagged $MDNSent"),
            sample!("inbox/39-delivery-report", "\\Seen"),
            sample!("inbox/40-read-receipt", ""),
            sample!("inbox/41-long", ""),
            sample!("inbox/42-bare", ""),
            sample!("inbox/43-no-date", ""),
            sample!("inbox/44-utf8-headers", ""),
            sample!("inbox/45-broken", "\\Deleted"),
            sample!("inbox/46-uuencode", ""),
            sample!("inbox/47-flowed-quotes", ""),
            sample!("inbox/48-today", ""),
        ],
    },
    Sample {
        name: "Lists/storage",
        special_use: &[],
        messages: &[
            sample!("lists/01", ""),
            sample!("lists/02", ""),
            sample!("lists/03", ""),
            sample!("lists/04", ""),
            sample!("lists/05", ""),
            sample!("lists/06", ""),
        ],
    },
    Sample {
        name: "Sent",
        special_use: &[SpecialUse::Sent],
        messages: &[sample!("sent/01", "\\Seen"), sample!("sent/02", "\\Seen"), sample!("sent/03", "\\Seen")],
    },
    Sample { name: "Drafts", special_use: &[SpecialUse::Drafts], messages: &[sample!("drafts/01", "\\Seen \\Draft")] },
    Sample {
        name: "Junk",
        special_use: &[SpecialUse::Junk],
        messages: &[sample!("junk/01", "$Junk"), sample!("junk/02", "$Junk")],
    },
    Sample { name: "Trash", special_use: &[SpecialUse::Trash], messages: &[sample!("trash/01", "\\Seen")] },
    Sample { name: "Archive", special_use: &[SpecialUse::Archive], messages: &[] },
    Sample {
        name: "Archive/2025",
        special_use: &[],
        messages: &[sample!("archive/01", "\\Seen"), sample!("archive/02", "\\Seen"), sample!("archive/03", "\\Seen")],
    },
    Sample {
        name: "Reisen/Zürich",
        special_use: &[],
        messages: &[sample!("travel/01", "\\Seen"), sample!("travel/02", "\\Seen")],
    },
];

/// Fills an empty account. A message without a date of its own came `now`.
pub fn fill(account: &Account, now_unix_seconds: i64) -> Result<()> {
    for sample in SAMPLES {
        let name = MailboxName::new(sample.name)?;
        let mailbox = match account.mailbox(&name) {
            Ok(mailbox) => mailbox,
            Err(_) => account.create_mailbox(&name, sample.special_use)?,
        };
        account.set_subscribed(&name, true)?;
        let messages = sample.messages.iter().map(|message| new_message(account, message, now_unix_seconds));
        let messages = messages.collect::<Result<Vec<_>>>()?;
        if !messages.is_empty() {
            account.append(mailbox, messages)?;
        }
    }
    Ok(())
}

fn new_message(account: &Account, message: &Message, now_unix_seconds: i64) -> Result<NewMessage> {
    let mut writer = account.message_writer()?;
    writer.write(message.bytes)?;
    let sent = mime::HeaderBlock::new(message.bytes).first("Date").and_then(mime::parse_date);
    let internal_date = sent.map_or(DateTime::utc(now_unix_seconds), |date| DateTime {
        unix_seconds: date.unix_seconds(),
        offset_minutes: date.offset_minutes,
    });
    Ok(NewMessage { message: writer.finish()?, flags: flags(message.flags)?, internal_date: Some(internal_date) })
}

fn flags(names: &str) -> Result<FlagNames> {
    let mut flags = FlagNames::default();
    for name in names.split_ascii_whitespace() {
        match SystemFlag::parse(name) {
            Some(flag) => flags.system.push(flag),
            None => flags.keywords.push(Keyword::new(name)?),
        }
    }
    Ok(flags)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_samples_are_well_formed() {
        let mut count = 0;
        for sample in SAMPLES {
            assert!(MailboxName::new(sample.name).is_ok());
            for message in sample.messages {
                count += 1;
                assert!(flags(message.flags).is_ok());
                let lines = message.bytes.split(|byte| *byte == b'\n');
                assert!(lines.rev().skip(1).all(|line| line.ends_with(b"\r")), "every line ends with CRLF");
            }
        }
        assert!(count >= 50);
    }
}
