//! The time from the start of a process to its first token.

use peer_measure::{Kind, Mode, Scenario, monotonic_ns};

use crate::bench::Bench;
use crate::clients::Client;
use crate::figures::{median, number};
use crate::table::Table;

pub(super) fn run(bench: &mut Bench) {
    let mut table = Table::new(&["client", "ms"]);
    for (client, ms) in Client::ALL.iter().zip(times(bench, &Client::ALL)) {
        table.row(client.name(), [number(ms)]);
        if *client == Client::Ours {
            bench.goals.at_most("start of a process to the first token, ms", 3.0, ms);
        }
    }
    println!("\n## From the start of a process to its first token\n\n{table}");
}

/// The milliseconds that each client needs, from the start of its process to its first token.
pub(super) fn times(bench: &Bench, clients: &[Client]) -> Vec<f64> {
    let scenario = Scenario::new(Kind::Text, 1, 1);
    let mut told = vec![Vec::new(); clients.len()];
    // The first round fills the cache of files.
    for round in 0..=bench.size.starts {
        for (client, told) in clients.iter().zip(&mut told) {
            let started = monotonic_ns();
            let first = bench.stream(*client, Mode::Cold, scenario).first_text_at;
            if round > 0 {
                told.push((first - started) as f64 / 1e6);
            }
        }
    }
    told.into_iter().map(median).collect()
}
