//! A running `mailyard` and a client for it. Nothing sleeps: everything waits for an event, with a deadline.
#![allow(dead_code, clippy::unwrap_used, reason = "tests; no file uses everything")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::Value;

/// Long enough for a loaded machine; reached only when something is broken.
pub const DEADLINE: Duration = Duration::from_secs(60);
pub const USER: &str = "ann";
pub const PASSWORD: &str = "correct horse";

pub fn mailyard() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mailyard"));
    command.env_remove("MAILYARD_LOG").stdin(Stdio::null());
    command
}

/// Runs a command on `data` to its end.
pub fn run(data: &Path, arguments: &[&str]) -> Output {
    mailyard().arg("--data").arg(data).args(arguments).output().unwrap()
}

/// Runs a command that must succeed, with `--json`; its result.
pub fn run_json(data: &Path, arguments: &[&str]) -> Value {
    let output = run(data, &[&["--json"], arguments].concat());
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Runs a command with a password on standard input.
pub fn run_with_password(data: &Path, arguments: &[&str], password: &str) -> Output {
    let mut child = mailyard()
        .arg("--data")
        .arg(data)
        .args(arguments)
        .arg("--password-stdin")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    writeln!(child.stdin.take().unwrap(), "{password}").unwrap();
    child.wait_with_output().unwrap()
}

/// A data directory with one user.
pub fn data_with_user() -> tempfile::TempDir {
    let data = tempfile::tempdir().unwrap();
    let output = run_with_password(data.path(), &["user", "add", USER], PASSWORD);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    data
}

/// A server that runs; killed when it is dropped.
pub struct Server {
    child: Child,
    log: Receiver<Value>,
    pub ready: Value,
    pub config_file: PathBuf,
}

impl Server {
    /// Starts a server with this configuration (the section `[log]` is added) and waits until it is ready.
    pub fn start(data: &Path, config: &str, listen: &[&str]) -> Self {
        Server::start_with(data, &data.join("test.toml"), config, listen)
    }

    fn start_with(data: &Path, config_file: &Path, config: &str, listen: &[&str]) -> Self {
        let config_file = config_file.to_owned();
        write_config(&config_file, config);
        let mut command = mailyard();
        command.arg("serve").arg("--data").arg(data).arg("--config").arg(&config_file);
        for listen in listen {
            command.arg("--listen").arg(listen);
        }
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let (lines, log) = channel();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        std::thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                let value = serde_json::from_str(&line).unwrap_or(Value::String(line));
                if lines.send(value).is_err() {
                    return;
                }
            }
        });
        let mut server = Server { child, log, ready: Value::Null, config_file };
        server.ready = server.wait_for_log("ready");
        server
    }

    /// In a directory that the server is to make.
    pub fn start_in_new(data: &Path) -> Self {
        std::fs::create_dir_all(data.parent().unwrap()).unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        Server::start_with(data, &elsewhere.path().join("test.toml"), "", &["imap=127.0.0.1:0"])
    }

    /// The plain thing: IMAP on a free port.
    pub fn imap(data: &Path) -> Self {
        Server::start(data, "", &["imap=127.0.0.1:0"])
    }

    /// The next log line with this message; those before it are skipped.
    pub fn wait_for_log(&self, message: &str) -> Value {
        loop {
            let line = self.log.recv_timeout(DEADLINE).unwrap_or_else(|_| panic!("no log line {message:?}"));
            if line["message"] == message {
                return line;
            }
            assert!(!line.is_string() || line == Value::Null, "the server says: {line}");
        }
    }

    /// The log lines up to the next one with this message.
    pub fn log_until(&self, message: &str) -> Vec<Value> {
        let mut lines = Vec::new();
        loop {
            let line = self.log.recv_timeout(DEADLINE).unwrap_or_else(|_| panic!("no log line {message:?}"));
            let is_last = line["message"] == message;
            lines.push(line);
            if is_last {
                return lines;
            }
        }
    }

    pub fn address(&self, protocol: &str) -> SocketAddr {
        self.ready[protocol].as_str().unwrap().parse().unwrap()
    }

    pub fn connect(&self) -> Client<TcpStream> {
        Client::greeted(tcp(self.address("imap")))
    }

    pub fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// Waits until the process has ended; its log ends with it.
    pub fn wait(mut self) -> ExitStatus {
        while self.log.recv_timeout(DEADLINE).is_ok() {}
        self.child.wait().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn write_config(file: &Path, config: &str) {
    std::fs::write(file, format!("{config}\n[log]\nformat = \"json\"\nlevel = \"debug\"\n")).unwrap();
}

pub fn tcp(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    stream
}

/// An IMAP client that knows lines and tags.
pub struct Client<S: Read + Write> {
    pub stream: BufReader<S>,
    tag: u32,
}

impl<S: Read + Write> Client<S> {
    pub fn new(stream: S) -> Self {
        Client { stream: BufReader::new(stream), tag: 0 }
    }

    /// After the greeting.
    pub fn greeted(stream: S) -> Self {
        let mut client = Client::new(stream);
        let greeting = client.line();
        assert!(greeting.starts_with("* OK"), "{greeting}");
        client
    }

    /// The next line, without its end.
    pub fn line(&mut self) -> String {
        let mut line = Vec::new();
        assert!(self.stream.read_until(b'\n', &mut line).unwrap() > 0, "the connection ended");
        String::from_utf8_lossy(&line).trim_end().to_owned()
    }

    pub fn send(&mut self, text: &str) {
        self.stream.get_mut().write_all(text.as_bytes()).unwrap();
        self.stream.get_mut().flush().unwrap();
    }

    /// Sends a command; the lines of its answer, the tagged one last, its tag removed.
    pub fn command(&mut self, command: &str) -> Vec<String> {
        self.tag += 1;
        let tag = format!("t{} ", self.tag);
        self.send(&format!("{tag}{command}\r\n"));
        let mut lines = Vec::new();
        loop {
            let line = self.line();
            match line.strip_prefix(&tag) {
                Some(rest) => {
                    lines.push(rest.to_owned());
                    return lines;
                }
                None => lines.push(line),
            }
        }
    }

    /// A command that must succeed; all lines of its answer in one text.
    pub fn ok(&mut self, command: &str) -> String {
        let lines = self.command(command);
        assert!(lines.last().unwrap().starts_with("OK"), "{command}: {lines:?}");
        lines.join("\n")
    }

    pub fn login(mut self) -> Self {
        self.ok(&format!("LOGIN {USER} \"{PASSWORD}\""));
        self
    }

    pub fn append(&mut self, message: &str) -> String {
        self.ok(&format!("APPEND INBOX {{{}+}}\r\n{message}", message.len()))
    }

    pub fn into_inner(self) -> S {
        assert!(self.stream.buffer().is_empty());
        self.stream.into_inner()
    }
}
