//! The command line, on the store itself and through a running server.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use common::{Client, Server, data_with_user, mailyard, run, run_json, run_with_password, tcp};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

#[test]
fn users_come_and_go_with_and_without_a_server() {
    let data = data_with_user();
    let names = || -> Vec<String> {
        let users = run_json(data.path(), &["user", "list"]);
        users["users"].as_array().unwrap().iter().map(|user| user["user"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(), ["ann"]);
    let add = |name: &str| run_with_password(data.path(), &["user", "add", name], "x");
    assert!(add("bob").status.success());
    let server = Server::imap(data.path());
    assert!(add("carl").status.success(), "through the server");
    assert_eq!(names(), ["ann", "bob", "carl"]);
    server.connect().ok("LOGIN carl x");
    let output = add("carl");
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("exists"), "{output:?}");

    run_json(data.path(), &["user", "remove", "bob", "--delete-mail"]);
    assert_eq!(names(), ["ann", "carl"]);
    run_json(data.path(), &["user", "remove", "carl"]);
    assert_eq!(names(), ["ann"]);
    let answer = server.connect().command("LOGIN carl x");
    assert!(answer.last().unwrap().starts_with("NO"), "{answer:?}");
    let output = add("carl");
    assert!(String::from_utf8_lossy(&output.stdout).contains("had mail: yes"), "the mail stayed: {output:?}");
    assert_eq!(run(data.path(), &["user", "remove", "nobody"]).status.code(), Some(1));
}

#[test]
fn two_commands_at_once_are_told_apart_from_a_server() {
    let data = data_with_user();
    // Somebody holds the store, and no server answers: the lock is all that there is.
    let env = platform::Env::real();
    let _lock = env.disk.lock(&data.path().join("lock")).unwrap();
    let output = run(data.path(), &["user", "list"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("another mailyard command"), "{output:?}");
}

#[test]
fn mistakes_are_told() {
    let data = tempfile::tempdir().unwrap();
    let config = data.path().join("c.toml");
    std::fs::write(&config, "[listen]\nimapp = []\n").unwrap();
    let config = config.to_str().unwrap();
    let told = |arguments: &[&str], code: i32, text: &str| {
        let output = mailyard().args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}");
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(stderr.contains(text), "{arguments:?}: {stderr}");
    };
    told(&["serve"], 1, "--data DIR");
    told(&["serve", "--data", data.path().to_str().unwrap()], 1, "--listen imap=127.0.0.1:1143");
    told(&["serve", "--listen", "pop=127.0.0.1:1"], 2, "is none of imap");
    told(&["frobnicate"], 2, "frobnicate");
    told(&["config", "--check", config], 1, "c.toml:2: unknown key listen.imapp; did you mean imap");
    told(&["serve", "--config", config, "--data", "x"], 1, "unknown key");
    told(&["user", "add", "x", "--data", data.path().to_str().unwrap()], 1, "--password-stdin");
}

#[test]
fn the_sample_configuration_is_accepted() {
    let directory = tempfile::tempdir().unwrap();
    let sample = mailyard().args(["config", "--defaults"]).output().unwrap();
    let file = directory.path().join("sample.toml");
    std::fs::write(&file, sample.stdout).unwrap();
    let output = mailyard().arg("config").arg("--check").arg(&file).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn the_demo_says_where_it_is_and_cleans_up() {
    let mut child = mailyard().args(["demo", "--json"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let told: Value = serde_json::from_str(&line).unwrap();
    let host = told["imap"]["host"].as_str().unwrap();
    let port = told["imap"]["port"].as_u64().unwrap();
    let mut client = Client::greeted(tcp(format!("{host}:{port}").parse().unwrap()));
    let [user, password, data] = ["user", "password", "data"].map(|key| told[key].as_str().unwrap());
    client.ok(&format!("LOGIN {user} {password}"));
    let list = client.ok("LIST \"\" *");
    for special_use in ["\\Drafts", "\\Sent", "\\Trash", "\\Junk", "\\Archive"] {
        assert!(list.contains(special_use), "{list}");
    }
    assert!(client.ok("SELECT INBOX").contains("EXISTS"));
    client.ok("UID FETCH 1:* (FLAGS ENVELOPE BODYSTRUCTURE)");
    assert!(std::path::Path::new(data).exists());
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    assert!(child.wait().unwrap().success());
    assert!(!std::path::Path::new(data).exists());
}

/// Two messages as an mbox.
const MBOX: &str = "From a@example.org Mon Jan  5 10:00:00 2026\nSubject: one\n\n>From here\n\n\
                    From b@example.org Mon Jan  5 11:00:00 2026\nSubject: two\nStatus: RO\n\ntext\n";

#[test]
fn mail_goes_in_and_comes_out_with_and_without_a_server() {
    let data = data_with_user();
    let files = tempfile::tempdir().unwrap();
    let mbox = files.path().join("Post.mbox");
    std::fs::write(&mbox, MBOX).unwrap();
    let import = ["import", "--user", "ann", mbox.to_str().unwrap()];
    let first = run_json(data.path(), &import);
    assert_eq!((&first["imported"], &first["mailboxes"][0]), (&2.into(), &"Post".into()));

    let server = Server::imap(data.path());
    let again = run_json(data.path(), &import);
    assert_eq!(again["imported"], 0, "through the server");
    let mut client = server.connect().login();
    assert!(client.ok("SELECT Post").contains("* 2 EXISTS"));
    assert!(client.ok("FETCH 1 BODY.PEEK[TEXT]").contains("\nFrom here"));
    assert!(client.ok("FETCH 2 FLAGS").contains("\\Seen"));

    let out = files.path().join("out");
    let export = |format: &str| {
        let to = out.join(format);
        run_json(data.path(), &["export", "--user", "ann", "--format", format, to.to_str().unwrap()]);
        to
    };
    let text = std::fs::read_to_string(export("mbox").join("Post.mbox")).unwrap();
    assert!(text.contains("Subject: one") && text.contains("\n>From here"), "{text}");
    drop(server);
    assert_eq!(std::fs::read_dir(export("maildir").join(".Post/cur")).unwrap().count(), 2);
    let output = run(data.path(), &["export", "--user", "ann", out.to_str().unwrap()]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("is there already"), "{output:?}");
}

#[test]
fn what_was_expunged_comes_back_and_everything_is_checked() {
    let data = data_with_user();
    let server = Server::imap(data.path());
    let mut client = server.connect().login();
    for n in 0..3 {
        client.append(&format!("Subject: number {n}\r\n\r\ntext\r\n"));
    }
    client.ok("SELECT INBOX");
    client.ok("STORE 1:2 +FLAGS.SILENT (\\Deleted)");
    client.ok("EXPUNGE");
    let restored = run_json(data.path(), &["restore", "--user", "ann", "--mailbox", "INBOX", "--since", "1h"]);
    assert_eq!(restored["restored"], 2);
    assert!(client.ok("NOOP").contains("* 3 EXISTS"));

    let stats = run_json(data.path(), &["stats", "--user", "ann"]);
    assert_eq!((&stats["accounts"][0]["user"], &stats["accounts"][0]["messages"]), (&"ann".into(), &3.into()));
    let checked = run_json(data.path(), &["check"]);
    assert_eq!((&checked["damaged"], &checked["messages"]), (&0.into(), &3.into()));
    let output = run(data.path(), &["check", "--repair"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("ann: not repaired"), "a session is there: {output:?}");
    drop(client);
    server.signal(Signal::TERM);
    server.wait();
    assert_eq!(run_json(data.path(), &["check", "--repair"])["repaired"], 1);
    assert_eq!(run(data.path(), &["stats", "--user", "bob"]).status.code(), Some(1));
}

#[test]
fn damage_is_found_and_the_exit_code_says_so() {
    let data = data_with_user();
    let server = Server::imap(data.path());
    let mut client = server.connect().login();
    let message = format!("Subject: x\r\n\r\n{}", "body \r\n".repeat(1000));
    client.append(&message);
    // Damage of the very last record would look like a write that a power cut interrupted.
    client.append("Subject: last\r\n\r\n");
    drop(client);
    server.signal(Signal::TERM);
    server.wait();
    let log = data.path().join("accounts/ann/log");
    let files = std::fs::read_dir(log).unwrap().map(|entry| entry.unwrap().path());
    let file = files.max_by_key(|path| path.metadata().unwrap().len()).unwrap();
    let mut bytes = std::fs::read(&file).unwrap();
    let at = bytes.windows(4).position(|four| four == b"body").unwrap();
    *bytes.get_mut(at).unwrap() ^= 1;
    std::fs::write(&file, bytes).unwrap();
    let output = run(data.path(), &["check"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    assert!(text.contains(file.file_name().unwrap().to_str().unwrap()), "{text}");
}

#[test]
fn messages_are_found_on_the_command_line() {
    let data = data_with_user();
    let server = Server::imap(data.path());
    let mut client = server.connect().login();
    client.append(
        "From: Bob <bob@x>\r\nSubject: budget 2026\r\nDate: Thu, 1 Jan 2026 00:00:00 +0000\r\n\r\nlunch at noon\r\n",
    );
    client.append("From: eve@x\r\nSubject: other\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\nbudget 2026\r\n--b\r\nContent-Disposition: attachment\r\n\r\nx\r\n--b--\r\n");
    client.ok("SELECT INBOX");
    client.ok("STORE 2 +FLAGS.SILENT (\\Seen)");
    let uids = |arguments: &[&str]| -> Vec<u64> {
        let found = run_json(data.path(), &[&["search", "--user", "ann", "--verify"], arguments].concat());
        assert_eq!((&found["damaged"], &found["verified"]), (&0.into(), &true.into()));
        let messages = found["messages"].as_array().unwrap();
        assert_eq!(found["found"], messages.len());
        messages.iter().map(|message| message["uid"].as_u64().unwrap()).collect()
    };
    let everything = |what: &str| {
        assert_eq!(uids(&["budget 2026"]), [1, 2], "{what}");
        assert_eq!(uids(&["subject:budget 2026", "from:bob"]), [1]);
        assert_eq!(uids(&["BUDGET -subject:budget"]), [2]);
        assert_eq!(uids(&["is:seen"]), [2]);
        assert_eq!(uids(&["has:attachment"]), [2]);
        assert_eq!(uids(&["--mailbox", "INBOX", "--", "-has:attachment"]), [1]);
        assert_eq!(uids(&["after:2000-01-01", "smaller:1M", "header:date=2026"]), [1]);
        assert_eq!(uids(&["nowhere"]), [0; 0]);
        assert_eq!(uids(&["--imap", "OR FROM bob NOT TEXT \"budget 2026\""]), [1]);
        assert_eq!(uids(&["--imap", "UNSEEN", "BODY", "LUNCH", "UID", "1:5"]), [1]);
    };
    everything("through the server");
    drop(client);
    server.signal(Signal::TERM);
    server.wait();
    everything("without it");
    let shown = run(data.path(), &["search", "--user", "ann", "lunch"]);
    assert!(String::from_utf8_lossy(&shown.stdout).contains("Bob <bob@x>"), "{shown:?}");
    let output = run(data.path(), &["search", "--user", "ann", "--imap", "FORM ann"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("search keys: expected"), "{output:?}");
    let output = run(data.path(), &["search", "--user", "ann", "form:ann"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("is no key"), "{output:?}");
}
