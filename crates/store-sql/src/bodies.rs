//! An object store (S3, or what speaks like it) for the bodies of messages: put, read in ranges, removed.
//!
//! An object is called `PREFIX/ACCOUNT/DIGEST-GENERATION`: what lies there never changes. Which objects there are, and which of them are
//! used, is in the database (`objects`).

use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use index::PendingMessage;
use model::{Error, ErrorKind, Result};
use object_store::aws::AmazonS3Builder;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt as _, PutPayload, RetryConfig};

use crate::http::Http;
use crate::runtime::Runtime;

/// Octets that are read at a time.
const PIECE_BYTES: u64 = 4 << 20;
/// Octets of a part of an object that is put in parts; S3 wants at least 5 MiB.
const PART_BYTES: u64 = 8 << 20;

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
    pub(crate) above: u32,
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

fn invalid(what: impl fmt::Display) -> Error {
    Error::new(ErrorKind::Invalid, format!("the object store for bodies: {what}"))
}

fn failed(doing: &str, error: &object_store::Error) -> Error {
    Error::new(ErrorKind::Io, format!("{doing}: the object store: {error}"))
}

impl Bodies {
    /// Nothing is asked yet. [`ErrorKind::Invalid`]: an address that cannot be one, or no credentials.
    pub fn open(settings: &BodySettings) -> Result<Arc<Bodies>> {
        let rest =
            settings.url.strip_prefix("s3://").ok_or_else(|| invalid("its address has to be s3://BUCKET/PREFIX"))?;
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let (id, secret) = credentials(settings)?;
        let retry = RetryConfig { retry_timeout: settings.retry, ..RetryConfig::default() };
        let has_tls = !settings.endpoint.starts_with("http://");
        let mut builder = AmazonS3Builder::new()
            .with_bucket_name(bucket)
            .with_region(&settings.region)
            .with_access_key_id(id)
            .with_secret_access_key(secret)
            .with_allow_http(!has_tls)
            .with_retry(retry)
            .with_http_connector(Http { has_tls });
        if !settings.endpoint.is_empty() {
            builder = builder.with_endpoint(&settings.endpoint);
        }
        let store = builder.build().map_err(invalid)?;
        Self::on(Arc::new(store), prefix, settings)
    }

    /// On a store that was opened elsewhere.
    pub fn on(store: Arc<dyn ObjectStore>, prefix: &str, settings: &BodySettings) -> Result<Arc<Bodies>> {
        let prefix = Path::parse(prefix).map_err(invalid)?;
        let (above, grace) = (settings.above, settings.grace);
        // Each answer is waited for so long, and asked for again within `retry`.
        let timeout = settings.timeout + settings.retry;
        Ok(Arc::new(Bodies { store, prefix, above, grace, timeout, runtime: Runtime::new("sql-bodies")? }))
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
        const DOING: &str = "storing a body";
        let (store, path) = (Arc::clone(&self.store), self.path(account, name));
        let end = u64::from(message.len());
        let read = |at: u64| {
            let mut part = vec![0; PART_BYTES.min(end - at) as usize];
            message.read_at(at, &mut part)?;
            Ok::<_, Error>(PutPayload::from(part))
        };
        if end - from <= PART_BYTES {
            let octets = read(from)?;
            return self.run(DOING, async move { store.put(&path, octets).await.map(drop) });
        }
        let mut upload = self.run(DOING, async move { store.put_multipart(&path).await })?;
        let mut at = from;
        while at < end {
            let octets = read(at)?;
            at += octets.content_length() as u64;
            upload = self.run(DOING, async move { upload.put_part(octets).await.map(|()| upload) })?;
        }
        self.run(DOING, async move { upload.complete().await.map(drop) })
    }

    /// Reads a range, in pieces.
    pub(crate) fn read(
        &self,
        account: u64,
        name: &ObjectName,
        range: Range<u64>,
        sink: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let path = self.path(account, name);
        let mut at = range.start;
        while at < range.end {
            let piece = at..range.end.min(at + PIECE_BYTES);
            let wanted = piece.end - piece.start;
            let (store, path, lost) = (Arc::clone(&self.store), path.clone(), path.clone());
            let octets = self.runtime.wait({
                let timeout = self.timeout;
                async move {
                    match tokio::time::timeout(timeout, store.get_range(&path, piece)).await {
                        Ok(Err(object_store::Error::NotFound { .. })) => {
                            Err(Error::new(ErrorKind::Corrupt, format!("the object {lost} is missing")))
                        }
                        Ok(result) => result.map_err(|error| failed("reading a body", &error)),
                        Err(_) => Err(Error::new(ErrorKind::Io, "reading a body: the object store does not answer")),
                    }
                }
            })?;
            if octets.len() as u64 != wanted {
                return Err(Error::new(ErrorKind::Corrupt, "an object is too short"));
            }
            sink(&octets)?;
            at += wanted;
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
