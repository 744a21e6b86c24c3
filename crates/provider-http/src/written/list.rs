//! Written forms that are kept with a list of messages.

use advisor_core::{Message, MessageList, Result};

/// Whether a message could be added to the written form of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Growth {
    /// It was added.
    Added,
    /// Its form depends on other messages, or changes theirs: the list has to be written in another way.
    Refused,
}

/// The written form of a list. Kept with the list.
#[derive(Clone)]
struct WrittenList<F, B> {
    form: F,
    body: B,
}

/// Returns a list in this form, by adding the new messages to the form of its beginning. `None` if a message was
/// refused. The result is kept with the list, so a request costs only its new messages.
///
/// `form` is all that the result depends on beside the messages. `begin` makes the form of an empty list, and `add`
/// extends one by a message.
///
/// # Errors
/// Those of `add`.
///
/// # Example
/// ```
/// use advisor_core::{Message, MessageList};
/// use provider_http::written::{Growth, written_list};
///
/// # fn main() -> advisor_core::Result<()> {
/// let mut added = 0;
/// let mut text = |list: &MessageList| {
///     written_list(list, &"some form", String::new, |all: &mut String, message| {
///         added += 1;
///         all.push_str(&message.text());
///         Ok(Growth::Added)
///     })
/// };
/// let mut list = MessageList::from(vec![Message::user("a"), Message::user("b")]);
/// assert_eq!(text(&list)?.as_deref(), Some("ab"));
/// list.push(Message::user("c"));
/// assert_eq!(text(&list)?.as_deref(), Some("abc"));
/// assert_eq!(added, 3);
/// # Ok(()) }
/// ```
pub fn written_list<F, B>(
    list: &MessageList,
    form: &F,
    begin: impl FnOnce() -> B,
    mut add: impl FnMut(&mut B, &Message) -> Result<Growth>,
) -> Result<Option<B>>
where
    F: Clone + PartialEq + Send + 'static,
    B: Clone + Send + 'static,
{
    let grown = list.wire_form(
        |known: &WrittenList<F, B>| known.form == *form,
        |known, new| {
            let mut written = known.unwrap_or_else(|| WrittenList { form: form.clone(), body: begin() });
            for message in new {
                match add(&mut written.body, message) {
                    Ok(Growth::Added) => {}
                    Ok(Growth::Refused) => return Err(None),
                    Err(error) => return Err(Some(error)),
                }
            }
            Ok(written)
        },
    );
    match grown {
        Ok(written) => Ok(Some(written.body)),
        Err(Some(error)) => Err(error),
        Err(None) => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use advisor_core::{Error, ErrorKind};

    use super::*;

    /// Joins the texts of a list, and counts the written messages.
    fn joined(list: &MessageList, form: u8) -> (Option<String>, usize) {
        let mut count = 0;
        let joined = written_list(list, &form, String::new, |all: &mut String, message| {
            count += 1;
            let text = message.text();
            if text == "refused" {
                return Ok(Growth::Refused);
            }
            all.push_str(&text);
            if text == "failed" {
                Err(Error::new(ErrorKind::InvalidRequest, "no"))
            } else {
                Ok(Growth::Added)
            }
        });
        (joined.unwrap_or_default(), count)
    }

    #[test]
    fn list_grows_by_its_new_messages() {
        let mut list = MessageList::from(vec![Message::user("a"), Message::user("b")]);
        assert_eq!(joined(&list, 1), (Some("ab".to_owned()), 2));
        list.push(Message::user("c"));
        assert_eq!(joined(&list, 1), (Some("abc".to_owned()), 1));
        assert_eq!(joined(&list, 1), (Some("abc".to_owned()), 0));
        assert_eq!(joined(&list, 2), (Some("abc".to_owned()), 3), "another form");
    }

    #[test]
    fn refused_or_failed_message_leaves_nothing_behind() {
        for text in ["refused", "failed"] {
            let list = MessageList::from(vec![Message::user("a"), Message::user(text)]);
            assert_eq!(joined(&list, 1), (None, 2));
            assert_eq!(joined(&list, 1), (None, 2), "{text}");
        }
    }
}
