//! `ServerProcess`: starts the server in a separate process, and ends it with the driver.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// The server in a separate process. It ends when this value is dropped. It also ends if the driver is killed,
/// since its standard input then ends.
pub(crate) struct ServerProcess {
    child: Child,
    address: String,
}

impl ServerProcess {
    pub(crate) fn start() -> Self {
        let program = std::env::current_exe().expect("this program is a file");
        let mut child = Command::new(program)
            .arg("server")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("this program can be started again");
        let mut address = String::new();
        let output = child.stdout.take().expect("its output is piped");
        BufReader::new(output).read_line(&mut address).expect("the server says where it is");
        Self { child, address: address.trim().to_owned() }
    }

    /// Such as `http://127.0.0.1:43210`.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        // There is nothing to be done about a server that has ended otherwise.
        let _ = self.child.wait();
    }
}
