//! The chain of the audit: each line has the hash of the line before, and one of that and its own text.
//!
//! A check finds the first line that was changed, removed or inserted. Somebody who writes to the
//! tables can write a whole new chain, though. So a check prints the last line's hash, to be kept
//! elsewhere, and a later check takes it.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest, Sha256};
use trimtab_fleet_client::Audit;

/// In front of all that is hashed, so that nothing else has the same hashes.
const DOMAIN: &[u8] = b"trimtab.audit/1";

/// The action of a line that says which lines were deleted since they were old enough: its detail
/// is the [`AuditMark`] of the last of them.
pub(crate) const FORGOTTEN: &str = "audit forgotten";

/// A line of the audit, and its hash; written `1250:` and 64 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditMark {
    /// Its number. The first one is 1; 0 stands for the beginning.
    pub line: i64,
    /// SHA-256.
    pub hash: [u8; 32],
}

impl AuditMark {
    /// What the first line follows.
    pub(crate) const BEGINNING: Self = Self { line: 0, hash: [0; 32] };

    /// The line after it with a time and the texts who, action, subject and detail.
    pub(crate) fn next(&self, at_ms: i64, texts: [&str; 4]) -> Self {
        Self { line: self.line + 1, hash: hash_of(&self.hash, at_ms, texts) }
    }
}

impl fmt::Display for AuditMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.line)?;
        self.hash.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for AuditMark {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let read = || {
            let (line, digits) = text.split_once(':')?;
            let line = line.parse().ok().filter(|line: &i64| *line >= 0)?;
            let mut hash = [0; 32];
            if digits.len() != 64 || !digits.is_ascii() {
                return None;
            }
            for (byte, at) in hash.iter_mut().zip((0..64).step_by(2)) {
                *byte = u8::from_str_radix(&digits[at..at + 2], 16).ok()?;
            }
            Some(Self { line, hash })
        };
        read().ok_or_else(|| {
            "write LINE:HASH as a check prints it: a number, `:` and 64 hexadecimal digits".into()
        })
    }
}

/// The hash of a line. Lengths are hashed, too, so that no text can pass for the end of another.
fn hash_of(previous: &[u8], at_ms: i64, texts: [&str; 4]) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(DOMAIN);
    hash.update(previous);
    hash.update(at_ms.to_be_bytes());
    for text in texts {
        hash.update((text.len() as u64).to_be_bytes());
        hash.update(text.as_bytes());
    }
    hash.finalize().into()
}

/// A line with its place in the chain.
#[derive(Clone, Debug)]
pub(crate) struct Chained {
    pub(crate) line: Audit,
    /// The hash of the line before.
    pub(crate) previous: Vec<u8>,
    pub(crate) hash: Vec<u8>,
}

/// What is wrong with an audit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tampered {
    /// A line's hash is not that of its text.
    Changed {
        /// Its number.
        line: i64,
    },
    /// The next line does not follow this one.
    Unfollowed {
        /// Its number.
        line: i64,
    },
    /// A line stands where there was none.
    Inserted {
        /// Its number.
        line: i64,
    },
    /// Lines are missing.
    Removed {
        /// The first one.
        from: i64,
        /// The last one.
        to: i64,
    },
    /// The table `meta` does not say which line is the last one.
    Endless,
    /// A line that was known from an earlier check has another hash.
    Rewritten {
        /// Its number.
        line: i64,
    },
    /// A line that was known from an earlier check is too old to be there.
    TooOld {
        /// Its number.
        line: i64,
    },
}

impl fmt::Display for Tampered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Changed { line } => {
                write!(f, "line {line} was changed or inserted: its hash is not that of its text")
            }
            Self::Unfollowed { line } => write!(
                f,
                "line {line} was changed, or lines after it were removed: the next line does not \
                 follow it"
            ),
            Self::Inserted { line } => {
                write!(f, "line {line} was inserted: its neighbours follow each other without it")
            }
            Self::Removed { from, to } if from == to => write!(f, "line {from} was removed"),
            Self::Removed { from, to } => write!(f, "lines {from} to {to} were removed"),
            Self::Endless => {
                write!(f, "which line is the last one was removed from the table `meta`")
            }
            Self::Rewritten { line } => write!(
                f,
                "line {line} has another hash than the known one: the chain was written anew"
            ),
            Self::TooOld { line } => {
                write!(f, "line {line} is no longer kept: check with a later one")
            }
        }
    }
}

/// What a check found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditCheck {
    /// How many lines there are.
    pub lines: u64,
    /// The number of the oldest one that is kept.
    pub first: i64,
    /// The last one.
    pub end: AuditMark,
    /// The first thing that is wrong.
    pub found: Option<Tampered>,
}

/// Walks along a chain, from its oldest line on.
pub(crate) struct Walk<'a> {
    known: Option<&'a AuditMark>,
    /// What is found at the known line.
    known_is: Option<[u8; 32]>,
    lines: u64,
    /// The oldest line, and what it follows.
    first: Option<(i64, Vec<u8>)>,
    /// The hash of the line before the last one.
    before: Vec<u8>,
    last: Option<AuditMark>,
    forgotten: Option<AuditMark>,
    found: Option<Tampered>,
}

impl<'a> Walk<'a> {
    /// A walk on which a line with a known hash is looked for.
    pub(crate) fn new(known: Option<&'a AuditMark>) -> Self {
        Self {
            known,
            known_is: None,
            lines: 0,
            first: None,
            before: Vec::new(),
            last: None,
            forgotten: None,
            found: None,
        }
    }

    /// Takes the next line, in the order of numbers.
    pub(crate) fn add(&mut self, one: &Chained) {
        let Audit { id, at_ms, who, action, subject, detail } = &one.line;
        let hash = hash_of(&one.previous, *at_ms, [who, action, subject, detail]);
        let found = match self.last {
            Some(last) if *id > last.line + 1 => {
                Some(Tampered::Removed { from: last.line + 1, to: id - 1 })
            }
            _ if one.hash != hash => Some(Tampered::Changed { line: *id }),
            Some(last) if one.previous != last.hash => Some(if one.previous == self.before {
                Tampered::Inserted { line: last.line }
            } else {
                Tampered::Unfollowed { line: last.line }
            }),
            _ => None,
        };
        self.found = self.found.or(found);
        if action == FORGOTTEN {
            self.forgotten = detail.parse().ok();
        }
        if self.known.is_some_and(|known| known.line == *id) {
            self.known_is = Some(hash);
        }
        self.before.clone_from(&one.previous);
        self.first.get_or_insert_with(|| (*id, one.previous.clone()));
        self.last = Some(AuditMark { line: *id, hash });
        self.lines += 1;
    }

    /// What was found, where this is the last line by the table `meta`.
    pub(crate) fn end(self, end: Option<AuditMark>) -> AuditCheck {
        let begin = self.forgotten.unwrap_or(AuditMark::BEGINNING);
        let last = self.last.unwrap_or(begin);
        let first = self.first.as_ref().map_or(begin.line + 1, |first| first.0);
        let found = self.at_the_beginning(&begin).or(self.found).or_else(|| match end {
            None => Some(Tampered::Endless),
            Some(end) if end.line > last.line => {
                Some(Tampered::Removed { from: last.line + 1, to: end.line })
            }
            Some(end) if end.line < last.line => Some(Tampered::Inserted { line: end.line + 1 }),
            Some(end) if end.hash != last.hash => Some(Tampered::Changed { line: last.line }),
            Some(_) => self.at_the_known(first, &last),
        });
        AuditCheck { lines: self.lines, first, end: last, found }
    }

    /// Whether the oldest line is the one after those that were deleted in time.
    fn at_the_beginning(&self, begin: &AuditMark) -> Option<Tampered> {
        let (line, previous) = self.first.as_ref()?;
        if *line > begin.line + 1 {
            return Some(Tampered::Removed { from: begin.line + 1, to: line - 1 });
        }
        if *line <= begin.line {
            return Some(Tampered::Inserted { line: *line });
        }
        (*previous != begin.hash).then_some(Tampered::Changed { line: *line })
    }

    fn at_the_known(&self, first: i64, last: &AuditMark) -> Option<Tampered> {
        let known = self.known?;
        let line = known.line;
        match self.known_is {
            Some(hash) => (hash != known.hash).then_some(Tampered::Rewritten { line }),
            None if line < first => Some(Tampered::TooOld { line }),
            None => Some(Tampered::Removed { from: last.line + 1, to: line }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A chain of so many lines, and its end.
    fn chain(count: i64) -> (Vec<Chained>, AuditMark) {
        let mut end = AuditMark::BEGINNING;
        let mut lines = Vec::new();
        for at_ms in 1..=count {
            let detail = format!("number {at_ms}");
            let next = end.next(at_ms, ["kim", "pin", "tv a", &detail]);
            let line = Audit {
                id: next.line,
                at_ms,
                who: "kim".to_owned(),
                action: "pin".to_owned(),
                subject: "tv a".to_owned(),
                detail,
            };
            lines.push(Chained { line, previous: end.hash.to_vec(), hash: next.hash.to_vec() });
            end = next;
        }
        (lines, end)
    }

    fn check(lines: &[Chained], end: AuditMark, known: Option<&AuditMark>) -> Option<Tampered> {
        let mut walk = Walk::new(known);
        lines.iter().for_each(|line| walk.add(line));
        walk.end(Some(end)).found
    }

    /// Gives a line the hash of what it says now.
    fn rehash(one: &mut Chained) {
        let Audit { at_ms, who, action, subject, detail, .. } = &one.line;
        one.hash = hash_of(&one.previous, *at_ms, [who, action, subject, detail]).to_vec();
    }

    #[test]
    fn a_chain_is_whole_as_it_was_written() {
        for count in [1, 5] {
            let (lines, end) = chain(count);
            assert_eq!(check(&lines, end, None), None);
            assert_eq!(check(&lines, end, Some(&end)), None);
        }
        assert_eq!(check(&[], AuditMark::BEGINNING, None), None);
    }

    #[test]
    fn any_change_of_any_line_is_found_there() {
        for at in 0..5 {
            let (lines, end) = chain(5);
            let line = at as i64 + 1;
            let with = |change: &dyn Fn(&mut Chained)| {
                let mut changed = lines.clone();
                change(&mut changed[at]);
                check(&changed, end, None)
            };
            let changes: [&dyn Fn(&mut Chained); 6] = [
                &|one| one.line.at_ms += 1,
                &|one| one.line.who = "robin".to_owned(),
                &|one| one.line.action.push('s'),
                &|one| one.hash[3] ^= 1,
                // What moves from one text to the next is not the same.
                &|one| {
                    one.line.who.push('p');
                    one.line.action.remove(0);
                },
                &|one| one.hash.clear(),
            ];
            for change in changes {
                assert_eq!(with(change), Some(Tampered::Changed { line }));
            }
            // With a hash that fits, the next line does not.
            let found = with(&|one| {
                one.line.detail = "nothing".to_owned();
                rehash(one);
            });
            let last = line == 5;
            let unfollowed = Tampered::Unfollowed { line };
            assert_eq!(found, Some(if last { Tampered::Changed { line } } else { unfollowed }));
        }
    }

    #[test]
    fn any_line_that_is_removed_is_missed() {
        for at in 0..5 {
            let (mut lines, end) = chain(5);
            lines.remove(at);
            let line = at as i64 + 1;
            assert_eq!(check(&lines, end, None), Some(Tampered::Removed { from: line, to: line }));
            // Where those after it get its number the chain shows it still.
            for one in &mut lines[at..] {
                one.line.id -= 1;
            }
            let shorter = lines.last().expect("four").clone();
            let end = AuditMark { line: 4, hash: shorter.hash.try_into().expect("a hash") };
            let found = check(&lines, end, None);
            let expected = match line {
                1 => Some(Tampered::Changed { line: 1 }),
                5 => None,
                _ => Some(Tampered::Unfollowed { line: line - 1 }),
            };
            assert_eq!(found, expected);
        }
        let (lines, end) = chain(5);
        assert_eq!(check(&lines[..2], end, None), Some(Tampered::Removed { from: 3, to: 5 }));
        assert_eq!(check(&[], end, None), Some(Tampered::Removed { from: 1, to: 5 }));
    }

    #[test]
    fn any_line_that_is_inserted_is_found() {
        for at in 0..=5_usize {
            let (mut lines, end) = chain(5);
            let mut new = lines[2].clone();
            new.line.id = at as i64 + 1;
            new.line.detail = "I was always there".to_owned();
            new.previous = at.checked_sub(1).map_or(vec![0; 32], |at| lines[at].hash.clone());
            rehash(&mut new);
            for one in &mut lines[at..] {
                one.line.id += 1;
            }
            lines.insert(at, new);
            let found = check(&lines, end, None);
            assert_eq!(found, Some(Tampered::Inserted { line: at as i64 + 1 }));
        }
    }

    #[test]
    fn a_new_chain_is_found_by_what_was_known_of_the_old_one() {
        let (mut lines, end) = chain(5);
        let known: AuditMark = end.to_string().parse().unwrap();
        assert_eq!(known, end);
        lines[1].line.detail = "another".to_owned();
        let mut new = AuditMark::BEGINNING;
        for one in &mut lines {
            one.previous = new.hash.to_vec();
            rehash(one);
            new = AuditMark { line: one.line.id, hash: one.hash.clone().try_into().unwrap() };
        }
        assert_eq!(check(&lines, new, None), None);
        assert_eq!(check(&lines, new, Some(&known)), Some(Tampered::Rewritten { line: 5 }));
        let (lines, end) = chain(3);
        assert_eq!(check(&lines, end, Some(&known)), Some(Tampered::Removed { from: 4, to: 5 }));
        for wrong in ["", "5", "5:", "5:ab", "-1:", &format!("x:{}", "0".repeat(64))] {
            assert!(wrong.parse::<AuditMark>().is_err(), "{wrong}");
        }
    }
}
