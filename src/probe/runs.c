/*
 * Trampolines: jumps at addresses that puns lead to, each run of pages a private mapping of one more memfd. Private,
 * because who shares a place with another recording changes its trampoline, through /proc/PID/mem like text; of a file,
 * because mappings are known by its name.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "probe/probes.h"

/* Before they are mapped: a death in between leaves entries for nothing. */
static struct kymo_error *note_runs(struct kymo_shared *shared, const struct probe_layout *layout)
{
	uint64_t n = layout->runs.n + layout->joined.n;
	kymo_cleanup_free struct kymo_wire_run *runs = calloc(n, sizeof(*runs));
	int err;

	if (!runs)
		return &kymo_error_no_memory;
	if (n > KYMO_WIRE_MAX_RUNS - shared->n_runs)
		return kymo_error_create(KYMO_ERROR_FAILED, "the probes would need more than %d mappings of jumps",
					 KYMO_WIRE_MAX_RUNS);
	for (size_t i = 0; i < n; i++) {
		const struct probe_run *run =
			i < layout->runs.n ? &layout->runs.items[i] : &layout->joined.items[i - layout->runs.n];

		runs[i] = (struct kymo_wire_run){ run->address, run->size };
	}
	err = kymo_shared_store(shared, kymo_shared_runs_offset() + shared->n_runs * sizeof(*runs), runs,
				n * sizeof(*runs));
	if (err)
		return kymo_error_errno(err, "cannot write the journal");
	shared->n_runs += n;
	__atomic_store_n(&shared->header->n_runs, shared->n_runs, __ATOMIC_RELEASE);
	return NULL;
}

/* A trampoline's jump in the file's contents. False when it can't lead to its pad. */
static bool encode(const struct probe_layout *layout, const struct probe_trampoline *trampoline, uint8_t *bytes)
{
	for (size_t run = 0; run < layout->runs.n; run++) {
		uint64_t at = trampoline->address - layout->runs.items[run].address;

		if (at < layout->runs.items[run].size)
			return !kymo_encode_jump(trampoline->address, trampoline->target,
						 bytes + layout->runs.items[run].at + at);
	}
	return false;
}

static size_t size_of(const struct probe_layout *layout)
{
	const struct probe_run *last = &layout->runs.items[layout->runs.n - 1];

	return last->at + last->size;
}

/* The file's contents: `bytes`, which are zero. A jump may begin on one page and end on the next, of the same run. */
static struct kymo_error *fill(int fd, const struct probe_layout *layout, uint8_t *bytes)
{
	int err;

	if (ftruncate(fd, (off_t)size_of(layout)))
		return kymo_error_errno(errno, "cannot size the memory for jumps");
	for (size_t i = 0; i < layout->trampolines.n; i++)
		if (!encode(layout, &layout->trampolines.items[i], bytes))
			return kymo_error_create(KYMO_ERROR_FAILED, "a jump at 0x%" PRIx64 " cannot lead to its pad",
						 layout->trampolines.items[i].address);
	err = kymo_pwrite_all(fd, bytes, size_of(layout), 0);
	return err ? kymo_error_errno(err, "cannot write the jumps to the pads") : NULL;
}

/* Other threads run: a child that one has forked meanwhile had the descriptor, too. The file is sealed now, and can be
 * looked at. */
static struct kymo_error *check_filled(int fd, const struct probe_layout *layout, const uint8_t *bytes)
{
	kymo_cleanup_free uint8_t *there = malloc(size_of(layout));

	if (!there)
		return &kymo_error_no_memory;
	if (kymo_pread_all(fd, there, size_of(layout), 0) || memcmp(bytes, there, size_of(layout)))
		return kymo_error_create(KYMO_ERROR_UNSAFE,
					 "another program has changed the jumps at 0x%" PRIx64
					 " before they were mapped; nothing was changed in the process",
					 layout->runs.items[0].address);
	return NULL;
}

static struct kymo_error *map_run(struct kymo_process *process, const struct probe_run *run, int64_t fd,
				  bool *taken_ret)
{
	uint64_t args[6] = { run->address, run->size, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED_NOREPLACE,
			     (uint64_t)fd, run->at };
	int64_t result;
	struct kymo_error *error = kymo_remote_syscall(process, SYS_mmap, args, &result);

	if (error || (uint64_t)result == run->address)
		return error;
	if (result == -EEXIST) {
		*taken_ret = true;
		return NULL;
	}
	return kymo_error_errno((int)result, "process %d could not map memory for jumps", kymo_process_pid(process));
}

/* Whether all that was mapped is of the file: a process that shares the table of descriptors may have put another one
 * in its place. */
static struct kymo_error *check_mapped(struct kymo_process *process, const struct probe_layout *layout, int fd)
{
	struct kymo_maps maps;
	struct kymo_error *error = kymo_process_maps(process, &maps);
	struct stat st;
	bool same;

	if (error)
		return error;
	same = !fstat(fd, &st);
	for (size_t i = 0; i < layout->runs.n && same; i++) {
		const struct probe_run *run = &layout->runs.items[i];
		const struct kymo_map *map = kymo_maps_at(&maps, run->address);

		same = map && map->inode == st.st_ino && run->address + run->size <= map->end;
	}
	kymo_maps_deinit(&maps);
	return same ? NULL
		    : kymo_error_create(KYMO_ERROR_UNSAFE,
					"process %d was made to map kymo's jumps, and has something else there; "
					"nothing was changed in its code",
					kymo_process_pid(process));
}

static struct kymo_error *fill_and_map(struct kymo_process *process, const struct probe_layout *layout, int64_t remote,
				       bool *taken_ret)
{
	kymo_cleanup_free uint8_t *bytes = calloc(1, size_of(layout));
	kymo_cleanup_close int fd = -1;
	struct kymo_error *error =
		bytes ? kymo_take_memfd(process, KYMO_WIRE_JUMPS_NAME, remote, &fd) : &kymo_error_no_memory;
	size_t n = 0;

	if (error)
		return error;
	error = fill(fd, layout, bytes);
	if (!error && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL))
		error = kymo_error_errno(errno, "cannot seal the memory for jumps");
	if (!error)
		error = check_filled(fd, layout, bytes);
	for (; n < layout->runs.n && !error && !*taken_ret; n += !error && !*taken_ret)
		error = map_run(process, &layout->runs.items[n], remote, taken_ret);
	if (!error && !*taken_ret)
		error = check_mapped(process, layout, fd);
	for (size_t i = 0; i < n && error; i++)
		kymo_remote_unmap(process, &(struct kymo_remote_mapping){ .address = layout->runs.items[i].address,
									  .size = layout->runs.items[i].size });
	return error;
}

struct kymo_error *kymo_shared_map_runs(struct kymo_shared *shared, struct kymo_process *process,
					const struct probe_layout *layout, bool *taken_ret)
{
	struct kymo_error *error;
	int64_t fd;

	*taken_ret = false;
	if (!layout->runs.n && !layout->joined.n)
		return NULL;
	error = note_runs(shared, layout);
	if (error || !layout->runs.n)
		return error;
	error = kymo_remote_memfd(process, KYMO_WIRE_JUMPS_NAME, &fd);
	if (error)
		return error;
	return kymo_remote_close(process, fd, fill_and_map(process, layout, fd, taken_ret));
}
