/*
 * Text that a third party has changed under a jump: a uprobe of the kernel's that comes or goes.
 *
 * The kernel goes by the file. It writes int3 over the first byte of the instruction, runs a copy of the file's
 * instruction, and goes on after it. When the uprobe leaves it puts the file's first byte back, if the int3 is still
 * there (kernel/events/uprobes.c: verify_opcode()). The rest of a longer jump is in the way of that.
 * docs/internals/coexisting.md has the states.
 */
#include "probe/look/mend.h"

#include <string.h>

#include "arch/trap.h"
#include "arch/uprobe.h"
#include "base/io.h"
#include "probe/coexist/peers.h"
#include "probe/look/look_state.h"
#include "probe/look/look_text.h"
#include "probe/memory/sessions.h"
#include "probe/plan/allocate.h"
#include "probe/probes.h"
#include "probe/site/sites.h"
#include "proc/memory.h"
#include "proc/process.h"
#include "proc/stop.h"
#include "proc/thread.h"
#include "procfs/maps.h"

#define SHORT_REACH 160 /* from a short jump to the end of the jump that it leads to */

/* ---- what is there --------------------------------------------------------------------------- */

/* Bytes that the look may not have read. */
static bool bytes_near(struct kymo_look *look, uint64_t address, uint8_t *out, size_t size)
{
	return look_bytes(look, address, out, size) || !kymo_process_read(look->process, address, out, size);
}

/* Where the second jump of an evicted neighbor is, which the short one at the site leads to; 0: it is none. The
 * distance may be a byte that stays. */
static uint64_t near_jump(struct kymo_look *look, const struct probe_site *site)
{
	uint8_t hop[KYMO_SHORT_JUMP_SIZE];

	if (site->plan.tactic != KYMO_TACTIC_NEIGHBOR || site->plan.is_evicted ||
	    !bytes_near(look, site->address, hop, sizeof(hop)))
		return 0;
	return kymo_short_jump_target(site->address, hop);
}

/* Whether the bytes of a pun lead to its trampoline. */
static bool pun_leads(struct kymo_look *look, const struct probe_site *site, const uint8_t *now, size_t size)
{
	uint64_t near = near_jump(look, site);
	uint8_t jump[KYMO_JUMP_SIZE];

	if (memcmp(now, site->plan.patch, site->plan.patch_size))
		return false;
	if (near)
		return bytes_near(look, near, jump, sizeof(jump)) && kymo_jump_target(near, jump) == site->link;
	for (size_t i = 0; i < site->plan.patch_size && i + KYMO_JUMP_SIZE <= size; i++)
		if (kymo_jump_target(site->address + i, now + i) == site->link)
			return true;
	return false;
}

/* Whether the jump leads into memory of any recording. */
static bool leads_to_kymo(struct kymo_look *look, uint64_t target)
{
	struct kymo_maps maps;
	struct kymo_error *error = target ? kymo_maps_read(kymo_process_pid(look->process), &maps) : NULL;
	const struct kymo_map *map;
	bool leads;

	if (!target || error) {
		kymo_error_destroy(error);
		return false;
	}
	map = kymo_maps_at(&maps, target);
	leads = map && map->executable && kymo_is_shared_map(map);
	kymo_maps_deinit(&maps);
	return leads;
}

/* Another recording's jump is there: whether its pads go on to this one's. */
static bool is_chained(struct kymo_look *look, const struct probe_site *site)
{
	struct probe_peers peers;
	struct kymo_error *error = probes_peers_read_at(look->probes, site->address, &peers);
	bool is;

	if (error) {
		kymo_error_destroy(error);
		return true; /* it is not known to be out */
	}
	is = !probes_peers_leave_out(&peers, site->address, site->pad + site->layout.inner);
	probes_peers_deinit(&peers);
	return is;
}

static bool is_breakpoint(const struct probe_site *site, const uint8_t *now, const uint8_t *patch)
{
	return now[0] != patch[0] && now[0] != site->plan.original[0] &&
	       kymo_uprobe_is_breakpoint(now[0], site->plan.original[0]);
}

/* All displaced instructions are the file's: jumps of two bytes stand in front of what is the same elsewhere, too. */
static bool is_file(const struct probe_site *site, const uint8_t *now)
{
	return !memcmp(now, site->plan.original,
		       site->plan.window > site->plan.patch_size ? site->plan.window : site->plan.patch_size);
}

/* The file's bytes except for breakpoints of third parties. */
static bool is_file_behind(const struct probe_site *site, const uint8_t *now, const uint8_t *patch)
{
	for (size_t i = 1; i < site->plan.patch_size; i++)
		if (now[i] != site->plan.original[i] && (now[i] != KYMO_TRAP_BYTE || patch[i] == KYMO_TRAP_BYTE))
			return false;
	return true;
}

/* The first byte is the file's, and the rest is not: whether that is the rest of a jump. */
static bool is_rest_of_jump(struct kymo_look *look, const struct probe_site *site, const uint8_t *now,
			    const uint8_t *patch)
{
	uint8_t jump[KYMO_JUMP_SIZE];

	if (!memcmp(now + 1, patch + 1, site->plan.patch_size - 1u))
		return true;
	if (site->link != site->address)
		return false;
	memcpy(jump, now, sizeof(jump));
	jump[0] = patch[0];
	return leads_to_kymo(look, kymo_jump_target(site->address, jump));
}

static enum look_text classify(struct kymo_look *look, const struct probe_site *site, const uint8_t *now, size_t size,
			       const uint8_t *patch)
{
	const bool is_plain = site->link == site->address;
	uint64_t target = is_plain ? kymo_jump_target(site->address, now) : 0;

	if (is_plain ? target == site->pad + site->layout.entry : pun_leads(look, site, now, size))
		return LOOK_JUMP;
	if (is_file(site, now))
		return LOOK_FILE;
	if (is_plain && leads_to_kymo(look, target))
		return is_chained(look, site) ? LOOK_JUMP : LOOK_OTHER;
	if (is_breakpoint(site, now, patch))
		return now[0] != KYMO_TRAP_BYTE || is_file_behind(site, now, patch) ? LOOK_YIELDED : LOOK_TORN;
	if (now[0] == site->plan.original[0] && is_rest_of_jump(look, site, now, patch))
		return LOOK_TORN;
	if (!is_plain && !memcmp(now, patch, site->plan.patch_size)) /* what it relies on has changed */
		return LOOK_TORN;
	if (is_plain && now[0] == patch[0]) {
		size_t kept = 0;

		for (size_t i = 1; i < KYMO_JUMP_SIZE; i++)
			kept += now[i] == patch[i] || now[i] == KYMO_TRAP_BYTE;
		return kept == KYMO_JUMP_SIZE - 1 ? LOOK_TORN : LOOK_OTHER; /* a breakpoint in the midst of it */
	}
	return LOOK_OTHER;
}

enum look_text look_at_site(struct kymo_look *look, const struct probe_site *site)
{
	uint8_t now[64], patch[KYMO_PATCH_MAX];
	size_t size = site->plan.lock_size > site->plan.patch_size ? site->plan.lock_size : site->plan.patch_size;

	if (size > sizeof(now) || probes_patch_of(site, patch))
		return LOOK_OTHER;
	if (!look_bytes(look, site->address, now, size))
		return LOOK_UNREAD;
	return classify(look, site, now, size, patch);
}

/* ---- mending --------------------------------------------------------------------------------- */

struct torn {
	const struct probe_site *site;
	bool is_whole; /* its jump is in order, but for bytes that another one is about to lose */
};

struct torn_list {
	KYMO_VEC(struct torn) items;
};

static bool has(const struct torn_list *list, const struct probe_site *site)
{
	for (size_t i = 0; i < list->items.n; i++)
		if (list->items.items[i].site == site)
			return true;
	return false;
}

/* Short jumps into the bytes of `site`, which is about to be as in the file. */
static bool add_dependents(struct kymo_look *look, const struct probe_site *site, struct torn_list *list)
{
	for (size_t i = 0; i < look->probes->sites.n; i++) {
		const struct probe_site *other = &look->probes->sites.items[i];
		uint64_t near = other->is_installed && other->address + SHORT_REACH > site->address &&
						other->address < site->address + SHORT_REACH
					? near_jump(look, other)
					: 0;

		if (near && near - site->address < site->plan.patch_size && look_at_site(look, other) == LOOK_JUMP &&
		    !has(list, other) && !kymo_vec_push(&list->items, (struct torn){ other, true }))
			return false;
	}
	return true;
}

static bool gather(struct kymo_look *look, struct torn_list *list)
{
	for (size_t i = 0; i < look->probes->sites.n; i++) {
		const struct probe_site *site = &look->probes->sites.items[i];

		if (site->is_installed && !site->is_standby && look_at_site(look, site) == LOOK_TORN &&
		    !has(list, site) &&
		    (!kymo_vec_push(&list->items, (struct torn){ site, false }) || !add_dependents(look, site, list)))
			return false;
	}
	return true;
}

/* Last planned first: later jumps rely on bytes of earlier ones. */
static int by_order_down(const void *a, const void *b)
{
	const struct probe_site *x = ((const struct torn *)a)->site, *y = ((const struct torn *)b)->site;

	return (x->order < y->order) - (x->order > y->order);
}

/* The file's bytes where kymo's are; breakpoints stay. Nothing is written where nothing changes. */
static int mend_site(struct kymo_look *look, const struct torn *torn)
{
	const struct probe_site *site = torn->site;
	size_t size = site->plan.patch_size, first = 0;
	uint8_t now[KYMO_PATCH_MAX], want[KYMO_PATCH_MAX], patch[KYMO_PATCH_MAX];

	if (!look_bytes(look, site->address, now, size) || probes_patch_of(site, patch))
		return 0;
	for (size_t i = 0; i < size; i++) {
		bool is_modified = now[i] == KYMO_TRAP_BYTE && patch[i] != KYMO_TRAP_BYTE && !torn->is_whole;

		want[i] = is_modified ? now[i] : site->plan.original[i];
	}
	while (first < size && want[first] == now[first])
		first++;
	while (size > first && want[size - 1] == now[size - 1])
		size--;
	return size > first ? kymo_process_write(look->process, site->address + first, want + first, size - first) : 0;
}

static struct kymo_error *mend_stopped(struct kymo_look *look)
{
	struct torn_list list = { .items = { 0 } };
	struct kymo_error *error = NULL;

	look_read(look); /* what it is now: the kernel, or another recorder, may have been there meanwhile */
	if (!gather(look, &list))
		error = &kymo_error_no_memory;
	if (list.items.n)
		qsort(list.items.items, list.items.n, sizeof(*list.items.items), by_order_down);
	for (size_t i = 0; i < list.items.n && !error; i++) {
		int err = mend_site(look, &list.items.items[i]);

		if (err)
			error = kymo_error_errno(
				err,
				"cannot give the code at %s its own bytes back under a breakpoint of another tool's",
				probes_site_name(list.items.items[i].site));
	}
	kymo_vec_deinit(&list.items);
	return error;
}

struct kymo_error *look_mend(struct kymo_look *look, uint64_t *stopped_ns_ret)
{
	uint64_t begin = kymo_now_ns();
	size_t n;
	bool was_stopped = (kymo_process_threads(look->process, &n), n > 0);
	struct kymo_error *error = kymo_process_stop(look->process);

	if (!error)
		error = mend_stopped(look);
	if (!was_stopped)
		kymo_process_resume(look->process);
	*stopped_ns_ret += kymo_now_ns() - begin;
	return error;
}
