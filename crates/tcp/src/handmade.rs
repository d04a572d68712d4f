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

    fn structure(&mut self, name: &str, member: &str, of: u32) {
        let (name, member) = (self.name(name), self.name(member));
        self.add(name, STRUCT, 1, 8, &[member, of, 0]);
    }

    fn bytes(&self) -> Vec<u8> {
        let types = self.types.len() as u32 * 4;
        let header = [24, 0, types, types, self.strings.len() as u32];
        let words = header.iter().chain(&self.types).flat_map(|word| word.to_ne_bytes());
        let magic = 0xeb9f_u16.to_ne_bytes();
        magic.into_iter().chain([1, 0]).chain(words).chain(self.strings.iter().copied()).collect()
    }
}

/// A kernel whose `cong_control` has so many arguments, and which has struct_ops and links for them or not.
pub(crate) fn kernel(arguments: u32, struct_ops: bool, links: bool) -> Vec<u8> {
    let mut b = Builder { types: Vec::new(), count: 0, strings: vec![0] };
    let name = b.name("int");
    let int = b.add(name, INT, 0, 4, &[1 << 24 | 32]);
    let parameters: Vec<u32> = (0..arguments).flat_map(|_| [0, int]).collect();
    let function = b.add(0, FUNC_PROTO, arguments, int, &parameters);
    let pointer = b.add(0, PTR, 0, function, &[]);
    b.structure("tcp_congestion_ops", "cong_control", pointer);
    if struct_ops {
        b.structure("bpf_struct_ops_tcp_congestion_ops", "data", int);
    }
    if links {
        b.structure("bpf_struct_ops_link", "link", int);
    }
    b.bytes()
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
