//! User content and tool results.

use advisor_core::{Media, MediaSource, Part, ToolResult};
use async_openai::types::chat::{
    ChatCompletionRequestMessageContentPartAudio, ChatCompletionRequestMessageContentPartFile,
    ChatCompletionRequestMessageContentPartImage, ChatCompletionRequestMessageContentPartText,
    ChatCompletionRequestUserMessageContent as Content,
    ChatCompletionRequestUserMessageContentPart as WirePart, FileObject, ImageUrl, InputAudio,
    InputAudioFormat,
};
use provider_http::media::{inline, note, text_of};
use provider_http::parts_of_result;

/// Returns the content of a user message: a string if it is text only, as the strictest servers require.
pub(super) fn of_user(parts: &[Part]) -> Content {
    let texts: Option<Vec<_>> = parts.iter().map(text_of).collect();
    match texts {
        Some(texts) => Content::Text(texts.join("\n")),
        None => Content::Array(parts.iter().map(on_the_wire).collect()),
    }
}

/// Returns the text of a tool result. A note replaces media.
pub(super) fn of_result(result: &ToolResult) -> String {
    let parts = parts_of_result(result);
    let texts =
        parts.iter().map(|part| text_of(part).unwrap_or_else(|| note(part, "tools answer with text only")));
    texts.collect::<Vec<_>>().join("\n")
}

fn on_the_wire(part: &Part) -> WirePart {
    let unsupported = || text_part(note(part, "async-openai has no field for it").into_owned());
    if let Some(text) = text_of(part) {
        return text_part(text.into_owned());
    }
    match part {
        Part::Image(media) | Part::Audio(media) | Part::File(media)
            if matches!(media.source, MediaSource::ProviderFile(_)) =>
        {
            file(media)
        }
        Part::Image(media) => WirePart::ImageUrl(ChatCompletionRequestMessageContentPartImage {
            image_url: ImageUrl { url: url(media), detail: None },
            prompt_cache_breakpoint: None,
        }),
        Part::Audio(media) => audio(media).unwrap_or_else(unsupported),
        Part::File(media) => file(media),
        _ => unsupported(),
    }
}

fn text_part(text: String) -> WirePart {
    WirePart::Text(ChatCompletionRequestMessageContentPartText { text, prompt_cache_breakpoint: None })
}

/// Returns the part of audio that the client can send: WAV or MP3, given as bytes.
fn audio(media: &Media) -> Option<WirePart> {
    let (mime, data) = inline(media)?;
    let format = match mime {
        "audio/mpeg" | "audio/mp3" => InputAudioFormat::Mp3,
        "audio/wav" | "audio/x-wav" | "audio/wave" | "audio/vnd.wave" => InputAudioFormat::Wav,
        _ => return None,
    };
    Some(WirePart::InputAudio(ChatCompletionRequestMessageContentPartAudio {
        input_audio: InputAudio { data: data.into_owned(), format },
        prompt_cache_breakpoint: None,
    }))
}

fn file(media: &Media) -> WirePart {
    let file = match &media.source {
        MediaSource::ProviderFile(id) => {
            FileObject { file_id: Some(id.to_string()), file_data: None, filename: None }
        }
        _ => FileObject {
            file_data: Some(url(media)),
            filename: Some(media.name.as_deref().unwrap_or("file").to_owned()),
            file_id: None,
        },
    };
    WirePart::File(ChatCompletionRequestMessageContentPartFile { file, prompt_cache_breakpoint: None })
}

/// Returns the address of the media, or a `data:` URL that holds the bytes.
fn url(media: &Media) -> String {
    match (&media.source, inline(media)) {
        (MediaSource::Url(url), _) => url.to_string(),
        (_, Some((mime, data))) => format!("data:{mime};base64,{data}"),
        _ => String::new(),
    }
}
