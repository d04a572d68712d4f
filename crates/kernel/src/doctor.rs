//! What this machine supports, what is missing, and what to do about it.

use std::fmt;
use std::path::{Path, PathBuf};

use libbpf_rs::btf::Btf;

use crate::error::Error;
use crate::install::try_out;
use crate::kernel::{self, Form, Registration};
use crate::pins::is_bpf_fs;

/// How a finding stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// As it should be.
    Good,
    /// It works without.
    Note,
    /// The datapath cannot run.
    Bad,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What was looked at.
    pub subject: &'static str,
    /// How it stands.
    pub health: Health,
    /// What was found.
    pub found: String,
    /// What to do; empty when nothing is to be done.
    pub remedy: &'static str,
}

impl Finding {
    /// Whether a kernel that has all that is needed refused a program: an error of Trimtab's, and
    /// nothing that is missing. A container that forbids eBPF is something missing.
    pub fn is_refusal(&self) -> bool {
        self.subject == TRIAL && self.health == Health::Bad
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = match self.health {
            Health::Good => "ok",
            Health::Note => "--",
            Health::Bad => "NO",
        };
        write!(f, "{mark}  {}: {}", self.subject, self.found)?;
        if self.remedy.is_empty() { Ok(()) } else { write!(f, "\n      {}", self.remedy) }
    }
}

/// Looks at a machine.
#[derive(Clone, Debug)]
pub struct Doctor {
    root: PathBuf,
}

impl Default for Doctor {
    fn default() -> Self {
        Self { root: PathBuf::from("/") }
    }
}

impl Doctor {
    /// Looks at a machine whose files are under `root`: a test's.
    pub fn at(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    /// Every finding, in the order in which to mend them.
    pub fn examine(&self) -> Vec<Finding> {
        let mut findings = vec![self.release()];
        findings.extend(self.types());
        findings.push(self.jit());
        findings.push(self.rights());
        findings.push(self.file_system());
        findings.push(self.registered());
        findings.push(self.marks());
        if self.root == Path::new("/") && findings.iter().all(|f| f.health != Health::Bad) {
            findings.push(trial(try_out()));
        }
        findings
    }

    /// Whether the datapath can run.
    pub fn is_well(&self) -> bool {
        self.examine().iter().all(|finding| finding.health != Health::Bad)
    }

    fn read(&self, path: &str) -> Option<String> {
        std::fs::read_to_string(self.root.join(path)).ok().map(|text| text.trim().to_owned())
    }

    fn release(&self) -> Finding {
        let release = self.read("proc/sys/kernel/osrelease");
        let version = release.as_deref().and_then(version);
        let (health, remedy) = match version {
            Some(version) if version < OLDEST => (Health::Bad, "boot Linux 6.1 or later"),
            Some(_) => (Health::Good, ""),
            None => (Health::Note, "the other lines say what it has"),
        };
        let found =
            release.map_or_else(|| "unknown".to_owned(), |release| format!("Linux {release}"));
        Finding { subject: "kernel", health, found, remedy }
    }

    /// What the kernel's types say.
    fn types(&self) -> Vec<Finding> {
        let finding = |subject, good: bool, yes: &str, no: &str, remedy| Finding {
            subject,
            health: if good { Health::Good } else { Health::Bad },
            found: if good { yes.to_owned() } else { no.to_owned() },
            remedy: if good { "" } else { remedy },
        };
        let path = self.root.join("sys/kernel/btf/vmlinux");
        let btf = if path.exists() { Btf::from_path(&path).ok() } else { None };
        let types = finding(
            "description of its types (BTF)",
            btf.is_some(),
            "there",
            "missing: /sys/kernel/btf/vmlinux",
            "boot a kernel built with CONFIG_DEBUG_INFO_BTF=y (those of Debian 12, Ubuntu 22.04 and later are)",
        );
        let Some(btf) = btf else { return vec![types] };
        let form = Form::of(&btf);
        let arena = kernel::has_arena(&btf);
        let walk = kernel::has_socket_walk(&btf);
        let hook = self.hook(&btf);
        vec![
            types,
            finding(
                "congestion control in eBPF (struct_ops)",
                kernel::has_struct_ops(&btf),
                "there",
                "missing",
                "boot Linux 6.1 or later, built with CONFIG_BPF_SYSCALL=y and CONFIG_BPF_JIT=y",
            ),
            Finding {
                subject: "registration that outlives the agent",
                health: Health::Good,
                found: match Registration::of(&btf) {
                    Registration::Link => "by links (since Linux 6.4)",
                    Registration::Map => "by maps (before Linux 6.4)",
                }
                .to_owned(),
                remedy: "",
            },
            Finding {
                subject: "form of the operations",
                health: if form.is_ok() { Health::Good } else { Health::Bad },
                found: match &form {
                    Ok(Form::Linux6_1) => {
                        "cong_control with two arguments (before Linux 6.10)".to_owned()
                    }
                    Ok(Form::Linux6_10) => {
                        "cong_control with four arguments (Linux 6.10 to 7.0)".to_owned()
                    }
                    Ok(Form::Linux7_1) => {
                        "with cwnd_event_tx_start, for restarts after an idle time (since Linux 7.1)"
                            .to_owned()
                    }
                    Err(Error::Operation { what }) => what.clone(),
                    Err(_) => "missing".to_owned(),
                },
                remedy: if form.is_ok() {
                    ""
                } else {
                    "boot a Linux from 6.1 to 7.3, or tell us which kernel this is"
                },
            },
            Finding {
                subject: "giving sockets an algorithm (iter/tcp)",
                health: if walk { Health::Good } else { Health::Note },
                found: if walk { "there" } else { "missing" }.to_owned(),
                remedy: if walk {
                    ""
                } else {
                    "rules with assign = true do nothing; boot a kernel built with CONFIG_BPF_SYSCALL=y and \
                     CONFIG_PROC_FS=y, or pick the algorithm by default_algorithm or in the program"
                },
            },
            hook,
            Finding {
                subject: "memory shared by pointers (arena)",
                health: if arena { Health::Good } else { Health::Note },
                found: if arena { "there; not needed" } else { "missing; not needed" }.to_owned(),
                remedy: "",
            },
        ]
    }

    /// Whether sockets can be given an algorithm as they begin.
    fn hook(&self, btf: &Btf<'_>) -> Finding {
        let mounts = self.read("proc/self/mounts").unwrap_or_default();
        let is_mounted = mounts.lines().any(|line| line.split(' ').nth(2) == Some("cgroup2"));
        let (health, found, remedy) = match (kernel::has_socket_hook(btf), is_mounted) {
            (true, true) => (Health::Good, "there", ""),
            (true, false) => (
                Health::Note,
                "no cgroup file system of the second version is mounted",
                "new sockets get the algorithm of their rule after up to two seconds, and in containers never; mount -t \
                 cgroup2 none /sys/fs/cgroup, or the host's into the agent's container",
            ),
            (false, _) => (
                Health::Note,
                "missing",
                "new sockets get the algorithm of their rule after up to two seconds, and in containers never; boot a \
                 kernel built with CONFIG_CGROUP_BPF=y",
            ),
        };
        let subject = "giving sockets an algorithm as they begin (cgroup sock_ops)";
        Finding { subject, health, found: found.to_owned(), remedy }
    }

    fn jit(&self) -> Finding {
        let on = self.read("proc/sys/net/core/bpf_jit_enable").is_none_or(|value| value != "0");
        Finding {
            subject: "eBPF compiler (JIT)",
            health: if on { Health::Good } else { Health::Bad },
            found: if on { "on" } else { "off" }.to_owned(),
            remedy: if on { "" } else { "sysctl -w net.core.bpf_jit_enable=1" },
        }
    }

    /// The capabilities in force, from `proc/self/status`: CAP_NET_ADMIN 12, CAP_SYS_ADMIN 21,
    /// CAP_PERFMON 38, CAP_BPF 39.
    fn rights(&self) -> Finding {
        let status = self.read("proc/self/status").unwrap_or_default();
        let set = status
            .lines()
            .find_map(|line| line.strip_prefix("CapEff:"))
            .and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok())
            .unwrap_or(0);
        let has = |bit: u32| set >> bit & 1 == 1;
        let all = has(21);
        let missing: Vec<&str> = [(39, "CAP_BPF"), (38, "CAP_PERFMON"), (12, "CAP_NET_ADMIN")]
            .into_iter()
            .filter(|&(bit, _)| !(has(bit) || all && bit != 12))
            .map(|(_, name)| name)
            .collect();
        let good = missing.is_empty();
        Finding {
            subject: "rights of this process",
            health: if good { Health::Good } else { Health::Bad },
            found: if good {
                "enough".to_owned()
            } else {
                format!("without {}", missing.join(", "))
            },
            remedy: if good {
                ""
            } else {
                "run as root, or give the service these with AmbientCapabilities="
            },
        }
    }

    fn file_system(&self) -> Finding {
        let mounted = is_bpf_fs(&self.root.join("sys/fs/bpf"));
        Finding {
            subject: "bpf file system at /sys/fs/bpf",
            health: if mounted { Health::Good } else { Health::Note },
            found: if mounted { "mounted" } else { "not mounted" }.to_owned(),
            remedy: if mounted {
                ""
            } else {
                "the agent mounts it; by hand: mount -t bpf bpf /sys/fs/bpf"
            },
        }
    }

    /// Whether connections negotiate ECN, which BBR does not answer.
    fn marks(&self) -> Finding {
        let value = self.read("proc/sys/net/ipv4/tcp_ecn").unwrap_or_else(|| "unknown".to_owned());
        let off = value == "0";
        Finding {
            subject: "congestion marks (ECN)",
            health: if off { Health::Good } else { Health::Note },
            found: format!("{} (tcp_ecn={value})", if off { "off" } else { "on" }),
            remedy: if off {
                ""
            } else {
                "all of Trimtab's answer marks but trimtab_bbr, which ignores them as Linux's bbr does: where queues \
                 mark (fq_codel, CAKE), choose another algorithm or set sysctl -w net.ipv4.tcp_ecn=0"
            },
        }
    }

    fn registered(&self) -> Finding {
        let path = "proc/sys/net/ipv4/tcp_available_congestion_control";
        let available = self.read(path).unwrap_or_default();
        let ours = available.split_whitespace().any(|name| name.starts_with("trimtab_"));
        Finding {
            subject: "congestion controls of TCP",
            health: if ours { Health::Good } else { Health::Note },
            found: available,
            remedy: if ours { "" } else { "none of Trimtab's: the agent loads it" },
        }
    }
}

/// The oldest kernel that the programs were tried on.
const OLDEST: (u32, u32) = (6, 1);

/// The first two numbers of a release as `6.18.44-generic`.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// What the last finding is of. It is made only where nothing else is bad.
const TRIAL: &str = "trial of the programs";
/// … or this, where the trial was forbidden.
const FORBIDDEN: &str = "permission to load eBPF programs";

/// Whether the kernel takes the programs, asked of the kernel itself.
fn trial(tried: Result<(), Error>) -> Finding {
    let (subject, health, remedy) = match tried {
        Ok(()) => (TRIAL, Health::Good, ""),
        Err(Error::NotAllowed { .. }) => (
            FORBIDDEN,
            Health::Bad,
            "a container or a security module forbids bpf(): allow it there, or run on the host",
        ),
        Err(_) => (TRIAL, Health::Bad, "tell us what the kernel said, and which kernel this is"),
    };
    let found = tried.err().map_or_else(
        || "the kernel takes every program; they are removed again".to_owned(),
        |error| error.to_string(),
    );
    Finding { subject, health, found, remedy }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handmade::{self, Kernel};

    /// How the kernel's answer to the trial is reported: with this error number, and this line.
    fn tried(number: i32, line: &str) -> Finding {
        let error = libbpf_rs::Error::from_raw_os_error(number);
        trial(Err(Error::of_verdict("load the eBPF programs", &error, vec![line.to_owned()])))
    }

    #[test]
    fn a_program_that_the_kernel_refuses_is_no_missing_privilege() {
        // The verifier's numbers: EACCES, EINVAL.
        for number in [13, 22] {
            let finding = tried(number, "R1 type=scalar expected=fp");
            assert!(finding.is_refusal(), "{finding}");
            assert!(finding.found.contains("R1 type=scalar expected=fp"), "{finding}");
            assert!(finding.remedy.starts_with("tell us"), "{finding}");
        }
        // EPERM, as a seccomp filter has it, and EACCES, as SELinux has it.
        let none =
            "Error in bpf_object__probe_loading(): -EACCES. Couldn't load trivial BPF program.";
        for finding in [tried(1, ""), tried(13, none)] {
            assert!(!finding.is_refusal() && finding.health == Health::Bad, "{finding}");
            assert!(finding.remedy.contains("allow it there"), "{finding}");
        }
        assert!(!trial(Ok(())).is_refusal());
    }

    /// The root of a user namespace has every capability there, and may not load a program.
    #[test]
    fn a_container_that_forbids_programs_is_told_so() {
        const INSIDE: &str = "TRIMTAB_TEST_INSIDE";
        const THIS: &str = "doctor::tests::a_container_that_forbids_programs_is_told_so";
        if std::env::var_os(INSIDE).is_some() {
            let findings = Doctor::default().examine();
            let refused = findings.iter().find(|finding| finding.is_refusal());
            assert_eq!(refused, None);
            let bad: Vec<_> = findings.iter().filter(|f| f.health == Health::Bad).collect();
            println!("inside: {bad:?}");
            return;
        }
        let unshare = |program: &std::ffi::OsStr| {
            let mut command = std::process::Command::new("unshare");
            command.arg("--user").arg("--map-root-user").arg(program);
            command
        };
        let may = unshare("true".as_ref()).output().is_ok_and(|output| output.status.success());
        if !may || !Doctor::default().is_well() {
            eprintln!("skipped: there is no user namespace to be had here, or no eBPF outside");
            return;
        }
        let us = std::env::current_exe().unwrap();
        let mut inside = unshare(us.as_os_str());
        let inside = inside.args(["--exact", THIS, "--nocapture"]).env(INSIDE, "1");
        let output = inside.output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains(FORBIDDEN), "{output:?}");
    }

    /// 2, the default of Linux, accepts ECN where a client asks for it.
    #[test]
    fn ecn_that_bbr_does_not_answer_is_told() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("proc/sys/net/ipv4");
        std::fs::create_dir_all(&folder).unwrap();
        let says = |value: &str| {
            std::fs::write(folder.join("tcp_ecn"), value).unwrap();
            Doctor::at(root.path()).marks().to_string()
        };
        assert_eq!(says("0\n"), "ok  congestion marks (ECN): off (tcp_ecn=0)");
        let said = says("2\n");
        assert!(said.starts_with("--  congestion marks (ECN): on (tcp_ecn=2)"), "{said}");
        assert!(said.contains("trimtab_bbr") && said.contains("tcp_ecn=0"), "{said}");
    }

    /// The findings on the types of a machine with this description, as they are printed.
    fn types(description: Option<Kernel>) -> String {
        let root = tempfile::tempdir().unwrap();
        if let Some(kernel) = description {
            handmade::install(root.path(), &kernel.types());
        }
        let findings = Doctor::at(root.path()).types();
        findings.iter().map(|finding| format!("{finding}\n")).collect()
    }

    #[test]
    fn a_kernel_without_a_description_is_told_what_to_do() {
        let said = types(None);
        assert!(said.starts_with("NO  description of its types (BTF): missing"), "{said}");
        assert!(said.contains("CONFIG_DEBUG_INFO_BTF=y"), "{said}");
        assert!(!Doctor::at(tempfile::tempdir().unwrap().path()).is_well());
    }

    #[test]
    fn a_kernel_that_is_too_old_is_not_good() {
        let health = |release: &str| {
            let root = tempfile::tempdir().unwrap();
            let folder = root.path().join("proc/sys/kernel");
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join("osrelease"), format!("{release}\n")).unwrap();
            Doctor::at(root.path()).release().health
        };
        assert_eq!(health("5.15.0-139-generic"), Health::Bad);
        assert_eq!(health("6.0.19"), Health::Bad);
        assert_eq!(health("6.1.0-47-amd64"), Health::Good);
        assert_eq!(health("6.10.3"), Health::Good);
        assert_eq!(health("10.0"), Health::Good);
        assert_eq!(health("a kernel"), Health::Note);
    }

    #[test]
    fn a_kernel_without_struct_ops_is_told_what_to_do() {
        let said = types(Some(Kernel { struct_ops: false, ..Kernel::default() }));
        assert!(said.contains("NO  congestion control in eBPF (struct_ops): missing"), "{said}");
        assert!(said.contains("boot Linux 6.1 or later"), "{said}");
        let said = types(Some(Kernel { links: false, ..Kernel::default() }));
        assert!(said.contains("ok  congestion control in eBPF"), "{said}");
        assert!(said.contains("ok  registration that outlives the agent: by maps"), "{said}");
    }

    #[test]
    fn a_kernel_without_a_walk_over_sockets_is_told_of_what_does_without() {
        let said = types(Some(Kernel::default()));
        assert!(said.contains("--  giving sockets an algorithm (iter/tcp): missing\n"), "{said}");
        assert!(said.contains("pick the algorithm by default_algorithm"), "{said}");
    }

    #[test]
    fn a_kernel_without_the_hook_of_cgroups_is_told_of_what_it_costs() {
        let said = types(Some(Kernel::default()));
        let line = said.lines().position(|line| line.contains("(cgroup sock_ops)")).unwrap();
        let lines: Vec<_> = said.lines().skip(line).take(2).collect();
        assert!(lines[0].starts_with("--") && lines[0].ends_with("missing"), "{said}");
        assert!(lines[1].contains("in containers never"), "{said}");
    }

    #[test]
    fn the_forms_of_the_operations_are_told_apart() {
        let form = |kernel: Kernel| {
            let said = types(Some(kernel));
            said.lines().find(|line| line.contains("form of")).unwrap().to_owned()
        };
        let with = |arguments| Kernel { arguments, ..Kernel::default() };
        assert_eq!(
            form(with(2)),
            "ok  form of the operations: cong_control with two arguments (before Linux 6.10)"
        );
        assert_eq!(
            form(with(4)),
            "ok  form of the operations: cong_control with four arguments (Linux 6.10 to 7.0)"
        );
        assert_eq!(
            form(with(4).and("cwnd_event_tx_start")),
            "ok  form of the operations: with cwnd_event_tx_start, for restarts after an idle time (since Linux 7.1)"
        );
        assert!(form(with(5)).starts_with("NO  form of the operations: cong_control has 5"));
        let missing = form(Kernel::default().without("pkts_acked"));
        assert_eq!(missing, "NO  form of the operations: pkts_acked is missing");
    }
}
