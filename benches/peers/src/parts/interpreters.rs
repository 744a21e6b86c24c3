//! Libraries for Python and Node beside ours: CPU time, memory, and the time to the first token.

use peer_measure::{Kind, Scenario};

use super::start;
use crate::bench::Bench;
use crate::clients::Client;
use crate::figures::number;
use crate::table::Table;

const AT_ONCE: usize = 16;

pub(super) fn run(bench: &mut Bench) {
    bench.install_interpreters();
    let clients = [Client::Ours, Client::Python, Client::Node];
    let rounds = bench.rounds(&clients, Scenario::new(Kind::Text, bench.size.chunks, AT_ONCE));
    let starts = start::times(bench, &clients);
    let mut table =
        Table::new(&["client", "CPU ns/chunk", "times ours", "peak MiB", "start to the first token, ms"]);
    for (client, start) in clients.into_iter().zip(starts) {
        let cells = [
            rounds.cpu_ns(client) / bench.size.chunks as f64,
            rounds.times(client, Client::Ours),
            rounds.peak_kib(client) / 1024.0,
            start,
        ];
        table.row(client.name(), cells.map(number));
    }
    println!("\n## Python and Node, {AT_ONCE} chunks a write\n\n{table}");
}
