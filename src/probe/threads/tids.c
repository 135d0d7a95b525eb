/*
 * Where threads keep their ids.
 *
 * Pads read a thread's id (tid) at its thread pointer plus an offset that is the same for all threads of a process. A
 * wrong id is worse than none, so an offset has to be proven:
 *
 * glibc publishes the offset for debuggers.
 *
 * With other libraries it is the offset at which the blocks of all threads hold their tids. The kernel stores the id of
 * a new thread (musl's, and glibc's in static programs) before that runs. A single thread may hold its id there by
 * chance. If the recorder will be told of the second one, it waits for that.
 *
 * In Go the pointer leads into the runtime's struct m, and the word procid is a little before that. New threads ask for
 * their id themselves, with their first instructions: the word is 0 till then, and so is the tid of records of that
 * moment. In other programs variables lie before the pointer, which prove nothing.
 */
#include "probe/threads/tids.h"

#include "base/page.h"
#include "probe/code/modules.h"
#include "probe/probes.h"
#include "proc/memory.h"
#include "proc/thread.h"
#include "procfs/info.h"
#include "procfs/maps.h"
#include "sym/golang.h"

/* Bytes after a thread pointer in which tids are looked for, and before one of Go's. */
#define SEARCHED 2048
#define SEARCHED_IN_GO 128 /* it is 72 in Go 1.19 */

/* Three numbers: bits, count, offset (nptl_db's DB_STRUCT_FIELD). */
bool probes_tid_offset_of_glibc(struct kymo_probes *probes, const struct kymo_maps *maps)
{
	const struct kymo_map *map = probes_find_library(maps, "libc");
	uint32_t description[3];

	if (probes->threads.tid_offset)
		return true;
	if (!map || !probes_read_object(probes, map, "_thread_db_pthread_tid", description, sizeof(description)) ||
	    description[0] != 32 || description[2] >= 65536)
		return false;
	probes->threads.tid_offset = description[2];
	return true;
}

bool probes_is_tid_offset(struct kymo_process *process, int64_t offset)
{
	const struct kymo_thread *threads;
	size_t n, n_new = 0;

	threads = kymo_process_threads(process, &n);
	for (size_t i = 0; i < n; i++) {
		int32_t tid;

		if (!threads[i].registers.fs_base ||
		    kymo_process_read(process, threads[i].registers.fs_base + (uint64_t)offset, &tid, sizeof(tid)))
			return false;
		if (!tid && offset < 0)
			n_new++;
		else if (tid != threads[i].tid && tid != kymo_inner_tid(threads[i].tid))
			return false;
	}
	return n > n_new;
}

/* Whether `pc` is in what Go's compiler has made. */
static bool is_in_go(const struct kymo_probes *probes, uint64_t pc)
{
	for (size_t i = 0; i < probes->modules.n; i++) {
		const struct probe_module *module = &probes->modules.items[i];
		uint64_t low = 0, high = 0;
		uint32_t left;

		if (module->is_gone || module->jit || pc < module->low || pc >= module->high)
			continue;
		kymo_error_destroy(kymo_module_small_stacks(module->module, &low, &high, &left));
		return pc - module->bias >= low && pc - module->bias < high;
	}
	return false;
}

/* Threads of Go's own wait in its code, and make others there. */
static bool is_go(const struct kymo_probes *probes, struct kymo_process *process)
{
	const struct kymo_thread *threads;
	bool is = false;
	size_t n;

	threads = kymo_process_threads(process, &n);
	for (size_t i = 0; i < n && !is; i++)
		is = is_in_go(probes, threads[i].registers.rip);
	return is;
}

/* The first offset within [from, to) of the thread pointers in which all threads have their tids. */
static bool find_between(struct kymo_process *process, int64_t from, int64_t to, int64_t *offset_ret)
{
	const struct kymo_thread *threads;
	int32_t words[SEARCHED / 4], inner;
	uint64_t low, size = (uint64_t)(to - from);
	size_t n;

	threads = kymo_process_threads(process, &n);
	low = threads[0].registers.fs_base + (uint64_t)from;
	if (kymo_process_read(process, low, words, size)) { /* a block may lie at the end of its memory */
		size = kymo_page_part(low, size);
		if (kymo_process_read(process, low, words, size))
			return false;
	}
	inner = kymo_inner_tid(threads[0].tid);
	for (uint64_t i = 0; i < size / 4; i++) {
		int64_t offset = from + (int64_t)(4 * i);

		if ((words[i] == threads[0].tid || words[i] == inner) && probes_is_tid_offset(process, offset)) {
			*offset_ret = offset;
			return true;
		}
	}
	return false;
}

bool probes_find_tid_offset(struct kymo_probes *probes, struct kymo_process *process)
{
	const struct kymo_thread *threads;
	size_t n;

	threads = kymo_process_threads(process, &n);
	if (!n || !threads[0].registers.fs_base || (n == 1 && probes->wanted.options.is_followed))
		return false;
	return find_between(process, 0, SEARCHED, &probes->threads.tid_offset) ||
	       (is_go(probes, process) && find_between(process, -SEARCHED_IN_GO, 0, &probes->threads.tid_offset));
}
