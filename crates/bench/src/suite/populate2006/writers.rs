//! The connections that append: everything is put together before, then written and answered.

use crate::error::{Error, Result};
use crate::wire::{Address, Capabilities, Connection, TAG};
use std::sync::Barrier;
use std::time::{Duration, Instant};

/// How messages are handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// One APPEND a message; the server asks for the literal (RFC 9051 §4.3, synchronizing literal).
    Asked,
    /// One APPEND a message with a literal that is not waited for (RFC 7888).
    NotAsked,
    /// All of a connection's messages in one command (RFC 3502).
    Multi,
}

impl Form {
    /// The capability that the server lacks for this form, if it does.
    pub fn missing(self, offered: &Capabilities) -> Option<&'static str> {
        match self {
            Form::Asked => None,
            // RFC 7888 §4, §5: LITERAL- is the same for literals of up to 4096 bytes only.
            Form::NotAsked => (!offered.has("LITERAL+")).then_some("LITERAL+"),
            Form::Multi if !offered.multiappend() => Some("MULTIAPPEND"),
            Form::Multi => (!offered.has("LITERAL+")).then_some("LITERAL+ beside MULTIAPPEND"),
        }
    }
}

/// What one connection sends: commands, each in one part or, where the server asks for the literal, two.
pub struct Job {
    commands: Vec<Vec<Vec<u8>>>,
}

impl Job {
    /// Puts the commands together; `mailbox` is quoted as on the wire.
    pub fn new(form: Form, mailbox: &str, messages: &[&[u8]]) -> Job {
        let head = format!("{TAG} APPEND {mailbox}");
        let commands = match form {
            Form::Asked => messages
                .iter()
                .map(|message| {
                    let head = format!("{head} {{{}}}\r\n", message.len()).into_bytes();
                    vec![head, [message, &b"\r\n"[..]].concat()]
                })
                .collect(),
            Form::NotAsked => messages.iter().map(|message| vec![not_asked(&head, &[message])]).collect(),
            Form::Multi if messages.is_empty() => Vec::new(),
            Form::Multi => vec![vec![not_asked(&head, messages)]],
        };
        Job { commands }
    }
}

fn not_asked(head: &str, messages: &[&[u8]]) -> Vec<u8> {
    let mut command = head.as_bytes().to_vec();
    for message in messages {
        command.extend_from_slice(format!(" {{{}+}}\r\n", message.len()).as_bytes());
        command.extend_from_slice(message);
    }
    command.extend_from_slice(b"\r\n");
    command
}

/// All writers' work, done.
pub struct Done {
    /// From the moment all were ready to the last answer.
    pub took: Duration,
    /// Of every command, sorted.
    pub latencies: Vec<Duration>,
    /// Still open: a caller may look at the server's processes before it closes them.
    pub connections: Vec<Connection>,
}

/// Logs all connections in.
pub fn connect(address: &Address, jobs: Vec<Job>) -> Result<Vec<(Connection, Job)>> {
    jobs.into_iter().map(|job| Ok((Connection::login(address)?, job))).collect()
}

/// Lets all connections work at once.
pub fn run(writers: Vec<(Connection, Job)>) -> Result<Done> {
    let ready = Barrier::new(writers.len() + 1);
    std::thread::scope(|scope| {
        let threads: Vec<_> = writers
            .into_iter()
            .map(|(connection, job)| {
                let ready = &ready;
                scope.spawn(move || {
                    ready.wait();
                    work(connection, &job)
                })
            })
            .collect();
        ready.wait();
        let began = Instant::now();
        let ended: Vec<Result<(Connection, Vec<Duration>)>> = threads
            .into_iter()
            .map(|thread| thread.join().map_err(|_| Error::new("a writing thread failed"))?)
            .collect();
        let took = began.elapsed();
        let mut done = Done { took, latencies: Vec::new(), connections: Vec::new() };
        for one in ended {
            let (connection, latencies) = one?;
            done.connections.push(connection);
            done.latencies.extend(latencies);
        }
        done.latencies.sort_unstable();
        Ok(done)
    })
}

fn work(mut connection: Connection, job: &Job) -> Result<(Connection, Vec<Duration>)> {
    let mut latencies = Vec::with_capacity(job.commands.len());
    for command in &job.commands {
        latencies.push(connection.send_in_parts(command)?.took);
    }
    Ok((connection, latencies))
}

#[cfg(test)]
mod tests {
    use super::{Form, Job};
    use crate::wire::Capabilities;

    #[test]
    fn forms_on_the_wire() {
        let parts = |form| Job::new(form, "\"bench-1\"", &[b"ab", b"c"]).commands;
        let bytes = |text: &str| text.as_bytes().to_vec();
        let asked = [
            vec![bytes("B APPEND \"bench-1\" {2}\r\n"), bytes("ab\r\n")],
            vec![bytes("B APPEND \"bench-1\" {1}\r\n"), bytes("c\r\n")],
        ];
        assert_eq!(parts(Form::Asked), asked);
        assert_eq!(parts(Form::NotAsked)[1], [bytes("B APPEND \"bench-1\" {1+}\r\nc\r\n")]);
        assert_eq!(parts(Form::Multi), [[bytes("B APPEND \"bench-1\" {2+}\r\nab {1+}\r\nc\r\n")]]);
        assert!(Job::new(Form::Multi, "\"bench-1\"", &[]).commands.is_empty());
    }

    #[test]
    fn only_what_is_offered() {
        let offers = |names: &[&str]| Capabilities::of(&[format!("* CAPABILITY {}", names.join(" "))]);
        assert_eq!(Form::Asked.missing(&offers(&[])), None);
        assert_eq!(Form::NotAsked.missing(&offers(&["LITERAL-"])), Some("LITERAL+"));
        assert_eq!(Form::NotAsked.missing(&offers(&["literal+"])), None);
        assert_eq!(Form::Multi.missing(&offers(&["LITERAL+"])), Some("MULTIAPPEND"));
        assert_eq!(Form::Multi.missing(&offers(&["LITERAL+", "MULTIAPPEND"])), None);
    }
}
