//! Protocol sessions as state machines: no sockets, no clock.
