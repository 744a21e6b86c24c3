//! Prints the turns of the tests in every protocol, for real clients: one JSON object of turns, each an object of
//! streams. `tests/clients/streams.mjs` reads it.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "the modules are those of tests")]

#[path = "../tests/all/table.rs"]
#[allow(dead_code, reason = "tests use the checks")]
mod table;
#[path = "../tests/all/turns.rs"]
#[allow(dead_code, reason = "tests make further turns")]
mod turns;
#[path = "../tests/all/validate/mod.rs"]
mod validate;

use std::collections::BTreeMap;

use advisor_sse::Frames;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), serde_json::Error> {
    let mut all = BTreeMap::new();
    for (name, turn) in turns::all().await {
        let stream = |encoder| table::encode(encoder, Frames::new(), &turn);
        let streams: BTreeMap<_, _> = table::protocols()
            .into_iter()
            .map(|(protocol, encoder, _)| (protocol, stream(encoder())))
            .collect();
        all.insert(name, streams);
    }
    serde_json::to_writer(std::io::stdout(), &all)
}
