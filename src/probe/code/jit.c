#include "probe/code/jit.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/page.h"
#include "probe/memory/sessions.h"
#include "proc/memory.h"
#include "proc/process.h"
#include "procfs/info.h"
#include "procfs/maps.h"
#include "procfs/perfmap.h"
#include "sym/perfmap.h"

#define INSN_MAX 15
#define BEHIND 64                        /* bytes after the address that a plan may look at */
#define FUNCTION_MAX ((uint64_t)1 << 20) /* a longer one is not looked at from its start */
#define SNAPSHOT_TRIES 5

/* ---- whose memory ---------------------------------------------------------------------------- */

bool kymo_jit_is_map(const struct kymo_map *map)
{
	return !map->shared && !map->inode &&
	       (!*map->path || !strncmp(map->path, "[anon:", 6) || !strcmp(map->path, "[heap]"));
}

/* It has a path. */
static struct kymo_error *not_ours(pid_t pid, const struct kymo_map *map, uint64_t address)
{
	if (kymo_is_shared_map(map) || kymo_is_jumps_map(map))
		return kymo_error_create(KYMO_ERROR_UNSAFE, "what is at 0x%" PRIx64 " of process %d is kymo's own",
					 address, pid);
	if (map->path[0] != '/')
		return kymo_error_create(KYMO_ERROR_UNSAFE,
					 "what is at 0x%" PRIx64 " of process %d is %s, which is the kernel's", address,
					 pid, map->path);
	if (map->shared || map->deleted)
		return kymo_error_create(KYMO_ERROR_UNSAFE,
					 "0x%" PRIx64 " of process %d is memory of %s%s: it may be mapped elsewhere "
					 "too, and be written to there at any time",
					 address, pid, map->path,
					 map->deleted ? ", a file that has no name any more" : "");
	return kymo_error_create(KYMO_ERROR_USAGE, "0x%" PRIx64 " of process %d is in a file; write %s:0x%" PRIx64,
				 address, pid, map->path, map->offset + (address - map->start));
}

struct kymo_error *kymo_jit_check(pid_t pid, const struct kymo_maps *maps, uint64_t address, bool *written_ret)
{
	const struct kymo_map *map = kymo_maps_at(maps, address);

	*written_ret = false;
	if (!map)
		return kymo_error_create(KYMO_ERROR_NOT_FOUND,
					 "process %d has nothing mapped at 0x%" PRIx64
					 " (an offset in a file is written FILE:0x%" PRIx64 ")",
					 pid, address, address);
	if (!map->executable) {
		*written_ret = kymo_jit_is_map(map) && map->writable;
		return kymo_error_create(KYMO_ERROR_UNSAFE,
					 "the memory at 0x%" PRIx64
					 " of process %d is not executable: no code runs there now",
					 address, pid);
	}
	if (!kymo_jit_is_map(map))
		return not_ours(pid, map, address);
	if (map->writable) {
		*written_ret = true;
		return kymo_error_create(KYMO_ERROR_UNSAFE,
					 "the memory at 0x%" PRIx64
					 " of process %d is writable and executable at once: the program may change a "
					 "part of a jump there at any time",
					 address, pid);
	}
	return NULL;
}

/* ---- what is there --------------------------------------------------------------------------- */

/* Take back what other recordings have written into [low, low + size), as they say. */
static void take_back(const struct kymo_session_list *list, uint64_t low, uint8_t *bytes, uint64_t size)
{
	for (size_t i = 0; i < list->n; i++)
		for (size_t k = list->items[i].n_sites; k-- > 0;) {
			const struct kymo_wire_site *site = &list->items[i].sites[k];
			uint64_t at = site->address - low;

			if (!(site->flags & KYMO_WIRE_JIT) || site->patch_size > KYMO_WIRE_PATCH_MAX || at >= size ||
			    size - at < site->patch_size)
				continue;
			if (!memcmp(bytes + at, site->patched, site->patch_size))
				memcpy(bytes + at, site->original, site->patch_size);
		}
}

static bool are_alike(const struct kymo_session_list *a, const struct kymo_session_list *b)
{
	bool alike = a->n == b->n;

	for (size_t i = 0; alike && i < a->n; i++)
		alike = a->items[i].inode == b->items[i].inode &&
			a->items[i].header.generation == b->items[i].header.generation;
	return alike;
}

/* `alike_ret`: no recording has come or gone meanwhile. */
static struct kymo_error *read_once(struct kymo_process *process, uint64_t low, uint8_t *bytes, uint64_t size,
				    bool *alike_ret)
{
	struct kymo_session_list before = { .n = 0 }, after = { .n = 0 };
	struct kymo_error *error = kymo_sessions_read_journals(process, 0, &before);
	int err = error ? 0 : kymo_process_read(process, low, bytes, size);

	if (err)
		error = kymo_error_errno(err, "cannot read the code at 0x%" PRIx64 " of process %d", low,
					 kymo_process_pid(process));
	if (!error)
		error = kymo_sessions_read_headers(process, 0, &after);
	if (!error) {
		*alike_ret = are_alike(&before, &after);
		take_back(&before, low, bytes, size);
	}
	kymo_sessions_deinit(&before);
	kymo_sessions_deinit(&after);
	return error;
}

static struct kymo_error *read_code(struct kymo_process *process, uint64_t low, uint8_t *bytes, uint64_t size)
{
	struct kymo_error *error = NULL;
	bool alike = false;

	for (int i = 0; i < SNAPSHOT_TRIES && !alike && !error; i++)
		error = read_once(process, low, bytes, size, &alike);
	if (!error && !alike)
		error = kymo_error_create(KYMO_ERROR_BUSY,
					  "other recorders keep changing the probes of process %d; try again later",
					  kymo_process_pid(process));
	return error;
}

/* ---- what it is called ----------------------------------------------------------------------- */

static bool name_place(struct kymo_jit *jit, pid_t pid)
{
	kymo_cleanup_close int fd = kymo_open_perf_map(pid);
	struct kymo_perf_function function;
	int n;

	jit->start = jit->address;
	jit->is_named = fd >= 0 && !kymo_perf_map_find(fd, jit->address, &function);
	if (!jit->is_named)
		n = asprintf(&jit->location, "0x%" PRIx64, jit->address);
	else if (function.start == jit->address)
		n = asprintf(&jit->location, "%s", function.name);
	else
		n = asprintf(&jit->location, "%s+0x%" PRIx64, function.name, jit->address - function.start);
	if (n < 0)
		jit->location = NULL;
	else if (jit->is_named)
		jit->start = function.start;
	return n >= 0;
}

/* ---- all of it ------------------------------------------------------------------------------- */

/* The end of the instruction at the address, reached from the start of its function. */
static struct kymo_error *find_end(const struct kymo_jit *jit, uint64_t size, uint64_t *end_ret)
{
	uint64_t at = jit->start, before = at;

	while (at <= jit->address) {
		uint64_t left = size - (at - jit->start);
		char text[128];
		int length = kymo_disassemble(jit->bytes + (at - jit->start), left < INSN_MAX ? left : INSN_MAX, at,
					      text, sizeof(text));

		if (length <= 0)
			return kymo_error_create(KYMO_ERROR_UNSAFE, "what is at 0x%" PRIx64 " is no instruction%s%s",
						 at, at == jit->address ? "" : "; it is on the way to ",
						 at == jit->address ? "" : jit->location);
		if (at == jit->address) {
			*end_ret = at + (uint64_t)length;
			return NULL;
		}
		before = at;
		at += (uint64_t)length;
	}
	return kymo_error_create(KYMO_ERROR_UNSAFE,
				 "no instruction begins at 0x%" PRIx64
				 ": of the function that the perf map has at 0x%" PRIx64
				 ", there are some at 0x%" PRIx64 " and 0x%" PRIx64,
				 jit->address, jit->start, before, at);
}

static struct kymo_error *analyze(struct kymo_jit *jit, uint64_t size)
{
	struct kymo_extent function = { .start = jit->start };
	const struct kymo_span text = { jit->start, jit->bytes, (size_t)size };
	struct kymo_error *error = find_end(jit, size, &function.end);

	if (!error)
		error = kymo_code_create_jit(&text, &function, jit->address, &jit->code);
	if (!error && kymo_site_of(jit->code->map, jit->address) != jit->address)
		error = kymo_error_create(KYMO_ERROR_UNSAFE,
					  "the endbr64 at 0x%" PRIx64
					  " has to stay, and direct calls may not pass it; write 0x%" PRIx64
					  ", the instruction after it",
					  jit->address, kymo_site_of(jit->code->map, jit->address));
	return error;
}

static struct kymo_error *look_at_jit(struct kymo_jit *jit, struct kymo_process *process, const struct kymo_maps *maps)
{
	const struct kymo_map *map = kymo_maps_at(maps, jit->address);
	pid_t pid = kymo_process_pid(process);
	bool is_written;
	struct kymo_error *error = kymo_jit_check(pid, maps, jit->address, &is_written);
	uint64_t end;

	if (error)
		return error;
	jit->low = kymo_page_down(jit->address);
	jit->high = jit->low + 2 * KYMO_PAGE_SIZE < map->end ? jit->low + 2 * KYMO_PAGE_SIZE : map->end;
	if (!name_place(jit, pid))
		return &kymo_error_no_memory;
	if (jit->address - jit->start > FUNCTION_MAX)
		return kymo_error_create(KYMO_ERROR_UNSAFE,
					 "%s: more than a MiB lies between the start of the function and the address",
					 jit->location);
	end = jit->address + BEHIND < map->end ? jit->address + BEHIND : map->end;
	jit->bytes = malloc(end - jit->start);
	if (!jit->bytes)
		return &kymo_error_no_memory;
	error = read_code(process, jit->start, jit->bytes, end - jit->start);
	return error ? error : analyze(jit, end - jit->start);
}

struct kymo_error *kymo_jit_open(struct kymo_process *process, uint64_t address, struct kymo_jit **ret)
{
	struct kymo_jit *jit = calloc(1, sizeof(*jit));
	struct kymo_maps maps;
	struct kymo_error *error;

	if (!jit)
		return &kymo_error_no_memory;
	jit->address = address;
	error = kymo_process_maps(process, &maps);
	if (!error) {
		error = look_at_jit(jit, process, &maps);
		kymo_maps_deinit(&maps);
	}
	if (error) {
		kymo_jit_close(jit);
		return error;
	}
	*ret = jit;
	return NULL;
}

void kymo_jit_close(struct kymo_jit *jit)
{
	if (!jit)
		return;
	kymo_code_destroy(jit->code);
	free(jit->bytes);
	free(jit->location);
	free(jit);
}
