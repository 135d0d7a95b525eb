/* What kymo has in a process, read from outside. Nothing of it is trusted. */
#include "probe/remains.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "arch/pad.h"
#include "base/cleanup.h"
#include "base/vec.h"

#define MAX_RECORDINGS 64
#define LOWEST 4096u
#define HIGHEST (((uint64_t)1 << 47) - 65536)

bool kymo_is_shared_map(const struct kymo_map *map)
{
	return kymo_wire_is_shared_path(map->path);
}

bool kymo_is_jumps_map(const struct kymo_map *map)
{
	return !strcmp(map->path, KYMO_WIRE_JUMPS_PATH);
}

static bool is_ours(const char *link, size_t size)
{
	static const char *const names[] = { KYMO_WIRE_MEMFD_PATH " (deleted)", KYMO_WIRE_JUMPS_PATH " (deleted)" };

	for (size_t i = 0; i < 2; i++)
		if (size == strlen(names[i]) && !memcmp(link, names[i], size))
			return true;
	return false;
}

int kymo_next_descriptor(pid_t pid, int fd)
{
	struct dirent *entry;
	char name[64];
	int next = -1;
	DIR *fds;

	snprintf(name, sizeof(name), "/proc/%d/fd", pid);
	fds = opendir(name);
	while (fds && (entry = readdir(fds))) {
		int number = (int)strtol(entry->d_name, NULL, 10);
		char to[64];
		ssize_t n = readlinkat(dirfd(fds), entry->d_name, to, sizeof(to));

		if (n > 0 && is_ours(to, (size_t)n) && number > fd && (next < 0 || number < next))
			next = number;
	}
	if (fds)
		closedir(fds);
	return next;
}

/* A table of the shared memory. */
static struct kymo_error *read_table(struct kymo_process *process, uint64_t address, size_t n, size_t size, void **ret)
{
	void *items = calloc(n ? n : 1, size);
	int err;

	if (!items)
		return &kymo_error_no_memory;
	err = n ? kymo_process_read(process, address, items, n * size) : 0;
	if (err == -EIO) {	/* likewise */
		memset(items, 0, n * size);
		err = 0;
	}
	if (err) {
		free(items);
		return kymo_error_errno(err, "cannot read kymo's journal in process %d", kymo_process_pid(process));
	}
	*ret = items;
	return NULL;
}

static void remains_deinit(struct kymo_remains *remains)
{
	free(remains->sites);
	free(remains->runs);
}

static struct kymo_error *read_tables(struct kymo_process *process, struct kymo_remains *remains)
{
	const struct kymo_wire_header *header = &remains->header;
	struct kymo_error *error;
	uint8_t state = 0;

	error = read_table(process, header->address + header->journal_offset, header->n_sites, sizeof(*remains->sites),
			   (void **)&remains->sites);
	if (!error)
		error = read_table(process, header->address + header->runs_offset, header->n_runs, sizeof(*remains->runs),
				   (void **)&remains->runs);
	if (error) {
		remains_deinit(remains);
		return error;
	}
	remains->n_sites = header->n_sites;
	remains->n_runs = header->n_runs;
	for (size_t i = 0; i < remains->n_sites; i++)
		if (remains->sites[i].address - LOWEST >= HIGHEST)
			memset(&remains->sites[i], 0, sizeof(remains->sites[i]));	/* no address of a program */
	for (size_t i = 0; i < remains->n_sites; i++)
		remains->sites[i].name[sizeof(remains->sites[i].name) - 1] = '\0';
	remains->header.directory[sizeof(remains->header.directory) - 1] = '\0';
	remains->is_adopted = header->n_regions && !kymo_process_read(process, header->regions[0].live, &state, 1) && state;
	return NULL;
}

/* `found_ret`: there is a recording in the mapping, and it is not the memory of a recorder itself. */
static struct kymo_error *read_header(struct kymo_process *process, const struct kymo_map *map, bool whole, struct kymo_remains *remains,
				      bool *found_ret)
{
	uint32_t pid = (uint32_t)kymo_process_pid(process);
	int err = kymo_process_read(process, map->start, &remains->header, sizeof(remains->header));

	*found_ret = false;
	if (err == -EIO || err == -ENOMEM)	/* unmapped meanwhile: another recorder has left */
		return NULL;
	if (err)
		return kymo_error_errno(err, "cannot read kymo's memory in process %u", pid);
	if (remains->header.magic != KYMO_WIRE_MAGIC)	/* a recorder that died before it had written anything */
		return NULL;
	if (remains->header.version != KYMO_WIRE_VERSION)
		return kymo_error_create(KYMO_ERROR_BAD_DATA,
					 "process %u holds probes of another version of kymo (layout %u, this is %u); use that one to detach",
					 pid, remains->header.version, KYMO_WIRE_VERSION);
	if (remains->header.recorder_pid == pid && remains->header.target_pid != pid)
		return NULL;
	if (!kymo_wire_header_is_sane(&remains->header, map->start, map->end - map->start))
		return kymo_error_create(KYMO_ERROR_BAD_DATA, "kymo's memory in process %u is damaged; nothing was touched", pid);
	remains->inode = map->inode;
	*found_ret = true;
	return whole ? read_tables(process, remains) : NULL;
}

static bool is_listed(const struct kymo_remains_list *list, uint64_t inode)
{
	for (size_t i = 0; i < list->n; i++)
		if (list->items[i].inode == inode)
			return true;
	return false;
}

/* A recorder that is recorded itself has memory of both kinds. */
static bool is_recorders(const struct kymo_maps *maps, struct kymo_process *process, uint64_t inode)
{
	for (size_t i = 0; i < maps->n; i++) {
		struct kymo_wire_header header;

		if (!kymo_is_shared_map(&maps->items[i]) || maps->items[i].inode != inode || maps->items[i].offset ||
		    !maps->items[i].writable || kymo_process_read(process, maps->items[i].start, &header, sizeof(header)))
			continue;
		return header.magic == KYMO_WIRE_MAGIC && header.recorder_pid == (uint32_t)kymo_process_pid(process) &&
		       header.target_pid != header.recorder_pid;
	}
	return false;
}

static bool has_strays(struct kymo_process *process, const struct kymo_maps *maps, const struct kymo_remains_list *list)
{
	for (size_t i = 0; i < maps->n; i++)
		if (kymo_is_shared_map(&maps->items[i]) && !is_listed(list, maps->items[i].inode) &&
		    !is_recorders(maps, process, maps->items[i].inode))
			return true;
	return false;
}

static struct kymo_error *read_all(struct kymo_process *process, const struct kymo_maps *maps, bool whole, struct kymo_remains_list *list)
{
	KYMO_VEC(struct kymo_remains) found = { 0 };
	struct kymo_error *error = NULL;

	for (size_t i = 0; i < maps->n && !error; i++) {
		struct kymo_remains remains = { .inode = 0 };
		bool is_one;

		if (!kymo_is_shared_map(&maps->items[i]) || maps->items[i].offset || !maps->items[i].writable)
			continue;
		if (found.n == MAX_RECORDINGS)
			error = kymo_error_create(KYMO_ERROR_BUSY, "process %d has more than %d recordings", list->pid, MAX_RECORDINGS);
		else
			error = read_header(process, &maps->items[i], whole, &remains, &is_one);
		if (!error && is_one && !kymo_vec_push(&found, remains)) {
			remains_deinit(&remains);
			error = &kymo_error_no_memory;
		}
	}
	list->items = found.items;
	list->n = found.n;
	return error;
}

static struct kymo_error *read_list(struct kymo_process *process, bool whole, struct kymo_remains_list *ret)
{
	struct kymo_remains_list list = { .pid = kymo_process_pid(process) };
	struct kymo_maps maps;
	struct kymo_error *error = kymo_maps_read(list.pid, &maps);

	if (error)
		return error;
	error = read_all(process, &maps, whole, &list);
	if (!error && whole)
		list.has_strays = has_strays(process, &maps, &list) ||
				  (kymo_next_descriptor(list.pid, -1) >= 0 && list.pid != getpid());
	kymo_maps_deinit(&maps);
	if (error) {
		kymo_remains_deinit(&list);
		return error;
	}
	*ret = list;
	return NULL;
}

struct kymo_error *kymo_remains_read(struct kymo_process *process, struct kymo_remains_list *ret)
{
	return read_list(process, true, ret);
}

struct kymo_error *kymo_remains_read_headers(struct kymo_process *process, struct kymo_remains_list *ret)
{
	return read_list(process, false, ret);
}

void kymo_remains_deinit(struct kymo_remains_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		remains_deinit(&list->items[i]);
	free(list->items);
	*list = (struct kymo_remains_list){ .pid = 0 };
}

/* A recorder has the memfd mapped: a header that names somebody else is not believed. `unknown_ret`: this user may not look at that process. */
static bool has_mapped(pid_t pid, uint64_t inode, bool *unknown_ret)
{
	struct kymo_maps maps;
	struct kymo_error *error = kymo_maps_read(pid, &maps);
	bool found = false;

	*unknown_ret = error && error->code == KYMO_ERROR_PERMISSION;
	if (error) {
		kymo_error_destroy(error);
		return false;
	}
	for (size_t i = 0; i < maps.n; i++)
		found |= kymo_is_shared_map(&maps.items[i]) && maps.items[i].inode == inode;
	kymo_maps_deinit(&maps);
	return found;
}

/* Of one that this user may not look at, its start time must do. */
static bool may_be_recorder(pid_t pid, uint64_t inode)
{
	bool unknown, found = has_mapped(pid, inode, &unknown);

	return found || unknown;
}

bool kymo_remains_know_recorder(const struct kymo_remains *remains)
{
	bool unknown;

	return has_mapped((pid_t)remains->header.recorder_pid, remains->inode, &unknown);
}

bool kymo_remains_have_recorder(const struct kymo_remains *remains, pid_t pid)
{
	const struct kymo_wire_header *header = &remains->header;
	struct kymo_process_info info;
	struct kymo_error *error;
	bool alive;

	/* A forked child has the header of its parent. */
	if (!header->recorder_pid || (header->target_pid != (uint32_t)pid && !remains->is_adopted))
		return false;
	error = kymo_process_info((pid_t)header->recorder_pid, &info);
	alive = !error && info.start_time == header->recorder_start && info.state != 'Z' &&
		may_be_recorder((pid_t)header->recorder_pid, remains->inode);
	kymo_error_destroy(error);
	return alive;
}

bool kymo_remains_have_guards(struct kymo_process *process, const struct kymo_remains *remains)
{
	for (size_t i = 0; i < remains->n_sites; i++) {
		const struct kymo_wire_site *site = &remains->sites[i];
		uint8_t now[KYMO_JUMP_SIZE];

		if (site->flags & KYMO_WIRE_GUARD && !kymo_process_read(process, site->address, now, sizeof(now)) &&
		    !memcmp(now, site->patched, sizeof(now)))
			return true;
	}
	return false;
}
