#include "probe/code/targets.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "probe/code/words.h"
#include "sym/sym.h"

static void target_deinit(struct probe_target *target)
{
	free(target->function);
	free(target->names);
	free(target->refusal);
}

void probe_targets_deinit(struct probe_targets *targets)
{
	for (size_t i = 0; i < targets->list.n; i++)
		target_deinit(&targets->list.items[i]);
	kymo_vec_deinit(&targets->list);
}

bool probe_has_indirect(const struct kymo_symbol *const *symbols, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (symbols[i]->is_ifunc)
			return true;
	return false;
}

/* ---- adding ---------------------------------------------------------------------------------- */

/* Takes `refusal`; strings are copied. */
static struct kymo_error *add_target(struct probe_targets *targets, struct probe_target target, const char *function,
				     const char *names)
{
	target.function = strdup(function);
	target.names = names ? strdup(names) : NULL;
	if (target.function && !names == !target.names && kymo_vec_push(&targets->list, target))
		return NULL;
	target_deinit(&target);
	return &kymo_error_no_memory;
}

static struct kymo_error *add_refused(struct probe_targets *targets, const struct kymo_symbol *symbol, char *refusal)
{
	const struct probe_target target = { .vaddr = symbol->vaddr, .resolver = symbol->vaddr, .refusal = refusal };

	return refusal ? add_target(targets, target, symbol->name, NULL) : &kymo_error_no_memory;
}

static struct kymo_error *add_functions(struct probe_targets *targets, const struct kymo_module *module,
					const struct kymo_symbol *symbol, const struct kymo_indirect *indirect)
{
	struct kymo_error *error = NULL;
	char function[300];

	for (size_t i = 0; i < indirect->n && !error; i++) {
		const struct probe_target target = {
			.vaddr = indirect->functions[i],
			.resolver = indirect->resolver,
			.is_one_of_many = indirect->n > 1,
		};

		kymo_indirect_describe(module, target.vaddr, function, sizeof(function));
		error = add_target(targets, target, function, symbol->name);
	}
	return error;
}

static struct kymo_error *add_indirect(struct probe_targets *targets, const struct kymo_spec *spec,
				       const struct kymo_module *module, const struct kymo_symbol *symbol,
				       const struct kymo_indirect *indirect)
{
	char *refusal = NULL;
	int n;

	if (indirect && indirect->n && (indirect->n == 1 || !spec->offset))
		return add_functions(targets, module, symbol, indirect);
	if (indirect && indirect->n)
		n = asprintf(&refusal, PROBE_IS_IFUNC_OF_MANY, indirect->n, spec->file, spec->symbol);
	else
		n = asprintf(&refusal, PROBE_IS_IFUNC_NOT_KNOWN, indirect ? indirect->reason : "it is no code");
	return add_refused(targets, symbol, n < 0 ? NULL : refusal);
}

/* ---- each once ------------------------------------------------------------------------------- */

/* By address; what has a symbol of its own first. */
static int compare_targets(const void *a, const void *b)
{
	const struct probe_target *x = a, *y = b;

	if (x->vaddr != y->vaddr)
		return x->vaddr < y->vaddr ? -1 : 1;
	return (x->resolver > y->resolver) - (x->resolver < y->resolver);
}

/* `more` is the same function by another name. */
static struct kymo_error *join_names(struct probe_target *target, const struct probe_target *more)
{
	char *names = NULL;

	if (!target->names)
		return NULL;
	if (asprintf(&names, "%s,%s", target->names, more->names) < 0)
		return &kymo_error_no_memory;
	free(target->names);
	target->names = names;
	target->is_one_of_many |= more->is_one_of_many;
	return NULL;
}

static struct kymo_error *unify(struct probe_targets *targets)
{
	struct probe_target *items = targets->list.items;
	struct kymo_error *error = NULL;
	size_t n = 0;

	if (targets->list.n)
		qsort(items, targets->list.n, sizeof(*items), compare_targets);
	for (size_t i = 0; i < targets->list.n; i++) {
		struct probe_target *last = n ? &items[n - 1] : NULL;

		if (error || !last || last->vaddr != items[i].vaddr || last->refusal || !items[i].names) {
			items[n++] = items[i];
			continue;
		}
		error = join_names(last, &items[i]);
		target_deinit(&items[i]);
	}
	targets->list.n = n;
	return error;
}

/* ---- all of them ----------------------------------------------------------------------------- */

static bool is_named(const struct kymo_symbol *const *symbols, size_t n, const struct kymo_indirect *indirect)
{
	for (size_t i = 0; i < n; i++)
		if (symbols[i]->vaddr == indirect->resolver)
			return true;
	return false;
}

/* Whether the IFUNC may choose what one of the targets is known by. Both are in order. */
static bool has_target(const struct probe_targets *targets, const struct kymo_indirect *indirect)
{
	for (size_t i = 0, k = 0; i < indirect->n && k < targets->list.n;) {
		const struct probe_target *target = &targets->list.items[k];

		if (target->names && target->vaddr == indirect->functions[i])
			return true;
		if (indirect->functions[i] < target->vaddr)
			i++;
		else
			k++;
	}
	return false;
}

static void note_shared(struct probe_targets *targets, const struct kymo_indirect *indirect)
{
	size_t length = strlen(targets->shared);

	snprintf(targets->shared + length, sizeof(targets->shared) - length, "%s%s", length ? ", " : "",
		 indirect->name);
}

struct kymo_error *probe_targets_init(const struct kymo_spec *spec, struct kymo_module *module, struct kymo_code *code,
				      const struct kymo_symbol *const *symbols, size_t n, struct probe_targets *ret)
{
	struct probe_targets targets = { .list = { 0 } };
	const struct kymo_indirect *indirects = NULL;
	struct kymo_error *error = NULL;
	size_t n_indirects = 0;

	if (probe_has_indirect(symbols, n))
		error = kymo_indirects(code, module, &indirects, &n_indirects);
	for (size_t i = 0; i < n && !error; i++)
		if (!symbols[i]->is_ifunc)
			error = add_target(&targets, (struct probe_target){ .vaddr = symbols[i]->vaddr },
					   symbols[i]->name, NULL);
	for (size_t i = 0; i < n && !error; i++)
		if (symbols[i]->is_ifunc)
			error = add_indirect(&targets, spec, module, symbols[i],
					     kymo_indirect_at(indirects, n_indirects, symbols[i]->vaddr));
	if (!error)
		error = unify(&targets);
	for (size_t i = 0; i < n_indirects && !error; i++)
		if (!is_named(symbols, n, &indirects[i]) && has_target(&targets, &indirects[i]))
			note_shared(&targets, &indirects[i]);
	if (error) {
		probe_targets_deinit(&targets);
		return error;
	}
	*ret = targets;
	return NULL;
}

void probe_target_location(const struct kymo_spec *spec, const struct probe_target *target, char *out, size_t size)
{
	char name[PROBE_LOCATION_MAX];

	snprintf(name, sizeof(name), "%s%s%s", target->names ? target->names : "", target->names ? "=" : "",
		 target->function);
	probe_location_name(spec, name, out, size);
}
