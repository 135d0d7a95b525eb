#include "probe/code.h"

#include <stdlib.h>

#include "base/cleanup.h"

static void free_code(struct kymo_module_code *code)
{
	free((void *)code->text);
	free((void *)code->data);
	free((void *)code->functions);
	free((void *)code->rseq);
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

static struct kymo_error *gather(struct kymo_module *module, struct kymo_module_code *code)
{
	const struct kymo_function *functions;
	struct kymo_error *error;
	size_t n;

	error = gather_spans(module, true, &code->text, &code->n_text);
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
		error = kymo_module_entries(module, &code->entries, &code->n_entries);
	code->position_independent = kymo_module_is_pie(module);
	return error;
}

struct kymo_error *kymo_code_create(struct kymo_module *module, struct kymo_code **ret)
{
	struct kymo_code *code = calloc(1, sizeof(*code));
	struct kymo_error *error;
	int r;

	if (!code)
		return &kymo_error_no_memory;
	error = gather(module, &code->code);
	if (!error) {
		r = kymo_entry_map_create(&code->code, &code->map);
		if (r < 0)
			error = kymo_error_errno(r, "cannot analyse the code of %s", kymo_module_path(module));
	}
	if (error) {
		kymo_code_destroy(code);
		return error;
	}
	*ret = code;
	return NULL;
}

void kymo_code_destroy(struct kymo_code *code)
{
	if (!code)
		return;
	kymo_entry_map_destroy(code->map);
	free_code(&code->code);
	free(code);
}
