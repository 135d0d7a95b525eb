#include "marker/list.h"

#include <string.h>

#include "base/cleanup.h"
#include "marker/marker.h"
#include "marker/notes.h"
#include "marker/order.h"
#include "marker/reader.h"
#include "marker/sdt.h"
#include "marker/strings.h"

/* Only the layouts are wanted of it. */
#define KYMO_NO_MARKERS
#define KYMO_NO_MARK
#include "kymo/marker.h"
#include "sym/module.h"
#include "sym/notes.h"
#include "sym/sym.h"

/* Where .stapsdt.base is, or 0. */
static uint64_t find_base(const struct kymo_module *module)
{
	size_t n;
	const struct kymo_section *sections = kymo_module_sections(module, &n);

	for (size_t i = 0; i < n; i++)
		if (!strcmp(sections[i].name, ".stapsdt.base"))
			return sections[i].vaddr;
	return 0;
}

static struct kymo_error *count_note(struct marker_reader *reader)
{
	if (++reader->n_notes <= MARKERS_MAX)
		return NULL;
	return kymo_error_create(KYMO_ERROR_BAD_DATA, "%s has more than %u markers", kymo_module_path(reader->module),
				 MARKERS_MAX);
}

static struct kymo_error *read_markers(struct marker_reader *reader)
{
	uint64_t base = find_base(reader->module);
	const struct kymo_note *notes;
	struct kymo_error *error;
	size_t n;

	error = kymo_module_notes(reader->module, &notes, &n);
	if (error)
		return error;
	for (size_t i = 0; i < n && !error; i++) {
		if (strcmp(notes[i].owner, "kymo"))
			continue;
		error = count_note(reader);
		if (!error)
			error = marker_read_kymo(reader, &notes[i]);
	}
	if (reader->switches.n)
		qsort(reader->switches.items, reader->switches.n, sizeof(*reader->switches.items), marker_by_site);
	for (size_t i = 0; i < n && !error; i++) {
		if (strcmp(notes[i].owner, "stapsdt"))
			continue;
		error = count_note(reader);
		if (!error)
			error = marker_read_sdt(reader, base, &notes[i]);
	}
	return error;
}

static int by_gate(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Each site has a gate of its own: turning one off must not turn off another. */
static struct kymo_error *check_gates(const struct marker_reader *reader)
{
	kymo_cleanup_free uint64_t *gates = calloc(reader->switches.n + 1, sizeof(*gates));
	struct kymo_error *error = gates ? NULL : &kymo_error_no_memory;

	for (size_t i = 0; gates && i < reader->switches.n; i++)
		gates[i] = reader->switches.items[i].gate;
	if (gates)
		qsort(gates, reader->switches.n, sizeof(*gates), by_gate);
	for (size_t i = 1; i < reader->switches.n && !error; i++)
		if (gates[i] - gates[i - 1] < sizeof(struct kymo_marker_gate))
			error = kymo_error_create(KYMO_ERROR_BAD_DATA,
						  "%s: the gate of a marker at 0x%llx is another one's, too",
						  kymo_module_path(reader->module), (unsigned long long)gates[i]);
	return error;
}

struct kymo_error *kymo_markers_create(struct kymo_module *module, struct kymo_marker_list **ret)
{
	struct kymo_marker_list *list = calloc(1, sizeof(*list));
	struct marker_reader reader = { .module = module, .strings = calloc(1, sizeof(*reader.strings)) };
	struct kymo_error *error = list && reader.strings ? read_markers(&reader) : &kymo_error_no_memory;

	if (!error)
		error = check_gates(&reader);
	if (error) {
		kymo_vec_deinit(&reader.markers);
		kymo_vec_deinit(&reader.switches);
		marker_strings_destroy(reader.strings);
		free(list);
		return error;
	}
	*list = (struct kymo_marker_list){ .items = reader.markers.items,
					   .n = reader.markers.n,
					   .switches = reader.switches.items,
					   .n_switches = reader.switches.n,
					   .strings = reader.strings };
	if (list->n)
		qsort(list->items, list->n, sizeof(*list->items), marker_by_name_and_location);
	if (list->n_switches)
		qsort(list->switches, list->n_switches, sizeof(*list->switches), marker_by_name_and_site);
	*ret = list;
	return NULL;
}

void kymo_markers_destroy(struct kymo_marker_list *list)
{
	if (!list)
		return;
	free(list->items);
	free(list->switches);
	marker_strings_destroy(list->strings);
	free(list);
}
