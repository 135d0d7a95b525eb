#include "cli/list_markers.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/utf8.h"
#include "base/vec.h"
#include "cli/output.h"
#include "marker/list.h"
#include "marker/marker.h"
#include "marker/match.h"
#include "sym/module.h"

#define WIDTH_MAX 40  /* of the column of names; longer ones are on their own */
#define SOURCES_MAX 3 /* told of one marker; there may be a line of source for each location */

/* Markers with the same name and the same arguments: one thing to record, at several locations. */
struct group {
	const struct kymo_marker *const *items;
	size_t n;
};

static int compare_texts(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "");
}

static int compare_fields(const struct kymo_marker *x, const struct kymo_marker *y)
{
	int order = compare_texts(x->format, y->format);

	if (!order && x->n_fields != y->n_fields)
		return x->n_fields < y->n_fields ? -1 : 1;
	for (size_t i = 0; i < x->n_fields && !order; i++)
		order = (int)x->fields[i].type - (int)y->fields[i].type;
	return order;
}

static int compare_groups(const struct kymo_marker *x, const struct kymo_marker *y)
{
	int order = (int)x->is_sdt - (int)y->is_sdt;

	if (!order)
		order = strcmp(x->provider, y->provider);
	if (!order)
		order = strcmp(x->name, y->name);
	return order ? order : compare_fields(x, y);
}

/* kymo's own first; within a group as they lie in the source, then in the file. */
static int in_order(const void *a, const void *b)
{
	const struct kymo_marker *x = *(const struct kymo_marker *const *)a, *y = *(const struct kymo_marker *const *)b;
	int order = compare_groups(x, y);

	if (!order)
		order = compare_texts(x->file, y->file);
	if (!order && x->line != y->line)
		order = x->line < y->line ? -1 : 1;
	if (!order && x->location != y->location)
		order = x->location < y->location ? -1 : 1;
	return order;
}

static bool is_same_source(const struct kymo_marker *x, const struct kymo_marker *y)
{
	return x->line == y->line && !compare_texts(x->file, y->file);
}

/* ---- text ------------------------------------------------------------------------------------ */

/* What the arguments are called: by the author, or with their types if they have no names. */
static void print_arguments(const struct kymo_marker *marker)
{
	if (marker->format) {
		if (marker->format[strspn(marker->format, " ")]) {
			fputs("  ", stdout);
			kymo_utf8_print(stdout, marker->format);
		}
		return;
	}
	for (size_t i = 0; i < marker->n_fields; i++) {
		fputs(i ? " " : "  ", stdout);
		kymo_utf8_print(stdout, marker->fields[i].name);
		printf(":%s", kymo_type_name(marker->fields[i].type));
	}
}

static void print_sources(const struct group *group)
{
	size_t n = 0;

	for (size_t i = 0; i < group->n; i++) {
		if (!group->items[i]->file || (i && is_same_source(group->items[i - 1], group->items[i])))
			continue;
		if (n++ == SOURCES_MAX) {
			fputs(", ...", stdout);
			return;
		}
		fputs(n == 1 ? "  " : ", ", stdout);
		kymo_utf8_print(stdout, group->items[i]->file);
		printf(":%" PRIu32, group->items[i]->line);
	}
}

static void print_why_not(const struct group *group)
{
	const char *why = NULL;
	size_t n = 0;

	for (size_t i = 0; i < group->n; i++)
		if (group->items[i]->why_not) {
			why = why ? why : group->items[i]->why_not;
			n++;
		}
	if (!why)
		return;
	if (n < group->n)
		printf("  (%zu of them cannot be recorded: ", n);
	else
		fputs("  (cannot be recorded: ", stdout);
	kymo_utf8_print(stdout, why);
	putchar(')');
}

static int name_width(const struct kymo_marker *marker)
{
	return (int)(strlen(marker->provider) + 1 + strlen(marker->name));
}

static bool has_more(const struct group *group, bool names_file)
{
	const struct kymo_marker *marker = group->items[0];

	return names_file || group->n > 1 || marker->file || marker->why_not || marker->n_fields;
}

static void print_text(const struct group *group, int width, const char *path)
{
	const struct kymo_marker *marker = group->items[0];

	fputs(marker->is_sdt ? "sdt     " : "marker  ", stdout);
	kymo_utf8_print(stdout, marker->provider);
	putchar(':');
	kymo_utf8_print(stdout, marker->name);
	if (has_more(group, path) && width > name_width(marker))
		printf("%*s", width - name_width(marker), "");
	print_arguments(marker);
	print_sources(group);
	if (group->n > 1)
		printf("  (%zu locations)", group->n);
	print_why_not(group);
	if (path) {
		fputs("  ", stdout);
		kymo_utf8_print(stdout, path);
	}
	putchar('\n');
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void print_member(const char *before, const char *text)
{
	fputs(before, stdout);
	kymo_json_string(stdout, text);
}

static void print_json_locations(const struct group *group, const struct kymo_module *module)
{
	for (size_t i = 0; i < group->n; i++) {
		const struct kymo_marker *marker = group->items[i];
		uint64_t offset = 0;

		/* It lies in the text, so in the file. */
		kymo_module_vaddr_to_offset(module, marker->location, &offset);
		printf("%s{\"vaddr\": %" PRIu64 ", \"offset\": %" PRIu64, i ? ", " : "", marker->location, offset);
		print_member(", \"source\": ", marker->file);
		printf(", \"line\": %" PRIu32, marker->line);
		if (marker->semaphore)
			printf(", \"semaphore\": %" PRIu64, marker->semaphore);
		print_member(", \"why_not\": ", marker->why_not);
		putchar('}');
	}
}

static void print_json(const struct group *group, const struct kymo_module *module, bool first)
{
	const struct kymo_marker *marker = group->items[0];

	print_member(first ? "[\n {\"file\": " : ",\n {\"file\": ", kymo_module_path(module));
	print_member(", \"kind\": ", marker->is_sdt ? "sdt" : "marker");
	print_member(", \"provider\": ", marker->provider);
	print_member(", \"name\": ", marker->name);
	print_member(", \"format\": ", marker->format);
	fputs(", \"fields\": [", stdout);
	for (size_t i = 0; i < marker->n_fields; i++) {
		print_member(i ? ", {\"name\": " : "{\"name\": ", marker->fields[i].name);
		print_member(", \"type\": ", kymo_type_name(marker->fields[i].type));
		putchar('}');
	}
	fputs("], \"places\": [", stdout);
	print_json_locations(group, module);
	fputs("]}", stdout);
}

/* ---- the list -------------------------------------------------------------------------------- */

static size_t group_size(const struct kymo_marker *const *items, size_t n)
{
	size_t size = 1;

	while (size < n && !compare_groups(items[0], items[size]))
		size++;
	return size;
}

static void print_all(const struct cli_marker_lister *lister, struct kymo_module *module,
		      const struct kymo_marker *const *items, size_t n)
{
	struct group group;
	int width = 0;

	for (size_t i = 0; i < n; i++)
		if (name_width(items[i]) > width && name_width(items[i]) <= WIDTH_MAX)
			width = name_width(items[i]);
	for (size_t i = 0; i < n; i += group.n) {
		group = (struct group){ items + i, group_size(items + i, n - i) };
		if (lister->json)
			print_json(&group, module, !*lister->n_printed);
		else
			print_text(&group, width, lister->names_file ? kymo_module_path(module) : NULL);
		++*lister->n_printed;
	}
}

struct kymo_error *cli_list_markers(const struct cli_marker_lister *lister, struct kymo_module *module)
{
	KYMO_VEC(const struct kymo_marker *) wanted = { 0 };
	struct kymo_marker_list *markers;
	struct kymo_error *error = kymo_markers_create(module, &markers);

	if (error)
		return error;
	for (size_t i = 0; i < markers->n && !error; i++) {
		const struct kymo_marker *marker = &markers->items[i];

		if ((!lister->glob ||
		     kymo_marker_matches(lister->glob, kymo_module_path(module), kymo_module_soname(module),
					 marker->provider, marker->name)) &&
		    !kymo_vec_push(&wanted, marker))
			error = &kymo_error_no_memory;
	}
	if (!error && wanted.n) {
		qsort(wanted.items, wanted.n, sizeof(*wanted.items), in_order);
		print_all(lister, module, wanted.items, wanted.n);
	}
	kymo_vec_deinit(&wanted);
	kymo_markers_destroy(markers);
	return error;
}
