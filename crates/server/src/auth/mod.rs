//! Logging in: passwords, SCRAM, throttling, and how many connections a user has.

mod logins;
mod remembered;
mod throttle;

pub use logins::{LoginLimits, Logins};
pub use throttle::{Network, ThrottleLimits};
