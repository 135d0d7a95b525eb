/*
 * Faults that the process handles itself. What may cause one is not displaced then (arch/plan.h, KYMO_FAULT_…). A
 * process may begin to handle one when its probes are in. Then probes that displace such an instruction are removed and
 * planned again, while it is stopped, so that no hit is missed.
 *
 * Threads may still be in the old pads. They return to an instruction after the old window: so from then on windows are
 * single instructions, and none begins in the middle of code to which a thread goes back. Pads and journal entries stay
 * to the end of the recording.
 *
 * The recorder may die at any point: each site holds its original bytes, or a jump to a pad that is whole and
 * journaled.
 */
#include "probe/install/exchange.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "arch/uprobe.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "probe/code/events.h"
#include "probe/coexist/peers.h"
#include "probe/install/install.h"
#include "probe/install/jump.h"
#include "probe/install/stop.h"
#include "probe/memory/data.h"
#include "probe/memory/state.h"
#include "probe/plan/allocate.h"
#include "probe/plan/faults.h"
#include "probe/probes.h"
#include "probe/site/refusals.h"
#include "probe/site/sites.h"
#include "probe/site/warning.h"
#include "probe/snapshot/status.h"
#include "probe/threads/readable.h"
#include "proc/memory.h"
#include "proc/process.h"
#include "proc/stop.h"

#define NEAR 256 /* bytes: a jump relies on none farther away */

/* ---- sites that are in ----------------------------------------------------------------------- */

/* Sites that are to be taken out, by index. */
struct outgoing {
	struct kymo_probes *probes;
	struct probe_peers peers;
	bool *is_chosen;
	size_t n;                             /* of those that are in */
	uint64_t n_entries;                   /* of the journal, before others are planned */
	size_t n_shared;                      /* that another recording has, too: they stay */
	struct kymo_process *const *children; /* that were adopted */
	size_t n_children;
	bool is_orphaned; /* the process that the probes were put into has ended: only children have them */
};

static bool is_in_text(const struct probe_site *site)
{
	return site->is_installed && !site->is_guard && !site->is_standby && !site->is_retired;
}

/* Whether the jump of `site` is made of bytes of `other`'s patch, or leads into them. */
static bool relies_on(const struct probe_site *site, const struct probe_site *other)
{
	uint64_t hop =
		site->plan.tactic == KYMO_TACTIC_NEIGHBOR ? kymo_short_jump_target(site->address, site->plan.patch) : 0;

	if (site == other)
		return false;
	if (hop && hop - other->address < other->plan.patch_size)
		return true;
	return site->address < other->address + other->plan.patch_size &&
	       other->address < site->address + site->plan.lock_size;
}

static bool has_return(const struct probe_site *site)
{
	return site->requests.n && site->requests.items[0].kind == KYMO_EVENT_RETURN;
}

static bool is_same_return(const struct probe_site *a, const struct probe_site *b)
{
	for (size_t i = 0; i < a->requests.n; i++)
		for (size_t k = 0; k < b->requests.n; k++)
			if (a->module == b->module && a->requests.items[i].kind == KYMO_EVENT_RETURN &&
			    b->requests.items[k].kind == KYMO_EVENT_RETURN &&
			    a->requests.items[i].spec == b->requests.items[k].spec &&
			    a->requests.items[i].vaddr == b->requests.items[k].vaddr)
				return true;
	return false;
}

/* Whether a site is near enough to this one to share bytes with it, and does so by `which`. Only sites count that are
 * chosen, or not, as `chosen` says. */
static bool has_near(const struct outgoing *outgoing, size_t i, bool chosen,
		     bool (*which)(const struct probe_site *, const struct probe_site *))
{
	const struct kymo_probes *probes = outgoing->probes;
	const struct probe_site *sites = probes->sites.items;
	size_t k = i;

	while (k > 0 && sites[i].address - sites[k - 1].address < NEAR)
		k--;
	for (; k < probes->sites.n && sites[k].address < sites[i].address + NEAR; k++)
		if (k != i && outgoing->is_chosen[k] == chosen && is_in_text(&sites[k]) && which(&sites[i], &sites[k]))
			return true;
	return false;
}

static bool is_relied_on_by(const struct probe_site *site, const struct probe_site *other)
{
	return relies_on(other, site);
}

/* The other ways out of a function of which one is chosen. */
static bool add_returns(struct outgoing *outgoing, const struct probe_site *site)
{
	const struct kymo_probes *probes = outgoing->probes;
	bool more = false;

	for (size_t i = 0; has_return(site) && i < probes->sites.n; i++)
		if (!outgoing->is_chosen[i] && is_in_text(&probes->sites.items[i]) &&
		    is_same_return(site, &probes->sites.items[i]))
			more = outgoing->is_chosen[i] = true;
	return more;
}

/* Add what goes with a chosen site: jumps that rely on its bytes, and the other ways out of its function. */
static void add_dependent(struct outgoing *outgoing)
{
	const struct kymo_probes *probes = outgoing->probes;
	bool more = true;

	while (more) {
		more = false;
		for (size_t i = 0; i < probes->sites.n; i++) {
			if (outgoing->is_chosen[i])
				more |= add_returns(outgoing, &probes->sites.items[i]);
			else if (is_in_text(&probes->sites.items[i]) && has_near(outgoing, i, true, relies_on))
				more = outgoing->is_chosen[i] = true;
		}
	}
}

/* Whether what is at the site is this recording's alone. */
static bool is_own(const struct outgoing *outgoing, const struct probe_site *site)
{
	return !site->behind && !probes_peers_have(&outgoing->peers, site->address, site->plan.lock_size) &&
	       probes_leads_to_pad(outgoing->probes, site);
}

/* What can't be taken out keeps what it relies on. */
static void leave_shared(struct outgoing *outgoing)
{
	struct kymo_probes *probes = outgoing->probes;
	bool more = true;

	for (size_t i = 0; i < probes->sites.n; i++) {
		if (!outgoing->is_chosen[i] || is_own(outgoing, &probes->sites.items[i]))
			continue;
		outgoing->is_chosen[i] = false;
		outgoing->n_shared++;
	}
	while (outgoing->n_shared && more) {
		more = false;
		for (size_t i = 0; i < probes->sites.n; i++) {
			if (!outgoing->is_chosen[i] || !has_near(outgoing, i, false, is_relied_on_by))
				continue;
			outgoing->is_chosen[i] = false;
			outgoing->n_shared++;
			more = true;
		}
	}
}

/* Choose sites that may cause one of `faults`, and what goes with them. */
static struct kymo_error *choose(struct outgoing *outgoing, unsigned int faults)
{
	struct kymo_probes *probes = outgoing->probes;
	struct kymo_error *error;
	bool any = false;

	outgoing->is_chosen = calloc(probes->sites.n ? probes->sites.n : 1, sizeof(*outgoing->is_chosen));
	if (!outgoing->is_chosen)
		return &kymo_error_no_memory;
	for (size_t i = 0; i < probes->sites.n; i++) {
		const struct probe_site *site = &probes->sites.items[i];

		outgoing->is_chosen[i] = is_in_text(site) && site->plan.faults & faults;
		any |= outgoing->is_chosen[i];
	}
	if (!any)
		return NULL;
	error = outgoing->is_orphaned ? NULL : probes_peers_read(probes, &outgoing->peers);
	if (error)
		return error;
	add_dependent(outgoing);
	if (!outgoing->is_orphaned)
		leave_shared(outgoing);
	for (size_t i = 0; i < probes->sites.n; i++)
		outgoing->n += outgoing->is_chosen[i];
	return NULL;
}

static int by_order_down(const void *a, const void *b)
{
	const struct probe_site *x = *(struct probe_site *const *)a, *y = *(struct probe_site *const *)b;

	return (x->order < y->order) - (x->order > y->order);
}

/* What is at the site in a child: kymo's jump, from its `first` byte on, after a breakpoint of another tool's; or not.
 */
static bool has_jump(struct kymo_process *child, const struct probe_site *site, size_t *first_ret, int *err_ret)
{
	uint8_t now[KYMO_PATCH_MAX], patch[KYMO_PATCH_MAX];

	*err_ret = kymo_process_read(child, site->address, now, site->plan.patch_size);
	if (*err_ret || probes_patch_of(site, patch))
		return false;
	*first_ret = now[0] != patch[0] && kymo_uprobe_is_breakpoint(now[0], site->plan.original[0]);
	return *first_ret < site->plan.patch_size &&
	       !memcmp(now + *first_ret, patch + *first_ret, site->plan.patch_size - *first_ret);
}

/* A forked child has a copy of the text. There the probes are removed permanently: new pads would be the parent's
 * alone. `n_ret`: of those that were in. */
static struct kymo_error *take_out_of_child(struct kymo_process *child, struct probe_site *const *sites, size_t n,
					    size_t *n_ret)
{
	struct kymo_error *error = probes_stop_patiently(child);

	*n_ret = 0;
	if (error)
		return error;
	for (size_t i = 0; i < n && !error; i++) {
		const struct probe_site *site = sites[i];
		size_t first;
		int err;

		if (has_jump(child, site, &first, &err)) {
			err = kymo_process_write(child, site->address + first, site->plan.original + first,
						 site->plan.patch_size - first);
			++*n_ret;
		}
		if (err)
			error = kymo_error_errno(err, "cannot take the probe at %s out of process %d",
						 probes_site_name(site), kymo_process_pid(child));
	}
	kymo_process_resume(child);
	return error;
}

static void take_out_of_children(const struct outgoing *outgoing, struct probe_site *const *sites, size_t n,
				 size_t *n_ret)
{
	for (size_t i = 0; i < outgoing->n_children; i++) {
		struct kymo_error *error = take_out_of_child(outgoing->children[i], sites, n, n_ret);

		if (error && error->code != KYMO_ERROR_GONE)
			probes_warn(outgoing->probes, "%s: it may die of a fault there", error->message);
		kymo_error_destroy(error);
	}
}

/* The text is restored in the reverse order of planning, as it is when a recording ends. `n_ret`: that the last child
 * had. */
static struct kymo_error *take_out(struct outgoing *outgoing, size_t *n_ret)
{
	struct kymo_probes *probes = outgoing->probes;
	kymo_cleanup_free struct probe_site **sites =
		calloc(outgoing->n ? outgoing->n : 1, sizeof(struct probe_site *));
	size_t n = 0;

	if (!sites)
		return &kymo_error_no_memory;
	for (size_t i = 0; i < probes->sites.n; i++)
		if (outgoing->is_chosen[i])
			sites[n++] = &probes->sites.items[i];
	qsort(sites, n, sizeof(*sites), by_order_down);
	probes_shut_readable(probes);
	take_out_of_children(outgoing, sites, n, n_ret);
	for (size_t i = 0; i < n && !outgoing->is_orphaned; i++) {
		int err = kymo_process_write(probes->process, sites[i]->address, sites[i]->plan.original,
					     sites[i]->plan.patch_size);

		if (err)
			return kymo_error_errno(err, "cannot take the probe at %s out", probes_site_name(sites[i]));
		sites[i]->is_installed = false;
	}
	return NULL;
}

/* Stopped: out, and in again by other plans. */
static struct kymo_error *exchange(struct outgoing *outgoing, uint64_t *stopped_ns_ret)
{
	struct kymo_probes *probes = outgoing->probes;
	struct kymo_error *error = choose(outgoing, probes->faults.watched);
	size_t of_child;

	if (!error && outgoing->n)
		error = take_out(outgoing, &of_child);
	probes->changes++;
	if (error || !outgoing->n || outgoing->is_orphaned)
		return error;
	probes->faults.is_alone = true;
	probes->attempt.is_lenient = true;
	probes_forget_errors(probes);
	error = kymo_probes_install(probes, stopped_ns_ret);
	probes->attempt.is_lenient = false;
	return error;
}

static bool has_faulting(const struct kymo_probes *probes, unsigned int faults)
{
	for (size_t i = 0; i < probes->sites.n; i++)
		if (is_in_text(&probes->sites.items[i]) && probes->sites.items[i].plan.faults & faults)
			return true;
	return false;
}

static const char *names_of(unsigned int faults)
{
	return faults & KYMO_FAULT_MEMORY ? "SIGSEGV or SIGBUS" : faults & KYMO_FAULT_ARITHMETIC ? "SIGFPE" : "SIGILL";
}

static void tell_exchange(const struct outgoing *outgoing, unsigned int fresh)
{
	const struct kymo_probes *probes = outgoing->probes;
	size_t n_back = 0;

	for (size_t i = 0; i < probes->sites.n; i++)
		n_back += probes->sites.items[i].is_installed && probes->sites.items[i].is_exchanged &&
			  probes->sites.items[i].order >= outgoing->n_entries;
	if (outgoing->n)
		probes_warn(probes,
			    "process %d handles %s from now on: %zu probes that displaced an instruction which may "
			    "fault, or relied on one of these, were taken out, and %zu were put in by other means",
			    kymo_process_pid(probes->process), names_of(fresh), outgoing->n, n_back);
	if (outgoing->n_shared)
		probes_warn(probes,
			    "process %d handles %s from now on, and %zu probes that displace an instruction which may "
			    "fault stay: another recording has them, too. The process may die of a fault there",
			    kymo_process_pid(probes->process), names_of(fresh), outgoing->n_shared);
}

static unsigned int faults_of_child(struct kymo_process *child, const struct kymo_adopted *adopted)
{
	return kymo_faults_of(kymo_handled_signals(kymo_process_pid(child))) |
	       (adopted ? kymo_faults_of(
				  __atomic_load_n(&probes_adopted_head(adopted)->handlers.signals, __ATOMIC_ACQUIRE))
			: 0);
}

/* What a child handles and the process does not is the child's own matter. */
static struct kymo_error *heed_child(struct kymo_probes *probes, struct kymo_process *child,
				     struct kymo_adopted *adopted)
{
	struct outgoing outgoing = { .probes = probes, .children = &child, .n_children = 1, .is_orphaned = true };
	unsigned int *known = probes_adopted_faults(adopted),
		     fresh = faults_of_child(child, adopted) & ~(probes->faults.watched | *known);
	struct kymo_error *error = NULL;
	size_t n = 0;

	*known |= fresh;
	if (!fresh || !has_faulting(probes, fresh))
		return NULL;
	error = choose(&outgoing, fresh);
	if (!error && outgoing.n)
		error = take_out(&outgoing, &n);
	if (!error && n)
		probes_warn(probes,
			    "process %d handles %s from now on, and its parent does not: %zu probe%s that displaced an "
			    "instruction which may fault, or relied on such a probe, %s taken out of it",
			    kymo_process_pid(child), names_of(fresh), n, n == 1 ? "" : "s", n == 1 ? "was" : "were");
	free(outgoing.is_chosen);
	return error;
}

static struct kymo_error *heed_children(struct kymo_probes *probes, struct kymo_process *const *children,
					struct kymo_adopted *const *adopted, size_t n)
{
	struct kymo_error *error = NULL;

	for (size_t i = 0; i < n && !error; i++)
		if (adopted[i])
			error = heed_child(probes, children[i], adopted[i]);
	return error;
}

static struct kymo_error *heed_faults(struct kymo_probes *probes, struct kymo_process *const *children,
				      struct kymo_adopted *const *adopted, size_t n, uint64_t *stopped_ns_ret)
{
	struct outgoing outgoing = { .probes = probes, .children = children, .n_children = n };
	const unsigned int before = probes->faults.heeded;
	struct kymo_error *error;
	uint64_t begin;

	if (!probes->has_shared || probes->wanted.options.displace_faulting)
		return NULL;
	probes->faults.watched |= kymo_faults_of(kymo_handled_signals(probes->pid));
	for (size_t i = 0; i < n; i++)
		probes->faults.watched |= adopted[i] ? 0 : faults_of_child(children[i], NULL);
	probes->faults.watched |=
		kymo_faults_of(__atomic_load_n(&probes->shared.data.head->handlers.signals, __ATOMIC_ACQUIRE));
	probes->faults.wait_for_clones = probes->beside && probes->faults.watched != before;
	if (probes->faults.wait_for_clones) {
		probes->faults.watched = before;
		return NULL;
	}
	if (probes->faults.watched == before || !has_faulting(probes, probes->faults.watched)) {
		probes->faults.heeded = probes->faults.watched;
		return heed_children(probes, children, adopted, n);
	}
	outgoing.is_orphaned = !kymo_probes_are_mapped(probes);
	begin = kymo_now_ns();
	outgoing.n_entries = probes->shared.n_sites;
	error = outgoing.is_orphaned ? NULL : kymo_probes_freeze(probes);
	if (error)
		return error; /* the next look tries again */
	error = exchange(&outgoing, stopped_ns_ret);
	probes->faults.heeded = probes->faults.watched;
	if (!outgoing.is_orphaned)
		kymo_process_resume(probes->process);
	*stopped_ns_ret += kymo_now_ns() - begin;
	if (error && kymo_probes_are_mapped(probes)) { /* a thread that had to go on first; hits are missed meanwhile */
		kymo_error_destroy(error);
		probes->attempt.is_lenient = true;
		error = kymo_probes_install(probes, stopped_ns_ret);
		probes->attempt.is_lenient = false;
	}
	if (!error)
		tell_exchange(&outgoing, probes->faults.watched & ~before);
	probes_peers_deinit(&outgoing.peers);
	free(outgoing.is_chosen);
	return error ? error : heed_children(probes, children, adopted, n);
}

bool kymo_probes_are_handlers_set(const struct kymo_probes *probes, const struct kymo_adopted *adopted)
{
	const struct kymo_wire_watch *handlers;

	if (!probes->watch.has_handler_watch || !probes->has_shared)
		return false;
	handlers = adopted ? &probes_adopted_head(adopted)->handlers : &probes->shared.data.head->handlers;
	return __atomic_load_n(&handlers->requests, __ATOMIC_ACQUIRE) !=
		       __atomic_load_n(&handlers->answers, __ATOMIC_RELAXED) ||
	       __atomic_load_n(&handlers->given_up, __ATOMIC_RELAXED);
}

static void answer(struct kymo_wire_watch *handlers, uint32_t requests)
{
	__atomic_store_n(&handlers->answers, requests, __ATOMIC_RELEASE);
	__atomic_store_n(&handlers->given_up, 0, __ATOMIC_RELEASE);
}

struct kymo_error *kymo_probes_heed_handlers(struct kymo_probes *probes, struct kymo_process *const *children,
					     struct kymo_adopted *const *adopted, size_t n, uint64_t *stopped_ns_ret)
{
	kymo_cleanup_free uint32_t *requests =
		calloc(n + 1, sizeof(*requests)); /* before the look; the own ones last */
	struct kymo_error *error;

	if (!requests)
		return &kymo_error_no_memory;
	if (!probes->has_shared)
		return NULL;
	for (size_t i = 0; i < n; i++)
		requests[i] = adopted[i] ? __atomic_load_n(&probes_adopted_head(adopted[i])->handlers.requests,
							   __ATOMIC_ACQUIRE)
					 : 0;
	requests[n] = __atomic_load_n(&probes->shared.data.head->handlers.requests, __ATOMIC_ACQUIRE);
	error = heed_faults(probes, children, adopted, n, stopped_ns_ret);
	if (!probes->watch.has_handler_watch || probes->faults.wait_for_clones)
		return error;
	for (size_t i = 0; i < n; i++)
		if (adopted[i])
			answer(&probes_adopted_head(adopted[i])->handlers, requests[i]);
	answer(&probes->shared.data.head->handlers, requests[n]);
	return error;
}

bool kymo_probes_wait_for_clones(const struct kymo_probes *probes)
{
	return probes->faults.wait_for_clones;
}
