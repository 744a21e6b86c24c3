//! Media in user messages and in results of tools.

use advisor_core::{Media, MediaSource, Part};

use super::*;

fn file(mime: &str, source: MediaSource) -> Media {
    let mut media = Media::from_url(mime, "");
    media.source = source;
    media
}

#[test]
fn media_become_blocks_or_notes() {
    let bytes = |mime: &str| Media::from_bytes(mime, b"abc".to_vec());
    let base64 = |mime: &str| json!({"type": "base64", "media_type": mime, "data": "YWJj"});
    let at_url = json!({"type": "url", "url": "https://a.example/x"});
    let stored = json!({"type": "file", "file_id": "file_1"});
    let note = |mime: &str| text(&format!("[{mime} left out: the Messages API does not take it]"));
    let empty = |mime: &str| text(&format!("[{mime} left out: it is empty]"));
    let data = |mime: &str, kind: &str| Media::from_url(mime, format!("data:{kind},YWJj"));
    let url = |mime: &str| Media::from_url(mime, "https://a.example/x");
    let id = |mime: &str| file(mime, MediaSource::ProviderFile("file_1".into()));
    let plain = json!({"type": "text", "media_type": "text/plain", "data": "abc"});
    let cases = [
        (Part::Image(bytes("image/png")), json!({"type": "image", "source": base64("image/png")})),
        (Part::Image(url("image/*")), json!({"type": "image", "source": at_url})),
        (Part::Image(id("image/png")), json!({"type": "image", "source": stored})),
        (Part::Image(bytes("image/bmp")), note("image/bmp")),
        (Part::File(bytes("image/jpeg")), json!({"type": "image", "source": base64("image/jpeg")})),
        (
            Part::File(bytes("application/pdf").with_name("a.pdf")),
            json!({"type": "document", "source": base64("application/pdf"), "title": "a.pdf"}),
        ),
        (Part::File(url("application/pdf")), json!({"type": "document", "source": at_url})),
        (Part::File(id("application/pdf")), json!({"type": "document", "source": stored})),
        (Part::File(bytes("text/markdown")), json!({"type": "document", "source": plain})),
        (Part::File(bytes("application/zip")), note("application/zip")),
        (Part::File(Media::from_bytes("text/plain", vec![0xFF])), note("text/plain")),
        (Part::Audio(bytes("audio/wav")), note("audio/wav")),
        (Part::Video(url("video/mp4")), note("video/mp4")),
        (Part::Json(json!({"a": 1})), text("{\"a\":1}")),
        (
            Part::Image(data("image/png", "image/png;base64")),
            json!({"type": "image", "source": base64("image/png")}),
        ),
        (
            Part::Image(data("image/*", "image/gif;base64")),
            json!({"type": "image", "source": base64("image/gif")}),
        ),
        (Part::Image(data("image/png", "image/bmp;base64")), note("image/png")),
        (Part::Image(data("image/svg+xml", "image/svg+xml")), note("image/svg+xml")),
        (
            Part::File(data("*/*", "application/pdf;base64")),
            json!({"type": "document", "source": base64("application/pdf")}),
        ),
        (Part::File(data("*/*", "text/plain;base64")), json!({"type": "document", "source": plain})),
        (Part::File(Media::from_url("text/plain", "data:text/plain;base64,?")), note("text/plain")),
        (Part::Image(Media::from_url("image/png", "")), empty("image/png")),
        (Part::Image(Media::from_url("image/png", "data:image/png;base64,")), empty("image/png")),
        (Part::Image(Media::from_bytes("image/png", vec![])), empty("image/png")),
        (Part::File(file("application/pdf", MediaSource::ProviderFile("".into()))), empty("application/pdf")),
    ];
    for (part, expected) in cases {
        let shown = format!("{part:?}");
        assert_eq!(content_of(Message::user_parts(vec![part.clone()])), json!([expected]), "{shown}");
        let call = ToolCall::new("c1", "f", "{}");
        let result = content_of(Message::tool(ToolResult::new(&call, vec![part, "t".into()])));
        assert_eq!(result[0]["content"], json!([expected, text("t")]), "{shown}");
    }
}
