//! `peers`: which servers can be started here, and getting those that cannot.

use super::beside;
use crate::error::Result;
use crate::server::peers::{self, PEERS};
use clap::Args;
use clap::builder::PossibleValuesParser;
use std::path::PathBuf;

/// Arguments of `peers`.
#[derive(Args)]
pub struct PeersArgs {
    /// Fetches the Debian packages of these servers (or of `all` that are not installed) and unpacks them, without installing anything.
    #[arg(long, value_delimiter = ',', value_parser = names(), value_name = "NAME,...")]
    unpack: Vec<String>,
    /// Where unpacked servers are; else `mailyard/peers` in the user's folder for caches.
    #[arg(long, value_name = "FOLDER")]
    peers_dir: Option<PathBuf>,
}

/// Unpacks what was asked for, or lists.
pub fn peers(args: &PeersArgs) -> Result<()> {
    let folder = args.peers_dir.clone().unwrap_or_else(peers::default_unpacked);
    if args.unpack.is_empty() {
        print!("{}", table(&folder));
        return Ok(());
    }
    for package in peers::packages() {
        let named = args.unpack.iter().any(|name| name == package.name);
        if named || package.find(&folder).is_err() && args.unpack.iter().any(|name| name == "all") {
            println!("{}: {}", package.name, peers::unpack(package, &folder)?.display());
        }
    }
    Ok(())
}

fn names() -> PossibleValuesParser {
    PossibleValuesParser::new(peers::packages().iter().map(|package| package.name).chain(["all"]))
}

/// One line a peer, columns as wide as they have to be.
fn table(unpacked: &std::path::Path) -> String {
    let mailyard = beside().unwrap_or_default();
    let rows: Vec<[String; 3]> = PEERS
        .iter()
        .map(|peer| {
            let state = match peer.installed(&mailyard, unpacked) {
                Ok(version) => version,
                Err(missing) => format!("- {missing}"),
            };
            [peer.name.to_string(), peer.about.to_string(), state]
        })
        .collect();
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(String::len).max().unwrap_or(0);
    let (name, about) = (width(0), width(1));
    let line = |[peer, what, state]: &[String; 3]| format!("{peer:name$}  {what:about$}  {state}\n");
    rows.iter().map(line).collect()
}
