//! Hints over NATS: other nodes hear of changes at once, and without them with their next look.
#![allow(clippy::unwrap_used)]

extern crate mailyard_store_sql as store_sql;

#[path = "support/mariadb.rs"]
mod mariadb;
#[path = "support/nodes.rs"]
mod nodes;

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use nodes::{Node, append, contents, inbox, settings};
use store_sql::{Hints, Settings};

/// How long a server may take to begin, and a hint to come on a machine that does much else.
const PATIENCE: Duration = Duration::from_secs(120);

struct Nats {
    port: u16,
    process: Child,
}

impl Nats {
    fn begin(port: u16) -> Nats {
        let mut command = Command::new("nats-server");
        command.args(["--addr", "127.0.0.1", "--port", &port.to_string()]);
        let process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let begun = std::time::Instant::now();
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            assert!(begun.elapsed() < PATIENCE, "nats-server does not begin");
            std::thread::park_timeout(Duration::from_millis(20));
        }
        Nats { port, process }
    }

    fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }
}

impl Drop for Nats {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Outside of the range from which the system takes ports for connections.
fn free_port() -> u16 {
    let first = 12_000 + (std::process::id() % 5_000) as u16;
    (first..).find(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok()).unwrap()
}

#[test]
fn a_hint_is_heard_at_once_and_a_lost_one_costs_only_time() {
    let nats = Nats::begin(free_port());
    let url = mariadb::fresh_database();
    // Without a hint nobody would look before the test is long over.
    let never = Duration::from_secs(100_000);
    let node = |poll| {
        let hints = Some(Hints::connect(&[nats.url()]).unwrap());
        Node::new(Settings { poll, hints, ..settings(&url) })
    };
    let (a, b) = (node(never), node(never));
    let (on_a, on_b) = (a.ann(), b.ann());
    let id = inbox(&on_a);
    let (told, news) = mpsc::channel();
    let _guard = on_b.listen(Arc::new(move || {
        let _ = told.send(());
    }));
    // Subscriptions are made in the background: what was said before is not heard.
    let mut count = 0;
    let mut say_until_heard = || {
        let begun = std::time::Instant::now();
        loop {
            count += 1;
            append(&on_a, id, &format!("m{count}")).unwrap();
            if news.recv_timeout(Duration::from_millis(200)).is_ok() {
                break;
            }
            assert!(begun.elapsed() < PATIENCE, "no hint is heard");
        }
    };
    say_until_heard();
    // Who wants an account that another node has is let at once, too.
    append(&on_b, id, "from b").unwrap();
    // The server goes and comes back: hints are heard again.
    let port = nats.port;
    drop(nats);
    append(&on_b, id, "without").unwrap();
    let _nats = Nats::begin(port);
    while news.try_recv().is_ok() {}
    say_until_heard();
    // Looking says what all have.
    assert_eq!(contents(&on_b, id), contents(&on_a, id));
}
