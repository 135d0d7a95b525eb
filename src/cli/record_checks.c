#include "cli/record_checks.h"

#include <fnmatch.h>
#include <string.h>

#include "aggr/aggr.h"
#include "cli/output.h"
#include "probe/spec/spec_sample.h"
#include "probe/spec/spec_write.h"
#include "wire/event.h"

#define STACK_SIZE_DEFAULT 8192u
#define FRAMES_DEFAULT 64u
#define STACKS_A_BUFFER 64u /* the smallest part of a buffer that a record lies in has room for two */

bool cli_record_has_conditions(const struct cli_recording *recording)
{
	bool has = false;

	for (size_t i = 0; i < recording->options.n_aggregations; i++)
		has |= recording->options.aggregations[i].kind == KYMO_AGGR_UNTIL;
	return has;
}

int cli_record_check_flight_recorder(struct cli_recording *recording)
{
	struct kymo_record_options *options = &recording->options;
	const bool has_conditions = cli_record_has_conditions(recording);
	const uint64_t most = options->keep / 2;

	if (options->keep && options->overwrite)
		return cli_usage(recording->name, "--keep has the newest records in the recorder, --overwrite has them "
						  "in the buffers: leave one out");
	if (has_conditions && options->overwrite)
		return cli_usage(recording->name, "with --overwrite kymo does not read the records before the end, and "
						  "--until has to: write --keep SIZE in place of --overwrite");
	if (options->overwrite && options->n_aggregations > recording->n_tables)
		return cli_usage(recording->name,
				 "with --overwrite kymo does not read the records before the end, and "
				 "durations of calls, and entry(), are known to the recorder alone: write "
				 "--keep SIZE in place of --overwrite");
	if (has_conditions && !recording->has_written && !recording->n_tables && !recording->branches.n)
		return cli_usage(recording->name, "--until says when to end, and nothing is recorded: add a probe with "
						  "-p, -r, -m or -s, or branches with -b");
	if (!has_conditions && (recording->says_after || options->n_snapshots))
		return cli_usage(recording->name, "%s belongs to --until CONDITION: add it",
				 recording->says_after ? "--after" : "--snapshots");
	if (options->n_snapshots && !options->keep)
		return cli_usage(recording->name, "--snapshots are of what --keep SIZE has: add it");
	if (options->keep && recording->says_buffer && options->buffer_size > most)
		return cli_usage(recording->name, "--buffer is half of --keep at most: leave it out, or keep more");
	if (options->keep && options->buffer_size > most)
		options->buffer_size = most;
	return -1;
}

int cli_record_check_samples(const struct cli_recording *recording)
{
	const size_t n = kymo_specs_sampled(recording->specs.items, recording->specs.n);

	if (n > KYMO_SPEC_SAMPLES_MAX)
		return cli_usage(recording->name,
				 "%zu probes have 'sample' or 'first', and a recording has room for %d", n,
				 KYMO_SPEC_SAMPLES_MAX);
	return -1;
}

static bool has_stack_keys(const struct kymo_record_options *options)
{
	bool has = false;

	for (size_t i = 0; i < options->n_aggregations; i++)
		has |= kymo_aggr_has_stacks(&options->aggregations[i]);
	return has;
}

/* Whether its hits, or the calls that it is the entry of, are aggregated by stack. */
static bool is_by_stack(const struct kymo_record_options *options, const struct kymo_spec *spec)
{
	bool is = false;

	for (size_t i = 0; i < options->n_aggregations && spec->aggregated; i++)
		is |= kymo_aggr_has_stacks(&options->aggregations[i]) &&
		      (options->aggregations[i].hit == spec->aggregated ||
		       options->aggregations[i].entry == spec->aggregated);
	return is;
}

/* Whether its calls are paired for an aggregation. */
static bool is_of_pair(const struct kymo_record_options *options, const struct kymo_spec *spec)
{
	bool is = false;

	for (size_t i = 0; i < options->n_aggregations && spec->aggregated; i++)
		is |= options->aggregations[i].entry && (options->aggregations[i].entry == spec->aggregated ||
							 options->aggregations[i].leave == spec->aggregated);
	return is;
}

/* Whether there is no room for the stack, or, of a pair, for that and the stack pointer. -1: there is. */
static int check_room(const struct cli_recording *recording, const struct kymo_spec *spec)
{
	const bool is_paired = is_of_pair(&recording->options, spec);

	if (spec->n_args + is_paired < KYMO_EVENT_MAX_ARGS)
		return -1;
	return cli_usage(recording->name, "'%s' has %zu arguments, and the stack is one more%s: leave one out",
			 kymo_spec_typed(spec), spec->n_args,
			 is_paired ? ", as is the stack pointer that its calls need" : "");
}

/* Records of entries and returns have the stack pointer, if there is room for it besides the stack. */
static void warn_of_pairs(const struct cli_recording *recording)
{
	bool has_return = false;

	for (size_t i = 0; i < recording->specs.n; i++)
		has_return |= recording->specs.items[i].is_return;
	for (size_t i = 0; i < recording->specs.n && has_return; i++)
		if (recording->specs.items[i].stack_size && recording->specs.items[i].n_args + 1 == KYMO_EVENT_MAX_ARGS)
			cli_warn("'%s' has %d arguments and a stack, and no room for the stack pointer: after an "
				 "exception a call may be paired with another one's return",
				 recording->specs.items[i].text, KYMO_EVENT_MAX_ARGS - 1);
}

/* By frame pointers, that pads follow at most; 0: they copy. */
static size_t frames_of(const struct cli_recording *recording)
{
	const size_t depth = recording->options.stack_depth;

	return !recording->options.frame_pointers ? 0 : depth ? depth : FRAMES_DEFAULT;
}

/* Bytes that a record has of its stack at most. */
static uint32_t stack_size(const struct cli_recording *recording)
{
	const size_t frames = frames_of(recording);

	if (frames)
		return (uint32_t)(sizeof(struct kymo_wire_chain) + sizeof(uint64_t) * (frames - 1));
	return recording->stack_size ? recording->stack_size : STACK_SIZE_DEFAULT;
}

/* -1: a buffer has room for stacks of that size. */
static int check_buffer(const struct cli_recording *recording, uint32_t size)
{
	const uint32_t least = STACKS_A_BUFFER * size;
	const size_t frames = frames_of(recording);

	if (recording->options.buffer_size >= least)
		return -1;
	return cli_usage(recording->name, "stacks of %zu %s need a --buffer of %uK or more", frames ? frames : size,
			 frames ? "frames" : "bytes", (least + 1023) >> 10);
}

int cli_record_check_stacks(struct cli_recording *recording)
{
	const uint32_t size = stack_size(recording);
	const bool has_keys = has_stack_keys(&recording->options);
	bool has_any = has_keys;
	int status;

	if (!recording->has_stacks && !has_keys)
		return !recording->stack_size && !recording->options.no_inline && !recording->options.frame_pointers
			       ? -1
			       : cli_usage(recording->name, "%s is for stacks: add --stack",
					   recording->stack_size               ? "--stack-size"
					   : recording->options.frame_pointers ? "--frame-pointers"
									       : "--no-inline");
	if (recording->options.frame_pointers && recording->stack_size)
		return cli_usage(recording->name,
				 "--frame-pointers copies nothing of the stack: leave --stack-size out");
	status = check_buffer(recording, size);
	if (status >= 0)
		return status;
	for (size_t i = 0; i < recording->specs.n; i++) {
		struct kymo_spec *spec = &recording->specs.items[i];

		if (!recording->has_stacks && !is_by_stack(&recording->options, spec))
			continue;
		if (spec->marker || spec->syscalls)
			return cli_usage(
				recording->name, "--stack is for probes: leave %s out%s",
				spec->marker ? "--marker" : "--syscall",
				spec->marker ? "" : "; 'kymo syscalls --stack-traces' shows stacks of system calls");
		if (spec->aggregated && !spec->waits && !is_by_stack(&recording->options, spec))
			continue;
		if (spec->waits && recording->options.keep) /* frames are numbered anew while its records wait */
			return cli_usage(recording->name, "with --keep a probe has --stack or the duration or "
							  "entry() of its calls: leave one of them out");
		status = check_room(recording, spec);
		if (status >= 0)
			return status;
		spec->stack_size = (uint16_t)size;
		spec->stack_frames = (uint16_t)frames_of(recording);
		has_any = true;
	}
	if (!has_any)
		return cli_usage(recording->name, "--stack is for records, and aggregations write none: write 'by "
						  "stack', or add a probe with -p");
	warn_of_pairs(recording);
	return -1;
}

/* A function that is left at once has no return of its own: its calls would be told to be open. */
static int check_returns_of_left(const struct cli_recording *recording)
{
	for (size_t i = 0; i < recording->specs.n; i++) {
		const struct kymo_spec *spec = &recording->specs.items[i];

		for (size_t k = 0; spec->leaves_function && k < recording->specs.n; k++) {
			const struct kymo_spec *other = &recording->specs.items[k];

			if (other->is_return && other->symbol && other->file && !strcmp(other->file, spec->file) &&
			    !fnmatch(other->symbol, spec->symbol, 0))
				return cli_usage(
					recording->name,
					"'%s' and -r '%s' are of one function: a call that 'return' ends has no "
					"return; leave -r out",
					kymo_spec_typed(spec), kymo_spec_typed(other));
		}
	}
	return -1;
}

int cli_record_check_writes(const struct cli_recording *recording)
{
	const struct kymo_record_options *options = &recording->options;
	const struct kymo_spec *writer = kymo_spec_that_writes(recording->specs.items, recording->specs.n);

	if (!writer)
		return -1;
	if (!options->allow_write)
		return cli_usage(recording->name,
				 "'%s' changes what the program does: add --allow-write if that is meant",
				 writer->text);
	if (options->overwrite || options->keep)
		return cli_usage(recording->name,
				 "'%s' changes the program, and each write is told by a record, which --%s may "
				 "drop: leave it out",
				 writer->text, options->keep ? "keep" : "overwrite");
	return check_returns_of_left(recording);
}
