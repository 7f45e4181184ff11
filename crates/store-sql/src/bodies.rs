//! An object store (S3, or what speaks like it) for the bodies of messages: put, read in ranges, removed.
//!
//! An object is called `PREFIX/ACCOUNT/DIGEST-GENERATION`: what lies there never changes. Which objects there are, and which of them are
//! used, is in the database (`objects`). Whatever is read is held against checksums that are there, too: an object is read in whole pieces
//! of [`CHECKED_BYTES`], whatever part of them is wanted.
//!
//! A store that is away, slow, full or closed to us is [`ErrorKind::Io`]: what was wanted can be tried again. An object that is missing, or
//! is not what was put, is [`ErrorKind::Corrupt`].

use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use index::PendingMessage;
use model::{Error, ErrorKind, Result};
use object_store::aws::AmazonS3Builder;
use object_store::path::Path;
use object_store::{BackoffConfig, MultipartUpload, ObjectStore, ObjectStoreExt as _, PutPayload, RetryConfig};

use crate::http::Http;
use crate::runtime::Runtime;

/// Octets that have one checksum. It is the table's format: it never changes.
pub(crate) const CHECKED_BYTES: u64 = 1 << 20;
/// Octets that are read at a time.
const READ_BYTES: u64 = 4 * CHECKED_BYTES;
/// Octets of a part of an object that is put in parts; S3 wants at least 5 MiB.
const PART_BYTES: u64 = 5 << 20;
/// Tries follow each other sooner and sooner after this pause, and then after the longer one.
const PAUSES: [Duration; 2] = [Duration::from_millis(50), Duration::from_secs(1)];

const STORING: &str = "storing a body";
const READING: &str = "reading a body";
/// S3's error code.
const NO_BUCKET: &str = "NoSuchBucket";

type Upload = Box<dyn MultipartUpload>;

/// Where bodies are put, and which.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BodySettings {
    /// `s3://BUCKET/PREFIX`.
    pub url: String,
    /// The service's address, `https://HOST:PORT`; empty: Amazon's of the region.
    pub endpoint: String,
    /// The region that requests are signed for.
    pub region: String,
    /// A file with lines `aws_access_key_id = …` and `aws_secret_access_key = …`; `None`: the environment has AWS_ACCESS_KEY_ID and
    /// AWS_SECRET_ACCESS_KEY.
    pub credentials: Option<PathBuf>,
    /// Smaller bodies stay in the database, octets.
    pub above: u32,
    /// How long an object stays when nothing refers to it: a database that is put back from a copy finds what it had then.
    pub grace: Duration,
    /// How long an answer may take.
    pub timeout: Duration,
    /// How long something is tried again.
    pub retry: Duration,
}

/// An object store, as this node uses it.
pub struct Bodies {
    store: Arc<dyn ObjectStore>,
    prefix: Path,
    above: u64,
    pub(crate) grace: Duration,
    timeout: Duration,
    runtime: Runtime,
}

impl fmt::Debug for Bodies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bodies({})", self.prefix)
    }
}

/// What an object is known by, within an account.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ObjectName {
    /// SHA-256 of its octets.
    pub(crate) digest: Vec<u8>,
    pub(crate) generation: u64,
}

/// Where the body of a message lies.
#[derive(Clone, Debug)]
pub(crate) struct Placed {
    pub(crate) name: ObjectName,
    pub(crate) octets: u64,
    /// CRC32Cs of its pieces of [`CHECKED_BYTES`].
    pub(crate) checksums: Vec<u32>,
}

fn invalid(what: impl fmt::Display) -> Error {
    Error::new(ErrorKind::Invalid, format!("the object store for bodies: {what}"))
}

fn failed(doing: &str, error: &object_store::Error) -> Error {
    let kind = match error {
        // A bucket that is not there is somebody's mistake, and no damage.
        object_store::Error::NotFound { source, .. } if doing == READING && !source.to_string().contains(NO_BUCKET) => {
            ErrorKind::Corrupt
        }
        _ => ErrorKind::Io,
    };
    Error::new(kind, format!("{doing}: the object store: {error}"))
}

impl Bodies {
    /// Nothing is asked yet. [`ErrorKind::Invalid`]: an address that cannot be one, or no credentials.
    pub fn open(settings: &BodySettings) -> Result<Arc<Bodies>> {
        let rest =
            settings.url.strip_prefix("s3://").ok_or_else(|| invalid("its address has to be s3://BUCKET/PREFIX"))?;
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let (id, secret) = credentials(settings)?;
        let backoff = BackoffConfig { init_backoff: PAUSES[0], max_backoff: PAUSES[1], ..BackoffConfig::default() };
        let retry = RetryConfig { retry_timeout: settings.retry, max_retries: usize::MAX, backoff };
        let has_tls = !settings.endpoint.starts_with("http://");
        let mut builder = AmazonS3Builder::new()
            .with_bucket_name(bucket)
            .with_region(&settings.region)
            .with_access_key_id(id)
            .with_secret_access_key(secret)
            .with_allow_http(!has_tls)
            .with_retry(retry)
            .with_http_connector(Http { has_tls, timeout: settings.timeout });
        if !settings.endpoint.is_empty() {
            builder = builder.with_endpoint(&settings.endpoint);
        }
        let store = builder.build().map_err(invalid)?;
        Self::on(Arc::new(store), prefix, settings)
    }

    /// On a store that was opened elsewhere.
    pub fn on(store: Arc<dyn ObjectStore>, prefix: &str, settings: &BodySettings) -> Result<Arc<Bodies>> {
        let prefix = Path::parse(prefix).map_err(invalid)?;
        let (above, grace) = (settings.above.max(1).into(), settings.grace);
        // Each answer is waited for so long, and asked for again within `retry`.
        let timeout = settings.timeout + settings.retry;
        Ok(Arc::new(Bodies { store, prefix, above, grace, timeout, runtime: Runtime::new("sql-bodies")? }))
    }

    /// Whether a body of so many octets is put here.
    pub(crate) fn takes(&self, octets: u64) -> bool {
        octets >= self.above
    }

    fn path(&self, account: u64, name: &ObjectName) -> Path {
        let digest: String = name.digest.iter().map(|byte| format!("{byte:02x}")).collect();
        let file = format!("{digest}-{:016x}", name.generation);
        self.prefix.clone().join(format!("{account:016x}")).join(file)
    }

    fn run<T: Send + 'static>(
        &self,
        doing: &'static str,
        future: impl Future<Output = object_store::Result<T>> + Send + 'static,
    ) -> Result<T> {
        let timeout = self.timeout;
        self.runtime.wait(async move {
            match tokio::time::timeout(timeout, future).await {
                Ok(result) => result.map_err(|error| failed(doing, &error)),
                Err(_) => Err(Error::new(ErrorKind::Io, format!("{doing}: the object store does not answer"))),
            }
        })
    }

    /// Puts the octets of a message from `from` on.
    pub(crate) fn put(&self, account: u64, name: &ObjectName, message: &PendingMessage, from: u64) -> Result<()> {
        let (store, path) = (Arc::clone(&self.store), self.path(account, name));
        let end = u64::from(message.len());
        let read = |at: u64| {
            let mut part = vec![0; PART_BYTES.min(end - at) as usize];
            message.read_at(at, &mut part)?;
            Ok::<_, Error>(PutPayload::from(part))
        };
        if end - from <= PART_BYTES {
            let octets = read(from)?;
            return self.run(STORING, async move { store.put(&path, octets).await.map(drop) });
        }
        let mut upload = self.run(STORING, async move { store.put_multipart(&path).await })?;
        let mut at = from;
        while at < end {
            let octets = read(at)?;
            at += octets.content_length() as u64;
            upload = self.put_part(upload, Some(octets))?;
        }
        self.put_part(upload, None).map(drop)
    }

    /// Puts the next part of an object, or with `None` ends it. One that fails is given up: parts that are not ended would stay.
    fn put_part(&self, mut upload: Upload, part: Option<PutPayload>) -> Result<Upload> {
        self.run(STORING, async move {
            let result = match part {
                Some(part) => upload.put_part(part).await,
                None => upload.complete().await.map(drop),
            };
            if result.is_err() {
                let _ = upload.abort().await;
            }
            result.map(|()| upload)
        })
    }

    /// Reads a range, and gives it in pieces.
    pub(crate) fn read(
        &self,
        account: u64,
        body: &Placed,
        range: Range<u64>,
        sink: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let path = self.path(account, &body.name);
        let mut at = range.start;
        while at < range.end {
            let first = at - at % CHECKED_BYTES;
            let end = range.end.min(first + READ_BYTES);
            let checked = first..end.next_multiple_of(CHECKED_BYTES).min(body.octets);
            let (store, asked) = (Arc::clone(&self.store), (path.clone(), checked.clone()));
            let octets = self.run(READING, async move { store.get_range(&asked.0, asked.1).await })?;
            let wanted = octets.get((at - first) as usize..(end - first) as usize);
            if octets.len() as u64 != checked.end - checked.start || !body.is_right(first, &octets) {
                return Err(Error::new(ErrorKind::Corrupt, format!("the object {path} is not what was put there")));
            }
            sink(wanted.ok_or_else(|| Error::new(ErrorKind::Corrupt, format!("the object {path} is too short")))?)?;
            at = end;
        }
        Ok(())
    }

    /// Removes an object; one that is not there is removed.
    pub(crate) fn remove(&self, account: u64, name: &ObjectName) -> Result<()> {
        let (store, path) = (Arc::clone(&self.store), self.path(account, name));
        self.run("removing a body", async move {
            match store.delete(&path).await {
                Err(object_store::Error::NotFound { .. }) => Ok(()),
                result => result,
            }
        })
    }

    /// Puts, reads and removes an object: an error, [`ErrorKind::Io`], unless all three can be done.
    pub fn check(&self) -> Result<()> {
        let (store, path) = (Arc::clone(&self.store), self.prefix.clone().join("check"));
        self.run("trying the object store", async move {
            store.put(&path, PutPayload::from_static(b"check")).await?;
            store.get_range(&path, 0..5).await?;
            store.delete(&path).await
        })
    }
}

impl Placed {
    /// Whether octets from `first` on, where a piece begins, are those that were put.
    fn is_right(&self, first: u64, octets: &[u8]) -> bool {
        let checksums = self.checksums.iter().skip((first / CHECKED_BYTES) as usize);
        let mut pieces = octets.chunks(CHECKED_BYTES as usize).zip(checksums);
        let count = octets.len().div_ceil(CHECKED_BYTES as usize);
        pieces.len() == count && pieces.all(|(piece, checksum)| crc32c::crc32c(piece) == *checksum)
    }
}

fn credentials(settings: &BodySettings) -> Result<(String, String)> {
    const NAMES: [&str; 2] = ["aws_access_key_id", "aws_secret_access_key"];
    let [id, secret] = match &settings.credentials {
        None => NAMES.map(|name| std::env::var(name.to_ascii_uppercase()).ok()),
        Some(file) => {
            let text = std::fs::read_to_string(file)
                .map_err(|error| invalid(format_args!("the file {} with its credentials: {error}", file.display())))?;
            NAMES.map(|name| {
                let values = text.lines().filter_map(|line| line.split_once('='));
                let mut values = values.filter(|(key, _)| key.trim() == name).map(|(_, value)| value.trim().to_owned());
                values.next()
            })
        }
    };
    id.zip(secret).ok_or_else(|| invalid(format_args!("its credentials {} and {} are not there", NAMES[0], NAMES[1])))
}
