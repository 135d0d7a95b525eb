/*
 * Order: text first, then wait, then memory. After the text is restored no thread enters a pad; those that are inside leave by
 * themselves within nanoseconds, unless a signal handler runs on top of them. Pads stay mapped until every program
 * counter and every saved one on a stack is elsewhere.
 */
#include "probe/remove.h"

#include <errno.h>
#include <dirent.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "probe/probes.h"

#define MEMFD_PATH "/memfd:" KYMO_WIRE_MEMFD_NAME
#define DRAIN_TRIES 12		/* about two seconds, with pauses that grow by half */
#define MAX_LEFT 8
#define DRAIN_PAUSE_NS 5000000
#define STOP_PATIENCE_NS 1000000000u
#define STOP_PAUSE_NS 10000000

/* ---- reading what is there ----------------------------------------------------------------------------------------- */

static bool is_ours(const struct kymo_map *map)
{
	return !strcmp(map->path, MEMFD_PATH);
}

static struct kymo_error *read_journal(struct kymo_process *process, struct kymo_remains *remains)
{
	const struct kymo_wire_header *header = &remains->header;
	int err;

	remains->sites = calloc(header->n_sites ? header->n_sites : 1, sizeof(*remains->sites));
	if (!remains->sites)
		return &kymo_error_no_memory;
	err = kymo_process_read(process, header->address + header->journal_offset, remains->sites,
				header->n_sites * sizeof(*remains->sites));
	if (err)
		return kymo_error_errno(err, "cannot read kymo's journal in process %d", kymo_process_pid(process));
	remains->n_sites = header->n_sites;
	for (size_t i = 0; i < remains->n_sites; i++)
		remains->sites[i].name[sizeof(remains->sites[i].name) - 1] = '\0';
	remains->header.directory[sizeof(remains->header.directory) - 1] = '\0';
	return NULL;
}

static struct kymo_error *read_header(struct kymo_process *process, const struct kymo_map *map, struct kymo_remains *remains)
{
	int err = kymo_process_read(process, map->start, &remains->header, sizeof(remains->header));

	if (err)
		return kymo_error_errno(err, "cannot read kymo's memory in process %d", kymo_process_pid(process));
	if (remains->header.magic != KYMO_WIRE_MAGIC)
		return NULL;	/* a recorder that died before it had written anything */
	if (remains->header.version != KYMO_WIRE_VERSION)
		return kymo_error_create(KYMO_ERROR_BAD_DATA,
					 "process %d holds probes of another version of kymo (layout %u, this is %u); use that one to detach",
					 kymo_process_pid(process), remains->header.version, KYMO_WIRE_VERSION);
	if (remains->header.recorder_pid == (uint32_t)remains->pid && remains->header.target_pid != (uint32_t)remains->pid) {
		remains->is_recorder = true;
		return NULL;
	}
	if (!kymo_wire_header_is_sane(&remains->header, map->start, map->end - map->start))
		return kymo_error_create(KYMO_ERROR_BAD_DATA, "kymo's memory in process %d is damaged; nothing was touched",
					 kymo_process_pid(process));
	remains->has_header = true;
	remains->inode = map->inode;
	return read_journal(process, remains);
}

/* The next descriptor of kymo's memory in the process behind `fd`, or -1. Only a recorder that died between memfd_create and close leaves one. */
static int next_descriptor(pid_t pid, int fd)
{
	struct dirent *entry;
	char name[64];
	int next = -1;
	DIR *fds;

	snprintf(name, sizeof(name), "/proc/%d/fd", pid);
	fds = opendir(name);
	while (fds && (entry = readdir(fds))) {
		int number = (int)strtol(entry->d_name, NULL, 10);
		char to[sizeof(MEMFD_PATH " (deleted)")];
		ssize_t n = readlinkat(dirfd(fds), entry->d_name, to, sizeof(to));

		if (n == sizeof(to) - 1 && !memcmp(to, MEMFD_PATH " (deleted)", (size_t)n) && number > fd &&
		    (next < 0 || number < next))
			next = number;
	}
	if (fds)
		closedir(fds);
	return next;
}

struct kymo_error *kymo_remains_read(struct kymo_process *process, struct kymo_remains *ret)
{
	struct kymo_remains remains = {
		.pid = kymo_process_pid(process),
		.found = next_descriptor(kymo_process_pid(process), -1) >= 0,
	};
	struct kymo_maps maps;
	struct kymo_error *error = kymo_maps_read(kymo_process_pid(process), &maps);

	if (error)
		return error;
	for (size_t i = 0; i < maps.n && !error && !remains.has_header; i++) {
		if (!is_ours(&maps.items[i]))
			continue;
		remains.found = true;
		if (maps.items[i].offset == 0 && maps.items[i].writable)
			error = read_header(process, &maps.items[i], &remains);
	}
	if (remains.is_recorder)
		remains.found = false;
	kymo_maps_deinit(&maps);
	if (error) {
		kymo_remains_deinit(&remains);
		return error;
	}
	*ret = remains;
	return NULL;
}

void kymo_remains_deinit(struct kymo_remains *remains)
{
	free(remains->sites);
	*remains = (struct kymo_remains){ .found = false };
}

/* The recorder has the memfd mapped; a header that names somebody else is not believed. */
static bool has_mapped(pid_t pid, uint64_t inode)
{
	struct kymo_maps maps;
	struct kymo_error *error = kymo_maps_read(pid, &maps);
	bool found = false;

	if (error) {
		kymo_error_destroy(error);
		return false;
	}
	for (size_t i = 0; i < maps.n; i++)
		found |= is_ours(&maps.items[i]) && maps.items[i].inode == inode;
	kymo_maps_deinit(&maps);
	return found;
}

bool kymo_remains_have_recorder(const struct kymo_remains *remains)
{
	struct kymo_process_info info;
	struct kymo_error *error;
	bool alive;

	/* A forked child has the header of its parent. */
	if (!remains->has_header || !remains->header.recorder_pid || remains->header.target_pid != (uint32_t)remains->pid)
		return false;
	error = kymo_process_info((pid_t)remains->header.recorder_pid, &info);
	alive = !error && info.start_time == remains->header.recorder_start && info.state != 'Z' &&
		has_mapped((pid_t)remains->header.recorder_pid, remains->inode);
	kymo_error_destroy(error);
	return alive;
}

/* ---- text ---------------------------------------------------------------------------------------------------------- */

static struct kymo_error *restore_site(struct kymo_process *process, const struct kymo_maps *maps,
				       const struct kymo_wire_site *site, struct kymo_detach_result *result, size_t *foreign)
{
	const struct kymo_map *map = kymo_maps_at(maps, site->address);
	uint8_t now[KYMO_WIRE_PATCH];
	int err = kymo_process_read(process, site->address, now, sizeof(now));

	if (err || !map || map->inode != site->inode) {	/* the library was unloaded; something else may be there */
		result->sites_clean++;
		return NULL;
	}
	if (!memcmp(now, site->original, sizeof(now))) {
		result->sites_clean++;
		return NULL;
	}
	if (memcmp(now, site->patched, sizeof(now))) {
		++*foreign;
		return NULL;
	}
	err = kymo_process_write(process, site->address, site->original, sizeof(site->original));
	if (err)
		return kymo_error_errno(err, "cannot restore the code at 0x%" PRIx64 " (%s)", site->address, site->name);
	result->sites_restored++;
	return NULL;
}

static struct kymo_error *restore_text(struct kymo_process *process, const struct kymo_maps *maps,
				       const struct kymo_remains *remains, struct kymo_detach_result *result)
{
	struct kymo_error *error = NULL;
	size_t foreign = 0;

	for (size_t i = 0; i < remains->n_sites && !error; i++)
		error = restore_site(process, maps, &remains->sites[i], result, &foreign);
	if (!error && foreign)
		error = kymo_error_create(KYMO_ERROR_UNSAFE,
					  "%zu places in the code of process %d hold bytes that neither kymo nor the file put there; they and the pads are left as they are",
					  foreign, kymo_process_pid(process));
	return error;
}

/* Compare the pages that were patched with the file. The bytes come from a copy-on-write page, so this is the proof. */
static void verify_page(struct kymo_process *process, const struct kymo_maps *maps, uint64_t page,
			struct kymo_detach_result *result, size_t *different)
{
	const struct kymo_map *map = kymo_maps_at(maps, page);
	uint8_t memory[4096], file[4096];
	struct kymo_error *error;
	int fd;

	if (!map || map->path[0] != '/')
		return;
	error = kymo_open_mapped(kymo_process_pid(process), map, &fd);
	if (error) {
		kymo_error_destroy(error);
		return;
	}
	/* The last page of a file may be short; the kernel fills it with zeros. */
	memset(file, 0, sizeof(file));
	if (!kymo_process_read(process, page, memory, sizeof(memory)) &&
	    pread(fd, file, sizeof(file), (off_t)(map->offset + (page - map->start))) > 0) {
		result->pages_verified++;
		*different += memcmp(memory, file, sizeof(file)) != 0;
	}
	close(fd);
}

static void verify_text(struct kymo_process *process, const struct kymo_maps *maps, const struct kymo_remains *remains,
			struct kymo_detach_result *result)
{
	uint64_t last = 0;
	size_t different = 0;

	for (size_t i = 0; i < remains->n_sites; i++) {
		uint64_t page = remains->sites[i].address & ~(uint64_t)4095;

		if (page != last)
			verify_page(process, maps, page, result, &different);
		last = page;
	}
	if (different && asprintf(&result->note,
				  "%zu text pages differ from their file although every probe is out: something else changed them",
				  different) < 0)
		result->note = NULL;
}

/* ---- memory -------------------------------------------------------------------------------------------------------- */

static bool is_in_pads(uint64_t pc, void *data)
{
	const struct kymo_maps *maps = data;
	const struct kymo_map *map = kymo_maps_at(maps, pc);

	return map && map->executable && is_ours(map);
}

/* Mappings of kymo's, without those of another memfd than the journal's. */
static bool is_of(const struct kymo_remains *remains, const struct kymo_map *map)
{
	return is_ours(map) && (!remains->has_header || map->inode == remains->inode);
}

/* Whether some thread stands in a pad or would return to one. */
static bool is_anyone_in_pads(struct kymo_process *process, struct kymo_maps *maps)
{
	const struct kymo_thread *threads;
	pid_t tid;
	size_t n;

	threads = kymo_process_threads(process, &n);
	for (size_t i = 0; i < n; i++)
		if (is_in_pads(threads[i].registers.rip, maps))
			return true;
	return probes_find_saved_pc(process, maps, is_in_pads, maps, &tid) != 0;
}

static struct kymo_error *unmap(struct kymo_process *process, uint64_t address, uint64_t size, struct kymo_detach_result *result)
{
	uint64_t args[6] = { address, size };
	int64_t unmapped;
	struct kymo_error *error = kymo_remote_syscall(process, SYS_munmap, args, &unmapped);

	if (!error && unmapped)
		error = kymo_error_errno((int)unmapped, "process %d could not unmap kymo's memory", kymo_process_pid(process));
	if (!error)
		result->mappings_removed++;
	return error;
}

/* The live page is anonymous: kymo's if it lies between two mappings of kymo's that touch it and is one page long. */
static bool is_live_page(const struct kymo_maps *maps, size_t i)
{
	const struct kymo_map *map = &maps->items[i];

	return i > 0 && i + 1 < maps->n && !*map->path && map->end - map->start == 4096 && map->writable && !map->shared &&
	       is_ours(&maps->items[i - 1]) && maps->items[i - 1].end == map->start && is_ours(&maps->items[i + 1]) &&
	       maps->items[i + 1].start == map->end;
}

/* Live pages are known by their neighbours, all else by the journal: so in this order, for a death in between. */
enum remove_order { LIVE_PAGES, PADS, JOURNAL, N_ORDER, NOT_OURS };

static enum remove_order order_of(const struct kymo_remains *remains, const struct kymo_maps *maps, size_t i)
{
	if (is_live_page(maps, i) && is_of(remains, &maps->items[i - 1]))
		return LIVE_PAGES;
	if (!is_of(remains, &maps->items[i]))
		return NOT_OURS;
	return maps->items[i].writable ? JOURNAL : PADS;
}

static struct kymo_error *unmap_all(struct kymo_process *process, const struct kymo_remains *remains, const struct kymo_maps *maps,
				    struct kymo_detach_result *result)
{
	struct kymo_error *error = NULL;

	for (enum remove_order order = LIVE_PAGES; order < N_ORDER; order++)
		for (size_t i = 0; i < maps->n && !error; i++)
			if (order_of(remains, maps, i) == order)
				error = unmap(process, maps->items[i].start, maps->items[i].end - maps->items[i].start,
					      result);
	return error;
}

static struct kymo_error *close_descriptors(struct kymo_process *process)
{
	struct kymo_error *error = NULL;
	pid_t pid = kymo_process_pid(process);

	for (int fd = next_descriptor(pid, -1); fd >= 0 && !error; fd = next_descriptor(pid, fd)) {
		int64_t result;

		error = kymo_remote_syscall(process, SYS_close, (uint64_t[6]){ (uint64_t)fd }, &result);
	}
	return error;
}

static struct kymo_error *unmap_and_close(struct kymo_process *process, const struct kymo_remains *remains,
					  const struct kymo_maps *maps,
					  struct kymo_detach_result *result)
{
	struct kymo_error *error = kymo_remote_begin(process), *ending;

	if (error)
		return error;
	error = close_descriptors(process);
	if (!error)
		error = unmap_all(process, remains, maps, result);
	ending = kymo_remote_end(process);
	if (error) {
		kymo_error_destroy(ending);
		return error;
	}
	return ending;
}

/* ---- all of it ------------------------------------------------------------------------------------------------------ */

/* One try, the process stopped. */
static struct kymo_error *remove_stopped(struct kymo_process *process, const struct kymo_remains *remains, bool is_first,
					 struct kymo_detach_result *result, bool *done_ret)
{
	struct kymo_error *error = NULL;
	struct kymo_maps maps;

	*done_ret = false;
	error = kymo_maps_read(kymo_process_pid(process), &maps);
	if (error)
		return error;
	if (is_first)
		error = restore_text(process, &maps, remains, result);
	if (!error && is_first)
		verify_text(process, &maps, remains, result);
	if (!error && !is_anyone_in_pads(process, &maps)) {
		error = unmap_and_close(process, remains, &maps, result);
		*done_ret = true;
	}
	kymo_maps_deinit(&maps);
	return error;
}

/* Read with the process stopped, so that nobody can begin to record it meanwhile. */
static struct kymo_error *read_for_removal(struct kymo_process *process, struct kymo_remains *ret)
{
	struct kymo_remains remains;
	struct kymo_error *error = kymo_remains_read(process, &remains);

	if (error)
		return error;
	if (kymo_remains_have_recorder(&remains) && (pid_t)remains.header.recorder_pid != getpid()) {
		error = kymo_error_create(KYMO_ERROR_BUSY, "process %d is being recorded by kymo process %u", remains.pid,
					  remains.header.recorder_pid);
		kymo_remains_deinit(&remains);
		return error;
	}
	*ret = remains;
	return NULL;
}

/* Stop it, also when another tracer is there for a moment: another kymo that finds it recorded is one. */
static struct kymo_error *stop_patiently(struct kymo_process *process)
{
	uint64_t deadline = kymo_now_ns() + STOP_PATIENCE_NS;

	for (;;) {
		struct kymo_error *error = kymo_process_stop(process);

		if (!error || error->code != KYMO_ERROR_BUSY || kymo_now_ns() > deadline)
			return error;
		kymo_error_destroy(error);
		nanosleep(&(struct timespec){ 0, STOP_PAUSE_NS }, NULL);
	}
}

static struct kymo_error *remove_one(struct kymo_process *process, bool *found_ret, struct kymo_detach_result *result)
{
	struct kymo_remains remains = { .found = false };
	struct kymo_error *error = NULL;
	uint64_t pause_ns = DRAIN_PAUSE_NS;
	bool done = false;

	for (int i = 0; i < DRAIN_TRIES && !done && !error; i++) {
		if (i) {
			nanosleep(&(struct timespec){ 0, (long)pause_ns }, NULL);
			pause_ns = pause_ns * 3 / 2;
		}
		error = stop_patiently(process);
		if (!error && !i)
			error = read_for_removal(process, &remains);
		if (!error && remains.found)
			error = remove_stopped(process, &remains, i == 0, result, &done);
		else
			done = true;
		kymo_process_resume(process);
	}
	*found_ret = remains.found;
	result->pads_left = !done;
	kymo_remains_deinit(&remains);
	return error;
}

struct kymo_error *kymo_remove(struct kymo_process *process, struct kymo_detach_result *ret)
{
	struct kymo_detach_result result = { .sites_restored = 0 };
	struct kymo_remains remains;
	struct kymo_error *error = kymo_remains_read(process, &remains);
	bool found;

	if (error)
		return error;
	found = remains.found;
	kymo_remains_deinit(&remains);
	if (found)
		error = kymo_process_check_alone(process);
	/* One is what there is. More than one is left by recorders that died while they cleared up after each other. */
	for (int i = 0; i < MAX_LEFT && found && !error && !result.pads_left; i++)
		error = remove_one(process, &found, &result);
	if (error) {
		free(result.note);
		return error;
	}
	*ret = result;
	return NULL;
}
