//! Who can read a backup: to whom it is encrypted, with what it is opened, and what an account knows its own files again by.
//!
//! The format is age's (<https://age-encryption.org/v1>), so that its programs open every file of a backup without us. Encrypting takes
//! public keys only: the server that makes backups cannot read them.
//!
//! Invariant: neither a secret key nor the secret of an account is ever in a message, an error or the output of `Debug`.

use std::fmt;

use age::x25519;
use hmac::{Hmac, KeyInit, Mac};
use model::{Error, ErrorKind, Result};
use platform::Env;
use sha2::Sha256;

use crate::Account;

/// The account's annotation with its secret; see [`Marker`].
const SECRET_KEY: &str = "/private/vendor/mailyard/backup";
const SECRET_BYTES: usize = 32;
/// Octets of a mark.
pub(super) const MARK_BYTES: usize = 16;

/// To whom a backup is encrypted: each of them can read all of it.
#[derive(Clone)]
pub struct Recipients {
    keys: Vec<x25519::Recipient>,
    /// The same, sorted, each once: what two lists are compared by.
    texts: Vec<String>,
}

impl Recipients {
    /// Public keys, `age1...` (X25519). `None` when there are none; [`ErrorKind::Invalid`] when a text is no such key.
    pub fn parse(texts: &[impl AsRef<str>]) -> Result<Option<Recipients>> {
        let mut texts: Vec<String> = texts.iter().map(|text| text.as_ref().trim().to_owned()).collect();
        texts.sort_unstable();
        texts.dedup();
        let key = |text: &String| {
            // Somebody may have taken the secret key by mistake: it must not come into a log.
            let shown = if text.starts_with("age1") { text } else { "this" };
            let no_key =
                || format!("{shown} is no public key of age: they look like age1ql3z7hjy54pw3hyww5ayyfg7zqg...");
            text.parse::<x25519::Recipient>().map_err(|_| Error::new(ErrorKind::Invalid, no_key()))
        };
        let keys: Vec<_> = texts.iter().map(key).collect::<Result<_>>()?;
        Ok((!keys.is_empty()).then_some(Recipients { keys, texts }))
    }

    /// Begins a file. Its key and nonce are the operating system's random octets, also on a simulated disk.
    pub(super) fn encryptor(&self) -> Result<age::Encryptor> {
        age::Encryptor::with_recipients(self.keys.iter().map(|key| key as &dyn age::Recipient))
            .map_err(|error| Error::new(ErrorKind::Invalid, format!("encrypting: {error}")))
    }
}

impl fmt::Debug for Recipients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.texts).finish()
    }
}

/// What opens an encrypted backup: one secret key or several, any of which may fit.
pub struct Identities(Vec<Box<dyn age::Identity + Send + Sync>>);

impl Identities {
    /// What `age-keygen` writes: secret keys line by line, and comments. [`ErrorKind::Invalid`] when there is something else.
    pub fn parse(text: &[u8]) -> Result<Identities> {
        let invalid = |what: String| Error::new(ErrorKind::Invalid, what);
        if text.starts_with(b"age-encryption.org/") || text.starts_with(b"-----BEGIN AGE") {
            return Err(invalid("the identities are encrypted themselves: decrypt them with age -d first".to_owned()));
        }
        let file = age::IdentityFile::from_buffer(text).map_err(|error| invalid(error.to_string()))?;
        let identities = file.into_identities().map_err(|_| invalid("the identities cannot be used".to_owned()))?;
        match identities.is_empty() {
            true => Err(invalid("there is no secret key: they look like AGE-SECRET-KEY-1...".to_owned())),
            false => Ok(Identities(identities)),
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &dyn age::Identity> {
        self.0.iter().map(|identity| &**identity as &dyn age::Identity)
    }
}

impl fmt::Debug for Identities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} identities", self.0.len())
    }
}

/// Makes marks: what an account knows its files and messages again by in a backup that it cannot read.
///
/// A mark is HMAC-SHA-256 with a secret that the account keeps in its log, over the recipients and what is marked. So it tells nobody else
/// anything, not even whether two accounts have the same message; and where a backup goes to other recipients than before, nothing is
/// known again and all of it is copied anew, for them.
pub(super) struct Marker(Hmac<Sha256>);

impl Marker {
    /// Of an account, which is given a secret when it has none.
    pub(super) fn of(account: &Account, env: &Env, recipients: &Recipients) -> Result<Marker> {
        let known = account.inner.state().annotation(SECRET_KEY).map(<[u8]>::to_vec);
        let secret = match known.filter(|secret| secret.len() == SECRET_BYTES) {
            Some(secret) => secret,
            None => {
                let mut secret = vec![0; SECRET_BYTES];
                env.random.fill(&mut secret);
                account.commit(|transaction| transaction.annotate_account(SECRET_KEY, Some(&secret)))?;
                secret
            }
        };
        let mut hmac = Hmac::<Sha256>::new_from_slice(&secret).expect("HMAC takes keys of any length");
        for text in &recipients.texts {
            hmac.update(text.as_bytes());
            hmac.update(b"\n");
        }
        Ok(Marker(hmac))
    }

    /// The mark of something. Parts that come before the last one must have a length that is known, or say it.
    pub(super) fn mark(&self, parts: &[&[u8]]) -> [u8; MARK_BYTES] {
        let mut hmac = self.0.clone();
        parts.iter().for_each(|part| hmac.update(part));
        let whole = hmac.finalize().into_bytes();
        *whole.first_chunk().expect("SHA-256 has 32 octets")
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn keys_are_recognised() {
        let identity = x25519::Identity::generate();
        let public = identity.to_public().to_string();
        let recipients = Recipients::parse(&[&public, &format!(" {public}\n")]).unwrap().unwrap();
        assert_eq!((recipients.keys.len(), recipients.texts), (1, vec![public.clone()]));
        assert!(Recipients::parse(&[""; 0]).unwrap().is_none());

        use age::secrecy::ExposeSecret;
        let secret = identity.to_string().expose_secret().to_owned();
        let error = Recipients::parse(&[&secret]).unwrap_err();
        assert!(error.kind() == ErrorKind::Invalid && !error.to_string().contains(&secret), "{error}");
        assert!(Recipients::parse(&["age1short"]).unwrap_err().to_string().contains("age1short"));

        let file = format!("# created: today\n# public key: {public}\n{secret}\n");
        let identities = Identities::parse(file.as_bytes()).unwrap();
        assert_eq!(format!("{identities:?}"), "1 identities");
        for bad in ["", "# nothing\n", "AGE-SECRET-KEY-1\n", "age-encryption.org/v1\n-> scrypt x 18\n", "\u{fe}\n"] {
            assert_eq!(Identities::parse(bad.as_bytes()).unwrap_err().kind(), ErrorKind::Invalid, "{bad}");
        }
    }
}
