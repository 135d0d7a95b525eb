/*
 * Trampolines: jumps at addresses that puns lead to, each stretch of pages a private mapping of one more memfd.
 * Private, because a recording that shares a site with another changes its trampoline, through /proc/PID/mem like text;
 * of a file, because mappings are known by its name.
 *
 * Stretches are mapped while the file has holes only, and filled when the process runs again: thousands of pages take
 * some milliseconds. A page of a private mapping that was not written through it is the file's, whenever that was
 * written. No jump leads there before text is written, which is after the file was filled, sealed and compared.
 */
#include "probe/memory/trampolines.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "arch/plan.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/page.h"
#include "base/search.h"
#include "probe/memory/layout.h"
#include "probe/memory/remote_memory.h"
#include "probe/memory/shared.h"
#include "proc/batch.h"
#include "proc/memory.h"
#include "proc/process.h"
#include "procfs/maps.h"

enum { READ_SIZE = 1 << 16 }; /* whole pages */

/* Before they are mapped: a death in between leaves entries for nothing. */
static struct kymo_error *note_stretches(struct kymo_shared *shared, const struct probe_layout *layout)
{
	uint64_t n = layout->stretches.n + layout->joined.n;
	kymo_cleanup_free struct kymo_wire_trampolines *stretches = calloc(n, sizeof(*stretches));
	int err;

	if (!stretches)
		return &kymo_error_no_memory;
	if (n > KYMO_WIRE_MAX_TRAMPOLINES - shared->n_trampolines)
		return kymo_error_create(KYMO_ERROR_FAILED, "the probes would need more than %d mappings of jumps",
					 KYMO_WIRE_MAX_TRAMPOLINES);
	for (size_t i = 0; i < n; i++) {
		const struct probe_stretch *stretch = i < layout->stretches.n
							      ? &layout->stretches.items[i]
							      : &layout->joined.items[i - layout->stretches.n];

		stretches[i] = (struct kymo_wire_trampolines){ stretch->address, stretch->size };
	}
	err = kymo_shared_store(shared, kymo_shared_trampolines_offset() + shared->n_trampolines * sizeof(*stretches),
				stretches, n * sizeof(*stretches));
	if (err)
		return kymo_error_errno(err, "cannot write the journal");
	shared->n_trampolines += n;
	__atomic_store_n(&shared->header->n_trampolines, shared->n_trampolines, __ATOMIC_RELEASE);
	return NULL;
}

/* The pages of the file that have jumps, in order; all others are holes, which take no memory. */
struct pages {
	uint64_t *at;
	uint8_t (*bytes)[KYMO_PAGE_SIZE];
	size_t n;
};

/* Where a trampoline's jump is in the file; UINT64_MAX: in no stretch. */
static uint64_t offset_of(const struct probe_layout *layout, const struct probe_trampoline *trampoline)
{
	for (size_t stretch = 0; stretch < layout->stretches.n; stretch++) {
		uint64_t at = trampoline->address - layout->stretches.items[stretch].address;

		if (at < layout->stretches.items[stretch].size)
			return layout->stretches.items[stretch].at + at;
	}
	return UINT64_MAX;
}

static uint64_t size_of(const struct probe_layout *layout)
{
	const struct probe_stretch *last = &layout->stretches.items[layout->stretches.n - 1];

	return last->at + last->size;
}

/* NULL: the page has no jump. */
static uint8_t *page_at(const struct pages *pages, uint64_t at)
{
	const size_t i = kymo_partition_point(k, pages->n, pages->at[k] < at);

	return i < pages->n && pages->at[i] == at ? pages->bytes[i] : NULL;
}

/* A jump may begin on one page and end on the next, of the same stretch. False when it can't lead to its pad. */
static bool encode(struct pages *pages, const struct probe_trampoline *trampoline, uint64_t offset)
{
	uint8_t jump[KYMO_JUMP_SIZE];

	if (offset == UINT64_MAX || kymo_encode_jump(trampoline->address, trampoline->target, jump))
		return false;
	for (size_t i = 0; i < sizeof(jump); i++)
		page_at(pages, kymo_page_down(offset + i))[(offset + i) % KYMO_PAGE_SIZE] = jump[i];
	return true;
}

static struct kymo_error *make_pages(const struct probe_layout *layout, struct pages *pages)
{
	const size_t n = layout->trampolines.n;
	size_t kept = 0;

	pages->at = calloc(2 * n + 1, sizeof(*pages->at));
	if (!pages->at)
		return &kymo_error_no_memory;
	for (size_t i = 0; i < n; i++) {
		const uint64_t offset = offset_of(layout, &layout->trampolines.items[i]);

		pages->at[2 * i] = kymo_page_down(offset);
		pages->at[2 * i + 1] = kymo_page_down(offset + KYMO_JUMP_SIZE - 1);
	}
	qsort(pages->at, 2 * n, sizeof(*pages->at), kymo_compare_u64);
	for (size_t i = 0; i < 2 * n; i++)
		if (!kept || pages->at[kept - 1] != pages->at[i])
			pages->at[kept++] = pages->at[i];
	pages->n = kept;
	pages->bytes = calloc(kept + 1, sizeof(*pages->bytes));
	if (!pages->bytes)
		return &kymo_error_no_memory;
	for (size_t i = 0; i < n; i++)
		if (!encode(pages, &layout->trampolines.items[i], offset_of(layout, &layout->trampolines.items[i])))
			return kymo_error_create(KYMO_ERROR_FAILED, "a jump at 0x%" PRIx64 " cannot lead to its pad",
						 layout->trampolines.items[i].address);
	return NULL;
}

static struct kymo_error *fill(int fd, const struct pages *pages)
{
	int err = 0;

	for (size_t i = 0, end; i < pages->n && !err; i = end) {
		for (end = i + 1; end < pages->n && pages->at[end] == pages->at[end - 1] + KYMO_PAGE_SIZE; end++)
			;
		err = kymo_pwrite_all(fd, pages->bytes[i], (end - i) * KYMO_PAGE_SIZE, (off_t)pages->at[i]);
	}
	return err ? kymo_error_errno(err, "cannot write the jumps to the pads") : NULL;
}

/* Whether `bytes`, from `at` of the file on, are the pages that lie there, and zeroes elsewhere; how many pages. */
static bool are_pages(const struct pages *pages, uint64_t at, const uint8_t *bytes, size_t size, size_t *n)
{
	static const uint8_t zeroes[KYMO_PAGE_SIZE];

	for (size_t i = 0; i < size; i += KYMO_PAGE_SIZE) {
		const uint8_t *page = page_at(pages, at + i);

		if (memcmp(bytes + i, page ? page : zeroes, KYMO_PAGE_SIZE))
			return false;
		*n += page != NULL;
	}
	return true;
}

/* Whether the file has all the pages, and no other bytes: the kernel may allocate more than was written. */
static bool has_pages_only(int fd, const struct pages *pages)
{
	kymo_cleanup_free uint8_t *now = malloc(READ_SIZE);
	off_t begin, end = 0;
	size_t n = 0;

	while (now && (begin = lseek(fd, end, SEEK_DATA)) >= 0) {
		end = lseek(fd, begin, SEEK_HOLE);
		if (end <= begin)
			return false;
		for (off_t at = begin; at < end; at += READ_SIZE) {
			const size_t size = end - at < READ_SIZE ? (size_t)(end - at) : READ_SIZE;

			if (kymo_pread_all(fd, now, size, at) || !are_pages(pages, (uint64_t)at, now, size, &n))
				return false;
		}
	}
	return now && errno == ENXIO && n == pages->n;
}

/* Other threads ran while the process had the descriptor: a child that one has forked has it, too. The file is sealed
 * now, and can be looked at. */
static struct kymo_error *check_filled(int fd, const struct probe_layout *layout, const struct pages *pages)
{
	return has_pages_only(fd, pages)
		       ? NULL
		       : kymo_error_create(KYMO_ERROR_UNSAFE,
					   "another program has changed the jumps at 0x%" PRIx64
					   " before they were sealed; nothing was changed in its code",
					   layout->stretches.items[0].address);
}

static struct kymo_batch_call call_for(const struct probe_stretch *stretch, int64_t fd)
{
	return (struct kymo_batch_call){ .number = SYS_mmap,
					 .args = { stretch->address, stretch->size, PROT_READ | PROT_EXEC,
						   MAP_PRIVATE | MAP_FIXED_NOREPLACE, (uint64_t)fd, stretch->at } };
}

/* How many are mapped: `n_ret`, also after an error. */
static struct kymo_error *map_stretches(struct kymo_shared *shared, struct kymo_process *process,
					const struct probe_layout *layout, int64_t fd, size_t *n_ret, bool *taken_ret)
{
	const size_t n = layout->stretches.n;
	kymo_cleanup_free struct kymo_batch_call *calls = calloc(n, sizeof(*calls));
	struct kymo_error *error;
	size_t made = 0;

	if (!calls)
		return &kymo_error_no_memory;
	for (size_t i = 0; i < n; i++)
		calls[i] = call_for(&layout->stretches.items[i], fd);
	error = kymo_remote_calls(process, kymo_shared_batches(shared, process), calls, n);
	while (made < n && (uint64_t)calls[made].result == layout->stretches.items[made].address)
		made++;
	*n_ret = made;
	*taken_ret = !error && made < n && calls[made].result == -EEXIST;
	if (error || made == n || *taken_ret)
		return error;
	return kymo_error_errno((int)calls[made].result, "process %d could not map memory for jumps",
				kymo_process_pid(process));
}

/* Whether all that was mapped is of the file: a process that shares the table of descriptors may have put another one
 * in its place. */
static struct kymo_error *check_mapped(struct kymo_process *process, const struct probe_layout *layout, uint64_t inode)
{
	struct kymo_maps maps;
	struct kymo_error *error = kymo_process_maps(process, &maps);
	bool same = true;

	if (error)
		return error;
	for (size_t i = 0; i < layout->stretches.n && same; i++) {
		const struct probe_stretch *stretch = &layout->stretches.items[i];
		const struct kymo_map *map = kymo_maps_at(&maps, stretch->address);

		same = map && map->inode == inode && kymo_is_memfd(map) && stretch->address + stretch->size <= map->end;
	}
	kymo_maps_deinit(&maps);
	return same ? NULL
		    : kymo_error_create(KYMO_ERROR_UNSAFE,
					"process %d was made to map kymo's jumps, and has something else there; "
					"nothing was changed in its code",
					kymo_process_pid(process));
}

static struct kymo_error *map_all(struct kymo_shared *shared, struct kymo_process *process,
				  const struct probe_layout *layout, int64_t remote, int *fd_ret, bool *taken_ret)
{
	kymo_cleanup_close int fd = -1;
	uint64_t inode = 0;
	struct kymo_error *error = kymo_take_memfd(process, KYMO_WIRE_JUMPS_NAME, remote, &fd, &inode);
	size_t n = 0;

	if (!error && ftruncate(fd, (off_t)size_of(layout)))
		error = kymo_error_errno(errno, "cannot size the memory for jumps");
	if (!error)
		error = map_stretches(shared, process, layout, remote, &n, taken_ret);
	if (!error && !*taken_ret)
		error = check_mapped(process, layout, inode);
	for (size_t i = 0; i < n && error; i++)
		kymo_remote_unmap(process, &(struct kymo_remote_mapping){ .address = layout->stretches.items[i].address,
									  .size = layout->stretches.items[i].size });
	if (!error)
		*fd_ret = kymo_take_fd(fd);
	return error;
}

struct kymo_error *kymo_shared_map_trampolines(struct kymo_shared *shared, struct kymo_process *process,
					       const struct probe_layout *layout, int *fd_ret, bool *taken_ret)
{
	struct kymo_error *error;
	int64_t remote;
	int fd = -1;

	*taken_ret = false;
	if (!layout->stretches.n && !layout->joined.n)
		return NULL;
	error = note_stretches(shared, layout);
	if (error || !layout->stretches.n)
		return error;
	error = kymo_remote_memfd(process, KYMO_WIRE_JUMPS_NAME, &remote);
	if (error)
		return error;
	error = kymo_remote_close(process, remote, map_all(shared, process, layout, remote, &fd, taken_ret));
	if (error && fd >= 0)
		close(fd);
	else if (!error)
		*fd_ret = fd;
	return error;
}

struct kymo_error *kymo_shared_fill_trampolines(int fd, const struct probe_layout *layout)
{
	struct pages pages = { .n = 0 };
	struct kymo_error *error = make_pages(layout, &pages);

	if (!error)
		error = fill(fd, &pages);
	if (!error && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL))
		error = kymo_error_errno(errno, "cannot seal the memory for jumps");
	if (!error)
		error = check_filled(fd, layout, &pages);
	free(pages.at);
	free(pages.bytes);
	return error;
}
