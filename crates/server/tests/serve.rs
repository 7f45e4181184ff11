//! The real program over TCP: serving, signals, limits, metrics.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::io::{Read, Write};

use common::{Server, data_with_user, run, run_with_password, tcp, write_config};
use rustix::process::Signal;

const MESSAGE: &str = "Subject: hello\r\n\r\nthere\r\n";

#[test]
fn serves_without_a_config_file_and_keeps_what_it_acknowledged() {
    let data = data_with_user();
    let server = Server::imap(data.path());
    let mut client = server.connect().login();
    assert!(client.append(MESSAGE).contains("APPENDUID"));
    drop(server); // SIGKILL
    let server = Server::imap(data.path());
    let mut client = server.connect().login();
    assert!(client.ok("SELECT INBOX").contains("* 1 EXISTS"));
    assert!(client.ok("FETCH 1 BODY.PEEK[]").contains("Subject: hello"));
    client.ok("LOGOUT");
}

#[test]
fn sigterm_says_bye_and_ends() {
    let data = data_with_user();
    let server = Server::imap(data.path());
    let mut idle = server.connect().login();
    idle.ok("SELECT INBOX");
    idle.send("a IDLE\r\n");
    assert!(idle.line().starts_with('+'));
    let mut fresh = server.connect();
    server.signal(Signal::TERM);
    assert!(idle.line().starts_with("* BYE"));
    assert!(fresh.line().starts_with("* BYE"));
    assert!(server.wait().success());
    assert!(!data.path().join("control.sock").exists());
    // The store was closed: somebody else can have it.
    assert!(run(data.path(), &["user", "list"]).status.success());
}

#[test]
fn idle_is_told_at_once_what_others_do() {
    let data = data_with_user();
    let server = Server::imap(data.path());
    let mut idle = server.connect().login();
    idle.ok("SELECT INBOX");
    idle.send("a IDLE\r\n");
    assert!(idle.line().starts_with('+'));
    let mut other = server.connect().login();
    other.append(MESSAGE);
    assert_eq!(idle.line(), "* 1 EXISTS");
    assert_eq!(idle.line(), "* 1 RECENT");
    idle.send("DONE\r\n");
    assert!(idle.line().starts_with("a OK"));
}

#[test]
fn sighup_takes_a_new_configuration_and_keeps_the_old_one_when_it_is_wrong() {
    let data = data_with_user();
    let server = Server::imap(data.path());
    write_config(&server.config_file, "[server]\ngreeting = \"Ahoy\"\n");
    server.signal(Signal::HUP);
    server.wait_for_log("reloaded");
    let greeting = common::Client::new(tcp(server.address("imap"))).line();
    assert!(greeting.ends_with("Ahoy"), "{greeting}");

    write_config(&server.config_file, "[server]\ngreting = \"x\"\n");
    server.signal(Signal::HUP);
    let line = server.wait_for_log("reload failed; the old configuration stays");
    assert!(line["error"].as_str().unwrap().contains("did you mean greeting?"), "{line}");
    let greeting = common::Client::new(tcp(server.address("imap"))).line();
    assert!(greeting.ends_with("Ahoy"), "{greeting}");
}

#[test]
fn one_connection_too_many_is_told_so() {
    let data = data_with_user();
    let config = "[limits]\nconnections_max = 2\nconnections_per_user_max = 1\n";
    let server = Server::start(data.path(), config, &["imap=127.0.0.1:0"]);
    let first = server.connect().login();
    let mut second = server.connect();
    let third = common::Client::new(tcp(server.address("imap"))).line();
    assert!(third.starts_with("* BYE"), "{third}");
    let answer = second.command(&format!("LOGIN {} \"{}\"", common::USER, common::PASSWORD));
    assert!(answer.last().unwrap().starts_with("NO"), "{answer:?}");
    drop(first);
    server.wait_for_log("closed");
    second.login().ok("NOOP");
}

#[test]
fn wrong_passwords_fail_and_changed_ones_hold_at_once() {
    let data = data_with_user();
    let server = Server::imap(data.path());
    let mut client = server.connect();
    for (user, password) in [("ann", "wrong"), ("nobody", "wrong"), ("../ann", "x")] {
        let answer = client.command(&format!("LOGIN {user} {password}"));
        assert_eq!(answer, ["NO [AUTHENTICATIONFAILED] Wrong user or password"], "{user}");
    }
    let client = client.login();
    drop(client);
    let output = run_with_password(data.path(), &["user", "passwd", "ann"], "new one");
    assert!(output.status.success(), "{output:?}");
    let mut client = server.connect();
    let answer = client.command(&format!("LOGIN ann \"{}\"", common::PASSWORD));
    assert!(answer.last().unwrap().starts_with("NO"), "{answer:?}");
    client.ok("LOGIN ANN \"new one\"");
}

#[test]
fn metrics_are_served_and_count() {
    let data = data_with_user();
    let server = Server::start(data.path(), "", &["imap=127.0.0.1:0", "metrics=127.0.0.1:0"]);
    let mut client = server.connect().login();
    client.append(MESSAGE);
    let mut stream = tcp(server.address("metrics"));
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    assert!(text.starts_with("HTTP/1.1 200 OK"), "{text}");
    for line in [
        "mailyard_connections_open{listener=\"imap\"} 1",
        "mailyard_logins_total{result=\"ok\"} 1",
        "mailyard_commands_total{command=\"APPEND\",result=\"ok\"} 1",
        "mailyard_appends_total 1",
        "mailyard_log_syncs_total 1",
        "mailyard_log_commits_total 1",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
    }
}

#[test]
fn a_large_answer_to_a_slow_reader_does_not_hold_the_others() {
    let data = data_with_user();
    let server = Server::imap(data.path());
    let mut slow = server.connect().login();
    let body = "x".repeat(76) + "\r\n";
    let message = format!("Subject: large\r\n\r\n{}", body.repeat(100_000));
    slow.append(&message);
    slow.ok("SELECT INBOX");
    // Far more than the sockets hold, and nobody reads it.
    slow.send(&"a FETCH 1 BODY.PEEK[]\r\n".repeat(8));
    let mut other = server.connect().login();
    assert!(other.ok("SELECT INBOX").contains("* 1 EXISTS"));
    // And it is all there once somebody reads.
    for _ in 0..8 {
        let line = slow.line();
        assert!(line.ends_with(&format!("BODY[] {{{}}}", message.len())), "{line}");
        let mut bytes = vec![0; message.len()];
        slow.stream.read_exact(&mut bytes).unwrap();
        assert!(bytes == message.as_bytes());
        assert_eq!(slow.line(), ")");
        assert!(slow.line().starts_with("a OK"));
    }
}

#[test]
fn a_second_server_is_refused() {
    let data = data_with_user();
    let _server = Server::imap(data.path());
    let output = run(data.path(), &["serve", "--listen", "imap=127.0.0.1:0"]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains("is a server running?"), "{text}");
}
