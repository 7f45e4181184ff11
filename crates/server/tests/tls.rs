//! TLS over TCP: implicit, STARTTLS, a certificate that is replaced.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;

use common::{Client, Server, data_with_user, tcp};
use rustix::process::Signal;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

type Tls = StreamOwned<ClientConnection, TcpStream>;

/// A new certificate in `directory`; the configuration that names it, and what a client has to trust.
fn certificate(directory: &Path) -> (String, CertificateDer<'static>) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    std::fs::write(directory.join("cert.pem"), made.cert.pem()).unwrap();
    std::fs::write(directory.join("key.pem"), made.signing_key.serialize_pem()).unwrap();
    // Relative paths are taken from the directory of the configuration file.
    ("[tls]\ncertificate_file = \"cert.pem\"\nkey_file = \"key.pem\"\n".to_owned(), made.cert.der().clone())
}

fn handshake(stream: TcpStream, trusted: &CertificateDer<'static>) -> std::io::Result<Tls> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").unwrap();
    let mut tls = StreamOwned::new(ClientConnection::new(Arc::new(config), name).unwrap(), stream);
    tls.conn.complete_io(&mut tls.sock)?;
    Ok(tls)
}

#[test]
fn implicit_tls_and_starttls() {
    let data = data_with_user();
    let (config, trusted) = certificate(data.path());
    let server = Server::start(data.path(), &config, &["imap=127.0.0.1:0", "imaps=127.0.0.1:0"]);

    let mut client = Client::greeted(handshake(tcp(server.address("imaps")), &trusted).unwrap()).login();
    let capability = client.ok("CAPABILITY");
    assert!(!capability.contains("STARTTLS"), "{capability}");
    client.append("Subject: over TLS\r\n\r\n");

    let mut plain = server.connect();
    assert!(plain.ok("CAPABILITY").contains("STARTTLS"));
    plain.ok("STARTTLS");
    let mut client = Client::new(handshake(plain.into_inner(), &trusted).unwrap());
    let capability = client.ok("CAPABILITY");
    assert!(!capability.contains("STARTTLS") && capability.contains("SCRAM-SHA-256-PLUS"), "{capability}");
    let mut client = client.login();
    assert!(client.ok("SELECT INBOX").contains("* 1 EXISTS"));
    client.ok("LOGOUT");
}

#[test]
fn what_is_sent_in_the_clear_after_starttls_is_not_heard() {
    let data = data_with_user();
    let (config, trusted) = certificate(data.path());
    let server = Server::start(data.path(), &config, &["imap=127.0.0.1:0"]);
    let mut plain = server.connect();
    plain.send("a STARTTLS\r\nb NOOP\r\n");
    assert!(plain.line().starts_with("a OK"));
    let mut client = Client::new(handshake(plain.into_inner(), &trusted).unwrap());
    let answer = client.command("CAPABILITY");
    assert!(!answer.iter().any(|line| line.starts_with("b ")), "{answer:?}");
}

#[test]
fn sighup_reads_the_certificate_again() {
    let data = data_with_user();
    let (config, old) = certificate(data.path());
    let server = Server::start(data.path(), &config, &["imaps=127.0.0.1:0"]);
    let address = server.address("imaps");
    let mut earlier = Client::greeted(handshake(tcp(address), &old).unwrap()).login();
    let (_, new) = certificate(data.path());
    server.signal(Signal::HUP);
    server.wait_for_log("reloaded");
    assert!(handshake(tcp(address), &old).is_err());
    Client::greeted(handshake(tcp(address), &new).unwrap()).login().ok("NOOP");
    earlier.ok("NOOP");
}

#[test]
fn imaps_without_a_certificate_is_an_error_at_start() {
    let data = data_with_user();
    let output = common::run(data.path(), &["serve", "--listen", "imaps=127.0.0.1:0"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("tls.certificate_file"));
}
