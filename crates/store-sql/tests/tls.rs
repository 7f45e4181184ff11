//! Connections to the database that are encrypted: whom Mailyard trusts, and how it says who it is.
#![allow(clippy::unwrap_used)]

extern crate mailyard_store_sql as store_sql;

#[path = "support/mariadb.rs"]
mod mariadb;
#[path = "support/nodes.rs"]
mod nodes;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use model::ErrorKind;
use nodes::{Node, append, contents, impatient, inbox};
use platform::Env;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use store_sql::{Database, Settings, Tls};

/// Certificates of an authority in a folder.
struct Authority {
    folder: PathBuf,
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    fn new(folder: &Path, name: &str) -> Authority {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let authority = Authority { folder: folder.join(name), issuer };
        fs::create_dir(&authority.folder).unwrap();
        fs::write(authority.file("ca"), authority.issuer.pem()).unwrap();
        authority
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.pem"))
    }

    /// Makes a certificate and its key; gives their files.
    fn certify(&self, name: &str) -> (PathBuf, PathBuf) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec!["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap();
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let files = (self.file(name), self.file(&format!("{name}-key")));
        fs::write(&files.0, certificate.pem()).unwrap();
        fs::write(&files.1, key.serialize_pem()).unwrap();
        files
    }
}

#[test]
fn servers_and_clients_show_certificates() {
    let folder = tempfile::tempdir().unwrap();
    let (ours, others) = (Authority::new(folder.path(), "ours"), Authority::new(folder.path(), "others"));
    let (certificate, key) = ours.certify("server");
    let port = mariadb::free_port();
    let data = folder.path().join("data");
    let made = Command::new("mariadb-install-db")
        .args(["--no-defaults", "--auth-root-authentication-method=normal", "--user=root"])
        .arg(format!("--datadir={}", data.display()))
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let options = [
        "--skip-grant-tables=0".to_owned(),
        "--skip-networking=0".to_owned(),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--port={port}"),
        format!("--datadir={}", data.display()),
        format!("--ssl-ca={}", ours.file("ca").display()),
        format!("--ssl-cert={}", certificate.display()),
        format!("--ssl-key={}", key.display()),
    ];
    let server = mariadb::Server::begin(&options.each_ref().map(String::as_str));
    server.query(
        "",
        "CREATE DATABASE mail; CREATE USER plain; CREATE USER named REQUIRE X509; \
         GRANT ALL ON mail.* TO plain; GRANT ALL ON mail.* TO named;",
    );
    let at = |user: &str, tls: Option<Tls>| {
        let url = format!("mysql://{user}@localhost:{port}/mail");
        Settings { tls, ..impatient(&url) }
    };
    let patiently = |settings: Settings| Settings { tls: settings.tls.clone(), ..nodes::settings(&settings.urls[0]) };
    let trusting = |ca: &Authority| Some(Tls { ca_file: ca.file("ca"), identity: None });
    let check = |settings: Settings| Database::new(Env::real(), settings).unwrap().update();

    // With the right authority, a whole account.
    let node = Node::new(patiently(at("plain", trusting(&ours))));
    let account = node.ann();
    append(&account, inbox(&account), "secret").unwrap();
    assert_eq!(contents(&account, inbox(&account)), [(1, "secret".to_owned())]);
    let accepted = server.query("", "SHOW GLOBAL STATUS LIKE 'Ssl_finished_accepts'");
    assert_ne!(accepted.split_whitespace().last(), Some("0"), "the connections were encrypted");
    // With another one nothing is said to the server.
    assert_eq!(check(at("plain", trusting(&others))).unwrap_err().kind(), ErrorKind::Io);
    // A server that wants to know who asks.
    assert_eq!(check(at("named", trusting(&ours))).unwrap_err().kind(), ErrorKind::Io);
    assert_eq!(check(at("named", None)).unwrap_err().kind(), ErrorKind::Io);
    let named = |by: &Authority| Some(Tls { ca_file: ours.file("ca"), identity: Some(by.certify("client")) });
    assert_eq!(check(patiently(at("named", named(&ours)))).unwrap(), Database::schema_version());
    assert_eq!(check(at("named", named(&others))).unwrap_err().kind(), ErrorKind::Io);
    // A certificate that is not that of the name in the address.
    let mut elsewhere = at("plain", trusting(&ours));
    elsewhere.urls = vec![format!("mysql://plain@127.0.0.2:{port}/mail")];
    assert_eq!(check(elsewhere).unwrap_err().kind(), ErrorKind::Io);
}
