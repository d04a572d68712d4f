//! What video players report with their requests: Common Media Client Data (CMCD, CTA-5004).
//!
//! ```
//! use trimtab_cmcd::{Cmcd, ObjectType};
//! use trimtab_units::{Duration, Rate};
//!
//! let query = "CMCD=bl%3D21300%2Cbr%3D3200%2Cbs%2Cd%3D4004%2Cot%3Dv%2Csid%3D%226e2fb550%22";
//! let data = Cmcd::from_query(query)?.expect("the argument is there");
//! assert_eq!(data.bitrate, Some(Rate::from_mbps(3.2)));
//! assert_eq!(data.buffer, Some(Duration::from_millis(21_300)));
//! assert_eq!((data.object, data.is_starved), (Some(ObjectType::Video), true));
//! # Ok::<(), trimtab_cmcd::CmcdError>(())
//! ```
#![deny(missing_docs)]

mod data;
mod door;
mod event;
mod journal;
mod line;
mod listen;
mod memory;
mod session;
mod syntax;
mod table;
mod tail;
mod viewing;

pub use data::{Cmcd, CmcdError, LEN_MAX, ObjectType, Range, StreamType, StreamingFormat};
pub use door::{Counts, Door};
pub use event::{Event, REPORTS_MAX, State};
pub use journal::Journal;
pub use line::{Fields, Line, LineError, Reader};
pub use listen::{
    BODY_LEN_MAX, CONNECTIONS_MAX, Listener, Options as ListenOptions, POSTS_MAX, Post,
};
pub use memory::Memory;
pub use session::{IDLE, Request, SESSIONS_MAX, Sessions, Slot, Statistics};
pub use table::{Row, Table};
pub use tail::{LINE_LEN_MAX, More, Place, Source, Tail};
