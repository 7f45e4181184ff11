//! A server without sockets: a store on a simulated disk, sessions, users, and a clock that stands still until it is moved.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mailyard_sessions::imap::{Context, ImapSession, PlainTextLogin, Settings};
use mailyard_sessions::{
    Authenticator, ChannelBinding, Connection, Now, Output, Refusal, ScramCredentials, Step, Waker,
};
use model::{AccountName, MailboxName};
use platform::Prng;
use platform::sim::{SIM_START, SimEnv};
use store::{FlagNames, Options, Store};

use super::matching::Fixtures;
use crate::formats::Format;

/// How what the client sends is handed in, and how much the output holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cuts {
    Lines,
    Octets,
    Random(u64),
    SmallOutput,
}

/// The users and what their passwords are.
const USERS: [(&str, &str); 3] = [("ann", "secret"), ("bob", "hunter2"), ("jörg", "pässword")];

pub struct Server {
    cuts: Cuts,
    format: Format,
    prng: Prng,
    sim: SimEnv,
    store: Option<Arc<Store>>,
    options: Options,
    settings: Settings,
    users: Arc<Users>,
    clients: BTreeMap<usize, Client>,
    elapsed: Duration,
    pub fixtures: Fixtures,
}

struct Client {
    session: ImapSession,
    out: Output,
    said: Vec<u8>,
    woken: Arc<AtomicBool>,
    deadline: Option<Duration>,
    closed: bool,
    handshake_due: bool,
}

#[derive(Default)]
struct Users {
    penalty: Mutex<Duration>,
}

impl Users {
    fn refusal(&self) -> Refusal {
        Refusal::wrong_credentials(*self.penalty.lock().unwrap())
    }
}

impl Authenticator for Users {
    fn verify_password(&self, _: &Connection, user: &str, password: &str) -> Result<AccountName, Refusal> {
        let known = USERS.contains(&(user, password));
        AccountName::new(user).ok().filter(|_| known).ok_or_else(|| self.refusal())
    }

    fn scram_credentials(&self, _: &Connection, user: &str) -> ScramCredentials {
        let password = USERS.iter().find(|known| known.0 == user).map_or("a decoy", |known| known.1);
        ScramCredentials::derive(password, b"0123456789abcdef".to_vec(), 4096)
    }

    fn scram_finished(&self, _: &Connection, user: &str, proven: bool) -> Result<AccountName, Refusal> {
        AccountName::new(user).ok().filter(|_| proven).ok_or_else(|| self.refusal())
    }
}

impl Server {
    pub fn new(cuts: Cuts, format: Format) -> Self {
        let seed = if let Cuts::Random(seed) = cuts { seed } else { 0 };
        let settings = Settings { greeting: "ready".to_owned(), ..Settings::default() };
        Server {
            cuts,
            format,
            prng: Prng::new(seed),
            sim: SimEnv::new(1),
            store: None,
            options: Options::default(),
            settings,
            users: Arc::default(),
            clients: BTreeMap::new(),
            elapsed: Duration::ZERO,
            fixtures: fixtures(),
        }
    }

    fn store(&mut self) -> Arc<Store> {
        let (sim, options, format) = (&self.sim, &self.options, self.format);
        let open = || {
            let cluster = (format == Format::Sql).then(crate::sql::cluster);
            let store = Store::open_with(sim.env(), PathBuf::from("/store"), options.clone(), cluster).unwrap();
            for (user, _) in USERS {
                format.create(&store, &AccountName::new(user).unwrap());
            }
            store
        };
        Arc::clone(self.store.get_or_insert_with(open))
    }

    fn now(&self) -> Now {
        Now { monotonic: self.elapsed, unix_seconds: SIM_START.seconds + self.elapsed.as_secs() as i64 }
    }

    pub fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        let number = || value.parse::<u64>().map_err(|_| format!("no number: {value}"));
        let limits = &mut self.settings.limits;
        match name {
            "plain_text" => self.settings.plain_text_login = PlainTextLogin::Always,
            "administrator" => self.settings.administrators.push(AccountName::new(value).map_err(|e| e.to_string())?),
            "quota_storage_kib" => self.options.quota.storage_kib = Some(number()?),
            "quota_messages" => self.options.quota.messages = Some(number()?),
            "no_compress" => self.settings.compress = false,
            "no_id" => self.settings.id_fields.clear(),
            "penalty_seconds" => *self.users.penalty.lock().unwrap() = Duration::from_secs(number()?),
            "message_bytes_max" => self.options.message_bytes_max = number()?,
            "append_messages_max" => limits.append_messages_max = number()? as u32,
            "bad_commands_max" => limits.bad_commands_max = number()? as u32,
            "bad_commands_before_login_max" => limits.bad_commands_before_login_max = number()? as u32,
            "failed_logins_max" => limits.failed_logins_max = number()? as u32,
            _ => return Err(format!("no setting {name}")),
        }
        Ok(())
    }

    pub fn given(&mut self, words: &[String]) -> Result<(), String> {
        let store = self.store();
        let account = store.account(&AccountName::new("ann").unwrap()).unwrap();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words.as_slice() {
            ["mailbox", name] => {
                account.create_mailbox(&MailboxName::new(name).unwrap(), &[]).map_err(|e| e.to_string())?;
            }
            ["message", mailbox, fixture, rest @ ..] => {
                let rest = rest.join(" ");
                let (flags, date) = rest.split_once(')').unwrap_or(("", ""));
                let mut names = FlagNames::default();
                for flag in flags.trim_start_matches('(').split(' ').filter(|flag| !flag.is_empty()) {
                    match model::SystemFlag::parse(flag) {
                        Some(flag) => names.system.push(flag),
                        None => names.keywords.push(model::Keyword::new(flag).map_err(|e| e.to_string())?),
                    }
                }
                let octets = self.fixtures.get(*fixture).ok_or(format!("no fixture {fixture}"))?;
                let mailbox = MailboxName::new(mailbox).unwrap();
                let put = self.format.put(&store, &account, &mailbox, octets, names, date.trim().parse().ok());
                put.map_err(|e| e.to_string())?;
            }
            ["damage", fixture] => {
                let octets = self.fixtures.get(*fixture).ok_or(format!("no fixture {fixture}"))?;
                let hits = match self.format {
                    Format::Sql => crate::sql::damage(octets.len()),
                    _ => damage(&self.sim, Path::new("/"), octets.get(octets.len() / 2..).unwrap_or_default()),
                };
                if hits == 0 {
                    return Err(format!("{fixture} is nowhere on the disk"));
                }
            }
            _ => return Err(format!("given what? {words:?}")),
        }
        self.settle();
        Ok(())
    }

    pub fn connect(&mut self, number: usize, words: &[String]) -> Result<(), String> {
        let has = |word: &str| words.iter().any(|known| known == word);
        let binding = ChannelBinding { tls_exporter: Some([3; 32]), tls_server_end_point: Some(vec![4; 32]) };
        let connection = Connection {
            id: number as u64,
            peer: None,
            tls: has("tls"),
            loopback: has("loopback"),
            starttls_available: has("starttls"),
            channel_binding: if has("binding") { binding } else { ChannelBinding::default() },
        };
        let context = Arc::new(Context {
            store: self.store(),
            authenticator: Arc::clone(&self.users) as Arc<dyn Authenticator>,
            observer: Arc::new(()),
            settings: self.settings.clone(),
        });
        let woken = Arc::new(AtomicBool::new(true));
        let waker: Waker = {
            let woken = Arc::clone(&woken);
            Arc::new(move || woken.store(true, Ordering::SeqCst))
        };
        let session = ImapSession::new(context, connection, waker, self.now());
        let out = Output::new(if self.cuts == Cuts::SmallOutput { 1 } else { 65_536 });
        let client =
            Client { session, out, said: Vec::new(), woken, deadline: None, closed: false, handshake_due: false };
        self.clients.insert(number, client);
        self.settle();
        Ok(())
    }

    pub fn log_in(&mut self, number: usize, user: &str, mailbox: Option<&str>) -> Result<(), String> {
        self.connect(number, &["loopback".to_owned()])?;
        let password = USERS.iter().find(|known| known.0 == user).ok_or("no such user")?.1;
        self.send(number, format!("login LOGIN {user} {password}\r\n").as_bytes())?;
        if let Some(name) = mailbox {
            self.send(number, format!("select SELECT {name}\r\n").as_bytes())?;
        }
        let client = self.client(number)?;
        let said = String::from_utf8_lossy(&client.said).into_owned();
        client.said.clear();
        let last = said.lines().last().unwrap_or_default();
        if last.contains(" OK ") { Ok(()) } else { Err(format!("as {user}: {last}")) }
    }

    pub fn event(&mut self, number: usize, name: &str) -> Result<(), String> {
        let client = self.client(number)?;
        match name {
            "shutdown" => client.session.shut_down(),
            "tls" => {
                client.session.tls_started(ChannelBinding { tls_exporter: Some([3; 32]), tls_server_end_point: None })
            }
            _ => return Err(format!("no event {name}")),
        }
        client.woken.store(true, Ordering::SeqCst);
        self.settle();
        Ok(())
    }

    /// Something happens to the disk.
    pub fn disk(&mut self, what: &str) -> Result<(), String> {
        let disk = &self.sim.disk;
        match what {
            "fail" => disk.fail_at(1),
            "full" => disk.set_capacity(Some(disk.used_bytes())),
            _ => return Err(format!("no such thing happens to disks: {what}")),
        }
        Ok(())
    }

    fn client(&mut self, number: usize) -> Result<&mut Client, String> {
        self.clients.get_mut(&number).ok_or_else(|| format!("no connection {number}"))
    }

    pub fn send(&mut self, number: usize, octets: &[u8]) -> Result<(), String> {
        if number == 1 && !self.clients.contains_key(&1) {
            return Err("no connection yet: connect, or as".to_owned());
        }
        let mut rest = octets;
        while !rest.is_empty() {
            let piece = match self.cuts {
                Cuts::Lines | Cuts::SmallOutput => rest.len(),
                Cuts::Octets => 1,
                Cuts::Random(_) => self.prng.between(1, 40) as usize,
            };
            let now = self.now();
            let client = self.client(number)?;
            if client.closed {
                return Ok(());
            }
            let piece = rest.get(..piece).unwrap_or(rest);
            let taken = client.session.receive(piece);
            rest = rest.get(taken..).unwrap_or_default();
            client.go_on(now);
            // A session that holds an answer back takes no input: time has to pass first.
            if taken == 0 && client.session.receive(&[]) == 0 && client.deadline.is_some_and(|at| at > now.monotonic) {
                return Err("the session takes no more".to_owned());
            }
            self.settle();
        }
        Ok(())
    }

    pub fn pass(&mut self, by: Duration) -> Result<(), String> {
        self.elapsed += by;
        self.sim.clock.advance(by);
        let now = self.now();
        for client in self.clients.values_mut().filter(|client| client.deadline.is_some_and(|at| at <= now.monotonic)) {
            client.go_on(now);
        }
        self.settle();
        Ok(())
    }

    /// Lets every session that was woken go on, until none is.
    fn settle(&mut self) {
        let now = self.now();
        while let Some(client) =
            self.clients.values_mut().find(|client| !client.closed && client.woken.swap(false, Ordering::SeqCst))
        {
            client.go_on(now);
        }
    }

    /// What was said since the last time: connection and line.
    pub fn said(&mut self) -> Vec<(usize, String)> {
        let mut lines = Vec::new();
        for (number, client) in &mut self.clients {
            let said = String::from_utf8_lossy(&std::mem::take(&mut client.said)).into_owned();
            let mut rest: Vec<&str> = said.split("\r\n").collect();
            if rest.last() == Some(&"") {
                rest.pop();
            }
            lines.extend(rest.into_iter().map(|line| (*number, line.to_owned())));
        }
        lines
    }
}

impl Client {
    fn go_on(&mut self, now: Now) {
        while !self.closed {
            let step = self.session.step(now, &mut self.out);
            self.said.extend_from_slice(self.out.pending());
            let sent = self.out.pending().len();
            self.out.consume(sent);
            match step {
                Step::Output => {}
                Step::NeedInput { deadline } => {
                    self.deadline = deadline;
                    return;
                }
                Step::StartTls => {
                    if !std::mem::replace(&mut self.handshake_due, true) {
                        self.said.extend_from_slice(b"<starttls>\r\n");
                    }
                    self.deadline = None;
                    return;
                }
                Step::Close => {
                    self.said.extend_from_slice(b"<close>\r\n");
                    self.closed = true;
                }
            }
        }
    }
}

/// Flips a bit of every copy of `octets` under `dir`, as a decaying disk would; returns how many there were.
fn damage(sim: &SimEnv, dir: &Path, octets: &[u8]) -> usize {
    let disk = sim.env().disk;
    let mut hits = 0;
    for entry in disk.list(dir).unwrap() {
        let path = dir.join(&entry.name);
        match disk.read(&path) {
            Ok(stored) => {
                for at in
                    stored.windows(octets.len()).enumerate().filter(|(_, window)| *window == octets).map(|hit| hit.0)
                {
                    sim.disk.corrupt(&path, at as u64, 1).unwrap();
                    hits += 1;
                }
            }
            Err(_) => hits += damage(sim, &path, octets),
        }
    }
    hits
}

/// Messages that are too large for a file beside the others: `large` (plain text), `large-binary` (base64 of octets with NULs) and
/// `large-header`.
fn generated() -> [(String, Vec<u8>); 3] {
    use base64::Engine;
    let lines: String = (0..20_000).map(|n| format!("This is line {n:06} of a large text\r\n")).collect();
    let octets: Vec<u8> = (0..600_000u32).map(|n| (n / 7) as u8).collect();
    let encoded = base64::engine::general_purpose::STANDARD.encode(octets);
    let wrapped: Vec<&str> =
        encoded.as_bytes().chunks(76).map(|line| std::str::from_utf8(line).unwrap_or_default()).collect();
    let base64 = "Content-Type: application/octet-stream\r\nContent-Transfer-Encoding: base64\r\n";
    let fields: String = (0..9_000).map(|n| format!("X-Field-{n:05}: a field of a large header\r\n")).collect();
    [
        ("large".to_owned(), format!("Subject: large\r\n\r\n{lines}").into_bytes()),
        ("large-binary".to_owned(), format!("{base64}\r\n{}\r\n", wrapped.join("\r\n")).into_bytes()),
        ("large-header".to_owned(), format!("{fields}Subject: last\r\n\r\nx\r\n").into_bytes()),
    ]
}

/// The messages of `tests/messages`, with CRLF, and the generated ones.
fn fixtures() -> Fixtures {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/messages");
    let files = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    files
        .map(|path| {
            let text = std::fs::read(&path).unwrap();
            let mut octets = Vec::with_capacity(text.len());
            for octet in text {
                if octet == b'\n' && octets.last() != Some(&b'\r') {
                    octets.push(b'\r');
                }
                octets.push(octet);
            }
            (path.file_stem().unwrap().to_string_lossy().into_owned(), octets)
        })
        .chain(generated())
        .collect()
}
