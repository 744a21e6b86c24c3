use axum::Router;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use crate::ChatServer;

/// A file of the page: its path, its type and its content.
type File = (&'static str, &'static str, &'static str);

const SCRIPT: &str = "text/javascript; charset=utf-8";

const FILES: [File; 14] = [
    ("/", "text/html; charset=utf-8", include_str!("../page/index.html")),
    ("/style.css", "text/css; charset=utf-8", include_str!("../page/style.css")),
    ("/answer.js", SCRIPT, include_str!("../page/answer.js")),
    ("/api.js", SCRIPT, include_str!("../page/api.js")),
    ("/app.js", SCRIPT, include_str!("../page/app.js")),
    ("/chat.js", SCRIPT, include_str!("../page/chat.js")),
    ("/dom.js", SCRIPT, include_str!("../page/dom.js")),
    ("/events.js", SCRIPT, include_str!("../page/events.js")),
    ("/history.js", SCRIPT, include_str!("../page/history.js")),
    ("/reasoning.js", SCRIPT, include_str!("../page/reasoning.js")),
    ("/side.js", SCRIPT, include_str!("../page/side.js")),
    ("/text_block.js", SCRIPT, include_str!("../page/text_block.js")),
    ("/tool_run.js", SCRIPT, include_str!("../page/tool_run.js")),
    ("/user_message.js", SCRIPT, include_str!("../page/user_message.js")),
];

/// Returns a route for each file.
pub(super) fn router() -> Router<ChatServer> {
    FILES.into_iter().fold(Router::new(), |router, (path, kind, content)| {
        router.route(path, get(move || async move { file(kind, content) }))
    })
}

fn file(kind: &'static str, content: &'static str) -> Response {
    ([(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, "no-cache")], content).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_the_page_has_its_route() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/page");
        let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<_> = names.map(|name| format!("/{}", name.to_str().unwrap())).collect();
        let mut routes: Vec<_> = FILES.iter().map(|(path, ..)| (*path).to_owned()).collect();
        for route in routes.iter_mut().filter(|route| *route == "/") {
            *route = "/index.html".into();
        }
        names.sort();
        routes.sort();
        assert_eq!(names, routes);
    }
}
