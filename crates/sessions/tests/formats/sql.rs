//! Accounts in a database: each test thread has one, which is emptied before each scenario.

use std::cell::RefCell;
use std::sync::Arc;

use platform::Env;
use store::Cluster;
use store_sql::{Database, Settings};

use crate::mariadb;

thread_local! {
    static DATABASE: RefCell<Option<(String, Arc<Database>)>> = const { RefCell::new(None) };
}

/// The empty database of this thread.
pub fn cluster() -> Arc<dyn Cluster> {
    DATABASE.with_borrow_mut(|database| {
        let (_, database) = database.get_or_insert_with(|| {
            let url = mariadb::fresh_database();
            let patience = std::time::Duration::from_secs(60);
            let settings =
                Settings { urls: vec![url.clone()], timeout: patience, retry: patience, ..Settings::default() };
            let database = Database::new(Env::real(), settings).unwrap();
            database.update().unwrap();
            (mariadb::database_of(&url).to_owned(), database)
        });
        for account in database.accounts().unwrap() {
            database.delete(&account).unwrap();
        }
        Arc::clone(database) as Arc<dyn Cluster>
    })
}

/// Changes the first octet of all that is stored of the messages of so many octets; how many those are.
#[allow(dead_code, reason = "each test file uses a part")]
pub fn damage(octets: usize) -> usize {
    DATABASE.with_borrow(|database| {
        let (name, _) = database.as_ref().unwrap();
        let changed = mariadb::shared().query(
            name,
            &format!(
                "UPDATE body JOIN header USING (account, email_id) SET body.data = CONCAT('?', SUBSTRING(body.data, 2)) \
                 WHERE header.octets = {octets}; \
                 UPDATE header SET data = CONCAT('?', SUBSTRING(data, 2)) WHERE octets = {octets}; \
                 SELECT COUNT(*) FROM header WHERE octets = {octets};"
            ),
        );
        changed.trim().parse().unwrap()
    })
}
