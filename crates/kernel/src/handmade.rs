//! Descriptions of a kernel's types (BTF) made by hand: those of kernels that this machine does not run.

use std::io::Write as _;
use std::path::Path;

use tempfile::NamedTempFile;

/// Kinds, from the kernel's documentation of the format.
const INT: u32 = 1;
const PTR: u32 = 2;
const STRUCT: u32 = 4;
const FUNC_PROTO: u32 = 13;

/// Types and their names.
struct Builder {
    types: Vec<u32>,
    count: u32,
    strings: Vec<u8>,
}

impl Builder {
    fn name(&mut self, name: &str) -> u32 {
        let at = self.strings.len() as u32;
        self.strings.extend_from_slice(name.as_bytes());
        self.strings.push(0);
        at
    }

    /// Adds a type; gives its number.
    fn add(&mut self, name: u32, kind: u32, members: u32, size_or_type: u32, rest: &[u32]) -> u32 {
        self.types.extend([name, kind << 24 | members, size_or_type]);
        self.types.extend(rest);
        self.count += 1;
        self.count
    }

    fn structure(&mut self, name: &str, members: &[(&str, u32)]) {
        let name = self.name(name);
        let bits = |place: usize| place as u32 * 64;
        let members: Vec<u32> = members
            .iter()
            .enumerate()
            .flat_map(|(place, (member, of))| [self.name(member), *of, bits(place)])
            .collect();
        let count = members.len() as u32 / 3;
        self.add(name, STRUCT, count, count * 8, &members);
    }

    fn bytes(&self) -> Vec<u8> {
        let types = self.types.len() as u32 * 4;
        let header = [24, 0, types, types, self.strings.len() as u32];
        let words = header.iter().chain(&self.types).flat_map(|word| word.to_ne_bytes());
        let magic = 0xeb9f_u16.to_ne_bytes();
        magic.into_iter().chain([1, 0]).chain(words).chain(self.strings.iter().copied()).collect()
    }
}

/// What a kernel has.
pub(crate) struct Kernel {
    /// Of `cong_control`.
    pub(crate) arguments: u32,
    /// The other operations of a congestion control.
    pub(crate) operations: Vec<&'static str>,
    pub(crate) struct_ops: bool,
    /// Links for them.
    pub(crate) links: bool,
}

impl Default for Kernel {
    /// Linux 6.10.
    fn default() -> Self {
        let operations = vec![
            "ssthresh",
            "cong_avoid",
            "set_state",
            "cwnd_event",
            "pkts_acked",
            "cong_control",
            "undo_cwnd",
            "init",
            "release",
        ];
        Self { arguments: 4, operations, struct_ops: true, links: true }
    }
}

impl Kernel {
    /// With an operation more.
    pub(crate) fn and(mut self, operation: &'static str) -> Self {
        self.operations.push(operation);
        self
    }

    /// With one less.
    pub(crate) fn without(mut self, operation: &str) -> Self {
        self.operations.retain(|one| *one != operation);
        self
    }

    pub(crate) fn types(&self) -> Vec<u8> {
        let mut b = Builder { types: Vec::new(), count: 0, strings: vec![0] };
        let name = b.name("int");
        let int = b.add(name, INT, 0, 4, &[1 << 24 | 32]);
        let mut pointer = |arguments: u32| {
            let parameters: Vec<u32> = (0..arguments).flat_map(|_| [0, int]).collect();
            let function = b.add(0, FUNC_PROTO, arguments, int, &parameters);
            b.add(0, PTR, 0, function, &[])
        };
        let (any, control) = (pointer(1), pointer(self.arguments));
        let of = |name: &str| if name == "cong_control" { control } else { any };
        let members: Vec<_> = self.operations.iter().map(|name| (*name, of(name))).collect();
        b.structure("tcp_congestion_ops", &members);
        if self.struct_ops {
            b.structure("bpf_struct_ops_tcp_congestion_ops", &[("data", int)]);
        }
        if self.links {
            b.structure("bpf_struct_ops_link", &[("link", int)]);
        }
        b.bytes()
    }
}

/// The description in a file.
pub(crate) fn file(bytes: &[u8]) -> NamedTempFile {
    let mut file = NamedTempFile::new().expect("a temporary file");
    file.write_all(bytes).expect("room for it");
    file
}

/// Puts the description where a kernel has its own, below `root`.
pub(crate) fn install(root: &Path, bytes: &[u8]) {
    let folder = root.join("sys/kernel/btf");
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join("vmlinux"), bytes).expect("room for it");
}
