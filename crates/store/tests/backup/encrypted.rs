//! Encrypted backups: what is needed for what, who can read them, and what damage costs.

use super::*;
use store::backup::{Identities, Recipients};

/// Two pairs of keys that nobody else uses.
const KEYS: [(&str, &str); 2] = [
    (
        "age15lxge20uxmmer0rantv3sjf67fucdaaqyw9ztglg0nepe59htghs465prn",
        "AGE-SECRET-KEY-1AZ9R3NVF7U8LXSLYRZ55NARRPJSCCRYL8VHQG84D8038FESTX6YQT5GPGM",
    ),
    (
        "age1pa4zn6sptvxfvwaf3thpfphc5f2st0nwcshcfk2lq87aqm9areeseyeeg0",
        "AGE-SECRET-KEY-18WRZTYHAL4WWQJWM83QUYGYVNTKVSXM0RT5Z7RSAPGL5VRRE2P3SPNUC7G",
    ),
];

/// To the first.
pub fn recipients() -> Option<Recipients> {
    Recipients::parse(&[KEYS[0].0]).unwrap()
}

/// Of the first.
pub fn identities() -> Identities {
    Identities::parse(KEYS[0].1.as_bytes()).unwrap()
}

fn to(sim: &SimEnv, keys: &[(&str, &str)]) -> Repository {
    let texts: Vec<&str> = keys.iter().map(|key| key.0).collect();
    Repository::create(sim.env(), Path::new("/backup"), Recipients::parse(&texts).unwrap()).unwrap()
}

fn by(sim: &SimEnv, key: (&str, &str)) -> Repository {
    let identities = Identities::parse(format!("# of somebody\n{}\n", key.1).as_bytes()).unwrap();
    Repository::open(sim.env(), Path::new("/backup")).unwrap().with_identities(Some(identities))
}

fn whole(account: &str) -> RestoreOptions {
    RestoreOptions { account: name(account), mailbox: None, into: None }
}

fn go_on(_: u64, _: u64) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn filled(sim: &SimEnv) -> (Arc<Store>, Arc<Account>, MailboxId) {
    let (store, account, inbox) = with_account(sim);
    for number in 1..=60 {
        append(&account, inbox, number, 3000).unwrap();
        store.maintain().unwrap();
    }
    (store, account, inbox)
}

#[test]
fn each_recipient_reads_it_and_nobody_else() {
    let sim = SimEnv::new(20);
    let (store, account, inbox) = filled(&sim);
    let before = observe(&account);
    let first = save_into(&to(&sim, &KEYS), &account).unwrap();
    assert!(first.snapshot.all_files().all(|file| file.is_encrypted()));
    for (number, key) in KEYS.into_iter().enumerate() {
        let new = format!("new{number}");
        let report = store.restore_backup(&by(&sim, key), &first.snapshot, &whole(&new), &mut go_on).unwrap();
        assert_eq!((report.damaged, report.restored), (vec![], 60));
        assert_eq!(observe(&store.account(&name(&new)).unwrap()), before);
    }

    // What is known is not copied again; no secret key is at hand for that.
    append(&account, inbox, 61, 500).unwrap();
    let second = save_into(&to(&sim, &KEYS), &account).unwrap();
    assert!(second.copied_bytes < first.copied_bytes / 4 && second.copied_files <= 2, "{second:?}");

    // Other recipients: all of it anew, for them. The first key does not open it.
    let third = save_into(&to(&sim, &KEYS[1..]), &account).unwrap();
    assert_eq!(third.copied_files, third.snapshot.files.len() as u64);
    let error = store.restore_backup(&by(&sim, KEYS[0]), &third.snapshot, &whole("bob"), &mut go_on).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("none of the identities opens it"), "{error}");
    assert!(!store.accounts().unwrap().contains(&name("bob")));
    assert!(
        by(&sim, KEYS[0]).verify(&name("ann"), &mut go_on).unwrap_err().to_string().contains("none of the identities")
    );
    let verified = by(&sim, KEYS[1]).verify(&name("ann"), &mut go_on).unwrap();
    assert_eq!((verified.findings, verified.snapshots), (vec![], 3));
    store.restore_backup(&by(&sim, KEYS[1]), &third.snapshot, &whole("bob"), &mut go_on).unwrap();
    assert_eq!(observe(&store.account(&name("bob")).unwrap()), observe(&account));
}

#[test]
fn a_directory_is_encrypted_or_not() {
    let sim = SimEnv::new(21);
    let (store, account, _) = filled(&sim);
    let snapshot = save_into(&to(&sim, &KEYS), &account).unwrap().snapshot;
    let without = Repository::open(sim.env(), Path::new("/backup")).unwrap();
    let error = Repository::create(sim.env(), Path::new("/backup"), None).unwrap_err();
    assert!(error.to_string().contains("recipients are missing"), "{error}");
    let error = store.restore_backup(&without, &snapshot, &whole("bob"), &mut go_on).unwrap_err();
    assert!(error.kind() == ErrorKind::Invalid && error.to_string().contains("an identity is needed"), "{error}");
    // Listing, comparing and forgetting need no key.
    assert_eq!(without.snapshots(&name("ann")).unwrap(), [snapshot]);
    assert_eq!(without.verify(&name("ann"), &mut go_on).unwrap().findings, []);
    save_into(&to(&sim, &KEYS), &account).unwrap();
    assert_eq!(without.forget(&name("ann"), 1).unwrap().len(), 1);
    assert_eq!(findings(&sim), []);

    let plain = Path::new("/plain");
    save_into(&Repository::create(sim.env(), plain, None).unwrap(), &account).unwrap();
    let error = Repository::create(sim.env(), plain, recipients()).unwrap_err();
    assert!(error.to_string().contains("are not encrypted"), "{error}");
    // Identities that are not needed do no harm.
    let plain = Repository::open(sim.env(), plain).unwrap().with_identities(Some(identities()));
    assert_eq!(plain.verify(&name("ann"), &mut go_on).unwrap().findings, []);
}

#[test]
fn nothing_of_a_message_can_be_read() {
    let sim = SimEnv::new(22);
    let store = open(&sim);
    let root = PathBuf::from("/home/ann/Maildir");
    let format = AccountFormat::Maildir { root: root.clone(), layout: MaildirLayout::default() };
    store.create_account_as(&name("ann"), &format).unwrap();
    let account = store.account(&name("ann")).unwrap();
    let inbox = account.mailbox(&MailboxName::inbox()).unwrap();
    let disk = sim.env().disk;
    disk.create_dir_all_durable(&root.join("new")).unwrap();
    let file = disk.open(&root.join("new/1.M1.host"), platform::OpenMode::Create).unwrap();
    file.write_at(b"Subject: a very secret subject\n\nhidden\n", 0).unwrap();
    file.sync_data().unwrap();
    sim.clock.advance(Duration::from_secs(2));
    account.refresh(inbox).unwrap();
    account.create_mailbox(&mailbox("a very secret mailbox"), &[]).unwrap();
    let saved = save_into(&to(&sim, &KEYS), &account).unwrap();
    assert_eq!(saved.snapshot.octets.len(), 1);
    let dir = Path::new("/backup/accounts/ann/files");
    for entry in disk.list(dir).unwrap() {
        let bytes = disk.read(&dir.join(&entry.name)).unwrap();
        let has = |needle: &[u8]| bytes.windows(needle.len()).any(|window| window == needle);
        assert!(!has(b"secret") && !has(b"hidden"), "{:?}", entry.name);
        let is_list = entry.name.to_string_lossy().ends_with(".list");
        assert_eq!(bytes.starts_with(b"age-encryption.org/v1\n"), !is_list, "{:?}", entry.name);
    }
}

#[test]
fn damage_costs_what_it_hits() {
    let sim = SimEnv::new(23);
    let mut options = Options::default();
    options.log.tail_bytes_max = 1 << 20;
    options.log.merge_bytes_max = 16 << 20;
    let store = Store::open(sim.env(), PathBuf::from("/data"), options).unwrap();
    store.create_account(&name("ann")).unwrap();
    let account = store.account(&name("ann")).unwrap();
    let inbox = account.mailbox(&MailboxName::inbox()).unwrap();
    for number in 1..=60 {
        append(&account, inbox, number, 30_000).unwrap();
        store.maintain().unwrap();
    }
    let before = observe(&account);
    let snapshot = save_into(&to(&sim, &KEYS), &account).unwrap().snapshot;
    let dir = Path::new("/backup/accounts/ann/files");
    let segment = snapshot.files.iter().max_by_key(|file| file.len).unwrap();
    assert!(segment.len > 1 << 20, "it has many pieces: {}", segment.len);
    let path = dir.join(segment.stored_name());
    for (number, at) in [segment.len / 3, segment.len / 2, 300, segment.len - 1].into_iter().enumerate() {
        sim.disk.corrupt(&path, at, 1).unwrap();
        // With the key and without.
        let without = Repository::open(sim.env(), Path::new("/backup")).unwrap();
        for found in [findings(&sim), without.verify(&name("ann"), &mut go_on).unwrap().findings] {
            assert_eq!(found.len(), 1);
            assert_eq!((&found[0].file, &found[0].snapshots), (&path, &vec![snapshot.id.clone()]));
        }
        let options = RestoreOptions { mailbox: Some(MailboxName::inbox()), ..whole(&format!("new{number}")) };
        match store.restore_backup(&by(&sim, KEYS[0]), &snapshot, &options, &mut go_on) {
            // Where the key or the end is, all of the file is lost.
            Err(error) => assert!(number > 1 && error.kind() == ErrorKind::NotFound, "{number}: {error}"),
            Ok(report) => {
                assert!(!report.damaged.is_empty());
                let after = observe(&store.account(&options.account).unwrap());
                let (all, some) = (&before["INBOX"].1, &after["INBOX"].1);
                assert!(some.iter().all(|(uid, entry)| all[uid] == *entry));
                assert!(
                    some.len() < all.len() && (number > 1 || some.len() > all.len() / 2),
                    "{number}: {}",
                    some.len()
                );
            }
        }
        sim.disk.corrupt(&path, at, 1).unwrap();
    }
    assert_eq!(findings(&sim), []);
}
