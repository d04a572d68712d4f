//! The system calls that the steerer may make. Of the others some end the process at once, since
//! nothing that it does leads there: another program, another namespace, another process's memory. The
//! rest fails with EPERM, so that a library falls back to what is allowed.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter_all_threads,
};

use crate::error::Error;

/// Files, memory, threads, time and sockets.
const ALLOWED: &[libc::c_long] = &[
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_readv,
    libc::SYS_writev,
    libc::SYS_pread64,
    libc::SYS_pwrite64,
    libc::SYS_close,
    libc::SYS_lseek,
    libc::SYS_fstat,
    libc::SYS_newfstatat,
    libc::SYS_statx,
    libc::SYS_statfs,
    libc::SYS_fstatfs,
    libc::SYS_openat,
    libc::SYS_getdents64,
    libc::SYS_readlinkat,
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    libc::SYS_mkdirat,
    libc::SYS_unlinkat,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_ftruncate,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    libc::SYS_fcntl,
    libc::SYS_flock,
    libc::SYS_ioctl,
    libc::SYS_dup,
    libc::SYS_dup3,
    libc::SYS_pipe2,
    libc::SYS_getcwd,
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_mprotect,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_brk,
    libc::SYS_membarrier,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_restart_syscall,
    libc::SYS_tgkill,
    libc::SYS_gettid,
    libc::SYS_getpid,
    libc::SYS_getppid,
    libc::SYS_getuid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getegid,
    // Refused below in such a way that the C library uses `clone`.
    libc::SYS_clone3,
    libc::SYS_futex,
    libc::SYS_set_robust_list,
    libc::SYS_rseq,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    libc::SYS_prctl,
    libc::SYS_prlimit64,
    libc::SYS_getrusage,
    libc::SYS_getrandom,
    libc::SYS_uname,
    libc::SYS_sysinfo,
    libc::SYS_clock_gettime,
    libc::SYS_clock_getres,
    libc::SYS_clock_nanosleep,
    libc::SYS_nanosleep,
    libc::SYS_gettimeofday,
    libc::SYS_ppoll,
    libc::SYS_pselect6,
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_eventfd2,
    libc::SYS_socket,
    libc::SYS_socketpair,
    libc::SYS_connect,
    libc::SYS_bind,
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_getsockname,
    libc::SYS_getpeername,
    libc::SYS_getsockopt,
    libc::SYS_setsockopt,
    libc::SYS_sendto,
    libc::SYS_recvfrom,
    libc::SYS_sendmsg,
    libc::SYS_recvmsg,
    libc::SYS_sendmmsg,
    libc::SYS_recvmmsg,
    libc::SYS_shutdown,
];

/// The same by the names that this architecture has had for longer.
#[cfg(target_arch = "x86_64")]
const ALLOWED_HERE: &[libc::c_long] = &[
    libc::SYS_open,
    libc::SYS_stat,
    libc::SYS_lstat,
    libc::SYS_access,
    libc::SYS_readlink,
    libc::SYS_mkdir,
    libc::SYS_rmdir,
    libc::SYS_unlink,
    libc::SYS_rename,
    libc::SYS_chmod,
    libc::SYS_poll,
    libc::SYS_select,
    libc::SYS_epoll_wait,
    libc::SYS_dup2,
    libc::SYS_pipe,
    libc::SYS_time,
    libc::SYS_arch_prctl,
];
#[cfg(not(target_arch = "x86_64"))]
const ALLOWED_HERE: &[libc::c_long] = &[];

/// Nothing that the steerer does leads here.
const DEADLY: &[libc::c_long] = &[
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_setns,
    libc::SYS_unshare,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_by_handle_at,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_reboot,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_add_key,
    libc::SYS_keyctl,
    libc::SYS_request_key,
];

/// What `bpf` may do with descriptors that the loader has handed over: read, write, remove and list
/// entries of maps, describe them, and begin a walk (`enum bpf_cmd` of `linux/bpf.h`).
const BPF_COMMANDS: [u64; 6] = [1, 2, 3, 4, 15, 33];

/// Confines all threads of this process, for good.
pub(crate) fn confine() -> Result<(), Error> {
    for program in programs().map_err(|e| refused(&e))? {
        apply_filter_all_threads(&program).map_err(|e| refused(&e))?;
    }
    Ok(())
}

fn refused(why: &dyn std::fmt::Display) -> Error {
    Error::system("confine the steerer to the system calls that it needs (seccomp)", why)
}

/// Of several answers the kernel takes the strictest.
fn programs() -> Result<[BpfProgram; 3], seccompiler::BackendError> {
    let all = |calls: &[libc::c_long]| -> BTreeMap<i64, Vec<SeccompRule>> {
        calls.iter().map(|call| (*call, Vec::new())).collect()
    };
    let mut allowed = all(ALLOWED);
    allowed.extend(all(ALLOWED_HERE));
    let first = |operator, value| {
        let equals = SeccompCondition::new(0, SeccompCmpArgLen::Dword, operator, value)?;
        SeccompRule::new(vec![equals])
    };
    let commands = BPF_COMMANDS.into_iter().map(|command| first(SeccompCmpOp::Eq, command));
    allowed.insert(libc::SYS_bpf, commands.collect::<Result<_, _>>()?);
    // Threads, and no processes or namespaces.
    let thread = libc::CLONE_THREAD as u64;
    let thread = first(SeccompCmpOp::MaskedEq(thread), thread)?;
    allowed.insert(libc::SYS_clone, vec![thread]);
    let (allow, errno) = (SeccompAction::Allow, |errno: i32| SeccompAction::Errno(errno as u32));
    let arch = std::env::consts::ARCH.try_into()?;
    let program = |rules, others, those| {
        SeccompFilter::new(rules, others, those, arch).and_then(BpfProgram::try_from)
    };
    Ok([
        program(all(DEADLY), allow.clone(), SeccompAction::KillProcess)?,
        program(all(&[libc::SYS_clone3]), allow.clone(), errno(libc::ENOSYS))?,
        // The last, since `seccomp` is none of those that are allowed.
        program(allowed, errno(libc::EPERM), allow)?,
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_call_is_both_allowed_and_deadly() {
        let both = |call: &libc::c_long| DEADLY.contains(call);
        assert!(!ALLOWED.iter().chain(ALLOWED_HERE).any(both));
        assert!(programs().unwrap().iter().all(|program| !program.is_empty()));
    }
}
