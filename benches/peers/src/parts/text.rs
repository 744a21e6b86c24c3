//! Streams of plain text: CPU time, instructions, allocations and memory, by chunks per write.

use peer_measure::{Kind, Scenario};

use crate::bench::Bench;
use crate::clients::Client;
use crate::figures::{number, optional};
use crate::goals::Goals;
use crate::rounds::Rounds;
use crate::table::Table;

/// The chunks per write: one, about a packet, and an amount that a proxy may gather.
const AT_ONCE: [usize; 3] = [1, USUAL, MANY];
const USUAL: usize = 16;
const MANY: usize = 256;

pub(super) fn run(bench: &mut Bench) {
    let chunks = bench.size.chunks;
    let rounds = AT_ONCE.map(|by| bench.rounds(&Client::ALL, Scenario::new(Kind::Text, chunks, by)));
    let [_, usual, _] = &rounds;
    print_usual(bench, usual);
    print_by_size(bench, &rounds);
    note_cpu(&mut bench.goals, usual);
    note_by_size(bench, &rounds);
}

fn print_usual(bench: &mut Bench, rounds: &Rounds) {
    let mut table = Table::new(&[
        "client", "CPU ns/chunk", "times ours", "chunks per CPU second", "instructions/chunk",
        "allocations/chunk", "bytes allocated/chunk", "peak MiB",
    ]);
    for client in Client::ALL {
        let instructions = bench.instructions_per_chunk(client, Kind::Text, USUAL);
        let allocated = bench.allocations_per_chunk(client, Kind::Text, USUAL);
        if let (Client::Ours, Some([count, _])) = (client, allocated) {
            bench.goals.at_most("text: allocations/chunk", 0.1, count);
        }
        let ns = rounds.cpu_ns(client) / bench.size.chunks as f64;
        let cells = [
            number(ns),
            number(rounds.times(client, Client::Ours)),
            number(1e9 / ns),
            optional(instructions),
            optional(allocated.map(|[count, _]| count)),
            optional(allocated.map(|[_, bytes]| bytes)),
            number(rounds.peak_kib(client) / 1024.0),
        ];
        table.row(client.name(), cells);
    }
    println!("\n## Text, {USUAL} chunks a write\n\n{table}");
}

fn print_by_size(bench: &mut Bench, rounds: &[Rounds]) {
    let mut table =
        Table::new(&["client", "1 chunk a write: ns", "16: ns", "256: ns", "1: instructions", "16", "256"]);
    for client in Client::ALL {
        let times: Vec<String> =
            rounds.iter().map(|rounds| number(rounds.cpu_ns(client) / bench.size.chunks as f64)).collect();
        let counts = AT_ONCE.map(|by| optional(bench.instructions_per_chunk(client, Kind::Text, by)));
        table.row(client.name(), times.into_iter().chain(counts));
    }
    println!("## Text, by how much arrives at once (CPU and instructions per chunk)\n\n{table}");
}

fn note_cpu(goals: &mut Goals, rounds: &Rounds) {
    for (client, bound) in [(Client::AsyncOpenai, 7.0), (Client::Genai, 11.0), (Client::RigAgent, 40.0)] {
        let what = format!("text: CPU of {}, times ours", client.name());
        goals.at_least(&what, bound, rounds.times(client, Client::Ours));
    }
    goals.at_most("text: our CPU, times a raw tokio scan", 1.4, rounds.times(Client::Ours, Client::Floor));
}

fn note_by_size(bench: &mut Bench, rounds: &[Rounds; 3]) {
    let [_, usual, many] =
        rounds.each_ref().map(|rounds| rounds.cpu_ns(Client::Ours) / bench.size.chunks as f64);
    bench.goals.at_most("text, 256 chunks a write: CPU ns/chunk", 100.0, many);
    bench.goals.at_most("text: CPU of 256 chunks a write, times that of 16", 1.0, many / usual);
    let Some(usual) = bench.instructions_per_chunk(Client::Ours, Kind::Text, USUAL) else { return };
    bench.goals.at_most("text: instructions/chunk", 1_100.0, usual);
    bench.goals.at_most("text: instructions/chunk (stretch)", 800.0, usual);
    let Some(many) = bench.instructions_per_chunk(Client::Ours, Kind::Text, MANY) else { return };
    bench.goals.at_most("text: instructions of 256 chunks a write, times those of 16", 1.0, many / usual);
}
