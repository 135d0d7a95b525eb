#include "probe/memory/shared.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "arch/pad.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/page.h"
#include "probe/memory/arena.h"
#include "probe/memory/layout.h"
#include "probe/memory/remote_memory.h"
#include "probe/options.h"
#include "proc/batch.h"
#include "proc/call.h"
#include "proc/memory.h"
#include "proc/process.h"
#include "proc/thread.h"
#include "procfs/info.h"
#include "procfs/maps.h"
#include "procfs/pidns.h"
#include "wire/readable.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

#define SPARE_MIN 4

/* ---- geometry -------------------------------------------------------------------------------- */

uint64_t kymo_shared_trampolines_offset(void)
{
	return kymo_page_up(sizeof(struct kymo_wire_header));
}

uint64_t kymo_shared_journal_offset(void)
{
	return kymo_shared_trampolines_offset() +
	       kymo_page_up((uint64_t)KYMO_WIRE_MAX_TRAMPOLINES * sizeof(struct kymo_wire_trampolines));
}

uint64_t kymo_shared_words_address(const struct kymo_shared *shared)
{
	return shared->address + shared->size;
}

/* Where pads begin in the file. */
static uint64_t pads_offset(const struct kymo_shared *shared)
{
	return shared->size + kymo_wire_words_size(KYMO_JOURNAL_CAPACITY);
}

/* ---- making it ------------------------------------------------------------------------------- */

static uint64_t wall_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* When this process began, and its pid namespace. They are read once: it makes such memory for each program of a tree.
 */
static struct kymo_error *know_self(uint64_t *start_ret, uint64_t *pidns_ret)
{
	static _Thread_local pid_t known;
	static _Thread_local uint64_t start, pidns;

	if (known != getpid()) {
		struct kymo_process_info self;
		struct kymo_error *error = kymo_process_info(getpid(), &self);

		if (error)
			return error;
		start = self.start_time;
		pidns = kymo_own_pidns();
		known = getpid();
	}
	*start_ret = start;
	*pidns_ret = pidns;
	return NULL;
}

static struct kymo_error *fill_header(struct kymo_shared *shared, struct kymo_process *process,
				      const struct kymo_probes_options *options)
{
	struct kymo_wire_header *header = shared->header;
	uint64_t start, pidns;
	struct kymo_error *error = know_self(&start, &pidns);

	if (error)
		return error;
	header->version = KYMO_WIRE_VERSION;
	header->recorder_pid = (uint32_t)getpid();
	header->recorder_start = start;
	header->recorder_pidns = pidns;
	header->started_wall_ns = wall_ns();
	header->address = shared->address;
	header->size = shared->size;
	header->trampolines_offset = kymo_shared_trampolines_offset();
	header->journal_offset = kymo_shared_journal_offset();
	header->journal_capacity = KYMO_JOURNAL_CAPACITY;
	header->data_address = shared->data_address;
	header->data_size = shared->data_size;
	header->window = shared->window;
	header->window_size = KYMO_WINDOW_SIZE;
	header->window_offset = pads_offset(shared);
	header->arena_address = shared->arena.address;
	header->readable_address = shared->readable_at ? shared->data_address + shared->readable_at : 0;
	header->n_rings = shared->n_rings;
	header->target_pid = (uint32_t)kymo_process_pid(process);
	header->overwrite = options->overwrite;
	snprintf(header->directory, sizeof(header->directory), "%s", options->directory);
	__atomic_store_n(&header->magic, KYMO_WIRE_MAGIC, __ATOMIC_RELEASE);
	return NULL;
}

/* The controller's end: first pages, mapping. */
static struct kymo_error *open_own_view(struct kymo_shared *shared)
{
	int err = kymo_allocate(shared->fd, 0, kymo_shared_trampolines_offset());
	void *base;

	if (err)
		return kymo_error_errno(err, "cannot allocate the shared memory");
	shared->view_size = pads_offset(shared) + KYMO_WINDOW_SIZE;
	base = mmap(NULL, shared->view_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, shared->fd, 0);
	if (base == MAP_FAILED)
		return kymo_error_errno(errno, "cannot map the shared memory");
	shared->header = base;
	return NULL;
}

/* No other process gets a mapping that can be written, or made so; this one stays. */
static struct kymo_error *close_to_writers(struct kymo_shared *shared)
{
	if (fcntl(shared->fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE))
		return kymo_error_errno(
			errno,
			"cannot keep the pads from being written by the process (F_SEAL_FUTURE_WRITE, Linux 5.1)");
	return NULL;
}

/* A page lies between header and words, data, and window, so that none is taken for a part of another. */
static struct kymo_error *choose_addresses(struct kymo_shared *shared, struct kymo_process *process, bool has_clones)
{
	uint64_t code = pads_offset(shared), all = code + shared->data_size + KYMO_WINDOW_SIZE + 2 * KYMO_PAGE_SIZE,
		 hole;
	const uint64_t arena = has_clones ? KYMO_PAGE_SIZE + KYMO_WIRE_ARENA_ALIGN + KYMO_WIRE_ARENA_SIZE : 0;
	struct kymo_maps maps;
	struct kymo_error *error = kymo_process_maps(process, &maps);

	if (error)
		return error;
	hole = kymo_maps_hole_anywhere(&maps, all + arena);
	kymo_maps_deinit(&maps);
	if (!hole)
		return kymo_error_create(KYMO_ERROR_UNSAFE,
					 "process %d has no room for %" PRIu64 " MiB of address space",
					 kymo_process_pid(process), (all + arena) >> 20);
	shared->address = hole;
	shared->data_address = hole + code + KYMO_PAGE_SIZE;
	shared->window = shared->data_address + shared->data_size + KYMO_PAGE_SIZE;
	if (has_clones)
		shared->arena.address = (hole + all + KYMO_WIRE_ARENA_ALIGN) & ~(KYMO_WIRE_ARENA_ALIGN - 1);
	return NULL;
}

/* What the process has mapped so far. */
struct made {
	struct kymo_remote_mapping items[5];
	size_t n;
};

/* The memfds' descriptors in the process; -1: none. */
struct remotes {
	int64_t code, data, arena;
};

static struct kymo_error *map_all(struct kymo_shared *shared, struct kymo_process *process,
				  const struct remotes *remotes, struct made *made)
{
	const int64_t code = remotes->code;
	const struct kymo_remote_mapping mappings[] = {
		{ shared->address, shared->size, PROT_READ, MAP_SHARED, code, 0 },
		{ shared->address + shared->size, pads_offset(shared) - shared->size, PROT_READ, MAP_PRIVATE, code,
		  shared->size },
		{ shared->window, KYMO_WINDOW_SIZE, PROT_READ | PROT_EXEC, MAP_SHARED, code, pads_offset(shared) },
	};
	struct kymo_error *error = NULL;

	for (size_t i = 0; i < kymo_countof(mappings) && !error; i++) {
		error = kymo_remote_map(process, &mappings[i]);
		if (!error)
			made->items[made->n++] = mappings[i];
	}
	if (!error)
		error = kymo_data_map(shared, process, kymo_shared_batches(shared, process), remotes->data,
				      &made->items[made->n]);
	made->n += made->items[made->n].size != 0;
	if (!error && shared->arena.address)
		error = kymo_arena_map(process, &shared->arena, remotes->arena, &made->items[made->n]);
	made->n += made->items[made->n].size != 0;
	return error;
}

/* Bytes of the process that are locked: the length of mappings, not what is in them. */
static uint64_t locked(struct kymo_process *process)
{
	const struct kymo_thread *threads;
	struct kymo_process_info info;
	size_t n;

	/* Of a stopped thread, as the first one may have ended; and as it is now, with the mappings. */
	threads = kymo_process_threads(process, &n);
	return n && kymo_process_peek_status(threads[0].tid, &info) && info.locked != UINT64_MAX ? info.locked : 0;
}

/* A process that locks what it will map (mlockall) has locked kymo's mappings at their full length. What the kernel
 * could swap out is of no harm: a pad may wait for it. */
static struct kymo_error *unlock_all(struct kymo_process *process, const struct made *made)
{
	struct kymo_error *error = NULL;
	int64_t result;

	for (size_t i = 0; locked(process) && i < made->n && !error; i++)
		error = kymo_remote_syscall(process, SYS_munlock,
					    (uint64_t[6]){ made->items[i].address, made->items[i].size }, &result);
	return error;
}

/* An attach that fails leaves nothing: no later one would know of memory without a recording in it. */
static void unmap_all(struct kymo_process *process, const struct made *made)
{
	for (size_t i = made->n; i-- > 0;)
		kymo_remote_unmap(process, &made->items[i]);
}

static bool is_at(const struct kymo_maps *maps, uint64_t address, uint64_t inode)
{
	const struct kymo_map *map = kymo_maps_at(maps, address);

	return map && map->start == address && map->inode == inode && kymo_is_memfd(map);
}

/* Whether the process has mapped what was taken over from it. */
static struct kymo_error *check_mapped(const struct kymo_shared *shared, struct kymo_process *process)
{
	struct kymo_maps maps;
	struct kymo_error *error = kymo_process_maps(process, &maps);
	bool same;

	if (error)
		return error;
	same = is_at(&maps, shared->address, shared->inode) &&
	       is_at(&maps, kymo_shared_words_address(shared), shared->inode) &&
	       is_at(&maps, shared->window, shared->inode) && is_at(&maps, shared->data_address, shared->data.inode);
	kymo_maps_deinit(&maps);
	return same ? NULL
		    : kymo_error_create(KYMO_ERROR_UNSAFE,
					"process %d was made to map kymo's memory, and has something else there; "
					"something answers system calls in its place",
					kymo_process_pid(process));
}

static struct kymo_error *fill_and_map(struct kymo_shared *shared, struct kymo_process *process,
				       const struct kymo_probes_options *options, const struct remotes *remotes)
{
	struct kymo_error *error = open_own_view(shared);
	struct made made = { .n = 0 };

	if (!error)
		error = fill_header(shared, process, options);
	if (!error)
		error = close_to_writers(shared);
	if (!error)
		error = kymo_data_open(shared, process, &shared->data);
	if (!error)
		error = map_all(shared, process, remotes, &made);
	if (!error)
		error = unlock_all(process, &made);
	if (!error)
		error = check_mapped(shared, process);
	if (!error)
		error = kymo_give_size(shared->fd, shared->view_size);
	if (!error)
		error = kymo_give_size(shared->data.fd, shared->data_size);
	if (error)
		unmap_all(process, &made);
	return error;
}

static struct kymo_error *map_shared(struct kymo_shared *shared, struct kymo_process *process,
				     const struct kymo_probes_options *options)
{
	struct kymo_error *error;
	struct remotes remotes = { -1, -1, -1 };

	error = kymo_remote_memfd(process, KYMO_WIRE_MEMFD_NAME, &remotes.code);
	if (!error)
		error = kymo_take_memfd(process, KYMO_WIRE_MEMFD_NAME, remotes.code, &shared->fd, &shared->inode);
	if (!error)
		error = kymo_remote_memfd(process, KYMO_WIRE_DATA_NAME, &remotes.data);
	if (!error)
		error = kymo_take_memfd(process, KYMO_WIRE_DATA_NAME, remotes.data, &shared->data.fd,
					&shared->data.inode);
	if (!error && shared->arena.address)
		error = kymo_arena_create(process, &shared->arena, &remotes.arena);
	if (!error)
		error = fill_and_map(shared, process, options, &remotes);
	error = kymo_remote_close(process, remotes.arena, error);
	return kymo_remote_close_both(process, shared->has_batches ? shared->window : 0, remotes.data, remotes.code,
				      error);
}

struct kymo_error *kymo_shared_create(struct kymo_process *process, const struct kymo_probes_options *options,
				      struct kymo_shared *ret)
{
	struct kymo_shared shared = { .fd = -1,
				      .data = { .fd = -1 },
				      .arena = { .fd = -1 },
				      .is_sequenced = ret->is_sequenced,
				      .pads_used = KYMO_PAGE_SIZE };
	static _Thread_local long n_cpus; /* which are those of this boot */
	struct kymo_error *error;

	if (!n_cpus)
		n_cpus = sysconf(_SC_NPROCESSORS_CONF);
	shared.n_cpus = n_cpus < 1 ? 1 : (uint32_t)n_cpus;
	shared.n_sequenced = shared.is_sequenced ? shared.n_cpus : 0;
	shared.n_rings = shared.n_sequenced + shared.n_cpus + (shared.n_cpus < SPARE_MIN ? SPARE_MIN : shared.n_cpus);
	shared.size = kymo_shared_journal_offset() +
		      kymo_page_up((uint64_t)KYMO_JOURNAL_CAPACITY * sizeof(struct kymo_wire_site));
	shared.data_size = kymo_data_size(&shared, options);
	if (options->fast_reads) {
		shared.readable_at = shared.data_size;
		shared.data_size += sizeof(struct kymo_wire_readable);
	}
	error = choose_addresses(&shared, process, options->clones);
	if (error)
		return error;
	error = kymo_remote_begin(process);
	if (error)
		return error;
	error = map_shared(&shared, process, options);
	error = kymo_error_first(error, kymo_remote_end(process));
	if (error) {
		kymo_shared_deinit(&shared);
		return error;
	}
	*ret = shared;
	return NULL;
}

void kymo_shared_deinit(struct kymo_shared *shared)
{
	if (shared->header)
		munmap(shared->header, shared->view_size);
	if (shared->fd >= 0)
		close(shared->fd);
	kymo_data_deinit(&shared->data);
	kymo_arena_deinit(&shared->arena);
	*shared = (struct kymo_shared){ .fd = -1, .data = { .fd = -1 }, .arena = { .fd = -1 } };
}

/* The kernel gets the pages and copies, without a fault for each of them. The file itself can't be written
 * (F_SEAL_FUTURE_WRITE). False: it has not done all of it, and does not say why. */
static bool copy_by_kernel(void *to, const void *bytes, size_t size)
{
	const struct iovec local = { (void *)(uintptr_t)bytes, size }, own = { to, size };

	return process_vm_writev(getpid(), &local, 1, &own, 1, 0) == (ssize_t)size;
}

int kymo_shared_store(struct kymo_shared *shared, uint64_t offset, const void *bytes, size_t size)
{
	uint8_t *to = (uint8_t *)shared->header + offset;
	int err;

	if (!size || (size > KYMO_PAGE_SIZE && copy_by_kernel(to, bytes, size)))
		return 0;
	err = kymo_allocate(shared->fd, offset, size);
	if (!err)
		memcpy(to, bytes, size);
	return err;
}

int kymo_shared_store_pads(struct kymo_shared *shared, uint64_t at, const void *bytes, size_t size)
{
	return kymo_shared_store(shared, pads_offset(shared) + at, bytes, size);
}

uint64_t kymo_shared_batches(struct kymo_shared *shared, struct kymo_process *process)
{
	size_t size;
	const uint8_t *code = kymo_batch_code(&size);

	if (!kymo_remote_may_batch(process))
		return 0;
	if (!shared->has_batches && kymo_shared_store_pads(shared, 0, code, size))
		return 0;
	shared->has_batches = true;
	return shared->window;
}

/* ---- journal and regions --------------------------------------------------------------------- */

/* Words that are not 0 are the process's own pages from here on. */
static int write_words(struct kymo_shared *shared, struct kymo_process *process, const struct kymo_wire_site *sites,
		       size_t n)
{
	kymo_cleanup_free uint64_t *words = calloc(n ? n : 1, sizeof(*words));
	bool any = false;

	if (!words)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		words[i] = sites[i].hop ? sites[i].next : 0;
		any |= sites[i].hop || (sites[i].flags & KYMO_WIRE_SWITCH && !(sites[i].flags & KYMO_WIRE_GATE));
	}
	return any ? kymo_process_write(process, kymo_shared_word(shared, shared->n_sites), words, n * sizeof(*words))
		   : 0;
}

uint64_t kymo_shared_word(const struct kymo_shared *shared, uint64_t entry)
{
	return kymo_shared_words_address(shared) + kymo_wire_word_offset(entry);
}

struct kymo_error *kymo_shared_journal(struct kymo_shared *shared, struct kymo_process *process,
				       const struct kymo_wire_site *sites, size_t n)
{
	uint64_t have = shared->n_sites;
	int err;

	if (n > KYMO_JOURNAL_CAPACITY - have)
		return kymo_error_create(KYMO_ERROR_FAILED, "more than %u probes in one process",
					 KYMO_JOURNAL_CAPACITY);
	err = kymo_shared_store(shared, kymo_shared_journal_offset() + have * sizeof(*sites), sites,
				n * sizeof(*sites));
	if (!err)
		err = write_words(shared, process, sites, n);
	if (err)
		return kymo_error_errno(err, "cannot write the journal");
	shared->n_sites = have + n;
	shared->header->generation = ++shared->generation;
	__atomic_store_n(&shared->header->n_sites, shared->n_sites, __ATOMIC_RELEASE);
	return NULL;
}

int kymo_shared_strike(struct kymo_shared *shared, uint32_t i)
{
	const uint64_t at = kymo_shared_journal_offset() + (uint64_t)i * sizeof(struct kymo_wire_site);
	const uint8_t none = 0;

	_Static_assert(sizeof(((struct kymo_wire_site *)NULL)->patch_size) == sizeof(none), "one byte");
	return kymo_shared_store(shared, at + offsetof(struct kymo_wire_site, patch_size), &none, sizeof(none));
}

void kymo_shared_installed(struct kymo_shared *shared)
{
	__atomic_store_n(&shared->header->n_installed, shared->n_sites, __ATOMIC_RELEASE);
}

void kymo_shared_touch(struct kymo_shared *shared)
{
	__atomic_store_n(&shared->header->generation, ++shared->generation, __ATOMIC_RELEASE);
}

void kymo_shared_rewind(struct kymo_shared *shared, uint64_t n)
{
	shared->n_sites = n;
	shared->header->generation = ++shared->generation;
	__atomic_store_n(&shared->header->n_sites, n, __ATOMIC_RELEASE);
}

/*
 * A second view of the window's pages: mremap() of a shared mapping with an old size of 0 duplicates it. So no
 * descriptor has to stay open in the target for later regions. Its live page lies in it.
 */
static struct kymo_error *map_view(struct kymo_shared *shared, struct kymo_process *process,
				   const struct probe_region *region)
{
	struct kymo_batch_call calls[] = {
		{ .number = SYS_mremap,
		  .args = { shared->window + region->at, 0, region->size, MREMAP_MAYMOVE | MREMAP_FIXED,
			    region->address } },
		{ .number = SYS_mmap,
		  .args = { region->live, KYMO_PAGE_SIZE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, (uint64_t)-1, 0 } },
		{ .number = SYS_madvise, .args = { region->live, KYMO_PAGE_SIZE, MADV_WIPEONFORK } },
	};
	struct kymo_error *error =
		kymo_remote_calls(process, kymo_shared_batches(shared, process), calls, kymo_countof(calls));

	if (error)
		return error;
	if ((uint64_t)calls[0].result != region->address)
		return kymo_remote_failed("map a pad region", calls[0].result);
	if ((uint64_t)calls[1].result != region->live)
		return kymo_remote_failed("map the live page", calls[1].result);
	return calls[2].result ? kymo_remote_failed("mark a page to be wiped in forked children", calls[2].result)
			       : NULL;
}

/* In the process's own words: a forked child has its own number. */
static struct kymo_error *note_region(const struct kymo_shared *shared, struct kymo_process *process)
{
	const uint64_t n = shared->n_regions,
		       at = kymo_shared_words_address(shared) + offsetof(struct kymo_wire_words, n_regions);
	int err = kymo_process_write(process, at, &n, sizeof(n));

	return err ? kymo_error_errno(err, "cannot write the journal") : NULL;
}

struct kymo_error *kymo_shared_map_region(struct kymo_shared *shared, struct kymo_process *process,
					  const struct probe_region *region)
{
	struct kymo_wire_region entry = { region->address, region->size, region->live,
					  pads_offset(shared) + region->at };
	struct kymo_error *error;

	if (shared->n_regions >= KYMO_WIRE_MAX_REGIONS)
		return kymo_error_create(KYMO_ERROR_FAILED, "probes in more than %d regions of the address space",
					 KYMO_WIRE_MAX_REGIONS);
	if (!shared->n_regions)
		shared->header->vforks = entry.live + KYMO_PAD_LIVE_VFORK_LIST;
	shared->live[shared->n_regions] = entry.live;
	shared->header->regions[shared->n_regions++] = entry;
	__atomic_store_n(&shared->header->n_regions, shared->n_regions, __ATOMIC_RELEASE);
	error = map_view(shared, process, region);
	return error ? error : note_region(shared, process);
}
