//! `Bench`: starts the server, runs the clients, and counts their instructions and allocations.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use peer_measure::{Kind, Mode, Report, Scenario, Streamed};

use crate::clients::{Client, Programs};
use crate::goals::Goals;
use crate::machine;
use crate::rounds::Rounds;
use crate::server_process::ServerProcess;
use crate::size::Size;
use crate::valgrind;

/// The chunks of the two streams whose difference is counted, which removes the one-time cost of a stream.
const COUNTED: [usize; 2] = [1_000, 3_000];

/// The shared state of all parts: the server, the clients, and the counts so far.
pub(crate) struct Bench {
    pub(crate) size: Size,
    pub(crate) goals: Goals,
    programs: Programs,
    server: ServerProcess,
    pinned: bool,
    valgrind: Option<String>,
    instructions: HashMap<(Client, Scenario), f64>,
}

impl Bench {
    /// Builds the clients and starts the server on the first core. Later processes run on the second.
    pub(crate) fn start(quick: bool) -> Self {
        let programs = Programs::build();
        machine::allow_many_files();
        let server_pinned = machine::pin(0);
        let server = ServerProcess::start();
        Self {
            size: if quick { Size::QUICK } else { Size::FULL },
            goals: Goals::default(),
            programs,
            server,
            pinned: machine::pin(1) && server_pinned,
            valgrind: valgrind::version(),
            instructions: HashMap::new(),
        }
    }

    /// Returns the conditions of this run, in Markdown.
    pub(crate) fn conditions(&self) -> String {
        let pinned = if self.pinned {
            "server on core 0, clients on core 1"
        } else {
            "**not pinned to cores: times are worth little**"
        };
        let valgrind = self
            .valgrind
            .as_deref()
            .unwrap_or("**no valgrind: instructions and allocations are not counted**");
        let machine = machine::processor();
        format!("{machine}; {pinned}; {valgrind}; load {}; {:?}\n", machine::load(), self.size)
    }

    /// Runs a client once.
    pub(crate) fn run(&self, client: Client, mode: Mode, scenario: Scenario) -> Report {
        let output = self.command(client, mode, scenario).output().expect("a client can be started");
        let (report, complaint) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let name = client.name();
        serde_json::from_str(&report)
            .unwrap_or_else(|_| panic!("{name} failed in {scenario}:\n{complaint}{report}"))
    }

    /// Runs a client once, for one turn.
    pub(crate) fn stream(&self, client: Client, mode: Mode, scenario: Scenario) -> Streamed {
        match self.run(client, mode, scenario) {
            Report::Streamed(streamed) => streamed,
            other => panic!("{} told of something else: {other:?}", client.name()),
        }
    }

    /// A client that is to run, and whose output is to be read.
    pub(crate) fn command(&self, client: Client, mode: Mode, scenario: Scenario) -> Command {
        let (program, words) = self.words(client);
        let mut command = Command::new(program);
        command.args(words).args(mode.arguments(self.server.address(), scenario));
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Instructions of a client in one turn of a fresh process; `None` without valgrind.
    pub(crate) fn instructions(&mut self, client: Client, scenario: Scenario) -> Option<f64> {
        self.valgrind.as_ref()?;
        if let Some(counted) = self.instructions.get(&(client, scenario)) {
            return Some(*counted);
        }
        eprintln!("    instructions of {} {scenario}", client.name());
        let (program, arguments) = self.counted(client, scenario);
        let counted = valgrind::instructions(program, &arguments) as f64;
        self.instructions.insert((client, scenario), counted);
        Some(counted)
    }

    /// Instructions of a client per chunk.
    pub(crate) fn instructions_per_chunk(&mut self, client: Client, kind: Kind, by: usize) -> Option<f64> {
        let [short, long] = COUNTED.map(|count| self.instructions(client, Scenario::new(kind, count, by)));
        Some(per_chunk(short?, long?))
    }

    /// Allocations of a client per chunk, and their bytes; `None` without valgrind.
    pub(crate) fn allocations_per_chunk(&self, client: Client, kind: Kind, by: usize) -> Option<[f64; 2]> {
        self.valgrind.as_ref()?;
        eprintln!("    allocations of {}", client.name());
        let [short, long] = COUNTED.map(|count| {
            let (program, arguments) = self.counted(client, Scenario::new(kind, count, by));
            valgrind::allocations(program, &arguments)
        });
        Some([per_chunk(short.0 as f64, long.0 as f64), per_chunk(short.1 as f64, long.1 as f64)])
    }

    fn counted(&self, client: Client, scenario: Scenario) -> (&Path, Vec<String>) {
        (self.words(client).0, Mode::Cold.arguments(self.server.address(), scenario))
    }

    /// The program of a client, and the script that it runs if it is an interpreter.
    fn words(&self, client: Client) -> (&Path, &[PathBuf]) {
        let (program, script) = self.programs.of(client).split_first().expect("every client is a program");
        (program, script)
    }

    /// Makes the clients ready that are not in Rust.
    pub(crate) fn install_interpreters(&mut self) {
        self.programs.install_interpreters();
    }

    /// The same round after round: each client once, then each again, so that all have the same weather.
    pub(crate) fn rounds(&self, clients: &[Client], scenario: Scenario) -> Rounds {
        let mut rounds = Rounds::new(clients);
        for round in 0..self.size.rounds {
            eprintln!("    {scenario}, round {}", round + 1);
            let told: Vec<Streamed> =
                clients.iter().map(|client| self.stream(*client, Mode::Warm, scenario)).collect();
            check_alike(clients, &told, scenario);
            rounds.push(told);
        }
        rounds
    }
}

fn per_chunk(short: f64, long: f64) -> f64 {
    let [fewer, more] = COUNTED;
    (long - short) / (more - fewer) as f64
}

/// Clients that read different answers cannot be compared.
fn check_alike(clients: &[Client], told: &[Streamed], scenario: Scenario) {
    let read = |told: &Streamed| (told.requests, told.text_bytes);
    let Some(expected) = told.first().map(read) else { return };
    for (client, told) in clients.iter().zip(told) {
        let name = client.name();
        assert_eq!(read(told), expected, "{name} read another answer in {scenario}: requests, bytes of text");
    }
}
