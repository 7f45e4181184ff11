//! Maildirs: what stands in the names of their files and in the files that other programs keep beside the messages. Pure functions: they read and write octets,
//! no files.

#![allow(dead_code, reason = "what reads Maildirs in place and what converts them use different parts")]

pub(crate) mod courier;
pub(crate) mod keywords;
pub(crate) mod name;
pub(crate) mod size_file;
pub(crate) mod uidlist;
