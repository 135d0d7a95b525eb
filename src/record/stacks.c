#include "record/stacks.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggr/frame_tree.h"
#include "probe/code/events.h"
#include "record/packet_copy.h"
#include "record/sources.h"
#include "record/stack_cache.h"
#include "record/stack_number.h"
#include "record/warnings.h"
#include "stack/stack.h"
#include "wire/packed.h"

#define FRAME_NAME "kymo:frame"
#define SOURCE_NAME "kymo:source"
#define NOTED_AT_ONCE 256 /* sources */
#define DROPPED_SHARE 8   /* one part in so many of what is kept has to be dropped before frames are looked for again */
#define PRUNED_MIN (1u << 16) /* frames: fewer are not worth looking for those that nothing names any more */

struct stacking {
	struct kymo_stacks *stacks;
	struct kymo_frame_tree frames;
	size_t prune_at;       /* frames: then those are looked for that no packet names any more */
	uint64_t pruned_bytes; /* that had been dropped when that was done last */
	uint32_t event;        /* id of theirs */
	struct sources sources;
	int last_number; /* of a source */
	struct stacks_written written;
	struct packet_copy packet;
	struct stack_cache *cache; /* of the stacks in one packet, or NULL */
	uint64_t n;                /* stacks */
	uint64_t n_without;        /* … for which there was no room */
	uint64_t n_unknown;        /* … of whose process nothing is known, as memory was out */
};

/* ---- begin and end --------------------------------------------------------------------------- */

struct field {
	const char *name;
	enum kymo_type type;
};

static struct kymo_error *describe(struct recording *recording, enum kymo_event_kind kind, const char *name,
				   const struct field *fields, size_t n, uint32_t *id_ret)
{
	struct kymo_probe_event event = {
		.kind = kind,
		.name = (char *)(uintptr_t)name,
		.path = (char[]){ "" },
		.build_id = (char[]){ "" },
		.symbol = (char[]){ "" },
		.n_fields = (uint32_t)n,
		.is_used = true,
	};
	struct kymo_error *error;
	size_t index;

	for (size_t i = 0; i < n; i++)
		event.fields[i] =
			(struct kymo_event_field){ .name = (char *)(uintptr_t)fields[i].name, .type = fields[i].type };
	error = kymo_events_add(recording->run.events, &event, &index);
	*id_ret = error ? 0 : (uint32_t)index + 1;
	return error;
}

static struct kymo_error *describe_frames(struct recording *recording)
{
	static const struct field fields[KYMO_CTF_FRAME_FIELDS] = {
		[KYMO_CTF_FRAME_ID] = { "id", KYMO_TYPE_U32 },
		[KYMO_CTF_FRAME_CALLER] = { "caller", KYMO_TYPE_U32 },
		[KYMO_CTF_FRAME_WHAT] = { "what", KYMO_TYPE_U8 },
		[KYMO_CTF_FRAME_FILE] = { "file", KYMO_TYPE_STRING },
		[KYMO_CTF_FRAME_FUNCTION] = { "function", KYMO_TYPE_STRING },
		[KYMO_CTF_FRAME_OFFSET] = { "offset", KYMO_TYPE_U64 },
		[KYMO_CTF_FRAME_ADDRESS] = { "address", KYMO_TYPE_X64 },
		[KYMO_CTF_FRAME_PLACE] = { "place", KYMO_TYPE_U32 },
	};
	static const struct field source_fields[KYMO_CTF_SOURCE_FIELDS] = {
		[KYMO_CTF_SOURCE_PLACE] = { "place", KYMO_TYPE_U32 },
		[KYMO_CTF_SOURCE_IS_INLINED] = { "inlined", KYMO_TYPE_U8 },
		[KYMO_CTF_SOURCE_FUNCTION] = { "function", KYMO_TYPE_STRING },
		[KYMO_CTF_SOURCE_FILE] = { "file", KYMO_TYPE_STRING },
		[KYMO_CTF_SOURCE_LINE] = { "line", KYMO_TYPE_U32 },
	};
	struct stacking *stacking = recording->output.stacking;
	struct kymo_error *error =
		describe(recording, KYMO_EVENT_FRAME, FRAME_NAME, fields, KYMO_CTF_FRAME_FIELDS, &stacking->event);

	if (error || recording->wanted.options->no_inline)
		return error;
	kymo_stacks_need_sources(stacking->stacks);
	return describe(recording, KYMO_EVENT_SOURCE, SOURCE_NAME, source_fields, KYMO_CTF_SOURCE_FIELDS,
			&stacking->sources.event);
}

struct kymo_error *stacks_begin(struct recording *recording)
{
	bool is_wanted = false;

	for (size_t i = 0; i < recording->wanted.options->n_specs; i++)
		is_wanted |= recording->wanted.options->specs[i].stack_size != 0;
	if (!is_wanted)
		return NULL;
	recording->output.stacking = calloc(1, sizeof(*recording->output.stacking));
	if (!recording->output.stacking)
		return &kymo_error_no_memory;
	recording->output.stacking->stacks = kymo_stacks_create();
	if (!recording->output.stacking->stacks)
		return &kymo_error_no_memory;
	recording->output.stacking->prune_at = PRUNED_MIN;
	recording->output.stacking->cache = recording->wanted.options->frame_pointers ? stack_cache_create() : NULL;
	return describe_frames(recording);
}

void stacks_end(struct recording *recording)
{
	struct stacking *stacking = recording->output.stacking;

	if (!stacking)
		return;
	kymo_stacks_destroy(stacking->stacks);
	kymo_frame_tree_deinit(&stacking->frames);
	sources_deinit(&stacking->sources);
	packet_copy_deinit(&stacking->packet);
	stack_cache_destroy(stacking->cache);
	free(stacking);
	recording->output.stacking = NULL;
}

void stacks_note(struct recording *recording, struct record_source *source)
{
	struct stacking *stacking = recording->output.stacking;

	if (!stacking)
		return;
	if (!source->stack_number)
		source->stack_number = ++stacking->last_number;
	kymo_stacks_note(stacking->stacks, source->stack_number, source->pid);
}

void stacks_note_some(struct recording *recording)
{
	const size_t n = recording->run.sources.n;

	for (size_t i = 0; i < n && i < NOTED_AT_ONCE; i++)
		stacks_note(recording, recording->run.sources.items[recording->run.next_noted++ % n]);
}

void stacks_forget(struct recording *recording, const struct record_source *source)
{
	if (recording->output.stacking && source->stack_number)
		kymo_stacks_forget(recording->output.stacking->stacks, source->stack_number);
}

const struct kymo_frame_tree *stacks_frames(const struct recording *recording)
{
	return recording->output.stacking ? &recording->output.stacking->frames : NULL;
}

void stacks_tell(struct recording *recording)
{
	const struct stacking *stacking = recording->output.stacking;

	if (!stacking)
		return;
	if (stacking->n_unknown)
		recording_warn(recording,
			       "%" PRIu64 " stacks of %" PRIu64
			       " have no frames: memory was out when their processes were looked at",
			       stacking->n_unknown, stacking->n);
	if (stacking->n_without)
		recording_warn(recording,
			       "%" PRIu64 " stacks of %" PRIu64
			       " were not kept: the recording has room for %u different frames and %u names of theirs; "
			       "a filter, or --stack=DEPTH, leaves fewer",
			       stacking->n_without, stacking->n, KYMO_FRAMES_MAX, KYMO_STRINGS_MAX);
	if (stacking->sources.n_late)
		recording_warn(recording,
			       "stacks lack the inlined functions and lines of %" PRIu64 " addresses of %zu: reading "
			       "debug information took too long; --no-inline reads none",
			       stacking->sources.n_late, stacking->sources.places.n);
	if (stacking->sources.n_without)
		recording_warn(recording,
			       "stacks lack the inlined functions and lines of %" PRIu64
			       " addresses: there is no room for more",
			       stacking->sources.n_without);
}

/* ---- frames ---------------------------------------------------------------------------------- */

static void write_frame(FILE *out, struct recording *recording, uint32_t id)
{
	struct stacking *stacking = recording->output.stacking;
	const struct kymo_frame_node *node = &stacking->frames.nodes.items[id - 1];
	const uint64_t header = stacking->event | recording->output.begin.tsc << KYMO_EVENT_ID_BITS;
	const char *file = kymo_strings_text(&stacking->frames.texts, node->file);
	const char *function = kymo_strings_text(&stacking->frames.texts, node->function);
	const int32_t nobody = 0;
	const uint8_t what = (uint8_t)node->what;
	const uint32_t place = sources_place(&stacking->sources, node->place, node->address);

	fwrite(&header, sizeof(header), 1, out);
	fwrite(&nobody, sizeof(nobody), 1, out);
	fwrite(&id, sizeof(id), 1, out);
	fwrite(&node->caller, sizeof(node->caller), 1, out);
	fwrite(&what, sizeof(what), 1, out);
	fwrite(file, 1, strlen(file) + 1, out);
	fwrite(function, 1, strlen(function) + 1, out);
	fwrite(&node->offset, sizeof(node->offset), 1, out);
	fwrite(&node->address, sizeof(node->address), 1, out);
	fwrite(&place, sizeof(place), 1, out);
}

/* The records in `bytes`, which are freed. All have the stamp at which the recording began, so that readers have them
 * first. */
static struct kymo_error *append(struct recording *recording, char *bytes, size_t size)
{
	struct stacks_written *written = &recording->output.stacking->written;
	const struct kymo_ring_packet packet = { .records = (const uint8_t *)bytes,
						 .size = size,
						 .tsc_begin = recording->output.begin.tsc,
						 .tsc_end = recording->output.begin.tsc,
						 .sequence = written->n_packets,
						 .is_plain = true };
	struct kymo_error *error;

	written->position.ring = KYMO_TRACE_FRAMES;
	error = kymo_trace_append(&recording->output.files, &written->position, KYMO_CTF_NO_CPU, &packet, false);
	free(bytes);
	written->n_packets++;
	return error;
}

/* Frames that are new, before the records that have them: a recorder that is killed leaves none without. Where packets
 * are kept in memory their frames are, too, until both are written. */
static struct kymo_error *write_frames(struct recording *recording)
{
	struct stacking *stacking = recording->output.stacking;
	size_t size, *written = &stacking->written.n;
	char *bytes = NULL;
	FILE *out;

	if (recording->output.files.kept || *written == stacking->frames.nodes.n)
		return NULL;
	out = open_memstream(&bytes, &size);
	for (size_t i = *written; out && i < stacking->frames.nodes.n; i++)
		write_frame(out, recording, (uint32_t)i + 1);
	if (!out || fclose(out)) {
		free(bytes);
		return &kymo_error_no_memory;
	}
	*written = stacking->frames.nodes.n;
	return append(recording, bytes, size);
}

struct kymo_error *stacks_write(struct recording *recording)
{
	return recording->output.stacking ? write_frames(recording) : NULL;
}

struct kymo_error *stacks_write_sources(struct recording *recording, uint64_t reading_ns)
{
	struct stacking *stacking = recording->output.stacking;
	struct kymo_error *error = NULL;
	char *bytes;
	size_t size;

	if (!stacking || recording->wanted.options->no_inline)
		return NULL;
	sources_begin(&stacking->sources, stacking->stacks, recording->output.begin.tsc, reading_ns);
	while (!error && sources_next(&stacking->sources, &bytes, &size)) {
		if (!bytes)
			error = &kymo_error_no_memory;
		else if (size)
			error = append(recording, bytes, size);
		else
			free(bytes);
	}
	return error;
}

struct stacks_written stacks_begin_snapshot(struct recording *recording)
{
	struct stacks_written before = { .n = 0 };

	if (!recording->output.stacking)
		return before;
	before = recording->output.stacking->written;
	recording->output.stacking->written = (struct stacks_written){ .n = 0 };
	sources_forget_named(&recording->output.stacking->sources);
	return before;
}

void stacks_end_snapshot(struct recording *recording, struct stacks_written before)
{
	if (!recording->output.stacking)
		return;
	recording->output.stacking->written = before;
	sources_forget_named(&recording->output.stacking->sources);
}

/* ---- records --------------------------------------------------------------------------------- */

/* Bytes of a record up to the stack; 0: it is none. */
static uint32_t head_size(const struct kymo_ctf_event *event, const uint8_t *record, size_t left)
{
	uint32_t body;

	return left >= KYMO_EVENT_ARGS_OFFSET && kymo_ctf_size_before_stack(event, record + KYMO_EVENT_ARGS_OFFSET,
									    left - KYMO_EVENT_ARGS_OFFSET, &body)
		       ? KYMO_EVENT_ARGS_OFFSET + body
		       : 0;
}

/*
 * The record of an event with a stack, of which `left` bytes are there, as the ring has it: the stack pointer of a
 * call, if any, and the copy or chain after it. To `to`, which may overlap it, as the trace has it; its size there is
 * added to `kept`. The size that it had; 0: it is none.
 */
static uint32_t replace_one(struct recording *recording, struct record_source *source,
			    const struct kymo_ctf_event *event, const uint8_t *record, size_t left, uint8_t *to,
			    uint64_t *kept)
{
	const uint32_t head = head_size(event, record, left), pointer = event->has_stack_pointer ? sizeof(uint64_t) : 0;
	const uint32_t at = head + pointer;
	struct stack_bytes stack = { .is_chain = recording->wanted.options->frame_pointers,
				     .frames = recording->wanted.options->stack_depth };
	uint64_t stack_pointer = 0;
	bool is_known;
	uint32_t number;

	if (!head || left < at + sizeof(stack.size))
		return 0;
	memcpy(&stack.size, record + at, sizeof(stack.size));
	stack.bytes = record + at + sizeof(stack.size);
	if (stack.size > left - at - sizeof(stack.size) || !stack_bytes_are_one(&stack))
		return 0;
	memcpy(&stack_pointer, record + head, pointer);
	number = stack_cache_find(recording->output.stacking->cache, &stack);
	is_known = true;
	if (!number) {
		number = stack_number(recording->output.stacking->stacks, &recording->output.stacking->frames, source,
				      &stack, &is_known);
		stack_cache_put(recording->output.stacking->cache, &stack, number);
	}
	recording->output.stacking->n++;
	recording->output.stacking->n_without += !number && is_known;
	recording->output.stacking->n_unknown += !is_known;
	memmove(to, record, head);
	memcpy(to + head, &number, sizeof(number));
	memcpy(to + head + sizeof(number), &stack_pointer, pointer);
	*kept += head + sizeof(number) + pointer;
	return at + (uint32_t)sizeof(stack.size) + stack.size;
}

/* ---- frames that no packet names any more ---------------------------------------------------- */

/* Note each frame that a packet names, or `renumber` them. After a record that was none of ours the packet has what
 * the target has written. */
static void visit_packet(struct recording *recording, const struct kymo_kept_packet *packet, uint32_t *numbers,
			 size_t n, bool renumber)
{
	const struct kymo_trace *output = &recording->output.files;
	uint8_t *records = kymo_kept_records_writable(output->kept, packet);
	struct kymo_packed packed = kymo_packed_begin(packet->begin);
	uint64_t at = 0;
	size_t header;
	uint32_t id;

	while ((header = kymo_packed_read(&packed, records + at, packet->size - at, &id)) != 0) {
		const struct kymo_ctf_event *event = kymo_trace_event(output, id);
		const uint64_t left = packet->size - at - header;
		uint32_t body, number, stack;

		at += header;
		if (!id)
			continue;
		if (!event || !kymo_ctf_body_size(event, records + at, left, &body))
			return;
		if (event->has_stack && kymo_ctf_size_before_stack(event, records + at, left, &stack)) {
			memcpy(&number, records + at + stack, sizeof(number));
			if (number && number <= n && renumber)
				memcpy(records + at + stack, &numbers[number - 1], sizeof(number));
			else if (number && number <= n)
				numbers[number - 1] = 1;
		}
		at += body;
	}
}

static void visit_packets(struct recording *recording, uint32_t *numbers, size_t n, bool renumber)
{
	struct kymo_kept *kept = recording->output.files.kept;

	for (const struct kymo_kept_packet *packet = kymo_kept_first(kept); packet;
	     packet = kymo_kept_next(kept, packet))
		visit_packet(recording, packet, numbers, n, renumber);
}

/* Each time costs a walk over all that is kept, and frees what was dropped packets' alone. */
static bool wants_pruning(const struct recording *recording)
{
	const struct stacking *stacking = recording->output.stacking;

	return (stacking->frames.nodes.n >= stacking->prune_at ||
		stacking->frames.texts.items.n >= KYMO_STRINGS_MAX / 2) &&
	       recording->output.files.dropped_bytes - stacking->pruned_bytes >=
		       recording->output.files.bytes / DROPPED_SHARE;
}

void stacks_prune(struct recording *recording)
{
	struct stacking *stacking = recording->output.stacking;
	const size_t n = stacking ? stacking->frames.nodes.n : 0;
	uint32_t *numbers;

	if (!recording->output.files.kept || !n)
		return;
	numbers = calloc(n, sizeof(*numbers));
	if (numbers) {
		visit_packets(recording, numbers, n, false);
		if (kymo_frame_tree_prune(&stacking->frames, numbers))
			visit_packets(recording, numbers, n, true);
	}
	free(numbers);
	stacking->pruned_bytes = recording->output.files.dropped_bytes;
	stacking->prune_at = 2 * stacking->frames.nodes.n;
	if (stacking->prune_at < PRUNED_MIN)
		stacking->prune_at = PRUNED_MIN;
	if (stacking->prune_at > KYMO_FRAMES_MAX)
		stacking->prune_at = (stacking->frames.nodes.n + KYMO_FRAMES_MAX) / 2;
}

/* ---- packets --------------------------------------------------------------------------------- */

struct kymo_error *stacks_replace(struct recording *recording, struct record_source *source, uint8_t *records,
				  struct kymo_ring_packet *packet)
{
	uint64_t at = 0, kept = 0;

	if (wants_pruning(recording))
		stacks_prune(recording);
	stack_cache_forget(recording->output.stacking->cache);
	while (at + sizeof(uint64_t) <= packet->size) {
		const struct kymo_ctf_event *event = packet_event(&recording->output.files, records + at);
		uint32_t size;

		if (event && event->has_stack) {
			size = replace_one(recording, source, event, records + at, packet->size - at, records + kept,
					   &kept);
		} else {
			size = event ? kymo_ctf_record_size(event, records + at, packet->size - at) : 0;
			memmove(records + kept, records + at, size);
			kept += size;
		}
		if (!size) /* no record of ours: readers will tell */
			break;
		at += size;
	}
	memmove(records + kept, records + at, packet->size - at);
	packet->size = kept + packet->size - at;
	return write_frames(recording);
}

struct kymo_error *stacks_copy(struct recording *recording, struct record_source *source, size_t i,
			       struct kymo_trace_position *position, uint8_t *room)
{
	struct kymo_ring reader = source->rings[i];
	struct kymo_error *error = NULL;
	struct kymo_ring_packet packet;

	for (uint32_t k = 0; k < reader.n_subbuffers && !error && kymo_ring_copy(&reader, room, &packet); k++) {
		error = packet_copy_take(&recording->output.stacking->packet, &recording->output.files, &packet, NULL,
					 NULL);
		if (!error)
			error = stacks_replace(recording, source, recording->output.stacking->packet.records, &packet);
		if (!error)
			error = kymo_trace_append(&recording->output.files, position, source->shared[i].cpu, &packet,
						  true);
	}
	return error;
}

struct kymo_error *stacks_drain(struct recording *recording, struct record_source *source, size_t i, size_t *n_ret)
{
	struct kymo_ring *ring = &source->rings[i];
	struct kymo_error *error = NULL;
	struct kymo_ring_packet packet;
	size_t n = 0;

	while (!error && n < ring->n_subbuffers && kymo_ring_peek(ring, &packet)) {
		error = packet_copy_take(&recording->output.stacking->packet, &recording->output.files, &packet, NULL,
					 NULL);
		if (!error)
			error = stacks_replace(recording, source, recording->output.stacking->packet.records, &packet);
		if (!error)
			error = kymo_trace_append(&recording->output.files, &source->positions[i],
						  source->shared[i].cpu, &packet, true);
		if (!error)
			kymo_ring_release(ring);
		n++;
	}
	*n_ret = n;
	return error;
}
