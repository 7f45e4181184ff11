//! SCRAM-SHA-256 and SCRAM-SHA-256-PLUS (RFC 5802, RFC 7677), with the channel bindings `tls-exporter` (RFC 9266) and
//! `tls-server-end-point` (RFC 5929 §4).
//!
//! The exchange: client-first, server-first, client-final, server-final, and an empty response, because the protocols here carry no
//! data with success. For an unknown user the authenticator gives decoy credentials and the exchange fails at the proof.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use model::AccountName;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::{Exchange, Mechanism, Step, prepare};
use crate::{Connection, Refusal, ScramCredentials};

/// A SCRAM exchange.
pub(super) struct Scram {
    plus: bool,
    state: State,
}

enum State {
    ClientFirst,
    ClientFinal(Box<Begun>),
    /// The server-final message is out; the client acknowledges it with an empty response.
    Acknowledge(AccountName),
    Over,
}

/// What has to be kept between the two messages of the client.
struct Begun {
    user: String,
    credentials: ScramCredentials,
    /// What the client must send as `c=`, decoded.
    channel: Vec<u8>,
    nonce: String,
    /// `client-first-message-bare "," server-first-message`
    messages: String,
}

impl Scram {
    pub fn new(plus: bool) -> Self {
        Scram { plus, state: State::ClientFirst }
    }

    /// `gs2-header client-first-message-bare` (RFC 5802 §7)
    fn client_first(&self, message: &str, exchange: &mut Exchange<'_>) -> Result<(Begun, String), &'static str> {
        // gs2-header = gs2-cbind-flag "," [ authzid ] ","
        let (flag, rest) = message.split_once(',').ok_or("no gs2-header")?;
        let (authzid, bare) = rest.split_once(',').ok_or("no gs2-header")?;
        let binding = self.binding(flag, exchange.connection)?;
        let header_len = message.len().saturating_sub(bare.len());
        let mut channel = message.get(..header_len).unwrap_or_default().as_bytes().to_vec();
        channel.extend_from_slice(&binding);

        // client-first-message-bare = [reserved-mext ","] username "," nonce ["," extensions]; an `m=` must be refused (§5.1).
        let mut attributes = bare.split(',');
        let name = attributes.next().and_then(|a| a.strip_prefix("n=")).ok_or("no user name")?;
        let client_nonce = attributes.next().and_then(|a| a.strip_prefix("r=")).ok_or("no nonce")?;
        if client_nonce.is_empty() || !client_nonce.bytes().all(|b| b.is_ascii_graphic()) {
            return Err("the nonce is not printable");
        }
        let user = saslname(name).and_then(|name| prepare(&name)).ok_or("the user name is not one")?;
        if let Some(authzid) = authzid.strip_prefix("a=") {
            // Nobody acts for another here.
            if saslname(authzid).and_then(|name| prepare(&name)).as_deref() != Some(user.as_str()) {
                return Err("acting for another is not possible");
            }
        } else if !authzid.is_empty() {
            return Err("the authzid is not one");
        }

        let mut random = [0u8; 18];
        (exchange.random)(&mut random);
        let nonce = format!("{client_nonce}{}", STANDARD.encode(random));
        let credentials = exchange.authenticator.scram_credentials(exchange.connection, &user);
        let server_first = format!("r={nonce},s={},i={}", STANDARD.encode(&credentials.salt), credentials.iterations);
        let messages = format!("{bare},{server_first}");
        Ok((Begun { user, credentials, channel, nonce, messages }, server_first))
    }

    /// The octets that the channel binding stands for, by gs2-cbind-flag (RFC 5802 §6).
    fn binding(&self, flag: &str, connection: &Connection) -> Result<Vec<u8>, &'static str> {
        let known = &connection.channel_binding;
        match (flag, self.plus) {
            ("n", false) => Ok(Vec::new()),
            // The client can bind and believes that we cannot: if we can, somebody took it out of the list of mechanisms.
            ("y", false) if known.tls_exporter.is_some() || known.tls_server_end_point.is_some() => {
                Err("channel binding is offered: somebody is in between")
            }
            ("y", false) => Ok(Vec::new()),
            ("p=tls-exporter", true) => {
                known.tls_exporter.map(|octets| octets.to_vec()).ok_or("tls-exporter is not available")
            }
            ("p=tls-server-end-point", true) => {
                known.tls_server_end_point.clone().ok_or("tls-server-end-point is not available")
            }
            (_, true) => Err("this mechanism wants a channel binding that is known here"),
            (_, false) => Err("this mechanism has no channel binding"),
        }
    }
}

impl Begun {
    /// `c=... , r=... [, extensions] , p=...` (RFC 5802 §7). The inner result is about the proof.
    fn client_final(&self, message: &str) -> Result<Option<String>, &'static str> {
        let (without_proof, proof) = message.rsplit_once(",p=").ok_or("no proof")?;
        let mut attributes = without_proof.split(',');
        let channel = attributes.next().and_then(|a| a.strip_prefix("c=")).ok_or("no channel binding")?;
        let nonce = attributes.next().and_then(|a| a.strip_prefix("r=")).ok_or("no nonce")?;
        let channel = STANDARD.decode(channel).map_err(|_| "the channel binding is not base64")?;
        let proof = STANDARD.decode(proof).map_err(|_| "the proof is not base64")?;
        let proof: [u8; 32] = proof.try_into().map_err(|_| "the proof has the wrong length")?;
        if nonce != self.nonce {
            return Err("the nonce is another");
        }
        let auth_message = format!("{},{without_proof}", self.messages);
        let signature = hmac_sha256(&self.credentials.stored_key, auth_message.as_bytes());
        let mut client_key = proof;
        for (octet, mask) in client_key.iter_mut().zip(signature) {
            *octet ^= mask;
        }
        let stored_key: [u8; 32] = Sha256::digest(client_key).into();
        let right = stored_key.ct_eq(&self.credentials.stored_key) & channel.ct_eq(&self.channel);
        let verifier = hmac_sha256(&self.credentials.server_key, auth_message.as_bytes());
        Ok(bool::from(right).then(|| format!("v={}", STANDARD.encode(verifier))))
    }
}

impl Mechanism for Scram {
    fn step(&mut self, response: Option<&[u8]>, exchange: &mut Exchange<'_>) -> Step {
        let Some(response) = response else { return Step::Challenge(Vec::new()) };
        let Ok(message) = std::str::from_utf8(response) else { return Step::Malformed("SCRAM is written in UTF-8") };
        match std::mem::replace(&mut self.state, State::Over) {
            State::ClientFirst => match self.client_first(message, exchange) {
                Ok((begun, server_first)) => {
                    self.state = State::ClientFinal(Box::new(begun));
                    Step::Challenge(server_first.into_bytes())
                }
                Err(why) => Step::Malformed(why),
            },
            State::ClientFinal(begun) => match begun.client_final(message) {
                Ok(server_final) => {
                    let proven = server_final.is_some();
                    match exchange.authenticator.scram_finished(exchange.connection, &begun.user, proven) {
                        Ok(_) if !proven => Step::Done(Err(Refusal::wrong_credentials(std::time::Duration::ZERO))),
                        Ok(account) => {
                            self.state = State::Acknowledge(account);
                            Step::Challenge(server_final.unwrap_or_default().into_bytes())
                        }
                        Err(refusal) => Step::Done(Err(refusal)),
                    }
                }
                Err(why) => Step::Malformed(why),
            },
            State::Acknowledge(account) if message.is_empty() => Step::Done(Ok(account)),
            State::Acknowledge(_) => Step::Malformed("nothing more was expected"),
            State::Over => Step::Malformed("the exchange is over"),
        }
    }
}

/// `saslname`: `=2C` for a comma and `=3D` for an equals sign (RFC 5802 §5.1).
fn saslname(text: &str) -> Option<String> {
    let mut name = String::with_capacity(text.len());
    let mut parts = text.split('=');
    name.push_str(parts.next()?);
    for part in parts {
        let (c, rest) = match (part.strip_prefix("2C"), part.strip_prefix("3D")) {
            (Some(rest), _) => (',', rest),
            (_, Some(rest)) => ('=', rest),
            _ => return None,
        };
        name.push(c);
        name.push_str(rest);
    }
    Some(name)
}

fn hmac_sha256(key: &[u8], message: &[u8]) -> [u8; 32] {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes a key of any length");
    mac.update(message);
    mac.finalize().into_bytes().into()
}

impl ScramCredentials {
    /// The secrets of a password (RFC 5802 §3), which must be prepared by [`prepare()`]. Takes as long as the `iterations` take.
    pub fn derive(password: &str, salt: Vec<u8>, iterations: u32) -> Self {
        let mut salted = [0u8; 32];
        pbkdf2::pbkdf2_hmac::<Sha256>(password.as_bytes(), &salt, iterations, &mut salted);
        let client_key = hmac_sha256(&salted, b"Client Key");
        ScramCredentials {
            salt,
            iterations,
            stored_key: Sha256::digest(client_key).into(),
            server_key: hmac_sha256(&salted, b"Server Key"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{Authenticator, ChannelBinding};

    /// One user, `user` with the password `pencil`, as in RFC 7677 §3.
    struct Pencil;

    impl Authenticator for Pencil {
        fn verify_password(&self, _: &Connection, _: &str, _: &str) -> Result<AccountName, Refusal> {
            Err(Refusal::wrong_credentials(Duration::ZERO))
        }
        fn scram_credentials(&self, _: &Connection, user: &str) -> ScramCredentials {
            let password = if user == "user" { "pencil" } else { "a decoy" };
            ScramCredentials::derive(password, STANDARD.decode("W22ZaJ0SNY7soEsUEjb6gQ==").unwrap(), 4096)
        }
        fn scram_finished(&self, _: &Connection, user: &str, proven: bool) -> Result<AccountName, Refusal> {
            let account = AccountName::new(user).ok().filter(|_| proven);
            account.ok_or_else(|| Refusal::wrong_credentials(Duration::ZERO))
        }
    }

    fn step(scram: &mut Scram, connection: &Connection, message: &str) -> Step {
        // The 18 octets of a nonce whose base64 is not printable as the RFC's; the tests compute with what comes out.
        let mut random = |buffer: &mut [u8]| buffer.fill(7);
        scram.step(Some(message.as_bytes()), &mut Exchange { authenticator: &Pencil, connection, random: &mut random })
    }

    fn challenge(step: Step) -> String {
        match step {
            Step::Challenge(octets) => String::from_utf8(octets).unwrap(),
            other => panic!("{other:?}"),
        }
    }

    /// What an honest client answers, by the formulas of RFC 5802 §3.
    fn client_final(bare: &str, server_first: &str, channel: &[u8], password: &str) -> (String, String) {
        let field = |name: &str| server_first.split(',').find_map(|a| a.strip_prefix(name)).unwrap().to_owned();
        let salt = STANDARD.decode(field("s=")).unwrap();
        let mut salted = [0u8; 32];
        pbkdf2::pbkdf2_hmac::<Sha256>(password.as_bytes(), &salt, field("i=").parse().unwrap(), &mut salted);
        let client_key = hmac_sha256(&salted, b"Client Key");
        let stored: [u8; 32] = Sha256::digest(client_key).into();
        let without_proof = format!("c={},r={}", STANDARD.encode(channel), field("r="));
        let message = format!("{bare},{server_first},{without_proof}");
        let mut proof = hmac_sha256(&stored, message.as_bytes());
        proof.iter_mut().zip(client_key).for_each(|(octet, key)| *octet ^= key);
        let verifier = hmac_sha256(&hmac_sha256(&salted, b"Server Key"), message.as_bytes());
        (format!("{without_proof},p={}", STANDARD.encode(proof)), format!("v={}", STANDARD.encode(verifier)))
    }

    #[test]
    fn the_example_of_rfc_7677() {
        let begun = Begun {
            user: "user".to_owned(),
            credentials: Pencil.scram_credentials(&Connection::default(), "user"),
            channel: b"n,,".to_vec(),
            nonce: "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0".to_owned(),
            messages: "n=user,r=rOprNGfwEbeRWgbNEkqO,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
                       s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
                .to_owned(),
        };
        let message = "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
                       p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=";
        let verifier = "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=";
        assert_eq!(begun.client_final(message), Ok(Some(verifier.to_owned())));
    }

    #[test]
    fn an_exchange_with_and_without_binding() {
        let binding = ChannelBinding { tls_exporter: Some([3; 32]), tls_server_end_point: Some(vec![4; 32]) };
        let bound = Connection { tls: true, channel_binding: binding, ..Connection::default() };
        let plain = Connection::default();
        for (plus, header, octets, connection) in [
            (false, "n,,", &[][..], &plain),
            (false, "y,,", &[], &plain),
            (false, "n,a=user,", &[], &bound),
            (true, "p=tls-exporter,,", &[3; 32], &bound),
            (true, "p=tls-server-end-point,,", &[4; 32], &bound),
        ] {
            for (password, right) in [("pencil", true), ("wrong", false)] {
                let mut scram = Scram::new(plus);
                let bare = "n=user,r=abc";
                let server_first = challenge(step(&mut scram, connection, &format!("{header}{bare}")));
                let channel = [header.as_bytes(), octets].concat();
                let (message, verifier) = client_final(bare, &server_first, &channel, password);
                let end = step(&mut scram, connection, &message);
                if right {
                    assert_eq!(challenge(end), verifier);
                    assert!(matches!(step(&mut scram, connection, ""), Step::Done(Ok(_))));
                } else {
                    assert!(matches!(end, Step::Done(Err(_))), "{header}");
                }
            }
        }
    }

    #[test]
    fn a_binding_of_another_channel_is_refused() {
        let binding = ChannelBinding { tls_exporter: Some([3; 32]), tls_server_end_point: None };
        let connection = Connection { tls: true, channel_binding: binding, ..Connection::default() };
        let mut scram = Scram::new(true);
        let (header, bare) = ("p=tls-exporter,,", "n=user,r=abc");
        let server_first = challenge(step(&mut scram, &connection, &format!("{header}{bare}")));
        let channel = [header.as_bytes(), &[5; 32]].concat();
        let (message, _) = client_final(bare, &server_first, &channel, "pencil");
        assert!(matches!(step(&mut scram, &connection, &message), Step::Done(Err(_))));
    }

    #[test]
    fn what_breaks_the_rules_is_malformed() {
        let binding = ChannelBinding { tls_exporter: Some([3; 32]), tls_server_end_point: None };
        let bound = Connection { tls: true, channel_binding: binding, ..Connection::default() };
        for (plus, message) in [
            (false, ""),
            (false, "n,,"),
            (false, "n,,n=user"),
            (false, "n,,n=user,r="),
            (false, "n,,m=x,n=user,r=abc"),
            (false, "n,,n=us=er,r=abc"),
            (false, "n,a=other,n=user,r=abc"),
            (false, "n,b=other,n=user,r=abc"),
            (false, "y,,n=user,r=abc"),
            (false, "p=tls-exporter,,n=user,r=abc"),
            (true, "n,,n=user,r=abc"),
            (true, "p=tls-unique,,n=user,r=abc"),
            (true, "p=tls-server-end-point,,n=user,r=abc"),
        ] {
            let mut scram = Scram::new(plus);
            assert!(matches!(step(&mut scram, &bound, message), Step::Malformed(_)), "{message}");
            assert!(matches!(step(&mut scram, &bound, message), Step::Malformed(_)), "again: {message}");
        }
        for message in ["", "c=biws", "c=biws,r=abc,p=x", "c=!,r=abc,p=AAAA", "c=biws,r=other,p=AAAA"] {
            let mut scram = Scram::new(false);
            challenge(step(&mut scram, &Connection::default(), "n,,n=user,r=abc"));
            assert!(matches!(step(&mut scram, &Connection::default(), message), Step::Malformed(_)), "{message}");
        }
    }

    #[test]
    fn names_are_unescaped() {
        assert_eq!(saslname("a=2Cb=3Dc").as_deref(), Some("a,b=c"));
        for bad in ["a=", "a=2", "a=2c", "="] {
            assert_eq!(saslname(bad), None, "{bad}");
        }
    }
}
