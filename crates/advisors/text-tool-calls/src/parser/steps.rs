//! Counts the bytes that the parsers look at, so that tests can bound their work.

/// Counts a look at `bytes` bytes.
#[cfg(not(test))]
pub(crate) const fn count(_bytes: usize) {}

#[cfg(test)]
pub(crate) use self::counted::{count, counted};

#[cfg(test)]
mod counted {
    use std::cell::Cell;

    thread_local! {
        static STEPS: Cell<usize> = const { Cell::new(0) };
    }

    pub(crate) fn count(bytes: usize) {
        STEPS.set(STEPS.get() + bytes);
    }

    /// Returns the bytes that this work looks at.
    pub(crate) fn counted(work: impl FnOnce()) -> usize {
        STEPS.set(0);
        work();
        STEPS.get()
    }
}
