//! `Rounds`: the reports of clients from interleaved rounds, and the medians over them.

use peer_measure::Streamed;

use crate::clients::Client;
use crate::figures::median;

/// The reports of the clients, from interleaved rounds.
pub(crate) struct Rounds {
    clients: Vec<Client>,
    /// The reports of each round, in the order of the clients.
    told: Vec<Vec<Streamed>>,
}

impl Rounds {
    pub(crate) fn new(clients: &[Client]) -> Self {
        Self { clients: clients.to_vec(), told: Vec::new() }
    }

    pub(crate) fn push(&mut self, told: Vec<Streamed>) {
        self.told.push(told);
    }

    /// The median of a client's CPU time.
    pub(crate) fn cpu_ns(&self, client: Client) -> f64 {
        median(self.of(client).map(|told| told.cpu_ns as f64))
    }

    /// The median of its largest memory.
    pub(crate) fn peak_kib(&self, client: Client) -> f64 {
        median(self.of(client).map(|told| told.peak_kib as f64))
    }

    /// Returns the CPU time of `client` as a multiple of that of `other`: the median of the ratios within each
    /// round.
    pub(crate) fn times(&self, client: Client, other: Client) -> f64 {
        let pairs = self.of(client).zip(self.of(other));
        median(pairs.map(|(client, other)| client.cpu_ns as f64 / other.cpu_ns as f64))
    }

    fn of(&self, client: Client) -> impl Iterator<Item = &Streamed> {
        let place = self.clients.iter().position(|other| *other == client);
        self.told.iter().filter_map(move |told| told.get(place?))
    }
}
