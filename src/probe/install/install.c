#include "probe/install/install.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "probe/code/events.h"
#include "probe/code/modules.h"
#include "probe/coexist/peers.h"
#include "probe/coexist/text.h"
#include "probe/install/apply.h"
#include "probe/install/readable_pages.h"
#include "probe/install/stack.h"
#include "probe/install/stop.h"
#include "probe/memory/data.h"
#include "probe/memory/layout.h"
#include "probe/memory/recorders.h"
#include "probe/memory/sessions.h"
#include "probe/memory/trampolines.h"
#include "probe/memory/shared.h"
#include "probe/memory/state.h"
#include "probe/options.h"
#include "probe/plan/clone_sites.h"
#include "probe/plan/plan.h"
#include "probe/probes.h"
#include "probe/resolve/files.h"
#include "probe/resolve/resolve.h"
#include "probe/site/refusals.h"
#include "probe/site/sites.h"
#include "probe/site/switches.h"
#include "probe/snapshot/snapshot.h"
#include "probe/spec/spec.h"
#include "probe/threads/readable.h"
#include "probe/threads/threads.h"
#include "proc/call.h"
#include "proc/memory.h"
#include "proc/nap.h"
#include "proc/process.h"
#include "proc/sharing.h"
#include "proc/stop.h"
#include "proc/thread.h"
#include "procfs/maps.h"

#define TRIES \
	16 /* about four seconds, with pauses that grow by half: on a loaded machine a handler may wait that long for \
	      its turn */
#define TRY_PAUSE_NS 5000000
#define PLAN_TRIES 12    /* while the process is frozen */
#define PATIENT_TRIES 60 /* while it runs: each other recording that comes or goes costs one */
#define MOST_PAUSES 12
#define CONTENDED_TRIES (PLAN_TRIES / 2)
#define STACK_DEPTH ((uint64_t)1 << 20) /* of the initial stack that is taken for readable below its present start */

struct kymo_error *kymo_probes_create(struct kymo_process *process, const struct kymo_spec *specs, size_t n_specs,
				      const struct kymo_probes_options *options, struct kymo_probes **ret)
{
	struct kymo_probes *probes = calloc(1, sizeof(*probes));
	struct kymo_error *error;

	if (!probes)
		return &kymo_error_no_memory;
	probes->shared.fd = probes->shared.data.fd = probes->shared.arena.fd = -1;
	probes->process = process;
	probes->pid = kymo_process_pid(process);
	probes->wanted.specs = specs;
	probes->wanted.n_specs = n_specs;
	probes->per_spec.met = calloc(n_specs ? n_specs : 1, sizeof(*probes->per_spec.met));
	probes->per_spec.refused = calloc(n_specs ? n_specs : 1, sizeof(*probes->per_spec.refused));
	probes->wanted.directory = strdup(options->directory);
	probes->wanted.options = *options;
	probes->wanted.options.directory = probes->wanted.directory;
	probes_choose_fast_reads(probes);
	error = probes->per_spec.met && probes->per_spec.refused && probes->wanted.directory ? probes_files_init(probes)
											     : &kymo_error_no_memory;
	if (error) {
		kymo_probes_destroy(probes);
		return error;
	}
	*ret = probes;
	return NULL;
}

void kymo_probes_destroy(struct kymo_probes *probes)
{
	if (!probes)
		return;
	probes_clones_deinit(probes);
	probes_resolve_deinit(probes);
	kymo_shared_deinit(&probes->shared);
	probe_text_deinit(&probes->text);
	kymo_vec_deinit(&probes->seen);
	kymo_vec_deinit(&probes->modified);
	if (probes->per_spec.refused)
		probes_forget_errors(probes);
	free(probes->per_spec.refused);
	free(probes->per_spec.met);
	free(probes->wanted.directory);
	free(probes);
}

/* ---- installing ------------------------------------------------------------------------------ */

static struct kymo_error *find_stack(struct kymo_probes *probes)
{
	struct kymo_maps maps;
	struct kymo_error *error = kymo_process_maps(probes->process, &maps);

	if (error)
		return error;
	for (size_t i = 0; i < maps.n; i++) {
		if (strcmp(maps.items[i].path, "[stack]"))
			continue;
		probes->stacks.high = maps.items[i].end;
		probes->stacks.low = maps.items[i].start;
		/* It grows down; nothing else is mapped that close below. */
		if (probes->stacks.high - probes->stacks.low < STACK_DEPTH)
			probes->stacks.low = probes->stacks.high - STACK_DEPTH;
	}
	kymo_maps_deinit(&maps);
	probes->stacks.end = probes_stack_end(probes);
	return NULL;
}

/* The first thread can't make remote calls, has ended, or another kymo has it for a moment. */
static bool is_worth_stopping_all(const struct kymo_error *error)
{
	return error->code == KYMO_ERROR_UNSAFE || error->code == KYMO_ERROR_GONE || error->code == KYMO_ERROR_BUSY ||
	       error->code == KYMO_ERROR_PERMISSION;
}

/* All threads are stopped: a child that one of them forks meanwhile would have the descriptors, and the rings
 * (docs/internals/memory.md). */
static struct kymo_error *create_stopped(struct kymo_probes *probes, bool was_stopped, uint64_t *stopped_ns_ret)
{
	uint64_t begin = kymo_now_ns();
	struct kymo_error *error = probes_stop_patiently(probes->process);

	if (!error)
		error = kymo_shared_create(probes->process, &probes->wanted.options, &probes->shared);
	if (!was_stopped)
		kymo_process_resume(probes->process);
	*stopped_ns_ret += kymo_now_ns() - begin;
	return error;
}

/* First install: the memory. */
static struct kymo_error *make_shared(struct kymo_probes *probes, bool was_stopped, uint64_t *stopped_ns_ret)
{
	struct kymo_error *error;

	probes->shared.is_sequenced = probes_may_use_sequences(probes);
	probes_forgo_readable(probes);
	error = create_stopped(probes, was_stopped, stopped_ns_ret);
	if (error)
		return error;
	probes->has_shared = true;
	error = kymo_data_format(&probes->shared, &probes->wanted.options, &probes->shared.data);
	if (!error)
		probes_prepare_rings_early(probes);
	if (!error)
		error = find_stack(probes);
	return error;
}

static uint32_t first_event(const struct kymo_probes *probes, const struct probe_site *site)
{
	const struct kymo_probe_event *events;
	size_t n;

	events = kymo_events_items(probes->wanted.options.events, &n);
	for (size_t i = 0; i < site->requests.n && !site->trap; i++)
		if (!site->requests.items[i].is_refused)
			return events[site->requests.items[i].event].id;
	return 0;
}

static void journal_entry(const struct kymo_probes *probes, const struct probe_site *site, struct kymo_wire_site *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->address = site->address;
	ret->link = site->link;
	ret->pad = site->pad;
	ret->pad_size = site->layout.size;
	ret->event_id = first_event(probes, site);
	ret->entry = site->pad + site->layout.entry;
	ret->inner = site->pad + site->layout.inner;
	ret->displaced = site->pad + site->layout.displaced;
	ret->hop = site->layout.hop ? site->pad + site->layout.hop : 0;
	ret->next = site->behind || !ret->hop ? site->behind : ret->displaced;
	memcpy(ret->original, site->plan.original, sizeof(ret->original));
	memcpy(ret->patched, site->plan.patch, sizeof(ret->patched));
	if (!site->plan.trampoline)
		kymo_encode_jump(site->address, ret->entry, ret->patched);
	ret->patch_size = site->plan.patch_size;
	ret->window = site->plan.window;
	ret->lock_size = site->plan.lock_size;
	ret->tactic = (uint8_t)site->plan.tactic;
	ret->flags =
		(uint8_t)((site->is_guard ? KYMO_WIRE_GUARD : 0) | (site->is_standby ? KYMO_WIRE_STANDBY : 0) |
			  (probes->modules.items[site->module].jit ? KYMO_WIRE_JIT : 0) |
			  (site->plan.is_evicted ? KYMO_WIRE_EVICTED : 0) |
			  (site->wants_flags ? KYMO_WIRE_WANTS_FLAGS : 0) | (site->is_catch ? KYMO_WIRE_CATCH : 0));
	ret->inode = probes->modules.items[site->module].inode;
	snprintf(ret->name, sizeof(ret->name), "%s", probes_site_name(site));
}

/* Entries are in the order of planning, as the text is changed. What turns markers on comes last, so that it goes
 * first. */
static struct kymo_error *write_journal(struct kymo_probes *probes)
{
	uint64_t begin = probes->shared.n_sites;
	kymo_cleanup_free struct kymo_wire_site *entries =
		calloc(probes->sites.n + probes->switches.n + 1, sizeof(*entries));
	size_t n = 0;

	if (!entries)
		return &kymo_error_no_memory;
	for (size_t i = 0; i < probes->sites.n; i++) {
		const struct probe_site *site = &probes->sites.items[i];

		if (!site->is_planned || site->is_installed || site->is_retired || site->order < begin)
			continue;
		journal_entry(probes, site, &entries[site->order - begin]);
		n++;
	}
	n += probes_journal_switches(probes, begin + n, &entries[n]);
	return kymo_shared_journal(&probes->shared, probes->process, entries, n);
}

static struct kymo_error *write_pads(struct kymo_probes *probes, const struct probe_layout *layout)
{
	for (size_t i = 0; i < layout->regions.n; i++) {
		const struct probe_region *region = &layout->regions.items[i];
		int err = kymo_shared_store_pads(&probes->shared, region->at, region->bytes, region->n_bytes);

		if (err)
			return kymo_error_errno(err, "cannot write the pads");
	}
	return NULL;
}

/* The thread that lend_thread() has taken for remote calls. */
static struct kymo_error *give_thread_back(struct kymo_probes *probes, struct kymo_error *error)
{
	if (!probes->attempt.keeps_thread)
		return error;
	probes->attempt.keeps_thread = false;
	return kymo_error_first(error, kymo_remote_end(probes->process));
}

/* Within a remote call. */
static struct kymo_error *map_regions(struct kymo_probes *probes, const struct probe_layout *layout)
{
	struct kymo_error *error = kymo_remote_begin(probes->process);

	if (error)
		return error;
	for (size_t i = 0; i < layout->regions.n && !error; i++)
		error = kymo_shared_map_region(&probes->shared, probes->process, &layout->regions.items[i]);
	error = kymo_error_first(error, kymo_remote_end(probes->process));
	return give_thread_back(probes, error); /* its registers are looked at, and may be changed */
}

/* The process is stopped: the holes chosen while it ran must still be holes. */
static struct kymo_error *check_holes(struct kymo_probes *probes, const struct probe_layout *layout, bool *taken_ret)
{
	struct kymo_maps maps;
	struct kymo_error *error = kymo_process_maps(probes->process, &maps);

	if (error)
		return error;
	for (size_t i = 0; i < layout->regions.n; i++)
		for (size_t k = 0; k < maps.n; k++)
			*taken_ret |= maps.items[k].start <
					      layout->regions.items[i].address + layout->regions.items[i].size &&
				      maps.items[k].end > layout->regions.items[i].address;
	kymo_maps_deinit(&maps);
	return NULL;
}

static struct kymo_error *map_trampolines_stopped(struct kymo_probes *probes, const struct probe_layout *layout,
						  struct kymo_error *(*stop)(struct kymo_process *), bool was_stopped,
						  int *fd_ret, bool *taken_ret)
{
	struct kymo_error *error = stop(probes->process);

	if (!error)
		error = kymo_remote_begin(probes->process);
	if (!error) {
		error = kymo_shared_map_trampolines(&probes->shared, probes->process, layout, fd_ret, taken_ret);
		error = kymo_error_first(error, kymo_remote_end(probes->process));
	}
	if (error && *fd_ret >= 0) {
		close(*fd_ret); /* it is tried again */
		*fd_ret = -1;
	}
	if (!was_stopped)
		kymo_process_resume(probes->process);
	return error;
}

/* Whether a recorder that is gone has left something: a thread may be about to map memory for it yet, until all have
 * been stopped. */
static struct kymo_error *find_leftovers(struct kymo_probes *probes, bool *ret)
{
	struct kymo_session_list list;
	struct kymo_error *error = kymo_sessions_read(probes->process, &list);

	if (error)
		return error;
	*ret = list.has_strays;
	for (size_t i = 0; i < list.n; i++)
		*ret |= !kymo_session_has_recorder(&list.items[i], list.pid);
	kymo_sessions_deinit(&list);
	return NULL;
}

/* There may be thousands of them: the other threads run meanwhile, and all of them while the jumps are written. */
static struct kymo_error *map_trampolines(struct kymo_probes *probes, const struct probe_layout *layout,
					  bool was_stopped, bool *taken_ret)
{
	kymo_cleanup_close int fd = -1;
	struct kymo_error *error;
	bool all = was_stopped;

	if (!layout->stretches.n && !layout->joined.n)
		return NULL;
	error = all ? NULL : find_leftovers(probes, &all);
	if (error)
		return error;
	error = map_trampolines_stopped(probes, layout, all ? kymo_process_stop : kymo_process_stop_first, was_stopped,
					&fd, taken_ret);
	if (error && !was_stopped && is_worth_stopping_all(error)) {
		kymo_error_destroy(error);
		*taken_ret = false;
		error = map_trampolines_stopped(probes, layout, probes_stop_patiently, was_stopped, &fd, taken_ret);
	}
	return error || *taken_ret || fd < 0 ? error : kymo_shared_fill_trampolines(fd, layout);
}

/* With the process stopped: memory for pads, their state, text. */
static struct kymo_error *patch(struct kymo_probes *probes, const struct probe_layout *layout, bool *mapped,
				enum probes_outcome *outcome_ret)
{
	struct kymo_error *error;
	bool taken = false, same;

	*outcome_ret = PROBES_DONE;
	error = probes_peers_check(probes, &same);
	if (error)
		return error;
	if (!same) {
		*outcome_ret = PROBES_OUTDATED;
		return kymo_error_create(KYMO_ERROR_BUSY,
					 "other recorders keep changing the probes of process %d; try again later",
					 kymo_process_pid(probes->process));
	}
	if (!*mapped) {
		error = check_holes(probes, layout, &taken);
		if (!error && taken) {
			*outcome_ret = PROBES_OUTDATED;
			return kymo_error_create(KYMO_ERROR_UNSAFE,
						 "process %d maps memory faster than kymo can find addresses for pads",
						 kymo_process_pid(probes->process));
		}
		if (!error)
			error = map_regions(probes, layout);
		if (error)
			return error;
		*mapped = true;
		error = probes->threads.is_live ? kymo_probes_set_live(probes)
						: probes_write_state(probes, KYMO_PAD_EARLY);
	}
	if (!error)
		error = probes_apply(probes, outcome_ret);
	if (!error && *outcome_ret == PROBES_DONE && probes->wanted.options.has_begun)
		probes->wanted.options.has_begun(probes->wanted.options.data);
	if (!error && *outcome_ret == PROBES_DONE && !probes->is_starting)
		error = probes_use_sequences(probes);
	return error;
}

/* Whether the same try may succeed a moment later. */
static bool may_pass(enum probes_outcome outcome)
{
	return outcome == PROBES_OCCUPIED || outcome == PROBES_SWITCHING || outcome == PROBES_WRITABLE;
}

/* One layout: until it is in, or turns out to be for a process that is not that way any more. */
static struct kymo_error *try_layout(struct kymo_probes *probes, const struct probe_layout *layout, bool was_stopped,
				     enum probes_outcome *outcome_ret, uint64_t *stopped_ns_ret)
{
	uint64_t pause_ns = TRY_PAUSE_NS;
	struct kymo_error *error = NULL;
	bool mapped = false;

	*outcome_ret = PROBES_OCCUPIED;
	for (int i = 0; i < (was_stopped && probes->attempt.is_lenient ? 1 : TRIES) && may_pass(*outcome_ret) && !error;
	     i++) {
		uint64_t begin;

		if (i) {
			kymo_process_nap(probes->process, pause_ns);
			pause_ns = pause_ns * 3 / 2;
		}
		begin = kymo_now_ns();
		error = probes_stop_patiently(probes->process);
		if (!error)
			error = patch(probes, layout, &mapped, outcome_ret);
		if (!was_stopped)
			kymo_process_resume(probes->process);
		*stopped_ns_ret += kymo_now_ns() - begin;
	}
	if (!error && *outcome_ret == PROBES_SWITCHING)
		error = kymo_error_create(KYMO_ERROR_BUSY,
					  "process %d is changing its markers itself, whenever it is looked at; "
					  "nothing was changed, try again later",
					  kymo_process_pid(probes->process));
	else if (!error && *outcome_ret == PROBES_WRITABLE)
		error = kymo_error_create(KYMO_ERROR_UNSAFE,
					  "process %d keeps the memory of a probe writable, or takes it from being "
					  "executed, whenever it is looked at; nothing was changed",
					  kymo_process_pid(probes->process));
	else if (!error && *outcome_ret == PROBES_OCCUPIED)
		error = kymo_error_create(KYMO_ERROR_UNSAFE,
					  "a signal handler of process %d keeps a thread inside of the code to be "
					  "changed; nothing was changed, try again later",
					  kymo_process_pid(probes->process));
	return error;
}

/* `is_patient`: where another recording is at work on a site, this one waits for it, and else does without the site. */
static struct kymo_error *plan_and_try(struct kymo_probes *probes, bool was_stopped, bool is_patient,
				       enum probes_outcome *outcome_ret, uint64_t *stopped_ns_ret)
{
	struct probe_layout layout = { .stretches = { 0 } };
	struct probe_snapshot snapshot;
	bool taken = false, is_contended = false;
	struct kymo_error *error = probe_snapshot_take(probes, &snapshot);

	if (!error) {
		error = probes_plan(probes, &snapshot, &layout, &is_contended);
		probe_snapshot_deinit(&snapshot);
	}
	if (!error)
		error = probes_check_refused(probes);
	*outcome_ret = PROBES_DONE;
	if (is_contended && is_patient) {
		*outcome_ret = PROBES_CONTENDED;
		if (!error)
			error = kymo_error_create(KYMO_ERROR_BUSY, "another recording of process %d is being changed",
						  kymo_process_pid(probes->process));
	}
	if (!error)
		probes_prepare_rings_ahead(probes);
	if (!error)
		error = write_pads(probes, &layout);
	if (!error)
		error = write_journal(probes);
	if (!error) /* before anything is mapped beside its code: an error leaves it as it was */
		error = probes_prepare_rings(probes);
	if (!error)
		error = map_trampolines(probes, &layout, was_stopped, &taken);
	if (!error && taken) {
		*outcome_ret = PROBES_OUTDATED;
		error = kymo_error_create(KYMO_ERROR_UNSAFE,
					  "process %d maps memory faster than kymo can find addresses for jumps",
					  kymo_process_pid(probes->process));
	}
	if (!error)
		error = try_layout(probes, &layout, was_stopped, outcome_ret, stopped_ns_ret);
	probes_layout_deinit(&layout);
	return error;
}

/*
 * Before try `i`. Two recordings that are in each other's way do not try again at the same moment. One that was met at
 * work `n_contended` times may need a tenth of a second through another process' hub, and seconds on a loaded machine:
 * 3.3 in all. With `is_awaited` the other one may get no further before this one is done, which waits less then.
 */
static void wait_for_peers(struct kymo_process *process, int i, int n_contended, bool is_awaited)
{
	const uint32_t own =
		((uint32_t)getpid() + (uint32_t)i * 7919u) * 2654435761u >> 16; /* twenty may come at once */
	uint64_t ns = (uint64_t)(own % 16 + 1) * (uint64_t)(i < MOST_PAUSES ? i : MOST_PAUSES) * 500000;

	ns += (uint64_t)n_contended * (is_awaited ? 40000000u : (uint64_t)n_contended * 36000000);
	kymo_process_nap(process, ns);
}

static bool is_to_replan(enum probes_outcome outcome)
{
	return outcome == PROBES_OUTDATED || outcome == PROBES_CONTENDED;
}

static struct kymo_error *try_often(struct kymo_probes *probes, bool was_stopped, uint64_t *stopped_ns_ret)
{
	enum probes_outcome outcome = PROBES_OUTDATED;
	uint64_t n_sites = probes->shared.n_sites;
	struct kymo_error *error = NULL;
	int n_contended = 0;

	probes_keep_refusals(probes);
	for (int i = 0; i < (was_stopped ? PLAN_TRIES : PATIENT_TRIES) && is_to_replan(outcome); i++) {
		kymo_error_destroy(error);
		if (i)
			wait_for_peers(probes->process, i, outcome == PROBES_CONTENDED ? n_contended : 0,
				       was_stopped || kymo_process_is_at_own_hub(probes->process));
		error = plan_and_try(probes, was_stopped, n_contended < CONTENDED_TRIES, &outcome, stopped_ns_ret);
		if (!error) {
			probes_tell_refused(probes);
			return NULL;
		}
		n_contended += outcome == PROBES_CONTENDED;
		error = give_thread_back(probes, error);
		if (outcome != PROBES_DIRTY)
			kymo_shared_rewind(&probes->shared, n_sites);
		if (is_to_replan(outcome))
			probes_forget_refusals(probes);
		kymo_error_destroy(probes_forget_plans(probes));
	}
	return error;
}

/*
 * While a program starts, what asks for libraries that are loaded later can wait for the first probe of a user's: the
 * linker's calls are looked at until all is linked. Few programs have one in the linker itself.
 */
static bool can_wait(const struct kymo_probes *probes)
{
	return probes->is_starting && !probes->has_shared && !probes_pending_but_watches(probes);
}

/* A process that is frozen all the time makes the remote calls for the memory and its mappings by one thread, not one
 * for each: no thread is moved or looked at in between. While it is lent no other is looked for: all have to be held
 * already. */
static struct kymo_error *lend_thread(struct kymo_probes *probes)
{
	struct kymo_error *error = probes_stop_patiently(probes->process);

	if (!error)
		error = kymo_remote_begin(probes->process);
	probes->attempt.keeps_thread = !error;
	return error;
}

static struct kymo_error *install(struct kymo_probes *probes, bool was_stopped, uint64_t *stopped_ns_ret)
{
	struct kymo_error *error = NULL;

	if (!was_stopped) {
		error = kymo_process_check_alone(probes->process);
		probes_read_ahead(probes);
	}
	if (!error && was_stopped && !probes->has_shared)
		error = lend_thread(probes);
	if (!error && !probes->has_shared)
		error = make_shared(probes, was_stopped, stopped_ns_ret);
	if (!error)
		error = try_often(probes, was_stopped, stopped_ns_ret);
	if (probes->has_shared)
		kymo_data_settle(&probes->shared, &probes->wanted.options, &probes->shared.data);
	return give_thread_back(probes, error);
}

/* `all`: also what can wait. */
static struct kymo_error *install_pending(struct kymo_probes *probes, bool all, uint64_t *stopped_ns_ret)
{
	size_t n;
	bool was_stopped = (kymo_process_threads(probes->process, &n), n > 0);

	if (!kymo_probes_pending(probes) || (!all && can_wait(probes)))
		return probes_check_refused(probes);
	return install(probes, was_stopped, stopped_ns_ret);
}

struct kymo_error *kymo_probes_install(struct kymo_probes *probes, uint64_t *stopped_ns_ret)
{
	return install_pending(probes, false, stopped_ns_ret);
}

struct kymo_error *kymo_probes_install_rest(struct kymo_probes *probes, uint64_t *stopped_ns_ret)
{
	return install_pending(probes, true, stopped_ns_ret);
}

struct kymo_error *kymo_probes_freeze(struct kymo_probes *probes)
{
	struct kymo_error *error = kymo_process_check_alone(probes->process);

	return error ? error : probes_stop_patiently(probes->process);
}
