//! Streams of other shapes than plain text: obfuscation, usage, reasoning and tool arguments.

use peer_measure::{Kind, Scenario};

use crate::bench::Bench;
use crate::clients::Client;
use crate::figures::{number, optional};
use crate::goals::Goals;
use crate::table::Table;

const AT_ONCE: usize = 16;

/// Each with the clients that can read it.
const SHAPES: [(Kind, &str, &[Client]); 4] = [
    (Kind::Obfuscated, "obfuscated", &Client::ALL),
    (Kind::Usage, "usage on each chunk", &Client::ALL),
    (Kind::Reasoning, "reasoning", &Client::ALL),
    (Kind::Arguments, "tool arguments", &Client::WITH_TOOLS),
];

/// The highest allowed cost of another chunk shape, as a multiple of the cost of text.
const DEARER: f64 = 1.5;

pub(super) fn run(bench: &mut Bench) {
    println!("\n## Other shapes than plain text, {AT_ONCE} chunks a write\n");
    for (kind, name, clients) in SHAPES {
        let rounds = bench.rounds(clients, Scenario::new(kind, bench.size.chunks, AT_ONCE));
        let mut table =
            Table::new(&[name, "CPU ns/chunk", "times ours", "instructions/chunk", "allocations/chunk"]);
        for client in clients {
            let instructions = bench.instructions_per_chunk(*client, kind, AT_ONCE);
            let allocated = bench.allocations_per_chunk(*client, kind, AT_ONCE).map(|[count, _]| count);
            if *client == Client::Ours {
                note_goals(&mut bench.goals, name, instructions, allocated);
            }
            let cells = [
                number(rounds.cpu_ns(*client) / bench.size.chunks as f64),
                number(rounds.times(*client, Client::Ours)),
                optional(instructions),
                optional(allocated),
            ];
            table.row(client.name(), cells);
        }
        println!("{table}");
    }
}

fn note_goals(goals: &mut Goals, name: &str, instructions: Option<f64>, allocated: Option<f64>) {
    if let (Some(instructions), Some(allocated)) = (instructions, allocated) {
        goals.at_most(&format!("{name}: instructions/chunk"), 1_100.0 * DEARER, instructions);
        goals.at_most(&format!("{name}: allocations/chunk"), 0.1 * DEARER, allocated);
    }
}
