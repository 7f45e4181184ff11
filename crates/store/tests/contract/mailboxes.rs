//! Names and the tree of mailboxes.

use model::{ErrorKind, MailboxName, SpecialUse, limits};
use store::Account;

use crate::support::{Format, append, fill, flags_of, listed, mailbox};

/// `INBOX a* a/b+`: `*` for a name without a mailbox, `+` for one with children, `!` for a subscribed one.
fn tree(account: &Account) -> String {
    let words = account.mailboxes().into_iter().map(|info| {
        let marks = [(info.id.is_none(), "*"), (info.has_children, "+"), (info.subscribed, "!")];
        let marks: String = marks.into_iter().filter(|(is, _)| *is).map(|(_, mark)| mark).collect();
        format!("{}{marks}", info.name)
    });
    words.collect::<Vec<_>>().join(" ")
}

pub fn create_with_parents(format: &Format) {
    let (_store, account, _) = format.with_account();
    let id = account.create_mailbox(&mailbox("a/b/c"), &[SpecialUse::Sent]).unwrap();
    assert_eq!(tree(&account), "INBOX a+ a/b+ a/b/c");
    assert_eq!(account.mailbox(&mailbox("a/b/c")).unwrap(), id);
    assert_eq!(account.mailbox_name(id), Some(mailbox("a/b/c")));
    assert_eq!(account.mailboxes()[3].special_use, [SpecialUse::Sent]);
    let error = account.create_mailbox(&mailbox("a/b"), &[]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AlreadyExists);
    // `a.b` sorts between `a` and `a/b`.
    account.create_mailbox(&mailbox("a.b"), &[SpecialUse::Sent]).unwrap();
    assert_eq!(tree(&account), "INBOX a+ a.b a/b+ a/b/c");
}

pub fn delete_keeps_children(format: &Format) {
    let (_store, account, _) = format.with_account();
    account.create_mailbox(&mailbox("a/b/c"), &[]).unwrap();
    account.delete_mailbox(&mailbox("a/b")).unwrap();
    account.delete_mailbox(&mailbox("a")).unwrap();
    assert_eq!(tree(&account), "INBOX a*+ a/b*+ a/b/c");
    for (gone, kind) in
        [("a/b", ErrorKind::NotPermitted), ("x", ErrorKind::NotFound), ("inbox", ErrorKind::NotPermitted)]
    {
        assert_eq!(account.delete_mailbox(&mailbox(gone)).unwrap_err().kind(), kind, "{gone}");
    }
    assert_eq!(account.mailbox(&mailbox("a")).unwrap_err().kind(), ErrorKind::NotFound);
    account.delete_mailbox(&mailbox("a/b/c")).unwrap();
    assert_eq!(tree(&account), "INBOX");
}

pub fn recreate(format: &Format) {
    let (_store, account, _) = format.with_account();
    let mut last = 0;
    let mut ids = Vec::new();
    for _ in 0..3 {
        let id = account.create_mailbox(&mailbox("a"), &[]).unwrap();
        fill(&account, id, 2);
        let status = account.status(id).unwrap();
        assert!(status.uid_validity.get() > last, "greater than every earlier one");
        last = status.uid_validity.get();
        assert!(!ids.contains(&id));
        ids.push(id);
        account.delete_mailbox(&mailbox("a")).unwrap();
        assert_eq!(account.status(id).unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(account.mailbox_name(id), None);
    }
}

pub fn rename(format: &Format) {
    let (_store, account, _) = format.with_account();
    let id = account.create_mailbox(&mailbox("a/b/c"), &[]).unwrap();
    fill(&account, id, 2);
    let before = account.status(id).unwrap();
    account.rename_mailbox(&mailbox("a/b"), &mailbox("x/y/z")).unwrap();
    assert_eq!(tree(&account), "INBOX a x+ x/y+ x/y/z+ x/y/z/c");
    assert_eq!(account.mailbox_name(id), Some(mailbox("x/y/z/c")));
    assert_eq!(account.status(id).unwrap().uid_validity, before.uid_validity);
    for (from, to, kind) in [
        ("x", "x/q", ErrorKind::Invalid),
        ("x", "a", ErrorKind::AlreadyExists),
        ("x", "x", ErrorKind::AlreadyExists),
        ("nothing", "new", ErrorKind::NotFound),
        ("x", "inbox", ErrorKind::AlreadyExists),
    ] {
        assert_eq!(account.rename_mailbox(&mailbox(from), &mailbox(to)).unwrap_err().kind(), kind, "{from} to {to}");
    }
    assert_eq!(tree(&account), "INBOX a x+ x/y+ x/y/z+ x/y/z/c");
}

pub fn rename_inbox(format: &Format) {
    let (_store, account, inbox) = format.with_account();
    account.create_mailbox(&mailbox("INBOX/below"), &[]).unwrap();
    append(&account, inbox, b"a", "\\Seen $x");
    append(&account, inbox, b"b", "");
    account.rename_mailbox(&MailboxName::inbox(), &mailbox("old/mail")).unwrap();
    assert_eq!(tree(&account), "INBOX+ INBOX/below old+ old/mail");
    let moved = account.view(account.mailbox(&mailbox("old/mail")).unwrap(), false).unwrap();
    assert_eq!((listed(&moved), flags_of(&moved, 1)), (vec![1, 2], "\\Seen $x".to_owned()));
    assert_eq!(account.status(inbox).unwrap().messages, 0);
    assert_eq!(append(&account, inbox, b"c", "").get(), 3, "UIDs go on");
}

pub fn rename_name_only(format: &Format) {
    let (_store, account, _) = format.with_account();
    account.create_mailbox(&mailbox("a/b/c"), &[]).unwrap();
    account.create_mailbox(&mailbox("a/d"), &[]).unwrap();
    account.delete_mailbox(&mailbox("a")).unwrap();
    account.rename_mailbox(&mailbox("a"), &mailbox("x")).unwrap();
    assert_eq!(tree(&account), "INBOX x*+ x/b+ x/b/c x/d");
}

pub fn subscribe(format: &Format) {
    let (_store, account, _) = format.with_account();
    account.create_mailbox(&mailbox("a"), &[]).unwrap();
    for _ in 0..2 {
        account.set_subscribed(&mailbox("a"), true).unwrap();
        account.set_subscribed(&mailbox("x/y"), true).unwrap();
    }
    assert_eq!(tree(&account), "INBOX a! x/y*!");
    account.delete_mailbox(&mailbox("a")).unwrap();
    assert_eq!(tree(&account), "INBOX a*! x/y*!");
    for _ in 0..2 {
        account.set_subscribed(&mailbox("a"), false).unwrap();
    }
    assert_eq!(tree(&account), "INBOX x/y*!");
}

pub fn limits(format: &Format) {
    let (_store, account, inbox) = format.with_account();
    for n in 0..limits::KEYWORDS_PER_MAILBOX_MAX {
        append(&account, inbox, b"x", &format!("k{n}"));
    }
    let message = crate::support::new_message(&account, b"x", "one-more");
    assert_eq!(account.append(inbox, vec![message]).unwrap_err().limit(), Some("keywords_per_mailbox_max"));
    assert_eq!(account.status(inbox).unwrap().messages as usize, limits::KEYWORDS_PER_MAILBOX_MAX);
    if !format.has_long_names() {
        return;
    }
    // A rename that makes a name below it too long changes nothing.
    // No level is longer than file names may be.
    let long: String =
        (0..limits::MAILBOX_NAME_BYTES_MAX - 2).map(|at| if at % 200 == 150 { '/' } else { 'n' }).collect();
    account.create_mailbox(&mailbox(&format!("a/{long}")), &[]).unwrap();
    assert_eq!(
        account.rename_mailbox(&mailbox("a"), &mailbox("abc")).unwrap_err().limit(),
        Some("mailbox_name_bytes_max")
    );
    assert!(account.mailbox(&mailbox("a")).is_ok());
}
