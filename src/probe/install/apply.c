/*
 * Writing text. All threads are stopped; pads and journal are complete.
 *
 * A thread may stand inside of a window: then its next instruction would be in the middle of the jump. Each such thread
 * is moved to the same instruction of the displaced copy. A signal handler may have interrupted a thread inside of a
 * window: then the program counter to which it returns is in a signal frame on some stack. Frames are not ours to
 * change, so nothing is written in that case, and the caller tries again a little later. Return addresses never lie
 * inside of a window: the planner displaces nothing after a call.
 */
#include "probe/install/apply.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "arch/remote.h"
#include "arch/syscall_pad.h"
#include "base/cleanup.h"
#include "base/page.h"
#include "base/search.h"
#include "probe/code/code.h"
#include "probe/code/jit.h"
#include "probe/code/modules.h"
#include "probe/coexist/modified.h"
#include "probe/coexist/text.h"
#include "probe/install/clone_entry.h"
#include "probe/install/frames.h"
#include "probe/memory/shared.h"
#include "probe/probes.h"
#include "probe/site/sites.h"
#include "probe/site/switches.h"
#include "proc/memory.h"
#include "proc/process.h"
#include "proc/thread.h"
#include "procfs/maps.h"

/* ---- windows --------------------------------------------------------------------------------- */

static bool is_to_write(const struct probe_site *site)
{
	return site->is_planned && !site->is_installed && !site->is_retired && !site->is_left_out;
}

/*
 * The site to be written in whose window `pc` lies after the first byte, or NULL. Windows of these do not overlap, but
 * sites that are refused or retired lie among them, also in their windows.
 */
static const struct probe_site *site_around(const struct kymo_probes *probes, uint64_t pc)
{
	size_t at = kymo_partition_point(i, probes->sites.n, probes->sites.items[i].address < pc);

	while (at-- > 0 && pc - probes->sites.items[at].address < KYMO_WINDOW_MAX) {
		const struct probe_site *site = &probes->sites.items[at];

		if (is_to_write(site) && !site->behind && !site->ahead && !site->is_standby &&
		    pc - site->address < site->plan.window)
			return site;
	}
	return NULL;
}

static bool is_in_a_window(const struct probes_pc *pc, void *data)
{
	return site_around(data, pc->address) != NULL;
}

/* Where a thread at `pc` inside of the window of `site` goes; 0 when `pc` is between instructions, or the thread must
 * not be moved past what a guard does. */
static uint64_t moved_pc(const struct probe_site *site, uint64_t pc)
{
	if (site->is_guard)
		return 0;
	for (unsigned int i = 1; i < site->plan.n_insns; i++)
		if (site->address + site->plan.insn_offset[i] == pc)
			return site->pad + site->layout.insn_at[i];
	return 0;
}

/* ---- text, page by page ---------------------------------------------------------------------- */

/* Sites are sorted, and thousands lie on a few hundred pages; a system call for each page is what keeps the stop short.
 */
struct text_page {
	uint64_t address; /* 0: none */
	uint8_t bytes[KYMO_PAGE_SIZE];
};

static bool read_text(struct kymo_process *process, struct text_page *page, uint64_t address, uint8_t *out, size_t size)
{
	if (!kymo_page_has(address, size))
		return !kymo_process_read(process, address, out, size);
	if (page->address != kymo_page_down(address)) {
		page->address = 0;
		if (kymo_process_read(process, kymo_page_down(address), page->bytes, sizeof(page->bytes)))
			return false;
		page->address = kymo_page_down(address);
	}
	memcpy(out, page->bytes + (address - page->address), size);
	return true;
}

/* ---- checks ---------------------------------------------------------------------------------- */

/* The pad that is to go on in a clone goes on with what it displaces. */
static struct kymo_error *check_ahead(const struct kymo_probes *probes, const struct probe_site *site, bool *same_ret)
{
	uint64_t on;

	*same_ret = !kymo_process_read(probes->process, site->ahead, &on, sizeof(on)) && on == site->leads_to;
	return NULL;
}

/*
 * Compare what is at a site with what its plan is made for: the file's bytes in what it displaces, and those of the
 * file or of other jumps where it relies on them. Bytes that other pending sites will change are not looked at. `page`
 * is of the memory around it, which is read again only for another page. False in `same_ret`: something else is there,
 * which is noted if it belongs to no recording.
 */
static struct kymo_error *check_text(struct kymo_probes *probes, const struct probe_site *site, struct text_page *page,
				     bool *same_ret)
{
	const struct probe_module *module = &probes->modules.items[site->module];
	size_t size = site->plan.window > site->plan.lock_size ? site->plan.window : site->plan.lock_size;
	uint8_t now[64], want[64], file[64], jump[KYMO_JUMP_SIZE];

	*same_ret = false;
	if (site->ahead)
		return check_ahead(probes, site, same_ret);
	if (size > sizeof(now) || !read_text(probes->process, page, site->address, now, size))
		return kymo_error_create(KYMO_ERROR_GONE, "the code at %s is not mapped any more",
					 probes_site_name(site));
	if (site->is_standby) {
		*same_ret = true;
		return NULL;
	}
	if (site->behind) { /* another recording's jump, which leads to the pad that comes after this one's */
		*same_ret = !kymo_process_read(probes->process, site->link, jump, sizeof(jump)) &&
			    kymo_jump_target(site->link, jump) == site->leads_to &&
			    (site->link == site->address || !memcmp(now, site->plan.patch, site->plan.patch_size));
		return NULL;
	}
	if (!kymo_code_bytes(module->code, site->address - module->bias, want, size)) {
		memcpy(want, now, size); /* jumps may end after the section, in padding */
		memcpy(want, site->plan.original, site->plan.window);
	}
	memcpy(want, site->plan.original, site->plan.patch_size);
	memcpy(file, want, size);
	probe_text_look(&probes->text, site->address, want, size);
	for (size_t i = 0; i < size; i++)
		if (probe_text_is(&probes->text, TEXT_PENDING, site->address + i, 1))
			want[i] = now[i];
	memcpy(want, site->plan.original, site->plan.patch_size);
	*same_ret = !memcmp(now, want, size);
	return *same_ret || probes_note_modified(probes, site->address, now, want, file, size) ? NULL
											       : &kymo_error_no_memory;
}

/* Whether `pc` is where the system call of a guard that is being put in returns to. */
static bool is_behind_a_guard(const struct kymo_probes *probes, uint64_t pc)
{
	const struct probe_site *site = site_around(probes, pc - 1);

	return site && site->is_guard;
}

/* Threads inside of windows: where each would go. False when one cannot be moved. */
static bool can_move_all(const struct kymo_probes *probes)
{
	const struct kymo_thread *threads;
	size_t n;

	threads = kymo_process_threads(probes->process, &n);
	for (size_t i = 0; i < n; i++) {
		const struct probe_site *site = site_around(probes, threads[i].registers.rip);

		if (site && !moved_pc(site, threads[i].registers.rip))
			return false;
		if (is_behind_a_guard(probes, threads[i].registers.rip) && kymo_remote_restarts(&threads[i].registers))
			return false; /* the system call begins anew, two bytes back */
	}
	return true;
}

/*
 * Death between moving a thread and writing the text is harmless: in the pad's copy it does what it would have done in
 * place. So threads go first.
 */
static void move_threads(struct kymo_probes *probes)
{
	const struct kymo_thread *threads;
	size_t n;

	threads = kymo_process_threads(probes->process, &n);
	for (size_t i = 0; i < n; i++) {
		const struct probe_site *site = site_around(probes, threads[i].registers.rip);

		if (site)
			kymo_thread_set_pc(probes->process, i, moved_pc(site, threads[i].registers.rip));
	}
}

/* ---- writing --------------------------------------------------------------------------------- */

/* One change: of the text, of another recording's trampoline, or of where another pad goes on. */
struct change {
	uint64_t address;
	size_t size;
	uint8_t bytes[KYMO_PATCH_MAX];
};

/* What is written for a site, or what was there before. */
static int change_of(const struct probe_site *site, bool in, struct change *ret)
{
	bool is_jump = site->behind || !site->plan.trampoline;

	if (site->ahead) {
		const uint64_t on = in ? site->pad + site->layout.inner : site->leads_to;

		*ret = (struct change){ .address = site->ahead, .size = sizeof(on) };
		memcpy(ret->bytes, &on, sizeof(on));
		return 0;
	}
	ret->address = is_jump ? site->link : site->address;
	ret->size = is_jump ? KYMO_JUMP_SIZE : site->plan.patch_size;
	if (site->is_standby)
		ret->size = 0;
	else if (is_jump)
		return kymo_encode_jump(site->link, in ? site->pad + site->layout.entry : site->leads_to, ret->bytes);
	else
		memcpy(ret->bytes, in ? site->plan.patch : site->plan.original, site->plan.patch_size);
	if (!in && is_jump && !site->behind)
		memcpy(ret->bytes, site->plan.original, KYMO_JUMP_SIZE);
	return 0;
}

/* The pending sites in the order of planning. */
struct pending {
	const struct probe_site **sites;
	size_t n;
};

static int by_order(const void *a, const void *b)
{
	const struct probe_site *x = *(const struct probe_site *const *)a, *y = *(const struct probe_site *const *)b;

	return (x->order > y->order) - (x->order < y->order);
}

static struct kymo_error *gather_pending(const struct kymo_probes *probes, struct pending *ret)
{
	const struct probe_site **sites = calloc(probes->sites.n ? probes->sites.n : 1, sizeof(*sites));
	size_t n = 0;

	if (!sites)
		return &kymo_error_no_memory;
	for (size_t i = 0; i < probes->sites.n; i++)
		if (is_to_write(&probes->sites.items[i]))
			sites[n++] = &probes->sites.items[i];
	qsort(sites, n, sizeof(*sites), by_order);
	*ret = (struct pending){ sites, n };
	return NULL;
}

/*
 * Write the changes from `first` that lie on one page and follow each other in the order of planning, with one write:
 * bytes in between stay what they are. No change crosses a page, and a write within one is a single copy, so that all
 * of them are made at once or none. `end_ret` is the first of another page.
 */
static int write_page(struct kymo_probes *probes, const struct pending *pending, size_t first, struct text_page *page,
		      size_t *end_ret)
{
	uint64_t start = 0, low = UINT64_MAX, high = 0;
	struct change change;
	size_t i;
	int err = 0;

	for (i = first; !err && i < pending->n; i++) {
		err = change_of(pending->sites[i], true, &change);
		if (err || !change.size)
			continue;
		if (high && kymo_page_down(change.address) != start)
			break;
		if (!high) {
			start = kymo_page_down(change.address);
			err = kymo_process_read(probes->process, start, page->bytes, sizeof(page->bytes));
		}
		memcpy(page->bytes + (change.address - start), change.bytes, change.size);
		low = change.address < low ? change.address : low;
		high = change.address + change.size > high ? change.address + change.size : high;
	}
	if (!err && high)
		err = kymo_process_write(probes->process, low, page->bytes + (low - start), high - low);
	*end_ret = i;
	return err;
}

/* Take back the first `n` changes. */
static void take_back(struct kymo_probes *probes, const struct pending *pending, size_t n)
{
	struct change change;

	while (n-- > 0)
		if (!change_of(pending->sites[n], false, &change) && change.size &&
		    kymo_process_write(probes->process, change.address, change.bytes, change.size))
			break;
}

/*
 * A trampoline stays when its library goes, and may lead to a pad of another recording's that came first there, and is
 * gone. No thread comes by it before the text is written, which is the file's. A thread that is still there comes
 * again, and joins this one.
 */
static int restore_trampolines(struct kymo_probes *probes, const struct pending *pending)
{
	int err = 0;

	for (size_t i = 0; i < pending->n && !err; i++) {
		const struct probe_site *site = pending->sites[i];
		uint8_t jump[KYMO_JUMP_SIZE];

		if (!site->is_revived || !site->plan.trampoline || site->is_standby)
			continue;
		err = kymo_encode_jump(site->link, site->pad + site->layout.entry, jump);
		if (!err)
			err = kymo_process_write(probes->process, site->link, jump, sizeof(jump));
	}
	return err;
}

static struct kymo_error *write_text(struct kymo_probes *probes, const struct pending *pending)
{
	struct text_page page = { .address = 0 };
	int err = restore_trampolines(probes, pending);

	for (size_t i = 0, end; i < pending->n; i = end) {
		if (!err)
			err = write_page(probes, pending, i, &page, &end);
		if (!err)
			continue;
		take_back(probes, pending, i);
		if (err == -EPIPE)
			return kymo_error_create(KYMO_ERROR_BUSY,
						 "the kymo that traces process %d, through which its code is changed, "
						 "has ended or has let this one go; some probes may be in",
						 kymo_process_pid(probes->process));
		return kymo_error_errno(
			err, "cannot change the code near %s (does the kernel forbid writes through /proc/PID/mem?)",
			probes_site_name(pending->sites[i]));
	}
	probes->changes++;
	for (size_t i = 0; i < probes->sites.n; i++) {
		struct probe_site *site = &probes->sites.items[i];

		if (!is_to_write(site))
			continue;
		site->is_installed = true;
		probe_text_mark(&probes->text, TEXT_PENDING, site->address, site->plan.patch_size, false);
	}
	return NULL;
}

static struct kymo_error *check_all(struct kymo_probes *probes, const struct probe_site **stale_ret)
{
	struct text_page page = { .address = 0 };
	struct kymo_error *error = NULL;
	bool same;

	*stale_ret = NULL;
	for (size_t i = 0; i < probes->sites.n && !error;
	     i++) { /* all of them: planning keeps away from what is found */
		const struct probe_site *site = &probes->sites.items[i];

		if (!is_to_write(site))
			continue;
		error = check_text(probes, site, &page, &same);
		if (!same && !*stale_ret)
			*stale_ret = site;
	}
	return error;
}

/* Memory of no file, as it is now. With `writable_ret` the program may be about to write there: later is better. */
static struct kymo_error *check_jits(struct kymo_probes *probes, const struct kymo_maps *maps, bool *writable_ret)
{
	struct kymo_error *error = NULL;

	*writable_ret = false;
	for (size_t i = 0; i < probes->sites.n && !error; i++) {
		const struct probe_site *site = &probes->sites.items[i];

		if (is_to_write(site) && probes->modules.items[site->module].jit)
			error = kymo_jit_check(kymo_process_pid(probes->process), maps, site->address, writable_ret);
	}
	return error;
}

/* If system calls are dispatched by their address, a call in a pad would be a signal, also within the handler of that
 * signal. */
static struct kymo_error *check_dispatch(const struct kymo_probes *probes, const struct pending *pending)
{
	const struct kymo_thread *threads;
	bool has_calls = false;
	size_t n;

	threads = kymo_process_threads(probes->process, &n);
	for (size_t i = 0; i < pending->n; i++)
		has_calls |= kymo_pad_is_syscall(&pending->sites[i]->plan);
	for (size_t i = 0; has_calls && i < n; i++)
		if (kymo_thread_dispatches_calls(probes->process, i))
			return kymo_error_create(
				KYMO_ERROR_UNSAFE,
				"thread %d of process %d gets signals for system calls that are made outside of one "
				"range of addresses (PR_SET_SYSCALL_USER_DISPATCH), as pads are",
				threads[i].tid, kymo_process_pid(probes->process));
	return NULL;
}

/* Entries of sites that come back are in the journal already. A recording that has read them while they were dormant is
 * to plan anew. */
static void touch_revived(struct kymo_probes *probes, const struct pending *pending)
{
	for (size_t i = 0; i < pending->n; i++)
		if (pending->sites[i]->is_revived) {
			kymo_shared_touch(&probes->shared);
			return;
		}
}

/* Whether all text is as the plans have it: else an error, with OUTDATED where planning anew may help. */
static struct kymo_error *check_is_planned(struct kymo_probes *probes, enum probes_outcome *outcome_ret)
{
	const struct probe_site *stale = NULL;
	const struct probe_switch *corrupt = NULL;
	struct kymo_error *error = check_all(probes, &stale);

	if (!error)
		error = probes_check_switches(probes, &corrupt);
	if (error || (!stale && !corrupt))
		return error;
	if (stale && probes->modules.items[stale->module].jit && !stale->behind)
		return kymo_error_create(KYMO_ERROR_UNSAFE,
					 "the program has changed the code at 0x%" PRIx64
					 " (%s) since it was looked at; nothing was written, look where it is now",
					 stale->address, probes_site_name(stale));
	*outcome_ret = PROBES_OUTDATED;
	return stale ? kymo_error_create(KYMO_ERROR_UNSAFE,
					 "the code at %s (0x%" PRIx64
					 ") is not what its file holds: something else has patched it",
					 probes_site_name(stale), stale->address)
		     : kymo_error_create(KYMO_ERROR_UNSAFE, "the marker %s:%s at 0x%" PRIx64 " cannot be turned on: %s",
					 corrupt->provider, corrupt->name, corrupt->address, corrupt->corrupt);
}

/* PROBES_DONE: no thread and no change of the program's own is in the way of writing the text. */
static struct kymo_error *check_is_free(struct kymo_probes *probes, enum probes_outcome *outcome_ret)
{
	struct kymo_error *error;
	struct kymo_maps maps;
	bool is_writable, is_occupied;
	pid_t tid;

	error = kymo_process_maps(probes->process, &maps);
	if (error)
		return error;
	error = check_jits(probes, &maps, &is_writable);
	if (error) {
		kymo_maps_deinit(&maps);
		if (!is_writable)
			return error;
		kymo_error_destroy(error);
		*outcome_ret = PROBES_WRITABLE;
		return NULL;
	}
	if (probes_clones_enter(probes)) {
		error = probes_clones_look(probes, &maps, &is_occupied);
	} else {
		is_occupied = probes_find_saved_pc(probes->process, &maps, is_in_a_window, probes, &tid) ||
			      !can_move_all(probes);
	}
	kymo_maps_deinit(&maps);
	if (error)
		return error;
	if (is_occupied)
		*outcome_ret = PROBES_OCCUPIED;
	else if (probes_are_switches_busy(probes))
		*outcome_ret = PROBES_SWITCHING;
	return NULL;
}

/*
 * The text is compared last of all: the kernel sets uprobes in a stopped process, too. One that is set between the
 * comparison and the write is lost to its tool (docs/internals/coexisting.md).
 */
struct kymo_error *probes_apply(struct kymo_probes *probes, enum probes_outcome *outcome_ret)
{
	struct pending pending = { NULL, 0 };
	struct kymo_error *error;

	*outcome_ret = PROBES_DONE;
	error = check_is_free(probes, outcome_ret);
	if (error || *outcome_ret != PROBES_DONE)
		return error;
	error = gather_pending(probes, &pending);
	if (!error)
		error = check_dispatch(probes, &pending);
	if (!error)
		error = check_is_planned(probes, outcome_ret);
	if (error) {
		free(pending.sites);
		return error;
	}
	*outcome_ret = PROBES_DIRTY;
	if (probes_clones_enter(probes))
		error = probes_clones_move(probes);
	else
		move_threads(probes);
	touch_revived(probes, &pending); /* for a death while it writes, too */
	if (!error)
		error = write_text(probes, &pending);
	touch_revived(probes, &pending);
	if (!error)
		error = probes_turn_on(probes);
	if (!error) {
		kymo_shared_installed(&probes->shared);
		*outcome_ret = PROBES_DONE;
	}
	free(pending.sites);
	return error;
}
