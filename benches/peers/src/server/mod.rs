//! The server of all clients: on this machine, on one thread. It builds its answers before the requests, so
//! that it is faster than the clients.

mod answer;
mod connection;
mod events;
mod paced;
mod request;

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::rc::Rc;

use peer_measure::{Kind, Scenario};
use tokio::net::TcpSocket;
use tokio::runtime::Builder;
use tokio::task::LocalSet;

use answer::Answer;

/// Connections that wait to be accepted: as many as are opened at once.
const BACKLOG: u32 = 4096;

/// Serves until standard input ends, which is when the driver does; prints its address.
pub(crate) fn run() -> io::Result<()> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    std::thread::spawn(|| {
        // The parent process holds the other end. The read returns when the parent ends.
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        std::process::exit(0);
    });
    LocalSet::new().block_on(&runtime, accept())
}

async fn accept() -> io::Result<()> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(([127, 0, 0, 1], 0).into())?;
    let listener = socket.listen(BACKLOG)?;
    println!("http://{}", listener.local_addr()?);
    let answers = Answers::default();
    for serial in 0.. {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        // A client that goes away ends its connection and nothing else.
        tokio::task::spawn_local(connection::serve(stream, answers.clone(), serial));
    }
    Ok(())
}

/// Answers that were made already.
#[derive(Clone, Default)]
struct Answers(Rc<RefCell<Made>>);

/// By scenario and round.
type Made = HashMap<(Scenario, usize), Rc<Answer>>;

impl Answers {
    /// Returns the answer to a request with `results` tool results.
    fn of(&self, scenario: Scenario, results: usize) -> Rc<Answer> {
        let round = match scenario.kind {
            Kind::Tools => (results / scenario.by.max(1)).min(scenario.count),
            _ => results.min(1),
        };
        let mut answers = self.0.borrow_mut();
        Rc::clone(answers.entry((scenario, round)).or_insert_with(|| Rc::new(Answer::new(scenario, round))))
    }
}
