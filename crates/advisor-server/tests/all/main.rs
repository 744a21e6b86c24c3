//! Tests of the server, over requests to its routes.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]

mod access;
mod addresses;
mod anthropic_errors;
mod application;
mod bodies;
mod chat;
mod connection;
mod conversations;
mod disconnects;
mod endings;
mod forged;
mod health;
mod ids;
mod inspector;
mod long_conversations;
mod markup;
mod media;
mod metrics;
mod open_connections;
mod openapi;
mod origins;
mod page;
mod protocols;
mod relay;
mod request_ids;
mod responses;
mod results;
mod setting;
mod shutdown;
mod slow_clients;
mod tenants;
mod unknown_fields;
mod upstream;
