#include "probe/session.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "probe/probes.h"
#include "probe/remove.h"

#define TRIES 16		/* about four seconds, with pauses that grow by half: on a loaded machine a handler may wait that long for its turn */
#define TRY_PAUSE_NS 5000000
#define SECOND_NS 1000000000u
#define STACK_DEPTH ((uint64_t)1 << 20)	/* of the initial stack that is taken for readable below its present start */

struct kymo_error *kymo_probes_create(struct kymo_process *process, const struct kymo_spec *specs, size_t n_specs,
				      const struct kymo_probes_options *options, struct kymo_probes **ret)
{
	struct kymo_probes *probes = calloc(1, sizeof(*probes));
	struct kymo_error *error;

	if (!probes)
		return &kymo_error_no_memory;
	probes->shared.fd = -1;
	probes->process = process;
	probes->specs = specs;
	probes->n_specs = n_specs;
	probes->met = calloc(n_specs ? n_specs : 1, sizeof(*probes->met));
	probes->directory = strdup(options->directory);
	probes->options = *options;
	probes->options.directory = probes->directory;
	error = probes->met && probes->directory ? probes_files_init(probes) : &kymo_error_no_memory;
	if (error) {
		kymo_probes_destroy(probes);
		return error;
	}
	*ret = probes;
	return NULL;
}

void kymo_probes_destroy(struct kymo_probes *probes)
{
	if (!probes)
		return;
	probes_resolve_deinit(probes);
	kymo_shared_deinit(&probes->shared);
	free(probes->files);
	free(probes->met);
	free(probes->directory);
	free(probes);
}

size_t kymo_probes_pending(const struct kymo_probes *probes)
{
	size_t n = 0;

	for (size_t i = 0; i < probes->sites.n; i++)
		n += !probes->sites.items[i].installed;
	return n;
}

/* ---- installing ---------------------------------------------------------------------------------------------------- */

static struct kymo_error *find_stack(struct kymo_probes *probes)
{
	struct kymo_maps maps;
	struct kymo_error *error = kymo_maps_read(kymo_process_pid(probes->process), &maps);

	if (error)
		return error;
	for (size_t i = 0; i < maps.n; i++) {
		if (strcmp(maps.items[i].path, "[stack]"))
			continue;
		probes->stack_high = maps.items[i].end;
		probes->stack_low = maps.items[i].start;
		/* It grows down; nothing else is mapped that close below. */
		if (probes->stack_high - probes->stack_low < STACK_DEPTH)
			probes->stack_low = probes->stack_high - STACK_DEPTH;
	}
	kymo_maps_deinit(&maps);
	return NULL;
}

/* Who holds the threads stopped is the only one to look and to set up memory: so two recorders that come at the same time do not meet later. */
static struct kymo_error *check_nobody_else(struct kymo_process *process)
{
	struct kymo_remains remains;
	struct kymo_error *error = kymo_remains_read(process, &remains);
	bool found;

	if (error)
		return error;
	found = remains.found;
	kymo_remains_deinit(&remains);
	return found ? kymo_error_create(KYMO_ERROR_BUSY, "another kymo has just begun to record process %d",
					 kymo_process_pid(process)) :
		       NULL;
}

static struct kymo_error *create_stopped(struct kymo_probes *probes, struct kymo_error *(*stop)(struct kymo_process *),
					 bool was_stopped, uint64_t *stopped_ns)
{
	uint64_t begin = kymo_now_ns();
	struct kymo_error *error = stop(probes->process);

	if (!error)
		error = check_nobody_else(probes->process);
	if (!error)
		error = kymo_shared_create(probes->process, &probes->options, &probes->shared);
	if (!was_stopped)
		kymo_process_resume(probes->process);
	*stopped_ns += kymo_now_ns() - begin;
	return error;
}

/* First install: the memory. One thread is enough for that, if it can be borrowed. */
static struct kymo_error *make_shared(struct kymo_probes *probes, bool was_stopped, uint64_t *stopped_ns)
{
	struct kymo_error *error;

	probes->shared.is_sequenced = probes_may_use_sequences(probes);
	error = create_stopped(probes, kymo_process_stop_first, was_stopped, stopped_ns);
	if (error && !was_stopped && (error->code == KYMO_ERROR_UNSAFE || error->code == KYMO_ERROR_GONE)) {
		kymo_error_destroy(error);
		error = create_stopped(probes, kymo_process_stop, was_stopped, stopped_ns);
	}
	if (error)
		return error;
	probes->has_shared = true;
	error = kymo_shared_format(&probes->shared, &probes->options);
	if (!error)
		error = find_stack(probes);
	return error;
}

static void journal_entry(const struct kymo_probes *probes, const struct probe_site *site, struct kymo_wire_site *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->address = site->address;
	ret->pad = site->pad;
	ret->pad_size = site->pad_size;
	ret->event_id = site->is_guard ? 0 : probes->events.items[site->events.items[0]].id;
	memcpy(ret->original, site->plan.original, sizeof(ret->original));
	kymo_encode_jump(site->address, site->pad + site->entry, ret->patched);
	ret->window = site->plan.window;
	ret->tactic = (uint8_t)site->plan.tactic;
	ret->inode = probes->modules.items[site->module].inode;
	snprintf(ret->name, sizeof(ret->name), "%s", probes_site_name(probes, site));
}

static struct kymo_error *write_journal(struct kymo_probes *probes)
{
	size_t n = kymo_probes_pending(probes), at = 0;
	kymo_cleanup_free struct kymo_wire_site *entries = calloc(n ? n : 1, sizeof(*entries));

	if (!entries)
		return &kymo_error_no_memory;
	for (size_t i = 0; i < probes->sites.n; i++)
		if (!probes->sites.items[i].installed)
			journal_entry(probes, &probes->sites.items[i], &entries[at++]);
	return kymo_shared_journal(&probes->shared, entries, n);
}

static struct kymo_error *write_pads(struct kymo_probes *probes, const struct probe_regions *regions)
{
	for (size_t i = 0; i < regions->n; i++) {
		const struct probe_region *region = &regions->items[i];
		int err = kymo_pwrite_all(probes->shared.fd, region->bytes, region->n_bytes,
					  (off_t)(probes->shared.size + region->at));

		if (err)
			return kymo_error_errno(err, "cannot write the pads");
	}
	return NULL;
}

/* The process is stopped: the holes chosen while it ran must still be holes. */
static struct kymo_error *map_regions(struct kymo_probes *probes, const struct probe_regions *regions, bool *again_ret)
{
	struct kymo_maps maps;
	struct kymo_error *error = kymo_maps_read(kymo_process_pid(probes->process), &maps), *ending;

	*again_ret = false;
	if (error)
		return error;
	for (size_t i = 0; i < regions->n; i++)
		for (size_t k = 0; k < maps.n; k++)
			*again_ret |= maps.items[k].start < regions->items[i].address + regions->items[i].size &&
				      maps.items[k].end > regions->items[i].address;
	kymo_maps_deinit(&maps);
	if (*again_ret)
		return NULL;
	error = kymo_remote_begin(probes->process);
	if (error)
		return error;
	for (size_t i = 0; i < regions->n && !error; i++)
		error = kymo_shared_map_region(&probes->shared, probes->process, regions->items[i].address,
					       regions->items[i].size, regions->items[i].at);
	ending = kymo_remote_end(probes->process);
	if (error) {
		kymo_error_destroy(ending);
		return error;
	}
	return ending;
}

/* With the process stopped: memory for pads, their state, text. */
static struct kymo_error *patch(struct kymo_probes *probes, const struct probe_regions *regions, bool *mapped, bool *again_ret)
{
	struct kymo_error *error = NULL;

	*again_ret = false;
	if (!*mapped) {
		error = map_regions(probes, regions, again_ret);
		if (error || *again_ret)
			return error;
		*mapped = true;
		error = probes->is_live ? kymo_probes_set_live(probes) : probes_write_state(probes, KYMO_PAD_EARLY);
	}
	if (!error)
		error = probes_apply(probes, again_ret);
	if (!error && !*again_ret && !probes->is_starting)
		error = probes_use_sequences(probes);
	return error;
}

static struct kymo_error *try_often(struct kymo_probes *probes, bool was_stopped, uint64_t *stopped_ns)
{
	struct probe_regions regions = { 0 };
	bool mapped = false, again = true;
	uint64_t pause_ns = TRY_PAUSE_NS;
	struct kymo_error *error = probes_place(probes, &regions);

	if (!error)
		error = write_pads(probes, &regions);
	if (!error)
		error = write_journal(probes);
	for (int i = 0; i < TRIES && again && !error; i++) {
		uint64_t begin;

		if (i) {
			nanosleep(&(struct timespec){ (time_t)(pause_ns / SECOND_NS), (long)(pause_ns % SECOND_NS) }, NULL);
			pause_ns = pause_ns * 3 / 2;
		}
		begin = kymo_now_ns();
		error = kymo_process_stop(probes->process);
		if (!error)
			error = patch(probes, &regions, &mapped, &again);
		if (!was_stopped)
			kymo_process_resume(probes->process);
		*stopped_ns += kymo_now_ns() - begin;
	}
	probes_regions_deinit(&regions);
	if (!error && again)
		error = kymo_error_create(KYMO_ERROR_UNSAFE,
					  "a signal handler of process %d keeps a thread inside of the code to be changed; nothing was changed, try again later",
					  kymo_process_pid(probes->process));
	return error;
}

struct kymo_error *kymo_probes_install(struct kymo_probes *probes, uint64_t *stopped_ns_ret)
{
	size_t n;
	bool was_stopped = (kymo_process_threads(probes->process, &n), n > 0);
	struct kymo_error *error = NULL;

	if (!kymo_probes_pending(probes))
		return NULL;
	if (!was_stopped)
		error = kymo_process_check_alone(probes->process);
	probes_read_ahead(probes);
	if (!error && !probes->has_shared)
		error = make_shared(probes, was_stopped, stopped_ns_ret);
	if (!error)
		error = try_often(probes, was_stopped, stopped_ns_ret);
	return error;
}

/* ---- looking ------------------------------------------------------------------------------------------------------- */

const struct kymo_probe_event *kymo_probes_events(const struct kymo_probes *probes, size_t *n)
{
	*n = probes->events.n;
	return probes->events.items;
}

size_t kymo_probes_n_sites(const struct kymo_probes *probes)
{
	size_t n = 0;

	for (size_t i = 0; i < probes->sites.n; i++)
		n += !probes->sites.items[i].is_guard;
	return n;
}

const char *probes_site_name(const struct kymo_probes *probes, const struct probe_site *site)
{
	return site->is_guard ? "(guard)" : probes->events.items[site->events.items[0]].name;
}

size_t kymo_probes_n_rings(const struct kymo_probes *probes)
{
	return probes->has_shared ? probes->shared.n_rings : 0;
}

struct kymo_shared_ring kymo_probes_ring(const struct kymo_probes *probes, size_t i)
{
	return kymo_shared_ring(&probes->shared, &probes->options, i);
}

void kymo_probes_publish(struct kymo_probes *probes, uint64_t recorded_bytes, uint64_t lost)
{
	if (!probes->has_shared)
		return;
	probes->shared.header->recorded_bytes = recorded_bytes;
	probes->shared.header->lost_events = lost;
}

bool kymo_probes_are_mapped(struct kymo_probes *probes)
{
	uint64_t magic;

	return probes->has_shared &&
	       !kymo_process_read(probes->process, probes->shared.address, &magic, sizeof(magic)) && magic == KYMO_WIRE_MAGIC;
}
