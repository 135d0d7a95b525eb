#include "probe/install/frames.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "arch/selectors.h"
#include "base/cleanup.h"
#include "probe/snapshot/status.h"
#include "proc/memory.h"
#include "proc/process.h"
#include "proc/thread.h"
#include "procfs/maps.h"
#include "wire/shared.h"

#define STACK_SCAN_MAX ((uint64_t)8 << 20)
#define STACKS_MAX 4 /* that a thread has left for others, in handlers upon handlers */
#define CHUNK 65536u /* bytes that are read at once */
#define SCAN_MAX (UINT64_C(4) << 30)
#define RED_ZONE 128u
/* By which glibc cancels threads, and changes their users: their handlers switch no contexts. */
#define LIBRARYS_OWN (UINT64_C(1) << 32 | UINT64_C(1) << 33)

/* ---- on the stacks of threads ---------------------------------------------------------------- */

/*
 * Scan [low, end of its mapping). A stack that can't be read may hold anything: that counts as found. A handler
 * on an alternate stack may have interrupted one on the stack that `left_ret` gets an address of: its stack pointer is
 * saved before its program counter.
 */
static uint64_t scan_stack(struct kymo_process *process, const struct kymo_maps *maps, uint64_t low, uint64_t *left_ret,
			   probes_is_hot *is_hot, void *data)
{
	const struct kymo_map *map = kymo_maps_at(maps, low);
	kymo_cleanup_free uint64_t *words = NULL;
	uint64_t size;

	*left_ret = 0;
	if (!map)
		return 0;
	size = map->end - low < STACK_SCAN_MAX ? map->end - low : STACK_SCAN_MAX;
	words = malloc(size);
	if (!words || kymo_process_read(process, low, words, size))
		return low;
	for (size_t i = 0; i + KYMO_SAVED_WORDS <= size / 8; i++) {
		const struct kymo_map *left = i && kymo_is_saved(&words[i]) ? kymo_maps_at(maps, words[i - 1]) : NULL;
		const struct probes_pc pc = { words[i],
					      i < KYMO_SAVED_REGISTERS ? NULL : &words[i - KYMO_SAVED_REGISTERS],
					      KYMO_SAVED_REGISTERS };

		if (kymo_may_be_saved(&words[i]) && is_hot(&pc, data))
			return words[i];
		if (left && left != map && left->writable && !*left_ret)
			*left_ret = words[i - 1] & ~(uint64_t)7;
	}
	return 0;
}

/* Where the initial thread's stack begins if that thread is on another one: it is scanned as well, for what it may have
 * left there. */
static uint64_t left_stack(const struct kymo_thread *thread, pid_t pid, const struct kymo_maps *maps)
{
	for (size_t i = 0; i < maps->n && thread->tid == pid; i++)
		if (!strcmp(maps->items[i].path, "[stack]"))
			return kymo_maps_at(maps, thread->registers.rsp) == &maps->items[i] ? 0 : maps->items[i].start;
	return 0;
}

uint64_t probes_find_saved_pc(struct kymo_process *process, const struct kymo_maps *maps, probes_is_hot *is_hot,
			      void *data, pid_t *tid_ret)
{
	const struct kymo_thread *threads;
	uint64_t found = 0;
	size_t n;

	threads = kymo_process_threads(process, &n);
	for (size_t i = 0; i < n && !found; i++) {
		uint64_t other = left_stack(&threads[i], kymo_process_pid(process), maps),
			 left = threads[i].registers.rsp & ~(uint64_t)7;

		for (int k = 0; k < STACKS_MAX && left && !found; k++)
			found = scan_stack(process, maps, left, &left, is_hot, data);
		if (!found && other)
			found = scan_stack(process, maps, other, &left, is_hot, data);
		*tid_ret = threads[i].tid;
	}
	return found;
}

/* ---- in all memory ---------------------------------------------------------------------------- */

/* glibc gives each thread a mapping, with a guard below it, and the thread's control block at its top. */
static bool is_stack_of(const struct kymo_thread *thread, const struct kymo_maps *maps, size_t i)
{
	const struct kymo_map *map = &maps->items[i], *below = i ? &maps->items[i - 1] : NULL;

	if (!strcmp(map->path, "[stack]"))
		return true;
	return thread->registers.fs_base > thread->registers.rsp && thread->registers.fs_base < map->end && below &&
	       below->end == map->start && !below->readable && !below->writable;
}

uint64_t probe_alive_from(struct kymo_process *process, const struct kymo_maps *maps, size_t i)
{
	const struct kymo_map *map = &maps->items[i];
	const struct kymo_thread *threads, *found = NULL;
	size_t n;

	threads = kymo_process_threads(process, &n);
	for (size_t k = 0; k < n; k++) {
		const uint64_t sp = threads[k].registers.rsp;

		if (sp < map->start || sp >= map->end)
			continue;
		if (found || !is_stack_of(&threads[k], maps, i))
			return map->start;
		found = &threads[k];
	}
	if (!found || found->registers.rsp - map->start < RED_ZONE)
		return map->start;
	return (found->registers.rsp - RED_ZONE) & ~(uint64_t)7;
}

/* Chunks overlap: the words of a frame are together in one of them. */
static bool scan(struct kymo_process *process, uint64_t from, uint64_t to, probes_is_hot *is_hot, void *data)
{
	uint64_t words[CHUNK / 8];

	while (to - from >= KYMO_SAVED_WORDS * sizeof(*words)) {
		const size_t size = to - from < sizeof(words) ? (size_t)(to - from) : sizeof(words);

		if (kymo_process_read(process, from, words, size))
			return false;
		for (size_t i = 0; i + KYMO_SAVED_WORDS <= size / 8; i++)
			if (kymo_is_saved(&words[i]))
				is_hot(&(struct probes_pc){ .address = words[i] }, data);
		if (size == to - from)
			break;
		from += size - (KYMO_SAVED_WORDS - 1) * sizeof(*words);
	}
	return true;
}

struct kymo_error *probe_find_frames(struct kymo_process *process, const struct kymo_maps *maps, probes_is_hot *is_hot,
				     void *data)
{
	const pid_t pid = kymo_process_pid(process);
	uint64_t left = SCAN_MAX;

	if (!(kymo_handled_signals(pid) & ~LIBRARYS_OWN))
		return NULL;
	for (size_t i = 0; i < maps->n; i++) {
		const struct kymo_map *map = &maps->items[i];
		const uint64_t from = probe_alive_from(process, maps, i);

		if (!map->writable || !map->readable || kymo_wire_is_own_path(map->path))
			continue;
		if (map->end - from > left)
			return kymo_error_create(KYMO_ERROR_UNSAFE,
						 "process %d handles signals, and has more than %u GiB of memory where "
						 "handlers may have left threads' contexts",
						 pid, (unsigned int)(SCAN_MAX >> 30));
		left -= map->end - from;
		if (!scan(process, from, map->end, is_hot, data))
			return kymo_error_create(KYMO_ERROR_UNSAFE,
						 "the memory of process %d at 0x%" PRIx64
						 " can't be read, where handlers may have left threads' contexts",
						 pid, map->start);
	}
	return NULL;
}
