//! Tools of Model Context Protocol servers for chains of advisors, and a chain as a tool of such a server.
//!
#![cfg_attr(any(not(doctest), feature = "client"), doc = include_str!("../README.md"))]

#[cfg(feature = "client")]
mod client;
#[cfg(feature = "server")]
mod server;

#[cfg(feature = "client")]
pub use client::McpTools;
#[cfg(feature = "client")]
pub use client::server::McpServer;
#[cfg(feature = "server")]
pub use server::ChainServer;
