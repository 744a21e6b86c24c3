//! The parsers: every example, whole and at every split, with the same events and all of the text.

mod common;
mod json;
mod limits;
mod properties;
mod sentinel;
mod vendors;
mod xml;
