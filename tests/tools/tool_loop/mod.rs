//! Tests of the tool loop through its public interface, with scripted models, gates and the paused clock.
//!
//! Ids such as `TM-36` or `tm_36` number the scenarios of Spring AI's tests that a test repeats.

mod asked_twice;
mod before_tool;
mod blocking;
mod closing_texts;
mod definitions;
mod drop_panics;
mod effects;
mod errors;
mod every_stage;
mod execution;
mod fifty_rounds;
mod finalize;
mod finish_reasons;
mod hooks;
mod leniency;
mod limits;
mod macros;
mod many_turns;
mod mixed_calls;
mod modes;
mod nested_limits;
mod offered;
mod own_history;
mod parallel;
mod placement;
mod repeated_ids;
mod return_direct;
mod rounds;
mod run_alone;
mod same_for_all;
mod spans;
mod steering;
mod support;
mod time_limit;
mod tool_errors;
mod tool_events;
mod typed;
mod usage;
