//! Answers the requests of one connection, one after the other.

use std::io;

use peer_measure::Kind;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::request::Requests;
use super::{Answers, paced};

const NOT_FOUND: &[u8] = b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n";

/// Answers the requests of one connection, one after the other. `serial` is the number of the connection.
pub(super) async fn serve(mut stream: TcpStream, answers: Answers, serial: u64) -> io::Result<()> {
    let mut requests = Requests::default();
    while let Some(request) = requests.next(&mut stream).await? {
        let Some(scenario) = request.scenario else {
            stream.write_all(NOT_FOUND).await?;
            continue;
        };
        if scenario.kind == Kind::Paced {
            paced::write(&mut stream, scenario, serial).await?;
        } else {
            for piece in answers.of(scenario, request.tool_results).writes() {
                stream.write_all(piece).await?;
            }
        }
    }
    Ok(())
}
