//! Scripted models, a replaying loopback server and an order journal for testing advisor chains.
