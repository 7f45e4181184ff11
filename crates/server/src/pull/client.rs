//! A client's connection to another server: TLS, login, commands and their responses.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use imap_proto::command::Tag;
use imap_proto::response::{Code, Response, ResponseError, ResponseReader, StatusKind, StatusText};
use model::{Error, ErrorKind, Result};
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConnection, StreamOwned};

use super::{Remote, tls};

const CONNECT_MAX: Duration = Duration::from_secs(30);
/// A server that says nothing for so long while it owes an answer is gone.
const SILENCE_MAX: Duration = Duration::from_secs(300);
/// What a response may be larger than the message in it, octets.
const OVERHEAD_BYTES: u64 = 1 << 20;

/// Any stream.
trait Stream: Read + Write + Send {}
impl<T: Read + Write + Send> Stream for T {}

/// A connection that is logged in.
pub struct Client {
    stream: Box<dyn Stream>,
    reader: ResponseReader,
    /// What was received; from `taken` on it was not looked at.
    received: Vec<u8>,
    taken: usize,
    capabilities: Vec<String>,
    tags: u32,
    /// Ends of commands that nobody has asked for yet.
    ended: Vec<(Tag, StatusText)>,
}

/// More ends than that belong to no commands of ours.
const ENDED_MAX: usize = 16;

/// Why a command was not done.
#[derive(Debug)]
pub enum Failure {
    /// The server said NO or BAD: the connection goes on.
    Refused(String),
    /// The connection is of no use any more.
    Lost(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Lost(error)
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Refused(text) => Error::new(ErrorKind::NotPermitted, format!("the other server refuses: {text}")),
            Failure::Lost(error) => error,
        }
    }
}

impl Client {
    /// Connects and logs in. Messages up to `message_bytes_max` can be received.
    pub fn login(remote: &Remote, message_bytes_max: u64) -> Result<Client> {
        Client::open(remote, message_bytes_max).map_err(|error| error.context(remote))
    }

    fn open(remote: &Remote, message_bytes_max: u64) -> Result<Client> {
        let tcp = connect(remote)?;
        let spare = tcp.try_clone()?;
        let bytes_max = usize::try_from(message_bytes_max.saturating_add(OVERHEAD_BYTES)).unwrap_or(usize::MAX);
        let stream: Box<dyn Stream> = if remote.is_tls { Box::new(secured(remote, tcp)?) } else { Box::new(tcp) };
        let mut client = Client {
            stream,
            reader: ResponseReader::new(bytes_max),
            received: Vec::new(),
            taken: 0,
            capabilities: Vec::new(),
            ended: Vec::new(),
            tags: 0,
        };
        let is_greeted = match client.next()? {
            Response::Status(status) if status.kind == StatusKind::PreAuth => true,
            Response::Status(status) if status.kind == StatusKind::Ok => {
                client.learn(&status);
                false
            }
            other => return Err(unexpected(&other)),
        };
        if is_greeted {
            client.ask_capabilities()?;
            return Ok(client);
        }
        client.ask_capabilities()?;
        if !remote.is_tls {
            if client.has("STARTTLS") {
                client.run(b"STARTTLS", &mut |_| Ok(()))?;
                // What came before is not to be believed (RFC 9051 §6.2.1), nor is what came behind it in the same breath.
                if client.taken < client.received.len() {
                    return Err(Error::new(ErrorKind::Invalid, "the server speaks on before TLS"));
                }
                client.stream = Box::new(secured(remote, spare)?);
                client.capabilities.clear();
                client.ask_capabilities()?;
            } else if !remote.allow_plaintext {
                let text = "the server has no TLS here: the password would be readable on its way (--allow-plaintext)";
                return Err(Error::new(ErrorKind::NotPermitted, text));
            }
        }
        client.authenticate(remote)?;
        Ok(client)
    }

    /// Whether the server names a capability.
    pub fn has(&self, name: &str) -> bool {
        self.capabilities.iter().any(|known| known.eq_ignore_ascii_case(name))
    }

    /// Sends a command without waiting; gives its tag.
    pub fn send(&mut self, command: &[u8]) -> Result<String> {
        self.tags += 1;
        let tag = format!("M{}", self.tags);
        let line = [tag.as_bytes(), b" ", command, b"\r\n"].concat();
        self.stream.write_all(&line)?;
        self.stream.flush()?;
        Ok(tag)
    }

    /// Gives the untagged responses up to the end of the command `tag` to `take`.
    pub fn finish(&mut self, tag: &str, take: &mut dyn FnMut(Response) -> Result<()>) -> Result<StatusText, Failure> {
        loop {
            let ended = self.ended.iter().position(|(found, _)| found.as_str() == tag);
            if let Some((_, status)) = ended.map(|at| self.ended.swap_remove(at)) {
                self.learn(&status);
                return match status.kind {
                    StatusKind::Ok => Ok(status),
                    _ => Err(Failure::Refused(status.text)),
                };
            }
            match self.next()? {
                // Perhaps a later one: a server may end them in any order (RFC 9051 §5.5).
                Response::Tagged(found, status) if self.ended.len() < ENDED_MAX => self.ended.push((found, status)),
                Response::Tagged(..) => {
                    let what = "the other server ends commands that it was not sent";
                    return Err(Failure::Lost(Error::new(ErrorKind::Invalid, what)));
                }
                Response::Status(status) if status.kind == StatusKind::Bye => {
                    let text = format!("the other server ends the connection: {}", status.text);
                    return Err(Failure::Lost(Error::new(ErrorKind::Io, text)));
                }
                response => {
                    if let Response::Capability(names) = &response {
                        self.capabilities.clone_from(names);
                    }
                    take(response)?;
                }
            }
        }
    }

    /// Sends a command and reads what it brings.
    pub fn run(&mut self, command: &[u8], take: &mut dyn FnMut(Response) -> Result<()>) -> Result<StatusText, Failure> {
        let tag = self.send(command)?;
        self.finish(&tag, take)
    }

    /// Says goodbye; the answer is of no interest.
    pub fn logout(mut self) {
        let _ = self.run(b"LOGOUT", &mut |_| Ok(()));
    }

    fn learn(&mut self, status: &StatusText) {
        if let Some(Code::Capability(names)) = &status.code {
            self.capabilities.clone_from(names);
        }
    }

    fn ask_capabilities(&mut self) -> Result<()> {
        if self.capabilities.is_empty() {
            self.run(b"CAPABILITY", &mut |_| Ok(()))?;
        }
        Ok(())
    }

    fn authenticate(&mut self, remote: &Remote) -> Result<()> {
        let Remote { user, password, .. } = remote;
        let before = std::mem::take(&mut self.capabilities);
        let has = |name: &str| before.iter().any(|known| known.eq_ignore_ascii_case(name));
        let result = if has("AUTH=PLAIN") {
            // RFC 4616 §2
            let secret = STANDARD.encode(format!("\0{user}\0{password}"));
            if has("SASL-IR") {
                self.run(format!("AUTHENTICATE PLAIN {secret}").as_bytes(), &mut |_| Ok(()))
            } else {
                let tag = self.send(b"AUTHENTICATE PLAIN")?;
                match self.next()? {
                    Response::Continue(_) => {
                        self.stream.write_all(format!("{secret}\r\n").as_bytes())?;
                        self.stream.flush()?;
                        self.finish(&tag, &mut |_| Ok(()))
                    }
                    Response::Tagged(_, status) => Err(Failure::Refused(status.text)),
                    other => return Err(unexpected(&other)),
                }
            }
        } else if has("LOGINDISABLED") {
            Err(Failure::Refused("there is no way to log in with a password".into()))
        } else {
            let command = [b"LOGIN ".as_slice(), &quoted(user)?, b" ", &quoted(password)?].concat();
            self.run(&command, &mut |_| Ok(()))
        };
        result.map_err(|failure| match failure {
            Failure::Refused(text) => Error::new(ErrorKind::NotPermitted, format!("the login is refused: {text}")),
            Failure::Lost(error) => error,
        })?;
        self.ask_capabilities()
    }

    /// The next response. One that cannot be understood is passed over: it may be of an extension that nobody asked for.
    fn next(&mut self) -> Result<Response> {
        loop {
            let mut rest = self.received.get(self.taken..).unwrap_or_default();
            let before = rest.len();
            let found = self.reader.next(&mut rest);
            self.taken += before - rest.len();
            match found {
                Some(Ok(response)) => return Ok(response),
                Some(Err(ResponseError::Syntax(error))) => tracing::debug!(%error, "a response that is not understood"),
                Some(Err(ResponseError::TooLarge)) => {
                    return Err(Error::over_limit("message_bytes_max", "the other server sends more than it said"));
                }
                None => {
                    /// What is received at a time.
                    const PIECE_BYTES: usize = 64 << 10;
                    self.received.resize(PIECE_BYTES, 0);
                    self.taken = 0;
                    let read = self.stream.read(&mut self.received);
                    self.received.truncate(*read.as_ref().unwrap_or(&0));
                    match read {
                        Ok(0) => return Err(Error::from(io::Error::from(io::ErrorKind::UnexpectedEof))),
                        Ok(_) => {}
                        Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                            let text = format!("the other server said nothing for {} s", SILENCE_MAX.as_secs());
                            return Err(Error::new(ErrorKind::Io, text));
                        }
                        Err(error) => return Err(error.into()),
                    }
                }
            }
        }
    }
}

fn unexpected(response: &Response) -> Error {
    Error::new(ErrorKind::Invalid, format!("an unexpected answer: {response:?}"))
}

/// RFC 9051 §9 quoted; octets above 127 go as they are, as nearly every client sends them.
fn quoted(text: &str) -> Result<Vec<u8>> {
    if text.bytes().any(|byte| matches!(byte, 0 | b'\r' | b'\n')) {
        return Err(Error::new(ErrorKind::Invalid, "a name or password has a line end"));
    }
    let mut out = vec![b'"'];
    for byte in text.bytes() {
        if matches!(byte, b'"' | b'\\') {
            out.push(b'\\');
        }
        out.push(byte);
    }
    out.push(b'"');
    Ok(out)
}

fn connect(remote: &Remote) -> Result<TcpStream> {
    let mut last = None;
    for address in (remote.host.as_str(), remote.port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, CONNECT_MAX) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(SILENCE_MAX))?;
                stream.set_write_timeout(Some(SILENCE_MAX))?;
                return Ok(stream);
            }
            Err(error) => last = Some(error),
        }
    }
    Err(last.map_or_else(|| Error::new(ErrorKind::NotFound, "the host has no address"), Error::from))
}

fn secured(remote: &Remote, tcp: TcpStream) -> Result<StreamOwned<ClientConnection, TcpStream>> {
    let name = ServerName::try_from(remote.host.clone()).map_err(tls::wrong)?;
    let connection = ClientConnection::new(tls::config(remote.ca_file.as_deref())?, name).map_err(tls::wrong)?;
    Ok(StreamOwned::new(connection, tcp))
}
