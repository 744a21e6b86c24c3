//! Turns of many rounds of tool calls: instructions and CPU time, and their growth with the rounds.

use peer_measure::{Kind, Mode, Scenario};

use crate::bench::Bench;
use crate::clients::Client;
use crate::figures::{exponent, number, optional};
use crate::parts::curve;
use crate::rounds::Rounds;
use crate::table::Table;

/// Calls of a round, and the most instructions that one may cost.
const PARALLEL: [(usize, Option<f64>); 2] = [(1, Some(200_000.0)), (4, None)];

pub(super) fn run(bench: &mut Bench) {
    for (parallel, bound) in PARALLEL {
        print_instructions(bench, parallel);
        print_cpu(bench, parallel);
        note_goals(bench, parallel, bound);
    }
    print_memory(bench);
}

/// Returns the instructions of a round, without the first one. The first round includes starting the client and
/// one-time work, such as compiling a schema, which would hide the growth.
fn per_round(bench: &mut Bench, client: Client, rounds: usize, parallel: usize) -> Option<f64> {
    let one = bench.instructions(client, Scenario::new(Kind::Tools, 1, parallel))?;
    let all = bench.instructions(client, Scenario::new(Kind::Tools, rounds, parallel))?;
    Some((all - one) / (rounds - 1) as f64)
}

/// Returns the growth of the instructions of all rounds, from the shortest turn to the longest.
fn growth(bench: &mut Bench, client: Client, parallel: usize) -> Option<f64> {
    let (few, many) = (*bench.size.loops.first()?, *bench.size.loops.last()?);
    let small = per_round(bench, client, few, parallel)? * (few - 1) as f64;
    let large = per_round(bench, client, many, parallel)? * (many - 1) as f64;
    Some(exponent(((few - 1) as f64, small), ((many - 1) as f64, large)))
}

fn print_instructions(bench: &mut Bench, parallel: usize) {
    let loops = bench.size.loops;
    let mut head = vec!["client".to_owned()];
    head.extend(loops.iter().map(|rounds| format!("{rounds} rounds: instructions/round")));
    head.push("exponent".to_owned());
    let mut table = Table::new(&head);
    for client in Client::WITH_TOOLS {
        let mut cells = Vec::new();
        for rounds in loops {
            cells.push(optional(per_round(bench, client, *rounds, parallel)));
        }
        cells.push(optional(growth(bench, client, parallel)));
        table.row(client.name(), cells);
    }
    println!("\n## A turn of many rounds, {parallel} calls a round: instructions\n\n{table}");
}

fn print_cpu(bench: &Bench, parallel: usize) {
    let loops = bench.size.loops;
    let told: Vec<Rounds> = loops
        .iter()
        .map(|rounds| bench.rounds(&Client::WITH_TOOLS, Scenario::new(Kind::Tools, *rounds, parallel)))
        .collect();
    let mut head = vec!["client".to_owned()];
    for rounds in loops {
        head.extend([format!("{rounds} rounds: CPU ms"), "times ours".to_owned()]);
    }
    head.push("peak MiB".to_owned());
    let mut table = Table::new(&head);
    for client in Client::WITH_TOOLS {
        let mut cells = Vec::new();
        for told in &told {
            cells.extend([number(told.cpu_ns(client) / 1e6), number(told.times(client, Client::Ours))]);
        }
        cells.extend(told.last().map(|told| number(told.peak_kib(client) / 1024.0)));
        table.row(client.name(), cells);
    }
    println!("## A turn of many rounds, {parallel} calls a round: CPU\n\n{table}");
}

fn note_goals(bench: &mut Bench, parallel: usize, bound: Option<f64>) {
    let Some(growth) = growth(bench, Client::Ours, parallel) else { return };
    let calls = format!("tools, {parallel} calls a round");
    bench.goals.at_most(&format!("{calls}: exponent of instructions"), 1.05, growth);
    let Some(most) = bench.size.loops.last().copied() else { return };
    let ours = per_round(bench, Client::Ours, most, parallel);
    let rig = per_round(bench, Client::RigAgent, most, parallel);
    if let (Some(ours), Some(bound)) = (ours, bound) {
        bench.goals.at_most(&format!("{calls}: instructions/round of {most}"), bound, ours);
    }
    if let (Some(ours), Some(rig), 4) = (ours, rig, parallel) {
        bench.goals.at_least(
            &format!("{calls}, {most} rounds: rig's instructions, times ours"),
            60.0,
            rig / ours,
        );
    }
}

/// Ours alone, over time.
fn print_memory(bench: &Bench) {
    let Some(most) = bench.size.loops.last().copied() else { return };
    let scenario = Scenario::new(Kind::Tools, most, 4);
    let curve = curve::of(bench.command(Client::Ours, Mode::Cold, scenario));
    println!("Memory of ours over a turn of {most} rounds with 4 calls each, in MiB: {curve}.\n");
}
