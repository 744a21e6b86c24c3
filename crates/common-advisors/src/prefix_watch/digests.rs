//! `Digests`: those of system text, tools and messages, and what changed since others.

use std::hash::{DefaultHasher, Hasher};
use std::io;

use advisor_core::{ChatRequest, Message, Role, ToolSet};
use serde::Serialize;

/// The digests of the parts of a request that providers cache, in the order in which they do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Digests {
    tools: u64,
    system: u64,
    /// Those of the other messages: the first ones only, up to the ephemeral ones at the end.
    messages: Vec<u64>,
}

/// The parts that changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Changed {
    pub(super) system: bool,
    pub(super) tools: bool,
    pub(super) message: Option<usize>,
}

/// The digest of a message or of a set of tools, which is computed once for each.
struct Digest(u64);

impl Digests {
    /// Computes the digests of a request, with those of at most `most` messages.
    ///
    /// Ephemeral messages at the end are of this call alone, such as the correction of a rejected answer.
    pub(super) fn of(request: &ChatRequest, most: usize) -> Self {
        let is_system = |message: &&Message| message.role() == Role::System;
        let is_last = |message: &&Message| is_system(message) || message.is_ephemeral();
        let kept = request.messages.len() - request.messages.iter().rev().take_while(is_last).count();
        let mut system = DefaultHasher::new();
        request.messages.iter().filter(is_system).for_each(|message| system.write_u64(digest_of(message)));
        let others = request.messages.iter().take(kept).filter(|message| !is_system(message));
        // Context is sent at the beginning of the message that it stands before.
        let (mut messages, mut context) = (Vec::new(), DefaultHasher::new());
        for message in others {
            context.write_u64(digest_of(message));
            if !(message.is_ephemeral() && message.role() == Role::User) {
                messages.push(std::mem::take(&mut context).finish());
            }
            if messages.len() == most {
                break;
            }
        }
        Self { tools: request.api_tools().wire_form(digest_of_tools).0, system: system.finish(), messages }
    }

    /// Returns the parts that changed since an earlier request. Its last message may change, and others may follow it.
    pub(super) fn since(&self, earlier: &Self) -> Option<Changed> {
        let kept = earlier.messages.len().saturating_sub(1);
        let message = (0..kept).find(|place| self.messages.get(*place) != earlier.messages.get(*place));
        let (system, tools) = (self.system != earlier.system, self.tools != earlier.tools);
        (system || tools || message.is_some()).then_some(Changed { system, tools, message })
    }
}

fn digest_of(message: &Message) -> u64 {
    message.wire_form(|message| Digest(digest(message.content()))).0
}

fn digest_of_tools(tools: &ToolSet) -> Digest {
    let sent: Vec<_> =
        tools.definitions().map(|tool| (&tool.name, &tool.description, &tool.parameters)).collect();
    Digest(digest(&sent))
}

/// Returns the digest of the JSON form of a value.
fn digest(value: &impl Serialize) -> u64 {
    struct Hashing(DefaultHasher);

    impl io::Write for Hashing {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.write(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    let mut hashing = Hashing(DefaultHasher::new());
    // A value without a JSON form has the digest of its beginning.
    let _ = serde_json::to_writer(&mut hashing, value);
    hashing.0.finish()
}
