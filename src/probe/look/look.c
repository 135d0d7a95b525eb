/*
 * The look at the sites of a process that is recorded, some times a second: whether the jumps are in the text still.
 *
 * It reads the bytes of sites, page by page, and compares them with those of the last look. Only what differs is looked
 * at closely. What is torn is mended (mend.c), what is out is told as a gap, and put in again when the text is the
 * file's.
 */
#include "probe/look/look.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/page.h"
#include "base/search.h"
#include "probe/code/modules.h"
#include "probe/coexist/text.h"
#include "probe/install/install.h"
#include "probe/look/look_state.h"
#include "probe/look/look_text.h"
#include "probe/look/mend.h"
#include "probe/memory/sessions.h"
#include "probe/memory/state.h"
#include "probe/probes.h"
#include "probe/site/refusals.h"
#include "probe/site/sites.h"
#include "probe/threads/readable.h"
#include "probe/threads/threads.h"
#include "proc/memory.h"

#define SECOND_NS UINT64_C(1000000000)
#define PAUSE_MAX_NS (8 * SECOND_NS)
#define NO_GAP SIZE_MAX /* no spec asks for a probe there: a guard, an instruction that was evicted */
#define GAPS_MAX 1000

struct kymo_error *kymo_look_create(struct kymo_probes *probes, struct kymo_process *process, struct kymo_look **ret)
{
	struct kymo_look *look = calloc(1, sizeof(*look));

	if (!look)
		return &kymo_error_no_memory;
	look->probes = probes;
	look->process = process;
	look->pause_ns = SECOND_NS;
	*ret = look;
	return NULL;
}

void kymo_look_destroy(struct kymo_look *look)
{
	if (!look)
		return;
	kymo_vec_deinit(&look->stretches);
	kymo_vec_deinit(&look->sites);
	kymo_vec_deinit(&look->gaps);
	free(look->seen);
	free(look->now);
	free(look);
}

const struct kymo_gap *kymo_look_gaps(const struct kymo_look *look, size_t *n_ret)
{
	*n_ret = look->gaps.n;
	return look->gaps.items;
}

void kymo_look_end(struct kymo_look *look, uint64_t tsc)
{
	for (size_t i = 0; i < look->gaps.n; i++)
		if (!look->gaps.items[i].end) {
			look->gaps.items[i].end = tsc;
			look->gaps.items[i].is_open = true;
		}
}

/* ---- what is read ---------------------------------------------------------------------------- */

/* What was exchanged for handlers of faults (exchange.c) never returns to children. */
static bool is_watched(const struct kymo_look *look, const struct probe_site *site)
{
	const struct kymo_probes *probes = look->probes;

	return site->is_installed && !site->is_standby && !probes->modules.items[site->module].jit &&
	       (look->process == probes->process || !site->is_exchanged);
}

static bool add_stretch(struct kymo_look *look, uint64_t address, size_t size)
{
	struct look_stretch *last = look->stretches.n ? &look->stretches.items[look->stretches.n - 1] : NULL;

	if (last && kymo_page_down(last->address) ==
			    kymo_page_down(address)) { /* sites are sorted, but reach beyond each other */
		if (address + size > last->address + last->size)
			last->size = address + size - last->address;
		return true;
	}
	return kymo_vec_push(&look->stretches, (struct look_stretch){ .address = address, .size = size });
}

static bool add_site(struct kymo_look *look, const struct probe_site *site)
{
	size_t size = site->plan.lock_size > site->plan.patch_size ? site->plan.lock_size : site->plan.patch_size,
	       first = size;
	uint64_t page_end = kymo_page_down(site->address) + KYMO_PAGE_SIZE;

	if (site->address + size > page_end)
		first = page_end - site->address;
	return add_stretch(look, site->address, first) && (first == size || add_stretch(look, page_end, size - first));
}

static struct look_site *find_site(struct kymo_look *look, uint64_t address)
{
	size_t at = kymo_partition_point(i, look->sites.n, look->sites.items[i].address < address);

	return at < look->sites.n && look->sites.items[at].address == address ? &look->sites.items[at] : NULL;
}

/* The probes have changed: what to read, and which sites to look at. Those that are out stay so. */
static bool lay_out(struct kymo_look *look)
{
	const struct kymo_probes *probes = look->probes;
	KYMO_VEC(struct look_site) sites = { 0 };

	look->stretches.n = 0;
	for (size_t i = 0; i < probes->sites.n; i++) {
		const struct probe_site *site = &probes->sites.items[i];
		const struct look_site *known = find_site(look, site->address);

		if (!is_watched(look, site) && !(known && known->is_out))
			continue;
		if (!add_site(look, site) || (known && !kymo_vec_push(&sites, *known)) ||
		    (!known && look->process == probes->process &&
		     !kymo_vec_push(&sites, (struct look_site){ .address = site->address }))) {
			kymo_vec_deinit(&sites);
			return false;
		}
	}
	look->size = 0;
	for (size_t i = 0; i < look->stretches.n; i++) {
		look->stretches.items[i].at = look->size;
		look->size += look->stretches.items[i].size;
	}
	kymo_vec_deinit(&look->sites);
	look->sites.items = sites.items;
	look->sites.n = sites.n;
	look->sites.cap = sites.cap;
	free(look->seen);
	free(look->now);
	look->seen = calloc(1, look->size + 1);
	look->now = calloc(1, look->size + 1);
	look->is_seen = false;
	look->changes = look->seen && look->now ? probes->changes : 0;
	return look->changes;
}

/* ---- what has happened to it ------------------------------------------------------------------- */

/* The gap that begins with this look, for this cause. */
static bool note_out(struct kymo_look *look, struct look_site *known, const struct probe_site *site,
		     enum kymo_gap_cause cause, size_t first_gap)
{
	size_t at = first_gap;

	known->is_out = true;
	known->gap = NO_GAP;
	if (!site->requests.n)
		return true;
	while (at < look->gaps.n && look->gaps.items[at].cause != cause)
		at++;
	if (at == look->gaps.n && at >= GAPS_MAX) { /* the last one goes on */
		at--;
		look->gaps.items[at].n = look->gaps.items[at].end ? 0 : look->gaps.items[at].n;
		look->gaps.items[at].end = 0;
	}
	if (at == look->gaps.n) {
		struct kymo_gap gap = { .cause = cause, .begin = look->last_tsc };

		snprintf(gap.name, sizeof(gap.name), "%s", probes_site_name(site));
		if (!kymo_vec_push(&look->gaps, gap))
			return false;
	}
	look->gaps.items[at].n++;
	known->gap = at;
	return true;
}

/* Part of a gap's sites may come back before the others: these get a gap of their own. */
static bool note_back(struct kymo_look *look, struct look_site *known, uint64_t tsc, size_t first_gap)
{
	struct kymo_gap gap;
	size_t at = first_gap;

	known->is_out = known->is_file = false;
	if (known->gap == NO_GAP)
		return true;
	gap = look->gaps.items[known->gap];
	while (at < look->gaps.n && (look->gaps.items[at].cause != gap.cause ||
				     look->gaps.items[at].begin != gap.begin || look->gaps.items[at].end != tsc))
		at++;
	if (gap.n <= 1 || look->gaps.n >= GAPS_MAX) {
		look->gaps.items[known->gap].end = tsc;
		if (at < look->gaps.n) { /* of all that came back before it in this look: they are one gap */
			look->gaps.items[known->gap].n += look->gaps.items[at].n;
			look->gaps.items[at].n = 0;
		}
		while (look->gaps.n && !look->gaps.items[look->gaps.n - 1].n)
			look->gaps.n--;
		return true;
	}
	look->gaps.items[known->gap].n--;
	if (at < look->gaps.n) {
		look->gaps.items[at].n++;
		return true;
	}
	gap.n = 1;
	gap.end = tsc;
	return kymo_vec_push(&look->gaps, gap);
}

static bool note_site(struct kymo_look *look, struct look_site *known, const struct probe_site *site,
		      enum look_text text, uint64_t tsc, size_t first_gap)
{
	if (text == LOOK_UNREAD)
		return true;
	known->is_file = text == LOOK_FILE;
	if (text == LOOK_JUMP)
		return !known->is_out || note_back(look, known, tsc, first_gap);
	if (known->is_out)
		return true;
	return note_out(look, known, site,
			text == LOOK_FILE    ? KYMO_GAP_DROPPED
			: text == LOOK_OTHER ? KYMO_GAP_CHANGED
					     : KYMO_GAP_BREAKPOINT,
			first_gap);
}

/* Guards are all there, or no sequence is used: a thread could be born with what its maker's says. */
static void lose_guards(struct kymo_look *look)
{
	struct kymo_probes *probes = look->probes;
	struct kymo_session_list list;
	struct kymo_error *error = kymo_sessions_read_headers(look->process, 0, &list);
	uint8_t state;

	if (error) {
		kymo_error_destroy(error);
		return;
	}
	for (size_t i = 0; i < list.n; i++)
		for (uint32_t k = 0; k < list.items[i].header.n_regions; k++) {
			uint64_t live = list.items[i].header.regions[k].live;

			if (!kymo_process_read(look->process, live, &state, 1) && state == KYMO_PAD_RSEQ)
				kymo_process_write(look->process, live, &(uint8_t){ KYMO_PAD_LIVE }, 1);
		}
	kymo_sessions_deinit(&list);
	if (look->process != probes->process)
		return;
	probes->threads.state = probes->threads.state == KYMO_PAD_RSEQ ? KYMO_PAD_LIVE : probes->threads.state;
	probes->watch.has_guards = false;
	probes->wanted.options.no_rseq = true;
	kymo_error_destroy(probes_prepare_rings(probes)); /* where memory lacks the rings are as they were */
}

static struct kymo_error *note_all(struct kymo_look *look, uint64_t tsc)
{
	size_t first_gap = look->gaps.n;
	bool has_lost_guards = false, has_lost_strikes = false;

	for (size_t i = 0; i < look->probes->sites.n; i++) {
		const struct probe_site *site = &look->probes->sites.items[i];
		struct look_site *known = find_site(look, site->address);
		enum look_text text;

		if (!known && !is_watched(look, site))
			continue;
		text = look_at_site(look, site);
		if (known ? !note_site(look, known, site, text, tsc, first_gap) : false)
			return &kymo_error_no_memory;
		has_lost_guards |= site->is_guard && site->is_installed && known && known->is_out;
		has_lost_strikes |= site->is_strike && site->is_installed && known && known->is_out;
	}
	if (has_lost_guards)
		lose_guards(look);
	if (has_lost_strikes && look->process == look->probes->process)
		probes_shut_readable(look->probes);
	return NULL;
}

static bool is_any_torn(struct kymo_look *look)
{
	for (size_t i = 0; i < look->probes->sites.n; i++)
		if (is_watched(look, &look->probes->sites.items[i]) &&
		    look_at_site(look, &look->probes->sites.items[i]) == LOOK_TORN)
			return true;
	return false;
}

/* A child that was forked has what its parent had then: what is in there is what counts. */
static bool learn_sites(struct kymo_look *look)
{
	for (size_t i = 0; i < look->probes->sites.n && look->process != look->probes->process; i++) {
		const struct probe_site *site = &look->probes->sites.items[i];
		size_t at = kymo_partition_point(k, look->sites.n, look->sites.items[k].address < site->address);

		if (!is_watched(look, site) || find_site(look, site->address) || look_at_site(look, site) != LOOK_JUMP)
			continue;
		if (!kymo_vec_reserve(&look->sites, look->sites.n + 1))
			return false;
		memmove(&look->sites.items[at + 1], &look->sites.items[at],
			(look->sites.n - at) * sizeof(*look->sites.items));
		look->sites.items[at] = (struct look_site){ .address = site->address };
		look->sites.n++;
	}
	return true;
}

/* ---- in again -------------------------------------------------------------------------------- */

/* The sites that are out and whose text is the file's are pending from here on. Guards stay out: sequences are not used
 * any more. */
static size_t revive(struct kymo_look *look)
{
	struct kymo_probes *probes = look->probes;
	size_t n = 0;

	for (size_t i = 0; i < probes->sites.n; i++) {
		struct probe_site *site = &probes->sites.items[i];
		const struct look_site *known = find_site(look, site->address);
		size_t size =
			site->plan.lock_size > site->plan.patch_size ? site->plan.lock_size : site->plan.patch_size;

		if (!site->is_installed || !known || !known->is_out || !known->is_file)
			continue;
		for (enum probe_text_mark mark = 0; mark < N_TEXT_MARKS; mark++)
			probe_text_mark(&probes->text, mark, site->address, size, false); /* clearing takes no memory */
		site->is_installed = false;
		site->is_retired = site->is_guard;
		site->is_revived =
			!site->is_guard && !site->behind; /* a pad of another recording's after it may be gone */
		n += !site->is_guard;
	}
	return n;
}

/* It has failed, and may be tried again: what stays pending would keep others from being put in. */
static void give_back(struct kymo_look *look)
{
	for (size_t i = 0; i < look->probes->sites.n; i++) {
		struct probe_site *site = &look->probes->sites.items[i];
		const struct look_site *known = find_site(look, site->address);

		if (site->is_installed || site->is_retired || !known || !known->is_out)
			continue;
		site->is_installed = site->is_planned;
		site->is_retired = !site->is_planned;
		site->is_revived = false;
	}
}

static bool is_due(const struct kymo_look *look)
{
	if (look->process != look->probes->process || kymo_now_ns() < look->again_ns)
		return false;
	for (size_t i = 0; i < look->sites.n; i++)
		if (look->sites.items[i].is_out && look->sites.items[i].is_file)
			return true;
	return false;
}

static struct kymo_error *put_in_again(struct kymo_look *look, uint64_t *stopped_ns_ret)
{
	struct kymo_error *error;

	if (kymo_now_ns() > look->again_ns + PAUSE_MAX_NS)
		look->pause_ns = SECOND_NS;
	look->again_ns = kymo_now_ns() + look->pause_ns;
	look->pause_ns = look->pause_ns * 2 < PAUSE_MAX_NS ? look->pause_ns * 2 : PAUSE_MAX_NS;
	probes_shut_readable(look->probes);
	if (!revive(look))
		return NULL;
	look->probes->changes++;
	look->is_seen = false;
	probes_forget_errors(look->probes);
	error = kymo_probes_install(look->probes, stopped_ns_ret);
	if (error)
		give_back(look);
	look->probes->changes++;
	return error;
}

/* ---- for the recorder ------------------------------------------------------------------------ */

static struct kymo_error *look_closely(struct kymo_look *look, uint64_t tsc, uint64_t *stopped_ns_ret)
{
	struct kymo_error *error = NULL;

	if (is_any_torn(look)) {
		/* What is found is what was there before this mends it. */
		error = note_all(look, tsc);
		if (!error)
			error = look_mend(look, stopped_ns_ret);
		look_read(look);
		look->is_seen = false;
		return error;
	}
	if (!learn_sites(look))
		return &kymo_error_no_memory;
	error = note_all(look, tsc);
	if (look->size) /* else nothing was laid out */
		memcpy(look->seen, look->now, look->size);
	look->is_seen = !error;
	return error;
}

struct kymo_error *kymo_look(struct kymo_look *look, uint64_t tsc, uint64_t *stopped_ns_ret)
{
	size_t n_gaps = look->gaps.n;
	struct kymo_error *error = NULL;

	if (!look->probes->has_shared || (look->changes != look->probes->changes && !lay_out(look)))
		return look->probes->has_shared ? &kymo_error_no_memory : NULL;
	look_read(look);
	/* Where the memory is gone, another kymo took the probes out, or the process executed a program. */
	if ((!look->is_seen || memcmp(look->seen, look->now, look->size)) && kymo_probes_are_mapped(look->probes))
		error = look_closely(look, tsc, stopped_ns_ret);
	/* A tool may set it at once again: it gets a second. */
	for (size_t i = n_gaps; i < look->gaps.n; i++)
		if (look->gaps.items[i].cause == KYMO_GAP_BREAKPOINT && look->again_ns < kymo_now_ns() + SECOND_NS)
			look->again_ns = kymo_now_ns() + SECOND_NS;
	look->last_tsc = tsc;
	if (!error && is_due(look) && kymo_probes_are_mapped(look->probes))
		error = put_in_again(look, stopped_ns_ret);
	return error;
}
