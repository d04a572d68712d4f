//! What this kernel has, by its own description of its types (BTF).

use libbpf_rs::btf::types::{FuncProto, Ptr, Struct};
use libbpf_rs::btf::{Btf, ReferencesType as _};

/// The arguments that the kernel hands to `cong_control`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CongControl {
    /// Until Linux 6.9: socket and rate sample.
    Two,
    /// Since Linux 6.10: socket, acknowledgement number, flags and rate sample.
    Four,
}

impl CongControl {
    /// By the number of arguments; `None` when no known kernel has so many.
    pub(crate) fn from_arguments(count: usize) -> Option<Self> {
        match count {
            2 => Some(Self::Two),
            4 => Some(Self::Four),
            _ => None,
        }
    }

    /// The one that does not fit.
    pub(crate) fn other(self) -> Self {
        match self {
            Self::Two => Self::Four,
            Self::Four => Self::Two,
        }
    }

    /// What the kernel's types say; `None` when they do not know such a function.
    pub(crate) fn of(btf: &Btf<'_>) -> Option<Self> {
        let ops = btf.type_by_name::<Struct<'_>>("tcp_congestion_ops")?;
        let member = ops.iter().find(|m| m.name.is_some_and(|n| n == "cong_control"))?;
        let pointer = btf.type_by_id::<Ptr<'_>>(member.ty)?;
        let function = FuncProto::try_from(pointer.referenced_type()).ok()?;
        Self::from_arguments(function.iter().count())
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

/// Whether a program may walk over TCP sockets (iter/tcp, Linux 5.9, with /proc). Giving sockets an algorithm there came
/// with Linux 5.16, before links for struct_ops.
pub(crate) fn has_socket_walk(btf: &Btf<'_>) -> bool {
    btf.type_by_name::<Struct<'_>>("bpf_iter__tcp").is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handmade;

    /// What is chosen of a kernel whose `cong_control` has so many arguments.
    fn chosen(arguments: u32) -> Option<CongControl> {
        let file = handmade::file(&handmade::kernel(arguments, true, true));
        let btf = Btf::from_path(file.path()).expect("well-formed");
        CongControl::of(&btf)
    }

    #[test]
    fn the_variant_is_chosen_by_the_kernels_own_description() {
        assert_eq!(chosen(2), Some(CongControl::Two), "Linux 6.4 to 6.9");
        assert_eq!(chosen(4), Some(CongControl::Four), "since 6.10");
        assert_eq!(chosen(3), None);
        assert_eq!(CongControl::Two.other(), CongControl::Four);
    }

    #[test]
    fn what_a_kernel_lacks_is_seen() {
        let has = |struct_ops, links| {
            let file = handmade::file(&handmade::kernel(2, struct_ops, links));
            let btf = Btf::from_path(file.path()).expect("well-formed");
            (has_struct_ops(&btf), Registration::of(&btf), has_arena(&btf))
        };
        assert_eq!(has(true, true), (true, Registration::Link, false));
        assert_eq!(has(true, false), (true, Registration::Map, false), "as Linux 6.1");
        assert_eq!(has(false, false), (false, Registration::Map, false));
    }
}
