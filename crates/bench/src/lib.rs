//! Workloads, load generator and report; speaks to any server over the wire.
