//! Bodies in an object store: several nodes, failures, the sweep, and what comes back while it runs.
#![allow(clippy::unwrap_used)]

extern crate mailyard_store_sql as store_sql;

#[path = "support/mariadb.rs"]
mod mariadb;
#[path = "support/nodes.rs"]
mod nodes;

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use model::{ErrorKind, SystemFlag};
use nodes::{Node, add_flag, append, contents, impatient, inbox, settings};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, ObjectStoreExt as _,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use store_sql::{Bodies, BodySettings, Settings};

/// An object store in memory that can be away, and that does something once when an object was put.
#[derive(Default)]
struct Shelf {
    inner: InMemory,
    is_away: AtomicBool,
    once_put: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl std::fmt::Debug for Shelf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Shelf")
    }
}

impl std::fmt::Display for Shelf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Shelf")
    }
}

impl Shelf {
    fn ask(&self) -> Result<()> {
        match self.is_away.load(Ordering::Relaxed) {
            true => Err(object_store::Error::Generic { store: "Shelf", source: "away".into() }),
            false => Ok(()),
        }
    }
}

#[async_trait::async_trait]
impl ObjectStore for Shelf {
    async fn put_opts(&self, path: &Path, octets: PutPayload, options: PutOptions) -> Result<PutResult> {
        self.ask()?;
        let result = self.inner.put_opts(path, octets, options).await;
        let once = self.once_put.lock().unwrap().take();
        if let Some(once) = once {
            once();
        }
        result
    }

    async fn put_multipart_opts(&self, path: &Path, options: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        self.ask()?;
        self.inner.put_multipart_opts(path, options).await
    }

    async fn get_opts(&self, path: &Path, options: GetOptions) -> Result<GetResult> {
        self.ask()?;
        self.inner.get_opts(path, options).await
    }

    fn delete_stream(&self, paths: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        match self.ask() {
            Ok(()) => self.inner.delete_stream(paths),
            Err(error) => futures_util::stream::once(async { Err(error) }).boxed(),
        }
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}

/// Bodies of ten octets and more go to the shelf; what nobody refers to is swept at once.
fn bodies(shelf: &Arc<Shelf>) -> Arc<Bodies> {
    let settings = BodySettings {
        url: String::new(),
        endpoint: String::new(),
        region: String::new(),
        credentials: None,
        above: 10,
        grace: Duration::ZERO,
        timeout: Duration::from_secs(60),
        retry: Duration::from_secs(60),
    };
    Bodies::on(Arc::clone(shelf) as Arc<dyn ObjectStore>, "mail", &settings).unwrap()
}

fn on(shelf: &Arc<Shelf>, settings: Settings) -> Node {
    Node::new(Settings { bodies: Some(bodies(shelf)), ..settings })
}

fn objects(shelf: &Shelf) -> usize {
    futures_util::stream::StreamExt::count(shelf.inner.list(None)).now()
}

/// The end of something that never waits.
trait Now: Future + Sized {
    fn now(self) -> Self::Output {
        let mut future = std::pin::pin!(self);
        match future.as_mut().poll(&mut std::task::Context::from_waker(std::task::Waker::noop())) {
            std::task::Poll::Ready(value) => value,
            std::task::Poll::Pending => panic!("it waits"),
        }
    }
}

impl<F: Future> Now for F {}

const TEXT: &str = "Subject: one\r\n\r\nthis is a body that is long enough\r\n";
const SMALL: &str = "Subject: two\r\n\r\nsmall\r\n";

#[test]
fn bodies_lie_in_the_object_store_for_all_nodes() {
    let url = mariadb::fresh_database();
    let (server, name) = (mariadb::shared(), mariadb::database_of(&url));
    let shelf = Arc::<Shelf>::default();
    let (a, b) = (on(&shelf, settings(&url)), on(&shelf, settings(&url)));
    let (on_a, on_b) = (a.ann(), b.ann());
    let id = inbox(&on_a);
    append(&on_a, id, TEXT).unwrap();
    append(&on_a, id, SMALL).unwrap();
    // Larger than a part, and longer than what is read at once.
    let large = format!("Subject: three\r\n\r\n{}", "0123456789abcde\n".repeat(1 << 20));
    append(&on_b, id, &large).unwrap();
    assert_eq!(server.query(name, "SELECT COUNT(*) FROM body"), "1\n");
    assert_eq!(objects(&shelf), 2);
    let expected = [(1, TEXT.to_owned()), (2, SMALL.to_owned()), (3, large.clone())];
    for account in [&on_a, &on_b] {
        assert_eq!(contents(account, id), expected);
        assert_eq!(account.check().unwrap().findings, []);
    }
    // Any range.
    let entry = on_b.view(id, false).unwrap().all_rows().nth(2).unwrap();
    let read = |range: Range<u64>| {
        let mut octets = Vec::new();
        on_b.reader().read(entry.email_id, range, &mut octets).unwrap();
        String::from_utf8(octets).unwrap()
    };
    for range in [0..10, 15..40, 5_000_000..5_000_100, 16_777_200..u64::MAX] {
        let end = range.end.min(large.len() as u64);
        assert_eq!(read(range.clone()), large[range.start as usize..end as usize]);
    }
    // The same octets are put once.
    append(&on_b, id, &TEXT.replace("one", "again")).unwrap();
    assert_eq!(objects(&shelf), 2);
    assert_eq!(server.query(name, "SELECT COUNT(*) FROM object WHERE unused_since IS NULL"), "2\n");
    // A node that knows no object store says so.
    let other = Node::new(settings(&url));
    let mut octets = Vec::new();
    let ann = other.ann();
    let first = ann.view(id, false).unwrap().all_rows().next().unwrap();
    let error = ann.reader().read(first.email_id, 0..u64::MAX, &mut octets).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io, "{error}");
    // A removed account leaves nothing.
    drop((on_a, on_b, ann, other));
    a.store.delete_account(&model::AccountName::new("ann").unwrap()).unwrap();
    assert_eq!(objects(&shelf), 0);
    assert_eq!(server.query(name, "SELECT COUNT(*) FROM object"), "0\n");
}

#[test]
fn an_object_store_that_is_away() {
    let url = mariadb::fresh_database();
    let shelf = Arc::<Shelf>::default();
    let node = on(&shelf, impatient(&url));
    let ann = node.ann();
    let id = inbox(&ann);
    append(&ann, id, TEXT).unwrap();
    node.database.check().unwrap();
    shelf.is_away.store(true, Ordering::Relaxed);
    assert_eq!(append(&ann, id, &format!("{TEXT}more")).unwrap_err().kind(), ErrorKind::Io);
    assert_eq!(node.database.check().unwrap_err().kind(), ErrorKind::Io);
    let first = ann.view(id, false).unwrap().all_rows().next().unwrap();
    let mut octets = Vec::new();
    assert_eq!(ann.reader().read(first.email_id, 0..u64::MAX, &mut octets).unwrap_err().kind(), ErrorKind::Io);
    // What needs no body goes on.
    append(&ann, id, SMALL).unwrap();
    shelf.is_away.store(false, Ordering::Relaxed);
    append(&ann, id, &format!("{TEXT}more")).unwrap();
    let expected = [(1, TEXT.to_owned()), (2, SMALL.to_owned()), (3, format!("{TEXT}more"))];
    assert_eq!(contents(&ann, id), expected);
}

#[test]
fn what_is_unused_is_swept_and_what_comes_back_is_put_anew() {
    let url = mariadb::fresh_database();
    let (server, name) = (mariadb::shared(), mariadb::database_of(&url));
    let shelf = Arc::<Shelf>::default();
    // Each node looks for what is to be swept with its first maintenance.
    let maintained = || {
        let node = on(&shelf, settings(&url));
        let ann = node.ann();
        // Who sweeps has to be the writer.
        let id = inbox(&ann);
        add_flag(&ann, id, 1, SystemFlag::Seen).unwrap();
        ann.create_mailbox(&model::MailboxName::new("x").unwrap(), &[]).unwrap();
        ann.delete_mailbox(&model::MailboxName::new("x").unwrap()).unwrap();
        while node.store.maintain().unwrap() {}
    };
    let node = on(&shelf, settings(&url));
    let ann = node.ann();
    let id = inbox(&ann);
    append(&ann, id, SMALL).unwrap();
    append(&ann, id, TEXT).unwrap();
    append(&ann, id, &TEXT.replace("one", "another")).unwrap();
    let expunge = |account: &store::Account, uid: u32| {
        add_flag(account, id, uid, SystemFlag::Deleted).unwrap();
        account.expunge(id, None).unwrap();
        // As if it had been long ago.
        server.query(name, "UPDATE expunged SET expunged_at = 1");
    };
    expunge(&ann, 2);
    drop((ann, node));
    maintained();
    assert_eq!(objects(&shelf), 1, "another message has it");
    let node = on(&shelf, settings(&url));
    let ann = node.ann();
    expunge(&ann, 3);
    drop((ann, node));
    maintained();
    assert_eq!(objects(&shelf), 0);
    assert_eq!(server.query(name, "SELECT COUNT(*) FROM object, doomed_object"), "0\n");
    // The same octets again: they are put again.
    let node = on(&shelf, settings(&url));
    let ann = node.ann();
    let uid = append(&ann, id, TEXT).unwrap();
    assert_eq!((uid, objects(&shelf)), (4, 1));
    // A removal that was begun before it came back finds another name.
    server.query(name, "INSERT INTO doomed_object SELECT account, digest, generation + 1 FROM object");
    drop((ann, node));
    maintained();
    let node = on(&shelf, settings(&url));
    assert_eq!(contents(&node.ann(), id), [(1, SMALL.to_owned()), (4, TEXT.to_owned())]);
}

#[test]
fn what_is_swept_before_a_commit_refers_to_it_is_put_anew() {
    let url = mariadb::fresh_database();
    let (server, name) = (mariadb::shared(), mariadb::database_of(&url).to_owned());
    let shelf = Arc::<Shelf>::default();
    let (node, other) = (on(&shelf, settings(&url)), on(&shelf, settings(&url)));
    let ann = node.ann();
    let id = inbox(&ann);
    // As long as a commit may take is no time for who sweeps: nothing is kept here that nothing refers to.
    *shelf.once_put.lock().unwrap() = Some(Box::new(move || assert_eq!(other.database.sweep().unwrap(), 1)));
    append(&ann, id, TEXT).unwrap();
    assert!(shelf.once_put.lock().unwrap().is_none());
    assert_eq!(contents(&ann, id), [(1, TEXT.to_owned())]);
    assert_eq!(node.database.sweep().unwrap(), 0, "it is used");
    assert_eq!((contents(&ann, id).len(), objects(&shelf)), (1, 1));
    // What a node has left that died before its commit goes.
    server.query(
        &name,
        "INSERT INTO object SELECT account, digest, generation + 1, octets, 0, 1 FROM object; \
         INSERT INTO doomed_object SELECT account, digest, generation + 2 FROM object WHERE referred > 0",
    );
    assert_eq!(node.database.sweep().unwrap(), 2);
    assert_eq!(server.query(&name, "SELECT COUNT(*) FROM object"), "1\n");
    assert_eq!(contents(&ann, id), [(1, TEXT.to_owned())]);
}

#[test]
fn objects_that_are_damaged_or_missing_are_told() {
    let url = mariadb::fresh_database();
    let shelf = Arc::<Shelf>::default();
    let node = on(&shelf, settings(&url));
    let ann = node.ann();
    let id = inbox(&ann);
    append(&ann, id, &format!("Subject: long\r\n\r\n{}", "0123456789abcde\n".repeat(150_000))).unwrap();
    let email = ann.view(id, false).unwrap().all_rows().next().unwrap().email_id;
    let read = |range: Range<u64>| {
        let mut octets = Vec::new();
        ann.reader().read(email, range, &mut octets).map(|()| octets.len())
    };
    let path = shelf.inner.list(None).next().now().unwrap().unwrap().location;
    let mut octets = shelf.inner.get(&path).now().unwrap().bytes().now().unwrap().to_vec();
    octets[1_500_000] ^= 1;
    shelf.inner.put(&path, octets.clone().into()).now().unwrap();
    // Only what is right is given away, and nothing of a piece that is not.
    assert_eq!(read(100..1_000_000).unwrap(), 999_900);
    assert_eq!(read(1_200_000..1_200_010).unwrap_err().kind(), ErrorKind::Corrupt);
    assert_eq!(read(0..u64::MAX).unwrap_err().kind(), ErrorKind::Corrupt);
    assert_eq!(ann.check().unwrap().findings.len(), 1);
    octets.truncate(1_400_000);
    shelf.inner.put(&path, octets.into()).now().unwrap();
    assert_eq!(read(1_200_000..1_200_010).unwrap_err().kind(), ErrorKind::Corrupt);
    shelf.inner.delete(&path).now().unwrap();
    assert_eq!(read(100..200).unwrap_err().kind(), ErrorKind::Corrupt);
}
