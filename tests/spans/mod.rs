//! A subscriber that remembers in which order spans closed.
#![allow(unreachable_pub, reason = "a module of a test program")]

use std::sync::{Arc, Mutex};

use tracing::span::{Attributes, Id};
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;

#[derive(Clone, Default)]
pub struct Spans(Arc<Mutex<Closed>>);

#[derive(Default)]
struct Closed {
    open: usize,
    names: Vec<String>,
}

impl Spans {
    pub fn new() -> Self {
        Self::default()
    }

    /// Listens on this thread until the guard is dropped.
    pub fn install(&self) -> DefaultGuard {
        tracing::subscriber::set_default(tracing_subscriber::registry().with(self.clone()))
    }

    /// The names of the spans, in the order in which they closed.
    pub fn closed(&self) -> Vec<String> {
        self.0.lock().unwrap().names.clone()
    }

    pub fn still_open(&self) -> usize {
        self.0.lock().unwrap().open
    }
}

impl<S: tracing::Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Spans {
    fn on_new_span(&self, _: &Attributes<'_>, _: &Id, _: Context<'_, S>) {
        self.0.lock().unwrap().open += 1;
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let mut closed = self.0.lock().unwrap();
        closed.open -= 1;
        let name = context.span(&id).map_or("?", |span| span.name());
        closed.names.push(name.into());
    }
}
