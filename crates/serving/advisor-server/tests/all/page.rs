//! The chat page under a path of an application.

use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use tower::ServiceExt;

use crate::setting::{setting, text};

/// Returns the addresses of a page's files, as its HTML names them.
fn addresses(html: &str) -> Vec<String> {
    let values =
        html.split(['<', ' ']).filter_map(|part| part.strip_prefix("href=").or(part.strip_prefix("src=")));
    values
        .map(|value| value.split('"').nth(1).unwrap().replace("&quot;", "\"").replace("&amp;", "&"))
        .collect()
}

/// Returns the path that a browser asks for, if the page at `from` names `address`.
fn resolved(from: &str, address: &str) -> String {
    let folder = from.rsplit_once('/').unwrap().0;
    format!("{folder}/{}", address.strip_prefix("./").unwrap())
}

/// Checks that the page at this path finds its files.
async fn check(app: &Router, path: &str) {
    let get = async |path: &str| {
        let request = Request::get(path).body(Body::empty()).unwrap();
        app.clone().oneshot(request).await.unwrap()
    };
    let page = get(path).await;
    assert_eq!(page.status(), StatusCode::OK, "{path}");
    let policy = page.headers()["content-security-policy"].to_str().unwrap().to_owned();
    assert!(policy.contains("base-uri 'none'") && policy.contains("script-src 'self';"), "{policy}");
    let addresses = addresses(&text(page).await);
    assert_eq!(addresses.len(), 5, "{addresses:?}");
    for address in addresses {
        let file = get(&resolved(path, &address)).await;
        assert_eq!(file.status(), StatusCode::OK, "{path} names {address}");
        // Otherwise a page of another site could load it, and learn which server runs here.
        assert_eq!(file.headers()["cross-origin-resource-policy"], "same-origin", "{address}");
    }
}

#[tokio::test]
async fn page_finds_its_files_under_any_path() {
    check(&setting([]).server.router(), "/").await;
    let service = Router::new().nest_service("/assistant", setting([]).server.router());
    check(&service, "/assistant").await;
    check(&service, "/assistant/").await;
    for prefix in ["/assistant", "/apps/assistant", "/apps/{name}", "/assistant/"] {
        let app = Router::new().nest(prefix, setting([]).server.router());
        check(&app, &prefix.replace("{name}", "assistant")).await;
    }
}

#[tokio::test]
async fn path_of_the_page_is_no_markup() {
    let app = Router::new().nest("/apps/{name}", setting([]).server.router());
    for name in ["a\"onload=\"x", "a&quot;b", "javascript:b", "..&c"] {
        check(&app, &format!("/apps/{name}")).await;
    }
}
