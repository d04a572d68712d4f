//! Tokens: who asks, for how long, and how a secret is replaced by another.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use trimtab_fleet::Prefix;
use trimtab_units::Duration;

use super::state::Role;

/// A token, without its secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Token {
    /// Its number.
    pub id: i64,
    /// Whose it is; no two have the same.
    pub name: String,
    /// What it may do.
    pub role: Role,
    /// The services that an edge may report for.
    pub services: Vec<String>,
    /// The subnets that an edge may report about, with all that lie within; none: any.
    #[serde(default)]
    pub prefixes: Vec<String>,
    /// When it was made, in ms since 1970.
    pub created_ms: i64,
    /// When it was revoked.
    pub revoked_ms: Option<i64>,
    /// When its secret expires; none: never.
    #[serde(default)]
    pub expires_ms: Option<i64>,
    /// When its secret was last used, within two minutes; none: never yet.
    #[serde(default)]
    pub used_ms: Option<i64>,
    /// The secret that the present one replaced; it is valid for a while.
    #[serde(default)]
    pub former: Option<FormerSecret>,
}

/// What is known of a secret that was replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FormerSecret {
    /// When it expires, in ms since 1970.
    pub expires_ms: i64,
    /// When it was last used.
    pub used_ms: Option<i64>,
}

impl Token {
    /// Whether it may report about a subnet.
    pub fn covers(&self, prefix: &str) -> bool {
        let Ok(of) = prefix.parse::<Prefix>() else { return false };
        let holds = |own: &String| {
            own.parse::<Prefix>()
                .is_ok_and(|own| own.len() <= of.len() && own.contains(of.address()))
        };
        self.prefixes.is_empty() || self.prefixes.iter().any(holds)
    }

    /// Whether its secret expires within [`EXPIRES_SOON_MS`], and has not yet.
    pub fn expires_soon(&self, now_ms: i64) -> bool {
        let soon = |at: i64| at > now_ms && at < now_ms.saturating_add(EXPIRES_SOON_MS);
        self.revoked_ms.is_none() && self.expires_ms.is_some_and(soon)
    }
}

/// So long before a secret expires everybody concerned is warned: 14 days, in ms.
pub const EXPIRES_SOON_MS: i64 = 14 * DAY_MS as i64;

const DAY_MS: u64 = 86_400_000;

/// For how long a secret is valid: `90d`, `12h`, or `never` where it never expires.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Validity {
    /// From when it is made; at least a second, and at most 100 years.
    For(Duration),
    /// It never expires.
    Forever,
}

impl Validity {
    /// When a secret expires that is made now, in ms since 1970.
    pub fn until_ms(self, now_ms: i64) -> Option<i64> {
        match self {
            Self::For(time) => Some(now_ms.saturating_add(time.as_millis() as i64)),
            Self::Forever => None,
        }
    }
}

/// A year.
impl Default for Validity {
    fn default() -> Self {
        Self::For(Duration::from_millis(365 * DAY_MS))
    }
}

impl fmt::Display for Validity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Forever => f.write_str("never"),
            Self::For(time) if time.as_millis() % DAY_MS == 0 => {
                write!(f, "{}d", time.as_millis() / DAY_MS)
            }
            Self::For(time) => write!(f, "{time}"),
        }
    }
}

impl FromStr for Validity {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "never" {
            return Ok(Self::Forever);
        }
        let time: Duration =
            text.parse().map_err(|e| format!("write a time, e.g. 90d, or never: {e}"))?;
        let bounds = Duration::from_secs(1)..=Duration::from_millis(100 * 366 * DAY_MS);
        if bounds.contains(&time) {
            return Ok(Self::For(time));
        }
        Err("a secret is valid for a second at least and 100 years at most; or write never".into())
    }
}

impl TryFrom<String> for Validity {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Validity> for String {
    fn from(validity: Validity) -> Self {
        validity.to_string()
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Validity {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Validity".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "description": "A time with its unit, e.g. 90d or 12h; or never",
            "pattern": "^(never|[0-9.]+ ?(ns|us|ms|s|sec|min|h|d))$",
        })
    }
}

/// Every token, without its secret.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TokensBody {
    /// In the order in which they were made.
    pub tokens: Vec<Token>,
}

/// A token to be made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct NewToken {
    /// Whose it is; no two have the same.
    pub name: String,
    /// What it may do.
    pub role: Role,
    /// The services that an edge may report for.
    #[serde(default)]
    pub services: Vec<String>,
    /// The subnets that an edge may report about, with all that lie within, as `203.0.113.0/24`. Default: any.
    #[serde(default)]
    pub prefixes: Vec<String>,
    /// For how long. Default: `365d`.
    #[serde(default)]
    pub expires: Validity,
}

impl NewToken {
    /// One that is valid for a year; an edge's is for any subnet of these services.
    pub fn new(name: &str, role: Role, services: &[&str]) -> Self {
        Self {
            name: name.to_owned(),
            role,
            services: services.iter().map(|service| (*service).to_owned()).collect(),
            prefixes: Vec::new(),
            expires: Validity::default(),
        }
    }
}

/// A token that is to have another secret.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RotateToken {
    /// Whose it is.
    pub name: String,
    /// For how long the new secret is valid. Default: `365d`.
    #[serde(default)]
    pub expires: Validity,
    /// For how long the present secret is valid still, at most until it expires. Default: `1d`.
    #[serde(default = "overlap")]
    pub overlap: Validity,
}

/// A day: long enough to distribute a file to every edge.
fn overlap() -> Validity {
    Validity::For(Duration::from_millis(DAY_MS))
}

/// A new token, or a new secret of one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TokenSecret {
    /// Whose it is.
    pub name: String,
    /// The token; it is shown only once.
    pub token: String,
    /// When it expires, in ms since 1970; none: never.
    #[serde(default)]
    pub expires_ms: Option<i64>,
}

/// A token to be revoked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RevokeToken {
    /// Whose it is.
    pub name: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(prefixes: &[&str]) -> Token {
        Token {
            id: 1,
            name: "edge-1".to_owned(),
            role: Role::Edge,
            services: vec!["tv".to_owned()],
            prefixes: prefixes.iter().map(|prefix| (*prefix).to_owned()).collect(),
            created_ms: 5,
            revoked_ms: None,
            expires_ms: None,
            used_ms: None,
            former: None,
        }
    }

    #[test]
    fn an_edge_speaks_for_its_subnets() {
        assert!(token(&[]).covers("203.0.113.0/24"));
        let two = token(&["203.0.112.0/22", "2001:db8::/32"]);
        for (prefix, may) in [
            ("203.0.113.0/24", true),
            ("203.0.112.0/22", true),
            ("203.0.0.0/16", false),
            ("198.51.100.0/24", false),
            ("2001:db8:7::/48", true),
            ("no prefix", false),
        ] {
            assert_eq!(two.covers(prefix), may, "{prefix}");
        }
    }

    #[test]
    fn a_token_is_warned_about_from_two_weeks_before_it_expires() {
        let mut token = token(&[]);
        assert!(!token.expires_soon(0), "it never does");
        token.expires_ms = Some(EXPIRES_SOON_MS + 1000);
        assert!(!token.expires_soon(1000));
        assert!(token.expires_soon(1001) && token.expires_soon(EXPIRES_SOON_MS + 999));
        assert!(!token.expires_soon(EXPIRES_SOON_MS + 1000), "it has");
        token.revoked_ms = Some(3);
        assert!(!token.expires_soon(1001));
    }

    #[test]
    fn how_long_a_secret_is_valid_is_a_time_or_never() {
        let day = Duration::from_millis(DAY_MS);
        for (text, validity) in [
            ("90d", Validity::For(day * 90)),
            ("12h", Validity::For(day / 2)),
            ("never", Validity::Forever),
        ] {
            assert_eq!(text.parse(), Ok(validity));
            assert_eq!(validity.to_string().parse(), Ok(validity));
        }
        assert_eq!(Validity::default().to_string(), "365d");
        assert_eq!(Validity::default().until_ms(7), Some(365 * DAY_MS as i64 + 7));
        assert_eq!(Validity::Forever.until_ms(7), None);
        for text in ["", "90", "0", "10ms", "200000d", "-1d", "always"] {
            assert!(text.parse::<Validity>().is_err(), "{text}");
        }
        let rotate: RotateToken = serde_json::from_str("{\"name\":\"kim\"}").unwrap();
        assert_eq!(
            (rotate.expires, rotate.overlap.to_string().as_str()),
            (Validity::default(), "1d")
        );
    }
}
