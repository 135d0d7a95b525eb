/*
 * Which processes descend from the recorded one. Tracepoints run in the parent, before the child runs its first
 * instruction, so nothing of it is missed. A process leaves the table when its id is given to another one.
 */
#include "kernel/follow.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <unistd.h>

#include "kernel/follow_object.h"
#include "kernel/refused.h"
#include "kernel/state.h"

/* The link of `program` to its tracepoint holds what it needs, without the object that it was loaded from. */
static struct kymo_error *run_program(struct kymo_kernel *kernel, const struct bpf_object *object, const char *program)
{
	int fd = bpf_raw_tracepoint_open(NULL, bpf_program__fd(bpf_object__find_program_by_name(object, program)));

	if (fd < 0)
		return kernel_refused(errno, "run BPF programs at tracepoints");
	if (kymo_vec_push(&kernel->fds, fd))
		return NULL;
	close(fd);
	return &kymo_error_no_memory;
}

static struct kymo_error *load_and_run(struct kymo_kernel *kernel, struct bpf_object *object)
{
	struct bpf_map *processes = bpf_object__find_map_by_name(object, ".bss.processes");
	struct kymo_error *error;
	int err;

	if (!processes)
		return kymo_error_create(KYMO_ERROR_FAILED, "the BPF programs that follow processes lack their table");
	err = bpf_map__reuse_fd(processes, kernel->processes_fd);
	if (!err)
		err = bpf_object__load(object);
	if (err)
		return kernel_refused(-err, "load BPF programs for tracepoints");
	/* First, and for longest: the end of each process that is added must be seen. */
	error = run_program(kernel, object, "follow_exit");
	return error ? error : run_program(kernel, object, "follow_fork");
}

struct kymo_error *kernel_follow(struct kymo_kernel *kernel)
{
	struct kymo_error *error;
	struct bpf_object *object;

	if (access("/sys/kernel/btf/vmlinux", R_OK))
		return kymo_error_create(KYMO_ERROR_NOT_FOUND,
					 "this kernel does not describe its structures (/sys/kernel/btf/vmlinux), so "
					 "descendants cannot be followed through it; --all records every process");
	object = bpf_object__open_mem(follow_object, sizeof(follow_object), NULL);
	if (!object)
		return kymo_error_errno(errno, "cannot read the BPF programs that follow processes");
	error = load_and_run(kernel, object);
	bpf_object__close(object);
	return error;
}
