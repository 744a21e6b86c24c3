//! The replay server over real sockets.

mod answers;
mod client;
mod faults;

/// Two events with characters of several bytes.
const BODY: &str = "data: {\"text\":\"Grüße 🌍\"}\r\n\r\ndata: [DONE]\r\n\r\n";
