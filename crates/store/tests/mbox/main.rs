//! Accounts in mbox files: clients on one side, other programs on the other, and power cuts.
#![allow(clippy::unwrap_used)]

extern crate mailyard_store as store;

#[path = "../seeds/mod.rs"]
mod seeds;

mod basics;
mod both_ways;
mod interrupted;
mod power_cut;
mod support;
