//! The figures, and their table.

use std::collections::BTreeSet;
use std::fmt;

use crate::client::ReadStreams;
use crate::process::Usage;
use crate::{Load, MOST_TIMES};

/// Both servers with the same streams, one after the other.
#[derive(Debug)]
pub(crate) struct Round {
    pub(crate) chain: Measured,
    pub(crate) bare: Measured,
}

/// One server with all streams.
#[derive(Debug)]
pub(crate) struct Measured {
    pub(crate) read: ReadStreams,
    pub(crate) before: Usage,
    pub(crate) after: Usage,
}

/// The figures of all rounds.
#[derive(Debug)]
pub(crate) struct Report {
    load: Load,
    rounds: Vec<Round>,
}

impl Measured {
    fn cpu_seconds(&self) -> f64 {
        (self.after.cpu - self.before.cpu).as_secs_f64()
    }

    /// Returns the memory of a stream: the peak of the process above its begin.
    fn kib_per_stream(&self, load: Load) -> f64 {
        (self.after.peak_kib - self.before.now_kib) as f64 / load.streams as f64
    }

    fn latency_ms(&self, percent: usize) -> f64 {
        let mut latencies = self.read.latencies.clone();
        latencies.sort_unstable();
        let last = latencies.len().saturating_sub(1);
        latencies.get(last * percent / 100).map_or(f64::NAN, |ns| *ns as f64 / 1e6)
    }

    fn lost_chunks(&self, load: Load) -> usize {
        (load.streams * load.chunks).abs_diff(self.read.latencies.len())
    }
}

impl Report {
    /// Collects the rounds.
    ///
    /// # Panics
    /// If nothing is lost, and yet the servers sent different numbers of bytes.
    pub(crate) fn new(load: Load, rounds: Vec<Round>) -> Self {
        let report = Self { load, rounds };
        let bytes: BTreeSet<usize> =
            report.all().flat_map(|measured| &measured.read.stream_bytes).copied().collect();
        assert!(
            !report.has_all() || bytes.len() == 1,
            "the servers sent different events: {bytes:?} bytes a stream"
        );
        report
    }

    /// Checks whether no stream and no chunk is lost.
    pub(crate) fn has_all(&self) -> bool {
        self.all().all(|measured| measured.read.lost_streams == 0 && measured.lost_chunks(self.load) == 0)
    }

    /// Returns the CPU time of the chain, in multiples of that of the bare handler.
    pub(crate) fn times(&self) -> f64 {
        self.median(|round| round.chain.cpu_seconds() / round.bare.cpu_seconds())
    }

    fn all(&self) -> impl Iterator<Item = &Measured> {
        self.rounds.iter().flat_map(|round| [&round.chain, &round.bare])
    }

    fn median(&self, figure: impl Fn(&Round) -> f64) -> f64 {
        let mut figures: Vec<f64> = self.rounds.iter().map(figure).collect();
        figures.sort_unstable_by(f64::total_cmp);
        figures[figures.len() / 2]
    }

    fn row(&self, f: &mut fmt::Formatter<'_>, name: &str, of: impl Fn(&Round) -> &Measured) -> fmt::Result {
        let chunks = (self.load.streams * self.load.chunks) as f64;
        let sum = |lost: &dyn Fn(&Measured) -> usize| {
            self.rounds.iter().map(|round| lost(of(round))).sum::<usize>()
        };
        writeln!(
            f,
            "| {name} | {} | {} | {:.2} | {:.1} | {:.2} | {:.1} | {:.2} | {:.2} |",
            sum(&|measured| measured.read.lost_streams),
            sum(&|measured| measured.lost_chunks(self.load)),
            self.median(|round| of(round).cpu_seconds()),
            self.median(|round| of(round).cpu_seconds() * 1e6 / chunks),
            self.median(|round| chunks / of(round).read.reads as f64),
            self.median(|round| of(round).kib_per_stream(self.load)),
            self.median(|round| of(round).latency_ms(50)),
            self.median(|round| of(round).latency_ms(99)),
        )
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Load { streams, chunks, rounds } = self.load;
        let others = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let others = others.split(' ').next().unwrap_or_default();
        writeln!(
            f,
            "{streams} streams of {chunks} chunks, medians of {rounds} rounds; load average at the end {others}\n"
        )?;
        writeln!(
            f,
            "| server | lost streams | lost chunks | CPU s | CPU µs/chunk | chunks/read | KiB/stream | added p50 ms | added p99 ms |"
        )?;
        writeln!(f, "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")?;
        self.row(f, "chain", |round| &round.chain)?;
        self.row(f, "bare handler", |round| &round.bare)?;
        let memory =
            |round: &Round| round.chain.kib_per_stream(self.load) - round.bare.kib_per_stream(self.load);
        let (times, memory) = (self.times(), self.median(memory));
        writeln!(
            f,
            "\nThe chain takes {times:.2} times the CPU time of the bare handler (at most {MOST_TIMES:.1}),"
        )?;
        writeln!(f, "and {memory:.1} KiB more memory for each stream.")
    }
}
