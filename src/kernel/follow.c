/*
 * Which processes descend from the recorded one. Tracepoints run in the parent, before the child runs its first
 * instruction, so nothing of it is missed. A process leaves the table with its last thread, so that the next one with
 * its id is not taken for it.
 */
#include "kernel/follow.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "kernel/program.h"
#include "kernel/refused.h"
#include "kernel/state.h"

int kernel_offset_of(const struct btf *btf, const char *structure, const char *member, uint32_t *ret)
{
	int id = btf__find_by_name_kind(btf, structure, BTF_KIND_STRUCT);
	const struct btf_type *type = id > 0 ? btf__type_by_id(btf, (uint32_t)id) : NULL;
	const struct btf_member *members = type ? btf_members(type) : NULL;

	for (uint32_t i = 0; type && i < btf_vlen(type); i++) {
		const char *name = btf__name_by_offset(btf, members[i].name_off);
		uint32_t bits = btf_member_bit_offset(type, i);

		if (!name || strcmp(name, member))
			continue;
		if (bits % 8 || bits / 8 > INT16_MAX)
			return -ENOENT;
		*ret = bits / 8;
		return 0;
	}
	return -ENOENT;
}

static struct kymo_error *run_at(struct kymo_kernel *kernel, const struct btf *btf, const char *tracepoint,
				 const struct bpf_insn *insns, int n)
{
	LIBBPF_OPTS(bpf_prog_load_opts, options, .expected_attach_type = BPF_TRACE_RAW_TP);
	kymo_cleanup_close int program = -1;
	int id = btf__find_by_name_kind(btf, tracepoint, BTF_KIND_TYPEDEF), fd;

	if (n < 0)
		return kymo_error_errno(n, "cannot make a BPF program for %s", tracepoint);
	if (id <= 0)
		return kernel_refused(ENOSYS, "tell which processes are made");
	options.attach_btf_id = (uint32_t)id;
	program = bpf_prog_load(BPF_PROG_TYPE_TRACING, "kymo_follow", KERNEL_LICENSE, insns, (size_t)n, &options);
	if (program < 0)
		return kernel_refused(errno, "load BPF programs for tracepoints");
	fd = bpf_raw_tracepoint_open(NULL, program);
	if (fd < 0)
		return kernel_refused(errno, "run BPF programs at tracepoints");
	if (kymo_vec_push(&kernel->fds, fd))
		return NULL;
	close(fd);
	return &kymo_error_no_memory;
}

struct kymo_error *kernel_follow(struct kymo_kernel *kernel)
{
	struct bpf_insn insns[KERNEL_PROGRAM_MAX];
	struct kernel_task_layout layout;
	struct kymo_error *error;
	struct btf *btf = btf__load_vmlinux_btf();
	int n;

	if (!btf || kernel_offset_of(btf, "task_struct", "tgid", &layout.tgid) ||
	    kernel_offset_of(btf, "task_struct", "signal", &layout.signal) ||
	    kernel_offset_of(btf, "signal_struct", "live", &layout.live)) {
		btf__free(btf);
		return kymo_error_create(KYMO_ERROR_NOT_FOUND,
					 "this kernel does not describe its structures (/sys/kernel/btf/vmlinux), so "
					 "descendants cannot be followed through it; --all records every process");
	}
	/* First, and for longest: who is taken in has to be seen to go. */
	n = kernel_exit_make(kernel->processes_fd, &layout, insns);
	error = run_at(kernel, btf, "btf_trace_sched_process_exit", insns, n);
	if (!error) {
		n = kernel_fork_make(kernel->processes_fd, &layout, insns);
		error = run_at(kernel, btf, "btf_trace_sched_process_fork", insns, n);
	}
	btf__free(btf);
	return error;
}
