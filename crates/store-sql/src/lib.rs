//! Accounts whose mail lives in a database that speaks the MySQL protocol.
