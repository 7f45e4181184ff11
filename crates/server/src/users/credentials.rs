//! From a password to what is stored of it: an argon2id hash (RFC 9106) and SCRAM-SHA-256 keys (RFC 5802 §3, RFC 7677).

use std::fmt;
use std::str::FromStr;

use argon2::Argon2;
use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use hmac::{Hmac, KeyInit, Mac};
use model::{Error, ErrorKind, Result};
use platform::Random;
use sha2::{Digest, Sha256};

/// Rounds of PBKDF2 in new SCRAM keys. RFC 7677 §4 asks for 4096 at least; a client computes this in some ten milliseconds.
pub const SCRAM_ITERATIONS: u32 = 32_768;
/// Longest password, octets.
pub const PASSWORD_BYTES_MAX: usize = 1024;
const SALT_BYTES: usize = 16;

/// What is stored of a password.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// An argon2id hash in PHC format, `$argon2id$v=19$m=…,t=…,p=…$salt$hash`.
    pub argon2id: String,
    /// The SCRAM-SHA-256 keys.
    pub scram: ScramSecrets,
}

/// SCRAM-SHA-256 keys. Written as `iterations:salt:StoredKey:ServerKey`, the last three in base64.
#[derive(Clone, PartialEq, Eq)]
pub struct ScramSecrets {
    /// Random octets.
    pub salt: Vec<u8>,
    /// Rounds of PBKDF2.
    pub iterations: u32,
    /// H(HMAC(SaltedPassword, "Client Key")).
    pub stored_key: [u8; 32],
    /// HMAC(SaltedPassword, "Server Key").
    pub server_key: [u8; 32],
}

/// Without the secrets, so that no log has them.
impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials")
    }
}

impl Credentials {
    /// Hashes a password; takes tens of milliseconds and 19 MiB. [`ErrorKind::Invalid`] for a password that cannot be typed the same
    /// way twice (SASLprep, RFC 4013), an empty one or one that is too long.
    pub fn new(password: &str, random: &dyn Random) -> Result<Self> {
        let password = prepared(password).ok_or_else(|| {
            Error::new(
                ErrorKind::Invalid,
                format!("a password has 1 to {PASSWORD_BYTES_MAX} octets and no control characters"),
            )
        })?;
        let mut salt = [0; SALT_BYTES];
        random.fill(&mut salt);
        let hash: PasswordHash = Argon2::default()
            .hash_password_with_salt(password.as_bytes(), &salt)
            .map_err(|error| Error::new(ErrorKind::Invalid, format!("argon2id: {error}")))?;
        random.fill(&mut salt);
        Ok(Credentials {
            argon2id: hash.to_string(),
            scram: ScramSecrets::derive(password.as_bytes(), &salt, SCRAM_ITERATIONS),
        })
    }

    /// Whether `password` is the one. Takes as long for a wrong password as for the right one.
    pub fn verify(&self, password: &str) -> bool {
        let Ok(hash) = PasswordHash::new(&self.argon2id) else { return false };
        // A password that can be nobody's still costs the same work.
        let prepared = prepared(password);
        let candidate = prepared.as_deref().unwrap_or_default();
        Argon2::default().verify_password(candidate.as_bytes(), &hash).is_ok() && prepared.is_some()
    }
}

/// SASLprep (RFC 4013), as RFC 5802 §5.1 asks for; `None` for what no password can be.
fn prepared(password: &str) -> Option<std::borrow::Cow<'_, str>> {
    if password.is_empty() || password.len() > PASSWORD_BYTES_MAX {
        return None;
    }
    stringprep::saslprep(password).ok()
}

impl ScramSecrets {
    fn derive(password: &[u8], salt: &[u8], iterations: u32) -> Self {
        let salted: [u8; 32] = pbkdf2::pbkdf2_hmac_array::<Sha256, 32>(password, salt, iterations);
        let client_key = hmac(&salted, b"Client Key");
        ScramSecrets {
            salt: salt.to_vec(),
            iterations,
            stored_key: Sha256::digest(client_key).into(),
            server_key: hmac(&salted, b"Server Key"),
        }
    }

    /// Keys that no password fits, always the same for the same `user`: what a client that asks for an unknown user is shown.
    pub fn decoy(key: &[u8], user: &str) -> Self {
        let part = |label: &str| hmac(key, format!("{label}\0{user}").as_bytes());
        ScramSecrets {
            salt: part("salt").into_iter().take(SALT_BYTES).collect(),
            iterations: SCRAM_ITERATIONS,
            stored_key: part("stored key"),
            server_key: part("server key"),
        }
    }
}

/// HMAC-SHA-256.
pub fn hmac(key: &[u8], text: &[u8]) -> [u8; 32] {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
    mac.update(text);
    mac.finalize().into_bytes().into()
}

impl fmt::Display for ScramSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [salt, stored, server] =
            [&self.salt[..], &self.stored_key, &self.server_key].map(|octets| BASE64.encode(octets));
        write!(f, "{}:{salt}:{stored}:{server}", self.iterations)
    }
}

impl FromStr for ScramSecrets {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut parts = text.split(':');
        let mut next = || parts.next().ok_or("scram-sha-256 has four parts");
        let iterations = next()?.parse().map_err(|_| "the iterations of scram-sha-256 are no number")?;
        let mut octets = || BASE64.decode(next()?).map_err(|_| "scram-sha-256 is no base64");
        let salt = octets()?;
        let mut key = || octets()?.try_into().map_err(|_| "a key of scram-sha-256 has no 32 octets");
        let secrets = ScramSecrets { salt, iterations, stored_key: key()?, server_key: key()? };
        if iterations < 4096 {
            return Err("scram-sha-256 has fewer than 4096 iterations (RFC 7677 §4)");
        }
        Ok(secrets)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_rfc_7677() {
        // RFC 7677 §3: user "user", password "pencil"; the server signature proves the server key.
        let salt = BASE64.decode("W22ZaJ0SNY7soEsUEjb6gQ==").unwrap();
        let secrets = ScramSecrets::derive(b"pencil", &salt, 4096);
        let auth_message = "n=user,r=rOprNGfwEbeRWgbNEkqO,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
                            s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
        let signature = hmac(&secrets.server_key, auth_message.as_bytes());
        assert_eq!(BASE64.encode(signature), "6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=");
        // The client's proof XOR its signature is the client key, whose hash is the stored key.
        let proof = BASE64.decode("dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=").unwrap();
        let client_signature = hmac(&secrets.stored_key, auth_message.as_bytes());
        let client_key: Vec<u8> = proof.iter().zip(client_signature).map(|(a, b)| a ^ b).collect();
        assert_eq!(<[u8; 32]>::from(Sha256::digest(client_key)), secrets.stored_key);
        assert!(secrets.to_string().parse() == Ok(secrets));
    }

    #[test]
    fn only_the_password_fits() {
        let credentials = Credentials::new("p\u{e4}ss word", &platform::real::RealRandom).unwrap();
        assert!(credentials.argon2id.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{}", credentials.argon2id);
        assert!(credentials.verify("p\u{e4}ss word"));
        assert!(credentials.verify("pa\u{308}ss word"), "the same characters, typed otherwise");
        for wrong in ["", "p\u{e4}ss wor", "p\u{e4}ss word ", "\u{7}"] {
            assert!(!credentials.verify(wrong), "{wrong:?}");
        }
    }

    #[test]
    fn impossible_passwords_are_refused() {
        for bad in [String::new(), "a\nb".into(), "x".repeat(PASSWORD_BYTES_MAX + 1)] {
            assert!(Credentials::new(&bad, &platform::real::RealRandom).is_err());
        }
        assert!(Credentials::new(&"x".repeat(PASSWORD_BYTES_MAX), &platform::real::RealRandom).is_ok());
    }

    #[test]
    fn broken_scram_lines_are_refused() {
        for bad in ["", "4096", "4096:AA==:AA==:AA==", "x:::", "4096:!:!:!"] {
            assert!(bad.parse::<ScramSecrets>().is_err(), "{bad}");
        }
    }

    #[test]
    fn decoys_are_steady_and_differ() {
        assert_eq!(ScramSecrets::decoy(b"k", "a").to_string(), ScramSecrets::decoy(b"k", "a").to_string());
        assert_ne!(ScramSecrets::decoy(b"k", "a").salt, ScramSecrets::decoy(b"k", "b").salt);
        assert_ne!(ScramSecrets::decoy(b"k", "a").salt, ScramSecrets::decoy(b"j", "a").salt);
    }
}
