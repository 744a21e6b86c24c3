//! The growth of a client's memory after its reader stops.

use std::time::Duration;

use peer_measure::{Kind, Mode, Report, Scenario, Stalled};

use crate::bench::Bench;
use crate::clients::Client;
use crate::figures::number;
use crate::table::Table;

const AT_ONCE: usize = 16;
/// Longer than the server needs to fill the socket, or, where a client takes all, to send everything.
const PAUSE: Duration = Duration::from_secs(3);
/// The difference in memory that does not count as growth: pages of the allocator, timing of the socket.
const NOISE_MIB: f64 = 1.0;

pub(super) fn run(bench: &mut Bench) {
    let [short, long] = bench.size.stalled;
    let mut table =
        Table::new(&["client", &format!("of {short} chunks: MiB more"), &format!("of {long}: MiB more")]);
    for client in Client::ALL {
        let [short, long] = bench.size.stalled.map(|chunks| more_mib(bench, client, chunks));
        table.row(client.name(), [number(short), number(long)]);
        if client == Client::Ours {
            let what = "stalled reader: MiB more for a stream ten times as long";
            bench.goals.at_most(what, NOISE_MIB, long - short);
        }
    }
    println!("\n## A reader that stops after ten chunks, for {} s\n\n{table}", PAUSE.as_secs());
}

/// Returns the growth of memory in MiB after the reader has stopped.
fn more_mib(bench: &Bench, client: Client, chunks: usize) -> f64 {
    let scenario = Scenario::new(Kind::Text, chunks, AT_ONCE);
    let Report::Stalled(Stalled { before_kib, after_kib }) =
        bench.run(client, Mode::Stalled(PAUSE), scenario)
    else {
        panic!("{} told of something else", client.name())
    };
    (after_kib as f64 - before_kib as f64) / 1024.0
}
