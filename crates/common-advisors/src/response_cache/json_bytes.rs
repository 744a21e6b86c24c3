//! The length of a value in JSON.

use std::io;

use serde::Serialize;

/// Returns the length of a value in JSON.
pub(super) fn json_bytes(value: &impl Serialize) -> usize {
    struct Count(usize);

    impl io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    let mut count = Count(0);
    // A value that cannot be written in JSON is not kept.
    serde_json::to_writer(&mut count, value).map_or(usize::MAX / 4, |()| count.0)
}
