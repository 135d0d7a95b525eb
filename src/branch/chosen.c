#include "branch/chosen.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "base/search.h"
#include "branch/space.h"
#include "branch/state.h"
#include "probe/code/code.h"
#include "probe/code/indirect.h"
#include "sym/files.h"
#include "sym/find.h"
#include "sym/functions.h"
#include "sym/lsda.h"
#include "sym/module.h"
#include "sym/open.h"
#include "sym/sym.h"

#define NEAR_MAX 512

struct choosing {
	struct branch_space *space;
	const struct branch_region *region;
	struct kymo_module *module;
	uint64_t bias;
	bool is_out_of_memory;
};

static bool is_in_region(const struct branch_region *region, uint64_t address)
{
	return address >= region->range.start && address < region->range.end;
}

static void see_pad(void *data, uint64_t vaddr)
{
	struct choosing *choosing = data;
	const uint64_t address = vaddr + choosing->bias;

	if (!is_in_region(choosing->region, address) || !branch_is_chosen(choosing->space, address))
		return;
	choosing->is_out_of_memory |= !kymo_vec_push(&choosing->space->entries, address);
}

/* An exception enters chosen code there, from the unwinder. Call when what is chosen is sorted. True unless memory is
 * out. */
static bool take_landing_pads(struct choosing *choosing)
{
	kymo_error_destroy(kymo_module_landing_pads(choosing->module, see_pad, choosing));
	return !choosing->is_out_of_memory;
}

/* The function's extent, and its entry. True unless memory is out. */
static bool take_function(struct choosing *choosing, const struct kymo_function *function, bool is_entered)
{
	const struct branch_range range = { function->start + choosing->bias, function->end + choosing->bias };

	if (!is_in_region(choosing->region, range.start) || range.end <= range.start)
		return true;
	return kymo_vec_push(&choosing->space->chosen, range) &&
	       (!is_entered || kymo_vec_push(&choosing->space->entries, range.start));
}

/* Their number; 0 where they are not known. */
static size_t get_functions(const struct choosing *choosing, const struct kymo_function **ret)
{
	size_t n;
	struct kymo_error *error = kymo_module_functions(choosing->module, ret, &n);

	if (!error)
		return n;
	kymo_error_destroy(error);
	return 0;
}

static bool take_all(struct choosing *choosing, bool *is_met)
{
	const struct kymo_function *functions;
	const size_t n = get_functions(choosing, &functions);

	for (size_t i = 0; i < n; i++) {
		if (!is_in_region(choosing->region, functions[i].start + choosing->bias))
			continue;
		if (!kymo_vec_push(&choosing->space->entries, functions[i].start + choosing->bias))
			return false;
		*is_met = true;
	}
	return kymo_vec_push(&choosing->space->chosen, choosing->region->range);
}

static bool take_parts(struct choosing *choosing, const char *name)
{
	const struct kymo_function *functions;
	const size_t n = get_functions(choosing, &functions);

	for (size_t i = 0; i < n; i++)
		if (kymo_function_is_part_of(&functions[i], name) && !take_function(choosing, &functions[i], false))
			return false;
	return true;
}

/* By its address and name. True unless memory is out. */
static bool take_at(struct choosing *choosing, uint64_t vaddr, const char *name, bool *is_met)
{
	const struct kymo_function *function = kymo_module_function_at(choosing->module, vaddr);

	if (!function)
		return true;
	*is_met = true;
	return take_function(choosing, function, true) && (!name || take_parts(choosing, name));
}

/* NULL where the file's code is not understood, or memory is out. */
static struct kymo_code *code_of(struct choosing *choosing)
{
	struct branch_file *file = choosing->region->file;

	if (!file->code)
		kymo_error_destroy(kymo_code_create(choosing->module, NULL, &file->code));
	return file->code;
}

/* An IFUNC: all that its resolver may choose, as the resolver is no code of its own. */
static bool take_indirect(struct choosing *choosing, uint64_t vaddr, bool *is_met)
{
	const struct kymo_indirect *all = NULL, *indirect;
	struct kymo_code *code = code_of(choosing);
	bool is_done = true;
	size_t n = 0;

	if (code)
		kymo_error_destroy(kymo_indirects(code, choosing->module, &all, &n));
	indirect = kymo_indirect_at(all, n, vaddr);
	for (size_t i = 0; indirect && i < indirect->n && is_done; i++) {
		const struct kymo_function *function =
			kymo_module_function_at(choosing->module, indirect->functions[i]);

		is_done = !function || take_at(choosing, indirect->functions[i], function->name, is_met);
	}
	return is_done;
}

static bool take_some(struct choosing *choosing, const char *pattern, bool *is_met)
{
	const struct kymo_symbol **symbols;
	struct kymo_error *error;
	bool is_done = true;
	size_t n;

	error = kymo_module_find(choosing->module, pattern, &symbols, &n);
	if (error) {
		kymo_error_destroy(error);
		return true;
	}
	for (size_t i = 0; i < n && is_done; i++)
		is_done = symbols[i]->is_ifunc ? take_indirect(choosing, symbols[i]->vaddr, is_met)
					       : take_at(choosing, symbols[i]->vaddr, symbols[i]->name, is_met);
	free(symbols);
	return is_done;
}

static int compare_ranges(const void *a, const void *b)
{
	const struct branch_range *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* Ranges that touch become one. */
static void sort_chosen(struct branch_space *space)
{
	size_t n = 0;

	if (space->chosen.n)
		qsort(space->chosen.items, space->chosen.n, sizeof(space->chosen.items[0]), compare_ranges);
	for (size_t i = 0; i < space->chosen.n; i++) {
		const struct branch_range *range = &space->chosen.items[i];

		if (n && range->start <= space->chosen.items[n - 1].end) {
			if (range->end > space->chosen.items[n - 1].end)
				space->chosen.items[n - 1].end = range->end;
		} else {
			space->chosen.items[n++] = *range;
		}
	}
	space->chosen.n = n;
}

static void sort_entries(struct branch_space *space)
{
	size_t n = 0;

	if (space->entries.n)
		qsort(space->entries.items, space->entries.n, sizeof(space->entries.items[0]), kymo_compare_u64);
	for (size_t i = 0; i < space->entries.n; i++)
		if (!n || space->entries.items[i] != space->entries.items[n - 1])
			space->entries.items[n++] = space->entries.items[i];
	space->entries.n = n;
}

struct kymo_file_id *branch_name_files(const struct kymo_branch_spec *specs, size_t n)
{
	struct kymo_file_id *named = calloc(n + 1, sizeof(*named));

	for (size_t i = 0; i < n && named; i++)
		if (specs[i].file)
			named[i] = kymo_identify_file(specs[i].file);
	return named;
}

static bool is_named(const struct branch_region *region, struct kymo_file_id named)
{
	const struct branch_file *file = region->file;

	return kymo_is_same_file((struct kymo_file_id){ file->major, file->minor, file->inode }, named);
}

/* What a spec chooses of a region's file; its module is opened then. False where it has none. */
static bool matches(struct choosing *choosing, const struct kymo_branch_spec *spec, struct kymo_file_id named)
{
	if (!choosing->region->file ||
	    !(kymo_name_matches_file(spec->file, choosing->region->name, NULL) || is_named(choosing->region, named)))
		return false;
	choosing->module = branch_module(choosing->region);
	return choosing->module && !kymo_module_bias(choosing->module, choosing->region->range.start,
						     choosing->region->offset, &choosing->bias);
}

bool branch_choose(struct kymo_branches *branches, struct branch_space *space)
{
	space->is_searched = true;
	for (size_t i = 0; i < space->regions.n; i++) {
		struct choosing choosing = { .space = space, .region = &space->regions.items[i] };
		bool is_any = false;

		for (size_t k = 0; k < branches->options.n_specs; k++) {
			const struct kymo_branch_spec *spec = &branches->options.specs[k];

			if (!matches(&choosing, spec, branches->named[k]))
				continue;
			is_any = true;
			if (spec->functions ? !take_some(&choosing, spec->functions, &branches->met[k])
					    : !take_all(&choosing, &branches->met[k]))
				return false;
		}
		if (!is_any)
			continue;
		sort_chosen(space);
		if (!take_landing_pads(&choosing))
			return false;
	}
	sort_entries(space);
	return true;
}

bool branch_is_chosen(const struct branch_space *space, uint64_t address)
{
	size_t low = 0, high = space ? space->chosen.n : 0;

	while (low < high) {
		const size_t mid = low + (high - low) / 2;

		if (address < space->chosen.items[mid].start)
			high = mid;
		else if (address >= space->chosen.items[mid].end)
			low = mid + 1;
		else
			return true;
	}
	return false;
}

struct kymo_error *branch_check_met(const struct kymo_branches *branches)
{
	for (size_t i = 0; i < branches->options.n_specs && !branches->is_all; i++) {
		const struct kymo_branch_spec *spec = &branches->options.specs[i];

		if (!branches->met[i])
			return kymo_error_create(KYMO_ERROR_NOT_FOUND,
						 "--branch %s%s%s: process %d has no such function; 'kymo list' shows "
						 "those of a file",
						 spec->file, spec->functions ? ":" : "",
						 spec->functions ? spec->functions : "", branches->pid);
	}
	return NULL;
}

/* A file that cannot be read now may be another one when it is mapped. */
static struct kymo_error *check_file(const struct kymo_branch_spec *spec)
{
	kymo_cleanup_free char *path = NULL;
	struct kymo_error *error = kymo_find_file(spec->file, &path);
	struct kymo_module *module = NULL;
	const struct kymo_symbol **symbols = NULL;
	char near[NEAR_MAX] = "";
	size_t n = 1;

	if (!error)
		error = kymo_module_open(path, &module);
	if (!error && !kymo_module_find(module, spec->functions, &symbols, &n))
		free(symbols);
	if (!n)
		kymo_module_nearest(module, spec->functions, near, sizeof(near));
	kymo_error_destroy(error);
	kymo_module_close(module);
	if (n)
		return NULL;
	return kymo_error_create(KYMO_ERROR_NOT_FOUND, "--branch %s:%s: %s has no such function%s%s%s", spec->file,
				 spec->functions, path, *near ? "; the nearest names are " : " ('kymo list ",
				 *near ? near : path, *near ? "" : "' shows what there is)");
}

struct kymo_error *branch_check_files(const struct kymo_branches *branches)
{
	struct kymo_error *error = NULL;

	for (size_t i = 0; i < branches->options.n_specs && !error; i++)
		if (branches->options.specs[i].functions)
			error = check_file(&branches->options.specs[i]);
	return error;
}
