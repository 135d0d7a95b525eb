#include "gdb/markers.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "gdb/text.h"
#include "marker/list.h"
#include "marker/marker.h"
#include "procfs/maps.h"
#include "sym/module.h"
#include "sym/open.h"
#include "wire/types.h"

enum { MARKERS_MAX = 65536 };

/* What is mapped of one file, and where the addresses of that file begin. */
struct place {
	const struct kymo_map *map;
	uint64_t bias;
	struct gdb_markers *markers;
};

static char *extra_of(const struct kymo_marker *marker)
{
	struct gdb_text text = { 0 };

	if (marker->format)
		gdb_text_put(&text, marker->format);
	for (size_t i = 0; i < marker->n_fields && !marker->format; i++)
		gdb_text_format(&text, "%s%s:%s", i ? " " : "", marker->fields[i].name,
				kymo_type_name(marker->fields[i].type));
	gdb_text_bytes(&text, "", 1);
	if (text.has_failed)
		gdb_text_deinit(&text);
	return text.items;
}

/* Another mapping of the same file has what does not lie in this one. Takes `extra`. */
static void add(const struct place *place, uint64_t vaddr, uint64_t semaphore, const char *provider, const char *name,
		char *extra)
{
	struct gdb_marker marker = { .address = place->bias + vaddr,
				     .semaphore = semaphore ? place->bias + semaphore : 0,
				     .extra = extra };

	if (extra && marker.address >= place->map->start && marker.address < place->map->end &&
	    place->markers->items.n < MARKERS_MAX && asprintf(&marker.id, "%s:%s", provider, name) >= 0) {
		if (kymo_vec_push(&place->markers->items, marker))
			return;
		free(marker.id);
	}
	free(extra);
}

/* Of kymo's own, the NOP that every thread comes by: the arguments are elsewhere, where no thread comes while the
 * marker is off. */
static void add_all(const struct place *place, const struct kymo_marker_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		if (list->items[i].is_sdt)
			add(place, list->items[i].location, list->items[i].semaphore, list->items[i].provider,
			    list->items[i].name, extra_of(&list->items[i]));
	for (size_t i = 0; i < list->n_switches; i++)
		if (list->switches[i].site)
			add(place, list->switches[i].site, 0, list->switches[i].provider, list->switches[i].name,
			    calloc(1, 1));
}

static bool is_code_of_file(const struct kymo_map *map)
{
	return map->executable && map->path[0] == '/';
}

static void read_file(pid_t pid, const struct kymo_map *map, struct gdb_markers *ret)
{
	struct place place = { .map = map, .markers = ret };
	struct kymo_marker_list *list = NULL;
	struct kymo_module *module = NULL;
	kymo_cleanup_close int fd = -1;
	struct kymo_error *error = kymo_open_mapped(pid, map, &fd);

	if (!error)
		error = kymo_module_open_fd(fd, map->path, &module);
	if (!error && !kymo_module_bias(module, map->start, map->offset, &place.bias))
		error = kymo_markers_create(module, &list);
	if (list)
		add_all(&place, list);
	kymo_error_destroy(error);
	kymo_markers_destroy(list);
	kymo_module_close(module);
}

void gdb_markers_read(pid_t pid, struct gdb_markers *ret)
{
	struct kymo_maps maps = { .n = 0 };
	struct kymo_error *error = kymo_maps_read(pid, &maps);

	*ret = (struct gdb_markers){ .pid = pid };
	for (size_t i = 0; i < maps.n; i++)
		if (is_code_of_file(&maps.items[i]))
			read_file(pid, &maps.items[i], ret);
	kymo_error_destroy(error);
	kymo_maps_deinit(&maps);
}

static void drop(struct gdb_markers *markers, uint64_t start, uint64_t end)
{
	size_t n = 0;

	for (size_t i = 0; i < markers->items.n; i++) {
		struct gdb_marker *marker = &markers->items.items[i];

		if (marker->address < start || marker->address >= end) {
			markers->items.items[n++] = *marker;
			continue;
		}
		free(marker->id);
		free(marker->extra);
	}
	markers->items.n = n;
}

void gdb_markers_read_at(struct gdb_markers *markers, pid_t pid, uint64_t address)
{
	struct kymo_maps maps = { .n = 0 };
	struct kymo_error *error = kymo_maps_read(pid, &maps);
	const struct kymo_map *map = error ? NULL : kymo_maps_at(&maps, address);

	if (pid != markers->pid)
		gdb_markers_deinit(markers);
	markers->pid = pid;
	drop(markers, map ? map->start : address, map ? map->end : address + 1);
	if (map && is_code_of_file(map))
		read_file(pid, map, markers);
	kymo_error_destroy(error);
	kymo_maps_deinit(&maps);
}

const struct gdb_marker *gdb_marker_at(const struct gdb_markers *markers, uint64_t address)
{
	for (size_t i = 0; i < markers->items.n; i++)
		if (markers->items.items[i].address == address)
			return &markers->items.items[i];
	return NULL;
}

void gdb_markers_deinit(struct gdb_markers *markers)
{
	drop(markers, 0, UINT64_MAX);
	kymo_vec_deinit(&markers->items);
	markers->pid = 0;
	markers->next = 0;
}
