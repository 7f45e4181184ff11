//! What every format of the store must do, as one suite: each test is a function over a fresh store, and [`contract!`] makes it a test
//! of one format: the store's own, mbox files and Maildirs, all on the simulated disk. `store-sql` plays it on a database.
#![allow(clippy::unwrap_used)]

extern crate mailyard_store as store;

mod accounts;
mod care;
mod entries;
mod mailboxes;
mod quotas;
#[macro_use]
mod suite;
mod support;
mod views;

contract!(native, crate::support::native);
contract!(mbox, crate::support::mbox);
contract!(maildir, crate::support::maildir);
contract!(maildir_fs, crate::support::maildir_fs);

// A failed write is one of the disk: of formats whose truth is there.
suite!(native_on_disk, crate::support::native, { accounts: [after_a_failed_write] });
suite!(mbox_on_disk, crate::support::mbox, { accounts: [after_a_failed_write] });
suite!(maildir_on_disk, crate::support::maildir, { accounts: [after_a_failed_write] });
