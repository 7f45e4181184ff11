//! The real program with mail in mbox files.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::io::Write;

use common::{PASSWORD, Server, USER, run_with_password};

/// More than there are steps at once on any machine with fewer than 15 processors.
const WAITING: usize = 30;

#[test]
fn who_waits_for_a_locked_file_keeps_nobody_else_waiting() {
    let data = tempfile::tempdir().unwrap();
    let mail = data.path().join("mail");
    std::fs::create_dir(&mail).unwrap();
    let (inbox, root) = (mail.join("inbox"), mail.join("root"));
    std::fs::write(&inbox, "From a Thu Jan  1 00:00:00 1970\nSubject: hello\n\nthere\n\n").unwrap();
    let (inbox_text, root_text) = (inbox.to_str().unwrap(), root.to_str().unwrap());
    let add = ["user", "add", USER, "--format", "mbox", "--inbox", inbox_text, "--mail-root", root_text];
    let output = run_with_password(data.path(), &add, PASSWORD);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let config =
        "[mbox]\nread_locks = [\"dotlock\"]\nlock_seconds_max = 600\n[limits]\nconnections_per_user_max = 100\n";
    let server = Server::start(data.path(), config, &["imap=127.0.0.1:0"]);
    // What other programs add has to be read before anybody may see the mailbox.
    let mut other = server.connect().login();
    assert!(other.ok("SELECT INBOX").contains("* 1 EXISTS"));
    other.ok("UNSELECT");
    let mail_that_comes = "From b Thu Jan  1 00:00:00 1970\nSubject: again\n\nthere\n\n";
    std::fs::OpenOptions::new().append(true).open(&inbox).unwrap().write_all(mail_that_comes.as_bytes()).unwrap();
    let lock = mail.join("inbox.lock");
    std::fs::write(&lock, "").unwrap();
    let mut waiting: Vec<_> = (0..WAITING).map(|_| server.connect().login()).collect();
    for client in &mut waiting {
        client.send("a SELECT INBOX\r\n");
    }
    for _ in 0..WAITING {
        other.ok("NOOP");
    }
    other.ok("CREATE work");
    assert!(other.ok("SELECT work").contains("* 0 EXISTS"));
    std::fs::remove_file(&lock).unwrap();
    for client in &mut waiting {
        let mut answer = String::new();
        while !answer.contains("\na ") {
            answer += &format!("\n{}", client.line());
        }
        assert!(answer.contains("* 2 EXISTS") && answer.contains("\na OK"), "{answer}");
    }
}
