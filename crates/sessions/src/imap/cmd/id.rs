//! ID (RFC 2971 §3.1): who is there. What the client says is not used.

use crate::Output;
use crate::imap::reply::{Done, Started};
use crate::imap::state::Session;
use crate::imap::write;

pub(crate) fn run(session: &Session, out: &mut Output) -> Started {
    let fields = &session.context.settings.id_fields;
    let utf8 = session.utf8();
    let bytes = out.bytes_mut();
    if fields.is_empty() {
        bytes.extend_from_slice(b"* ID NIL\r\n");
    } else {
        let mut separator: &[u8] = b"* ID (";
        for text in fields.iter().flat_map(|(field, value)| [field, value]) {
            bytes.extend_from_slice(separator);
            write::string(bytes, text.as_bytes(), utf8);
            separator = b" ";
        }
        bytes.extend_from_slice(b")\r\n");
    }
    Ok(Done::ok("Pleased to meet you").into())
}
