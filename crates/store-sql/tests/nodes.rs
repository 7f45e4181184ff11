//! Several nodes on one database: who writes when, what the others see, and that nothing is done twice.
#![allow(clippy::unwrap_used)]

extern crate mailyard_store_sql as store_sql;

#[path = "support/mariadb.rs"]
mod mariadb;
#[path = "support/nodes.rs"]
mod nodes;
#[path = "support/proxy.rs"]
mod proxy;

use std::collections::BTreeMap;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use model::{ErrorKind, MailboxName, SystemFlag, UidSet};
use nodes::{Node, add_flag, append, contents, inbox, settings};
use store::{Account, DeliveryId, FlagNames, NewMessage, StoreFlags, StoreMode};

fn two() -> (Node, Node) {
    let url = mariadb::fresh_database();
    (Node::new(settings(&url)), Node::new(settings(&url)))
}

#[test]
fn what_one_acknowledged_the_other_has() {
    let (a, b) = two();
    let (on_a, on_b) = (a.ann(), b.ann());
    let (inbox_a, inbox_b) = (inbox(&on_a), inbox(&on_b));
    for n in 0..10 {
        assert_eq!(append(&on_a, inbox_a, &format!("a{n}")).unwrap(), 3 * n + 1);
        assert_eq!(contents(&on_b, inbox_b).last().unwrap().1, format!("a{n}"));
        assert_eq!(append(&on_b, inbox_b, &format!("b{n}")).unwrap(), 3 * n + 2);
        assert_eq!(append(&on_b, inbox_b, &format!("c{n}")).unwrap(), 3 * n + 3);
        assert_eq!(contents(&on_a, inbox_a), contents(&on_b, inbox_b));
    }
    // Flags, expunges, mailboxes.
    add_flag(&on_a, inbox_a, 2, SystemFlag::Deleted).unwrap();
    on_b.expunge(inbox_b, None).unwrap();
    assert_eq!(contents(&on_a, inbox_a).len(), 29);
    let vanished = on_a.vanished_since(inbox_a, model::ModSeq(1), &UidSet::range(1, 100)).unwrap();
    assert_eq!(vanished.to_string(), "2");
    let name = model::MailboxName::new("work/done").unwrap();
    let id = on_b.create_mailbox(&name, &[]).unwrap();
    assert_eq!(on_a.mailbox(&name).unwrap(), id);
    on_a.move_entries(inbox_a, &UidSet::range(1, 1), id).unwrap();
    assert_eq!(contents(&on_b, id), [(1, "a0".to_owned())]);
    on_b.delete_mailbox(&name).unwrap();
    assert_eq!(on_a.mailbox(&name).unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(on_a.restore(&name, 0).unwrap().mailbox, Some(id));
    assert_eq!(contents(&on_b, id), [(1, "a0".to_owned())]);
    for account in [&on_a, &on_b] {
        assert_eq!(account.check().unwrap().findings, []);
    }
}

#[test]
fn who_only_listens_is_told() {
    let (a, b) = two();
    let (on_a, on_b) = (a.ann(), b.ann());
    let (inbox_a, inbox_b) = (inbox(&on_a), inbox(&on_b));
    let (told, news) = mpsc::channel();
    let _guard = on_b.listen(Arc::new(move || {
        let _ = told.send(());
    }));
    append(&on_a, inbox_a, "hello").unwrap();
    news.recv_timeout(Duration::from_secs(300)).unwrap();
    assert_eq!(on_b.view(inbox_b, false).unwrap().exists(), 1);
}

#[test]
fn both_write_at_once() {
    const EACH: u32 = 25;
    let (a, b) = two();
    let (on_a, on_b) = (a.ann(), b.ann());
    let id = inbox(&on_a);
    let writers: Vec<_> = [&on_a, &on_a, &on_b, &on_b]
        .into_iter()
        .enumerate()
        .map(|(number, account)| {
            let account = Arc::clone(account);
            thread::spawn(move || {
                let mut done = Vec::new();
                for n in 0..EACH {
                    let text = format!("{number}:{n}");
                    let uid = append(&account, id, &text).unwrap();
                    done.push((uid, text));
                    if n % 5 == 4 {
                        add_flag(&account, id, uid, SystemFlag::Deleted).unwrap();
                        let expunged = account.expunge(id, Some(&UidSet::range(uid, uid))).unwrap();
                        assert!(expunged.uids.contains(uid));
                        done.pop();
                    }
                }
                done
            })
        })
        .collect();
    // Somebody who looks meanwhile sees UIDs only rise.
    let mut view = on_b.view(id, false).unwrap();
    let mut last = 0;
    while writers.iter().any(|writer| !writer.is_finished()) {
        on_b.refresh(id).unwrap();
        let before = last;
        let _changes = view.advance(true);
        for entry in view.all_rows().filter(|entry| entry.uid.get() > before) {
            last = last.max(entry.uid.get());
        }
        let new = view.all_rows().filter(|entry| entry.uid.get() <= before).count();
        assert!(new <= before as usize);
    }
    let mut acknowledged = BTreeMap::new();
    for writer in writers {
        for (uid, text) in writer.join().unwrap() {
            assert_eq!(acknowledged.insert(uid, text), None, "one UID for two messages");
        }
    }
    for account in [&on_a, &on_b] {
        assert_eq!(contents(account, id), acknowledged.clone().into_iter().collect::<Vec<_>>());
        assert_eq!(account.status(id).unwrap().uid_next.unwrap().get(), 4 * EACH + 1);
        assert_eq!(account.check().unwrap().findings, []);
    }
}

#[test]
fn a_lost_answer_is_no_lost_message_and_no_second_one() {
    let server = mariadb::shared();
    let proxy = proxy::Proxy::before(server.socket());
    let direct = mariadb::fresh_database();
    let name = mariadb::database_of(&direct);
    let through = format!("mysql://root@localhost/{name}?socket={}", proxy.socket().display());
    let node = Node::new(settings(&through));
    let ann = node.ann();
    let id = inbox(&ann);
    append(&ann, id, "before").unwrap();
    proxy.lose_commits(1);
    assert_eq!(append(&ann, id, "once").unwrap(), 2);
    assert_eq!(proxy.left(), 0);
    assert_eq!(append(&ann, id, "after").unwrap(), 3);
    // The same when another node has taken over before the answer is looked for.
    proxy.lose_commits(1);
    add_flag(&ann, id, 1, SystemFlag::Seen).unwrap();
    let other = Node::new(settings(&direct));
    let expected = [(1, "before".to_owned()), (2, "once".to_owned()), (3, "after".to_owned())];
    assert_eq!(contents(&other.ann(), id), expected);
    assert_eq!(server.query(name, "SELECT COUNT(*) FROM message"), "3\n");
}

#[test]
fn an_owner_that_was_taken_for_dead_does_no_harm() {
    let url = mariadb::fresh_database();
    let (server, name) = (mariadb::shared(), mariadb::database_of(&url));
    let node = Node::new(settings(&url));
    let ann = node.ann();
    let id = inbox(&ann);
    append(&ann, id, "first").unwrap();
    // As if another node had waited for our lease, written something, and died.
    server.query(
        name,
        "UPDATE tenure SET modseq_last = (SELECT modseq FROM account); \
         INSERT INTO tenure SELECT id, epoch + 1, 77, NULL FROM account; \
         UPDATE account SET owner = 77, epoch = epoch + 1, modseq = modseq + 1, \
         lease_until = UTC_TIMESTAMP(6) + INTERVAL 300000 MICROSECOND; \
         UPDATE mailbox SET uidnext = 5, highest_modseq = highest_modseq + 1, touched = touched + 1;",
    );
    // It waits for the lease of the other, knows then what that has done, and makes its change on that.
    assert_eq!(append(&ann, id, "second").unwrap(), 5);
    assert_eq!(contents(&ann, id), [(1, "first".to_owned()), (5, "second".to_owned())]);
}

/// Two nodes, of which the second takes the account from the first whenever it is told to, as if that had been silent for too long.
struct Thief {
    _nodes: (Node, Node),
    on_a: Arc<Account>,
    on_b: Arc<Account>,
    database: String,
}

impl Thief {
    fn new() -> Thief {
        let url = mariadb::fresh_database();
        let (a, b) = (Node::new(settings(&url)), Node::new(settings(&url)));
        let (on_a, on_b) = (a.ann(), b.ann());
        Thief { _nodes: (a, b), on_a, on_b, database: mariadb::database_of(&url).to_owned() }
    }

    /// The first node is the writer, by its own belief still, when the second has done `work`.
    fn steal<T>(&self, work: impl FnOnce(&Account) -> T) -> T {
        add_flag(&self.on_a, inbox(&self.on_a), 1, SystemFlag::Seen).unwrap();
        self.expire();
        work(&self.on_b)
    }

    fn expire(&self) {
        mariadb::shared().query(&self.database, "UPDATE account SET lease_until = UTC_TIMESTAMP(6)");
    }
}

fn new_message(account: &Account, text: &str) -> NewMessage {
    let mut writer = account.message_writer().unwrap();
    writer.write(text.as_bytes()).unwrap();
    NewMessage { message: writer.finish().unwrap(), flags: FlagNames::default(), internal_date: None }
}

#[test]
fn every_change_of_a_node_that_lost_the_account_is_made_anew() {
    let thief = Thief::new();
    let (a, b) = (&thief.on_a, &thief.on_b);
    let id = inbox(a);
    append(a, id, "1").unwrap();
    let steal = |uid: u32| assert_eq!(thief.steal(|b| append(b, id, &uid.to_string())).unwrap(), uid);
    // UIDs are given anew.
    steal(2);
    assert_eq!(append(a, id, "3").unwrap(), 3);
    steal(4);
    let both = vec![new_message(a, "5"), new_message(a, "6")];
    let appended = a.append(id, both).unwrap();
    assert_eq!(appended.entries.iter().map(|(uid, _)| uid.get()).collect::<Vec<_>>(), [5, 6]);
    // Conditions are looked at anew (RFC 7162 §3.1.3).
    let modseq = a.status(id).unwrap().highest_modseq;
    thief.steal(|b| add_flag(b, id, 2, SystemFlag::Flagged)).unwrap();
    let flags = FlagNames { system: vec![SystemFlag::Deleted], keywords: Vec::new() };
    let request = StoreFlags { mode: StoreMode::Add, flags, unchanged_since: Some(modseq) };
    let stored = a.store_flags(id, &UidSet::range(2, 3), &request).unwrap();
    assert_eq!((stored.changed.to_string(), stored.modified.to_string()), ("3".to_owned(), "2".to_owned()));
    steal(7);
    assert_eq!(a.expunge(id, None).unwrap().uids.to_string(), "3");
    // Mailboxes.
    let (one, two, three) = ("one", "two", "three");
    let [one, two, three] = [one, two, three].map(|name| MailboxName::new(name).unwrap());
    thief.steal(|b| b.create_mailbox(&one, &[])).unwrap();
    let made = a.create_mailbox(&two, &[]).unwrap();
    assert_eq!(b.mailbox(&two).unwrap(), made);
    thief.steal(|b| b.set_subscribed(&one, true)).unwrap();
    a.rename_mailbox(&one, &three).unwrap();
    thief.steal(|b| b.delete_mailbox(&three)).unwrap();
    assert_eq!(a.rename_mailbox(&three, &one).unwrap_err().kind(), ErrorKind::NotFound);
    steal(8);
    let copied = a.copy(id, &UidSet::range(1, 2), made).unwrap();
    assert_eq!(copied.uids.len(), 2);
    steal(9);
    assert_eq!(a.move_entries(id, &UidSet::range(8, 8), made).unwrap().uids.len(), 1);
    steal(10);
    a.delete_mailbox(&two).unwrap();
    steal(11);
    assert_eq!(a.restore(&two, 0).unwrap().mailbox, Some(made));
    steal(12);
    a.set_special_use(made, &[model::SpecialUse::Archive]).unwrap();
    // A delivery that the other node has taken is known.
    let delivery = DeliveryId([7; 16]);
    let deliver = |account: &Arc<Account>| {
        let message = new_message(account, "13");
        account.edit(|edit| edit.deliver(id, &message, delivery)).unwrap()
    };
    assert!(thief.steal(|_| deliver(b)).is_some());
    assert!(deliver(a).is_none());
    // What does not wait is asked until it is done.
    steal(14);
    let (woken, wakes) = mpsc::channel();
    let wake: index::Wake = Arc::new(move || {
        let _ = woken.send(());
    });
    let message = new_message(a, "15");
    let mut pending = a.begin(move |edit| edit.append(id, std::slice::from_ref(&message))).unwrap();
    let appended = loop {
        match pending.poll(&wake) {
            Some(result) => break result.unwrap(),
            None => wakes.recv().unwrap(),
        }
    };
    assert_eq!(appended.entries[0].0.get(), 15);
    let expected: Vec<(u32, String)> = (1..=15).filter(|n| ![3, 8].contains(n)).map(|n| (n, n.to_string())).collect();
    for account in [a, b] {
        assert_eq!(contents(account, id), expected);
        assert_eq!(contents(account, made), [(1, "1".into()), (2, "2".into()), (3, "8".into())]);
        assert_eq!(account.check().unwrap().findings, []);
    }
}

#[test]
fn an_account_that_is_taken_away_again_and_again() {
    const EACH: u32 = 25;
    let thief = Thief::new();
    let id = inbox(&thief.on_a);
    let mut acknowledged = BTreeMap::new();
    let (done, progress) = mpsc::channel();
    thread::scope(|scope| {
        let writers = [("a", &thief.on_a), ("b", &thief.on_a), ("c", &thief.on_b)].map(|(name, account)| {
            let done = done.clone();
            scope.spawn(move || {
                let one = |n: u32| {
                    let text = format!("{name}{n}");
                    // Who was robbed too often in a row has changed nothing.
                    let mut appended = std::iter::repeat_with(|| append(account, id, &text));
                    let is_taken =
                        |result: &model::Result<u32>| result.as_ref().is_err_and(|e| e.kind() == ErrorKind::TakenOver);
                    let uid = appended.find(|uid| !is_taken(uid)).unwrap().unwrap();
                    done.send(()).unwrap();
                    (uid, text)
                };
                (0..EACH).map(one).collect::<Vec<_>>()
            })
        });
        drop(done);
        while progress.recv().is_ok() {
            thief.expire();
        }
        for (uid, text) in writers.into_iter().flat_map(|writer| writer.join().unwrap()) {
            assert_eq!(acknowledged.insert(uid, text), None, "one UID for two messages");
        }
    });
    // Who was robbed behind its back learns of that with its next change.
    for (uid, account) in (3 * EACH + 1..).zip([&thief.on_a, &thief.on_b, &thief.on_a]) {
        assert_eq!(append(account, id, "last").unwrap(), uid);
        acknowledged.insert(uid, "last".to_owned());
    }
    for account in [&thief.on_a, &thief.on_b] {
        assert_eq!(contents(account, id), acknowledged.clone().into_iter().collect::<Vec<_>>());
        assert_eq!(account.status(id).unwrap().uid_next.unwrap().get(), 3 * EACH + 4);
        assert_eq!(account.check().unwrap().findings, []);
    }
}

#[test]
fn a_node_that_has_nothing_or_only_an_old_checkpoint() {
    let url = mariadb::fresh_database();
    let node = Node::new(settings(&url));
    let ann = node.ann();
    let id = inbox(&ann);
    for n in 1..=5 {
        append(&ann, id, &format!("m{n}")).unwrap();
    }
    add_flag(&ann, id, 2, SystemFlag::Deleted).unwrap();
    ann.expunge(id, None).unwrap();
    drop(ann);
    // The first node closes, with a checkpoint; the second begins with nothing.
    let Node { store, database, dir } = node;
    drop((store, database));
    let other = Node::new(settings(&url));
    let on_other = other.ann();
    append(&on_other, id, "m6").unwrap();
    add_flag(&on_other, id, 1, SystemFlag::Seen).unwrap();
    let expected = contents(&on_other, id);
    assert_eq!(expected.len(), 5);
    assert!(dir.path().join("cache/ann/index/checkpoint").is_file());
    let again = Node::on(dir, settings(&url));
    let on_again = again.ann();
    assert_eq!(contents(&on_again, id), expected);
    assert_eq!(on_again.status(id).unwrap().unseen, 4);
    let vanished = on_again.vanished_since(id, model::ModSeq(1), &UidSet::range(1, 100)).unwrap();
    assert_eq!(vanished.to_string(), "2");
    assert_eq!(on_again.check().unwrap().findings, []);
}

#[test]
fn an_account_that_is_removed_is_gone_for_all() {
    let (a, b) = two();
    let on_b = b.ann();
    let id = inbox(&on_b);
    let ann = model::AccountName::new("ann").unwrap();
    a.store.delete_account(&ann).unwrap();
    assert_eq!(append(&on_b, id, "x").unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(a.store.account(&ann).err().unwrap().kind(), ErrorKind::NotFound);
    assert!(b.store.accounts().unwrap().is_empty());
}

#[test]
fn bare_transactions_are_counted_and_leave_nothing() {
    let url = mariadb::fresh_database();
    let node = Node::new(settings(&url));
    node.database.update().unwrap();
    let load = store_sql::RawLoad { connections: 2, duration: Duration::from_millis(100), octets: 100 };
    assert!(node.database.measure_raw(load).unwrap().took >= load.duration);
    for table in ["account", "entry", "message", "header", "body"] {
        let count = format!("SELECT COUNT(*) FROM {table}");
        assert_eq!(mariadb::shared().query(mariadb::database_of(&url), &count), "0\n", "{table}");
    }
}
