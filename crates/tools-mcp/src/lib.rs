//! Tools of Model Context Protocol (MCP) servers for chains of advisors, and a chain as a tool of such a server.
//!
//! - [`McpServer`] describes a server and the way to reach it: a command, an address or any other stream.
//! - [`McpTools`] are the tools of a connected server: a [`ToolSet`](advisor_core::ToolSet) at one time, or an advisor
//!   that adds the current tools to each round.
//! - `ChainServer` (feature `server`) is a chain as a server with one tool.
//! - [`DuplicateTool`] is a tool that is left out, since another tool has its name.
//!
//! # Features
//! | feature | contents | by default |
//! | --- | --- | --- |
//! | `client` | tools of servers | yes |
//! | `server` | a chain as a tool | no |
//!
//! The protocol is that of `rmcp`, the official SDK. No type of it is public here.

#[cfg(feature = "client")]
mod client;
#[cfg(feature = "server")]
mod server;

#[cfg(feature = "client")]
pub use client::McpTools;
#[cfg(feature = "client")]
pub use client::catalog::DuplicateTool;
#[cfg(feature = "client")]
pub use client::server::McpServer;
#[cfg(feature = "server")]
pub use server::ChainServer;

/// Runs the code of the README as a test.
#[cfg(all(doctest, feature = "client"))]
#[doc = include_str!("../README.md")]
struct Readme;
