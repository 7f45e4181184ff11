//! The `mailyard` program.
fn main() {}
