/* From specs to planned sites. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "probe/probes.h"

#define PAGE_START(address) ((address) & ~(uint64_t)4095)
#define REASONS_SHOWN 3

/* ---- modules ----------------------------------------------------------------------------------------------------- */

static bool is_wanted(const struct kymo_probes *probes, const struct kymo_map *map)
{
	for (size_t i = 0; i < probes->n_specs; i++)
		if (kymo_name_matches_file(probes->specs[i].file, map->path, NULL) || probes_is_file(probes, i, map))
			return true;
	return !probes->options.no_rseq && kymo_name_matches_file("libc", map->path, NULL);	/* for guards */
}

static bool is_same_file(const struct probe_module *module, const struct kymo_map *map)
{
	return module->inode == map->inode && module->major == map->major && module->minor == map->minor;
}

/* Where the file's addresses begin, given one of its executable mappings. */
static bool find_bias(const struct kymo_module *module, const struct kymo_map *map, uint64_t *ret)
{
	size_t n;
	const struct kymo_segment *segments = kymo_module_segments(module, &n);

	for (size_t i = 0; i < n; i++) {
		if (!segments[i].executable || PAGE_START(segments[i].offset) != map->offset)
			continue;
		*ret = map->start - PAGE_START(segments[i].vaddr);
		return true;
	}
	return false;
}

static void module_deinit(struct probe_module *module)
{
	kymo_code_destroy(module->code);
	kymo_module_close(module->module);
	free(module->path);
}

static struct kymo_error *open_module(struct kymo_probes *probes, const struct kymo_maps *maps, const struct kymo_map *map)
{
	struct probe_module module = { .major = map->major, .minor = map->minor, .inode = map->inode };
	kymo_cleanup_close int fd = -1;
	struct kymo_error *error;

	if (map->shared && map->writable)
		return kymo_error_create(KYMO_ERROR_UNSAFE,
					 "%s is mapped shared and writable: other processes would see the change", map->path);
	error = kymo_open_mapped(kymo_process_pid(probes->process), map, &fd);
	if (!error)
		error = kymo_module_open_fd(fd, map->path, &module.module);
	if (error)
		return error;
	module.path = strdup(map->path);
	if (!module.path) {
		module_deinit(&module);
		return &kymo_error_no_memory;
	}
	if (!find_bias(module.module, map, &module.bias)) {
		error = kymo_error_create(KYMO_ERROR_BAD_DATA,
					  "no segment of %s fits its mapping at 0x%" PRIx64 " in process %d", map->path,
					  map->start, kymo_process_pid(probes->process));
		module_deinit(&module);
		return error;
	}
	module.low = map->start;
	for (size_t i = 0; i < maps->n; i++) {
		if (!is_same_file(&module, &maps->items[i]))
			continue;
		if (maps->items[i].start < module.low)
			module.low = maps->items[i].start;
		if (maps->items[i].end > module.high)
			module.high = maps->items[i].end;
	}
	if (!kymo_vec_push(&probes->modules, module)) {
		module_deinit(&module);
		return &kymo_error_no_memory;
	}
	return NULL;
}

struct kymo_error *probes_code(struct kymo_probes *probes, size_t i, struct kymo_code **ret)
{
	struct probe_module *module = &probes->modules.items[i];
	struct kymo_error *error = NULL;

	if (!module->code)
		error = kymo_code_create(module->module, &module->code);
	if (!error)
		*ret = module->code;
	return error;
}

/* ---- events and sites -------------------------------------------------------------------------------------------- */

static char *hex_of(const uint8_t *bytes, size_t size)
{
	char *text = malloc(2 * size + 1);

	if (!text)
		return NULL;
	text[0] = '\0';
	for (size_t i = 0; i < size; i++)
		snprintf(text + 2 * i, 3, "%02x", bytes[i]);
	return text;
}

/* "libc:malloc": the file as the user calls it (its last part), then the place. A name that the user gave is kept, with a number where it stands
 * for several places. */
static char *event_name(const struct kymo_spec *spec, const char *place, bool is_one_of_many)
{
	const char *file = strrchr(spec->file, '/');
	const char *slash = spec->group ? "/" : "";
	char *name = NULL;
	int n;

	file = file ? file + 1 : spec->file;
	if (spec->event && is_one_of_many)
		n = asprintf(&name, "%s%s%s:%s", spec->group ? spec->group : "", slash, spec->event, place);
	else if (spec->event)
		n = asprintf(&name, "%s%s%s", spec->group ? spec->group : "", slash, spec->event);
	else
		n = asprintf(&name, "%s:%s", file, place);
	return n < 0 ? NULL : name;
}

static void event_deinit(struct kymo_probe_event *event)
{
	free(event->name);
	free(event->path);
	free(event->symbol);
	free(event->build_id);
}

static struct kymo_error *add_event(struct kymo_probes *probes, const struct kymo_spec *spec, size_t module_at, uint64_t vaddr,
				    const char *place, size_t *ret)
{
	const struct probe_module *module = &probes->modules.items[module_at];
	struct kymo_probe_event event = { .id = (uint32_t)probes->events.n + 1, .spec = spec };
	const uint8_t *build_id;
	size_t size;

	if (event.id > KYMO_EVENT_ID_MAX)
		return kymo_error_create(KYMO_ERROR_USAGE, "more than %u probes in one recording", KYMO_EVENT_ID_MAX);
	for (size_t i = 0; i < spec->n_args; i++)
		event.args[i] = spec->args[i].fetch;
	build_id = kymo_module_build_id(module->module, &size);
	event.name = event_name(spec, place, spec->symbol && kymo_is_glob(spec->symbol));
	event.path = strdup(module->path);
	event.symbol = strdup(place);
	event.build_id = hex_of(build_id, size);
	event.address = module->bias + vaddr;
	if (kymo_module_vaddr_to_offset(module->module, vaddr, &event.offset))
		event.offset = 0;
	if (!event.name || !event.path || !event.symbol || !event.build_id || !kymo_vec_push(&probes->events, event)) {
		event_deinit(&event);
		return &kymo_error_no_memory;
	}
	*ret = probes->events.n - 1;
	return NULL;
}

static struct probe_site *find_site(struct kymo_probes *probes, uint64_t address)
{
	size_t low = 0, high = probes->sites.n;

	/* Those added in this round are behind, unsorted; a glob hands them over in the order of addresses, so the search mostly ends here. */
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (probes->sites.items[middle].address < address)
			low = middle + 1;
		else
			high = middle;
	}
	return low < probes->sites.n && probes->sites.items[low].address == address ? &probes->sites.items[low] : NULL;
}

/* Insert in the order of addresses. */
struct kymo_error *probes_insert_site(struct kymo_probes *probes, const struct probe_site *site, struct probe_site **ret)
{
	size_t at;

	if (!kymo_vec_reserve(&probes->sites, probes->sites.n + 1))
		return &kymo_error_no_memory;
	for (at = probes->sites.n; at > 0 && probes->sites.items[at - 1].address > site->address; at--)
		;
	memmove(&probes->sites.items[at + 1], &probes->sites.items[at], (probes->sites.n - at) * sizeof(*site));
	probes->sites.items[at] = *site;
	probes->sites.n++;
	*ret = &probes->sites.items[at];
	return NULL;
}

/* Whether the window of a new plan touches one that is there. */
const struct probe_site *probes_overlapped(const struct kymo_probes *probes, uint64_t address, unsigned int window)
{
	size_t low = 0, high = probes->sites.n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (probes->sites.items[middle].address + probes->sites.items[middle].plan.window <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low < probes->sites.n && probes->sites.items[low].address < address + window ? &probes->sites.items[low] : NULL;
}

/* ---- a place ----------------------------------------------------------------------------------------------------- */

/* What was refused of a glob, for one warning. */
struct refused {
	size_t n, tried;
	char reasons[1024];
};

static void join_refusals(const struct kymo_refusal *refusals, size_t n, char *out, size_t size)
{
	size_t used = 0;

	out[0] = '\0';
	for (size_t i = 0; i < n && used < size; i++) {
		const char *tactic = refusals[i].tactic == KYMO_TACTIC_NONE ? "" : kymo_tactic_name(refusals[i].tactic);
		int wrote = snprintf(out + used, size - used, "%s%s%s%s", used ? "; " : "", tactic, *tactic ? ": " : "",
				     refusals[i].reason);

		if (wrote > 0)
			used += (size_t)wrote;
	}
}

/* Put a reason on the list, or make it the error when the user named this very place. */
static struct kymo_error *refuse(struct refused *refused, bool exact, const char *path, const char *place, const char *reason)
{
	size_t used = strlen(refused->reasons);

	if (exact)
		return kymo_error_create(KYMO_ERROR_UNSAFE, "no safe place for a probe at %s of %s: %s", place, path, reason);
	if (refused->n++ < REASONS_SHOWN)
		snprintf(refused->reasons + used, sizeof(refused->reasons) - used, "%s%s: %s", used ? "; " : "", place, reason);
	return NULL;
}

static struct kymo_error *plan_at(struct kymo_probes *probes, size_t module_at, uint64_t vaddr, struct kymo_plan *plan,
				  char *reasons, size_t size)
{
	struct kymo_refusal refusals[KYMO_N_TACTICS];
	struct kymo_code *code;
	struct kymo_error *error = probes_code(probes, module_at, &code);
	size_t n = 0;

	if (error)
		return error;
	reasons[0] = '\0';
	if (kymo_plan(&code->code, code->map, vaddr, plan, refusals, &n))
		join_refusals(refusals, n, reasons, size);
	return NULL;
}

/* Add the event of `spec` at `vaddr`, and the site if it is new. */
static struct kymo_error *add_place(struct kymo_probes *probes, const struct kymo_spec *spec, size_t module_at, uint64_t vaddr,
				    const char *place, bool exact, struct refused *refused)
{
	const struct probe_module *module = &probes->modules.items[module_at];
	struct probe_site fresh = { .module = module_at, .exact = exact }, *site;
	const struct probe_site *neighbour;
	struct kymo_error *error;
	char reasons[400];
	size_t event;

	refused->tried++;
	memset(&fresh.plan, 0, sizeof(fresh.plan));
	error = plan_at(probes, module_at, vaddr, &fresh.plan, reasons, sizeof(reasons));
	if (error)
		return error;
	if (!fresh.plan.window)
		return refuse(refused, exact, module->path, place, *reasons ? reasons : "the planner has no tactic for it");
	fresh.address = module->bias + fresh.plan.vaddr;
	site = find_site(probes, fresh.address);
	neighbour = site ? NULL : probes_overlapped(probes, fresh.address, fresh.plan.window);
	if (neighbour) {
		snprintf(reasons, sizeof(reasons), "it lies within %u bytes of the probe at %s", fresh.plan.window,
			 probes_site_name(probes, neighbour));
		return refuse(refused, exact, module->path, place, reasons);
	}
	if (site && site->installed) {
		snprintf(reasons, sizeof(reasons), "there is a probe already that was put in earlier");
		return refuse(refused, exact, module->path, place, reasons);
	}
	error = add_event(probes, spec, module_at, vaddr, place, &event);
	if (!error && !site)
		error = probes_insert_site(probes, &fresh, &site);
	if (!error && site->events.n >= 16)
		error = kymo_error_create(KYMO_ERROR_USAGE, "more than 16 probes at %s of %s", place, module->path);
	if (!error && !kymo_vec_push(&site->events, event))
		error = &kymo_error_no_memory;
	return error;
}

/* ---- a spec ------------------------------------------------------------------------------------------------------ */

static struct kymo_error *no_such_function(const struct kymo_spec *spec, struct kymo_module *module)
{
	char nearest[512] = "";

	if (!kymo_is_glob(spec->symbol))
		kymo_module_nearest(module, spec->symbol, nearest, sizeof(nearest));
	return kymo_error_create(KYMO_ERROR_NOT_FOUND, "%s has no function %s%s%s%s", kymo_module_path(module), spec->symbol,
				 *nearest ? "; the nearest names are " : " ('kymo list ", *nearest ? nearest : spec->file,
				 *nearest ? "" : "' shows what there is)");
}

static int by_address(const void *a, const void *b)
{
	uint64_t x = (*(const struct kymo_symbol *const *)a)->vaddr, y = (*(const struct kymo_symbol *const *)b)->vaddr;

	return (x > y) - (x < y);
}

static struct kymo_error *resolve_symbol(struct kymo_probes *probes, const struct kymo_spec *spec, size_t module_at,
					 struct refused *refused, bool *met_ret)
{
	struct kymo_module *module = probes->modules.items[module_at].module;
	kymo_cleanup_free const struct kymo_symbol **found = NULL;
	bool exact = !kymo_is_glob(spec->symbol);
	struct kymo_error *error;
	size_t n = 0;

	error = kymo_module_find(module, spec->symbol, &found, &n);
	if (error)
		return error;
	if (!n)
		return no_such_function(spec, module);
	qsort(found, n, sizeof(*found), by_address);	/* so that sites are appended, not inserted */
	for (size_t i = 0; i < n && !error; i++) {
		char place[300];

		if (spec->offset)
			snprintf(place, sizeof(place), "%s%c0x%" PRIx64, found[i]->name, spec->offset < 0 ? '-' : '+',
				 spec->offset < 0 ? -(uint64_t)spec->offset : (uint64_t)spec->offset);
		else
			snprintf(place, sizeof(place), "%s", found[i]->name);
		if (found[i]->is_ifunc && !spec->offset) {
			refused->tried++;
			error = refuse(refused, exact, kymo_module_path(module), place,
				       "it is an IFUNC: at this name lies the resolver that chooses one of several functions when the program is linked; name the chosen one (such as __memmove_avx_unaligned_erms, with debug symbols installed) or its file offset");
		} else {
			error = add_place(probes, spec, module_at, found[i]->vaddr + (uint64_t)spec->offset, place, exact, refused);
		}
	}
	*met_ret = true;
	return error;
}

static struct kymo_error *resolve_offset(struct kymo_probes *probes, const struct kymo_spec *spec, size_t module_at,
					 struct refused *refused, bool *met_ret)
{
	struct kymo_module *module = probes->modules.items[module_at].module;
	char place[300];
	uint64_t vaddr;

	if (spec->offset < 0 || kymo_module_offset_to_vaddr(module, (uint64_t)spec->offset, &vaddr))
		return kymo_error_create(KYMO_ERROR_NOT_FOUND, "%s has no code at file offset 0x%" PRIx64,
					 kymo_module_path(module), (uint64_t)spec->offset);
	*met_ret = true;
	kymo_module_describe(module, vaddr, place, sizeof(place));
	return add_place(probes, spec, module_at, vaddr, place, true, refused);
}

/* `map` is one of the module's mappings. */
static struct kymo_error *resolve_spec(struct kymo_probes *probes, size_t spec_at, size_t module_at, const struct kymo_map *map)
{
	const struct kymo_spec *spec = &probes->specs[spec_at];
	struct refused refused = { .n = 0 };
	struct kymo_error *error;

	if (!kymo_name_matches_file(spec->file, probes->modules.items[module_at].path,
				    kymo_module_soname(probes->modules.items[module_at].module)) &&
	    !probes_is_file(probes, spec_at, map))
		return NULL;
	error = spec->symbol ? resolve_symbol(probes, spec, module_at, &refused, &probes->met[spec_at]) :
			       resolve_offset(probes, spec, module_at, &refused, &probes->met[spec_at]);
	if (error)
		return error;
	if (refused.n && refused.n == refused.tried)
		return kymo_error_create(KYMO_ERROR_UNSAFE, "none of the %zu functions that match %s can be probed safely: %s",
					 refused.tried, spec->text, refused.reasons);
	if (refused.n)
		probes_warn(probes, "%zu of %zu functions that match %s are left out: %s%s", refused.n, refused.tried, spec->text,
			    refused.reasons, refused.n > REASONS_SHOWN ? "; … ('kymo explain' tells the rest)" : "");
	return NULL;
}

static bool is_known(const struct kymo_probes *probes, const struct kymo_map *map)
{
	for (size_t i = 0; i < probes->modules.n; i++)
		if (is_same_file(&probes->modules.items[i], map) && map->start >= probes->modules.items[i].low &&
		    map->end <= probes->modules.items[i].high)
			return true;
	return false;
}

struct kymo_error *kymo_probes_resolve(struct kymo_probes *probes)
{
	struct kymo_maps maps;
	struct kymo_error *error = kymo_maps_read(kymo_process_pid(probes->process), &maps);

	if (error)
		return error;
	for (size_t i = 0; i < maps.n && !error; i++) {
		const struct kymo_map *map = &maps.items[i];

		if (!map->executable || map->path[0] != '/' || !is_wanted(probes, map) || is_known(probes, map))
			continue;
		error = open_module(probes, &maps, map);
		for (size_t k = 0; k < probes->n_specs && !error; k++)
			error = resolve_spec(probes, k, probes->modules.n - 1, map);
	}
	kymo_maps_deinit(&maps);
	return error ? error : probes_add_guards(probes);
}

void probes_resolve_deinit(struct kymo_probes *probes)
{
	for (size_t i = 0; i < probes->modules.n; i++)
		module_deinit(&probes->modules.items[i]);
	for (size_t i = 0; i < probes->sites.n; i++)
		kymo_vec_deinit(&probes->sites.items[i].events);
	for (size_t i = 0; i < probes->events.n; i++)
		event_deinit(&probes->events.items[i]);
	kymo_vec_deinit(&probes->modules);
	kymo_vec_deinit(&probes->sites);
	kymo_vec_deinit(&probes->events);
}
