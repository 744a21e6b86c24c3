//! The routes of the page and its files.

pub(super) mod events;

use axum::Router;
use axum::extract::{OriginalUri, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use crate::ChatServer;

/// A file of the page: its path, its type and its content.
type File = (&'static str, &'static str, &'static str);

const SCRIPT: &str = "text/javascript; charset=utf-8";

const INDEX: &str = include_str!("../page/index.html");

const FILES: [File; 29] = [
    ("/icon.svg", "image/svg+xml", include_str!("../page/icon.svg")),
    ("/inspector.css", "text/css; charset=utf-8", include_str!("../page/inspector.css")),
    ("/messages.css", "text/css; charset=utf-8", include_str!("../page/messages.css")),
    ("/style.css", "text/css; charset=utf-8", include_str!("../page/style.css")),
    ("/answer/answer.js", SCRIPT, include_str!("../page/answer/answer.js")),
    ("/api.js", SCRIPT, include_str!("../page/api.js")),
    ("/app.js", SCRIPT, include_str!("../page/app.js")),
    ("/approval.js", SCRIPT, include_str!("../page/approval.js")),
    ("/chat.js", SCRIPT, include_str!("../page/chat.js")),
    ("/dom.js", SCRIPT, include_str!("../page/dom.js")),
    ("/events.js", SCRIPT, include_str!("../page/events.js")),
    ("/history.js", SCRIPT, include_str!("../page/history.js")),
    ("/ids.js", SCRIPT, include_str!("../page/ids.js")),
    ("/interrupted.js", SCRIPT, include_str!("../page/interrupted.js")),
    ("/layer.js", SCRIPT, include_str!("../page/layer.js")),
    ("/menu.js", SCRIPT, include_str!("../page/menu.js")),
    ("/answer/markdown.js", SCRIPT, include_str!("../page/answer/markdown.js")),
    ("/answer/reasoning.js", SCRIPT, include_str!("../page/answer/reasoning.js")),
    ("/inspector/journal.js", SCRIPT, include_str!("../page/inspector/journal.js")),
    ("/inspector/panel.js", SCRIPT, include_str!("../page/inspector/panel.js")),
    ("/inspector/promises.js", SCRIPT, include_str!("../page/inspector/promises.js")),
    ("/inspector/sums.js", SCRIPT, include_str!("../page/inspector/sums.js")),
    ("/inspector/timeline.js", SCRIPT, include_str!("../page/inspector/timeline.js")),
    ("/inspector/words.js", SCRIPT, include_str!("../page/inspector/words.js")),
    ("/side.js", SCRIPT, include_str!("../page/side.js")),
    ("/answer/text_block.js", SCRIPT, include_str!("../page/answer/text_block.js")),
    ("/answer/tool_run.js", SCRIPT, include_str!("../page/answer/tool_run.js")),
    ("/token.js", SCRIPT, include_str!("../page/token.js")),
    ("/user_message.js", SCRIPT, include_str!("../page/user_message.js")),
];

/// Returns a route for each file.
pub(super) fn router() -> Router<ChatServer> {
    let index = Router::new().route("/", get(index));
    FILES.into_iter().fold(index, |router, (path, kind, content)| {
        router.route(path, get(move || async move { file(kind, content) }))
    })
}

/// Returns the HTML, whose addresses are relative to the path of this request. It says how the server knows its users.
async fn index(State(server): State<ChatServer>, OriginalUri(uri): OriginalUri) -> Response {
    let html = index_at(uri.path());
    let html = match server.authenticate.is_some() {
        true => html.replace("data-login=\"token\"", "data-login=\"application\""),
        false => html,
    };
    file("text/html; charset=utf-8", html)
}

/// Returns the HTML for a path: at `/assistant`, a browser reads `./app.js` as `/app.js`.
///
/// A redirect to `/assistant/` would not do, since the routes of `Router::nest` do not match that path.
fn index_at(path: &str) -> String {
    match path.rsplit('/').next() {
        None | Some("") => INDEX.to_owned(),
        Some(name) => {
            let escaped = name.replace('&', "&amp;").replace('"', "&quot;");
            INDEX.replace("\"./", &format!("\"./{escaped}/"))
        }
    }
}

fn file(kind: &'static str, content: impl IntoResponse) -> Response {
    ([(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, "no-cache")], content).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the paths of the files in a folder of the page.
    fn files(folder: &str) -> Vec<String> {
        let inside = format!("{}/src/page{folder}", env!("CARGO_MANIFEST_DIR"));
        let entries = std::fs::read_dir(inside).unwrap().map(|entry| entry.unwrap());
        let paths = entries.map(|entry| {
            let path = format!("{folder}/{}", entry.file_name().to_str().unwrap());
            if entry.path().is_dir() { files(&path) } else { vec![path.replace("/index.html", "/")] }
        });
        paths.flatten().collect()
    }

    #[test]
    fn every_file_of_the_page_has_its_route() {
        let mut routes: Vec<_> = FILES.iter().map(|(path, ..)| (*path).to_owned()).collect();
        routes.push("/".to_owned());
        let mut files = files("");
        files.sort();
        routes.sort();
        assert_eq!(files, routes);
    }
}
