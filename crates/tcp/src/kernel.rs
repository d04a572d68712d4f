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

    /// Name of the struct_ops map of the eBPF object that fits.
    pub(crate) fn map_name(self) -> &'static str {
        match self {
            Self::Two => "copa_old",
            Self::Four => "copa",
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

/// Whether struct_ops programs can be registered by a link, which can be pinned (Linux 6.4).
pub(crate) fn has_struct_ops_link(btf: &Btf<'_>) -> bool {
    btf.type_by_name::<Struct<'_>>("bpf_struct_ops_link").is_some()
}

/// Whether there is memory that programs and user space share by pointers (Linux 6.9). Not needed.
pub(crate) fn has_arena(btf: &Btf<'_>) -> bool {
    btf.type_by_name::<Struct<'_>>("bpf_arena").is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variant_is_chosen_by_the_number_of_arguments() {
        assert_eq!(CongControl::from_arguments(2).map(CongControl::map_name), Some("copa_old"));
        assert_eq!(CongControl::from_arguments(4).map(CongControl::map_name), Some("copa"));
        assert_eq!(CongControl::from_arguments(3), None);
        assert_eq!(CongControl::Two.other(), CongControl::Four);
    }
}
