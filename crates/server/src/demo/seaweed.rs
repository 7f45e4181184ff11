//! SeaweedFS as the S3-compatible store of the cluster demo: one process with its master, filer and S3 gateway, and three volume servers.
//!
//! Each object is on two volume servers. Three of them, since one that is lost must leave two to which new objects can go.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use model::Result;
use platform::Env;
use serde_json::json;
use store_sql::{Bodies, BodySettings};

use super::process::{BEGIN, Process, find, free_port};

/// Servers that keep the octets of objects.
pub const VOLUME_SERVERS: usize = 3;
/// One copy more, on another server.
const REPLICATION: &str = "001";
/// Bodies from here on are objects; few messages of the sample mail are larger.
const ABOVE_BYTES: u32 = 256;
const BUCKET: &str = "s3://mail/bodies";
const REGION: &str = "us-east-1";

/// The servers that run.
pub struct Objects {
    dir: PathBuf,
    port: u16,
    /// Sockets that the servers leave behind.
    sockets: Vec<PathBuf>,
    front: Process,
    volumes: Vec<Process>,
}

/// The program, when it is installed.
pub fn program() -> Option<PathBuf> {
    find("weed")
}

impl Objects {
    /// Starts everything in a new directory. It serves a while later.
    pub fn start(program: &Path, dir: &Path) -> Result<Objects> {
        fs::create_dir(dir)?;
        let (id, secret) = (random_text(), random_text());
        let identity = json!({ "identities": [{
            "name": "mailyard",
            "credentials": [{ "accessKey": id, "secretKey": secret }],
            "actions": ["Admin", "Read", "Write", "List"],
        }] });
        fs::write(dir.join("s3.json"), identity.to_string())?;
        fs::write(dir.join("credentials"), format!("aws_access_key_id = {id}\naws_secret_access_key = {secret}\n"))?;
        let weed = |name: &str, arguments: &[String]| {
            let home = dir.join(name);
            fs::create_dir(&home)?;
            let mut command = Command::new(program);
            // Its settings are looked for at home as well.
            command.args(arguments).current_dir(&home).env("HOME", &home);
            Ok::<_, model::Error>(Process::start(&mut command, &home.join("log"))?.ended_at_once())
        };
        let (master, master_grpc, port) = (free_port()?, free_port()?, free_port()?);
        let (filer_grpc, s3_grpc) = (free_port()?, free_port()?);
        let left = |kind: &str, port: u16| PathBuf::from(format!("/tmp/seaweedfs-{kind}-grpc-{port}.sock"));
        let sockets = vec![left("master", master_grpc), left("filer", filer_grpc), left("s3", s3_grpc)];
        let path = |name: &str| dir.join(name).display().to_string();
        let front = weed(
            "front",
            &[
                "server".to_owned(),
                format!("-dir={}", path("front")),
                "-ip=127.0.0.1".to_owned(),
                "-volume=false".to_owned(),
                format!("-master.port={master}"),
                format!("-master.port.grpc={master_grpc}"),
                "-master.peers=none".to_owned(),
                format!("-master.defaultReplication={REPLICATION}"),
                "-master.volumeSizeLimitMB=256".to_owned(),
                "-master.telemetry=false".to_owned(),
                "-filer".to_owned(),
                format!("-filer.port={}", free_port()?),
                format!("-filer.port.grpc={filer_grpc}"),
                format!("-filer.localSocket={}", path("filer.sock")),
                "-s3".to_owned(),
                format!("-s3.port={port}"),
                format!("-s3.port.grpc={s3_grpc}"),
                "-s3.port.iceberg=0".to_owned(),
                "-s3.port.lance=0".to_owned(),
                format!("-s3.localSocket={}", path("s3.sock")),
                format!("-s3.config={}", path("s3.json")),
            ],
        )?;
        let mut objects = Objects { dir: dir.to_owned(), port, sockets, front, volumes: Vec::new() };
        for number in 1..=VOLUME_SERVERS {
            let (name, grpc) = (format!("volume{number}"), free_port()?);
            objects.sockets.push(left("volume", grpc));
            let arguments = [
                "volume".to_owned(),
                format!("-dir={}", path(&name)),
                "-ip=127.0.0.1".to_owned(),
                format!("-port={}", free_port()?),
                format!("-port.grpc={grpc}"),
                format!("-master=127.0.0.1:{master}.{master_grpc}"),
                "-max=100".to_owned(),
                "-minFreeSpace=0".to_owned(),
            ];
            objects.volumes.push(weed(&name, &arguments)?);
        }
        Ok(objects)
    }

    /// The store for bodies, once objects can be put and read.
    pub fn bodies(&self) -> Result<Arc<Bodies>> {
        let bodies = Bodies::open(&BodySettings {
            url: BUCKET.to_owned(),
            endpoint: self.endpoint(),
            region: REGION.to_owned(),
            credentials: Some(self.dir.join("credentials")),
            above: ABOVE_BYTES,
            grace: BEGIN,
            timeout: BEGIN,
            retry: BEGIN,
        })?;
        bodies.check()?;
        Ok(bodies)
    }

    fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// What the section `sql` of a configuration says of it.
    pub fn configuration(&self) -> String {
        let text = |value: &str| toml::Value::from(value).to_string();
        format!(
            "bodies = {}\nbodies_endpoint = {}\nbodies_region = {}\nbodies_credentials_file = {}\nbodies_above_bytes = {ABOVE_BYTES}\n",
            text(BUCKET),
            text(&self.endpoint()),
            text(REGION),
            text(&self.dir.join("credentials").to_string_lossy()),
        )
    }

    /// The process id of the one that all requests go to.
    pub fn front(&self) -> u32 {
        self.front.id()
    }

    /// The process ids of the volume servers.
    pub fn volumes(&self) -> Vec<u32> {
        self.volumes.iter().map(Process::id).collect()
    }
}

impl Drop for Objects {
    fn drop(&mut self) {
        for socket in &self.sockets {
            let _ = fs::remove_file(socket);
        }
    }
}

fn random_text() -> String {
    let random = Env::real().random;
    format!("{:016x}{:016x}", random.u64(), random.u64())
}
