//! Every peer that is installed here: a session with all that the suites use, a restart, an end; and a peer that dies midway.
//!
//! What is not installed is said and left out. `MAILYARD_PEERS` may name the folder of unpacked peers.

#![allow(clippy::unwrap_used)]

use mailyard_bench::cold;
use mailyard_bench::server::Server;
use mailyard_bench::server::peers::{self, PEERS, Place};
use mailyard_bench::wire::{Address, Connection};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A folder that servers without root's rights reach.
fn folder() -> TempDir {
    let mode = std::fs::Permissions::from_mode(0o711);
    tempfile::Builder::new().prefix("mailyard-peers-").permissions(mode).tempdir().unwrap()
}

fn place(folder: &TempDir, name: &str) -> Place {
    let unpacked = std::env::var_os("MAILYARD_PEERS").map_or_else(peers::default_unpacked, PathBuf::from);
    Place { work: folder.path().join(name), mailyard: PathBuf::new(), unpacked }
}

/// The peers that can be started; the others are named.
fn installed() -> Vec<&'static str> {
    let folder = folder();
    let unpacked = place(&folder, "").unpacked;
    let mut names = Vec::new();
    // Mailyard itself is another crate's program; the suites' tests start it.
    for peer in PEERS.iter().filter(|peer| peer.name != "mailyard-native") {
        match peer.installed(Path::new(""), &unpacked) {
            Ok(version) => {
                println!("{}: {version}", peer.name);
                names.push(peer.name);
            }
            Err(missing) => println!("left out: {}: {missing}", peer.name),
        }
    }
    names
}

/// A client that shows whole answers.
struct Client {
    stream: BufReader<TcpStream>,
    mailbox: String,
}

impl Client {
    fn login(address: &Address) -> Client {
        let stream = TcpStream::connect((address.host.as_str(), address.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let mailbox = format!("{}bench", address.prefix);
        let mut client = Client { stream: BufReader::new(stream), mailbox };
        assert!(client.line().starts_with("* OK"));
        client.command(&format!("LOGIN {} {}", address.user, address.password));
        client
    }

    fn line(&mut self) -> String {
        let mut line = Vec::new();
        assert_ne!(self.stream.read_until(b'\n', &mut line).unwrap(), 0, "the server closed the connection");
        String::from_utf8_lossy(&line).into_owned()
    }

    fn send(&mut self, bytes: &[u8]) {
        self.stream.get_mut().write_all(bytes).unwrap();
    }

    /// A command about the one mailbox.
    fn on_mailbox(&mut self, command: &str) -> Vec<u8> {
        self.command(&format!("{command} {}", self.mailbox))
    }

    /// The whole answer, which must be OK.
    fn command(&mut self, command: &str) -> Vec<u8> {
        self.send(format!("A {command}\r\n").as_bytes());
        self.answer(command)
    }

    fn answer(&mut self, what: &str) -> Vec<u8> {
        let mut all = Vec::new();
        loop {
            let line = self.line();
            if let Some(status) = line.strip_prefix("A ") {
                assert!(status.starts_with("OK"), "{what}: {line}");
                return all;
            }
            all.extend_from_slice(line.as_bytes());
            if let Some(length) = line.trim_end().strip_suffix('}').and_then(|rest| rest.rsplit('{').next()) {
                let mut literal = vec![0; length.parse().unwrap()];
                self.stream.read_exact(&mut literal).unwrap();
                all.extend_from_slice(&literal);
            }
        }
    }

    fn append(&mut self, message: &[u8]) {
        self.send(format!("A APPEND {} {{{}}}\r\n", self.mailbox, message.len()).as_bytes());
        let line = self.line();
        assert!(line.starts_with('+'), "{line}");
        self.send(message);
        self.send(b"\r\n");
        self.answer("APPEND");
    }
}

fn contains(answer: &[u8], text: &[u8]) -> bool {
    answer.windows(text.len()).any(|window| window == text)
}

/// Fails with the answer, as far as a person would read it.
fn assert_contains(answer: &[u8], text: &str) {
    let start = String::from_utf8_lossy(answer.get(..1000).unwrap_or(answer)).into_owned();
    assert!(contains(answer, text.as_bytes()), "no {text:?} in {start}");
}

fn message(subject: &str, body: &[u8]) -> Vec<u8> {
    let header = format!(
        "From: Ann <ann@example.org>\r\nTo: Ben <ben@example.org>\r\nSubject: {subject}\r\nDate: Mon, 7 Feb 1994 21:52:25 -0800\r\n\
         Message-ID: <{subject}@example.org>\r\nContent-Type: text/plain; charset=iso-8859-1\r\n\
         Content-Transfer-Encoding: 8bit\r\n\r\n"
    );
    [header.as_bytes(), body].concat()
}

/// Whether a process runs; one that was killed may wait to be waited for.
fn runs(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    status.contains("State:") && !status.contains("State:\tZ")
}

fn wait_until_gone(pids: &[u32]) {
    let began = Instant::now();
    while pids.iter().any(|pid| runs(*pid)) {
        assert!(began.elapsed() < Duration::from_secs(10), "processes are left");
        std::thread::yield_now();
    }
}

/// What every suite relies on.
fn whole_session(server: &mut dyn Server, is_exact: bool) {
    let accounts = server.accounts(2).unwrap();
    let large: Vec<u8> =
        b"A line of seventy-eight bytes, so that a message of a megabyte has many lines\r\n".repeat(13_000);
    let mut second = Client::login(&accounts[1]);
    second.on_mailbox("CREATE");
    let mut client = Client::login(&accounts[0]);
    client.on_mailbox("CREATE");
    client.append(&message("first", b"Gr\xfc\xdfe\r\n"));
    client.append(&message("second", &large));
    // US-ASCII: Cyrus 3.6 does not find what stands in the last 4 KiB of a text of most other charsets.
    client.append(b"From: Ann <ann@example.org>\r\nSubject: third\r\n\r\nhappy\r\n");
    assert_contains(&client.on_mailbox("SELECT"), "* 3 EXISTS");
    assert_contains(&second.on_mailbox("SELECT"), "* 0 EXISTS");
    assert!(contains(&client.command("FETCH 1 BODY.PEEK[]"), b"Gr\xfc\xdfe\r\n"), "8-bit text comes back");
    assert!(contains(&client.command("FETCH 2 BODY.PEEK[TEXT]"), &large), "a megabyte comes back");
    let fetched = client.command("FETCH 1:* (UID FLAGS RFC822.SIZE INTERNALDATE ENVELOPE)");
    assert_eq!(fetched.split(|byte| *byte == b'\n').filter(|line| contains(line, b" FETCH (")).count(), 3);
    client.command("STORE 1:2 +FLAGS (\\Flagged)");
    assert_contains(&client.command("SEARCH FLAGGED"), "* SEARCH 1 2");
    let found = client.command("SEARCH TEXT happy");
    if is_exact {
        assert_contains(&found, "* SEARCH 3");
    }
    client.command("STORE 3 +FLAGS (\\Deleted)");
    assert_contains(&client.command("EXPUNGE"), "* 3 EXPUNGE");
    client.command("LOGOUT");
    second.command("LOGOUT");
}

/// The same mail is there after a restart.
fn kept(server: &mut dyn Server) {
    let accounts = server.accounts(2).unwrap();
    let mut client = Client::login(&accounts[0]);
    assert_contains(&client.on_mailbox("SELECT"), "* 2 EXISTS");
    assert_contains(&client.command("SEARCH FLAGGED"), "* SEARCH 1 2");
    assert!(contains(&client.command("FETCH 1 BODY.PEEK[]"), b"Gr\xfc\xdfe\r\n"));
    client.command("LOGOUT");
}

#[test]
fn a_session_a_restart_and_an_end() {
    for name in installed() {
        println!("now {name}");
        let folder = folder();
        let mut server = peers::start(name, &place(&folder, name)).unwrap();
        let info = server.info();
        assert_eq!(info.name, name);
        assert!(!info.version.is_empty() && !info.format.is_empty() && !info.durability.is_empty());
        // Squatter has not run since, and then Cyrus does not look at the messages themselves.
        whole_session(&mut *server, name != "cyrus-squatter");
        let account = server.accounts(1).unwrap().remove(0);
        let local = server.local().unwrap();
        let first = local.processes().unwrap();
        assert!(!first.is_empty());
        for path in local.storage(&account) {
            assert!(path.exists(), "{name}: {}", path.display());
        }
        if let Some(path) = local.mbox(&account, "bench") {
            assert!(std::fs::read(&path).unwrap().starts_with(b"From "), "{name}: {}", path.display());
        }
        local.stop().unwrap();
        wait_until_gone(&first);
        local.stop().unwrap();
        cold::drop_from_cache(&local.files()).unwrap();
        local.set_synced(false).unwrap();
        local.start().unwrap();
        local.start().unwrap();
        kept(&mut *server);
        let second = server.local().unwrap().processes().unwrap();
        drop(server);
        wait_until_gone(&second);
        folder.close().unwrap();
    }
}

#[test]
fn twenty_connections_of_one_user() {
    for name in installed() {
        let folder = folder();
        let mut server = peers::start(name, &place(&folder, name)).unwrap();
        let account = server.accounts(1).unwrap().remove(0);
        let mut connections: Vec<Connection> = (0..20).map(|_| Connection::login(&account).unwrap()).collect();
        for connection in &mut connections {
            connection.command("NOOP").unwrap();
        }
    }
}

#[test]
fn a_peer_that_dies_midway() {
    for name in installed() {
        let folder = folder();
        let mut server = peers::start(name, &place(&folder, name)).unwrap();
        let account = server.accounts(1).unwrap().remove(0);
        let mut connection = Connection::login(&account).unwrap();
        let local = server.local().unwrap();
        let pids = local.processes().unwrap();
        for pid in &pids {
            let pid = rustix::process::Pid::from_raw((*pid).try_into().unwrap()).unwrap();
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
        assert!(connection.command("NOOP").is_err(), "{name}: an answer from the dead");
        wait_until_gone(&pids);
        let error = local.stop().unwrap_err().to_string();
        assert!(error.contains(name) && error.contains("ended by itself"), "{error}");
        local.start().unwrap();
        drop(server);
        folder.close().unwrap();
    }
}

#[test]
fn names_and_ports() {
    let folder = folder();
    let error = peers::start("nobody", &place(&folder, "nobody")).err().unwrap().to_string();
    assert!(error.contains("dovecot-mdbox"), "{error}");
    let Some(name) = installed().first().copied() else { return };
    let mut server = peers::start(name, &place(&folder, name)).unwrap();
    let account = server.accounts(1).unwrap().remove(0);
    let local = server.local().unwrap();
    local.stop().unwrap();
    let _taken = std::net::TcpListener::bind(("127.0.0.1", account.port)).unwrap();
    let error = local.start().unwrap_err().to_string();
    assert!(error.contains("is taken by another program"), "{error}");
}
