//! Accounts whose mail lives in a database that speaks the MySQL protocol: the only crate with a database driver.
//!
//! The rows are the truth; what a node has in memory and on its disk of an account is a cache of them. A [`Database`] is a
//! [`store::Cluster`]: it makes and finds accounts. Behind each stands a [`index::Journal`] (`account`), which turns what transactions did
//! into statements (`write`), rows into news (`read`), and gives the bytes of messages (`bytes`).
//!
//! Invariants:
//! - A commit of transactions is one transaction of the database. It begins with the lock on the account's row and with a look at its
//!   `epoch` and `modseq`: if another node has written, or may, nothing is done.
//! - `(epoch, modseq)` names a commit. When the answer to a COMMIT is lost, the row says whether it was done (`account`).
//! - Whatever the database does, a caller hears [`model::ErrorKind::Io`] and can try again; nothing is closed for good.
//!
//! An account may move: out of a database and into one (`copies`, `copy`), and from one database to another (`cells`, `moving`).
//!
//! Schema: `schema/`, explained in `docs/sql.md`. Why it is so: `docs/decisions/0011-sql.md`.

mod account;
mod bytes;
mod cells;
mod columns;
mod copies;
mod copy;
mod database;
mod failure;
mod lease;
mod moving;
mod pool;
mod raw;
mod read;
mod rows;
mod schema;
mod tls;
mod watch;
mod write;

pub use cells::{CellCluster, Cells, FIRST_CELL};
pub use database::{Database, Settings};
pub use moving::{MoveReport, Watcher};
pub use raw::{RawLoad, RawRate};
pub use tls::Tls;
