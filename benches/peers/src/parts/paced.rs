//! Many slow streams at once: memory per stream, CPU time per chunk, and added latency.

use peer_measure::{Kind, Mode, Paced, Report, Scenario};

use crate::bench::Bench;
use crate::clients::Client;
use crate::figures::{median, number};
use crate::parts::curve;
use crate::table::Table;

/// Fifty chunks a second.
const PAUSE_MS: usize = 20;
/// A round takes seconds for each client.
const ROUNDS: usize = 7;

pub(super) fn run(bench: &mut Bench) {
    let (streams, chunks) = (bench.size.streams, bench.size.paced_chunks);
    let scenario = Scenario::new(Kind::Paced, chunks, PAUSE_MS);
    let mut told: Vec<Vec<Paced>> = vec![Vec::new(); Client::ALL.len()];
    for round in 0..ROUNDS.min(bench.size.rounds) {
        eprintln!("    {streams} × {scenario}, round {}", round + 1);
        for (client, told) in Client::ALL.iter().zip(&mut told) {
            told.push(one(bench, *client, Mode::Paced(streams), scenario));
        }
    }
    print(streams, &told);
    for (client, told) in Client::ALL.iter().zip(&told) {
        if *client == Client::Ours {
            note_goals(bench, &Figures::of(streams, told));
        }
    }
    let curve = curve::of(bench.command(Client::Ours, Mode::Paced(streams), scenario));
    println!("Memory of ours over {streams} streams at once, in MiB: {curve}.\n");
}

fn one(bench: &Bench, client: Client, mode: Mode, scenario: Scenario) -> Paced {
    let Report::Paced(paced) = bench.run(client, mode, scenario) else {
        panic!("{} told of something else", client.name())
    };
    let expected = (bench.size.streams * scenario.count) as u64;
    assert_eq!(paced.chunks, expected, "{} lost chunks", client.name());
    paced
}

/// Medians over the rounds.
struct Figures {
    stream_kib: f64,
    chunk_us: f64,
    core: f64,
    added_p50_ms: f64,
    added_p99_ms: f64,
    first_p50_ms: f64,
}

impl Figures {
    fn of(streams: usize, told: &[Paced]) -> Self {
        let median = |figure: fn(&Paced) -> f64| median(told.iter().map(figure));
        Self {
            stream_kib: median(|told| told.midway_kib as f64 - told.before_kib as f64) / streams as f64,
            chunk_us: median(|told| told.cpu_ns as f64 / told.chunks as f64) / 1e3,
            core: median(|told| told.cpu_ns as f64 / told.wall_ns as f64),
            added_p50_ms: median(|told| told.added_p50_ns as f64) / 1e6,
            added_p99_ms: median(|told| told.added_p99_ns as f64) / 1e6,
            first_p50_ms: median(|told| told.first_p50_ns as f64) / 1e6,
        }
    }
}

fn print(streams: usize, told: &[Vec<Paced>]) {
    let mut table = Table::new(&[
        "client", "KiB/stream", "CPU µs/chunk", "% of a core", "added latency p50 ms", "p99 ms",
        "first chunk p50 ms",
    ]);
    for (client, told) in Client::ALL.iter().zip(told) {
        let figures = Figures::of(streams, told);
        let cells = [
            figures.stream_kib,
            figures.chunk_us,
            figures.core * 100.0,
            figures.added_p50_ms,
            figures.added_p99_ms,
            figures.first_p50_ms,
        ];
        table.row(client.name(), cells.map(number));
    }
    println!("\n## {streams} streams at once, a chunk each {PAUSE_MS} ms\n\n{table}");
}

fn note_goals(bench: &mut Bench, ours: &Figures) {
    bench.goals.at_most("paced: CPU µs/chunk", 8.0, ours.chunk_us);
    bench.goals.at_most("paced: added latency, p99 ms", 1.0, ours.added_p99_ms);
    bench.goals.at_most("paced: KiB/stream", 29.0, ours.stream_kib);
    bench.goals.at_most("paced: KiB/stream (stretch)", 8.0, ours.stream_kib);
}
