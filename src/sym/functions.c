/*
 * Function extents. Symbols with a size come first; FDEs fill what these leave, so that together they cover all the
 * code that anything describes:
 *
 * 	symbols		[-- f --)      [-- g ----)
 * 	FDEs		[-- --------)  [---------)[----)
 * 	functions	[-- f --)[--)  [-- g ----)[----)
 *
 * A symbol inside of the extent of another (a second entry of a function in assembler) has no extent of its own. An
 * extent that overlaps the next one ends there.
 */
#include "sym/functions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sym/frames.h"
#include "sym/module.h"
#include "sym/module_state.h"

struct extents {
	KYMO_VEC(struct kymo_function) list;
};

/* ---- symbols --------------------------------------------------------------------------------- */

/* The index of the first symbol at or after `vaddr`. */
static size_t first_symbol(const struct kymo_module *module, uint64_t vaddr)
{
	size_t low = 0, high = module->n_symbols;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (module->symbols.items[mid].vaddr < vaddr)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* The name by which a function with aliases is known: a global one, then the shortest. */
static const struct kymo_symbol *better_name(const struct kymo_symbol *a, const struct kymo_symbol *b)
{
	if (a->is_global != b->is_global)
		return a->is_global ? a : b;
	return strlen(b->name) < strlen(a->name) ? b : a;
}

/* The best of the symbols at exactly `vaddr`, or NULL. */
static const struct kymo_symbol *symbol_at(const struct kymo_module *module, uint64_t vaddr)
{
	const struct kymo_symbol *best = NULL;

	for (size_t i = first_symbol(module, vaddr); i < module->n_symbols; i++) {
		const struct kymo_symbol *symbol = &module->symbols.items[i];

		if (symbol->vaddr != vaddr)
			break;
		best = best ? better_name(best, symbol) : symbol;
	}
	return best;
}

/* One extent for each address that has a symbol with a size. */
static bool collect_sized(const struct kymo_module *module, struct extents *extents)
{
	const struct kymo_symbol *symbols = module->symbols.items;

	for (size_t i = 0, next; i < module->n_symbols; i = next) {
		const struct kymo_symbol *best = &symbols[i];
		const struct sym_range *code = sym_code_at(module, symbols[i].vaddr);
		uint64_t size = symbols[i].size, left = code ? code->end - symbols[i].vaddr : 0;

		for (next = i + 1; next < module->n_symbols && symbols[next].vaddr == symbols[i].vaddr; next++) {
			best = better_name(best, &symbols[next]);
			if (symbols[next].size > size)
				size = symbols[next].size;
		}
		if (size > left)
			size = left;
		if (size && !kymo_vec_push(&extents->list,
					   (struct kymo_function){ best->name, best->vaddr, best->vaddr + size }))
			return false;
	}
	return true;
}

/* Leave extents that do not overlap. They are sorted by start, and no two start together. */
static void separate(struct extents *extents)
{
	struct kymo_function *items = extents->list.items;
	size_t n = 0;

	for (size_t i = 0; i < extents->list.n; i++) {
		if (n && items[i].end <= items[n - 1].end)
			continue;
		if (n && items[i].start < items[n - 1].end)
			items[n - 1].end = items[i].start;
		items[n++] = items[i];
	}
	extents->list.n = n;
}

/* ---- FDEs ------------------------------------------------------------------------------------ */

static bool add_piece(struct kymo_module *module, const struct sym_fde *fde, uint64_t start, uint64_t end)
{
	const struct kymo_symbol *symbol = start == fde->start ? symbol_at(module, start) : NULL;

	return kymo_vec_push(&module->functions, (struct kymo_function){ symbol ? symbol->name : NULL, start, end });
}

/* Add what FDEs describe and `sized` leaves free. All three only go forward. */
static bool fill_gaps(struct kymo_module *module, const struct extents *sized)
{
	const struct kymo_function *others = sized->list.items;
	uint64_t covered = 0;
	size_t next = 0;

	for (size_t i = 0; i < module->fdes.n; i++) {
		const struct sym_fde *fde = &module->fdes.items[i];
		uint64_t at = fde->start > covered ? fde->start : covered;

		while (next < sized->list.n && others[next].end <= at)
			next++;
		/* What the symbol leaves is padding. */
		if (fde->is_loose && next < sized->list.n && others[next].start == fde->start)
			continue;
		while (at < fde->end) {
			uint64_t end = fde->end;

			while (next < sized->list.n && others[next].end <= at)
				next++;
			if (next < sized->list.n && others[next].start < end)
				end = others[next].start;
			if (at < end && !add_piece(module, fde, at, end))
				return false;
			at = end < fde->end ? others[next].end : end;
		}
		if (at > covered)
			covered = at;
	}
	return true;
}

/* The pieces, which are in the module already, and the others: both are sorted by start, and none overlap. */
static bool merge(struct kymo_module *module, const struct extents *sized)
{
	const struct kymo_function *others = sized->list.items;
	size_t at = module->functions.n, other = sized->list.n, end = at + other;
	struct kymo_function *items;

	if (!kymo_vec_reserve(&module->functions, end + 1))
		return false;
	items = module->functions.items;
	module->functions.n = end;
	while (other)
		items[--end] = at && items[at - 1].start > others[other - 1].start ? items[--at] : others[--other];
	return true;
}

static struct kymo_error *find_functions(struct kymo_module *module)
{
	struct kymo_error *error = sym_frames_read(module);
	struct extents sized = { 0 };
	bool ok;

	if (error)
		return error;
	module->functions.n = 0;
	ok = collect_sized(module, &sized);
	if (ok) {
		separate(&sized);
		ok = fill_gaps(module, &sized);
	}
	ok = ok && merge(module, &sized);
	kymo_vec_deinit(&sized.list);
	return ok ? NULL : &kymo_error_no_memory;
}

struct kymo_error *kymo_module_functions(struct kymo_module *module, const struct kymo_function **ret, size_t *n_ret)
{
	struct kymo_error *error;

	if (sym_lazy_begin(&module->functions_lazy, &error))
		error = sym_lazy_end(&module->functions_lazy, find_functions(module));
	if (error)
		return error;
	*ret = module->functions.items;
	*n_ret = module->functions.n;
	return NULL;
}

/* ---- asking ---------------------------------------------------------------------------------- */

const struct kymo_function *kymo_module_function_at(struct kymo_module *module, uint64_t vaddr)
{
	const struct kymo_function *items;
	size_t low = 0, high;
	struct kymo_error *error = kymo_module_functions(module, &items, &high);

	if (error) {
		kymo_error_destroy(error);
		return NULL;
	}
	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (vaddr < items[mid].start)
			high = mid;
		else if (vaddr >= items[mid].end)
			low = mid + 1;
		else
			return &items[mid];
	}
	return NULL;
}

bool kymo_function_is_part_of(const struct kymo_function *function, const char *name)
{
	const size_t size = strlen(name);

	return function->name && !strncmp(function->name, name, size) && !strncmp(function->name + size, ".cold", 5);
}

void kymo_module_describe(struct kymo_module *module, uint64_t vaddr, char *out, size_t size)
{
	const struct kymo_symbol *symbol = symbol_at(module, vaddr);
	const struct kymo_function *function;

	if (symbol) {
		snprintf(out, size, "%s", symbol->name);
		return;
	}
	function = kymo_module_function_at(module, vaddr);
	if (function && function->name)
		snprintf(out, size, "%s+0x%llx", function->name, LLX(vaddr - function->start));
	else
		snprintf(out, size, "0x%llx", LLX(vaddr));
}
