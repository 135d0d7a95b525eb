/*
 * When the table of readable memory is open: once all calls of the process that may take memory away come to pads, and
 * nothing is in use that does it in another way. docs/design/fast-reads.md says why that is enough.
 *
 * Pads are put in when the recording goes on already, so that it does not wait for files to be looked into; and none
 * where something else is in the way.
 */
#include "probe/install/readable_open.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "arch/pad.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "probe/code/cache.h"
#include "probe/code/code.h"
#include "probe/code/modules.h"
#include "probe/install/changed_calls.h"
#include "probe/install/install.h"
#include "probe/install/jump.h"
#include "probe/memory/remote_memory.h"
#include "probe/memory/sessions.h"
#include "probe/memory/state.h"
#include "probe/probes.h"
#include "probe/resolve/files.h"
#include "probe/site/refusals.h"
#include "probe/site/sites.h"
#include "probe/threads/readable.h"
#include "probe/threads/strikes.h"
#include "proc/process.h"
#include "procfs/descriptors.h"
#include "procfs/info.h"
#include "procfs/maps.h"
#include "wire/readable.h"

#define BUDGET_NS UINT64_C(20000000)   /* for files, of one look */
#define LARGE (UINT64_C(8) << 20)      /* bytes of code that take too long to be looked into while it records */
#define HUGE_PAGES (UINT64_C(1) << 20) /* 4 GiB, which take a tenth of a second to be looked at */
#define MATURE_NS UINT64_C(1000000000) /* a program of a tree that lives as long may be worth it */
#define AGAIN_NS UINT64_C(500000000)   /* after the table was opened, or could not be */
#define AGAIN_DOUBLED 4                /* … at most as often, if it fails again and again */
#define TOLD_AT 3                      /* such failures in a row: a library may be on its way */

/* ---- files ----------------------------------------------------------------------------------- */

/* Code that kymo knows to make none of these calls, or to make them as it should. */
static bool is_harmless(const struct kymo_map *map)
{
	return !strcmp(map->path, "[vdso]") || !strcmp(map->path, "[vsyscall]") || kymo_is_shared_map(map) ||
	       kymo_is_jumps_map(map);
}

/* Why no file tells which calls the code there makes: the rest of a sentence; static. NULL: one may. */
static const char *what_hides_code(const struct kymo_map *map)
{
	if (map->path[0] != '/')
		return "it has code in memory of no file";
	return map->writable || map->shared ? "it has code that may change" : NULL;
}

/* All files of code become modules; those that specs name are the recording's own to open. False: `why_ret`. */
static bool open_files(struct kymo_probes *probes, const struct kymo_maps *maps, const char **why_ret)
{
	for (size_t i = 0; i < maps->n; i++) {
		const struct kymo_map *map = &maps->items[i];
		struct kymo_error *error;

		if (!map->executable || is_harmless(map))
			continue;
		*why_ret = what_hides_code(map);
		if (*why_ret)
			return false;
		if (probes_is_known(probes, map))
			continue;
		*why_ret = "one of its files is too large to be looked into";
		if (map->end - map->start > LARGE && !probes->wanted.options.wants_fast_reads)
			return false;
		*why_ret = "one of its files can't be looked into";
		error = probes_is_wanted_file(probes, map) ? NULL : probes_open_module(probes, map);
		kymo_error_destroy(error);
		if (error || !probes_is_known(probes, map))
			return false;
	}
	return true;
}

static bool is_there(const struct probe_module *module)
{
	return !module->is_gone && !module->jit;
}

/* Some of the modules are decoded, for a moment; `all_ret`: all are. False: `why_ret`. */
static bool look_into_files(struct kymo_probes *probes, bool *all_ret, const char **why_ret)
{
	const uint64_t begin = kymo_now_ns();

	*all_ret = true;
	for (size_t i = 0; i < probes->modules.n; i++) {
		const struct probe_module *module = &probes->modules.items[i];
		const struct kymo_syscall_site *sites;
		struct kymo_error *error;
		bool has_other = false;
		size_t n;

		if (!is_there(module))
			continue;
		if (kymo_now_ns() - begin > BUDGET_NS) {
			*all_ret = false;
			return true;
		}
		error = probes_calls_of(probes, i, &sites, &n);
		if (!error)
			error = probe_cached_other_call(module->file, &has_other);
		kymo_error_destroy(error);
		*why_ret = error ? "one of its files can't be looked into"
				 : "one of its files may call the kernel as 32-bit programs do (int $0x80)";
		if (error || has_other)
			return false;
	}
	return true;
}

/* ---- whether all calls are seen ------------------------------------------------------------------ */

static bool is_struck(const struct kymo_probes *probes, const struct probe_site *site)
{
	return site->is_strike && site->is_installed && !site->is_retired && !site->behind &&
	       probes_leads_to_pad(probes, site);
}

/* Each of its calls that may take memory away has its pad. */
static bool is_module_struck(struct kymo_probes *probes, size_t module_at)
{
	const struct kymo_syscall_site *sites = NULL;
	size_t n = 0;
	struct kymo_error *error = probes_calls_of(probes, module_at, &sites, &n);

	if (error) {
		kymo_error_destroy(error);
		return false;
	}
	for (size_t i = 0; i < n; i++) {
		const struct probe_site *site;

		if (!probes_may_strike(&sites[i]))
			continue;
		site = probes_site_at(probes, probes->modules.items[module_at].bias + sites[i].vaddr);
		if (!site || !is_struck(probes, site))
			return false;
	}
	return true;
}

static bool are_struck(struct kymo_probes *probes)
{
	for (size_t i = 0; i < probes->modules.n; i++)
		if (is_there(&probes->modules.items[i]) && !is_module_struck(probes, i))
			return false;
	return true;
}

/* ---- what is in use -------------------------------------------------------------------------- */

/* Whether some memory of the process has a protection key of `least` or more; true, too, where that can't be read. */
static bool has_key(pid_t pid, unsigned int least)
{
	kymo_cleanup_free char *line = NULL;
	char path[64];
	bool has = false;
	size_t size = 0;
	FILE *smaps;

	snprintf(path, sizeof(path), "/proc/%d/smaps", pid);
	smaps = fopen(path, "re");
	if (!smaps)
		return true;
	while (!has && getline(&line, &size, smaps) > 0) {
		unsigned int key;

		has = sscanf(line, "ProtectionKey: %u", &key) == 1 && key >= least;
	}
	fclose(smaps);
	return has;
}

/* Memory with a protection key may be there, and not readable by every thread. This looks at each page of the process,
 * which waits with its own changes of memory meanwhile. So it is left out where the machine has no keys. */
static bool has_keys(pid_t pid)
{
	static _Thread_local bool is_known, has_machine;

	if (!is_known)
		has_machine = has_key(getpid(), 0);
	is_known = true;
	return has_machine && has_key(pid, 1);
}

static bool is_huge(pid_t pid)
{
	kymo_cleanup_free char *text = NULL;
	uint64_t resident;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/statm", pid);
	return kymo_read_file(AT_FDCWD, path, 4096, &text, NULL) || sscanf(text, "%*u %" SCNu64, &resident) != 1 ||
	       resident > HUGE_PAGES;
}

/* What is in use already that a pad would close the table for. */
static const char *what_is_in_use(pid_t pid)
{
	struct kymo_process_info info;

	if (kymo_has_descriptor(pid, "anon_inode:[io_uring]"))
		return "it uses io_uring, by which it may change its memory unseen";
	if (kymo_has_descriptor(pid, "anon_inode:[userfaultfd]") || kymo_has_descriptor(pid, "/dev/userfaultfd"))
		return "it handles its own page faults (userfaultfd)";
	if (!kymo_process_peek_status(pid, &info) || info.shadow_stack)
		return "it has shadow stacks, which the kernel unmaps by itself";
	return has_keys(pid) ? "its memory has protection keys" : NULL;
}

/* ---- opening --------------------------------------------------------------------------------- */

static void clear_pages(struct kymo_probes *probes, struct kymo_wire_readable *table)
{
	for (uint32_t i = 0; i < KYMO_WIRE_READABLE_GIB; i++)
		if (probes->readable.gib[i])
			memset(table->pages[i], 0, KYMO_WIRE_GIB_PAGES);
}

/* The last range has all that there is no range for, and what is between. */
static void note_code(const struct kymo_maps *maps, struct kymo_wire_readable *table)
{
	struct kymo_wire_range *last = NULL;
	size_t n = 0;

	memset(table->code, 0, sizeof(table->code));
	for (size_t i = 0; i < maps->n; i++) {
		const struct kymo_map *map = &maps->items[i];

		if (!map->executable)
			continue;
		if (n < KYMO_WIRE_READABLE_CODE) {
			last = &table->code[n++];
			last->low = map->start;
		}
		last->high = map->end;
	}
}

/* A thread has loaded a library, and waits for its probes. */
static bool is_asked(const struct kymo_probes *probes)
{
	const struct kymo_wire_watch *watch = &probes->shared.data.head->watch;

	return probes->watch.has_watch &&
	       (__atomic_load_n(&watch->requests, __ATOMIC_ACQUIRE) != probes->watch.n_answers ||
		__atomic_load_n(&watch->given_up, __ATOMIC_RELAXED));
}

/* All calls are seen. What began before the maps are read has ended, or is begun anew. */
static void open_table(struct kymo_probes *probes, struct kymo_wire_readable *table, const struct kymo_maps *maps,
		       uint64_t state, uint64_t begun)
{
	clear_pages(probes, table);
	note_code(maps, table);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	probes->readable.n_failed = 0;
	probes->readable.again_ns = kymo_now_ns() + AGAIN_NS;
	if (__atomic_load_n(&table->begun, __ATOMIC_SEQ_CST) == begun)
		__atomic_compare_exchange_n(&table->state, &state, state | KYMO_WIRE_READABLE_OPEN, false,
					    __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

/* ---- for the recorder ------------------------------------------------------------------------ */

static bool is_due(struct kymo_probes *probes)
{
	const uint64_t now = kymo_now_ns();

	if (!probes->wanted.options.fast_reads || !probes->has_shared || probes->readable.is_refused ||
	    !probes->reading.is_used || probes->is_starting || probes->threads.state != KYMO_PAD_RSEQ ||
	    now < probes->readable.again_ns ||
	    __atomic_load_n(&probes_readable_table(probes)->state, __ATOMIC_RELAXED) & KYMO_WIRE_READABLE_OPEN)
		return false;
	if (!probes->readable.first_ns)
		probes->readable.first_ns = now;
	if (probes->wanted.options.is_one_of_many && now - probes->readable.first_ns < MATURE_NS)
		return false;
	return !is_asked(probes) && !kymo_probes_pending(probes) && kymo_probes_are_mapped(probes);
}

/* It is tried again later, and ever more seldom. */
static void fail(struct kymo_probes *probes, const char *why)
{
	const unsigned int n = probes->readable.n_failed++;

	probes->readable.again_ns = kymo_now_ns() + (AGAIN_NS << (n < AGAIN_DOUBLED ? n : AGAIN_DOUBLED));
	if (n + 1 == TOLD_AT)
		probes_tell_readable(probes, why);
}

/* The pads come in; whether all are. */
static bool strike(struct kymo_probes *probes, uint64_t *stopped_ns_ret)
{
	struct kymo_error *error;

	probes->readable.is_wanted = true;
	error = probes_add_strikes(probes);
	if (!error && kymo_probes_pending(probes)) {
		probes_forget_errors(probes);
		error = kymo_probes_install(probes, stopped_ns_ret);
	}
	if (error)
		probes_drop_strikes(probes);
	kymo_error_destroy(error);
	return !error && are_struck(probes);
}

/* Whether nothing is in the way of pads; `is_ready_ret`: all files are looked into. */
static bool prepare(struct kymo_probes *probes, const struct kymo_maps *maps, bool *is_ready_ret, const char **why_ret)
{
	*why_ret = "it has too much memory to be looked at while it records";
	if (!probes->wanted.options.wants_fast_reads && is_huge(probes->pid))
		return false;
	*why_ret = "another process traces it";
	if (kymo_traced_thread(probes->pid) != probes->pid || kymo_other_tracer(probes->pid))
		return false;
	return open_files(probes, maps, why_ret) && look_into_files(probes, is_ready_ret, why_ret);
}

void kymo_probes_open_readable(struct kymo_probes *probes, uint64_t *stopped_ns_ret)
{
	struct kymo_wire_readable *table;
	uint64_t state, begun;
	struct kymo_error *error;
	struct kymo_maps maps;
	bool is_ready = false;
	const char *why;

	if (!is_due(probes))
		return;
	table = probes_readable_table(probes);
	state = __atomic_load_n(&table->state, __ATOMIC_SEQ_CST);
	if (kymo_wire_losses_under_way(table, &begun))
		return;
	error = kymo_maps_read(probes->pid, &maps);
	if (error) {
		kymo_error_destroy(error);
		return;
	}
	if (!prepare(probes, &maps, &is_ready, &why)) {
		fail(probes, why);
	} else if (is_ready && probes_has_changed_calls(probes, &maps)) {
		fail(probes, "its code has been changed since it was loaded");
	} else if (is_ready) {
		const bool are_all = are_struck(probes);

		why = what_is_in_use(probes->pid); /* if they are, all calls are seen from here on */
		if (why)
			probes_close_readable(probes, why);
		else if (are_all)
			open_table(probes, table, &maps, state, begun);
		else if (!strike(probes, stopped_ns_ret))
			fail(probes, "a system call that may unmap memory has no probe of this recording");
	}
	kymo_maps_deinit(&maps);
}
