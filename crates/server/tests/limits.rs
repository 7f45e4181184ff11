//! Crowds, slow clients and silent ones: each meets its limit, and nobody else notices.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;

use common::{Client, DEADLINE, Server, data_with_user, run, run_json, tcp};

/// Whether something has arrived.
fn has_answer(client: &mut Client<std::net::TcpStream>) -> bool {
    let stream = client.stream.get_mut();
    stream.set_nonblocking(true).unwrap();
    let result = stream.peek(&mut [0]);
    stream.set_nonblocking(false).unwrap();
    match result {
        Ok(_) => true,
        Err(error) if error.kind() == ErrorKind::WouldBlock => false,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn a_crowd_that_logs_in_does_not_hold_those_who_are_in() {
    let data = data_with_user();
    let server = Server::start(data.path(), "[login]\nhashes_at_once_max = 1\n", &["imap=127.0.0.1:0"]);
    let mut inside = server.connect().login();
    // Each costs a password hash, one after another.
    let mut crowd: Vec<_> = (0..60).map(|_| server.connect()).collect();
    for (n, client) in crowd.iter_mut().enumerate() {
        client.send(&format!("a LOGIN nobody{n} x\r\n"));
    }
    inside.ok("SELECT INBOX");
    inside.append("Subject: x\r\n\r\n");
    let answered = crowd.iter_mut().map(has_answer).filter(|answered| *answered).count();
    assert!(answered < crowd.len(), "whoever is in waited for everybody who is not");
    for client in &mut crowd {
        assert!(client.line().starts_with("a NO"));
    }
}

#[test]
fn too_many_failures_of_a_user_make_it_wait() {
    let data = data_with_user();
    let config =
        "[login]\nfailures_per_user_max = 2\nremembered_seconds = 0\nwait_seconds_min = 1\nwait_seconds_max = 1\n";
    let server = Server::start(data.path(), config, &["imap=127.0.0.1:0"]);
    let mut client = server.connect();
    for _ in 0..2 {
        assert!(client.command("LOGIN ann wrong").last().unwrap().starts_with("NO"));
    }
    let answer = client.command("LOGIN ann wrong");
    assert!(answer.last().unwrap().starts_with("NO"), "{answer:?}");
    // The refusal came after the wait, so the next attempt is looked at.
    client.login().ok("NOOP");
}

#[test]
fn whoever_does_not_log_in_is_sent_away() {
    let data = data_with_user();
    let server = Server::start(data.path(), "[login]\nseconds_max = 1\n", &["imap=127.0.0.1:0"]);
    let mut client = server.connect();
    assert!(client.line().starts_with("* BYE"));
    let mut rest = Vec::new();
    client.stream.read_to_end(&mut rest).unwrap();
    assert!(rest.is_empty(), "and the connection is closed");
}

#[test]
fn whoever_reads_nothing_is_disconnected() {
    let data = data_with_user();
    let config = "[limits]\nwrite_seconds_max = 1\n";
    let server = Server::start(data.path(), config, &["imap=127.0.0.1:0"]);
    let mut client = server.connect().login();
    client.append(&format!("Subject: large\r\n\r\n{}", "x\r\n".repeat(2_000_000)));
    client.ok("SELECT INBOX");
    client.send(&"a FETCH 1 BODY.PEEK[]\r\n".repeat(8));
    server.wait_for_log("connection lost");
    server.connect().login().ok("NOOP");
}

#[test]
fn a_search_ends_when_its_client_is_gone() {
    let data = data_with_user();
    let server = Server::imap(data.path());
    let mut client = server.connect().login();
    client.ok("SELECT INBOX");
    client.append(&format!("Subject: large\r\n\r\n{}", "some text\r\n".repeat(100_000)));
    for _ in 0..7 {
        client.ok("COPY 1:* INBOX");
    }
    // Gigabytes to look through. What is not read when the socket is closed makes it a reset.
    let keys: String = (0..50).map(|n| format!(" NOT TEXT nothing{n}")).collect();
    client.send(&format!("a NOOP\r\nb SEARCH{keys}\r\n"));
    client.stream.get_ref().peek(&mut [0]).unwrap();
    drop(client);
    let log = server.log_until("connection lost");
    assert!(!log.iter().any(|line| line["command"] == "SEARCH"), "it was searched to the end: {log:?}");
    server.connect().login().ok("NOOP");
}

#[test]
fn a_handshake_that_never_comes_ends() {
    let data = data_with_user();
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    std::fs::write(data.path().join("cert.pem"), made.cert.pem()).unwrap();
    std::fs::write(data.path().join("key.pem"), made.signing_key.serialize_pem()).unwrap();
    let config = "[tls]\ncertificate_file = \"cert.pem\"\nkey_file = \"key.pem\"\nhandshake_seconds = 1\n";
    let server = Server::start(data.path(), config, &["imaps=127.0.0.1:0"]);
    let mut silent = tcp(server.address("imaps"));
    silent.set_read_timeout(Some(DEADLINE)).unwrap();
    assert_eq!(silent.read(&mut [0]).unwrap(), 0);
}

#[test]
fn the_control_socket_works_in_a_deep_directory() {
    let top = tempfile::tempdir().unwrap();
    let deep = top.path().join("a-name-that-is-long-enough".repeat(6)).join("data");
    let server = Server::start_in_new(&deep);
    assert_eq!(run_json(&deep, &["user", "list"])["users"].as_array().unwrap().len(), 0);
    drop(server);
}

#[test]
fn a_request_to_the_control_socket_is_so_long_and_no_longer() {
    let data = data_with_user();
    let _server = Server::imap(data.path());
    let answer = |bytes: usize| {
        let mut stream = UnixStream::connect(data.path().join("control.sock")).unwrap();
        let mut request = br#"{"command":"user-list"}"#.to_vec();
        request.resize(bytes - 1, b' ');
        request.push(b'\n');
        stream.write_all(&request).unwrap();
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).unwrap();
        line
    };
    assert!(answer(65_536).starts_with(r#"{"done":"#));
    assert!(answer(65_537).starts_with(r#"{"failed":"the request is cut, or longer"#));
    // And the command says so.
    let paths: Vec<String> = (0..2000).map(|n| format!("/mail/a-mailbox-with-a-name-{n}")).collect();
    let mut arguments = vec!["import", "--user", "ann"];
    arguments.extend(paths.iter().map(String::as_str));
    let output = run(data.path(), &arguments);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("octets that the server takes at once"));
}

#[test]
fn a_request_for_metrics_is_so_long_and_no_longer() {
    let data = data_with_user();
    let server = Server::start(data.path(), "", &["imap=127.0.0.1:0", "metrics=127.0.0.1:0"]);
    let answered = |bytes: usize| {
        let mut stream = tcp(server.address("metrics"));
        let (start, end) = ("GET /metrics HTTP/1.1\r\nX: ", "\r\n\r\n");
        let request = format!("{start}{}{end}", "x".repeat(bytes - start.len() - end.len()));
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        // What the server has not read makes its closing a reset.
        let _ = stream.read_to_end(&mut answer);
        answer.starts_with(b"HTTP/1.1 200 OK\r\n")
    };
    assert!(answered(8192));
    assert!(!answered(8193));
}

#[test]
fn so_many_requests_for_metrics_at_once_and_silent_ones_end() {
    const AT_ONCE: usize = 16;
    let data = data_with_user();
    let server = Server::start(data.path(), "", &["imap=127.0.0.1:0", "metrics=127.0.0.1:0"]);
    let connect = || tcp(server.address("metrics"));
    let ask = |stream: &mut std::net::TcpStream| stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
    let answer = |stream: &mut std::net::TcpStream| {
        let mut text = String::new();
        stream.read_to_string(&mut text).map(|_| text)
    };
    // All but one place are held by those who say nothing.
    let mut silent: Vec<_> = (1..AT_ONCE).map(|_| connect()).collect();
    let mut last_place = connect();
    ask(&mut last_place);
    assert!(answer(&mut last_place).unwrap().starts_with("HTTP/1.1 200 OK"));
    // Now all of them.
    silent.push(connect());
    let mut waiting = connect();
    ask(&mut waiting);
    waiting.set_read_timeout(Some(std::time::Duration::from_millis(100))).unwrap();
    let error = waiting.read(&mut [0]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WouldBlock, "it was answered although all places are taken");
    // The silent ones have ten seconds, and then there is room.
    waiting.set_read_timeout(Some(DEADLINE)).unwrap();
    assert!(answer(&mut waiting).unwrap().starts_with("HTTP/1.1 200 OK"));
    assert_eq!(answer(&mut silent[0]).unwrap(), "");
}
