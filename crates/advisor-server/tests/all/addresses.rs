//! Addresses in messages, results and answers. The server passes them on, and opens none.

use std::io::ErrorKind;
use std::net::{TcpListener, TcpStream};

use advisor_core::{ChatClient, Delta, Media, Part, ToolDefinition};
use advisor_server::ChatServer;
use advisor_testkit::{Answer, ScriptedModel};
use chat_memory_advisor::{ChatMemoryAdvisor, InMemoryStore};
use serde_json::json;
use tool_call_advisor::{FnTool, ToolCallAdvisor, ToolCallStreaming};

use crate::disconnects::bodies;
use crate::setting::{Setting, text};

/// A server on this machine, such as one that no user may reach. It counts its connections.
struct Internal(TcpListener);

impl Internal {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        Self(listener)
    }

    fn url(&self) -> String {
        format!("http://{}/latest/meta-data", self.0.local_addr().unwrap())
    }

    /// Returns the number of connections. The system keeps each one until it is accepted.
    fn connections(&self) -> usize {
        let mut count = 0;
        loop {
            match self.0.accept() {
                Ok(_) => count += 1,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return count,
                Err(error) => panic!("{error}"),
            }
        }
    }
}

/// A server whose tool and whose answers have the address, as text, as a picture of Markdown and as media.
fn setting(url: &str) -> Setting {
    let written = format!("See {url} and ![a picture]({url}/picture.png), <img src=\"{url}\">.");
    let media = Media::from_url("image/png", format!("{url}/media.png"));
    let looked = Answer::from_calls([("c1", "look", json!({"url": url}).to_string().as_str())]);
    let answers = [looked, Answer::new().text(&written).delta(Delta::media(media.clone())).done()];
    let model = ScriptedModel::new(answers);
    let definition = ToolDefinition::new("look", "Returns addresses.", json!({"type": "object"}));
    let look = FnTool::with_invocation(definition, move |_| {
        let parts = vec![Part::Text(written.as_str().into()), Part::Image(media.clone())];
        async move { Ok(parts.into()) }
    });
    let memory = ChatMemoryAdvisor::new(InMemoryStore::new());
    let tool_loop = ToolCallAdvisor::builder().streaming(ToolCallStreaming::All).build().unwrap();
    let client = ChatClient::builder(model.clone()).advisor(memory.clone()).advisor(tool_loop).tool(look);
    Setting { server: ChatServer::new(client.build().unwrap(), memory), model }
}

#[tokio::test]
async fn addresses_in_content_are_never_opened() {
    for (path, body) in bodies() {
        let internal = Internal::start();
        let url = internal.url();
        let setting = setting(&url);
        let message = format!("Fetch {url} and ![this]({url}/asked.png).");
        let body = body.to_string().replace("\"Hi\"", &json!(message).to_string());
        let body = serde_json::from_str(&body).unwrap();
        let answer = text(setting.post(path, &body).await).await;
        assert!(answer.contains(&url), "{path}: {answer}");
        for read in [
            "/api/conversations/c1?view=page",
            "/api/conversations/c1/export",
            "/api/conversations?view=page",
        ] {
            text(setting.get(read).await).await;
        }
        assert_eq!(internal.connections(), 0, "{path}");
        // A connection would have been counted.
        TcpStream::connect(internal.0.local_addr().unwrap()).unwrap();
        assert_eq!(internal.connections(), 1);
    }
}
