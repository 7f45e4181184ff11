//! CREATE, RENAME and DELETE that are interrupted anywhere: afterwards each mailbox is there or not, with its own messages, under one name.

use std::collections::BTreeMap;

use store::Account;

use crate::support::*;

/// The names, and what is in the mailboxes.
fn observe(account: &Account) -> BTreeMap<String, Vec<String>> {
    let names: Vec<_> =
        account.mailboxes().into_iter().filter_map(|info| Some((info.name.to_string(), info.id?))).collect();
    let of = |id| numbers(account, id).into_iter().map(|(_, number)| number).collect();
    names.into_iter().map(|(name, id)| (name, of(id))).collect()
}

/// A world with the mailboxes `a`, `a/b` and `c`, each with a message from another program and one from us.
fn world(seed: u64) -> World {
    let world = World::new(seed);
    let (_store, account) = world.open();
    for (number, text) in [(10, "a"), (20, "a/b"), (30, "c")] {
        let id = account.create_mailbox(&name(text), &[]).unwrap();
        world.deliver(&format!("{ROOT}/{}", text.replace('/', ".sbd/")), &message(number, ""));
        assert_eq!(numbers(&account, id).len(), 1);
        append(&account, id, &served(number + 1), "");
    }
    world
}

fn cut_everywhere(change: impl Fn(&Account) -> model::Result<()>, expected: &[(&str, &[&str])]) {
    let before = observe(&world(0).open().1);
    let after: BTreeMap<String, Vec<String>> = expected
        .iter()
        .map(|(name, numbers)| ((*name).to_owned(), numbers.iter().map(|number| (*number).to_owned()).collect()))
        .collect();
    let mut cuts = 0;
    loop {
        let world = world(cuts);
        let (store, account) = world.open();
        assert_eq!(observe(&account), before);
        world.sim.disk.crash_at(cuts + 1);
        let done = change(&account);
        let is_cut = world.sim.disk.is_off();
        drop((account, store));
        assert!(is_cut || done.is_ok(), "{done:?}");
        world.sim.disk.crash();
        world.env.clock.sleep(std::time::Duration::from_secs(130));
        // Twice: what is found is what stays.
        for _ in 0..2 {
            let (store, account) = world.open();
            store.maintain().unwrap();
            let found = observe(&account);
            assert!(
                found == after || done.is_err() && found == before,
                "cut {cuts}, {done:?}:\n{found:?}\nnot {after:?}"
            );
        }
        if !is_cut {
            assert!(cuts >= 2, "{cuts}");
            return;
        }
        cuts += 1;
    }
}

const A: (&str, &[&str]) = ("a", &["10", "11"]);
const B: (&str, &[&str]) = ("a/b", &["20", "21"]);
const C: (&str, &[&str]) = ("c", &["30", "31"]);
const INBOX_: (&str, &[&str]) = ("INBOX", &[]);

#[test]
fn create() {
    cut_everywhere(
        |account| account.create_mailbox(&name("x/y"), &[]).map(drop),
        &[INBOX_, A, B, C, ("x", &[]), ("x/y", &[])],
    );
}

#[test]
fn rename() {
    cut_everywhere(
        |account| account.rename_mailbox(&name("a"), &name("z/a")),
        &[INBOX_, C, ("z", &[]), ("z/a", A.1), ("z/a/b", B.1)],
    );
}

/// Whatever of it is interrupted: once it was answered the mailbox stays away.
#[test]
fn delete() {
    cut_everywhere(|account| account.delete_mailbox(&name("a")), &[INBOX_, B, C]);
    cut_everywhere(|account| account.delete_mailbox(&name("a/b")), &[INBOX_, A, C]);
}

/// In one change each takes the name that the other one had: no file may end up with the wrong one.
#[test]
fn rename_in_turn() {
    cut_everywhere(
        |account| {
            account.edit(|edit| {
                edit.rename_mailbox(&name("c"), &name("t"))?;
                edit.rename_mailbox(&name("a/b"), &name("c"))?;
                edit.rename_mailbox(&name("t"), &name("a/b"))
            })
        },
        &[INBOX_, A, ("a/b", C.1), ("c", B.1)],
    );
}
