//! The client side of IMAP, made to keep up with any server.
//!
//! It looks at a response only as far as it must: where a line ends, how long a literal is, whether the tag came. Bytes pass through one
//! buffer and are counted, not kept. So what is measured is the server, and the same client over a replayed answer gives the limit.

mod address;
mod append;
mod capabilities;
mod lines;
mod scan;

pub use address::{Address, without_password};
pub use append::Outgoing;
pub use capabilities::{Capabilities, Literals};
pub use lines::{LineConnection, stuffed};
pub use scan::Answer;
pub(crate) use scan::{all_numbers, kind, literal_at_end, numbers};

use crate::error::{Doing, Error, Result};
use scan::Scanner;
use std::fs::File;
use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// A server that says nothing for this long has failed.
const SILENCE_MAX: Duration = Duration::from_secs(300);

/// Every command has this tag: a recorded answer then fits any later command (RFC 9051 §2.2.1 only advises tags to differ).
pub const TAG: &str = "B";

/// A connection on which one command at a time, or a batch of commands, is answered.
pub struct Connection {
    stream: TcpStream,
    scanner: Scanner,
    recording: Option<File>,
    greeting: String,
    prefix: String,
}

impl Connection {
    /// Connects and reads the greeting.
    pub fn open(address: &Address) -> Result<Connection> {
        let stream = TcpStream::connect((address.host.as_str(), address.port)).doing(address)?;
        let mut connection = Connection::over(stream)?;
        let greeting = connection.scanner.line(&mut connection.stream).doing(address)?;
        if !greeting.starts_with("* OK") && !greeting.starts_with("* PREAUTH") {
            return Err(Error::new(format!("{address}: greeted with {greeting:?}")));
        }
        connection.greeting = greeting;
        Ok(connection)
    }

    /// The server's first line.
    pub fn greeting(&self) -> &str {
        &self.greeting
    }

    /// Connects and logs in.
    pub fn login(address: &Address) -> Result<Connection> {
        let mut connection = Connection::open(address)?;
        connection.authenticate(address)?;
        Ok(connection)
    }

    /// Logs in with the address' user and password; the error does not repeat the password.
    pub fn authenticate(&mut self, address: &Address) -> Result<()> {
        let login = format!("{TAG} LOGIN {} {}\r\n", quoted(&address.user), quoted(&address.password));
        self.send(login.as_bytes(), 1).doing(format!("{address}: LOGIN"))?;
        self.prefix.clone_from(&address.prefix);
        Ok(())
    }

    /// The full name of a mailbox of this account, quoted for a command: whatever names a mailbox goes through this.
    pub fn mailbox(&self, name: &str) -> String {
        quoted(&format!("{}{name}", self.prefix))
    }

    /// What the server says that names of this account's own mailboxes begin with; nothing if it does not say.
    pub fn personal_prefix(&mut self) -> Result<String> {
        if !self.capabilities()?.has("NAMESPACE") {
            return Ok(String::new());
        }
        let answer = self.command("NAMESPACE")?;
        Ok(answer.kept.iter().find_map(|line| namespace_prefix(line)).unwrap_or_default())
    }

    /// A connection that is open already and sends no greeting.
    pub fn over(stream: TcpStream) -> Result<Connection> {
        stream.set_nodelay(true).doing("connection")?;
        stream.set_read_timeout(Some(SILENCE_MAX)).doing("connection")?;
        Ok(Connection {
            stream,
            scanner: Scanner::new(),
            recording: None,
            greeting: String::new(),
            prefix: String::new(),
        })
    }

    /// Sends one command (without tag and line end) and reads its answer; an error unless that is OK.
    pub fn command(&mut self, command: &str) -> Result<Answer> {
        self.batch(std::slice::from_ref(&command))
    }

    /// Sends all the commands at once and reads all their answers, counted together.
    pub fn batch(&mut self, commands: &[impl AsRef<str>]) -> Result<Answer> {
        let mut bytes = Vec::new();
        for command in commands {
            bytes.extend_from_slice(format!("{TAG} {}\r\n", command.as_ref()).as_bytes());
        }
        let shown = commands.first().map_or("", AsRef::as_ref);
        self.send(&bytes, commands.len() as u64).doing(format!("{:.60}", shown))
    }

    /// Sends bytes that hold `commands` whole commands and reads as many tagged answers.
    pub fn send(&mut self, bytes: &[u8], commands: u64) -> Result<Answer> {
        let began = Instant::now();
        self.stream.write_all(bytes).doing("sending")?;
        let mut answer = Answer::default();
        while answer.tagged < commands {
            self.scanner.answer(&mut self.stream, &mut self.recording, &mut answer)?;
        }
        answer.took = began.elapsed();
        Ok(answer)
    }

    /// Waits for a continuation request (RFC 9051 §7.6); what is untagged before it is passed over, a tagged answer is an error.
    fn continuation(&mut self) -> Result<()> {
        loop {
            let line = self.scanner.line(&mut self.stream)?;
            if line.starts_with('+') {
                return Ok(());
            }
            if !line.starts_with("* ") {
                return Err(Error::new(line.strip_prefix(TAG).unwrap_or(&line).trim_start()));
            }
        }
    }

    /// Begins IDLE (RFC 9051 §6.3.13) and waits for the server's continuation request.
    pub fn idle(&mut self) -> Result<()> {
        self.stream.write_all(format!("{TAG} IDLE\r\n").as_bytes()).doing("IDLE")?;
        self.continuation().doing("IDLE")
    }

    /// The stream itself, with what was received on it and not looked at yet: for a caller with many connections, who reads whatever is
    /// there first.
    pub fn into_stream(self) -> (TcpStream, Vec<u8>) {
        let waiting = self.scanner.waiting().to_vec();
        (self.stream, waiting)
    }

    /// Keeps everything that is received from now on in a file; `None` ends that. Gives back the file that was used so far.
    pub fn record(&mut self, recording: Option<File>) -> Option<File> {
        std::mem::replace(&mut self.recording, recording)
    }

    /// What the server offers to whoever is logged in now.
    pub fn capabilities(&mut self) -> Result<Capabilities> {
        Ok(Capabilities::of(&self.command("CAPABILITY")?.kept))
    }

    /// Makes a mailbox anew: empty, whatever was in it.
    pub fn renew(&mut self, mailbox: &str) -> Result<()> {
        // Not there, unless an earlier run left it.
        let _ = self.command(&format!("DELETE {}", self.mailbox(mailbox)));
        self.command(&format!("CREATE {}", self.mailbox(mailbox))).map(drop)
    }

    /// Removes a mailbox.
    pub fn remove(&mut self, mailbox: &str) -> Result<()> {
        self.command(&format!("DELETE {}", self.mailbox(mailbox))).map(drop)
    }

    /// Selects a mailbox; gives the answer and how many messages it has.
    pub fn select(&mut self, mailbox: &str) -> Result<(Answer, u32)> {
        let answer = self.command(&format!("SELECT {}", self.mailbox(mailbox)))?;
        let exists = answer.kept.iter().find_map(|line| line.strip_prefix("* ")?.strip_suffix(" EXISTS")?.parse().ok());
        let exists = exists.ok_or_else(|| Error::new("SELECT: no EXISTS in the answer"))?;
        Ok((answer, exists))
    }
}

/// RFC 2342 §6: the prefix of the first personal namespace, `* NAMESPACE (("INBOX." ".")) ...`.
fn namespace_prefix(line: &str) -> Option<String> {
    let personal = line.strip_prefix("* NAMESPACE ((\"")?;
    let mut prefix = String::new();
    let mut characters = personal.chars();
    loop {
        match characters.next()? {
            '"' => return Some(prefix),
            '\\' => prefix.push(characters.next()?),
            character => prefix.push(character),
        }
    }
}

/// RFC 9051 §9 quoted.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// The shortest sequence sets that name all the numbers and still fit a command line of 8,000 bytes (RFC 7162 §4).
pub fn sequence_sets(numbers: &[u32]) -> Vec<String> {
    const BYTES_MAX: usize = 8_000;
    let mut sets = vec![String::new()];
    let mut rest = numbers;
    while let Some(first) = rest.first() {
        let run = rest.iter().zip(*first..).take_while(|(number, expected)| **number == *expected).count();
        rest = rest.get(run..).unwrap_or_default();
        let last = first + run as u32 - 1;
        let piece = if run > 1 { format!("{first}:{last}") } else { first.to_string() };
        match sets.last_mut() {
            Some(set) if set.is_empty() => *set = piece,
            Some(set) if set.len() + piece.len() < BYTES_MAX => {
                set.push(',');
                set.push_str(&piece);
            }
            _ => sets.push(piece),
        }
    }
    sets.retain(|set| !set.is_empty());
    sets
}

#[cfg(test)]
mod tests {
    use super::{namespace_prefix, quoted, sequence_sets};

    #[test]
    fn sets() {
        assert_eq!(sequence_sets(&[1, 2, 3, 5, 7, 8]), ["1:3,5,7:8"]);
        assert!(sequence_sets(&[]).is_empty());
        let odd: Vec<u32> = (0..9_000).map(|n| n * 2 + 1).collect();
        let sets = sequence_sets(&odd);
        assert!(sets.len() > 1 && sets.iter().all(|set| set.len() <= 8_000));
        assert_eq!(sets.iter().map(|set| set.split(',').count()).sum::<usize>(), odd.len());
    }

    #[test]
    fn prefixes() {
        let prefix = |line| namespace_prefix(line);
        assert_eq!(
            prefix(r##"* NAMESPACE (("INBOX." ".")) NIL (("#shared." ".")("shared." "."))"##).as_deref(),
            Some("INBOX.")
        );
        assert_eq!(prefix(r#"* NAMESPACE (("" "/")) NIL NIL"#).as_deref(), Some(""));
        assert_eq!(prefix(r#"* NAMESPACE (("a\\\"b" "/")) NIL NIL"#).as_deref(), Some(r#"a\"b"#));
        for other in ["* NAMESPACE NIL NIL NIL", "* NAMESPACE ((\"a", "* 3 EXISTS"] {
            assert_eq!(prefix(other), None, "{other}");
        }
    }

    #[test]
    fn quoting() {
        assert_eq!(quoted(r#"a"b\c"#), r#""a\"b\\c""#);
    }
}
