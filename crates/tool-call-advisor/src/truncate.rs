//! `cap_result`: cuts text, drops large media and flattens deep JSON in results.

use advisor_core::json::{has_reserved_name, nests_within};
use advisor_core::{Media, MediaSource, Part, Text, ToolResult};

use crate::ToolLimits;

/// Maximum nesting of JSON that stays JSON in a result. Parsers follow about 127 levels, which include the levels
/// of the stored or sent document around the result. Deeper JSON is kept as its text.
const DEEPEST_JSON: usize = 100;

/// Maximum nesting of JSON that is kept as its text. Deeper JSON is replaced by a note.
const DEEPEST_TEXT: usize = 500;

/// Limits the size of a result. Longer text keeps its head and its tail, with a marker for the bytes left out.
/// Media that fits is kept whole; other media is replaced by a note, which counts as text.
pub(crate) fn cap_result(mut result: ToolResult, limits: &ToolLimits) -> ToolResult {
    let mut for_media = limits.result_media_bytes;
    let notes: Vec<_> = result
        .parts
        .iter()
        .map(|part| note_if_left_out(part, &mut for_media, limits.result_media_bytes))
        .collect();
    let mut for_notes = limits.result_bytes.min(notes.iter().flatten().map(String::len).sum());
    let mut for_text = limits.result_bytes - for_notes;
    let bounded = result.parts.into_iter().zip(notes).map(|(part, note)| match note {
        Some(note) => text_within(note.into(), &mut for_notes),
        None => part_within(part, &mut for_text),
    });
    result.parts = bounded.filter(|part| part.as_text().is_none_or(|text| !text.is_empty())).collect();
    if result.parts.is_empty() {
        result.parts.push(Part::Text(Text::default()));
    }
    result
}

/// Returns the note that replaces media larger than `room`. Media that fits reduces `room`.
fn note_if_left_out(part: &Part, room: &mut usize, limit: usize) -> Option<String> {
    let (kind, media) = match part {
        Part::Image(media) => ("image", media),
        Part::Audio(media) => ("audio", media),
        Part::Video(media) => ("video", media),
        Part::File(media) => ("file", media),
        _ => return None,
    };
    let (content, whole) = media_bytes(media);
    let Some(bytes) = [content, whole].into_iter().find(|bytes| bytes > room) else {
        *room -= whole;
        return None;
    };
    Some(if bytes > limit {
        format!("[{kind} left out: {bytes} bytes are more than the limit of {limit}]")
    } else {
        format!("[{kind} left out: {bytes} bytes are more than the {room} left of {limit}]")
    })
}

/// Returns the bytes of the content, or of its URL or file id; and the same with its type and name.
fn media_bytes(media: &Media) -> (usize, usize) {
    let content = match &media.source {
        MediaSource::Bytes(bytes) => bytes.len(),
        MediaSource::Url(text) | MediaSource::ProviderFile(text) => text.len(),
        // A source kind that this crate does not know.
        _ => 0,
    };
    (content, content + media.mime.len() + media.name.as_ref().map_or(0, |name| name.len()))
}

fn part_within(part: Part, room: &mut usize) -> Part {
    match part {
        Part::Text(text) => text_within(text, room),
        Part::Json(value) if !nests_within(&value, DEEPEST_TEXT) => {
            text_within(format!("[JSON left out: nested deeper than {DEEPEST_TEXT} levels]").into(), room)
        }
        Part::Json(value) if !nests_within(&value, DEEPEST_JSON) || has_reserved_name(&value) => {
            text_within(value.to_string().into(), room)
        }
        Part::Json(value) => {
            let text = value.to_string();
            if text.len() > *room {
                return text_within(text.into(), room);
            }
            *room -= text.len();
            Part::Json(value)
        }
        other => other,
    }
}

/// Returns the text, cut to `room`, and reduces `room` by its length.
fn text_within(text: Text, room: &mut usize) -> Part {
    let text = if text.len() > *room { cut(&text, *room).into() } else { text };
    *room = room.saturating_sub(text.len());
    Part::Text(text)
}

fn cut(text: &str, limit: usize) -> String {
    let head = |bytes| text.split_at(text.floor_char_boundary(bytes)).0;
    let marker = format!("\n[… {} bytes left out …]\n", text.len() - limit);
    let Some(room) = limit.checked_sub(marker.len()) else { return String::from(head(limit)) };
    let (_, tail) = text.split_at(text.ceil_char_boundary(text.len() - room / 2));
    format!("{}{marker}{tail}", head(room.div_ceil(2)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use advisor_core::ToolCall;
    use serde_json::{Value, json};

    fn capped(parts: Vec<Part>, text: usize, media: usize) -> ToolResult {
        let limits = ToolLimits { result_bytes: text, result_media_bytes: media, ..ToolLimits::default() };
        cap_result(ToolResult::new(&ToolCall::new("c", "f", ""), parts), &limits)
    }

    #[test]
    fn limit_holds_for_every_length_without_splitting_characters() {
        let text = "äöü€😀".repeat(40);
        for limit in 0..text.len() + 2 {
            let result = capped(vec![text.as_str().into()], limit, 0);
            assert!(result.text().len() <= limit, "{limit}");
            assert_eq!(result.text() == text, limit >= text.len());
        }
        let cut = capped(vec![format!("head{}tail", "x".repeat(200)).into()], 100, 0).text();
        assert!(
            cut.starts_with("headxx") && cut.ends_with("xxtail") && cut.contains("bytes left out"),
            "{cut}"
        );
    }

    #[test]
    fn fitting_json_stays_json_and_takes_room() {
        let value = json!({"a": 1});
        assert_eq!(capped(vec![value.clone().into()], 7, 0).parts, [Part::Json(value.clone())]);
        let parts = capped(vec![value.clone().into(), "x".repeat(200).into()], 100, 0).parts;
        assert_eq!(parts[0], Part::Json(value));
        assert_eq!(parts[1].as_text().unwrap().len(), 93);
    }

    #[test]
    fn d16_deep_or_misnamed_json_is_kept_as_text() {
        let nested = |depth: usize| (1..depth).fold(json!([]), |inner, _| json!([inner]));
        let object = |depth: usize| (1..depth).fold(json!({}), |inner, _| json!({"a": inner}));
        let kept = |value: Value| capped(vec![value.into()], 1 << 20, 0).parts;
        for value in [nested(100), object(100), json!({"a": [1, "$serde_json::private::RawValue"]})] {
            assert_eq!(kept(value.clone()), [Part::Json(value)]);
        }
        for value in [nested(101), object(101), nested(500), json!([{"$serde_json::private::RawValue": 1}])] {
            assert_eq!(kept(value.clone()), [Part::from(value.to_string())]);
        }
        for value in [nested(501), object(501)] {
            assert_eq!(kept(value), ["[JSON left out: nested deeper than 500 levels]".into()]);
        }
    }

    fn picture(bytes: usize) -> Part {
        Part::Image(Media::from_bytes("image/png", vec![0; bytes]))
    }

    #[test]
    fn law_t3_media_that_does_not_fit_leaves_a_note() {
        let url = |length: usize| Media::from_url("a/b", "u".repeat(length));
        let mut stored = Media::from_url("a/b", "");
        stored.source = MediaSource::ProviderFile("f".repeat(2000).into());
        let more = "left out: 2000 bytes are more than the limit of 1000]";
        for (part, note) in [
            (picture(2000), format!("[image {more}")),
            (Part::Audio(Media::from_bytes("a/b", vec![0; 2000])), format!("[audio {more}")),
            (Part::Video(url(2000)), format!("[video {more}")),
            (Part::File(stored), format!("[file {more}")),
            (Part::File(url(0).with_name("n".repeat(1997))), format!("[file {more}")),
        ] {
            assert_eq!(capped(vec![part], 100, 1000).parts, [Part::from(note)]);
        }
        for part in [picture(991), Part::Video(url(997)), Part::File(url(990).with_name("a.pdf55"))] {
            assert_eq!(capped(vec![part.clone()], 100, 1000).parts, [part], "its type and name count");
        }
    }

    #[test]
    fn media_shares_limit_and_text_yields_to_notes() {
        let note = "[image left out: 500 bytes are more than the 291 left of 1000]";
        let parts = capped(vec![picture(700), "x".repeat(300).into(), picture(500), picture(282)], 200, 1000);
        let [first, cut, noted, last] = &*parts.parts else { panic!("four parts") };
        assert_eq!((first, noted, last), (&picture(700), &note.into(), &picture(282)));
        assert!(cut.as_text().unwrap().contains("bytes left out"), "{cut:?}");
        assert!(parts.text().len() <= 200);
        let note = "[image left out: 1000 bytes are more than the 971 left of 1000]";
        assert_eq!(capped(vec![picture(20), picture(1000)], 200, 1000).parts[1], note.into());
    }

    #[test]
    fn law_t3_bounds_hold_and_result_is_not_empty() {
        for limit in 0..400 {
            for parts in [
                vec![picture(300)],
                vec!["x".repeat(90).into(), picture(300), picture(20)],
                vec!["x".repeat(90).into(), json!({"a": "x".repeat(90)}).into(), "tail".into()],
                vec![picture(20); 30],
                vec![picture(500); 30],
                vec!["x".repeat(500).into(), picture(500)],
            ] {
                let result = capped(parts, limit, limit);
                let texts: usize = result.parts.iter().filter_map(Part::as_text).map(|text| text.len()).sum();
                let media = result.parts.iter().filter(|part| part.as_text().is_none()).count();
                assert!(texts <= limit && media * 29 <= limit, "{limit}");
                assert!(limit == 0 || texts + media > 0, "{limit}");
            }
        }
    }
}
