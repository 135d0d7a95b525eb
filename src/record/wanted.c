/* What a recording is asked for. */
#include "record/wanted.h"

#include <unistd.h>

#include "probe/install/mapped.h"
#include "probe/spec/spec_write.h"
#include "record/kernel_args.h"
#include "record/recording.h"

#define OUTSIDE_MIN (UINT64_C(64) << 10)

bool recording_has_markers(const struct kymo_record_options *options)
{
	for (size_t i = 0; i < options->n_specs; i++)
		if (options->specs[i].marker)
			return true;
	return false;
}

bool recording_has_syscalls(const struct kymo_record_options *options)
{
	for (size_t i = 0; i < options->n_specs; i++)
		if (options->specs[i].syscalls)
			return true;
	return false;
}

bool recording_has_addresses(const struct kymo_record_options *options)
{
	for (size_t i = 0; i < options->n_specs; i++)
		if (options->specs[i].address)
			return true;
	return false;
}

static bool has_stacks(const struct kymo_record_options *options)
{
	for (size_t i = 0; i < options->n_specs; i++)
		if (options->specs[i].stack_size)
			return true;
	return false;
}

static bool samples(const struct kymo_record_options *options)
{
	for (size_t i = 0; i < options->n_specs; i++)
		if (options->specs[i].sampling)
			return true;
	return false;
}

static bool aggregates(const struct kymo_record_options *options)
{
	for (size_t i = 0; i < options->n_specs; i++)
		if (options->specs[i].aggregated || options->specs[i].waits)
			return true;
	return false;
}

/* Whether the kernel can compute what the specs ask for. `way` is as recording_kernel_check_spec() has it. */
static struct kymo_error *check_forms(const struct kymo_record_options *options, const char *way)
{
	struct kymo_error *error = NULL;

	for (size_t i = 0; i < options->n_specs && !error; i++)
		error = recording_kernel_check_spec(&options->specs[i], way);
	return error;
}

bool recording_needs_process(const struct kymo_record_options *options)
{
	struct kymo_error *error;

	if (options->n_branches || recording_has_markers(options) || recording_has_addresses(options) ||
	    has_stacks(options) || samples(options) || aggregates(options) ||
	    kymo_spec_that_writes(options->specs, options->n_specs))
		return true;
	error = check_forms(options, "");
	kymo_error_destroy(error);
	return error;
}

bool recording_has_several(const struct recording *recording)
{
	const struct kymo_record_options *options = recording->wanted.options;

	return options->n_pids > 1 || (options->n_pids && options->follow && options->existing);
}

struct kymo_error *recording_check_any_met(const struct recording *recording, const struct target *target)
{
	if (!recording_has_several(recording) || recording->run.tree)
		return NULL;
	for (size_t i = 0; i < recording->wanted.n_inproc; i++) {
		struct kymo_error *error = kymo_probes_check_found(target->source->probes, i);

		if (!error)
			return NULL;
		kymo_error_destroy(error);
	}
	return kymo_error_create(KYMO_ERROR_NOT_FOUND, "it has mapped no file that has a probe");
}

/* What can't be recorded from outside together. */
static struct kymo_error *check_outside(const struct recording *recording)
{
	const struct kymo_record_options *options = recording->wanted.options;
	const char *way = options->all                           ? "--all"
			  : options->backend == KYMO_RECORD_AUTO ? "--complete"
								 : "--backend kernel";

	if (recording_has_markers(options))
		return kymo_error_create(KYMO_ERROR_USAGE,
					 "markers are turned on in the process itself: leave %s out, or --marker", way);
	if (recording_has_addresses(options))
		return kymo_error_create(KYMO_ERROR_USAGE,
					 "an address is of one process, and the kernel's probes are of files: leave %s "
					 "out, or name FILE:0xOFFSET",
					 way);
	if (has_stacks(options))
		return kymo_error_create(KYMO_ERROR_USAGE,
					 "stacks are taken in the process itself: leave %s out, or --stack", way);
	if (samples(options))
		return kymo_error_create(
			KYMO_ERROR_USAGE,
			"hits are sampled in the process itself: leave %s out, or 'sample' and 'first'", way);
	if (kymo_spec_that_writes(options->specs, options->n_specs))
		return kymo_error_create(
			KYMO_ERROR_USAGE,
			"registers and memory are written in the process itself: leave %s out, or 'set' and 'return'",
			way);
	if (aggregates(options))
		return kymo_error_create(KYMO_ERROR_USAGE,
					 "hits are aggregated, and calls paired, in the process itself: leave %s out",
					 way);
	return check_forms(options, way);
}

struct kymo_error *recording_check_options(const struct recording *recording)
{
	const struct kymo_record_options *options = recording->wanted.options;
	const struct kymo_spec *writer = kymo_spec_that_writes(options->specs, options->n_specs);

	if (writer && !options->allow_write)
		return kymo_error_create(KYMO_ERROR_USAGE, "'%s' writes, and nothing allows that", writer->text);
	if (recording->wanted.backend != KYMO_RECORD_INPROC)
		return check_outside(recording);
	if (recording_has_addresses(options) && options->command)
		return kymo_error_create(KYMO_ERROR_USAGE,
					 "an address is of a process that runs, and '%s' has no code there yet: start "
					 "it, and record it with --pid",
					 options->command[0]);
	return NULL;
}

bool recording_is_flight_recorder(const struct kymo_record_options *options)
{
	return options->overwrite || options->keep;
}

uint64_t recording_kept_size(const struct recording *recording)
{
	const uint64_t size = recording->wanted.options->keep;

	return recording->wanted.n_inproc && recording->wanted.n_kernel ? size / 2 : size;
}

uint64_t recording_outside_buffer(const struct kymo_record_options *options)
{
	const long n = sysconf(_SC_NPROCESSORS_CONF);
	const uint64_t size = options->keep / (n > 0 ? (uint64_t)n : 1);

	if (!options->keep)
		return options->buffer_size;
	return size < OUTSIDE_MIN ? OUTSIDE_MIN : size;
}
