//! The channel binding `tls-server-end-point` (RFC 5929 §4): a hash of the server's certificate, by the hash function of the
//! certificate's signature.
//!
//! Of the certificate (X.509, RFC 5280 §4.1, in DER, X.690) only the way to the name of its signature algorithm is read.

use sha2::{Digest, Sha256, Sha384, Sha512};

const SEQUENCE: u8 = 0x30;
const OBJECT_IDENTIFIER: u8 = 0x06;

/// The binding for a certificate; `None` where its signature has no single hash function (Ed25519, RSASSA-PSS), for which RFC 5929
/// defines none.
pub fn binding(certificate: &[u8]) -> Option<Vec<u8>> {
    Some(match signature_hash(certificate)? {
        Hash::Sha256 => Sha256::digest(certificate).to_vec(),
        Hash::Sha384 => Sha384::digest(certificate).to_vec(),
        Hash::Sha512 => Sha512::digest(certificate).to_vec(),
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hash {
    Sha256,
    Sha384,
    Sha512,
}

/// Certificate ::= SEQUENCE { tbsCertificate SEQUENCE, signatureAlgorithm SEQUENCE { algorithm OBJECT IDENTIFIER, ... }, ... }
fn signature_hash(certificate: &[u8]) -> Option<Hash> {
    let (certificate, _) = element(certificate, SEQUENCE)?;
    let (_to_be_signed, rest) = element(certificate, SEQUENCE)?;
    let (algorithm, _) = element(rest, SEQUENCE)?;
    let (name, _) = element(algorithm, OBJECT_IDENTIFIER)?;
    // MD5 and SHA-1 are replaced by SHA-256 (RFC 5929 §4.1).
    match name {
        // 1.2.840.113549.1.1: md5, sha1, sha256, sha384, sha512 WithRSAEncryption (RFC 8017 appendix A.2.4)
        [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, last] => match last {
            4 | 5 | 11 => Some(Hash::Sha256),
            12 => Some(Hash::Sha384),
            13 => Some(Hash::Sha512),
            _ => None,
        },
        // 1.2.840.10045.4.1: ecdsa-with-SHA1; 4.3: ecdsa-with-SHA256, 384, 512 (RFC 5758 §3.2)
        [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x01] => Some(Hash::Sha256),
        [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, last] => match last {
            2 => Some(Hash::Sha256),
            3 => Some(Hash::Sha384),
            4 => Some(Hash::Sha512),
            _ => None,
        },
        _ => None,
    }
}

/// The contents of the element of this type at the start, and what follows it (X.690 §8.1).
fn element(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (&first, rest) = bytes.split_first()?;
    let (&length, rest) = rest.split_first()?;
    let (length, rest) = match length {
        0..=0x7f => (usize::from(length), rest),
        // The number of octets that the length takes; a certificate never needs more than four.
        0x81..=0x84 => {
            let (octets, rest) = rest.split_at_checked(usize::from(length & 0x7f))?;
            (octets.iter().fold(0, |length, octet| length << 8 | usize::from(*octet)), rest)
        }
        _ => return None,
    };
    if first == tag { rest.split_at_checked(length) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn certificate(algorithm: &'static rcgen::SignatureAlgorithm) -> Vec<u8> {
        let key = rcgen::KeyPair::generate_for(algorithm).unwrap();
        let parameters = rcgen::CertificateParams::new(["localhost".to_owned()]).unwrap();
        parameters.self_signed(&key).unwrap().der().to_vec()
    }

    #[test]
    fn the_hash_is_that_of_the_signature() {
        let of = |algorithm| signature_hash(&certificate(algorithm));
        assert_eq!(of(&rcgen::PKCS_ECDSA_P256_SHA256), Some(Hash::Sha256));
        assert_eq!(of(&rcgen::PKCS_ECDSA_P384_SHA384), Some(Hash::Sha384));
        assert_eq!(of(&rcgen::PKCS_ED25519), None);
        let certificate = certificate(&rcgen::PKCS_ECDSA_P256_SHA256);
        assert_eq!(binding(&certificate), Some(Sha256::digest(&certificate).to_vec()));
    }

    #[test]
    fn a_certificate_cut_anywhere_is_none() {
        let certificate = certificate(&rcgen::PKCS_ECDSA_P256_SHA256);
        for cut in 0..certificate.len() {
            assert_eq!(binding(certificate.get(..cut).unwrap()), None);
        }
        assert_eq!(binding(&[0x30, 0x84, 0xff, 0xff, 0xff, 0xff]), None);
        assert_eq!(binding(&[0x30, 0x80]), None);
    }
}
