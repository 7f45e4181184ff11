//! The statements of `docs/sql.md`, asked as people would.
#![allow(clippy::unwrap_used)]

extern crate mailyard_store_sql as store_sql;

#[path = "support/mariadb.rs"]
mod mariadb;
#[path = "support/nodes.rs"]
mod nodes;

use model::{Keyword, UidSet};
use nodes::{Node, append, inbox, settings};
use store::{FlagNames, StoreFlags, StoreMode};

/// The statements of the page's SQL blocks, by the line before each block.
fn statements() -> Vec<(String, String)> {
    let page = include_str!("../../../docs/sql.md");
    let mut found = Vec::new();
    for (before, block) in page.split("```sql\n").zip(page.split("```sql\n").skip(1)) {
        let title = before.trim_end().lines().next_back().unwrap_or_default().to_owned();
        found.push((title, block.split("```").next().unwrap().to_owned()));
    }
    found
}

#[test]
fn the_page_is_right() {
    let url = mariadb::fresh_database();
    let name = mariadb::database_of(&url);
    let node = Node::new(settings(&url));
    let ann = node.ann();
    let id = inbox(&ann);
    let plain = "From: =?utf-8?q?B=C3=B6b?= <bob@example.org>\r\nDate: Mon, 5 Feb 2024 10:00:00 +0000\r\nSubject: plain\r\n\r\nhello\r\n";
    let with = "From: carol@example.org\r\nDate: Tue, 5 Mar 2024 10:00:00 +0000\r\nSubject: =?utf-8?q?J=C3=A4nner?=\r\n\
                Content-Type: multipart/mixed; boundary=x\r\n\r\n--x\r\n\r\ntext\r\n--x\r\nContent-Type: image/png; name=a.png\r\n\r\n\
                octets\r\n--x--\r\n";
    append(&ann, id, plain).unwrap();
    append(&ann, id, with).unwrap();
    append(&ann, id, "\r\nno header").unwrap();
    let flags = FlagNames { system: Vec::new(), keywords: vec![Keyword::new("$Work").unwrap()] };
    let request = StoreFlags { mode: StoreMode::Add, flags, unchanged_since: None };
    ann.store_flags(id, &UidSet::range(2, 2), &request).unwrap();
    let answers = statements();
    assert_eq!(answers.len(), 6, "each SQL block of the page is asked here");
    for (title, statement) in answers {
        let answer = mariadb::shared().query(name, &statement);
        let expected = match title.as_str() {
            "The largest senders:" => {
                format!("carol@example.org\t1\t{}\nbob@example.org\t1\t{}\nNULL\t1\t11\n", with.len(), plain.len())
            }
            "Mail per month:" => "2024-02\t1\n2024-03\t1\n".to_owned(),
            "Attachments by type, in all accounts:" => "image/png\t1\t6\n".to_owned(),
            "Unread mail with a keyword:" => "INBOX\t2\tJänner\n".to_owned(),
            "What every account takes:" => format!("ann\t3\t{}\n", with.len() + plain.len() + 11),
            // What is to be said after a copy was put back.
            _ => String::new(),
        };
        assert_eq!(answer, expected, "{title}");
    }
    // That one made the node forget: it hears of it with its next change, and goes on when the account is opened anew.
    assert!(append(&ann, id, "refused").is_err());
    drop((ann, node));
    let node = Node::new(settings(&url));
    assert_eq!(append(&node.ann(), id, "goes on").unwrap(), 4);
}
