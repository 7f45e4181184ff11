//! A server that is only an address: `--server NAME=imap://user:password@host:port`.

use super::{Local, Server};
use crate::error::{Error, Result};
use crate::results::ServerInfo;
use crate::wire::{Address, Connection};

/// A server that somebody else runs; several addresses are several accounts on it.
pub struct Remote {
    name: String,
    addresses: Vec<Address>,
    greeting: String,
}

impl Remote {
    /// Logs in to each address once, so that a wrong one is known before anything is measured.
    pub fn connect(name: &str, mut addresses: Vec<Address>) -> Result<Remote> {
        let mut greeting = String::new();
        for address in &mut addresses {
            let mut connection = Connection::open(address)?;
            greeting = connection.greeting().trim_start_matches("* OK ").to_string();
            connection.authenticate(address)?;
            address.prefix = connection.personal_prefix()?;
        }
        if addresses.is_empty() {
            return Err(Error::new(format!("{name}: no address")));
        }
        Ok(Remote { name: name.to_string(), addresses, greeting })
    }
}

impl Server for Remote {
    fn info(&self) -> ServerInfo {
        ServerInfo { name: self.name.clone(), version: self.greeting.clone(), ..ServerInfo::default() }
    }

    fn accounts(&mut self, count: usize) -> Result<Vec<Address>> {
        Ok(self.addresses.iter().cycle().take(count.max(1)).cloned().collect())
    }

    fn local(&mut self) -> Option<&mut dyn Local> {
        None
    }
}
