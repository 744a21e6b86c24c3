//! The scripts. The server knows one by a hash of its text; one that it does not know is sent to it.

use std::sync::LazyLock;

use redis::Script;

type Lazy = LazyLock<Script>;

pub(crate) static APPEND: Lazy = Lazy::new(|| of_conversation(include_str!("scripts/append.lua")));
pub(crate) static LOAD: Lazy = Lazy::new(|| of_conversation(include_str!("scripts/load.lua")));
pub(crate) static READ: Lazy = Lazy::new(|| of_conversation(include_str!("scripts/read.lua")));
pub(crate) static BRANCHES: Lazy = Lazy::new(|| of_conversation(include_str!("scripts/branches.lua")));
pub(crate) static DELETE: Lazy = Lazy::new(|| of_conversation(include_str!("scripts/delete.lua")));
pub(crate) static EXISTS: Lazy = Lazy::new(|| Script::new(include_str!("scripts/exists.lua")));
pub(crate) static ACQUIRE: Lazy = Lazy::new(|| of_lease(include_str!("scripts/acquire.lua")));
pub(crate) static RENEW: Lazy = Lazy::new(|| of_lease(include_str!("scripts/renew.lua")));
pub(crate) static LIST: Lazy = Lazy::new(|| Script::new(include_str!("scripts/list.lua")));
pub(crate) static MARK: Lazy = Lazy::new(|| Script::new(include_str!("scripts/mark.lua")));
pub(crate) static MARKED: Lazy = Lazy::new(|| Script::new(include_str!("scripts/marked.lua")));
pub(crate) static UNMARK: Lazy = Lazy::new(|| Script::new(include_str!("scripts/unmark.lua")));

fn of_conversation(script: &str) -> Script {
    Script::new(&[include_str!("scripts/conversation.lua"), script].concat())
}

fn of_lease(script: &str) -> Script {
    of_conversation(&[include_str!("scripts/lease.lua"), script].concat())
}
