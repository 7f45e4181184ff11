//! What every format of the store must do, on a database: the suite of `crates/store/tests/contract` itself.
#![allow(clippy::unwrap_used, dead_code)]

extern crate mailyard_store_sql as store_sql;

#[path = "../../../store/tests/contract/accounts.rs"]
mod accounts;
#[path = "../../../store/tests/contract/care.rs"]
mod care;
#[path = "../../../store/tests/contract/entries.rs"]
mod entries;
#[path = "../../../store/tests/contract/mailboxes.rs"]
mod mailboxes;
#[path = "../support/mariadb.rs"]
mod mariadb;
#[path = "../../../store/tests/contract/quotas.rs"]
mod quotas;
#[macro_use]
#[path = "../../../store/tests/contract/suite.rs"]
mod suite;
#[path = "../../../store/tests/contract/support.rs"]
mod support;
#[path = "../../../store/tests/contract/views.rs"]
mod views;

use platform::Env;
use store_sql::{Database, Settings};

/// Rows in a fresh database; what a node keeps besides is on a simulated disk.
pub fn sql() -> support::Format {
    let patience = std::time::Duration::from_secs(60);
    let urls = vec![mariadb::fresh_database()];
    let settings = Settings { urls, timeout: patience, retry: patience, ..Settings::default() };
    let database = Database::new(Env::real(), settings).unwrap();
    database.update().unwrap();
    support::on_cluster(database)
}

contract!(sql, crate::sql);
