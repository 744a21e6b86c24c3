//! A relay to the server that counts the traffic, and breaks it where the test requires it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// The treatment of the server's next answer.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Fault {
    /// They are lost with the connection.
    Cut,
    /// They never arrive, and the connection stays.
    Hold,
    /// These arrive in their place.
    Say(&'static str),
}

#[derive(Clone)]
pub(crate) struct Relay {
    pub(crate) url: String,
    server: String,
    shared: Arc<Shared>,
}

struct Shared {
    /// The next fault, and the number of answers before it.
    fault: Mutex<Option<(u32, Fault)>>,
    bytes: AtomicU64,
    scripts: AtomicU64,
    /// The number of times that all connections were closed.
    closed: watch::Sender<u32>,
    open: watch::Sender<u32>,
    /// The number of connections ever made.
    made: AtomicU64,
    faults: watch::Sender<u32>,
    refuses: AtomicBool,
}

impl Relay {
    pub(crate) async fn to(url: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = url.strip_prefix("redis://").unwrap().trim_end_matches('/');
        let shared = Shared {
            fault: Mutex::default(),
            bytes: AtomicU64::new(0),
            scripts: AtomicU64::new(0),
            closed: watch::Sender::new(0),
            open: watch::Sender::new(0),
            made: AtomicU64::new(0),
            faults: watch::Sender::new(0),
            refuses: AtomicBool::new(false),
        };
        let relay = Self {
            url: format!("redis://{}/", listener.local_addr().unwrap()),
            server: server.into(),
            shared: Arc::new(shared),
        };
        let accepting = relay.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                if accepting.shared.refuses.load(Ordering::SeqCst) {
                    drop(client);
                } else {
                    tokio::spawn(accepting.clone().carry(client));
                }
            }
        });
        relay
    }

    pub(crate) fn fail_with(&self, fault: Fault) {
        self.fail_after(0, fault);
    }

    /// Breaks the answer after `answers` others.
    pub(crate) fn fail_after(&self, answers: u32, fault: Fault) {
        *self.shared.fault.lock().unwrap() = Some((answers, fault));
    }

    /// Returns the fault for the received answer, if it is due.
    fn fault(&self) -> Option<Fault> {
        let mut next = self.shared.fault.lock().unwrap();
        match next.take() {
            Some((0, fault)) => Some(fault),
            later => {
                *next = later.map(|(answers, fault)| (answers - 1, fault));
                None
            }
        }
    }

    /// Waits until this many faults have happened.
    pub(crate) async fn failed(&self, times: u32) {
        self.shared.faults.subscribe().wait_for(|faults| *faults >= times).await.unwrap();
    }

    /// Closes all connections as a server does, and waits until the others have closed them, too.
    pub(crate) async fn close(&self) {
        self.shared.closed.send_modify(|closed| *closed += 1);
        self.shared.open.subscribe().wait_for(|open| *open == 0).await.unwrap();
    }

    /// Closes all connections and every new one, until this is switched off.
    pub(crate) async fn refuse(&self, refuses: bool) {
        self.shared.refuses.store(refuses, Ordering::SeqCst);
        if refuses {
            self.close().await;
        }
    }

    /// Returns the number of connections ever made.
    pub(crate) fn connections(&self) -> u64 {
        self.shared.made.load(Ordering::SeqCst)
    }

    /// Returns the bytes that the server has sent, and the number of scripts it received.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.shared.bytes.load(Ordering::SeqCst), self.shared.scripts.load(Ordering::SeqCst))
    }

    async fn carry(self, client: TcpStream) {
        let mut closed = self.shared.closed.subscribe();
        self.shared.open.send_modify(|open| *open += 1);
        self.shared.made.fetch_add(1, Ordering::SeqCst);
        let (mut from_client, mut to_client) = client.into_split();
        let (mut from_server, mut to_server) = TcpStream::connect(&self.server).await.unwrap().into_split();
        let upwards = async {
            let mut buffer = vec![0; 1 << 16];
            while let Ok(read @ 1..) = from_client.read(&mut buffer).await {
                let scripts = buffer[..read].windows(7).filter(|word| word == b"EVALSHA").count();
                self.shared.scripts.fetch_add(u64::try_from(scripts).unwrap(), Ordering::SeqCst);
                to_server.write_all(&buffer[..read]).await.unwrap();
            }
        };
        let downwards = async {
            let mut buffer = vec![0; 1 << 16];
            while let Ok(read @ 1..) = from_server.read(&mut buffer).await {
                self.shared.bytes.fetch_add(u64::try_from(read).unwrap(), Ordering::SeqCst);
                let fault = self.fault();
                if fault.is_some() {
                    self.shared.faults.send_modify(|faults| *faults += 1);
                }
                match fault {
                    None => drop(to_client.write_all(&buffer[..read]).await),
                    Some(Fault::Cut) => return,
                    Some(Fault::Hold) => {}
                    Some(Fault::Say(words)) => to_client.write_all(words.as_bytes()).await.unwrap(),
                }
            }
        };
        let is_closed = tokio::select! {
            () = upwards => false,
            () = downwards => false,
            _ = closed.changed() => true,
        };
        if is_closed {
            to_client.shutdown().await.unwrap();
            let mut rest = Vec::new();
            drop(from_client.read_to_end(&mut rest).await);
        }
        self.shared.open.send_modify(|open| *open -= 1);
    }
}
