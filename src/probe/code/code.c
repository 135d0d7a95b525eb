#include "probe/code/code.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/search.h"
#include "marker/list.h"
#include "marker/marker.h"
#include "probe/code/indirect.h"
#include "probe/code/store.h"
#include "sym/entries.h"
#include "sym/functions.h"
#include "sym/golang.h"
#include "sym/module.h"
#include "sym/rseq.h"
#include "sym/sym.h"

static void free_code(struct kymo_module_code *code)
{
	free((void *)code->text);
	free((void *)code->fixed);
	free((void *)code->data);
	free((void *)code->functions);
	free((void *)code->rseq);
	free((void *)code->entries);
}

/* The sections whose being executable is `executable`, as spans. */
static struct kymo_error *gather_spans(const struct kymo_module *module, bool executable, const struct kymo_span **ret,
				       size_t *n_ret)
{
	const struct kymo_section *sections;
	struct kymo_span *spans;
	size_t n_sections, n = 0;

	sections = kymo_module_sections(module, &n_sections);
	spans = calloc(n_sections + 1, sizeof(*spans));
	if (!spans)
		return &kymo_error_no_memory;
	for (size_t i = 0; i < n_sections; i++)
		if (sections[i].executable == executable && sections[i].bytes && sections[i].size)
			spans[n++] =
				(struct kymo_span){ sections[i].vaddr, sections[i].bytes, (size_t)sections[i].size };
	*ret = spans;
	*n_ret = n;
	return NULL;
}

/* The parts of the file that segments map to be executed, and not to be written. */
static struct kymo_error *gather_fixed(const struct kymo_module *module, struct kymo_module_code *code)
{
	const struct kymo_segment *segments;
	struct kymo_extent *fixed;
	size_t n;

	segments = kymo_module_segments(module, &n);
	fixed = calloc(n + 1, sizeof(*fixed));
	if (!fixed)
		return &kymo_error_no_memory;
	for (size_t i = 0; i < n; i++)
		if (segments[i].executable && !segments[i].writable)
			fixed[code->n_fixed++] =
				(struct kymo_extent){ segments[i].vaddr, segments[i].vaddr + segments[i].file_size };
	code->fixed = fixed;
	return NULL;
}

static struct kymo_error *copy_extents(const struct kymo_function *from, size_t n, const struct kymo_extent **ret,
				       size_t *n_ret)
{
	struct kymo_extent *extents = calloc(n + 1, sizeof(*extents));

	if (!extents)
		return &kymo_error_no_memory;
	for (size_t i = 0; i < n; i++)
		extents[i] = (struct kymo_extent){ from[i].start, from[i].end };
	*ret = extents;
	*n_ret = n;
	return NULL;
}

/* Cold blocks of markers are entered by jumps that are not in the text yet. */
static struct kymo_error *gather_entries(struct kymo_module *module, const struct kymo_marker_list *markers,
					 struct kymo_module_code *code)
{
	size_t n, n_switches = markers ? markers->n_switches : 0;
	const uint64_t *known;
	struct kymo_error *error = kymo_module_entries(module, &known, &n);
	uint64_t *entries = error ? NULL : malloc((n + n_switches + 1) * sizeof(*entries));

	if (!entries)
		return error ? error : &kymo_error_no_memory;
	if (n)
		memcpy(entries, known, n * sizeof(*entries));
	for (size_t i = 0; i < n_switches; i++)
		entries[n + i] = markers->switches[i].cold;
	if (n_switches) /* what is known is sorted */
		qsort(entries, n + n_switches, sizeof(*entries), kymo_compare_u64);
	code->entries = entries;
	code->n_entries = n + n_switches;
	return NULL;
}

/* Unreadable markers are never turned on. */
static struct kymo_error *gather_entries_of_all(struct kymo_module *module, struct kymo_module_code *code)
{
	struct kymo_marker_list *markers = NULL;
	struct kymo_error *error = kymo_markers_create(module, &markers);

	if (error && error->code != KYMO_ERROR_BAD_DATA)
		return error;
	kymo_error_destroy(error);
	error = gather_entries(module, markers, code);
	kymo_markers_destroy(markers);
	return error;
}

static struct kymo_error *gather_code(struct kymo_module *module, const struct kymo_marker_list *markers,
				      struct kymo_module_code *code)
{
	const struct kymo_function *functions;
	struct kymo_error *error;
	size_t n;

	error = gather_spans(module, true, &code->text, &code->n_text);
	if (!error)
		error = gather_fixed(module, code);
	if (!error)
		error = gather_spans(module, false, &code->data, &code->n_data);
	if (!error)
		error = kymo_module_functions(module, &functions, &n);
	if (!error)
		error = copy_extents(functions, n, &code->functions, &code->n_functions);
	if (!error)
		error = kymo_module_rseq(module, &functions, &n);
	if (!error)
		error = copy_extents(functions, n, &code->rseq, &code->n_rseq);
	if (!error)
		error = kymo_module_small_stacks(module, &code->small_stacks.start, &code->small_stacks.end,
						 &code->small_stacks_left);
	if (!error)
		error = markers ? gather_entries(module, markers, code) : gather_entries_of_all(module, code);
	code->position_independent = kymo_module_is_pie(module);
	return error;
}

struct kymo_error *kymo_code_create(struct kymo_module *module, const struct kymo_marker_list *markers,
				    struct kymo_code **ret)
{
	struct kymo_code *code = calloc(1, sizeof(*code));
	struct kymo_error *error;
	int r;

	if (!code)
		return &kymo_error_no_memory;
	error = gather_code(module, markers, &code->code);
	if (!error) {
		r = kymo_module_is_protected(module) ? probe_store_map(&code->code, &code->map)
						     : kymo_entry_map_create(&code->code, &code->map);
		if (r < 0)
			error = kymo_error_errno(r, "cannot analyze the code of %s", kymo_module_path(module));
	}
	if (error) {
		kymo_code_destroy(code);
		return error;
	}
	*ret = code;
	return NULL;
}

static void *copy_of(const void *item, size_t size)
{
	void *copy = malloc(size);

	return copy ? memcpy(copy, item, size) : NULL;
}

struct kymo_error *kymo_code_create_jit(const struct kymo_span *text, const struct kymo_extent *function,
					uint64_t entry, struct kymo_code **ret)
{
	struct kymo_code *code = calloc(1, sizeof(*code));
	int err = -ENOMEM;

	if (!code)
		return &kymo_error_no_memory;
	code->code = (struct kymo_module_code){
		.text = copy_of(text, sizeof(*text)),
		.n_text = 1,
		.functions = copy_of(function, sizeof(*function)),
		.n_functions = 1,
		.entries = copy_of(&entry, sizeof(entry)),
		.n_entries = 1,
		.position_independent = true,
		.is_jit = true,
	};
	if (code->code.text && code->code.functions && code->code.entries)
		err = kymo_entry_map_create(&code->code, &code->map);
	if (!err) {
		*ret = code;
		return NULL;
	}
	kymo_code_destroy(code);
	return kymo_error_errno(err, "cannot analyze the code at 0x%" PRIx64, entry);
}

void kymo_code_destroy(struct kymo_code *code)
{
	if (!code)
		return;
	for (size_t i = 0; i < code->n_indirects; i++)
		free(code->indirects[i].functions);
	free(code->indirects);
	kymo_entry_map_destroy(code->map);
	free_code(&code->code);
	free(code);
}

static const struct kymo_span *span_at(const struct kymo_code *code, uint64_t vaddr)
{
	for (size_t i = 0; i < code->code.n_text; i++)
		if (vaddr - code->code.text[i].vaddr < code->code.text[i].size)
			return &code->code.text[i];
	return NULL;
}

bool kymo_code_bytes(const struct kymo_code *code, uint64_t vaddr, uint8_t *ret, size_t size)
{
	for (size_t done = 0; done < size;) {
		const struct kymo_span *span = span_at(code, vaddr + done);
		size_t at = span ? (size_t)(vaddr + done - span->vaddr) : 0, n;

		if (!span)
			return false;
		n = span->size - at < size - done ? span->size - at : size - done;
		memcpy(ret + done, span->bytes + at, n);
		done += n;
	}
	return true;
}
