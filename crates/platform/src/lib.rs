//! The seams of the Mailyard mail store: disk, clock, randomness; real and simulated.
