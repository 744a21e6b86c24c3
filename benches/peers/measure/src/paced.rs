//! Reads many slow streams at once, and measures CPU time, memory and the latency of each chunk.

use std::cell::RefCell;
use std::rc::Rc;

use crate::cost::Meter;
use crate::latency::Latencies;
use crate::{Paced, Peer, Task, monotonic_ns, resident_kib};

/// Opens `streams` streams at once, one task each, and reads them to their end.
pub(crate) async fn run<P: Peer>(peer: &P, task: &Task, streams: usize) -> Paced {
    let seen = Rc::new(RefCell::new(Seen::new(task.scenario.count, streams)));
    let before_kib = resident_kib("self").unwrap_or_default();
    let meter = Meter::start();
    let tasks: Vec<_> = (0..streams)
        .map(|_| tokio::task::spawn_local(one(peer.clone(), Rc::clone(&seen), monotonic_ns())))
        .collect();
    for task in tasks {
        task.await.expect("a stream ends well");
    }
    let (cpu_ns, wall_ns) = (meter.cpu_ns(), meter.wall_ns());
    let mut seen = seen.borrow_mut();
    Paced {
        chunks: seen.added.len() as u64,
        cpu_ns,
        wall_ns,
        before_kib,
        midway_kib: seen.midway_kib,
        added_p50_ns: seen.added.percentile(50),
        added_p99_ns: seen.added.percentile(99),
        first_p50_ns: seen.first.percentile(50),
    }
}

async fn one<P: Peer>(peer: P, seen: Rc<RefCell<Seen>>, opened: u64) {
    let mut read = 0;
    peer.turn(async |text| {
        read += 1;
        seen.borrow_mut().chunk(text, read, opened);
    })
    .await;
}

/// Counts over all streams.
struct Seen {
    /// The chunk of a stream that is its middle.
    middle: usize,
    /// Streams that have not come there yet.
    before_middle: usize,
    midway_kib: u64,
    added: Latencies,
    first: Latencies,
}

impl Seen {
    fn new(chunks: usize, streams: usize) -> Self {
        let (added, first) = (Latencies::with_room(chunks * streams), Latencies::with_room(streams));
        Self { middle: chunks / 2, before_middle: streams, midway_kib: 0, added, first }
    }

    /// Records chunk number `read` of a stream that was opened at `opened`. Its text is the time of sending.
    fn chunk(&mut self, text: &str, read: usize, opened: u64) {
        let (now, sent) = (monotonic_ns(), text.parse().expect("a paced chunk is a time"));
        self.added.push(now.saturating_sub(sent));
        if read == 1 {
            self.first.push(now - opened);
        }
        if read == self.middle {
            self.before_middle -= 1;
            if self.before_middle == 0 {
                self.midway_kib = resident_kib("self").unwrap_or_default();
            }
        }
    }
}
