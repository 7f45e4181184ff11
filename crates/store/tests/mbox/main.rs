//! Accounts in mbox files: clients on one side, other programs on the other, and power cuts.
#![allow(clippy::unwrap_used)]

extern crate mailyard_store as store;

#[path = "../seeds/mod.rs"]
mod seeds;

mod basics;
mod both_ways;
mod care;
mod changing;
mod first_look;
mod interrupted;
mod last_copies;
mod names_cut;
mod odd_files;
mod permissions;
mod power_cut;
mod searching;
mod support;
mod threads;
