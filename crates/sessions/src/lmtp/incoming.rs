//! A message on its way in: received once, into the spool of one account, whoever it is for.

use model::Result;
use sha2::{Digest, Sha256};
use store::{Account, MessageWriter, PendingMessage};

use super::reply::{Reply, of_error, too_large};
use super::{OverQuota, TRACE_BYTES_MAX};

/// What has come of a message. What is wrong with it is kept until its end has been read: before, nobody listens (RFC 5321 §4.1.1.4).
pub(super) struct Incoming {
    state: std::result::Result<MessageWriter, Failure>,
    octets: u64,
    message_bytes_max: u64,
    /// Of what the client sent, where it is wanted.
    digest: Option<Sha256>,
}

/// A message that came whole.
pub(super) struct Complete {
    pub(super) message: PendingMessage,
    /// The digest of what the client sent, where it was wanted.
    pub(super) digest: Option<[u8; 32]>,
}

/// Why a message cannot be taken.
pub(super) struct Failure {
    /// For the client.
    pub(super) reply: Reply,
    /// For the log.
    pub(super) error: Option<model::Error>,
}

impl From<model::Error> for Failure {
    fn from(error: model::Error) -> Failure {
        // A spool has no quota.
        Failure { reply: of_error(&error, OverQuota::default()), error: Some(error) }
    }
}

impl Incoming {
    /// A message of at most `message_bytes_max` octets, behind `fields`.
    pub(super) fn new(spool: &Account, fields: &str, message_bytes_max: u64, with_digest: bool) -> Result<Incoming> {
        let mut writer = spool.message_writer()?;
        writer.write(fields.as_bytes())?;
        let digest = with_digest.then(Sha256::new);
        Ok(Incoming { state: Ok(writer), octets: 0, message_bytes_max, digest })
    }

    /// One that there is no room for.
    pub(super) fn failed(error: model::Error) -> Incoming {
        Incoming { state: Err(error.into()), octets: 0, message_bytes_max: 0, digest: None }
    }

    pub(super) fn write(&mut self, bytes: &[u8]) {
        self.octets = self.octets.saturating_add(bytes.len() as u64);
        let Ok(writer) = &mut self.state else { return };
        if let Some(digest) = &mut self.digest {
            digest.update(bytes);
        }
        if self.octets > self.message_bytes_max {
            // What there is of it is given back at once.
            self.state = Err(Failure { reply: too_large(), error: None });
        } else if let Err(error) = writer.write(bytes) {
            self.state = Err(error.into());
        }
    }

    /// What is wrong with it so far.
    pub(super) fn failure(&self) -> Option<&Reply> {
        self.state.as_ref().err().map(|failure| &failure.reply)
    }

    /// That was all of it.
    pub(super) fn finish(self) -> std::result::Result<Complete, Failure> {
        let digest = self.digest.map(|digest| digest.finalize().into());
        Ok(Complete { message: self.state?.finish()?, digest })
    }
}

/// The largest message that a client may send, octets: with what is put on top the store still takes it.
pub(super) fn message_bytes_max(of_store: u64) -> u64 {
    of_store.saturating_sub(TRACE_BYTES_MAX).max(1)
}
