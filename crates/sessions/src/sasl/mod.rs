//! SASL mechanisms (RFC 4422) as state machines, for every protocol here.
