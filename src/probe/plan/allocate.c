/*
 * One site: its plan, its pad, its marks in the text. A plan is the planner's; or another recording's, where that has a
 * probe at the same site already: then this one's pad comes before the other's (leave.c has the rules of such chains).
 */
#include "probe/plan/allocate.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "arch/guard.h"
#include "arch/leave_pad.h"
#include "arch/print.h"
#include "arch/syscall_pad.h"
#include "arch/trap.h"
#include "arch/writes.h"
#include "base/cleanup.h"
#include "base/page.h"
#include "probe/code/code.h"
#include "probe/code/events.h"
#include "probe/code/modules.h"
#include "probe/coexist/modified.h"
#include "probe/coexist/peers.h"
#include "probe/coexist/text.h"
#include "probe/memory/layout.h"
#include "probe/memory/prints.h"
#include "probe/memory/sessions.h"
#include "probe/memory/shared.h"
#include "probe/options.h"
#include "probe/plan/ask.h"
#include "probe/plan/faults.h"
#include "probe/plan/planning.h"
#include "probe/plan/pool.h"
#include "probe/plan/writes.h"
#include "probe/threads/sample.h"
#include "probe/probes.h"
#include "probe/resolve/markers.h"
#include "probe/resolve/syscalls.h"
#include "probe/site/refusals.h"
#include "probe/site/sites.h"
#include "probe/snapshot/snapshot.h"
#include "probe/spec/spec.h"
#include "sym/module.h"

/* ---- pads ------------------------------------------------------------------------------------ */

static struct kymo_error *emit_failed(const struct probe_site *site, int err)
{
	return kymo_error_create(KYMO_ERROR_UNSAFE, "no pad for the probe at %s: %s", probes_site_name(site),
				 err == -ERANGE ? "something that its instructions refer to is out of reach from there"
						: strerror(-err));
}

/* Sites of this round are meant; a region is shared by files that lie near each other. */
static struct kymo_error *region_is_full(const struct planning *planning)
{
	const struct kymo_probes *probes = planning->probes;
	size_t fit = planning->order - (size_t)probes->shared.n_sites, asked = 0;

	for (size_t i = 0; i < probes->sites.n; i++)
		asked += !probes->sites.items[i].is_installed && probes_is_wanted(&probes->sites.items[i]);
	return kymo_error_create(
		KYMO_ERROR_FAILED,
		"the pads of %zu probes fit into the %" PRIu64
		" MiB that there are for them, and %zu are asked for; ask for fewer, by a glob that matches less",
		fit, planning->region->size >> 20, asked);
}

/* `args` has room for the arguments of all events. */
static size_t gather_events(const struct kymo_probes *probes, const struct probe_site *site,
			    struct kymo_pad_event *events, struct kymo_fetch (*args)[KYMO_EVENT_MAX_ARGS])
{
	const struct kymo_probe_event *all;
	size_t n_all, n = 0;

	all = kymo_events_items(probes->wanted.options.events, &n_all);
	for (size_t i = 0; i < site->requests.n; i++) {
		const struct probe_request *request = &site->requests.items[i];
		const struct kymo_probe_event *event = &all[request->event];

		if (request->is_refused)
			continue;
		memcpy(args[n], event->args, sizeof(args[n]));
		for (size_t k = 0; k < event->n_args; k++)
			if (args[n][k].kind == KYMO_FETCH_RETVAL || args[n][k].kind == KYMO_FETCH_FORM)
				args[n][k].value = request->is_unknown;
		events[n] = (struct kymo_pad_event){ .id = event->id,
						     .args = args[n],
						     .n_args = event->n_args,
						     .filter = event->filter,
						     .retval_is_unknown = request->is_unknown,
						     .sample = probes_sample(probes, request->spec) };
		n++;
	}
	for (size_t i = 0; i + 1 < n; i++) /* the one that writes, if any does, comes last: others see what was there */
		if (kymo_pad_writes(&events[i])) {
			const struct kymo_pad_event writer = events[i];

			events[i] = events[n - 1];
			events[n - 1] = writer;
			break;
		}
	return n;
}

/* A word of the region, the condition, and what is printed. */
static void take_trap(struct planning *planning, struct probe_site *site, struct kymo_pad_event *event,
		      struct kymo_pad_print *print)
{
	const struct kymo_probes_traps *traps = planning->probes->wanted.options.traps;
	const struct kymo_probes_trap *trap = &traps->items[site->requests.items[0].spec];
	struct kymo_probes_prints prints;

	site->trap = planning->region->live + KYMO_PAD_LIVE_TRAPS + sizeof(uint32_t) * planning->n_traps++;
	*event = (struct kymo_pad_event){ .filter = trap->condition, .trap = site->trap };
	if (!trap->print)
		return;
	prints = kymo_prints(planning->probes);
	*print = *trap->print;
	print->memory = prints.address;
	print->n_slots = prints.n_slots;
	print->slot_size = prints.slot_size;
	event->print = print;
}

/* Room for one more pad: -ENOSPC where the region is full, -ENOMEM. */
static int grow_region(struct probe_region *region, size_t size)
{
	size_t cap = region->cap;
	uint8_t *grown;

	while (cap - region->n_bytes < size)
		cap *= 2;
	if (cap == region->cap)
		return 0;
	if (cap > region->size)
		cap = region->size;
	if (cap - region->n_bytes < size)
		return -ENOSPC;
	grown = realloc(region->bytes, cap);
	if (!grown)
		return -ENOMEM;
	memset(grown + region->cap, KYMO_TRAP_BYTE, cap - region->cap);
	region->bytes = grown;
	region->cap = cap;
	return 0;
}

/* The spec whose system calls the site is for, or NULL. */
static const struct kymo_spec *syscalls_of(const struct kymo_probes *probes, const struct probe_site *site)
{
	return site->requests.n && site->requests.items[0].kind == KYMO_EVENT_SYSCALL
		       ? &probes->wanted.specs[site->requests.items[0].spec]
		       : NULL;
}

/* Its pad is that of a system call. */
static bool is_call(const struct kymo_probes *probes, const struct probe_site *site)
{
	return site->is_strike || syscalls_of(probes, site);
}

static int emit_syscall_pad(const struct planning *planning, struct probe_site *site, uint8_t *out, size_t size)
{
	const struct kymo_spec *spec = syscalls_of(planning->probes, site);
	struct kymo_pad_syscalls syscalls = { .first_id = 0 };

	if (spec && !probe_syscalls_fill(planning->probes->wanted.options.events, spec, &syscalls))
		return -EINVAL;
	syscalls.strikes = site->is_strike;
	return kymo_pad_emit_syscall(&planning->env, &site->plan, site->address, site->pad, &syscalls, out, size,
				     &site->layout);
}

/* The site's address - its offset in the file; 0: it is in no file. */
static uint64_t file_of(const struct planning *planning, const struct probe_site *site)
{
	const struct probe_module *module = &planning->probes->modules.items[site->module];
	uint64_t offset;

	if (!module->module || kymo_module_vaddr_to_offset(module->module, site->address - module->bias, &offset))
		return 0;
	return site->address - offset;
}

static void set_watch(const struct kymo_probes *probes, enum probe_watched watches, struct kymo_pad_chain *chain)
{
	const uint64_t data = probes->shared.data_address;

	switch (watches) {
	case PROBE_WATCH_LIBRARIES:
		chain->watch = data + offsetof(struct kymo_wire_data, watch);
		break;
	case PROBE_WATCH_HANDLERS:
		chain->watch = data + offsetof(struct kymo_wire_data, handlers);
		chain->watched_signals = PROBES_FAULT_SIGNALS;
		break;
	case PROBE_WATCH_LIMITS:
		chain->mutes = true;
		break;
	}
}

/* Whether a clone may come behind the pad. One that writes registers is the last of its chain. */
static bool goes_on(const struct kymo_probes *probes, const struct kymo_pad_event *events, size_t n)
{
	return probes->wanted.options.may_go_on && !(n && kymo_pad_writes(&events[n - 1]));
}

static int emit_pad(struct planning *planning, struct probe_site *site)
{
	struct kymo_fetch args[KYMO_PAD_MAX_EVENTS][KYMO_EVENT_MAX_ARGS];
	struct kymo_pad_event events[KYMO_PAD_MAX_EVENTS];
	struct kymo_pad_print print;
	struct kymo_pad_chain chain = { .next = site->behind ? kymo_shared_word(&planning->probes->shared, site->order)
							     : 0,
					.save_flags = site->wants_flags,
					.file = file_of(planning, site) };
	bool is_syscall = is_call(planning->probes, site);
	const bool is_trap = planning->probes->wanted.options.traps;
	size_t n = site->is_guard || is_syscall || is_trap ? 0 : gather_events(planning->probes, site, events, args);
	size_t size = kymo_pad_size_max(n ? events : NULL, site->is_guard || is_syscall ? 1 : n);
	struct probe_region *region = planning->region;
	uint8_t *out;
	int err;

	if (goes_on(planning->probes, events, n) && !is_trap)
		chain.next = kymo_shared_word(&planning->probes->shared, site->order);
	if (site->is_watch)
		set_watch(planning->probes, site->watches, &chain);
	if (is_trap && !site->plan.is_evicted) {
		take_trap(planning, site, events, &print);
		n = 1;
		size = kymo_pad_size_max(events, n);
	}
	err = grow_region(region, size);
	if (err)
		return err;
	out = region->bytes + region->n_bytes;
	site->pad = region->address + region->n_bytes;
	if (site->is_guard)
		err = kymo_guard_emit(&planning->env, &site->plan, site->address, site->pad, out, size, &site->layout);
	else if (is_syscall)
		err = emit_syscall_pad(planning, site, out, size);
	else
		err = kymo_pad_emit(&planning->env, &site->plan, site->address, site->pad, events, n, &chain, out, size,
				    &site->layout);
	if (err)
		return err;
	site->wants_flags |= kymo_pad_wants_flags(events, n);
	region->n_bytes = align_up(region->n_bytes + site->layout.size, PAD_ALIGN);
	return 0;
}

/* ---- a site ---------------------------------------------------------------------------------- */

/* The bytes that the plan writes. */
int probes_patch_of(const struct probe_site *site, uint8_t out[KYMO_PATCH_MAX])
{
	if (!site->plan.trampoline)
		return kymo_encode_jump(site->address, site->pad + site->layout.entry, out);
	memcpy(out, site->plan.patch, site->plan.patch_size);
	return 0;
}

/* A site with a plan gets its pad, its trampoline, and its marks in the text. */
struct kymo_error *probes_allocate(struct planning *planning, struct probe_site *site)
{
	struct probe_text *text = &planning->probes->text;
	struct probe_trampoline trampoline;
	uint8_t patch[KYMO_PATCH_MAX];
	int err;

	site->order = planning->order;
	if (!site->link)
		site->link = site->plan.trampoline ? planning->bias + site->plan.trampoline : site->address;
	err = emit_pad(planning, site);
	if (!err)
		err = probes_patch_of(site, patch);
	if (err == -ENOMEM)
		return &kymo_error_no_memory;
	if (err == -ENOSPC)
		return region_is_full(planning);
	if (err)
		return emit_failed(site, err);
	trampoline = (struct probe_trampoline){ site->link, site->pad + site->layout.entry };
	if (site->plan.trampoline && !site->behind && !kymo_vec_push(&planning->layout->trampolines, trampoline))
		return &kymo_error_no_memory;
	if (!site->is_standby && (!probe_text_write(text, site->address, patch, site->plan.patch_size) ||
				  !probe_text_mark(text, TEXT_PENDING, site->address, site->plan.patch_size, true)))
		return &kymo_error_no_memory;
	if (!probe_text_mark(text, TEXT_LOCKED, site->address, site->plan.lock_size, true))
		return &kymo_error_no_memory;
	if (syscalls_of(planning->probes, site))
		probe_syscalls_use(planning->probes->wanted.options.events, syscalls_of(planning->probes, site));
	for (size_t i = 0; i < site->requests.n && !syscalls_of(planning->probes, site) && !site->trap; i++)
		if (!site->requests.items[i].is_refused)
			kymo_events_use(planning->probes->wanted.options.events, site->requests.items[i].event);
	site->is_exchanged = planning->probes->attempt.is_lenient;
	site->is_planned = true;
	planning->order++;
	return NULL;
}

/* An instruction that makes room for another site's jump. If it is to be probed, it is a site already, and none that
 * can be evicted. */
static struct kymo_error *allocate_evicted(struct planning *planning, size_t module, const struct kymo_plan *evicted)
{
	struct probe_site fresh = { .module = module, .address = planning->bias + evicted->vaddr, .plan = *evicted },
			  *site;
	struct kymo_error *error = probes_insert_site(planning->probes, &fresh, &site);

	return error ? error : probes_allocate(planning, site);
}

/* The window that another recording's entry displaces, as a plan of this one's. */
static int adopt_plan(const struct planning *planning, struct kymo_code *code, const struct kymo_wire_site *entry,
		      struct kymo_plan *ret)
{
	struct kymo_plan adopted = {
		.tactic = (enum kymo_tactic)entry->tactic,
		.vaddr = entry->address - planning->bias,
		.window = entry->window,
		.patch_size = entry->patch_size,
		.lock_size = entry->lock_size,
		.trampoline = entry->link == entry->address ? 0 : entry->link - planning->bias,
		.is_evicted = entry->flags & KYMO_WIRE_EVICTED,
	};

	memcpy(adopted.original, entry->original, sizeof(adopted.original));
	memcpy(adopted.patch, entry->patched, sizeof(adopted.patch));
	*ret = adopted;
	return kymo_plan_window(code->map, ret);
}

/* A trampoline that lies on two pages can't be changed by one write. One in no mapping that is known was mapped since
 * the others were read. */
static bool can_share_link(struct planning *planning, const struct probe_peer_entry *head, struct probe_stretch *ret)
{
	struct kymo_wire_trampolines stretch;

	if (!kymo_page_has(head->site->link, KYMO_JUMP_SIZE))
		return false;
	if (!probe_peer_entry_stretch(head, &stretch)) {
		planning->is_contended = true;
		return false;
	}
	*ret = (struct probe_stretch){ stretch.address, stretch.size, 0 };
	return true;
}

/* Whether the jump of `head` relies on what is changed at `site`: by the bytes after its own, or because the short
 * jump that stands there leads into it. */
static bool relies_on(const struct probe_peer_entry *entry, const struct kymo_wire_site *site)
{
	const struct kymo_wire_site *head = entry->site;
	uint64_t low = head->address + head->patch_size, high = head->address + head->lock_size, hop = entry->hop;

	if (site->address == head->address)
		return false;
	if (site->address < high && site->address + site->patch_size > low)
		return true;
	return hop && site->address < hop + KYMO_JUMP_SIZE && site->address + site->patch_size > hop;
}

static bool has_joined(const struct planning *planning, uint64_t address)
{
	const struct probe_site *own = probes_site_at(planning->probes, address);

	return own && own->is_planned && own->behind;
}

static const char *cannot_join(struct planning *planning, const struct probe_peer_entry *head,
			       const struct probe_peer_entry **evicted_ret);

/* The instruction that was evicted for `head`, if it is to be joined, too. That does not make it available for a probe
 * of its own. */
static const struct probe_peer_entry *find_evicted(struct planning *planning, const struct probe_peer_entry *head,
						   uint64_t address)
{
	const struct probe_peer_entry *evicted = probes_peers_head(&planning->snapshot->peers, address), *none = NULL;
	const struct probe_site *own = probes_site_at(planning->probes, address);

	if (!evicted || !(evicted->site->flags & KYMO_WIRE_EVICTED) || evicted->site->tactic != head->site->tactic ||
	    (own && (own->is_planned || probes_is_wanted(own))))
		return NULL;
	return cannot_join(planning, evicted, &none) ? NULL : evicted;
}

/*
 * A pun relies on bytes after it, which another site of the other recording's may have changed. They stay as they are
 * only as long as a recording has that site: so this recording must have it, too. An instruction that was evicted for
 * it can be joined with it: `evicted_ret`, or NULL.
 */
static bool has_what_it_relies_on(struct planning *planning, const struct probe_peer_entry *head,
				  const struct probe_peer_entry **evicted_ret)
{
	const struct probe_peers *peers = &planning->snapshot->peers;
	const bool may_evict = !(head->site->flags & KYMO_WIRE_EVICTED);

	for (size_t i = 0; i < peers->n_entries; i++) {
		const struct kymo_wire_site *site = peers->entries[i].site;

		if (!relies_on(head, site) || has_joined(planning, site->address) ||
		    (*evicted_ret && (*evicted_ret)->site->address == site->address))
			continue;
		if (!may_evict || *evicted_ret)
			return false;
		*evicted_ret = find_evicted(planning, head, site->address);
		if (!*evicted_ret)
			return false;
	}
	return true;
}

/* Why the site of `head` can't be shared, or NULL. */
static const char *cannot_join(struct planning *planning, const struct probe_peer_entry *head,
			       const struct probe_peer_entry **evicted_ret)
{
	const struct probe_region *region = planning->region;
	uint8_t jump[KYMO_JUMP_SIZE];

	if (head->site->link == head->site->address &&
	    probes_peers_rely_on(&planning->snapshot->peers, head->site->address, KYMO_JUMP_SIZE))
		return "another recording has a probe here, and other probes that rely on the bytes of its jump";
	if (head->site->link != head->site->address && !has_what_it_relies_on(planning, head, evicted_ret))
		return "another recording has a probe here, the jump of which relies on a jump that is its alone";
	if (kymo_encode_jump(head->site->link, region->address, jump) ||
	    kymo_encode_jump(head->site->link, region->address + region->size, jump))
		return "another recording has a probe here, the jump of which is too far away";
	return NULL;
}

/* Its trampoline's stretch is this recording's, too. False when it can't be, or memory is out. */
static bool share_link(struct planning *planning, const struct probe_peer_entry *head)
{
	struct probe_layout *layout = planning->layout;
	struct probe_stretch stretch;

	if (head->site->link == head->site->address)
		return true;
	if (!can_share_link(planning, head, &stretch))
		return false;
	for (size_t i = 0; i < layout->joined.n; i++)
		if (layout->joined.items[i].address == stretch.address && layout->joined.items[i].size == stretch.size)
			return true;
	return kymo_vec_push(&layout->joined, stretch);
}

/* What `site` becomes by that, or why it can't. */
static const char *take_over(struct planning *planning, struct kymo_code *code, const struct probe_peer_entry *head,
			     struct probe_site *site)
{
	if (adopt_plan(planning, code, head->site, &site->plan))
		return "what another recording has here is no plan of this version";
	if (!share_link(planning, head))
		return "another recording has a probe here, the jump of which cannot be shared";
	if (site->plan.faults & probes_watched_faults(planning->probes, &code->code))
		return "another recording has a probe here, which displaces an instruction that may fault, and the "
		       "process handles that";
	site->link = head->site->link;
	site->behind = head->site->inner;
	site->leads_to = head->site->entry;
	site->wants_flags = head->site->flags & KYMO_WIRE_WANTS_FLAGS;
	return NULL;
}

/* It is no site yet, or one whose probes are all refused. */
static struct kymo_error *allocate_joined(struct planning *planning, const struct probe_site *joined)
{
	struct probe_site *site = probes_site_at(planning->probes, joined->address);
	struct kymo_error *error = site ? NULL : probes_insert_site(planning->probes, joined, &site);

	if (error)
		return error;
	site->plan = joined->plan;
	site->link = joined->link;
	site->behind = joined->behind;
	site->leads_to = joined->leads_to;
	site->wants_flags = joined->wants_flags;
	return probes_allocate(planning, site);
}

/*
 * Join what another recording has at the same site: its plan, its link; our pad comes before its. The instruction that
 * was evicted for it is joined before it, and after all that can refuse the site.
 */
static struct kymo_error *join(struct planning *planning, uint64_t address, struct kymo_code *code,
			       const struct probe_peer_entry *head)
{
	const struct probe_site *own = probes_site_at(planning->probes, address);
	struct probe_site site = { .module = own->module, .address = address }, neighbor = site;
	const struct probe_peer_entry *evicted = NULL;
	const char *why =
		head->site->flags & KYMO_WIRE_EVICTED
			? "another recording has displaced the instruction here to make room for a probe of its own"
			: cannot_join(planning, head, &evicted);
	struct kymo_error *error = NULL;

	if (!why)
		why = take_over(planning, code, head, &site);
	if (!why && evicted) {
		neighbor.address = evicted->site->address;
		why = take_over(planning, code, evicted, &neighbor);
	}
	if (why)
		return probes_refuse(planning->probes, probes_site_at(planning->probes, address), why);
	if (evicted)
		error = allocate_joined(planning, &neighbor);
	return error ? error : allocate_joined(planning, &site);
}

bool probes_is_wanted(const struct probe_site *site)
{
	for (size_t i = 0; i < site->requests.n; i++)
		if (!site->requests.items[i].is_refused)
			return true;
	return site->is_watch || site->is_strike;
}

/* The name is looked up for the user who has named the site; a glob may stand for each marker of a large program. */
static struct kymo_error *refuse_switch_site(struct kymo_probes *probes, struct probe_site *site)
{
	kymo_cleanup_free char *name = site->is_exact ? probes_marker_at(probes, site->module, site->address) : NULL;
	kymo_cleanup_free char *reason = NULL;

	if (!name)
		return probes_refuse(
			probes, site,
			"there is the NOP of a marker, which changes when that is turned on (-m records markers)");
	if (asprintf(&reason,
		     "there is the NOP of the marker %s, which changes when that is turned on; -m %s records it", name,
		     name) < 0) {
		reason = NULL;
		return &kymo_error_no_memory;
	}
	return probes_refuse(probes, site, reason);
}

/* Plan and allocate the site at `address`, which is to be probed. */
struct kymo_error *probes_plan_site(struct planning *planning, uint64_t address)
{
	struct kymo_probes *probes = planning->probes;
	struct probe_site *site = probes_site_at(probes, address);
	const struct probe_peer_entry *head = probes_peers_head(&planning->snapshot->peers, address);
	struct kymo_plan plans[KYMO_PLANS_MAX];
	struct kymo_code *code;
	struct kymo_error *error;
	char reasons[600];
	size_t n = 0;

	planning->bias = probes->modules.items[site->module].bias;
	error = probes_code(probes, site->module, &code);
	if (error)
		return error;
	probe_text_mark(&probes->text, TEXT_WANTED, address, 1, false);
	error = probes_refuse_writes(probes, site, head);
	if (error || !probes_is_wanted(site))
		return error;
	if (site->requests.n && !syscalls_of(probes, site)) /* what the user wants comes first */
		site->is_strike = false;
	if (head && (is_call(probes, site) || probes->wanted.options.traps))
		return probes_refuse(probes, site, "another recording has a probe here");
	if (head)
		return join(planning, address, code, head);
	if (probe_text_is(&probes->text, TEXT_SWITCH, address, 1))
		return refuse_switch_site(probes, site);
	if (probes_ask_planner(planning, site, code, plans, &n, reasons, sizeof(reasons))) {
		planning->is_contended |= probes_peers_are_busy_at(&planning->snapshot->peers, address);
		if (probe_text_is(&probes->text, TEXT_MODIFIED, address, 1))
			return probes_refuse(probes, site, probes_modified_reason(probes, address));
		return probes_refuse(probes, site, *reasons ? reasons : "the planner has no tactic for it");
	}
	if (probe_text_is(&probes->text, TEXT_MODIFIED, address,
			  plans[n - 1].window)) /* after the bytes that change: a copy would run without it */
		return probes_refuse(probes, site, PROBE_IS_PATCHED);
	if (probes->wanted.options.traps &&
	    (n > 1 || planning->n_traps == KYMO_PAD_TRAPS || !kymo_pad_can_trap(&plans[0])))
		return probes_refuse(probes, site, "no thread could be brought out of a pad with a trap");
	for (size_t i = 0; i + 1 < n && !error; i++)
		error = allocate_evicted(planning, site->module, &plans[i]);
	if (error)
		return error;
	site = probes_site_at(probes, address);
	site->plan = plans[n - 1];
	if (is_call(probes, site) && !kymo_pad_is_syscall(&site->plan))
		return probes_refuse(probes, site, "more than the system call would be displaced");
	return probes_allocate(planning, site);
}
