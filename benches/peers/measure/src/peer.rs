//! `Peer`: the trait of a client under test, and `main`, which runs the mode that its arguments name.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use tokio::runtime::Builder;
use tokio::task::LocalSet;

use crate::cost::Meter;
use crate::{Mode, Report, Scenario, Stalled, Streamed, Task, monotonic_ns, paced, peak_kib, resident_kib};

/// The number of chunks after which a stalled reader stops.
const BEFORE_THE_STALL: usize = 10;

/// A client under test.
pub trait Peer: Clone + 'static {
    /// A client of the server at `address`, which ends in `/v1`; `tools` says whether it offers its tool.
    fn new(address: &str, tools: bool) -> Self;

    /// Runs one turn to its end, tools included: awaits `on_text` for each text as it comes, and gives the number
    /// of requests that went out.
    fn turn(&self, on_text: impl AsyncFnMut(&str)) -> impl Future<Output = u64>;
}

/// Runs the mode that the program's arguments name, on one thread.
pub fn main<P: Peer>() {
    let Some(task) = Task::parse(std::env::args().skip(1)) else {
        eprintln!("usage: cold|warm|paced|stalled BASE SCENARIO [STREAMS|MILLISECONDS]");
        std::process::exit(2);
    };
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    let report = LocalSet::new().block_on(&runtime, run::<P>(&task));
    println!("{}", serde_json::to_string(&report).expect("a report is plain data"));
}

async fn run<P: Peer>(task: &Task) -> Report {
    if task.mode != Mode::Cold {
        let warm_up = task.scenario.warm_up();
        client::<P>(task, warm_up).turn(async |_| {}).await;
    }
    match task.mode {
        Mode::Cold | Mode::Warm => Report::Streamed(streamed::<P>(task).await),
        Mode::Paced(streams) => {
            Report::Paced(paced::run(&client::<P>(task, task.scenario), task, streams).await)
        }
        Mode::Stalled(pause) => Report::Stalled(stalled::<P>(task, pause).await),
    }
}

fn client<P: Peer>(task: &Task, scenario: Scenario) -> P {
    P::new(&format!("{}/{scenario}/v1", task.base), scenario.has_tools())
}

async fn streamed<P: Peer>(task: &Task) -> Streamed {
    // Making a client may load certificates, which is no cost of a chunk. What it costs to start is measured from outside.
    let peer = client::<P>(task, task.scenario);
    let meter = Meter::start();
    let (mut text_bytes, mut first_text_at) = (0, 0);
    let on_text = async |text: &str| {
        if first_text_at == 0 {
            first_text_at = monotonic_ns();
        }
        text_bytes += text.len() as u64;
    };
    let requests = peer.turn(on_text).await;
    let (cpu_ns, wall_ns) = (meter.cpu_ns(), meter.wall_ns());
    Streamed { requests, text_bytes, cpu_ns, wall_ns, first_text_at, peak_kib: peak_kib() }
}

async fn stalled<P: Peer>(task: &Task, pause: Duration) -> Stalled {
    let peer = client::<P>(task, task.scenario);
    let before_kib = resident_kib("self").unwrap_or_default();
    let mut read = 0;
    let mut turn = pin!(peer.turn(async |_| {
        read += 1;
        if read == BEFORE_THE_STALL {
            std::future::pending::<()>().await;
        }
    }));
    // Background work of the client continues meanwhile. The stream still exists when its memory is measured.
    let ended = tokio::time::timeout(pause, turn.as_mut()).await;
    assert!(ended.is_err(), "the stream ended before its reader stopped");
    Stalled { before_kib, after_kib: resident_kib("self").unwrap_or_default() }
}
