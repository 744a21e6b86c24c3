use std::fmt;

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// The bearer tokens of a server, each with the tenant whose conversations it opens.
///
/// Only the SHA-256 hashes of the tokens are kept, and all of them are compared in constant time. Use random tokens of
/// at least 128 bits, such as from `openssl rand -hex 32`.
///
/// # Example
/// ```
/// use advisor_server::Tokens;
///
/// let tokens = Tokens::new([("0f2a…", "ann"), ("93be…", "bob")]);
/// assert_eq!(tokens.tenant("93be…"), Some("bob"));
/// assert_eq!(tokens.tenant("93be"), None);
/// ```
#[derive(Clone, Default)]
pub struct Tokens(Vec<(Hash, String)>);

type Hash = [u8; 32];

impl Tokens {
    /// Hashes these tokens. An empty token opens nothing.
    pub fn new<'a>(tokens: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        Self(tokens.into_iter().map(|(token, tenant)| (hash(token), tenant.to_owned())).collect())
    }

    /// Returns the tenant of a token.
    #[must_use]
    pub fn tenant(&self, token: &str) -> Option<&str> {
        if token.is_empty() {
            return None;
        }
        let hash = hash(token);
        // Every hash is compared, so that the time does not reveal the position of a token.
        let matching =
            self.0.iter().fold(
                None,
                |found, (known, tenant)| {
                    if bool::from(known.ct_eq(&hash)) { Some(tenant) } else { found }
                },
            );
        matching.map(String::as_str)
    }

    /// Checks whether there is no token.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn hash(token: &str) -> Hash {
    Sha256::digest(token.as_bytes()).into()
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tokens({})", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn law_r3_tokens_are_not_shown() {
        let tokens = Tokens::new([("canary", "ann")]);
        assert_eq!(format!("{tokens:?}"), "Tokens(1)");
        assert_eq!(tokens.tenant("canary"), Some("ann"));
        assert_eq!(tokens.tenant(""), None);
    }

    #[test]
    fn an_empty_token_opens_nothing() {
        let tokens = Tokens::new([("", "ann")]);
        assert_eq!(tokens.tenant(""), None);
        assert!(!tokens.is_empty(), "the server does not count as one without tokens");
    }
}
