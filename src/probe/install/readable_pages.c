/*
 * The recorder's half of the table of readable memory: which pages are in it. readable_open.c has when it is open.
 * docs/design/fast-reads.md says why its order is right. What the process has written into the table is only compared;
 * indexes are the recorder's own.
 */
#include "probe/install/readable_pages.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "arch/pad.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/page.h"
#include "probe/code/modules.h"
#include "probe/memory/remote_memory.h"
#include "probe/memory/sessions.h"
#include "probe/probes.h"
#include "probe/resolve/syscalls.h"
#include "probe/threads/readable.h"
#include "probe/threads/reading.h"
#include "proc/memory.h"
#include "proc/process.h"
#include "procfs/info.h"
#include "procfs/maps.h"
#include "wire/readable.h"

#define AROUND 512u                          /* pages that are added with one that was asked for */
#define PAGES_MAX (UINT64_C(1) << (47 - 12)) /* of a program */
#define GUARDED (UINT64_C(1) << 58)          /* in the page map: MADV_GUARD_INSTALL */
#define PRESENT (UINT64_C(1) << 63)

void probes_choose_fast_reads(struct kymo_probes *probes)
{
	struct kymo_probes_options *options = &probes->wanted.options;

	options->fast_reads = options->fast_reads && !options->no_rseq && !options->traps && !options->clones &&
			      probes_read_elsewhere(probes);
	/* System calls that are recorded get their pads once. Short-lived programs do not pay for it. */
	probes->readable.is_wanted = options->fast_reads && !options->is_one_of_many &&
				     (options->wants_fast_reads || probes_has_syscalls(probes));
}

static bool is_kymos(const struct kymo_map *map)
{
	return kymo_is_shared_map(map) || kymo_is_data_map(map) || kymo_is_jumps_map(map);
}

/* Live pages and words of any recording, which goes without a call that is seen: they lie beside its files. */
static bool is_beside_kymos(const struct kymo_maps *maps, const struct kymo_map *map)
{
	const size_t i = (size_t)(map - maps->items);

	return (i > 0 && map[-1].end == map->start && is_kymos(&map[-1])) ||
	       (i + 1 < maps->n && map[1].start == map->end && is_kymos(&map[1]));
}

/* Memory that only the process itself takes away: its own, and the data of the files that it runs. */
static bool is_fit(const struct kymo_probes *probes, const struct kymo_map *map)
{
	if (!map->readable || map->shared)
		return false;
	return !map->inode ? map->path[0] != '[' || !strcmp(map->path, "[heap]") || !strncmp(map->path, "[anon:", 6)
			   : !map->deleted && probes_is_known(probes, map);
}

/* The block for the page, which has memory; NULL: there is none for it. */
static uint8_t *block_of(struct kymo_probes *probes, struct kymo_wire_readable *table, uint64_t page)
{
	const uint64_t gib = page / KYMO_WIRE_GIB_PAGES;
	const uint32_t at = (uint32_t)(gib % KYMO_WIRE_READABLE_GIB);

	if (!probes->readable.gib[at]) {
		if (kymo_allocate(probes->shared.data.fd,
				  probes->shared.readable_at + (uint64_t)((char *)table->pages[at] - (char *)table),
				  sizeof(table->pages[at])))
			return NULL;
		probes->readable.gib[at] = gib + 1;
		__atomic_store_n(&table->gib[at], gib + 1, __ATOMIC_RELEASE);
	}
	return probes->readable.gib[at] == gib + 1 ? table->pages[at] : NULL;
}

/* A run of pages of one mapping, within one block. */
struct run {
	uint64_t first, n;
	uint8_t *pages;
};

/* What around `page` is to be added; n 0: nothing. */
static struct run choose_run(struct kymo_probes *probes, struct kymo_wire_readable *table, const struct kymo_maps *maps,
			     uint64_t page)
{
	const struct kymo_map *map = kymo_maps_at(maps, page * KYMO_PAGE_SIZE);
	struct run run = { .first = page & ~(uint64_t)(AROUND - 1) };
	uint64_t end = run.first + AROUND;

	if (!map || !is_fit(probes, map) || is_beside_kymos(maps, map))
		return run;
	if (run.first < map->start / KYMO_PAGE_SIZE)
		run.first = map->start / KYMO_PAGE_SIZE;
	if (end > map->end / KYMO_PAGE_SIZE)
		end = map->end / KYMO_PAGE_SIZE;
	run.pages = block_of(probes, table, page);
	if (run.pages) {
		run.pages += run.first % KYMO_WIRE_GIB_PAGES;
		run.n = end - run.first;
	}
	return run;
}

/* Those of the run that are in memory become proposed. What is swapped out may be a guard, or poisoned: it comes with
 * the first read by a call. */
static void propose(const struct run *run, int pagemap)
{
	uint64_t entries[AROUND];
	const ssize_t size = pread(pagemap, entries, run->n * sizeof(*entries), (off_t)(run->first * sizeof(*entries)));

	for (ssize_t i = 0; i < size / (ssize_t)sizeof(*entries); i++)
		if ((entries[i] & PRESENT) && !(entries[i] & GUARDED) &&
		    !__atomic_load_n(&run->pages[i], __ATOMIC_RELAXED))
			__atomic_store_n(&run->pages[i], KYMO_WIRE_PAGE_PROPOSED, __ATOMIC_RELAXED);
}

static void settle(const struct run *run, uint8_t becomes)
{
	for (uint64_t i = 0; i < run->n; i++) {
		uint8_t proposed = KYMO_WIRE_PAGE_PROPOSED;

		__atomic_compare_exchange_n(&run->pages[i], &proposed, becomes, false, __ATOMIC_SEQ_CST,
					    __ATOMIC_RELAXED);
	}
}

static size_t take_wanted(struct kymo_wire_readable *table, uint64_t wanted[KYMO_WIRE_WANTED])
{
	size_t n = 0;

	for (size_t i = 0; i < KYMO_WIRE_WANTED; i++) {
		const uint64_t page = __atomic_load_n(&table->wanted[i], __ATOMIC_RELAXED);

		if (!page)
			continue;
		__atomic_store_n(&table->wanted[i], 0, __ATOMIC_RELAXED);
		if (page < PAGES_MAX)
			wanted[n++] = page;
	}
	return n;
}

static void add_pages(struct kymo_probes *probes, struct kymo_wire_readable *table, const uint64_t *wanted, size_t n)
{
	struct run runs[KYMO_WIRE_WANTED];
	kymo_cleanup_close int pagemap = -1;
	struct kymo_error *error;
	struct kymo_maps maps;
	uint64_t begun, now;
	char path[64];

	if (kymo_wire_losses_under_way(table, &begun))
		return;
	error = kymo_maps_read(probes->pid, &maps);
	if (error) {
		kymo_error_destroy(error);
		return;
	}
	snprintf(path, sizeof(path), "/proc/%d/pagemap", probes->pid);
	pagemap = open(path, O_RDONLY | O_CLOEXEC);
	for (size_t i = 0; i < n; i++) {
		runs[i] = choose_run(probes, table, &maps, wanted[i]);
		if (runs[i].n)
			propose(&runs[i], pagemap);
	}
	kymo_maps_deinit(&maps);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	now = __atomic_load_n(&table->begun, __ATOMIC_SEQ_CST);
	for (size_t i = 0; i < n; i++)
		settle(&runs[i], now == begun ? KYMO_WIRE_PAGE_READABLE : 0);
}

/* It is closed for good, and no reader is left: calls need not be struck any more. */
static void leave_table(struct kymo_probes *probes)
{
	const uint64_t none = 0;

	if (!probes->readable.leave_ns || kymo_now_ns() < probes->readable.leave_ns)
		return;
	for (uint32_t i = 0; i < probes->shared.n_regions; i++)
		kymo_process_write(probes->process, probes->shared.live[i] + KYMO_PAD_LIVE_READABLE, &none,
				   sizeof(none));
	probes->readable.leave_ns = 0;
	probes->readable.has_left = true;
}

static bool is_closed_for_good(const struct kymo_wire_readable *table)
{
	return __atomic_load_n(&table->is_closed_for_good, __ATOMIC_RELAXED);
}

void probes_look_at_readable(struct kymo_probes *probes)
{
	uint64_t wanted[KYMO_WIRE_WANTED];
	struct kymo_wire_readable *table;
	size_t n;

	leave_table(probes);
	if (!probes->readable.is_registered || probes->readable.is_refused || probes->threads.state != KYMO_PAD_RSEQ)
		return;
	table = probes_readable_table(probes);
	if (!probes->reading.is_used || is_closed_for_good(table)) {
		probes_close_readable(probes, probes->reading.is_used ? "it uses protection keys, userfaultfd, "
									"io_uring or the like"
								      : NULL);
		return;
	}
	if (!(__atomic_load_n(&table->state, __ATOMIC_RELAXED) & KYMO_WIRE_READABLE_OPEN))
		return;
	/* What a debugger makes the process do no pad sees. */
	if (kymo_other_tracer(probes->pid)) {
		probes_shut_readable(probes);
		return;
	}
	n = take_wanted(table, wanted);
	if (n)
		add_pages(probes, table, wanted, n);
}
