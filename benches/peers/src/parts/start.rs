use peer_measure::{Kind, Mode, Scenario, monotonic_ns};

use crate::bench::Bench;
use crate::clients::Client;
use crate::figures::{median, number};
use crate::table::Table;

pub(super) fn run(bench: &mut Bench) {
    let scenario = Scenario::new(Kind::Text, 1, 1);
    let mut told = vec![Vec::new(); Client::ALL.len()];
    // The first round fills the cache of files.
    for round in 0..=bench.size.starts {
        for (client, told) in Client::ALL.iter().zip(&mut told) {
            let started = monotonic_ns();
            let first = bench.stream(*client, Mode::Cold, scenario).first_text_at;
            if round > 0 {
                told.push((first - started) as f64 / 1e6);
            }
        }
    }
    let mut table = Table::new(&["client", "ms"]);
    for (client, told) in Client::ALL.iter().zip(told) {
        let ms = median(told);
        table.row(client.name(), [number(ms)]);
        if *client == Client::Ours {
            bench.goals.at_most("start of a process to the first token, ms", 3.0, ms);
        }
    }
    println!("\n## From the start of a process to its first token\n\n{table}");
}
