#include "probe/code/indirect.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arch/exits.h"
#include "arch/plan.h"
#include "base/search.h"
#include "base/vec.h"
#include "sym/module.h"
#include "sym/relocs.h"
#include "sym/sym.h"
#include "sym/symbols.h"

#define INDIRECTS_MAX 8192

/* ---- finding them ---------------------------------------------------------------------------- */

static bool read_constant(void *data, uint64_t vaddr, uint64_t *ret)
{
	return !kymo_module_constant(data, vaddr, ret);
}

static struct kymo_error *find_functions(const struct kymo_code *code, struct kymo_module *module,
					 struct kymo_indirect *indirect)
{
	struct kymo_refusal refusal = { .vaddr = 0 };
	int err = kymo_resolver_create(&code->code, code->map, indirect->resolver, read_constant, module,
				       &indirect->functions, &indirect->n, &refusal);

	if (err == -ENOMEM)
		return &kymo_error_no_memory;
	if (err)
		memcpy(indirect->reason, refusal.reason, sizeof(indirect->reason));
	return NULL;
}

/* Of aliases the name that a user would write. */
static bool is_better(const struct kymo_symbol *a, const struct kymo_symbol *b)
{
	if (a->is_global != b->is_global)
		return a->is_global;
	if ((a->name[0] == '_') != (b->name[0] == '_'))
		return b->name[0] == '_';
	return strlen(a->name) < strlen(b->name);
}

struct indirects {
	KYMO_VEC(struct kymo_indirect) list;
};

/* The symbols from `i` on that have its address: one IFUNC at the most. `next_ret` is the first of another address. */
static struct kymo_error *add_indirect(struct kymo_code *code, struct kymo_module *module,
				       const struct kymo_symbol *symbols, size_t n, size_t i, size_t *next_ret,
				       struct indirects *indirects)
{
	struct kymo_indirect indirect = { .resolver = symbols[i].vaddr };
	const struct kymo_symbol *best = NULL;
	struct kymo_error *error;

	for (*next_ret = i; *next_ret < n && symbols[*next_ret].vaddr == symbols[i].vaddr; ++*next_ret)
		if (symbols[*next_ret].is_ifunc && (!best || is_better(&symbols[*next_ret], best)))
			best = &symbols[*next_ret];
	if (!best)
		return NULL;
	if (indirects->list.n == INDIRECTS_MAX)
		return kymo_error_create(KYMO_ERROR_BAD_DATA, "%s has more than %d IFUNCs", kymo_module_path(module),
					 INDIRECTS_MAX);
	indirect.name = best->name;
	error = find_functions(code, module, &indirect);
	if (error)
		return error;
	if (kymo_vec_push(&indirects->list, indirect))
		return NULL;
	free(indirect.functions);
	return &kymo_error_no_memory;
}

struct kymo_error *kymo_indirects(struct kymo_code *code, struct kymo_module *module, const struct kymo_indirect **ret,
				  size_t *n_ret)
{
	struct indirects found = { 0 };
	struct kymo_error *error = NULL;
	const struct kymo_symbol *symbols;
	size_t n;

	symbols = kymo_module_symbols(module, &n);
	for (size_t i = 0; i < n && !code->knows_indirects && !error;)
		error = add_indirect(code, module, symbols, n, i, &i, &found);
	if (error) {
		for (size_t i = 0; i < found.list.n; i++)
			free(found.list.items[i].functions);
		kymo_vec_deinit(&found.list);
		return error;
	}
	if (!code->knows_indirects) {
		code->indirects = found.list.items;
		code->n_indirects = found.list.n;
		code->knows_indirects = true;
	}
	*ret = code->indirects;
	*n_ret = code->n_indirects;
	return NULL;
}

/* ---- asking ---------------------------------------------------------------------------------- */

const struct kymo_indirect *kymo_indirect_at(const struct kymo_indirect *items, size_t n, uint64_t vaddr)
{
	size_t at = kymo_partition_point(i, n, items[i].resolver < vaddr);

	return at < n && items[at].resolver == vaddr ? &items[at] : NULL;
}

bool kymo_indirects_share(const struct kymo_indirect *a, const struct kymo_indirect *b)
{
	for (size_t i = 0, k = 0; i < a->n && k < b->n;) {
		if (a->functions[i] == b->functions[k])
			return true;
		if (a->functions[i] < b->functions[k])
			i++;
		else
			k++;
	}
	return false;
}

/* Of the names of a function, one that no version hides: what glibc exports at its address for old programs is called
 * as the IFUNC is. */
static bool names_better(const struct kymo_symbol *a, const struct kymo_symbol *b)
{
	return a->is_default != b->is_default ? a->is_default : strlen(a->name) < strlen(b->name);
}

void kymo_indirect_describe(const struct kymo_module *module, uint64_t vaddr, char *out, size_t size)
{
	const struct kymo_symbol *symbols, *best = NULL;
	uint64_t offset;
	size_t n;

	symbols = kymo_module_symbols(module, &n);
	for (size_t i = kymo_partition_point(k, n, symbols[k].vaddr < vaddr); i < n && symbols[i].vaddr == vaddr; i++)
		if (!best || names_better(&symbols[i], best))
			best = &symbols[i];
	if (best)
		snprintf(out, size, best->is_default ? "%s" : "%s@%s", best->name, best->version);
	else
		snprintf(out, size, "0x%" PRIx64, kymo_module_vaddr_to_offset(module, vaddr, &offset) ? vaddr : offset);
}
