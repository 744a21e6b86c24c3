//! The scripts that the server runs. It identifies a script by a hash of its text; a script that it does not know
//! is sent to it.

use redis::Script;

pub(crate) struct Scripts {
    pub(crate) append: Script,
    pub(crate) load: Script,
    pub(crate) read: Script,
    pub(crate) branches: Script,
    pub(crate) delete: Script,
    pub(crate) exists: Script,
    pub(crate) acquire: Script,
    pub(crate) renew: Script,
    pub(crate) list: Script,
    pub(crate) mark: Script,
    pub(crate) marked: Script,
    pub(crate) unmark: Script,
}

const CONVERSATION: &str = include_str!("scripts/conversation.lua");
const LEASE: &str = include_str!("scripts/lease.lua");

impl Scripts {
    pub(crate) fn new() -> Self {
        let of_conversation = |script: &str| Script::new(&[CONVERSATION, script].concat());
        let of_lease = |script: &str| Script::new(&[CONVERSATION, LEASE, script].concat());
        Self {
            append: of_conversation(include_str!("scripts/append.lua")),
            load: of_conversation(include_str!("scripts/load.lua")),
            read: of_conversation(include_str!("scripts/read.lua")),
            branches: of_conversation(include_str!("scripts/branches.lua")),
            delete: of_conversation(include_str!("scripts/delete.lua")),
            exists: Script::new(include_str!("scripts/exists.lua")),
            acquire: of_lease(include_str!("scripts/acquire.lua")),
            renew: of_lease(include_str!("scripts/renew.lua")),
            list: Script::new(include_str!("scripts/list.lua")),
            mark: Script::new(include_str!("scripts/mark.lua")),
            marked: Script::new(include_str!("scripts/marked.lua")),
            unmark: Script::new(include_str!("scripts/unmark.lua")),
        }
    }
}
