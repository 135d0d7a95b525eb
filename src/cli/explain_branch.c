#include "cli/explain_branch.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "arch/clone.h"
#include "base/cleanup.h"
#include "cli/output.h"
#include "cli/target.h"
#include "probe/code/code.h"
#include "probe/code/indirect.h"
#include "sym/demangle.h"
#include "sym/find.h"
#include "sym/functions.h"
#include "sym/open.h"
#include "sym/sym.h"

struct counts {
	size_t n_functions, n_cloned, n_parts, n_sites, n_held, n_spilled, n_calls, n_apart, n_uncaught;
};

struct branch_explainer {
	const char *pattern;
	struct kymo_code *code;
	const struct kymo_function *functions;
	size_t n_functions;
	bool *is_part;   /* of each function: it belongs to another one */
	bool *is_chosen; /* by `pattern` */
	struct counts counts;
};

static void print_function(const struct kymo_function *function)
{
	if (function->name)
		kymo_print_shown(stdout, function->name);
	else
		printf("function");
	printf(" 0x%" PRIx64, function->start);
}

/* Extents that belong to another function are none of their own. */
static void note_parts(struct branch_explainer *explainer, const struct kymo_clone *clone)
{
	const struct kymo_extent *parts;
	size_t n;

	parts = kymo_clone_parts(clone, &n);
	for (size_t i = 1; i < n; i++)
		for (size_t k = 0; k < explainer->n_functions; k++)
			if (explainer->functions[k].start >= parts[i].start &&
			    explainer->functions[k].start < parts[i].end)
				explainer->is_part[k] = true;
}

static void print_clone(const struct kymo_function *function, const struct kymo_clone *clone,
			const struct kymo_clone_costs *costs)
{
	size_t n_sites, n_catches;

	(void)kymo_clone_sites(clone, &n_sites);
	(void)kymo_clone_catches(clone, &n_catches);
	print_function(function);
	printf("\n  clone      could be made: %zu blocks are recorded, %zu jumps lead back into it\n", n_sites,
	       n_catches);
	printf("  registers  the position is held at %zu blocks, loaded at %zu, and at %zu a register is saved\n",
	       costs->n_held, costs->n_free, costs->n_spilled);
	if (costs->n_calls)
		printf("  calls      %zu, of which %zu become a push and a jump\n", costs->n_calls,
		       costs->n_calls_apart);
	if (kymo_clone_n_uncaught(clone))
		printf("  not seen   %zu blocks, which have no room for a jump\n", kymo_clone_n_uncaught(clone));
}

static void count_clone(struct branch_explainer *explainer, const struct kymo_function *function,
			const struct kymo_clone *clone)
{
	struct counts *counts = &explainer->counts;
	struct kymo_clone_costs costs;
	size_t n_sites;

	kymo_clone_costs(clone, &costs);
	(void)kymo_clone_sites(clone, &n_sites);
	counts->n_cloned++;
	counts->n_sites += n_sites;
	counts->n_held += costs.n_held;
	counts->n_spilled += costs.n_spilled;
	counts->n_calls += costs.n_calls;
	counts->n_apart += costs.n_calls_apart;
	counts->n_uncaught += kymo_clone_n_uncaught(clone);
	if (explainer->pattern)
		print_clone(function, clone, &costs);
}

static struct kymo_error *explain_one(struct branch_explainer *explainer, size_t index, bool counts_parts)
{
	const struct kymo_function *function = &explainer->functions[index];
	struct kymo_refusal refusal = { .reason = "" };
	struct kymo_clone *clone = NULL;
	int err = kymo_clone_create(&explainer->code->code, explainer->code->map, function->start, &clone, &refusal);

	if (err == -ENOMEM)
		return &kymo_error_no_memory;
	if (counts_parts) {
		if (!err)
			note_parts(explainer, clone);
	} else {
		explainer->counts.n_functions++;
		if (!err) {
			count_clone(explainer, function, clone);
		} else {
			print_function(function);
			printf("\n  clone      none: %s\n", refusal.reason);
		}
	}
	kymo_clone_destroy(clone);
	return NULL;
}

static void choose_at(struct branch_explainer *explainer, struct kymo_module *module, uint64_t vaddr)
{
	const struct kymo_function *function = kymo_module_function_at(module, vaddr);

	if (function && function->start == vaddr)
		explainer->is_chosen[function - explainer->functions] = true;
}

/* An IFUNC is all that its resolver may choose. */
static struct kymo_error *choose_indirect(struct branch_explainer *explainer, struct kymo_module *module,
					  uint64_t resolver)
{
	const struct kymo_indirect *all = NULL, *indirect;
	size_t n = 0;
	struct kymo_error *error = kymo_indirects(explainer->code, module, &all, &n);

	indirect = error ? NULL : kymo_indirect_at(all, n, resolver);
	for (size_t i = 0; indirect && i < indirect->n; i++)
		choose_at(explainer, module, indirect->functions[i]);
	return error;
}

/* Aliases and versions, too, lead to a function. */
static struct kymo_error *choose(struct branch_explainer *explainer, struct kymo_module *module)
{
	kymo_cleanup_free const struct kymo_symbol **symbols = NULL;
	struct kymo_error *error;
	size_t n = 0;

	if (!explainer->pattern)
		return NULL;
	error = kymo_module_find(module, explainer->pattern, &symbols, &n);
	for (size_t i = 0; !error && i < n; i++) {
		if (symbols[i]->is_ifunc)
			error = choose_indirect(explainer, module, symbols[i]->vaddr);
		else
			choose_at(explainer, module, symbols[i]->vaddr);
	}
	return error;
}

static struct kymo_error *explain_functions(struct branch_explainer *explainer)
{
	struct kymo_error *error = NULL;

	/* All are looked at first: a part may come before its function. */
	for (size_t i = 0; !error && i < explainer->n_functions; i++)
		error = explain_one(explainer, i, true);
	for (size_t i = 0; !error && i < explainer->n_functions; i++) {
		if (explainer->pattern && !explainer->is_chosen[i])
			continue;
		if (explainer->is_part[i])
			explainer->counts.n_parts++;
		else
			error = explain_one(explainer, i, false);
	}
	return error;
}

static struct kymo_error *explain_module(struct branch_explainer *explainer, struct kymo_module *module)
{
	struct kymo_error *error = kymo_code_create(module, NULL, &explainer->code);

	if (!error)
		error = kymo_module_functions(module, &explainer->functions, &explainer->n_functions);
	if (error)
		return error;
	explainer->is_part = calloc(explainer->n_functions + 1, sizeof(*explainer->is_part));
	explainer->is_chosen = calloc(explainer->n_functions + 1, sizeof(*explainer->is_chosen));
	error = explainer->is_part && explainer->is_chosen ? choose(explainer, module) : &kymo_error_no_memory;
	if (!error)
		error = explain_functions(explainer);
	free(explainer->is_part);
	free(explainer->is_chosen);
	return error;
}

static double percent(size_t part, size_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

static void print_totals(const struct counts *counts)
{
	char functions[32], cloned[32], sites[32], calls[32];

	printf("%s%s functions: %s could be cloned (%.2f %%), %zu could not; %zu more extents are parts of these\n",
	       counts->n_functions > counts->n_cloned || counts->n_functions < 2 ? "\n" : "",
	       cli_format_count(counts->n_functions, functions), cli_format_count(counts->n_cloned, cloned),
	       percent(counts->n_cloned, counts->n_functions), counts->n_functions - counts->n_cloned, counts->n_parts);
	printf("%s blocks would be recorded: the position is held at %.1f %%, a register is saved at %.1f %%; %zu have "
	       "no room for a jump\n",
	       cli_format_count(counts->n_sites, sites), percent(counts->n_held, counts->n_sites),
	       percent(counts->n_spilled, counts->n_sites), counts->n_uncaught);
	printf("%s calls, of which %.1f %% become a push and a jump\n", cli_format_count(counts->n_calls, calls),
	       percent(counts->n_apart, counts->n_calls));
}

static struct kymo_error *check_totals(const struct branch_explainer *explainer, const char *where)
{
	if (explainer->pattern && !explainer->counts.n_functions && explainer->counts.n_parts)
		return kymo_error_create(KYMO_ERROR_NOT_FOUND, "'%s' of %s is a part of another function",
					 explainer->pattern, where);
	if (explainer->pattern && !explainer->counts.n_functions)
		return kymo_error_create(KYMO_ERROR_NOT_FOUND, "no function in %s is called '%s'", where,
					 explainer->pattern);
	if (explainer->pattern && !explainer->counts.n_cloned)
		return kymo_error_create(KYMO_ERROR_UNSAFE, "no function '%s' of %s could be cloned",
					 explainer->pattern, where);
	return NULL;
}

struct kymo_error *cli_explain_branch(const char *where, const char *pattern)
{
	kymo_cleanup(cli_target_deinit) struct cli_target target = { 0 };
	struct branch_explainer explainer = { .pattern = pattern };
	struct kymo_error *error = cli_target_init(where, &target);

	for (size_t i = 0; !error && i < cli_target_count(&target); i++) {
		struct kymo_module *module = NULL;

		explainer.code = NULL;
		error = cli_target_open(&target, i, &module);
		if (!error && module)
			error = explain_module(&explainer, module);
		kymo_code_destroy(explainer.code);
		kymo_module_close(module);
	}
	if (error)
		return error;
	if (explainer.counts.n_functions)
		print_totals(&explainer.counts);
	return check_totals(&explainer, where);
}
