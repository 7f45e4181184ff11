//! Files that others change in the middle of things: cut short, taken away, replaced, half written.

use model::ErrorKind;

use crate::support::*;

fn texts(numbers: std::ops::RangeInclusive<u32>) -> String {
    numbers.map(|n| message(n, "")).collect()
}

/// The last message is only there in part, wherever its writer was stopped; then the rest comes. What stands before it keeps its UIDs.
#[test]
fn half_a_message_at_the_end() {
    let (whole, before) = (texts(1..=3), texts(1..=2).len());
    for cut in before..=whole.len() {
        let world = World::new(1);
        let (_store, account) = world.open();
        world.write(INBOX, &whole[..cut]);
        let inbox = account.mailbox(&name("INBOX")).unwrap();
        let found: Vec<u32> = view(&account, inbox).all_rows().map(|entry| entry.uid.get()).collect();
        // A `From ` line that has begun is text of the message before it.
        assert!(found == [1, 2] || found == [1, 2, 3], "cut {cut}: {found:?}");
        // Whatever it is: it can be read and written back.
        account.write_back(inbox, store::Moment::Close).unwrap();
        // Not in the same tick of the clock: of some cuts the file is as long as it was.
        world.env.clock.sleep(std::time::Duration::from_secs(5));
        world.write(INBOX, &whole);
        let found = numbers(&account, inbox);
        let numbers: Vec<&str> = found.iter().map(|(_, number)| number.as_str()).collect();
        assert_eq!(numbers.first(), Some(&"1"), "cut {cut}");
        let mut sorted = numbers.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, ["1", "2", "3"], "cut {cut}");
        assert_eq!(found[0].0, 1, "cut {cut}");
        assert_eq!(account.check().unwrap().findings, [], "cut {cut}");
    }
}

/// Somebody makes the file shorter while a client has a view of it: what is left can be read, what is gone is expunged, and no message is served with the
/// octets of another.
#[test]
fn shorter_under_a_view() {
    for is_replaced in [false, true] {
        let world = World::new(1);
        let (_store, account) = world.open();
        world.write(INBOX, &texts(1..=4));
        let inbox = account.mailbox(&name("INBOX")).unwrap();
        let view = view(&account, inbox);
        let ids: Vec<_> = view.all_rows().map(|entry| entry.email_id).collect();
        let mut reader = account.reader();
        let mut text = Vec::new();
        reader.read(ids[3], 0..u64::MAX, &mut text).unwrap();
        // Messages 1 and 3 go.
        let left = format!("{}{}", message(2, ""), message(4, ""));
        if is_replaced {
            world.write("/var/mail/new", &left);
            world.env.disk.rename("/var/mail/new".as_ref(), INBOX.as_ref()).unwrap();
            world.pass();
        } else {
            world.write(INBOX, &left);
        }
        for (id, number) in ids.iter().zip(1..) {
            let mut text = Vec::new();
            let mut reader = account.reader();
            match reader.read(*id, 0..u64::MAX, &mut text) {
                Ok(()) => assert_eq!(String::from_utf8(text).unwrap(), served(number), "{is_replaced}"),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Expunged, "{is_replaced} {number}: {error}");
                    assert!([1, 3].contains(&number), "{is_replaced} {number}");
                }
            }
        }
        let expected = [(2, "2".to_owned()), (4, "4".to_owned())];
        assert_eq!(numbers(&account, inbox), expected, "{is_replaced}");
        // And what is written now does not bring them back.
        set_flags(&account, inbox, 2, store::StoreMode::Add, "\\Seen");
        append(&account, inbox, &served(5), "");
        account.write_back(inbox, store::Moment::Close).unwrap();
        assert_eq!(numbers(&account, inbox).len(), 3);
        assert_eq!(account.check().unwrap().findings, [], "{is_replaced}");
    }
}

/// Lines of text that begin with `From ` and are no separator, unquoted as some writers leave them, split no message; separators of every kind do.
#[test]
fn text_that_looks_like_a_separator() {
    let separators = [
        "From - Thu Aug 22 12:36:23 2002",
        "From a@b Thu Aug 22 12:36 PST 2002",
        "From a Thu Aug 22 12:36:23 02",
        "From uunet!a Thu Aug 22 12:36:23 2002 remote from mcvax",
        "From a@b Thu, 22 Aug 2002 12:36:23 -0130",
        "From MAILER-DAEMON",
    ];
    let body =
        "From here on it is text\n\nFrom the beginning of Aug 22\n\nFrom nobody\nFrom a@b, on Thursday: 12:36:23\n";
    let text: String =
        separators.iter().zip(1..).map(|(line, n)| format!("{line}\nSubject: {n}\nX-Y: z\n\n{body}\n")).collect();
    let world = World::new(1);
    let (_store, account) = world.open();
    world.write(INBOX, &text);
    let inbox = account.mailbox(&name("INBOX")).unwrap();
    let found = all(&account, inbox);
    assert_eq!(found.len(), separators.len());
    let crlf = body.replace('\n', "\r\n");
    for ((_, _, served), n) in found.iter().zip(1..) {
        assert_eq!(*served, format!("Subject: {n}\r\nX-Y: z\r\n\r\n{crlf}"));
    }
}
