//! What applications and the agent say to each other: a message of JSON each, over a socket of whole messages
//! (`SOCK_SEQPACKET`). A connection is made known by its descriptor, which goes along with the first
//! message about it (`SCM_RIGHTS`). Who has no descriptor of a connection cannot speak for it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
#[cfg(feature = "formula")]
use trimtab_qoe::{Factor, Factors, Model};

/// The longest message, in bytes.
pub const MESSAGE_MAX: usize = 4096;

/// What an application says of one connection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Message {
    /// The cookie (`SO_COOKIE`) of a socket whose descriptor came with an earlier message of this
    /// sender's; absent: the descriptor comes with this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cookie: Option<u64>,
    /// The QoE model: a name as `vod`, or a formula; absent: as before, or the policy's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Live factors by their names in formulas, in their units there.
    #[serde(default)]
    pub factors: BTreeMap<String, f64>,
    /// Whether to answer when all is well; what is wrong is answered always.
    pub answer: bool,
}

impl Message {
    /// Reads a message.
    ///
    /// # Errors
    /// The bytes are none: one line that tells why.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        // The reader quotes names as they are.
        let line = |e: serde_json::Error| e.to_string().replace('\n', "\\n");
        serde_json::from_slice(bytes).map_err(|e| format!("cannot read the hint: {}", line(e)))
    }

    /// The model and the factors that it tells.
    ///
    /// # Errors
    /// The formula is none, or a factor has no name or no finite value: one line that tells which.
    #[cfg(feature = "formula")]
    pub fn content(&self) -> Result<(Option<Model>, Factors), String> {
        let mut factors = Factors::new();
        for (name, value) in &self.factors {
            if !value.is_finite() {
                return Err(format!("the factor {name:?} is no finite number"));
            }
            factors.set_named(name, *value).map_err(|e| e.to_string())?;
        }
        let names = self.factors.keys().map(String::as_str);
        let own: Vec<&str> = names.filter(|name| Factor::from_name(name).is_none()).collect();
        let parse =
            |text: &String| Model::parse(text, &own).map_err(|e| format!("the QoE model: {e}"));
        Ok((self.model.as_ref().map(parse).transpose()?, factors))
    }
}

/// What the agent answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// Taken in.
    Ok,
    /// The agent knows no such connection, or not yet.
    Unknown(String),
    /// Not taken in.
    Refused(String),
}
