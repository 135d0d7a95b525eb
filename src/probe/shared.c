#include "probe/shared.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/page.h"
#include "probe/probes.h"

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif

#define SUBBUFFERS 8
#define SPARE_SUBBUFFERS 4
#define SPARE_SUBBUFFER_SIZE (64ull << 10)
#define SPARE_MIN 4

/* ---- geometry --------------------------------------------------------------------------------------------------- */

uint64_t kymo_shared_runs_offset(void)
{
	return kymo_page_up(sizeof(struct kymo_wire_header));
}

uint64_t kymo_shared_journal_offset(void)
{
	return kymo_shared_runs_offset() + kymo_page_up((uint64_t)KYMO_WIRE_MAX_RUNS * sizeof(struct kymo_wire_run));
}

static uint64_t rings_offset(void)
{
	return kymo_shared_journal_offset() + kymo_page_up((uint64_t)KYMO_JOURNAL_CAPACITY * sizeof(struct kymo_wire_site));
}

static uint64_t subbuffer_size(const struct kymo_probes_options *options)
{
	uint64_t size = kymo_page_down(options->buffer_size / SUBBUFFERS);

	return size ? size : KYMO_PAGE_SIZE;
}

/* What ring `i` is like: the CPUs' rings for sequences, if any; the CPUs' rings with locks; spare ones. */
struct shape {
	uint32_t n_subbuffers;
	uint64_t subbuffer_size;
};

static struct shape shape_of(const struct kymo_shared *shared, const struct kymo_probes_options *options, size_t i)
{
	uint64_t own = subbuffer_size(options), less = kymo_page_down(own / 4);

	if (i < shared->n_cpus)
		return (struct shape){ SUBBUFFERS, own };
	/* Beside sequences locks serve the few threads that have none, and whoever comes while a sub-buffer is being changed. */
	if (i < shared->n_sequenced + shared->n_cpus)
		return (struct shape){ SUBBUFFERS, less > SPARE_SUBBUFFER_SIZE ? less : SPARE_SUBBUFFER_SIZE };
	return (struct shape){ SPARE_SUBBUFFERS, SPARE_SUBBUFFER_SIZE };
}

static uint64_t data_offset(const struct kymo_shared *shared, const struct kymo_probes_options *options, size_t i)
{
	uint64_t at = shared->rings_offset + kymo_page_up((uint64_t)shared->n_rings * KYMO_WIRE_RING_STRIDE);

	for (size_t k = 0; k < i; k++) {
		struct shape shape = shape_of(shared, options, k);

		at += shape.n_subbuffers * shape.subbuffer_size;
	}
	return at;
}

struct kymo_shared_ring kymo_shared_ring(const struct kymo_shared *shared, const struct kymo_probes_options *options, size_t i)
{
	struct shape shape = shape_of(shared, options, i);
	uint8_t *base = (uint8_t *)shared->header;

	return (struct kymo_shared_ring){
		.shared = (struct kymo_wire_ring *)(void *)(base + shared->rings_offset + i * KYMO_WIRE_RING_STRIDE),
		.data = base + data_offset(shared, options, i),
		.subbuffer_size = shape.subbuffer_size,
		.n_subbuffers = shape.n_subbuffers,
		.cpu = (uint32_t)(i % shared->n_cpus),
		.is_sequenced = i < shared->n_sequenced,
	};
}

/* ---- making it --------------------------------------------------------------------------------------------------- */

static struct kymo_error *remote_failed(const char *what, int64_t result)
{
	return kymo_error_errno((int)result, "the process could not %s", what);
}

/* memfd_create() in the process; its descriptor there. */
struct kymo_error *kymo_remote_memfd(struct kymo_process *process, const char *name, int64_t *fd_ret)
{
	uint64_t scratch = kymo_remote_scratch(process);
	uint64_t args[6] = { scratch, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC };
	struct kymo_error *error;
	int err = kymo_process_write(process, scratch, name, strlen(name) + 1);

	if (err)
		return kymo_error_errno(err, "cannot write to the stack of the process");
	error = kymo_remote_syscall(process, SYS_memfd_create, args, fd_ret);
	if (!error && *fd_ret == -EINVAL) {	/* before Linux 6.3 */
		args[1] = MFD_CLOEXEC | MFD_ALLOW_SEALING;
		error = kymo_remote_syscall(process, SYS_memfd_create, args, fd_ret);
	}
	if (!error && *fd_ret == -EACCES)
		return kymo_error_create(KYMO_ERROR_PERMISSION,
					 "a policy forbids executable memfds here (vm.memfd_noexec=2, or a security module), and kymo's pads live in one");
	if (!error && *fd_ret < 0)
		error = remote_failed("make a memfd", *fd_ret);
	return error;
}

static struct kymo_error *remote_map(struct kymo_process *process, uint64_t address, uint64_t size, int protection, int64_t fd,
				     uint64_t offset)
{
	uint64_t args[6] = { address, size, (uint64_t)protection, MAP_SHARED | MAP_FIXED_NOREPLACE, (uint64_t)fd, offset };
	struct kymo_error *error;
	int64_t result;

	error = kymo_remote_syscall(process, SYS_mmap, args, &result);
	if (error)
		return error;
	if (result == -EACCES || result == -EPERM)
		return kymo_error_create(KYMO_ERROR_PERMISSION,
					 "a policy forbids mapping executable memory in the process (a security module, or a filesystem without exec)");
	if (result < 0 && result > -4096)
		return remote_failed("map kymo's memory", result);
	if ((uint64_t)result != address)
		return kymo_error_create(KYMO_ERROR_FAILED, "the kernel mapped memory elsewhere than at 0x%" PRIx64, address);
	return NULL;
}

static uint64_t wall_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static struct kymo_error *fill_header(struct kymo_shared *shared, struct kymo_process *process,
				      const struct kymo_probes_options *options)
{
	struct kymo_wire_header *header = shared->header;
	struct kymo_process_info self;
	struct kymo_error *error = kymo_process_info(getpid(), &self);

	if (error)
		return error;
	header->version = KYMO_WIRE_VERSION;
	header->recorder_pid = (uint32_t)getpid();
	header->recorder_start = self.start_time;
	header->started_wall_ns = wall_ns();
	header->address = shared->address;
	header->size = shared->size;
	header->runs_offset = kymo_shared_runs_offset();
	header->journal_offset = kymo_shared_journal_offset();
	header->journal_capacity = KYMO_JOURNAL_CAPACITY;
	header->rings_offset = shared->rings_offset;
	header->window = shared->window;
	header->window_size = KYMO_WINDOW_SIZE;
	header->window_offset = shared->size;
	header->n_rings = shared->n_rings;
	header->target_pid = (uint32_t)kymo_process_pid(process);
	header->overwrite = options->overwrite;
	header->watch.given_up = header->handlers.given_up = 1;	/* nobody answers yet */
	snprintf(header->directory, sizeof(header->directory), "%s", options->directory);
	__atomic_store_n(&header->magic, KYMO_WIRE_MAGIC, __ATOMIC_RELEASE);
	return NULL;
}

/* The controller's end: first pages, mapping. */
static struct kymo_error *open_own_view(struct kymo_shared *shared)
{
	struct stat st;
	void *base;
	int err;

	if (fstat(shared->fd, &st))
		return kymo_error_errno(errno, "cannot look at the shared memory");
	shared->inode = st.st_ino;
	err = posix_fallocate(shared->fd, 0, (off_t)kymo_shared_runs_offset());
	if (err)
		return kymo_error_errno(err, "cannot allocate the shared memory");
	base = mmap(NULL, shared->size, PROT_READ | PROT_WRITE, MAP_SHARED, shared->fd, 0);
	if (base == MAP_FAILED)
		return kymo_error_errno(errno, "cannot map the shared memory");
	shared->header = base;
	return NULL;
}

/*
 * The file gets its size when it is mapped in the target: a target that locks its memory (mlockall) would else get all of it at once. Then nobody can
 * change the size any more: a page cut off would be a SIGBUS for whoever touches it, here and there.
 */
static struct kymo_error *give_size(struct kymo_shared *shared)
{
	if (ftruncate(shared->fd, (off_t)(shared->size + KYMO_WINDOW_SIZE)) ||
	    fcntl(shared->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		return kymo_error_errno(errno, "cannot size the shared memory");
	return NULL;
}

static struct kymo_error *choose_addresses(struct kymo_shared *shared, pid_t pid)
{
	struct kymo_maps maps;
	struct kymo_error *error = kymo_maps_read(pid, &maps);
	uint64_t hole;

	if (error)
		return error;
	hole = kymo_maps_hole_anywhere(&maps, shared->size + KYMO_WINDOW_SIZE + KYMO_PAGE_SIZE);
	kymo_maps_deinit(&maps);
	if (!hole)
		return kymo_error_create(KYMO_ERROR_UNSAFE, "process %d has no room for %" PRIu64 " MiB of address space", pid,
					 (shared->size + KYMO_WINDOW_SIZE) >> 20);
	shared->address = hole;
	shared->window = hole + shared->size + KYMO_PAGE_SIZE;
	return NULL;
}

static struct kymo_error *set_up(struct kymo_shared *shared, struct kymo_process *process,
				 const struct kymo_probes_options *options)
{
	struct kymo_error *error, *closing;
	int64_t fd = -1, result;

	error = kymo_remote_memfd(process, KYMO_WIRE_MEMFD_NAME, &fd);
	if (error)
		return error;
	shared->fd = (int)syscall(SYS_pidfd_getfd, kymo_process_pidfd(process), (int)fd, 0);
	if (shared->fd < 0)
		error = kymo_error_errno(errno, "cannot take over the descriptor that process %d made",
					 kymo_process_pid(process));
	if (!error)
		error = open_own_view(shared);
	if (!error)
		error = fill_header(shared, process, options);
	if (!error)
		error = remote_map(process, shared->address, shared->size, PROT_READ | PROT_WRITE, fd, 0);
	if (!error)
		error = remote_map(process, shared->window, KYMO_WINDOW_SIZE, PROT_READ | PROT_EXEC, fd, shared->size);
	if (!error)
		error = give_size(shared);
	closing = kymo_remote_syscall(process, SYS_close, (uint64_t[6]){ (uint64_t)fd }, &result);
	if (error) {
		kymo_error_destroy(closing);
		return error;
	}
	return closing;
}

struct kymo_error *kymo_shared_create(struct kymo_process *process, const struct kymo_probes_options *options,
				      struct kymo_shared *ret)
{
	struct kymo_shared shared = { .fd = -1, .is_sequenced = ret->is_sequenced };
	long n_cpus = sysconf(_SC_NPROCESSORS_CONF);
	struct kymo_error *error, *ending;

	shared.n_cpus = n_cpus < 1 ? 1 : (uint32_t)n_cpus;
	shared.n_sequenced = shared.is_sequenced ? shared.n_cpus : 0;
	shared.n_rings = shared.n_sequenced + shared.n_cpus + (shared.n_cpus < SPARE_MIN ? SPARE_MIN : shared.n_cpus);
	shared.rings_offset = rings_offset();
	shared.size = data_offset(&shared, options, shared.n_rings);
	error = choose_addresses(&shared, kymo_process_pid(process));
	if (error)
		return error;
	error = kymo_remote_begin(process);
	if (error)
		return error;
	error = set_up(&shared, process, options);
	ending = kymo_remote_end(process);
	if (error) {
		kymo_error_destroy(ending);
		ending = error;
	}
	if (ending) {
		kymo_shared_deinit(&shared);
		return ending;
	}
	*ret = shared;
	return NULL;
}

void kymo_shared_deinit(struct kymo_shared *shared)
{
	if (shared->header)
		munmap(shared->header, shared->size);
	if (shared->fd >= 0)
		close(shared->fd);
	*shared = (struct kymo_shared){ .fd = -1 };
}

struct kymo_error *kymo_shared_format(struct kymo_shared *shared, const struct kymo_probes_options *options)
{
	uint64_t begin = shared->rings_offset;
	int err = posix_fallocate(shared->fd, (off_t)begin, (off_t)(shared->size - begin));

	if (err)
		return kymo_error_errno(err, "cannot allocate %" PRIu64 " MiB for the rings; a smaller --buffer needs less",
					(shared->size - shared->rings_offset) >> 20);
	for (size_t i = 0; i < shared->n_rings; i++) {
		struct kymo_shared_ring ring = kymo_shared_ring(shared, options, i);

		ring.shared->data_offset = (uint64_t)(ring.data - (const uint8_t *)ring.shared);
		ring.shared->subbuffer_size = ring.subbuffer_size;
		ring.shared->n_subbuffers = ring.n_subbuffers;
		ring.shared->overwrite = options->overwrite;
		ring.shared->cpu = ring.cpu;
		ring.shared->is_sequenced = ring.is_sequenced;
	}
	return NULL;
}

/* ---- journal and regions ------------------------------------------------------------------------------------------ */

struct kymo_error *kymo_shared_journal(struct kymo_shared *shared, const struct kymo_wire_site *sites, size_t n)
{
	uint64_t have = shared->n_sites;
	int err;

	if (n > KYMO_JOURNAL_CAPACITY - have)
		return kymo_error_create(KYMO_ERROR_FAILED, "more than %u probes in one process", KYMO_JOURNAL_CAPACITY);
	/* pwrite, not a store: memory that can't be had is an error then and not a SIGBUS. */
	err = kymo_pwrite_all(shared->fd, sites, n * sizeof(*sites), (off_t)(kymo_shared_journal_offset() + have * sizeof(*sites)));
	if (err)
		return kymo_error_errno(err, "cannot write the journal");
	shared->n_sites = have + n;
	shared->header->generation = ++shared->generation;
	__atomic_store_n(&shared->header->n_sites, shared->n_sites, __ATOMIC_RELEASE);
	return NULL;
}

void kymo_shared_installed(struct kymo_shared *shared)
{
	__atomic_store_n(&shared->header->n_installed, shared->n_sites, __ATOMIC_RELEASE);
}

void kymo_shared_rewind(struct kymo_shared *shared, uint64_t n)
{
	shared->n_sites = n;
	shared->header->generation = ++shared->generation;
	__atomic_store_n(&shared->header->n_sites, n, __ATOMIC_RELEASE);
}

/* A second view of the window's pages: mremap() of a shared mapping with an old size of 0 duplicates it, so no descriptor has to stay
 * open in the target for regions that come later. */
static struct kymo_error *duplicate(struct kymo_shared *shared, struct kymo_process *process, uint64_t address, uint64_t size,
				    uint64_t at)
{
	uint64_t args[6] = { shared->window + at, 0, size, MREMAP_MAYMOVE | MREMAP_FIXED, address };
	struct kymo_error *error;
	int64_t result;

	error = kymo_remote_syscall(process, SYS_mremap, args, &result);
	if (!error && (uint64_t)result != address)
		error = remote_failed("map a pad region", result);
	return error;
}

static struct kymo_error *make_live_page(struct kymo_process *process, uint64_t live)
{
	uint64_t map[6] = { live, KYMO_PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, (uint64_t)-1, 0 };
	uint64_t advise[6] = { live, KYMO_PAGE_SIZE, MADV_WIPEONFORK };
	struct kymo_error *error;
	int64_t result;

	error = kymo_remote_syscall(process, SYS_mmap, map, &result);
	if (!error && (uint64_t)result != live)
		error = remote_failed("map the live page", result);
	if (!error)
		error = kymo_remote_syscall(process, SYS_madvise, advise, &result);
	if (!error && result)
		error = remote_failed("mark a page to be wiped in forked children", result);
	return error;
}

struct kymo_error *kymo_shared_map_region(struct kymo_shared *shared, struct kymo_process *process, const struct probe_region *region)
{
	struct kymo_wire_region entry = { region->address, region->size, region->live, shared->size + region->at };
	struct kymo_error *error;

	if (shared->n_regions >= KYMO_WIRE_MAX_REGIONS)
		return kymo_error_create(KYMO_ERROR_FAILED, "probes in more than %d places of the address space",
					 KYMO_WIRE_MAX_REGIONS);
	if (!shared->n_regions)
		shared->header->vforks = entry.live + KYMO_PAD_LIVE_VFORK_LIST;
	shared->live[shared->n_regions] = entry.live;
	shared->header->regions[shared->n_regions++] = entry;
	__atomic_store_n(&shared->header->n_regions, shared->n_regions, __ATOMIC_RELEASE);
	error = duplicate(shared, process, region->address, region->size, region->at);
	if (!error)
		error = make_live_page(process, region->live);
	return error;
}
