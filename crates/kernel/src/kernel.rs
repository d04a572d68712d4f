//! What this kernel has, by its own description of its types (BTF).

use libbpf_rs::btf::types::{Enum, FuncProto, Ptr, Struct};
use libbpf_rs::btf::{Btf, ReferencesType as _};

use crate::error::Error;

/// The operations of a congestion control whose form is the same in all kernels that we know.
const OPERATIONS: [&str; 8] = [
    "ssthresh",
    "set_state",
    "cong_avoid",
    "pkts_acked",
    "cong_control",
    "undo_cwnd",
    "init",
    "release",
];

/// The form of a congestion control's operations, by the first kernel that has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// `cong_control` gets the socket and the rate sample; `cwnd_event` tells of the first packet after an idle time.
    Linux6_1,
    /// `cong_control` gets the acknowledgement number and flags, too.
    Linux6_10,
    /// `cwnd_event_tx_start` tells of that packet, and `cwnd_event` does not.
    Linux7_1,
}

impl Form {
    /// All of them.
    pub(crate) const ALL: [Self; 3] = [Self::Linux6_1, Self::Linux6_10, Self::Linux7_1];

    /// What the kernel's types say.
    ///
    /// # Errors
    /// An operation is missing, or has a form that no program of ours has: without it an algorithm
    /// would run with a hook that is never called.
    pub(crate) fn of(btf: &Btf<'_>) -> Result<Self, Error> {
        let ops = btf.type_by_name::<Struct<'_>>("tcp_congestion_ops").ok_or(Error::NoStructOps)?;
        let member = |name: &str| ops.iter().find(|m| m.name.is_some_and(|n| n == name));
        if let Some(name) = OPERATIONS.into_iter().find(|name| member(name).is_none()) {
            return Err(Error::Operation { what: format!("{name} is missing") });
        }
        let arguments = member("cong_control").and_then(|member| {
            let pointer = btf.type_by_id::<Ptr<'_>>(member.ty)?;
            let function = FuncProto::try_from(pointer.referenced_type()).ok()?;
            Some(function.iter().count())
        });
        let (has_start, has_event) =
            (member("cwnd_event_tx_start").is_some(), member("cwnd_event").is_some());
        match arguments {
            Some(4) if has_start => Ok(Self::Linux7_1),
            Some(4) if has_event => Ok(Self::Linux6_10),
            Some(2) if has_event && !has_start => Ok(Self::Linux6_1),
            Some(2 | 4) => Err(Error::Operation {
                what: "cwnd_event and cwnd_event_tx_start are not as in any kernel that it knows"
                    .to_owned(),
            }),
            other => Err(Error::Operation {
                what: format!("cong_control has {} arguments, not 2 or 4", other.unwrap_or(0)),
            }),
        }
    }
}

/// Whether a TCP congestion control may be a struct_ops program.
pub(crate) fn has_struct_ops(btf: &Btf<'_>) -> bool {
    btf.type_by_name::<Struct<'_>>("bpf_struct_ops_tcp_congestion_ops").is_some()
}

/// What keeps a struct_ops program registered when the process that loaded it is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Registration {
    /// Since Linux 6.4: a link, which can be pinned.
    Link,
    /// Before: its map registers it when it is written and unregisters it when the entry is deleted.
    Map,
}

impl Registration {
    /// What the kernel's types say.
    pub(crate) fn of(btf: &Btf<'_>) -> Self {
        match btf.type_by_name::<Struct<'_>>("bpf_struct_ops_link") {
            Some(_) => Self::Link,
            None => Self::Map,
        }
    }
}

/// Whether there is memory that programs and user space share by pointers (Linux 6.9). Not needed.
pub(crate) fn has_arena(btf: &Btf<'_>) -> bool {
    btf.type_by_name::<Struct<'_>>("bpf_arena").is_some()
}

/// Whether a program may walk over TCP sockets (iter/tcp, Linux 5.9, with /proc). Giving sockets an
/// algorithm there came with Linux 5.16, before links for struct_ops.
pub(crate) fn has_socket_walk(btf: &Btf<'_>) -> bool {
    btf.type_by_name::<Struct<'_>>("bpf_iter__tcp").is_some()
}

/// Whether a cgroup may have a program that is called when a socket listens or is connected
/// (`BPF_CGROUP_SOCK_OPS`; its link came with Linux 5.7): a kernel built with CONFIG_CGROUP_BPF=y.
pub(crate) fn has_socket_hook(btf: &Btf<'_>) -> bool {
    let Some(kinds) = btf.type_by_name::<Enum<'_>>("cgroup_bpf_attach_type") else { return false };
    kinds.iter().any(|kind| kind.name.is_some_and(|name| name == "CGROUP_SOCK_OPS"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handmade::{self, Kernel};

    /// What is chosen of a kernel.
    fn chosen(kernel: &Kernel) -> Result<Form, String> {
        let file = handmade::file(&kernel.types());
        let btf = Btf::from_path(file.path()).expect("well-formed");
        Form::of(&btf).map_err(|error| error.to_string())
    }

    #[test]
    fn the_form_is_chosen_by_the_kernels_own_description() {
        assert_eq!(chosen(&Kernel { arguments: 2, ..Kernel::default() }), Ok(Form::Linux6_1));
        assert_eq!(chosen(&Kernel::default()), Ok(Form::Linux6_10));
        // As Linux 7.2 has it: `cwnd_event` is there, too, and tells of other things alone.
        assert_eq!(chosen(&Kernel::default().and("cwnd_event_tx_start")), Ok(Form::Linux7_1));
    }

    #[test]
    fn a_kernel_without_an_operation_is_refused_by_its_name() {
        for name in OPERATIONS {
            let error = chosen(&Kernel::default().without(name)).expect_err(name);
            assert!(error.contains(&format!("{name} is missing")), "{error}");
        }
        let error = chosen(&Kernel::default().without("cwnd_event")).expect_err("no event");
        assert!(error.contains("cwnd_event"), "{error}");
        let error = chosen(&Kernel { arguments: 3, ..Kernel::default() }).expect_err("three");
        assert!(error.contains("cong_control has 3 arguments, not 2 or 4"), "{error}");
    }

    #[test]
    fn what_a_kernel_lacks_is_seen() {
        let has = |struct_ops, links| {
            let kernel = Kernel { struct_ops, links, ..Kernel::default() };
            let file = handmade::file(&kernel.types());
            let btf = Btf::from_path(file.path()).expect("well-formed");
            (has_struct_ops(&btf), Registration::of(&btf), has_arena(&btf))
        };
        assert_eq!(has(true, true), (true, Registration::Link, false));
        assert_eq!(has(true, false), (true, Registration::Map, false), "as Linux 6.1");
        assert_eq!(has(false, false), (false, Registration::Map, false));
    }
}
