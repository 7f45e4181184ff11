//! The end of DATA, and the dots before it (RFC 5321 §4.1.1.4, §4.5.2).

/// Takes the dots away that the client has put before lines that begin with one, and finds the line that is a dot and nothing else. Only
/// CRLF ends a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Unstuffing {
    /// At the start of a line, as the first octet is.
    #[default]
    LineStart,
    /// Within a line.
    Text,
    /// After a CR within a line.
    Cr,
    /// After a dot at the start of a line.
    Dot,
    /// After a dot at the start of a line, and a CR.
    DotCr,
}

impl Unstuffing {
    /// Gives what belongs to the message to `sink`; how many of `bytes` were used, and whether the end was among them. Without the end,
    /// all were.
    pub(super) fn push(&mut self, bytes: &[u8], mut sink: impl FnMut(&[u8])) -> (usize, bool) {
        let mut give = |piece: Option<&[u8]>| {
            if let Some(piece) = piece.filter(|piece| !piece.is_empty()) {
                sink(piece);
            }
        };
        // What of `bytes` was not given yet begins here.
        let mut begin = 0;
        let mut at = 0;
        while let Some(byte) = bytes.get(at) {
            *self = match (*self, byte) {
                (Unstuffing::LineStart, b'.') => {
                    give(bytes.get(begin..at));
                    begin = at + 1;
                    Unstuffing::Dot
                }
                (Unstuffing::Dot, b'\r') => {
                    // Of the message only if no LF follows.
                    begin = at + 1;
                    Unstuffing::DotCr
                }
                (Unstuffing::DotCr, b'\n') => return (at + 1, true),
                (Unstuffing::Cr, b'\n') => Unstuffing::LineStart,
                (Unstuffing::DotCr, _) => {
                    give(Some(b"\r"));
                    begin = at;
                    if *byte == b'\r' { Unstuffing::Cr } else { Unstuffing::Text }
                }
                (_, b'\r') => Unstuffing::Cr,
                _ => {
                    // To the next CR at once.
                    let rest = bytes.get(at..).unwrap_or_default();
                    at += memchr::memchr(b'\r', rest).unwrap_or(rest.len());
                    *self = Unstuffing::Text;
                    continue;
                }
            };
            at += 1;
        }
        give(bytes.get(begin..));
        (bytes.len(), false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The message, and how many octets were used up to the end.
    fn read(pieces: &[&[u8]]) -> (Vec<u8>, Option<usize>) {
        let (mut state, mut message, mut used) = (Unstuffing::default(), Vec::new(), 0);
        for piece in pieces {
            let (octets, ended) = state.push(piece, |bytes| message.extend_from_slice(bytes));
            used += octets;
            if ended {
                return (message, Some(used));
            }
        }
        (message, None)
    }

    #[test]
    fn at_every_cut() {
        for (sent, message) in [
            (&b".\r\n"[..], &b""[..]),
            (b"a\r\n.\r\n", b"a\r\n"),
            (b"..\r\n...\r\n.\r\n", b".\r\n..\r\n"),
            (b".a\r\n.\r\n", b"a\r\n"),
            (b"\r\n\r\n.\r\n", b"\r\n\r\n"),
            // None of these ends it: only CRLF ends a line.
            (b"a\n.\r\nb\r\n.\r\n", b"a\n.\r\nb\r\n"),
            (b"a\r\n.\nb\r\n.\r\n", b"a\r\n\nb\r\n"),
            (b"a\r.\rb\r\n.\r\n", b"a\r.\rb\r\n"),
            (b"a\n.\nb\r\n.\r\n", b"a\n.\nb\r\n"),
            (b"a\r\n.\rb\r\n.\r\n", b"a\r\n\rb\r\n"),
            (b"a\r\n.\r\r\n.\r\n", b"a\r\n\r\r\n"),
            (b"a\r\r\n.\r\n", b"a\r\r\n"),
            (b"\0\xff\x1a\r\n.\r\n", b"\0\xff\x1a\r\n"),
        ] {
            let with_more = [sent, b"QUIT\r\n"].concat();
            for first in 0..with_more.len() {
                for second in first..with_more.len() {
                    let pieces = [&with_more[..first], &with_more[first..second], &with_more[second..]];
                    assert_eq!(read(&pieces), (message.to_vec(), Some(sent.len())), "{sent:?} at {first}, {second}");
                }
            }
        }
        assert_eq!(read(&[b"no end\r\n."]), (b"no end\r\n".to_vec(), None));
    }

    proptest::proptest! {
        #[test]
        fn what_was_stuffed_comes_out(lines in proptest::collection::vec("[.a\r\n]{0,5}", 0..6), cut in 0usize..64) {
            // A client stuffs after CRLF only.
            let text = lines.iter().map(|line| format!("{line}\r\n")).collect::<String>();
            let mut stuffed = text.replace("\r\n.", "\r\n..");
            if text.starts_with('.') {
                stuffed.insert(0, '.');
            }
            stuffed += ".\r\n";
            let (a, b) = stuffed.as_bytes().split_at(cut.min(stuffed.len()));
            proptest::prop_assert_eq!(read(&[a, b]), (text.into_bytes(), Some(stuffed.len())));
        }
    }
}
