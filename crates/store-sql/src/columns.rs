//! What a message's row says of it, for people who query: sender, recipients, subject, date, attachments. Nothing here is needed to serve
//! the message, so what is too long is cut and what cannot be read is left out.

use index::PendingMessage;
use mime::{Content, HeaderBlock, Part, Scanner};
use model::Result;

/// Octets that are read at a time.
const PIECE_BYTES: usize = 256 << 10;
/// Addresses of one field.
const ADDRESSES_MAX: usize = 200;
/// Attachments of one message.
const ATTACHMENTS_MAX: usize = 200;
/// Characters of an address or a name.
const ADDRESS_CHARS: usize = 320;
/// Characters of a subject.
const SUBJECT_CHARS: usize = 1000;
/// Octets of a list of addresses.
const LIST_BYTES: usize = 16 << 10;
/// Octets of a Message-ID (RFC 5322 §2.1.1: a line has at most 998).
const ID_BYTES: usize = 998;
/// Characters of a media type or of a file's name.
const NAME_CHARS: usize = 255;

/// The values of one row of `message`, and the rows of `attachment`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Columns {
    pub(crate) sent_at: Option<i64>,
    pub(crate) from_address: Option<String>,
    pub(crate) from_name: Option<String>,
    pub(crate) to_addresses: Option<String>,
    pub(crate) cc_addresses: Option<String>,
    pub(crate) subject: Option<String>,
    pub(crate) message_id: Option<Vec<u8>>,
    pub(crate) in_reply_to: Option<Vec<u8>>,
    pub(crate) content_type: String,
    pub(crate) attachments: Vec<Attachment>,
}

/// A part of a message that is no text to be shown with it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Attachment {
    pub(crate) content_type: String,
    pub(crate) filename: Option<String>,
    /// Octets, as transported.
    pub(crate) size: u32,
}

/// Reads the columns of a message, in pieces.
pub(crate) fn of(message: &PendingMessage) -> Result<Columns> {
    let len = u64::from(message.len());
    let mut scanner = Scanner::new();
    let (mut piece, mut header) = (Vec::new(), Vec::new());
    let mut at = 0;
    while at < len {
        piece.resize((len - at).min(PIECE_BYTES as u64) as usize, 0);
        message.read_at(at, &mut piece)?;
        scanner.push(&piece);
        let of_header = u64::from(message.header_len()).saturating_sub(at).min(piece.len() as u64) as usize;
        header.extend_from_slice(piece.get(..of_header).unwrap_or_default());
        at += piece.len() as u64;
    }
    let (structure, _defects) = scanner.finish();
    let mut columns = of_header(&header);
    columns.content_type = media_type(&structure.message.root);
    attachments(&structure.message.root, &mut columns.attachments);
    Ok(columns)
}

fn of_header(header: &[u8]) -> Columns {
    let fields = HeaderBlock::new(header);
    let addresses =
        |name: &str| fields.first(name).map(|value| mime::parse_addresses(value, ADDRESSES_MAX)).unwrap_or_default();
    let list = |name: &str| {
        let texts: Vec<String> = addresses(name).iter().filter_map(address).collect();
        let cut = |text: String| text.get(..text.floor_char_boundary(LIST_BYTES)).unwrap_or_default().to_owned();
        (!texts.is_empty()).then(|| cut(texts.join(", ")))
    };
    let id = |name: &str| {
        let value = fields.first(name).map(|value| value.trim_ascii().to_vec());
        value.filter(|value| !value.is_empty()).map(|mut value| {
            value.truncate(ID_BYTES);
            value
        })
    };
    let from = addresses("From").into_iter().next();
    let name = from.as_ref().and_then(|from| from.name.as_deref()).map(mime::decode_unstructured);
    Columns {
        sent_at: fields.first("Date").and_then(mime::parse_date).map(|date| date.unix_seconds()),
        from_address: from.as_ref().and_then(address).map(|text| chars(&text, ADDRESS_CHARS)),
        from_name: name.map(|name| chars(&name, ADDRESS_CHARS)),
        to_addresses: list("To"),
        cc_addresses: list("Cc"),
        subject: fields.first("Subject").map(|value| chars(mime::decode_unstructured(value).trim(), SUBJECT_CHARS)),
        message_id: id("Message-ID"),
        in_reply_to: id("In-Reply-To"),
        ..Columns::default()
    }
}

/// `mailbox@host`; `None` for the name of a group.
fn address(address: &mime::Address) -> Option<String> {
    let (mailbox, host) = (address.mailbox.as_deref()?, address.host.as_deref()?);
    Some(format!("{}@{}", String::from_utf8_lossy(mailbox), String::from_utf8_lossy(host)))
}

fn chars(text: &str, max: usize) -> String {
    text.chars().take(max).collect()
}

fn media_type(part: &Part) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).to_ascii_lowercase();
    chars(&format!("{}/{}", text(&part.media_type), text(&part.media_subtype)), NAME_CHARS)
}

fn attachments(part: &Part, out: &mut Vec<Attachment>) {
    match &part.content {
        Content::Multipart(parts) => parts.iter().for_each(|part| attachments(part, out)),
        _ if out.len() >= ATTACHMENTS_MAX => {}
        _ => {
            let is_attached = part.disposition.as_ref().is_some_and(|d| d.kind.eq_ignore_ascii_case(b"attachment"));
            let filename = part.filename();
            if is_attached
                || filename.is_some()
                || (!part.is_text() && !part.media_type.eq_ignore_ascii_case(b"multipart"))
            {
                let size = u32::try_from(part.body.end.saturating_sub(part.body.start)).unwrap_or(u32::MAX);
                let filename = filename.map(|name| chars(&name, NAME_CHARS));
                out.push(Attachment { content_type: media_type(part), filename, size });
            }
        }
    }
}
