#include "kernel/state.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "kernel/attach.h"
#include "kernel/refused.h"

#define INIT_PID_NAMESPACE 4026531836u /* its inode, PROC_PID_INIT_INO of the kernel */
#define RING_MAX (UINT64_C(1) << 30)

uint32_t kernel_ring_size(uint64_t wanted)
{
	uint64_t size = (uint64_t)sysconf(_SC_PAGESIZE);

	while (size < wanted && size < RING_MAX)
		size *= 2;
	return (uint32_t)size;
}

struct kymo_error *kernel_create_processes(struct kymo_kernel *kernel)
{
	LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = BPF_F_MMAPABLE);
	uint32_t pid = (uint32_t)kernel->options.pid;
	void *processes;

	kernel->processes_fd =
		bpf_map_create(BPF_MAP_TYPE_ARRAY, "kymo_processes", 4, sizeof(*kernel->processes), 1, &options);
	if (kernel->processes_fd < 0)
		return kernel_refused(errno, "make BPF maps");
	processes = mmap(NULL, sizeof(*kernel->processes), PROT_READ | PROT_WRITE, MAP_SHARED, kernel->processes_fd, 0);
	if (processes == MAP_FAILED)
		return kernel_refused(errno, "map BPF maps");
	kernel->processes = processes;
	kernel->processes->bits[pid % KERNEL_PIDS / 64] = 1ull
							  << pid % 64; /* no thread runs yet that would change it */
	kernel->processes->n = 1;
	return NULL;
}

/* Which ids samples carry: one process knows itself by its own namespace's; of several, this process's view. */
struct kymo_error *kernel_choose_namespace(struct kymo_kernel *kernel)
{
	pid_t pid = kernel->options.pid && !kernel->options.follow ? kernel->options.pid : getpid();
	char name[64];
	struct stat st;

	snprintf(name, sizeof(name), "/proc/%d/ns/pid", pid);
	if (stat(name, &st))
		return kymo_error_errno(errno, "cannot tell the pid namespace of process %d", pid);
	if (st.st_ino == INIT_PID_NAMESPACE)
		return NULL;
	if (kernel->options.follow)
		return kymo_error_create(
			KYMO_ERROR_PERMISSION,
			"descendants cannot be followed through the kernel from within a container, where processes' "
			"ids are not the machine's; run kymo outside of it, or with --all");
	kernel->ids.ns_dev = (uint64_t)major(st.st_dev) << 20 | minor(st.st_dev); /* as the kernel writes it */
	kernel->ids.ns_ino = st.st_ino;
	return NULL;
}

void kernel_deinit(struct kymo_kernel *kernel)
{
	kymo_kernel_detach(kernel);
	ring_buffer__free(kernel->reader);
	for (size_t i = 0; kernel->rings && i < kernel->n_rings; i++)
		if (kernel->rings[i].fd >= 0)
			close(kernel->rings[i].fd);
	free(kernel->rings);
	if (kernel->state)
		munmap(kernel->state, kernel->state_size);
	if (kernel->processes)
		munmap(kernel->processes, sizeof(*kernel->processes));
	if (kernel->gate)
		munmap(kernel->gate, sizeof(*kernel->gate));
	if (kernel->gate_fd >= 0)
		close(kernel->gate_fd);
	if (kernel->rings_fd >= 0)
		close(kernel->rings_fd);
	if (kernel->state_fd >= 0)
		close(kernel->state_fd);
	if (kernel->processes_fd >= 0)
		close(kernel->processes_fd);
	kymo_vec_deinit(&kernel->fds);
	kymo_vec_deinit(&kernel->shapes);
	kymo_vec_deinit(&kernel->shape_of);
}
