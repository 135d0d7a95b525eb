/*
 * Programs to sites: by one link for many (BPF_TRACE_UPROBE_MULTI), or by one perf event for each where the kernel has
 * no such links.
 *
 * An event's id and the address are the cookie of its site, so that one program serves all sites with the same
 * arguments.
 */
#include "kernel/attach.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/membarrier.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "kernel/program.h"
#include "kernel/refused.h"
#include "kernel/state.h"

/* From linux/bpf.h of Linux 6.6, which is newer than the headers that kymo is built with. */
#define TRACE_UPROBE_MULTI 48
#define UPROBE_MULTI_RETURN 1u

#define GRACE_NS 20000000

struct multi_attr {
	uint32_t prog_fd, target_fd, attach_type, flags;
	uint64_t path;
	uint64_t offsets;
	uint64_t semaphores;
	uint64_t cookies;
	uint32_t n;
	uint32_t multi_flags;
	uint32_t pid;
	uint32_t zero;
};

static int link_multi(const struct multi_attr *attr)
{
	int fd = (int)syscall(SYS_bpf, BPF_LINK_CREATE, attr, sizeof(*attr));

	return fd < 0 ? -errno : fd;
}

/*
 * Kernels have these links from 6.6, but until 6.10 those of a process served its first thread only. They can be told
 * apart by what they say to a file that can't be probed and an impossible pid: fixed ones look at the pid first.
 */
bool kernel_has_multi(void)
{
	const struct bpf_insn insns[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .imm = 0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	LIBBPF_OPTS(bpf_prog_load_opts, options, .expected_attach_type = (enum bpf_attach_type)TRACE_UPROBE_MULTI);
	uint64_t offset = 0;
	struct multi_attr attr = {
		.attach_type = TRACE_UPROBE_MULTI,
		.path = (uint64_t)(uintptr_t) "/",
		.offsets = (uint64_t)(uintptr_t)&offset,
		.n = 1,
	};
	int program =
		bpf_prog_load(BPF_PROG_TYPE_KPROBE, "kymo_test", KERNEL_LICENSE, insns, kymo_countof(insns), &options);
	bool has, is_fixed;

	if (program < 0)
		return false;
	attr.prog_fd = (uint32_t)program;
	has = link_multi(&attr) == -EBADF;
	attr.pid = (uint32_t)-1;
	is_fixed = link_multi(&attr) == -EINVAL;
	close(program);
	return has && is_fixed;
}

/* ---- one program ----------------------------------------------------------------------------- */

static struct kymo_error *load_program(struct kymo_kernel *kernel, const struct kymo_kernel_probe *probe, int *ret)
{
	LIBBPF_OPTS(bpf_prog_load_opts, options);
	const struct kernel_program program = {
		.rings = kernel->rings_fd,
		.state = kernel->state_fd,
		.gate = kernel->gate_fd,
		.processes = kernel->processes_fd,
		.first_cpu = kernel->rings[0].cpu,
		.ids = kernel->ids,
		.names = kernel->options.names,
		.args = probe->args,
		.n_args = probe->n_args,
		.filter = probe->filter,
	};
	kymo_cleanup_free struct bpf_insn *insns = calloc(KERNEL_PROGRAM_MAX, sizeof(*insns));
	int n = insns ? kernel_program_make(&program, insns) : -ENOMEM, fd;

	if (n == -E2BIG)
		return kymo_error_create(KYMO_ERROR_USAGE,
					 "its strings take more than the %d bytes that the kernel's programs have for "
					 "them: write str(x, 64) for shorter ones",
					 KYMO_KERNEL_STRINGS_MAX);
	if (n < 0)
		return kymo_error_errno(n, "cannot make a BPF program of these arguments");
	if (kernel->has_multi)
		options.expected_attach_type = (enum bpf_attach_type)TRACE_UPROBE_MULTI;
	fd = bpf_prog_load(BPF_PROG_TYPE_KPROBE, "kymo_probe", KERNEL_LICENSE, insns, (size_t)n, &options);
	if (fd < 0 && errno == E2BIG)
		return kymo_error_create(KYMO_ERROR_USAGE,
					 "its expressions have more ways through them than the kernel's "
					 "verifier follows: write simpler ones");
	if (fd < 0)
		return kernel_refused(errno, "load BPF programs");
	*ret = fd;
	return NULL;
}

/* Remember how samples of the sites become records, before the first can come. */
static struct kymo_error *add_shape(struct kymo_kernel *kernel, const struct kymo_kernel_probe *probe,
				    const struct kymo_kernel_site *sites, size_t n)
{
	struct kernel_shape shape = { .n_args = (uint8_t)probe->n_args, .has_faults = probe->has_faults };

	for (size_t i = 0; i < probe->n_args; i++) {
		shape.types[i] = probe->args[i].type;
		shape.limits[i] = probe->args[i].limit;
	}
	if (!kymo_vec_push(&kernel->shapes, shape))
		return &kymo_error_no_memory;
	for (size_t i = 0; i < n; i++) {
		while (kernel->shape_of.n <= sites[i].id)
			if (!kymo_vec_push(&kernel->shape_of, 0))
				return &kymo_error_no_memory;
		kernel->shape_of.items[sites[i].id] = (uint32_t)kernel->shapes.n;
	}
	return NULL;
}

static uint64_t cookie_of(const struct kymo_kernel_site *site)
{
	return site->id | site->vaddr << KYMO_EVENT_ID_BITS;
}

static struct kymo_error *keep_link(struct kymo_kernel *kernel, int fd)
{
	if (kymo_vec_push(&kernel->fds, fd))
		return NULL;
	close(fd);
	return &kymo_error_no_memory;
}

/* ---- one link for many ----------------------------------------------------------------------- */

/* What does not say anything about a single site. */
static bool is_general(int err)
{
	return err == -EPERM || err == -EACCES || err == -ENOMEM || err == -ESRCH || err == -EMFILE || err == -ENFILE ||
	       err == -EINTR;
}

/* The kernel takes all sites or none, and does not tell which one it does not like: halves are tried then. */
static struct kymo_error *attach_multi(struct kymo_kernel *kernel, const struct kymo_kernel_probe *probe, int program,
				       struct kymo_kernel_site *sites, size_t n)
{
	kymo_cleanup_free uint64_t *offsets = calloc(2 * n, sizeof(*offsets));
	struct kymo_error *error;
	struct multi_attr attr;
	char path[64];
	int fd;

	if (!offsets)
		return &kymo_error_no_memory;
	for (size_t i = 0; i < n; i++) {
		offsets[i] = sites[i].offset;
		offsets[n + i] = cookie_of(&sites[i]);
	}
	snprintf(path, sizeof(path), "/proc/self/fd/%d", probe->file);
	attr = (struct multi_attr){
		.prog_fd = (uint32_t)program,
		.attach_type = TRACE_UPROBE_MULTI,
		.path = (uint64_t)(uintptr_t)path,
		.offsets = (uint64_t)(uintptr_t)offsets,
		.cookies = (uint64_t)(uintptr_t)(offsets + n),
		.n = (uint32_t)n,
		.multi_flags = probe->is_return ? UPROBE_MULTI_RETURN : 0,
		.pid = (uint32_t)kernel->attach_pid,
	};
	do {
		fd = link_multi(&attr);
	} while (fd == -EINTR);
	if (fd >= 0)
		return keep_link(kernel, fd);
	if (is_general(fd))
		return kernel_refused(fd, "set uprobes");
	if (n == 1) {
		sites[0].err = fd;
		return NULL;
	}
	error = attach_multi(kernel, probe, program, sites, n / 2);
	return error ? error : attach_multi(kernel, probe, program, sites + n / 2, n - n / 2);
}

/* ---- one perf event for each ----------------------------------------------------------------- */

static struct kymo_error *read_file_number(const char *path, const char *prefix, unsigned int *ret)
{
	kymo_cleanup_free char *text = NULL;
	int err = kymo_read_file(AT_FDCWD, path, 4096, &text, NULL);

	if (err)
		return kernel_refused(err == -ENOENT ? ENOSYS : err, "set uprobes by perf events");
	if (strncmp(text, prefix, strlen(prefix)) || sscanf(text + strlen(prefix), "%u", ret) != 1)
		return kymo_error_create(KYMO_ERROR_FAILED, "%s makes no sense", path);
	return NULL;
}

static int open_event(const struct kymo_kernel *kernel, const struct kymo_kernel_probe *probe, uint64_t offset,
		      unsigned int type, unsigned int return_bit)
{
	struct perf_event_attr attr = { .size = sizeof(attr), .type = type };
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", probe->file);
	attr.config = probe->is_return ? UINT64_C(1) << return_bit : 0;
	attr.config1 = (uint64_t)(uintptr_t)path;
	attr.config2 = offset;
	/* Programs run wherever the breakpoint is hit; the CPU says nothing. */
	fd = (int)syscall(SYS_perf_event_open, &attr, kernel->attach_pid ? kernel->attach_pid : -1,
			  kernel->attach_pid ? -1 : (int)kernel->rings[0].cpu, -1, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static struct kymo_error *attach_event(struct kymo_kernel *kernel, const struct kymo_kernel_probe *probe, int program,
				       struct kymo_kernel_site *site, unsigned int type, unsigned int return_bit)
{
	LIBBPF_OPTS(bpf_link_create_opts, options, .perf_event.bpf_cookie = cookie_of(site));
	int event = open_event(kernel, probe, site->offset, type, return_bit), link;
	struct kymo_error *error;

	if (event < 0 && is_general(event))
		return kernel_refused(event, "set uprobes");
	if (event < 0) {
		site->err = event;
		return NULL;
	}
	error = keep_link(kernel, event);
	if (error)
		return error;
	link = bpf_link_create(program, event, BPF_PERF_EVENT, &options);
	if (link < 0)
		return kernel_refused(errno, "run BPF programs at uprobes");
	return keep_link(kernel, link);
}

static struct kymo_error *attach_events(struct kymo_kernel *kernel, const struct kymo_kernel_probe *probe, int program,
					struct kymo_kernel_site *sites, size_t n)
{
	unsigned int type, return_bit;
	struct kymo_error *error = read_file_number("/sys/bus/event_source/devices/uprobe/type", "", &type);

	if (!error)
		error = read_file_number("/sys/bus/event_source/devices/uprobe/format/retprobe",
					 "config:", &return_bit);
	if (!error && return_bit > 63)
		return_bit = 0;
	for (size_t i = 0; i < n && !error; i++)
		error = attach_event(kernel, probe, program, &sites[i], type, return_bit);
	return error;
}

struct kymo_error *kymo_kernel_attach(struct kymo_kernel *kernel, const struct kymo_kernel_probe *probe,
				      struct kymo_kernel_site *sites, size_t n)
{
	kymo_cleanup_close int program = -1;
	struct kymo_error *error;

	if (!n)
		return NULL;
	if (!kernel->has_multi && n > KYMO_KERNEL_MAX_SINGLE)
		return kymo_error_create(
			KYMO_ERROR_UNSAFE,
			"this kernel sets uprobes one by one, some 50 ms each (Linux 6.10 sets many at once): %zu "
			"would take %zu s; ask for %d at most, by a glob that matches less",
			n, n / 20, KYMO_KERNEL_MAX_SINGLE);
	for (size_t i = 0; i < n; i++)
		if (sites[i].vaddr >= KYMO_KERNEL_VADDR_MAX)
			return kymo_error_create(KYMO_ERROR_BAD_DATA, "no program is linked at 0x%" PRIx64,
						 sites[i].vaddr);
	error = load_program(kernel, probe, &program);
	if (!error)
		error = add_shape(kernel, probe, sites, n);
	if (error)
		return error;
	for (size_t i = 0; i < n; i++)
		sites[i].err = 0;
	/* Links keep the program. */
	return kernel->has_multi ? attach_multi(kernel, probe, program, sites, n)
				 : attach_events(kernel, probe, program, sites, n);
}

/* ---- taking out ------------------------------------------------------------------------------ */

/*
 * Programs may still run then, with a sample that has room in the ring and is not handed over. It would hide all
 * samples after it: so wait until none runs (a barrier of this kind is the kernel's synchronize_rcu()). Where CPUs are
 * set aside for real time there is no such barrier.
 */
void kymo_kernel_detach(struct kymo_kernel *kernel)
{
	const bool has_any = kernel->fds.n;

	while (kernel->fds.n)
		close(kernel->fds.items[--kernel->fds.n]);
	if (has_any && syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0))
		nanosleep(&(struct timespec){ 0, GRACE_NS }, NULL);
}
