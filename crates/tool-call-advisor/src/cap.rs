use advisor_core::{Part, Text, ToolResult};

/// Cuts the text of a result that is longer than `limit` bytes: its head and its tail stay, a marker says how
/// much is missing. The bound holds for the texts together, the marker included where it fits.
pub(crate) fn cap_result(mut result: ToolResult, limit: usize) -> ToolResult {
    let mut left = limit;
    for part in &mut result.parts {
        let capped = match part {
            Part::Text(text) if text.len() > left => Part::Text(cut(text, left).into()),
            Part::Json(value) => {
                let text = value.to_string();
                if text.len() <= left {
                    left -= text.len();
                    continue;
                }
                Part::Text(cut(&text, left).into())
            }
            Part::Text(text) => {
                left -= text.len();
                continue;
            }
            _ => continue,
        };
        left = left.saturating_sub(capped.as_text().map_or(0, str::len));
        *part = capped;
    }
    result.parts.retain(|part| part.as_text().is_none_or(|text| !text.is_empty() || limit == 0));
    if result.parts.is_empty() {
        result.parts.push(Part::Text(Text::default()));
    }
    result
}

fn cut(text: &str, limit: usize) -> String {
    let marker = format!("\n[… {} bytes left out …]\n", text.len() - limit);
    let Some(room) = limit.checked_sub(marker.len()) else {
        return String::from(text.get(..floor(text, limit)).unwrap_or_default());
    };
    let head = floor(text, room.div_ceil(2));
    let tail = ceil(text, text.len() - room / 2);
    let (head, tail) = (text.get(..head).unwrap_or_default(), text.get(tail..).unwrap_or_default());
    format!("{head}{marker}{tail}")
}

fn floor(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default()
}

fn ceil(text: &str, at: usize) -> usize {
    (at..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use advisor_core::ToolCall;
    use serde_json::json;

    fn capped(parts: Vec<Part>, limit: usize) -> ToolResult {
        cap_result(ToolResult::new(&ToolCall::new("c", "f", ""), parts), limit)
    }

    #[test]
    fn the_bound_holds_for_every_length_and_cuts_no_character() {
        let text = "äöü€😀".repeat(40);
        for limit in 0..text.len() + 2 {
            let result = capped(vec![text.as_str().into()], limit);
            assert!(result.text().len() <= limit, "{limit}");
            assert_eq!(result.text() == text, limit >= text.len());
        }
        assert!(capped(vec![text.as_str().into()], 100).text().contains("bytes left out"));
    }

    #[test]
    fn all_parts_share_the_bound() {
        let long = "x".repeat(90);
        let result = capped(vec![long.as_str().into(), json!({"a": long}).into(), "tail".into()], 100);
        assert!(result.text().len() <= 100);
        assert!(result.text().starts_with(&long));
    }
}
