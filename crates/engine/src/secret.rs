//! Tokens: how they look, and how they are kept.
//!
//! A token is `trimtab_` and 256 random bits. The store has their SHA-256 alone: a reader of the
//! store has no token, and since nobody chose the bits, a slow hash would protect nothing more.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

use crate::error::Error;

const PREFIX: &str = "trimtab_";

/// A new token and what is kept of it.
pub(crate) fn mint() -> Result<(String, Vec<u8>), Error> {
    let mut bits = [0; 32];
    getrandom::fill(&mut bits).map_err(|e| Error::system("get random bits for a token", e))?;
    let text = format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(bits));
    let hash = hash(&text).expect("this is how tokens look");
    Ok((text, hash))
}

/// What is kept of a token; none where it does not look like one.
pub(crate) fn hash(token: &str) -> Option<Vec<u8>> {
    token.strip_prefix(PREFIX).filter(|rest| rest.len() == 43)?;
    Some(Sha256::digest(token).to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_differ_and_their_hash_is_what_is_found_again() {
        let (one, kept) = mint().unwrap();
        let (other, _) = mint().unwrap();
        assert_ne!(one, other);
        assert_eq!(hash(&one), Some(kept));
        assert_ne!(hash(&one), hash(&other));
        assert_eq!(hash("trimtab_short"), None);
        assert_eq!(hash(&one[8..]), None);
    }
}
