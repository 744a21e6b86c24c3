//! The scripts that the server runs, each atomically.

use chat_memory_redis::redis::Script;

pub(super) struct Scripts {
    pub(super) begin: Script,
    pub(super) release: Script,
    pub(super) append: Script,
    pub(super) read: Script,
    pub(super) running: Script,
    pub(super) stop: Script,
    pub(super) turns: Script,
    pub(super) forget: Script,
}

const CLOCK: &str = include_str!("scripts/clock.lua");
const RENEW: &str = include_str!("scripts/renew.lua");

impl Scripts {
    pub(super) fn new() -> Self {
        let timed = |script: &str| Script::new(&[CLOCK, script].concat());
        let renewing = |script: &str| timed(&[RENEW, script].concat());
        Self {
            begin: renewing(include_str!("scripts/begin.lua")),
            release: Script::new(include_str!("scripts/release.lua")),
            append: renewing(include_str!("scripts/append.lua")),
            read: timed(include_str!("scripts/read.lua")),
            running: timed(include_str!("scripts/running.lua")),
            stop: Script::new(include_str!("scripts/stop.lua")),
            turns: Script::new("return redis.call('ZRANGE', KEYS[1], 0, -1)"),
            forget: Script::new(include_str!("scripts/forget.lua")),
        }
    }
}
