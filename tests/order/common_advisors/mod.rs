//! Budgets, retries, rate limits, caches, watched prefixes, selected tools and prompts in whole chains: with the tool loop, memory in both places, nested turns and drops.

mod budget;
mod budget_in_round;
mod crash;
mod prompts;
mod rate_limit;
mod rejected_answers;
mod response_cache;
mod retry;
mod routing;
mod similar_questions;
mod support;
mod tools;
