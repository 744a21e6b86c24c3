//! `Case`: work that is repeated a smaller and a larger number of times; `all` returns every case.

mod answers;
mod appends;
mod gemini;
mod messages;
mod policies;
mod text_calls;
mod turns;

use std::fmt;

/// The measured work. Its inputs exist before it starts, and it drops its results.
pub type Work = Box<dyn FnOnce()>;

/// Work that is repeated a smaller and a larger number of times, which separates the one-time cost from the
/// cost per repetition.
pub struct Case {
    /// The name of the case.
    pub name: String,
    /// The counted unit.
    pub unit: &'static str,
    /// The numbers of repetitions of the shorter and of the longer run.
    pub sizes: (usize, usize),
    prepare: Box<dyn Fn(usize) -> Work>,
}

impl Case {
    fn new<W: FnOnce() + 'static>(
        name: impl Into<String>,
        unit: &'static str,
        sizes: (usize, usize),
        prepare: impl Fn(usize) -> W + 'static,
    ) -> Self {
        let prepare = Box::new(move |size| Box::new(prepare(size)) as Work);
        Self { name: name.into(), unit, sizes, prepare }
    }

    /// Prepares the work of `size` repetitions.
    #[must_use]
    pub fn work(&self, size: usize) -> Work {
        (self.prepare)(size)
    }
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Case").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Returns every case.
#[must_use]
pub fn all() -> Vec<Case> {
    answers::cases()
        .into_iter()
        .chain(messages::cases())
        .chain(turns::cases())
        .chain(appends::cases())
        .chain(gemini::cases())
        .chain(policies::cases())
        .chain(text_calls::cases())
        .collect()
}

pub(crate) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap()
}
