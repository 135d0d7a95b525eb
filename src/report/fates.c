#include "report/fates.h"

#include <sys/random.h>

#include "aggr/stacks.h"
#include "base/cleanup.h"
#include "base/hash.h"
#include "base/index.h"
#include "report/frames.h"
#include "report/losses.h"
#include "report/threads.h"

/* A function at a stack pointer. */
struct place {
	uintptr_t process;
	uint64_t stack_pointer;
	uint32_t function;
	uint32_t open;  /* the last entry there that has not returned, as an index in `leaves`, plus 1; or 0 */
	uint64_t begin; /* its TSC */
};

/* The last record of a thread, if it is an entry. */
struct last_entry {
	uint64_t stack_pointer;
	size_t entry; /* in `leaves`, plus 1; or 0 */
};

struct gathering {
	struct fates *fates;
	struct kymo_ctf_reader *reader;
	struct functions functions;
	struct threads threads;
	KYMO_VEC(struct place) places;
	struct kymo_index index;
	uint64_t seed; /* of its hashes: a hostile trace is not to choose stack pointers of one hash */
	KYMO_VEC(struct last_entry) last; /* as threads.items */
	uint32_t number;
	size_t n_losses; /* that have begun */
	uint64_t loss_end;
};

enum fate_part kymo_fates_part(const struct role *role, const struct kymo_ctf_record *record)
{
	if (role->function == NO_FUNCTION || role->is_span || role->is_sysret || role->is_partial ||
	    !kymo_ctf_stack_pointer(record))
		return FATE_NONE;
	return role->is_entry ? FATE_ENTRY : FATE_RETURN;
}

void kymo_fates_deinit(struct fates *fates)
{
	kymo_vec_deinit(&fates->leaves);
}

static uint64_t hash_place(const struct gathering *g, const struct place *place)
{
	return kymo_hash_number(kymo_hash_number(kymo_hash_number(g->seed, place->process), place->stack_pointer),
				place->function);
}

static bool is_same(const struct place *a, const struct place *b)
{
	return a->stack_pointer == b->stack_pointer && a->function == b->function && a->process == b->process;
}

/* The place's number from 1 on; 0 where it is new and there is no room for more. False when memory is out. */
static bool find_place(struct gathering *g, const struct place *place, bool is_made, uint32_t *ret)
{
	const struct place *items = g->places.items;

	*ret = kymo_index_find(&g->index, hash_place(g, place), i, is_same(&items[i - 1], place));
	if (*ret || !is_made || g->places.n == FATES_OPEN_MAX)
		return true;
	if (!kymo_index_reserve(&g->index, g->places.n, i, hash_place(g, &items[i - 1])) ||
	    !kymo_vec_push(&g->places, *place))
		return false;
	kymo_index_put(&g->index, hash_place(g, place), g->places.n);
	*ret = (uint32_t)g->places.n;
	return true;
}

static void take_losses(struct gathering *g, uint64_t tsc)
{
	size_t n;
	const struct kymo_ctf_loss *losses = kymo_ctf_reader_losses(g->reader, &n);

	for (; g->n_losses < n && losses[g->n_losses].begin <= tsc; g->n_losses++)
		if (!kymo_loss_is_in_vforks(&losses[g->n_losses]) && losses[g->n_losses].end > g->loss_end)
			g->loss_end = losses[g->n_losses].end;
	if (tsc > kymo_ctf_reader_damaged_since(g->reader))
		g->loss_end = UINT64_MAX;
}

/* Over a loss it may be the return of a later call. */
static void add_return(struct gathering *g, struct place *place)
{
	if (place->open && place->begin > g->loss_end)
		g->fates->leaves.items[place->open - 1] = g->number;
	place->open = 0;
}

/*
 * While it is not known when a call returns, its fate is the entry that came next in its thread, below it: what the
 * call has called first. It will not end before that does.
 */
static bool add_entry(struct gathering *g, struct place *place, struct last_entry *last, uint64_t stack_pointer,
		      uint64_t tsc)
{
	const size_t n = g->fates->leaves.n;

	if (place)
		place->open = 0;
	if (n == FATES_MAX)
		return true;
	if (!kymo_vec_push(&g->fates->leaves, place ? LEAVES_NEVER : 0))
		return false;
	if (last->entry && last->stack_pointer > stack_pointer && last->stack_pointer - stack_pointer < STACK_NEAR &&
	    g->fates->leaves.items[last->entry - 1] == LEAVES_NEVER)
		g->fates->leaves.items[last->entry - 1] = LEAVES_NEVER | (uint32_t)n;
	*last = (struct last_entry){ stack_pointer, n + 1 };
	if (place) {
		place->open = (uint32_t)n + 1;
		place->begin = tsc;
	}
	return true;
}

static bool add_record(struct gathering *g, const struct kymo_ctf_record *record, size_t thread)
{
	const struct role *role = &g->functions.roles[record->event - kymo_ctf_reader_trace(g->reader)->events];
	const enum fate_part part = kymo_fates_part(role, record);
	struct place place = { .stack_pointer = kymo_ctf_stack_pointer(record), .function = role->function };
	const struct kymo_ctf_process *process;
	uint32_t number;

	if (part == FATE_NONE)
		return true;
	while (g->last.n <= thread)
		if (!kymo_vec_push(&g->last, (struct last_entry){ .entry = 0 }))
			return false;
	/* Processes that the trace does not know may have the same stack pointers. */
	process = g->threads.items.items[thread].process;
	place.process = process ? (uintptr_t)process : (uintptr_t)thread << 1 | 1;
	g->number++;
	take_losses(g, record->tsc);
	if (!find_place(g, &place, part == FATE_ENTRY, &number))
		return false;
	if (part == FATE_ENTRY)
		return add_entry(g, number ? &g->places.items[number - 1] : NULL, &g->last.items[thread],
				 place.stack_pointer, record->tsc);
	g->last.items[thread].entry = 0;
	if (number)
		add_return(g, &g->places.items[number - 1]);
	return true;
}

/* Calls that have not returned by now: their first callee's fate is known before theirs from the end on. */
static void resolve(struct fates *fates)
{
	for (size_t i = fates->leaves.n; i-- > 0;) {
		uint32_t *leaves = &fates->leaves.items[i];

		if (*leaves > LEAVES_NEVER)
			*leaves = LEAVES_NEVER | fates->leaves.items[*leaves & ~LEAVES_NEVER];
	}
}

static void gathering_deinit(struct gathering *g)
{
	kymo_vec_deinit(&g->places);
	kymo_vec_deinit(&g->last);
	kymo_index_deinit(&g->index);
	kymo_threads_deinit(&g->threads);
	kymo_functions_deinit(&g->functions);
	kymo_ctf_close(g->reader);
}

struct kymo_error *kymo_fates_gather(struct fates *fates, const char *dir, struct filter *filter)
{
	kymo_cleanup(gathering_deinit) struct gathering g = { .fates = fates };
	struct kymo_error *error = kymo_ctf_open(dir, &g.reader);
	struct kymo_ctf_record record;
	size_t thread;

	if (error)
		return error;
	fates->is_known = true;
	if (getrandom(&g.seed, sizeof(g.seed), GRND_NONBLOCK) < 0)
		g.seed = (uintptr_t)&g; /* that is random, too */
	kymo_threads_init(&g.threads, kymo_ctf_reader_trace(g.reader));
	error = kymo_functions_init(&g.functions, kymo_ctf_reader_trace(g.reader));
	if (error)
		return error;
	while (g.number < LEAVES_NEVER - 1 && kymo_next_record(g.reader, NULL, &record, &error)) {
		if (!kymo_filter_takes(filter, &record))
			continue;
		error = kymo_threads_find(&g.threads, &record, &thread);
		if (!error && thread != NO_THREAD && !add_record(&g, &record, thread))
			error = &kymo_error_no_memory;
		if (error)
			return error;
	}
	resolve(fates);
	return error;
}
