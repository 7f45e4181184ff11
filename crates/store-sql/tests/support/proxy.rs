//! Stands between a node and the database, and can lose answers and keep new connections waiting.

#![allow(dead_code, clippy::unwrap_used, reason = "each test file uses a part")]

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex};

pub struct Proxy {
    dir: tempfile::TempDir,
    losing: Arc<AtomicU32>,
    gate: Arc<Gate>,
}

/// Whether new connections are let through.
#[derive(Default)]
struct Gate {
    is_shut: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    fn pass(&self) {
        let is_shut = self.is_shut.lock().unwrap();
        drop(self.opened.wait_while(is_shut, |is_shut| *is_shut).unwrap());
    }
}

impl Proxy {
    /// In front of a database's socket.
    pub fn before(socket: PathBuf) -> Proxy {
        let dir = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(dir.path().join("socket")).unwrap();
        let losing = Arc::<AtomicU32>::default();
        let counter = Arc::clone(&losing);
        let gate = Arc::<Gate>::default();
        let passed = Arc::clone(&gate);
        std::thread::spawn(move || {
            for client in listener.incoming() {
                passed.pass();
                let (client, counter) = (client.unwrap(), Arc::clone(&counter));
                let server = UnixStream::connect(&socket).unwrap();
                let (to_client, from_server) = (client.try_clone().unwrap(), server.try_clone().unwrap());
                std::thread::spawn(move || answers(from_server, to_client));
                std::thread::spawn(move || questions(client, server, &counter));
            }
        });
        Proxy { dir, losing, gate }
    }

    pub fn socket(&self) -> PathBuf {
        self.dir.path().join("socket")
    }

    /// The answers to the next so many COMMITs are lost, and their connections with them; the database does what they say.
    pub fn lose_commits(&self, count: u32) {
        self.losing.store(count, Ordering::Relaxed);
    }

    /// New connections wait, or do no longer.
    pub fn shut(&self, is_shut: bool) {
        *self.gate.is_shut.lock().unwrap() = is_shut;
        self.gate.opened.notify_all();
    }

    /// How many are still to be lost.
    pub fn left(&self) -> u32 {
        self.losing.load(Ordering::Relaxed)
    }
}

fn answers(mut from: UnixStream, mut to: UnixStream) {
    let _ = std::io::copy(&mut from, &mut to);
    let _ = to.shutdown(Shutdown::Both);
}

fn questions(mut client: UnixStream, mut server: UnixStream, losing: &AtomicU32) {
    let mut buffer = vec![0; 1 << 16];
    while let Ok(len @ 1..) = client.read(&mut buffer) {
        let piece = buffer.get(..len).unwrap();
        let less = |left: u32| left.checked_sub(1);
        // COM_QUERY, alone or as the last of several statements.
        let is_commit = piece.ends_with(b"\x03COMMIT") || piece.ends_with(b";COMMIT");
        if is_commit && losing.try_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok() {
            let _ = client.shutdown(Shutdown::Both);
            let _ = server.write_all(piece);
            // Whoever reads the answers cannot hand it on any more.
            break;
        }
        if server.write_all(piece).is_err() {
            break;
        }
    }
    // The database ends what was begun, as after a broken network.
    let _ = server.shutdown(Shutdown::Write);
}
