//! The search index of an account in mbox files: the answers of a scan, whatever other programs do to the files.

use platform::Prng;
use store::search::{Query, Search};
use store::{Account, Moment, StoreMode};

use crate::support::*;

const WORDS: [&str; 6] = ["ham", "eggs", "spam", "Grüße", "toast", "hamlet"];

fn text(number: u32, random: &mut Prng) -> String {
    let words: Vec<&str> = (0..20).map(|_| WORDS[random.index(WORDS.len())]).collect();
    format!("From a@b Thu Aug 22 12:36:23 2002\nSubject: {number}\n\n{} number{number}\n\n", words.join(" "))
}

fn compare(account: &Account, needles: &[&str]) -> u64 {
    let inbox = account.mailbox(&name("INBOX")).unwrap();
    account.refresh(inbox).unwrap();
    let view = account.view(inbox, false).unwrap();
    let mut sum = 0;
    for needle in needles {
        let query = Query::Text((*needle).to_owned());
        let indexed = Search::new(view.clone(), account.reader(), query.clone(), 0).finish().unwrap();
        let scanned = Search::scanning(view.clone(), account.reader(), query, 0).finish().unwrap();
        assert_eq!(indexed, scanned, "{needle}");
        sum += indexed.0.len();
    }
    sum
}

#[test]
fn outside_appends_and_removals() {
    let world = World::new(1);
    let mut random = Prng::new(1);
    world.write(INBOX, &(1..=50).map(|n| text(n, &mut random)).collect::<String>());
    let (store, account) = world.open();
    let inbox = account.mailbox(&name("INBOX")).unwrap();
    let needles = ["ham", "amle", "number7", "eggs", "üß", "number151", "nothing of it"];
    let before = compare(&account, &needles);
    assert!(before > 50);
    while store.maintain().unwrap() {}
    assert_eq!(compare(&account, &needles), before);
    for round in 0..4 {
        let first = 100 + round * 50;
        world.deliver(INBOX, &(first..first + 5).map(|n| text(n, &mut random)).collect::<String>());
        assert!(compare(&account, &[&format!("number{first}")]) == 1, "at once, before it is indexed");
        set_flags(&account, inbox, 1 + round, StoreMode::Add, "\\Deleted");
        account.expunge(inbox, None).unwrap();
        compare(&account, &needles);
        account.write_back(inbox, Moment::Close).unwrap();
        // Another program takes some out.
        let kept = world.read(INBOX);
        let (head, tail) = kept.split_at(kept.find("\nFrom ").unwrap() + 1);
        world.write(INBOX, &[tail, if round % 2 == 0 { head } else { "" }].concat());
        compare(&account, &needles);
        world.env.clock.sleep(std::time::Duration::from_secs(60));
        while store.maintain().unwrap() {}
        compare(&account, &needles);
        let report = account.check().unwrap();
        assert_eq!(report.findings, []);
    }
    drop((account, store));
    let (_store, account) = world.open();
    compare(&account, &needles);
}
