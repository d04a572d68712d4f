//! The user as whom the steerer runs.

use rustix::fs::{Gid, Uid};

use crate::error::Error;

/// Whose the steerer is where the configuration names nobody.
const DEFAULT: &str = "trimtab";

/// A user of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct User {
    pub(super) name: String,
    pub(super) uid: Uid,
    pub(super) gid: Gid,
    /// Other groups.
    pub(super) groups: Vec<Gid>,
}

impl User {
    /// The one that the configuration names, or else `trimtab`, where there is one and we may become
    /// it; `None`: the steerer keeps the user of the loader.
    ///
    /// # Errors
    /// There is no user of the name that the configuration gives.
    pub(super) fn of(named: Option<&str>) -> Result<Option<Self>, Error> {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let (users, groups) = (read("/etc/passwd"), read("/etc/group"));
        match named {
            Some(name) => find(name, &users, &groups).map(Some).ok_or_else(|| {
                Error::Refused(format!(
                    "user = {name:?}: there is no such user in /etc/passwd; make it with `useradd \
                     --system --no-create-home --shell /usr/sbin/nologin {name}`"
                ))
            }),
            None if rustix::process::geteuid().is_root() => Ok(find(DEFAULT, &users, &groups)),
            None => Ok(None),
        }
    }
}

fn find(name: &str, users: &str, groups: &str) -> Option<User> {
    let fields = |line: &str| line.split(':').map(str::to_owned).collect::<Vec<_>>();
    let user = users.lines().map(fields).find(|user| user[0] == name)?;
    let number = |place: usize| user.get(place)?.parse::<u32>().ok();
    let is_member = |group: &Vec<String>| {
        group.get(3).is_some_and(|members| members.split(',').any(|one| one == name))
    };
    let gid = |group: Vec<String>| Some(Gid::from_raw(group.get(2)?.parse().ok()?));
    Some(User {
        name: name.to_owned(),
        uid: Uid::from_raw(number(2)?),
        gid: Gid::from_raw(number(3)?),
        groups: groups.lines().map(fields).filter(is_member).filter_map(gid).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_found_with_all_groups() {
        let users = "root:x:0:0::/root:/bin/sh\ntrimtab:x:990:991::/:/usr/sbin/nologin\nbad\n";
        let groups = "web:x:33:a,trimtab\ntrimtab:x:991:\nother:x:7:trimtabs\n";
        let user = find("trimtab", users, groups).unwrap();
        assert_eq!((user.uid, user.gid), (Uid::from_raw(990), Gid::from_raw(991)));
        assert_eq!(user.groups, [Gid::from_raw(33)]);
        assert_eq!((find("bad", users, groups), find("x", users, groups)), (None, None));
        let error = User::of(Some("no-such-user")).unwrap_err().to_string();
        assert!(error.contains("useradd --system"), "{error}");
    }
}
