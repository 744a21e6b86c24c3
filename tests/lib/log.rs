//! The lines of the log.

use std::io;
use std::sync::{Arc, Mutex};

use tracing::subscriber::DefaultGuard;
use tracing_subscriber::fmt::MakeWriter;

/// Collects what is written to it, such as the lines of the log of this thread.
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    /// Collects the lines of this thread until the guard is dropped.
    pub fn start() -> (Self, DefaultGuard) {
        let log = Self::default();
        let subscriber = tracing_subscriber::fmt().with_writer(log.clone()).with_ansi(false).finish();
        (log, tracing::subscriber::set_default(subscriber))
    }

    /// The lines since the last look.
    pub fn take(&self) -> String {
        String::from_utf8(std::mem::take(&mut *self.0.lock().unwrap())).unwrap()
    }
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}
