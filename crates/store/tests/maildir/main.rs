//! Accounts in Maildirs: what other programs do to the files, what is done for them, and what power cuts leave.
#![allow(clippy::unwrap_used)]

extern crate mailyard_store as store;

mod basics;
mod both_ways;
mod care;
mod costs;
mod crowd;
mod power_cut;
mod sizes;
mod support;
mod uid_lists;
