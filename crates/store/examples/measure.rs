//! scratch
#![allow(clippy::all, missing_docs, clippy::unwrap_used)]
extern crate mailyard_store as store;
use model::*;
use std::path::PathBuf;
use std::time::Instant;
use store::search::{Query, Search};
use store::*;
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let root = PathBuf::from(&args[1]);
    let store = Store::open(platform::Env::real(), root.clone(), Options::default()).unwrap();
    let name = AccountName::new("a").unwrap();
    if let Some(mbox) = args.get(2).filter(|m| *m != "-") {
        store.create_account(&name).unwrap();
        let account = store.account(&name).unwrap();
        let t = Instant::now();
        let options = store::import::ImportOptions { mailbox: Some(MailboxName::inbox()), ..Default::default() };
        let r = store::import::import(&account, &PathBuf::from(mbox), &options, &mut |_| {
            std::ops::ControlFlow::Continue(())
        })
        .unwrap();
        println!("import {} in {:?}", r.imported, t.elapsed());
        let t = Instant::now();
        while store.maintain().unwrap() {}
        println!("maintain {:?}", t.elapsed());
    }
    let account = store.account(&name).unwrap();
    let t = Instant::now();
    while store.maintain().unwrap() {}
    println!("maintain again {:?}", t.elapsed());
    let inbox = account.mailbox(&MailboxName::inbox()).unwrap();
    let view = account.view(inbox, false).unwrap();
    let s = |s: &str| s.to_owned();
    let h = |n: &str, v: &str| Query::Header(s(n), s(v));
    let b = |v: &str| Query::Body(s(v));
    let t_ = |v: &str| Query::Text(s(v));
    let day = |y, m, d| CivilDate::new(y, m, d).unwrap();
    use store::search::DateTest::*;
    let queries = vec![
        ("warm", b("happy")),
        ("body happy", b("happy")),
        ("body free", b("free")),
        ("body viagra", b("viagra")),
        ("body zqxj", b("zqxj")),
        ("body ha", b("ha")),
        ("body e", b("e")),
        ("body q", b("q")),
        ("body the", b("the")),
        ("text happy", t_("happy")),
        ("text a", t_("a")),
        ("text @", t_("@")),
        ("text the", t_("the")),
        ("body 'happy birthday'", b("happy birthday")),
        ("body 'of the'", b("of the")),
        ("body 'free money'", b("free money")),
        ("body 'in the world'", b("in the world")),
        ("from john", h("from", "john")),
        ("subject re:", h("subject", "re:")),
        ("subject spam", h("subject", "spam")),
        ("header list-id ''", h("list-id", "")),
        ("header received yahoo", h("received", "yahoo")),
        ("sent range", Query::And(vec![Query::Sent(Since(day(2002, 7, 1))), Query::Sent(Before(day(2002, 8, 1)))])),
        (
            "from+subj+not body",
            Query::And(vec![h("from", "john"), h("subject", "re"), Query::Not(Box::new(b("free")))]),
        ),
        ("or", Query::Or(Box::new(b("happy")), Box::new(h("subject", "linux")))),
        ("all", Query::All),
    ];
    let scan = args.get(3).is_some();
    for (what, q) in queries {
        let t = Instant::now();
        let (found, _) = Search::new(view.clone(), account.reader(), q.clone(), 0).finish().unwrap();
        let e = t.elapsed();
        let mut best = e;
        for _ in 0..3 {
            let t = Instant::now();
            Search::new(view.clone(), account.reader(), q.clone(), 0).finish().unwrap();
            best = best.min(t.elapsed());
        }
        print!(
            "{what:24} {:7} hits  first {:9.3} ms best {:9.3} ms",
            found.len(),
            e.as_secs_f64() * 1e3,
            best.as_secs_f64() * 1e3
        );
        if scan {
            let t = Instant::now();
            let (f2, _) = Search::scanning(view.clone(), account.reader(), q, 0).finish().unwrap();
            print!(
                " scan {:9.1} ms {}",
                t.elapsed().as_secs_f64() * 1e3,
                if f2 == found { "same" } else { "DIFFERENT" }
            );
        }
        println!();
    }
    for e in std::fs::read_dir(root.join("accounts/a/index")).unwrap() {
        let e = e.unwrap();
        println!("{:40} {:>10}", e.file_name().to_string_lossy(), e.metadata().unwrap().len());
    }
}
