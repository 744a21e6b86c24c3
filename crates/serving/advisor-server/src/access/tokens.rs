//! `Tokens`: hashed bearer tokens and their tenants.

use std::fmt;
use std::sync::Arc;

use advisor_core::Error;
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
/// # fn main() -> advisor_core::Result<()> {
/// let tokens = Tokens::new([("0f2ab3c4d5e6f708", "ann"), ("93be01a2b3c4d5e6", "bob")])?;
/// assert_eq!(tokens.tenant("93be01a2b3c4d5e6"), Some("bob"));
/// assert_eq!(tokens.tenant("93be"), None);
/// assert!(Tokens::new([("0f2a", "ann")]).is_err(), "it can be guessed");
/// # Ok(()) }
/// ```
#[derive(Clone, Default)]
pub struct Tokens(Arc<[(Hash, String)]>);

type Hash = [u8; 32];

/// The bytes of the shortest token: 64 bits in hexadecimal digits. Each shorter one can be guessed.
const SHORTEST: usize = 16;

impl Tokens {
    /// Hashes these tokens.
    ///
    /// # Errors
    /// Of kind [`Configuration`](advisor_core::ErrorKind::Configuration) for a token of fewer than 16 bytes, which can be
    /// guessed, and for one token of two tenants. The message names the tenants.
    pub fn new<'a>(tokens: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self, Error> {
        let mut hashes = Vec::<(Hash, String)>::new();
        for (token, tenant) in tokens {
            if token.len() < SHORTEST {
                return Err(Error::configuration(format!(
                    "the token of `{tenant}` can be guessed: it needs at least {SHORTEST} characters; make one with \
                     `openssl rand -hex 32`"
                )));
            }
            let hash = hash(token);
            if let Some((_, other)) = hashes.iter().find(|(known, other)| *known == hash && other != tenant) {
                return Err(Error::configuration(format!(
                    "`{other}` and `{tenant}` have the same token: each tenant needs its own"
                )));
            }
            hashes.push((hash, tenant.to_owned()));
        }
        Ok(Self(hashes.into()))
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
        let tokens = Tokens::new([("canary-0123456789", "ann")]).unwrap();
        assert_eq!(format!("{tokens:?}"), "Tokens(1)");
        assert_eq!(tokens.tenant("canary-0123456789"), Some("ann"));
        assert_eq!(tokens.tenant(""), None);
    }

    #[test]
    fn token_that_can_be_guessed_is_refused() {
        for token in ["", "a", "canary-01234567"] {
            let refused = Tokens::new([("0123456789abcdef", "bob"), (token, "ann")]).unwrap_err().to_string();
            assert!(refused.contains("`ann`") && refused.contains("openssl"), "{refused}");
            assert!(token.len() < 2 || !refused.contains(token), "{refused}");
        }
    }

    #[test]
    fn one_token_is_not_of_two_tenants() {
        let token = "canary-0123456789";
        let refused = Tokens::new([(token, "ann"), (token, "bob")]).unwrap_err().to_string();
        assert!(refused.contains("`ann` and `bob`") && !refused.contains(token), "{refused}");
        assert!(Tokens::new([(token, "ann"), (token, "ann")]).is_ok(), "a line may be repeated");
    }
}
