//! A database that is away, slow, full of connections, read-only, or of another version: the client hears of it in time, nothing is
//! acknowledged that was not done, and all goes on by itself when the database does.
#![allow(clippy::unwrap_used)]

extern crate mailyard_store_sql as store_sql;

#[path = "support/mariadb.rs"]
mod mariadb;
#[path = "support/nodes.rs"]
mod nodes;

use std::sync::Arc;
use std::time::Duration;

use mariadb::Server;
use model::{ErrorKind, MailboxId};
use nodes::{Node, append, contents, impatient, inbox, settings};
use store::Account;

/// A server of its own, a node, and its account with one message.
fn one(extra: &[&str]) -> (Server, String, Node, Arc<Account>, MailboxId) {
    let server = Server::begin(extra);
    let url = server.fresh_database();
    let id = {
        let ann = Node::new(settings(&url)).ann();
        let id = inbox(&ann);
        append(&ann, id, "first").unwrap();
        id
    };
    let node = Node::new(impatient(&url));
    let ann = node.ann();
    (server, url, node, ann, id)
}

/// A change is refused with the kind that clients are told to try again for.
fn refused(account: &Account, id: MailboxId) {
    let error = append(account, id, "refused").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io, "{error}");
}

/// Appends as soon as the database is what it was; the UID.
fn append_at_last(account: &Account, id: MailboxId, text: &str) -> u32 {
    loop {
        match append(account, id, text) {
            Ok(uid) => return uid,
            Err(error) => assert_eq!(error.kind(), ErrorKind::Io, "{error}"),
        }
    }
}

/// Tries until the database is what it was, and says what is there then.
fn goes_on(account: &Account, id: MailboxId) {
    let uid = append_at_last(account, id, "second");
    assert_eq!(contents(account, id), [(1, "first".to_owned()), (uid, "second".to_owned())]);
    assert_eq!(account.check().unwrap().findings, []);
}

#[test]
fn away() {
    let (server, _, node, ann, id) = one(&[]);
    server.kill();
    refused(&ann, id);
    refused(&ann, id);
    // What is known can be looked at, what has to be read cannot.
    let view = ann.view(id, false).unwrap();
    assert_eq!(view.exists(), 1);
    let other = node.store.account(&model::AccountName::new("bob").unwrap());
    assert_eq!(other.err().unwrap().kind(), ErrorKind::Io);
    server.start();
    goes_on(&ann, id);
}

#[test]
fn slow() {
    let (server, url, _node, _ann, id) = one(&[]);
    let node = Node::new(store_sql::Settings { timeout: Duration::from_secs(2), ..impatient(&url) });
    let ann = node.ann();
    append_at_last(&ann, id, "second");
    let pid = rustix::process::Pid::from_raw(server.pid() as i32).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
    let stopped = append(&ann, id, "refused");
    rustix::process::kill_process(pid, rustix::process::Signal::CONT).unwrap();
    assert_eq!(stopped.unwrap_err().kind(), ErrorKind::Io);
    append_at_last(&ann, id, "third");
    let mut texts: Vec<String> = contents(&ann, id).into_iter().map(|(_, text)| text).collect();
    // On a machine that is slow itself an append may be done and not be answered in time; then it is there twice.
    texts.dedup();
    assert_eq!(texts, ["first", "second", "third"]);
}

#[test]
fn out_of_connections() {
    let (_server, url, node, ann, id) = one(&["--max-connections=10"]);
    // A fresh node has no connection yet.
    drop((ann, node));
    let name = model::AccountName::new("ann").unwrap();
    let mut held: Vec<mysql::Conn> = Vec::new();
    // Connections that others have given up may still be ending when no more are to be had; then there is room again.
    let refused = loop {
        held.extend(std::iter::repeat_with(|| mysql::Conn::new(url.as_str())).map_while(Result::ok));
        if let Err(error) = Node::new(impatient(&url)).store.account(&name) {
            break error;
        }
    };
    assert_eq!(refused.kind(), ErrorKind::Io, "{refused}");
    drop(held);
    let patient = Node::new(settings(&url));
    goes_on(&patient.store.account(&name).unwrap(), id);
}

#[test]
fn read_only() {
    let (server, _, _node, ann, id) = one(&[]);
    let everybody_out = || {
        let others = "SELECT CONCAT('KILL ', id, ';') FROM information_schema.processlist \
                      WHERE id <> CONNECTION_ID() AND db LIKE 'test%'";
        let ids = server.query("", others);
        server.query("", &ids);
    };
    server.query("", "SET GLOBAL tx_read_only = 1");
    everybody_out();
    refused(&ann, id);
    assert_eq!(contents(&ann, id), [(1, "first".to_owned())], "reading goes on");
    server.query("", "SET GLOBAL tx_read_only = 0");
    everybody_out();
    goes_on(&ann, id);
}

#[test]
fn of_another_version() {
    let (server, url, node, ann, id) = one(&[]);
    drop((ann, node));
    let name = mariadb::database_of(&url);
    let ann = model::AccountName::new("ann").unwrap();
    let node = Node::new(impatient(&url));
    for (change, back, what) in [
        ("INSERT INTO schema_version VALUES (99)", "DELETE FROM schema_version WHERE version = 99", "newer"),
        ("DROP TABLE schema_version", "CREATE TABLE schema_version (version INT UNSIGNED NOT NULL)", "no tables"),
    ] {
        server.query(name, change);
        let error = node.store.account(&ann).err().unwrap();
        assert!(error.kind() == ErrorKind::Io && error.to_string().contains(what), "{error}");
        assert_eq!(node.database.check().unwrap_err().kind(), ErrorKind::Io);
        server.query(name, back);
    }
    let newest = store_sql::Database::schema_version();
    server.query(name, &format!("INSERT INTO schema_version VALUES ({newest})"));
    let node = Node::new(settings(&url));
    goes_on(&node.store.account(&ann).unwrap(), id);
    assert_eq!(node.database.update().unwrap(), newest, "nothing to do");
}
