//! Tests with killed processes and racing processes: conversations in a file, in PostgreSQL and in Redis.
//!
//! This program runs itself. A child runs the test `child::the_child`, which does nothing without a job. A
//! child reports each event to its parent before anything else can happen, as one line per
//! [`Report`](child::Report). The reports of a killed child are still in the pipe. No test waits for a fixed
//! time. A child waits at a point until it is killed, and the library waits for conversations of killed
//! holders.

mod chain;
mod child;
mod conversation;
mod kills;
mod places;
mod plan;
mod race;
mod sleepers;
mod turn;
mod witness;
