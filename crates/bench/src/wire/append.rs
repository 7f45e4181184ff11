//! APPEND (RFC 9051 §6.3.12, RFC 3502, RFC 7888): with whatever the server offers.

use super::{Answer, Capabilities, Connection, Literals, TAG};
use crate::error::{Doing, Result};
use std::io::Write;
use std::time::Instant;

/// A message to be added to a mailbox.
#[derive(Clone, Copy, Debug)]
pub struct Outgoing<'m> {
    /// As it is, with CRLF line ends.
    pub bytes: &'m [u8],
    /// Its internal date (RFC 9051 §9 date-time, without the quotes); empty when the server shall take the time of the APPEND.
    pub internal_date: &'m str,
}

impl Connection {
    /// Adds messages to a mailbox with one command (RFC 3502 when there are several), each as a literal that is not waited for
    /// (RFC 7888).
    pub fn append(&mut self, mailbox: &str, messages: &[&[u8]]) -> Result<Answer> {
        let messages: Vec<Outgoing> = messages.iter().map(|bytes| Outgoing { bytes, internal_date: "" }).collect();
        self.append_as(mailbox, &messages, Literals::Pushed { bytes_max: usize::MAX })
    }

    /// Adds messages to a mailbox with one command, literals sent as said. Several messages need MULTIAPPEND.
    pub fn append_as(&mut self, mailbox: &str, messages: &[Outgoing], literals: Literals) -> Result<Answer> {
        self.append_one(mailbox, messages, literals).doing("APPEND")
    }

    /// Adds messages to a mailbox, in as few round trips as the server's features allow: one command for all, else one command each,
    /// sent together when nothing has to be waited for.
    pub fn append_all(&mut self, mailbox: &str, messages: &[Outgoing], offered: &Capabilities) -> Result<()> {
        let literals = offered.literals();
        if offered.multiappend() {
            return self.append_as(mailbox, messages, literals).map(drop);
        }
        if messages.iter().all(|message| literals.pushed(message.bytes.len())) {
            let mut bytes = Vec::with_capacity(messages.iter().map(|message| message.bytes.len() + 128).sum());
            for message in messages {
                begin(&mut bytes, &self.mailbox(mailbox));
                announce(&mut bytes, message, literals);
                bytes.extend_from_slice(message.bytes);
                bytes.extend_from_slice(b"\r\n");
            }
            return self.send(&bytes, messages.len() as u64).doing("APPEND").map(drop);
        }
        messages.iter().try_for_each(|message| self.append_as(mailbox, &[*message], literals).map(drop))
    }

    fn append_one(&mut self, mailbox: &str, messages: &[Outgoing], literals: Literals) -> Result<Answer> {
        let began = Instant::now();
        let all: usize = messages.iter().map(|message| message.bytes.len() + 64).sum();
        let mut bytes = Vec::with_capacity(all + 64);
        begin(&mut bytes, &self.mailbox(mailbox));
        for message in messages {
            announce(&mut bytes, message, literals);
            if !literals.pushed(message.bytes.len()) {
                self.stream.write_all(&bytes).doing("sending")?;
                bytes.clear();
                self.continuation()?;
            }
            bytes.extend_from_slice(message.bytes);
        }
        bytes.extend_from_slice(b"\r\n");
        let mut answer = self.send(&bytes, 1)?;
        answer.took = began.elapsed();
        Ok(answer)
    }

    /// Sends a command that was put together before, a part after each of the server's continuation requests, and reads the tagged
    /// answer.
    pub fn send_in_parts(&mut self, parts: &[impl AsRef<[u8]>]) -> Result<Answer> {
        let began = Instant::now();
        let Some((last, before)) = parts.split_last() else { return Ok(Answer::default()) };
        for part in before {
            self.stream.write_all(part.as_ref()).doing("sending")?;
            self.continuation()?;
        }
        let mut answer = self.send(last.as_ref(), 1)?;
        answer.took = began.elapsed();
        Ok(answer)
    }
}

fn begin(bytes: &mut Vec<u8>, quoted_mailbox: &str) {
    bytes.extend_from_slice(format!("{TAG} APPEND {quoted_mailbox}").as_bytes());
}

/// What stands before a message: its date and the head of its literal.
fn announce(bytes: &mut Vec<u8>, message: &Outgoing, literals: Literals) {
    if !message.internal_date.is_empty() {
        bytes.extend_from_slice(format!(" \"{}\"", message.internal_date).as_bytes());
    }
    let length = message.bytes.len();
    let plus = if literals.pushed(length) { "+" } else { "" };
    bytes.extend_from_slice(format!(" {{{length}{plus}}}\r\n").as_bytes());
}

#[cfg(test)]
mod tests {
    use super::super::{Capabilities, Connection};
    use super::Outgoing;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    /// A server that says `parts` in turn, each once it has received so many bytes as the part before it in the pair says.
    fn scripted(parts: Vec<(usize, &'static str)>) -> (Connection, std::thread::JoinHandle<Vec<u8>>) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("a port");
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a client");
            let mut received = Vec::new();
            for (bytes, say) in parts {
                let mut piece = vec![0; bytes];
                stream.read_exact(&mut piece).expect("what the client should send");
                received.extend_from_slice(&piece);
                stream.write_all(say.as_bytes()).expect("sent");
            }
            received
        });
        (Connection::over(TcpStream::connect(address).expect("connected")).expect("a connection"), server)
    }

    const TWO: [Outgoing; 2] = [
        Outgoing { bytes: b"A: 1\r\n\r\n", internal_date: " 1-Jan-2003 00:00:00 +0000" },
        Outgoing { bytes: b"B: 2\r\n\r\n", internal_date: "" },
    ];

    #[test]
    fn each_way() {
        let dated = "B APPEND \"m\" \" 1-Jan-2003 00:00:00 +0000\"";
        let told = |names: &str| Capabilities::of(&[format!("* CAPABILITY {names}")]);
        let several = format!("{dated} {{8+}}\r\nA: 1\r\n\r\n {{8+}}\r\nB: 2\r\n\r\n\r\n");
        let single = format!("{dated} {{8+}}\r\nA: 1\r\n\r\n\r\nB APPEND \"m\" {{8+}}\r\nB: 2\r\n\r\n\r\n");
        let waits = format!("{dated} {{8}}\r\nA: 1\r\n\r\n\r\nB APPEND \"m\" {{8}}\r\nB: 2\r\n\r\n\r\n");
        let waited_at = dated.len() + 6;
        let cases = [
            ("MULTIAPPEND LITERAL+", vec![(several.len(), "* 2 EXISTS\r\nB OK\r\n")], several),
            ("LITERAL+", vec![(single.len(), "B OK\r\nB OK\r\n")], single),
            (
                "IMAP4rev1",
                vec![(waited_at, "* 5 EXISTS\r\n+ go\r\n"), (10, "B OK\r\n"), (18, "+ go\r\n"), (10, "B OK\r\n")],
                waits,
            ),
        ];
        for (names, parts, expected) in cases {
            let (mut connection, server) = scripted(parts);
            connection.append_all("m", &TWO, &told(names)).expect("appended");
            drop(connection);
            assert_eq!(String::from_utf8(server.join().expect("a server")).expect("text"), expected, "{names}");
        }
    }

    #[test]
    fn refused_before_the_message() {
        let (mut connection, server) = scripted(vec![(18, "B NO over quota\r\n")]);
        let told = Capabilities::of(&["* CAPABILITY IMAP4rev1".into()]);
        let refused = connection.append_all("m", &TWO[1..], &told).expect_err("refused");
        assert_eq!(refused.to_string(), "APPEND: NO over quota");
        drop(connection);
        server.join().expect("a server");
    }
}
