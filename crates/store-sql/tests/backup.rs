//! Backups of accounts in a database, and bringing them back, there and elsewhere.
#![allow(clippy::unwrap_used)]

extern crate mailyard_store_sql as store_sql;

#[path = "support/mariadb.rs"]
mod mariadb;
#[path = "support/nodes.rs"]
mod nodes;

use std::ops::ControlFlow;

use model::{AccountName, SystemFlag};
use nodes::{Node, add_flag, append, contents, inbox, settings};
use platform::Env;
use store::AccountFormat;
use store::backup::{Repository, RestoreOptions};

fn on(_: u64, _: u64) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

#[test]
fn saved_again_and_brought_back_anywhere() {
    let node = Node::new(settings(&mariadb::fresh_database()));
    let account = node.ann();
    let place = inbox(&account);
    for n in 0..30 {
        append(&account, place, &format!("Subject: {n}\r\n\r\n{}\r\n", "word ".repeat(n * 50))).unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    let repository = Repository::create(Env::real(), &folder.path().join("backup"), None).unwrap();
    let first = repository.save(&account, &mut on).unwrap().unwrap();
    let at_first = contents(&account, place);
    add_flag(&account, place, 3, SystemFlag::Deleted).unwrap();
    account.expunge(place, None).unwrap();
    append(&account, place, "Subject: later\r\n\r\n").unwrap();
    let second = repository.save(&account, &mut on).unwrap().unwrap();
    let at_second = contents(&account, place);
    assert_eq!(second.copied_files, 1, "the end of the log: {second:?} after {first:?}");
    assert_eq!(repository.verify(account.name(), &mut on).unwrap().findings, []);

    // As an account of the store's own, with its UIDs.
    let restore = |to: &str, snapshot| {
        let options = RestoreOptions { account: AccountName::new(to).unwrap(), mailbox: None, into: None };
        node.store.restore_backup(&repository, snapshot, &options, &mut on).unwrap()
    };
    let report = restore("old", &first.snapshot);
    assert_eq!((report.account_is_new, report.restored), (true, 30));
    let old = node.store.account(&AccountName::new("old").unwrap()).unwrap();
    assert_eq!(old.format().unwrap(), AccountFormat::Native);
    assert_eq!(contents(&old, inbox(&old)), at_first);
    // Into one in the database that is empty.
    let ben = AccountName::new("ben").unwrap();
    node.store.create_account_as(&ben, &AccountFormat::Sql).unwrap();
    assert_eq!(restore("ben", &second.snapshot).restored, 30);
    let ben = node.store.account(&ben).unwrap();
    let texts = |contents: Vec<(u32, String)>| contents.into_iter().map(|(_, text)| text).collect::<Vec<_>>();
    assert_eq!(texts(contents(&ben, inbox(&ben))), texts(at_second.clone()));
    // Into the one that it is of: what is there is not added again.
    let report = restore("ann", &first.snapshot);
    assert_eq!((report.restored, report.already_there), (1, 29));
    assert_eq!(texts(contents(&account, place)).len(), at_second.len() + 1);
}
