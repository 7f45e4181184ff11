//! Ids and small values of the Mailyard mail store; no I/O.
