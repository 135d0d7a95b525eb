/* The processes of a recording, and their sources: probes and rings, which they have or share. */
#include "record/targets.h"

#include <stdlib.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "probe/install/clones.h"
#include "probe/install/mapped.h"
#include "probe/install/remove.h"
#include "probe/install/install.h"
#include "probe/memory/data.h"
#include "probe/memory/state.h"
#include "probe/options.h"
#include "probe/probe.h"
#include "probe/site/sites.h"
#include "probe/spec/spec_write.h"
#include "proc/process.h"
#include "proc/stop.h"
#include "record/aggregate.h"
#include "record/beside.h"
#include "record/describe.h"
#include "record/kernel.h"
#include "record/looks.h"
#include "record/mixed.h"
#include "record/packets.h"
#include "record/recording.h"
#include "record/source_hits.h"
#include "record/stacks.h"
#include "record/warnings.h"
#include "trace/directory.h"
#include "trace/held.h"

#define CHILD_BUFFER \
	(UINT64_C(1) << 20) /* bytes a CPU, for processes of which a tree has many; less where --buffer is less */
#define SHARES 4            /* what is left of the bound for a flight recorder's children is divided so */

struct target *recording_add_target(struct recording *recording, struct kymo_process *process,
				    const struct target *parent)
{
	struct target *target = calloc(1, sizeof(*target));

	if (!target || !kymo_vec_push(&recording->run.targets, target)) {
		free(target);
		return NULL;
	}
	target->process = process;
	target->pid = kymo_process_pid(process);
	target->inner_pid = kymo_process_inner_pid(process);
	target->parent = parent ? parent->inner_pid : 0;
	return target;
}

/* ---- sources --------------------------------------------------------------------------------- */

void recording_use_source(struct target *target, struct record_source *source)
{
	target->source = source;
	if (source)
		source->users++;
}

static uint64_t at_least(const struct recording *recording, uint64_t size)
{
	const uint64_t least =
		kymo_data_buffer_least(recording->wanted.options->specs, recording->wanted.options->n_specs);

	return size < least ? least : size;
}

uint64_t recording_share_of(const struct recording *recording)
{
	uint64_t used = 0, left;

	for (size_t i = 0; i < recording->run.sources.n; i++)
		used += recording->run.sources.items[i]->is_named ? 0 : recording->run.sources.items[i]->buffer_size;
	left = used < recording->wanted.options->buffer_size ? recording->wanted.options->buffer_size - used : 0;
	return at_least(recording, left / SHARES);
}

static uint64_t buffer_of(const struct recording *recording, const struct target *target)
{
	const struct kymo_record_options *options = recording->wanted.options;
	uint64_t size = options->buffer_size, most = options->overwrite ? recording_share_of(recording) : CHILD_BUFFER;

	if (options->overwrite && target->is_named &&
	    options->n_pids > 1) /* one bound for all that were asked for, too */
		return at_least(recording, size / options->n_pids);
	if (most > CHILD_BUFFER)
		most = CHILD_BUFFER;
	return target->is_named || size < most ? size : most;
}

/* Of the TSC, where a rate of samples or a write is asked for. Measured once: when the machine has slept, the clock
 * that it is measured against has stood still. */
static uint64_t frequency_for(struct recording *recording)
{
	const struct kymo_record_options *options = recording->wanted.options;

	for (size_t i = 0; i < options->n_specs && !recording->run.frequency; i++)
		if (options->specs[i].sampling == KYMO_SPEC_SAMPLE_RATE || kymo_spec_writes(&options->specs[i]))
			recording->run.frequency = kymo_clock_frequency(&recording->output.begin);
	return recording->run.frequency;
}

/* A later program of a tree has not what the user's words mean there: its other probes are recorded. */
static void note_lacking(size_t spec, const char *sentence, void *data)
{
	struct recording *recording = data;

	if (!recording->run.lacking)
		recording->run.lacking = calloc(recording->wanted.n_inproc, sizeof(bool));
	if (recording->run.lacking)
		recording->run.lacking[spec] = true;
	recording_warn(recording, "'%s' is not recorded where a process of the tree has that file: %s",
		       kymo_spec_typed(&recording->wanted.specs[spec]), sentence);
}

struct kymo_error *recording_create_source(struct recording *recording, struct target *target)
{
	const struct kymo_record_options *options = recording->wanted.options;
	kymo_cleanup_free char *directory = realpath(".", NULL), *path = NULL;
	struct record_source *source = calloc(1, sizeof(*source));
	struct kymo_probes_options probe_options = {
		.events = recording->run.events,
		.buffer_size = buffer_of(recording, target),
		.overwrite = options->overwrite,
		.is_tight = options->overwrite && (!target->is_named || options->n_pids > 1),
		.frequency = frequency_for(recording),
		.no_rseq = options->no_rseq,
		.fast_reads = !options->no_fast_reads,
		.wants_fast_reads = options->fast_reads,
		.displace_faulting = options->displace_faulting,
		.kernel = recording->run.kernel ? recording_kernel_sites(recording->run.kernel) : NULL,
		.is_one_of_many = recording->run.tree && target->pid != recording->run.pid,
		.is_followed = recording->run.tree,
		.may_go_on = recording_is_beside(recording) && !recording->run.sources.n,
		.has_addresses = !target->is_in_startup,
		.has_begun = recording_begin_together,
		.lacks = recording->run.tree && (target->pid != recording->run.pid || recording->run.has_begun)
				 ? note_lacking
				 : NULL,
		.warn = recording_tell,
		.data = recording,
	};
	struct kymo_error *error;

	if (asprintf(&path, "%s/%s", directory ? directory : "", options->directory) < 0)
		path = NULL;
	if (!source || !path || !kymo_vec_reserve(&recording->run.sources, recording->run.sources.n + 1)) {
		free(source);
		return &kymo_error_no_memory;
	}
	probe_options.directory = options->directory[0] == '/' ? options->directory : path;
	error = kymo_probes_create(target->process, recording->wanted.specs, recording->wanted.n_inproc, &probe_options,
				   &source->probes);
	if (error) {
		free(source);
		return error;
	}
	source->process = target->process;
	source->pid = target->pid;
	source->is_named = target->is_named;
	source->buffer_size = probe_options.buffer_size;
	recording->run.sources.items[recording->run.sources.n++] = source;
	recording_use_source(target, source);
	return NULL;
}

static struct kymo_error *leave_source(struct recording *recording, struct record_source *source);

static struct kymo_error *end_source(struct recording *recording, struct record_source *source)
{
	struct kymo_error *error = recording->output.exists ? source_finish_rings(recording, source) : NULL, *last;
	struct record_source *lender = source->lender;

	recording_note_thread_ids(recording, source);
	for (size_t i = 0; i < recording->run.sources.n; i++)
		if (recording->run.sources.items[i] == source)
			recording->run.sources.items[i] = recording->run.sources.items[--recording->run.sources.n];
	kymo_adopted_destroy(source->adopted);
	if (!lender) {
		kymo_probes_part(source->probes);
		kymo_probes_destroy(source->probes);
		kymo_process_destroy(source->process);
	}
	source_hits_forget(recording, source);
	free(source->rings);
	free(source->shared);
	free(source->positions);
	stacks_forget(recording, source);
	free(source);
	last = lender ? leave_source(recording, lender) : NULL;
	if (error)
		kymo_error_destroy(last);
	else
		error = last;
	return error;
}

static struct kymo_error *leave_source(struct recording *recording, struct record_source *source)
{
	return --source->users ? NULL : end_source(recording, source);
}

/* The rings of a forked child, with the probes of `parent`. */
struct record_source *recording_share_source(struct recording *recording, struct record_source *parent,
					     struct kymo_adopted *adopted, pid_t pid)
{
	struct record_source *source = calloc(1, sizeof(*source)), *lender = parent->lender ? parent->lender : parent;

	if (!source || !kymo_vec_reserve(&recording->run.sources, recording->run.sources.n + 1)) {
		free(source);
		return NULL;
	}
	*source = (struct record_source){
		.process = lender->process,
		.probes = lender->probes,
		.lender = lender,
		.adopted = adopted,
		.pid = pid,
		.buffer_size = kymo_adopted_ring(adopted, lender->probes, 0).subbuffer_size *
			       kymo_adopted_ring(adopted, lender->probes, 0).n_subbuffers,
	};
	lender->users++;
	recording->run.sources.items[recording->run.sources.n++] = source;
	return source;
}

struct kymo_error *recording_drop_target(struct recording *recording, struct target *target)
{
	struct record_source *source = target->source;
	struct kymo_error *error = NULL;

	recording_end_look(recording, target);
	for (size_t i = 0; i < recording->run.targets.n; i++)
		if (recording->run.targets.items[i] == target)
			recording->run.targets.items[i] = recording->run.targets.items[--recording->run.targets.n];
	if (recording->run.process == target->process)
		recording->run.process = NULL;
	if (recording->output.exists)
		recording_note_end(recording, target);
	if (!source || source->process != target->process)
		kymo_process_destroy(target->process);
	if (source)
		error = leave_source(recording, source);
	free(target);
	return error;
}

void recording_give_back(struct recording *recording, struct target *target)
{
	struct kymo_detach_result result = { .note = NULL };
	const uint64_t inode = target->source ? kymo_probes_inode(target->source->probes) : 0;

	kymo_process_resume(target->process);
	if (inode)
		kymo_error_destroy(kymo_remove(target->process, inode, &result));
	free(result.note);
	kymo_error_destroy(recording_drop_target(recording, target));
}

/* ---- probes in ------------------------------------------------------------------------------- */

struct kymo_error *recording_check_directory(struct recording *recording)
{
	struct kymo_error *error = NULL;

	if (!recording->output.exists && !recording->output.is_checked)
		error = kymo_directory_check(recording->wanted.options->directory);
	recording->output.is_checked = !error;
	return error;
}

/* In place of an earlier recording, which is removed while this one has begun: processes may have probes. */
static struct kymo_error *make_files(struct recording *recording)
{
	const char *directory = recording->wanted.options->directory;
	struct kymo_held *held = kymo_held_open(directory);
	struct kymo_error *error = kymo_trace_init(directory, &recording->output.files);

	kymo_held_close(held);
	return error;
}

struct kymo_error *recording_make_output(struct recording *recording)
{
	struct kymo_error *error = NULL;

	if (recording->output.is_described)
		return NULL;
	if (!recording->output.exists)
		error = make_files(recording);
	recording->output.exists |= !error;
	recording->output.files.trace.is_packed = !error;
	if (!error && recording->wanted.options->keep && !recording->output.files.kept)
		error = kymo_trace_keep(&recording->output.files, recording_kept_size(recording));
	if (error)
		return error;
	recording->output.is_described = true;
	error = recording_describe_target(recording);
	if (!error)
		error = beside_describe(recording);
	for (size_t i = 0; i < recording->run.targets.n; i++)
		recording_note_begin(recording, recording->run.targets.items[i], NULL);
	return error ? error : recording_write_metadata(recording);
}

/* What is refused in the end, as its last file lacks a function, leaves no directory and the earlier recording in
 * place. So does a process in which no probe can be put. */
struct kymo_error *recording_install(struct recording *recording, struct record_source *source)
{
	struct kymo_error *error = kymo_probes_resolve(source->probes);
	size_t n_sites;

	if (!error && kymo_probes_pending(source->probes) && !recording->output.is_described)
		error = recording_check_directory(recording);
	if (!error)
		error = kymo_probes_install(source->probes, &recording->result.stopped_ns);
	n_sites = kymo_probes_n_sites(source->probes);
	if (n_sites > recording->run.n_sites)
		recording->run.n_sites = n_sites;
	return error;
}
