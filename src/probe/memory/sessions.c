/* What kymo has in a process, read from outside. Nothing of it is trusted. */
#include "probe/memory/sessions.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "arch/pad.h"
#include "base/cleanup.h"
#include "base/page.h"
#include "base/vec.h"
#include "probe/memory/program.h"
#include "proc/memory.h"
#include "proc/process.h"
#include "procfs/info.h"
#include "procfs/maps.h"
#include "wire/clones.h"

#define MAX_RECORDINGS 64
#define LOWEST 4096u
#define HIGHEST (((uint64_t)1 << 47) - 65536)

bool kymo_is_shared_map(const struct kymo_map *map)
{
	return kymo_wire_is_shared_path(map->path) && kymo_is_memfd(map);
}

bool kymo_is_data_map(const struct kymo_map *map)
{
	return kymo_wire_is_data_path(map->path) && kymo_is_memfd(map);
}

bool kymo_is_jumps_map(const struct kymo_map *map)
{
	return !strcmp(map->path, KYMO_WIRE_JUMPS_PATH) && kymo_is_memfd(map);
}

bool kymo_is_arena_map(const struct kymo_map *map)
{
	return !strcmp(map->path, KYMO_WIRE_ARENA_PATH) && kymo_is_memfd(map);
}

static bool is_pads(const struct kymo_map *map, uint64_t inode)
{
	return kymo_is_shared_map(map) && map->inode == inode && map->executable;
}

bool kymo_is_live_page(const struct kymo_maps *maps, size_t i, uint64_t inode)
{
	const struct kymo_map *map = &maps->items[i];

	return i > 0 && i + 1 < maps->n && !*map->path && map->end - map->start == KYMO_PAGE_SIZE && map->writable &&
	       !map->shared && is_pads(map - 1, inode) && map[-1].end == map->start && is_pads(map + 1, inode) &&
	       map[1].start == map->end;
}

static bool is_ours(const char *link, size_t size)
{
	static const char *const names[] = { KYMO_WIRE_MEMFD_PATH " (deleted)", KYMO_WIRE_DATA_PATH " (deleted)",
					     KYMO_WIRE_JUMPS_PATH " (deleted)", KYMO_WIRE_ARENA_PATH " (deleted)" };

	for (size_t i = 0; i < kymo_countof(names); i++)
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
	if (err == -EIO) { /* likewise */
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

static void session_deinit(struct kymo_session *session)
{
	free(session->sites);
	free(session->trampolines);
}

/* What the words say now, into the journal's copy. Without them (a removal that died had got as far) the text is
 * restored. */
struct kymo_error *kymo_session_read_words(struct kymo_process *process, struct kymo_session *session)
{
	kymo_cleanup_free uint64_t *words = calloc(session->n_sites ? session->n_sites : 1, sizeof(*words));
	int err;

	if (!words)
		return &kymo_error_no_memory;
	err = session->words && session->n_sites ? kymo_process_read(process, session->words + kymo_wire_word_offset(0),
								     words, session->n_sites * sizeof(*words))
						 : 0;
	if (err && err != -EIO)
		return kymo_error_errno(err, "cannot read kymo's journal in process %d", kymo_process_pid(process));
	for (size_t i = 0; i < session->n_sites; i++) {
		struct kymo_wire_site *site = &session->sites[i];

		if (site->flags & KYMO_WIRE_SWITCH)
			site->state = site->flags & KYMO_WIRE_GATE ? site->state : (uint32_t)words[i];
		else if (site->hop)
			site->next = words[i];
	}
	return NULL;
}

static struct kymo_error *read_tables(struct kymo_process *process, struct kymo_session *session)
{
	const struct kymo_wire_header *header = &session->header;
	struct kymo_error *error;
	uint8_t state = 0;

	error = read_table(process, header->address + header->journal_offset, header->n_sites, sizeof(*session->sites),
			   (void **)&session->sites);
	if (!error)
		error = read_table(process, header->address + header->trampolines_offset, header->n_trampolines,
				   sizeof(*session->trampolines), (void **)&session->trampolines);
	if (error) {
		session_deinit(session);
		return error;
	}
	session->n_sites = header->n_sites;
	session->n_trampolines = header->n_trampolines;
	for (size_t i = 0; i < session->n_sites; i++)
		if (session->sites[i].address - LOWEST >= HIGHEST)
			memset(&session->sites[i], 0, sizeof(session->sites[i])); /* no address of a program */
	for (size_t i = 0; i < session->n_sites; i++)
		session->sites[i].name[sizeof(session->sites[i].name) - 1] = '\0';
	session->header.directory[sizeof(session->header.directory) - 1] = '\0';
	error = kymo_session_read_words(process, session);
	if (error) {
		session_deinit(session);
		return error;
	}
	session->is_adopted =
		header->n_regions && !kymo_process_read(process, header->regions[0].live, &state, 1) && state;
	return NULL;
}

/* The words follow the journal, in a mapping of this process alone. */
static uint64_t find_words(const struct kymo_maps *maps, const struct kymo_session *session)
{
	const uint64_t address = session->header.address + session->header.size;
	const struct kymo_map *map = kymo_maps_at(maps, address);

	return map && map->start == address && kymo_is_shared_map(map) && map->inode == session->inode &&
			       !map->shared && !map->executable &&
			       map->end - map->start == kymo_wire_words_size(session->header.journal_capacity)
		       ? address
		       : 0;
}

static void find_data(const struct kymo_maps *maps, struct kymo_session *session)
{
	const struct kymo_map *map = kymo_maps_at(maps, session->header.data_address);

	if (!map || map->start != session->header.data_address || !kymo_is_data_map(map) || !map->shared ||
	    !map->writable || map->end - map->start < KYMO_WIRE_RINGS_OFFSET)
		return;
	session->data = map->start;
	session->data_inode = map->inode;
}

/* Of the recorder's process; a forked child has memory of its own there. */
static void find_arena(const struct kymo_maps *maps, struct kymo_session *session)
{
	const struct kymo_map *map = kymo_maps_at(maps, session->header.arena_address);

	if (session->header.arena_address % KYMO_WIRE_ARENA_ALIGN || !map || map->executable || !map->writable ||
	    (*map->path && !kymo_is_arena_map(map)))
		return;
	session->arena = session->header.arena_address;
}

/* Addresses that are written to are those of kymo's mappings, or 0. */
static void find_memory(struct kymo_process *process, const struct kymo_maps *maps, struct kymo_session *session)
{
	struct kymo_wire_header *header = &session->header;
	struct kymo_wire_words words;

	session->words = find_words(maps, session);
	find_data(maps, session);
	find_arena(maps, session);
	for (uint32_t i = 0; i < header->n_regions; i++) {
		const struct kymo_map *map = kymo_maps_at(maps, header->regions[i].live);

		if (!map || map->start != header->regions[i].live ||
		    !kymo_is_live_page(maps, (size_t)(map - maps->items), session->inode))
			header->regions[i].live = 0;
	}
	if (!header->n_regions || header->vforks != header->regions[0].live + KYMO_PAD_LIVE_VFORK_LIST)
		header->vforks = 0;
	if (session->words && !kymo_process_read(process, session->words, &words, sizeof(words))) {
		header->generation += words.generation;
		session->is_leaving = words.is_leaving;
	}
}

/* `found_ret`: there is a recording in the mapping, and it is not the memory of a recorder itself. */
static struct kymo_error *read_header(struct kymo_process *process, const struct kymo_maps *maps,
				      const struct kymo_map *map, bool whole, struct kymo_session *session,
				      bool *found_ret)
{
	uint32_t pid = (uint32_t)kymo_process_pid(process);
	int err = kymo_process_read(process, map->start, &session->header, sizeof(session->header));

	*found_ret = false;
	if (map->writable) /* a recorder's own: no target can make its mapping writable */
		return NULL;
	if (err == -EIO || err == -ENOMEM) /* unmapped meanwhile: another recorder has left */
		return NULL;
	if (err)
		return kymo_error_errno(err, "cannot read kymo's memory in process %u", pid);
	if (session->header.magic != KYMO_WIRE_MAGIC) /* a recorder that died before it had written anything */
		return NULL;
	if (session->header.version != KYMO_WIRE_VERSION)
		return kymo_error_create(KYMO_ERROR_BAD_DATA,
					 "process %u holds probes of another version of kymo (layout %u, this is %u); "
					 "use that version to detach",
					 pid, session->header.version, KYMO_WIRE_VERSION);
	if (!kymo_wire_header_is_sane(&session->header, map->start, map->end - map->start))
		return kymo_error_create(KYMO_ERROR_BAD_DATA,
					 "kymo's memory in process %u is damaged; nothing was touched", pid);
	session->inode = map->inode;
	find_memory(process, maps, session);
	*found_ret = true;
	return whole ? read_tables(process, session) : NULL;
}

static bool is_listed(const struct kymo_session_list *list, uint64_t inode)
{
	for (size_t i = 0; i < list->n; i++)
		if (list->items[i].inode == inode)
			return true;
	return false;
}

/* The data of some recording. */
static bool has_data(const struct kymo_session_list *list, uint64_t address)
{
	for (size_t i = 0; i < list->n; i++)
		if (list->items[i].data == address)
			return true;
	return false;
}

static bool is_recorders_data(struct kymo_process *process, const struct kymo_map *map)
{
	struct kymo_wire_data head;

	return !map->offset && !kymo_process_read(process, map->start, &head, sizeof(head)) &&
	       head.magic == KYMO_WIRE_MAGIC && head.recorder_pid == (uint32_t)kymo_process_pid(process) &&
	       head.target_pid != head.recorder_pid;
}

/* A recorder that is recorded itself has memory of both kinds. */
static bool is_recorders(const struct kymo_maps *maps, struct kymo_process *process, uint64_t inode)
{
	for (size_t i = 0; i < maps->n; i++) {
		struct kymo_wire_header header;

		if (!kymo_is_shared_map(&maps->items[i]) || maps->items[i].inode != inode || maps->items[i].offset ||
		    !maps->items[i].writable ||
		    kymo_process_read(process, maps->items[i].start, &header, sizeof(header)))
			continue;
		return header.magic == KYMO_WIRE_MAGIC;
	}
	return false;
}

static bool is_recorder(struct kymo_process *process, const struct kymo_maps *maps)
{
	for (size_t i = 0; i < maps->n; i++) {
		const struct kymo_map *map = &maps->items[i];

		if ((kymo_is_shared_map(map) && is_recorders(maps, process, map->inode)) ||
		    (kymo_is_data_map(map) && is_recorders_data(process, map)))
			return true;
	}
	return kymo_is_kymo(kymo_process_pid(process), NULL);
}

static bool has_strays(const struct kymo_maps *maps, const struct kymo_session_list *list)
{
	for (size_t i = 0; i < maps->n; i++) {
		const struct kymo_map *map = &maps->items[i];

		if ((kymo_is_shared_map(map) && !is_listed(list, map->inode)) ||
		    (kymo_is_data_map(map) && !has_data(list, map->start)))
			return true;
	}
	return kymo_next_descriptor(list->pid, -1) >= 0;
}

static struct kymo_error *read_sessions(struct kymo_process *process, const struct kymo_maps *maps, uint64_t except,
					bool whole, struct kymo_session_list *list)
{
	KYMO_VEC(struct kymo_session) found = { 0 };
	struct kymo_error *error = NULL;

	for (size_t i = 0; i < maps->n && !error; i++) {
		struct kymo_session session = { .inode = 0 };
		bool is_one;

		if (!kymo_is_shared_map(&maps->items[i]) || maps->items[i].offset || !maps->items[i].shared ||
		    maps->items[i].executable || maps->items[i].inode == except)
			continue;
		if (found.n == MAX_RECORDINGS)
			error = kymo_error_create(KYMO_ERROR_BUSY, "process %d has more than %d recordings", list->pid,
						  MAX_RECORDINGS);
		else
			error = read_header(process, maps, &maps->items[i], whole, &session, &is_one);
		if (!error && is_one && !kymo_vec_push(&found, session)) {
			session_deinit(&session);
			error = &kymo_error_no_memory;
		}
	}
	list->items = found.items;
	list->n = found.n;
	return error;
}

enum extent { HEADERS, JOURNALS, ALL };

static struct kymo_error *read_list(struct kymo_process *process, uint64_t except, enum extent extent,
				    struct kymo_session_list *ret)
{
	struct kymo_session_list list = { .pid = kymo_process_pid(process) };
	struct kymo_maps maps;
	struct kymo_error *error = kymo_process_maps(process, &maps);

	if (error)
		return error;
	error = read_sessions(process, &maps, except, extent != HEADERS, &list);
	if (!error && extent == ALL) {
		list.is_recorder = is_recorder(process, &maps);
		list.has_strays = !list.is_recorder && has_strays(&maps, &list);
	}
	kymo_maps_deinit(&maps);
	if (error) {
		kymo_sessions_deinit(&list);
		return error;
	}
	*ret = list;
	return NULL;
}

struct kymo_error *kymo_sessions_read(struct kymo_process *process, struct kymo_session_list *ret)
{
	return read_list(process, 0, ALL, ret);
}

struct kymo_error *kymo_sessions_read_journals(struct kymo_process *process, uint64_t except,
					       struct kymo_session_list *ret)
{
	return read_list(process, except, JOURNALS, ret);
}

struct kymo_error *kymo_sessions_read_headers(struct kymo_process *process, uint64_t except,
					      struct kymo_session_list *ret)
{
	return read_list(process, except, HEADERS, ret);
}

void kymo_sessions_deinit(struct kymo_session_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		session_deinit(&list->items[i]);
	free(list->items);
	*list = (struct kymo_session_list){ .pid = 0 };
}

bool kymo_session_has_guards(struct kymo_process *process, const struct kymo_session *session)
{
	for (size_t i = 0; i < session->n_sites; i++) {
		const struct kymo_wire_site *site = &session->sites[i];
		uint8_t now[KYMO_JUMP_SIZE];

		if (site->flags & KYMO_WIRE_GUARD && !kymo_process_read(process, site->address, now, sizeof(now)) &&
		    !memcmp(now, site->patched, sizeof(now)))
			return true;
	}
	return false;
}
