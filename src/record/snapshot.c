/* A flight recorder's snapshots: what is in the buffers becomes a recording of its own, and recording goes on. */
#include "record/snapshot.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "record/aggregate.h"
#include "record/describe.h"
#include "record/kernel.h"
#include "record/packets.h"
#include "record/recording.h"
#include "record/stacks.h"
#include "record/warnings.h"
#include "strace/recorded/source.h"
#include "trace/directory.h"

#define READING_NS 1000000000u /* of debug information: rings are not read meanwhile */

/* DIRECTORY.1, or the first number that is free: nothing that is there is written over. */
static char *free_name(const struct recording *recording)
{
	const int number = kymo_free_number(AT_FDCWD, recording->output.files.path);
	char *name;

	return number < KYMO_NUMBERS && asprintf(&name, "%s.%d", recording->output.files.path, number) >= 0 ? name
													    : NULL;
}

static struct kymo_error *copy_source(struct recording *recording, struct record_source *source, size_t first_ring,
				      struct kymo_trace *copy)
{
	kymo_cleanup_free uint8_t *room = NULL;
	struct kymo_error *error = NULL;

	for (size_t i = 0; i < source->n_rings && !error; i++) {
		struct kymo_trace_position place = { .ring = first_ring + i };

		free(room);
		room = malloc(source->rings[i].subbuffer_size);
		if (!room)
			error = &kymo_error_no_memory;
		else if (recording->output.stacking)
			error = stacks_copy(recording, source, i, &place, room);
		else
			error = kymo_trace_copy(copy, &place, &source->rings[i], source->shared[i].cpu, room);
	}
	return error;
}

static struct kymo_error *copy_all(struct recording *recording, struct kymo_trace *own, struct kymo_trace *copy)
{
	struct kymo_error *error = NULL;
	size_t first_ring = 0;

	if (own->kept)
		error = kymo_trace_write_kept(own, copy, &copy->bytes);
	if (own->kept && !error)
		error = stacks_write(recording);
	for (size_t i = 0; i < recording->run.sources.n && !error && !own->kept; i++) {
		error = copy_source(recording, recording->run.sources.items[i], first_ring, copy);
		first_ring += recording->run.sources.items[i]->n_rings;
	}
	if (!error)
		error = stacks_write_sources(recording, READING_NS);
	if (!error && recording->run.kernel)
		error = recording_kernel_copy(recording->run.kernel, own, copy);
	if (!error && recording->run.calls)
		error = kymo_call_source_copy(recording->run.calls, own, copy);
	return error;
}

/* When it was begun tells whether it answers a request. 0: it is the recording, and no snapshot. */
static struct kymo_error *date(struct recording *recording, uint64_t begin_ns)
{
	struct kymo_error *error;
	char text[32];

	snprintf(text, sizeof(text), "%" PRIu64, begin_ns);
	error = kymo_ctf_trace_set_env(&recording->output.files.trace, KYMO_ENV_SNAPSHOT, text);
	if (error)
		return error;
	return kymo_ctf_trace_set_env(&recording->output.files.trace, KYMO_ENV_STATE,
				      begin_ns ? KYMO_STATE_ENDED : KYMO_STATE_RECORDING);
}

/* What describes the recording is one for all, but for the uuid: it is the snapshot's while that is written.
 * `bytes_ret`: of records. */
static struct kymo_error *write_snapshot(struct recording *recording, const char *name, uint64_t begin_ns,
					 uint64_t *bytes_ret)
{
	const size_t n_described = recording->output.n_described;
	struct stacks_written written;
	struct kymo_trace copy, own;
	struct kymo_error *error = kymo_trace_init(name, &copy);
	uint8_t uuid[sizeof(copy.trace.uuid)];

	if (error)
		return error;
	recording_note_threads(recording, !recording->run.tree);
	own = recording->output.files;
	memcpy(uuid, copy.trace.uuid, sizeof(uuid));
	kymo_ctf_trace_deinit(&copy.trace);
	copy.trace = own.trace;
	memcpy(copy.trace.uuid, uuid, sizeof(uuid));
	copy.by_id = own.by_id;
	copy.n_ids = own.n_ids;
	recording->output.files = copy;
	written = stacks_begin_snapshot(recording);
	error = copy_all(recording, &own, &recording->output.files);
	stacks_end_snapshot(recording, written);
	if (!error)
		error = date(recording, begin_ns);
	if (!error)
		error = recording_write_metadata(recording);
	kymo_error_destroy(date(recording, 0));
	*bytes_ret = recording->output.files.bytes;
	copy = recording->output.files;
	memcpy(uuid, own.trace.uuid, sizeof(uuid));
	own.trace = copy.trace;
	memcpy(own.trace.uuid, uuid, sizeof(uuid));
	own.by_id = copy.by_id;
	own.n_ids = copy.n_ids;
	recording->output.files = own;
	recording->output.n_described = n_described; /* on the disk, for this one */
	copy.trace = (struct kymo_ctf_trace){ .n_events = 0 };
	copy.by_id = NULL;
	if (error)
		kymo_directory_discard(name, copy.dirfd); /* while it is locked */
	kymo_trace_deinit(&copy);
	return error;
}

/* What producers have written so far comes to the packets that are kept. */
static struct kymo_error *keep_newest(struct recording *recording)
{
	struct kymo_error *error;
	size_t n;

	if (!recording_make_complete(recording))
		recording_warn(recording, "a snapshot may lack the newest records of some CPU; they will come later");
	if (!recording->output.files.kept)
		return NULL;
	aggregate_hurry(recording);
	error = recording_drain(recording, &n);
	stacks_prune(recording);
	return error;
}

void recording_take_snapshot(struct recording *recording)
{
	kymo_cleanup_free char *name = free_name(recording), *sentence = NULL;
	struct kymo_error *error = name ? NULL : &kymo_error_no_memory;
	const uint64_t begin_ns = kymo_now_ns();
	uint64_t bytes = 0;

	if (recording->run.calls && !kymo_call_source_can_copy(recording->run.calls)) {
		recording_warn(recording,
			       "system calls that are recorded by tracing have no snapshots; recording goes on");
		return;
	}
	if (!error)
		error = keep_newest(recording);
	if (!error)
		error = write_snapshot(recording, name, begin_ns, &bytes);
	if (error)
		recording_warn(recording, "a snapshot was not written, and recording goes on: %s", error->message);
	else if (recording->wanted.options->tell &&
		 asprintf(&sentence, "snapshot in %s, %" PRIu64 " bytes of records", name, bytes) >= 0)
		recording->wanted.options->tell(sentence, recording->wanted.options->data);
	kymo_error_destroy(error);
}

void recording_snapshot(struct recording *recording)
{
	const int asked = recording->wanted.options->control->snapshots;

	if (asked == recording->run.snapshots)
		return;
	recording->run.snapshots = asked;
	recording_take_snapshot(recording);
}
