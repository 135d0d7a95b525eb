#include "arch/clones.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "arch/x86_64/marks.h"
#include "base/search.h"
#include "base/vec.h"

#define ALIGNMENT 64u /* of a clone's code */

struct entry {
	struct kymo_clone *clone;
	uint32_t first_site;
	size_t first_point, n_points;
};

struct kymo_clones {
	const struct kymo_module_code *code;
	const struct kymo_entry_map *map;
	const struct kymo_clones_bounds *bounds; /* while functions are analyzed; or NULL */
	KYMO_VEC(struct entry) entries;
	KYMO_VEC(struct kymo_clones_refused) refused;
	KYMO_VEC(struct kymo_clones_write) writes;
	struct kymo_clone_map points;
	uint32_t n_sites;
	size_t n_writes;
	size_t n_catches_max; /* of a function */
};

/* ---- choosing -------------------------------------------------------------------------------- */

/* Which functions begin in an extent: those from `first_ret` on, how many. */
static size_t functions_in(const struct kymo_module_code *code, const struct kymo_extent *extent, size_t *first_ret)
{
	size_t first = kymo_partition_point(i, code->n_functions, code->functions[i].start < extent->start);
	size_t end = kymo_partition_point(i, code->n_functions, code->functions[i].start < extent->end);

	*first_ret = first;
	return end - first;
}

static bool is_taken(const struct kymo_clones *clones, const bool *taken, const struct kymo_clone *clone)
{
	const struct kymo_extent *parts;
	size_t n_parts;

	parts = kymo_clone_parts(clone, &n_parts);
	for (size_t i = 0; i < n_parts; i++) {
		size_t first, n = functions_in(clones->code, &parts[i], &first);

		for (size_t k = first; k < first + n; k++)
			if (taken[k])
				return true;
	}
	return false;
}

static void take(const struct kymo_clones *clones, bool *taken, const struct kymo_clone *clone)
{
	const struct kymo_extent *parts;
	size_t n_parts;

	parts = kymo_clone_parts(clone, &n_parts);
	for (size_t i = 0; i < n_parts; i++) {
		size_t first, n = functions_in(clones->code, &parts[i], &first);

		memset(taken + first, true, n);
	}
}

static size_t writes_of(const struct kymo_clone *clone)
{
	size_t n;

	(void)kymo_clone_steps(clone, &n);
	return n;
}

static int keep(struct kymo_clones *clones, struct kymo_clone *clone)
{
	size_t n_sites, n_catches;

	(void)kymo_clone_sites(clone, &n_sites);
	(void)kymo_clone_catches(clone, &n_catches);
	clones->n_writes += writes_of(clone);
	if (!kymo_vec_push(&clones->entries, (struct entry){ .clone = clone, .first_site = clones->n_sites })) {
		kymo_clone_destroy(clone);
		return -ENOMEM;
	}
	clones->n_sites += (uint32_t)n_sites;
	if (n_catches > clones->n_catches_max)
		clones->n_catches_max = n_catches;
	return 0;
}

/* What was found of the functions of a module; all arrays are by function. */
struct finding {
	struct kymo_clone **single; /* with one extent; they may turn out to be parts of others */
	bool *taken;                /* it belongs to a clone */
	size_t n_writes;            /* of those in `single` */
};

static int take_and_keep(struct kymo_clones *clones, bool *taken, struct kymo_clone *clone)
{
	if (is_taken(clones, taken, clone)) {
		kymo_clone_destroy(clone);
		return 0;
	}
	take(clones, taken, clone);
	return keep(clones, clone);
}

static bool is_left_out(const struct kymo_clones *clones, const struct kymo_clone *clone)
{
	const struct kymo_clones_bounds *bounds = clones->bounds;

	return bounds && bounds->is_left_out && bounds->is_left_out(clone, bounds->data);
}

/* One that has more than one extent is kept at once. One that is refused is noted, which may be a part, too. */
static int find(struct kymo_clones *clones, struct finding *finding, size_t index)
{
	struct kymo_clones_refused refused = { .start = clones->code->functions[index].start };
	struct kymo_clone *clone;
	size_t n_parts;
	int err = kymo_clone_create(clones->code, clones->map, refused.start, &clone, &refused.refusal);

	if (err == -ENOMEM)
		return err;
	if (err)
		return kymo_vec_push(&clones->refused, refused) ? 0 : -ENOMEM;
	if (is_left_out(clones, clone)) {
		kymo_clone_destroy(clone);
		return 0;
	}
	(void)kymo_clone_parts(clone, &n_parts);
	if (n_parts > 1)
		return take_and_keep(clones, finding->taken, clone);
	finding->single[index] = clone;
	finding->n_writes += writes_of(clone);
	return 0;
}

static int check_bounds(const struct kymo_clones *clones, const struct finding *finding)
{
	const struct kymo_clones_bounds *bounds = clones->bounds;

	if (!bounds)
		return 0;
	if (bounds->is_given_up && bounds->is_given_up(bounds->data))
		return -ECANCELED;
	return clones->n_writes + finding->n_writes > bounds->n_writes ? -E2BIG : 0;
}

/* Parts of functions that have a clone are not refused. */
static void forget_parts(struct kymo_clones *clones, const bool *taken)
{
	const struct kymo_module_code *code = clones->code;
	size_t n = 0;

	for (size_t i = 0; i < clones->refused.n; i++) {
		const uint64_t start = clones->refused.items[i].start;

		if (!taken[kymo_partition_point(k, code->n_functions, code->functions[k].start < start)])
			clones->refused.items[n++] = clones->refused.items[i];
	}
	clones->refused.n = n;
}

static int find_all(struct kymo_clones *clones, struct finding *finding, kymo_clones_is_chosen *is_chosen, void *data)
{
	const struct kymo_module_code *code = clones->code;
	int err = 0;

	for (size_t i = 0; i < code->n_functions && !err; i++)
		if (!finding->taken[i] && is_chosen(&code->functions[i], data)) {
			err = find(clones, finding, i);
			if (!err)
				err = check_bounds(clones, finding);
		}
	for (size_t i = 0; i < code->n_functions && !err; i++) {
		struct kymo_clone *clone = finding->single[i];

		finding->single[i] = NULL;
		if (clone)
			err = take_and_keep(clones, finding->taken, clone);
	}
	forget_parts(clones, finding->taken);
	return err;
}

/* Those with parts come first: a part is no function by itself. */
static int add_all(struct kymo_clones *clones, kymo_clones_is_chosen *is_chosen, void *data)
{
	const size_t n = clones->code->n_functions;
	struct finding finding = { .single = calloc(n + 1, sizeof(*finding.single)),
				   .taken = calloc(n + 1, sizeof(bool)) };
	int err = finding.single && finding.taken ? find_all(clones, &finding, is_chosen, data) : -ENOMEM;

	for (size_t i = 0; finding.single && i < n; i++)
		kymo_clone_destroy(finding.single[i]);
	free(finding.single);
	free(finding.taken);
	return err;
}

int kymo_clones_create(const struct kymo_module_code *code, const struct kymo_entry_map *map,
		       kymo_clones_is_chosen *is_chosen, void *data, const struct kymo_clones_bounds *bounds,
		       struct kymo_clones **ret)
{
	struct kymo_clones *clones = calloc(1, sizeof(*clones));
	int err;

	if (!clones)
		return -ENOMEM;
	clones->code = code;
	clones->map = map;
	clones->bounds = bounds;
	err = add_all(clones, is_chosen, data);
	if (err) {
		kymo_clones_destroy(clones);
		return err;
	}
	clones->bounds = NULL;
	*ret = clones;
	return 0;
}

void kymo_clones_destroy(struct kymo_clones *clones)
{
	if (!clones)
		return;
	for (size_t i = 0; i < clones->entries.n; i++)
		kymo_clone_destroy(clones->entries.items[i].clone);
	kymo_vec_deinit(&clones->entries);
	kymo_vec_deinit(&clones->refused);
	kymo_vec_deinit(&clones->writes);
	kymo_clone_map_deinit(&clones->points);
	free(clones);
}

/* ---- what there is --------------------------------------------------------------------------- */

const struct kymo_clones_refused *kymo_clones_refused(const struct kymo_clones *clones, size_t *n_ret)
{
	*n_ret = clones->refused.n;
	return clones->refused.items;
}

size_t kymo_clones_n(const struct kymo_clones *clones)
{
	return clones->entries.n;
}

const struct kymo_clone *kymo_clones_at(const struct kymo_clones *clones, size_t i, uint32_t *first_site_ret)
{
	*first_site_ret = clones->entries.items[i].first_site;
	return clones->entries.items[i].clone;
}

size_t kymo_clones_n_writes(const struct kymo_clones *clones)
{
	return clones->n_writes;
}

uint32_t kymo_clones_n_sites(const struct kymo_clones *clones)
{
	return clones->n_sites;
}

const struct kymo_clones_write *kymo_clones_writes(const struct kymo_clones *clones, size_t *n_ret)
{
	*n_ret = clones->writes.n;
	return clones->writes.items;
}

const struct kymo_clone_map *kymo_clones_map(const struct kymo_clones *clones)
{
	return &clones->points;
}

const struct kymo_clone_point *kymo_clones_points(const struct kymo_clones *clones, size_t i, size_t *n_ret)
{
	*n_ret = clones->entries.items[i].n_points;
	return clones->points.points.items + clones->entries.items[i].first_point;
}

/* ---- the text -------------------------------------------------------------------------------- */

/* Text may end in what fills its last page, which the file has, and its sections have not: that is left alone. */
static int add_write(struct kymo_clones *clones, const struct kymo_clones_write *write)
{
	struct kymo_clones_write one = *write;
	size_t size;
	const uint8_t *bytes = x86_text_at(clones->map, one.vaddr, &size);

	if (!bytes || size < one.size)
		return -ERANGE;
	memcpy(one.original, bytes, one.size);
	return kymo_vec_push(&clones->writes, one) ? 0 : -ENOMEM;
}

static int add_jump(struct kymo_clones *clones, const struct kymo_clone_env *env, uint64_t code, uint64_t link,
		    uint32_t to)
{
	struct kymo_clones_write write = { .vaddr = link, .link = link, .to = to, .size = KYMO_JUMP_SIZE };
	int err = kymo_encode_jump(link + env->bias, code + to, write.bytes);

	return err ? err : add_write(clones, &write);
}

static int add_short_jump(struct kymo_clones *clones, const struct kymo_catch *catch, uint32_t to)
{
	const int64_t distance = (int64_t)(catch->island - catch->vaddr - KYMO_SHORT_JUMP_SIZE);
	const struct kymo_clones_write write = { .vaddr = catch->vaddr,
						 .link = catch->island,
						 .to = to,
						 .size = KYMO_SHORT_JUMP_SIZE,
						 .bytes = { 0xeb, (uint8_t)distance } };

	return distance == (int8_t)distance ? add_write(clones, &write) : -ERANGE;
}

/* ---- the code -------------------------------------------------------------------------------- */

struct output {
	struct kymo_clone_env env;
	uint64_t to;
	uint8_t *bytes;
	size_t size, used;
	uint32_t *catch_at;
};

/* Breakpoints: nothing leads there. */
static int align(struct output *output)
{
	size_t aligned = (output->used + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);

	if (aligned > output->size)
		return -ENOSPC;
	memset(output->bytes + output->used, 0xcc, aligned - output->used);
	output->used = aligned;
	return 0;
}

static int emit_code(struct kymo_clones *clones, struct entry *entry, struct output *output)
{
	const size_t n_points = clones->points.points.n;
	int size = kymo_clone_emit(entry->clone, &output->env, output->to + output->used, output->bytes + output->used,
				   output->size - output->used, output->catch_at, &clones->points);

	if (size < 0)
		return size;
	entry->first_point = n_points;
	entry->n_points = clones->points.points.n - n_points;
	for (size_t i = n_points; i < clones->points.points.n; i++)
		clones->points.points.items[i].at += (uint32_t)output->used;
	return size;
}

/* Each function's writes follow one another. */
static int emit_one(struct kymo_clones *clones, struct entry *entry, uint32_t first_site, struct output *output)
{
	const struct kymo_clone_step *steps;
	const struct kymo_catch *catches;
	size_t n;
	int size, err = align(output);

	if (err)
		return err;
	output->env.first_site = first_site + entry->first_site;
	size = emit_code(clones, entry, output);
	if (size < 0)
		return size;
	catches = kymo_clone_catches(entry->clone, &n);
	steps = kymo_clone_steps(entry->clone, &n);
	for (size_t i = 0; i < n && !err; i++) {
		const struct kymo_catch *catch = &catches[steps[i].index];
		const uint32_t to = (uint32_t)output->used + output->catch_at[steps[i].index];

		if (catch->island && !steps[i].is_island)
			err = add_short_jump(clones, catch, to);
		else
			err = add_jump(clones, &output->env, output->to, catch->island ? catch->island : catch->vaddr,
				       to);
	}
	output->used += (size_t)size;
	return err;
}

size_t kymo_clones_size(const struct kymo_clones *clones)
{
	size_t size = KYMO_CLONE_SLOW_SIZE;

	for (size_t i = 0; i < clones->entries.n; i++)
		size += kymo_clone_size(clones->entries.items[i].clone) + ALIGNMENT;
	return size;
}

int kymo_clones_emit(struct kymo_clones *clones, const struct kymo_clone_env *env, int32_t tid, uint64_t to,
		     uint8_t *out, size_t size)
{
	struct output output = { .env = *env, .to = to, .bytes = out, .size = size };
	int err;

	clones->writes.n = clones->points.points.n = 0;
	output.env.slow = to;
	output.catch_at = malloc((clones->n_catches_max + 1) * sizeof(*output.catch_at));
	if (!output.catch_at)
		return -ENOMEM;
	err = kymo_clone_emit_slow(env, tid, out, size);
	output.used = err < 0 ? 0 : (size_t)err;
	for (size_t i = 0; i < clones->entries.n && err >= 0; i++)
		err = emit_one(clones, &clones->entries.items[i], env->first_site, &output);
	free(output.catch_at);
	return err < 0 ? err : (int)output.used;
}
