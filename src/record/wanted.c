/* What a recording is asked for. */
#include "probe/resolve/files.h"
#include "record/recording.h"

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

bool recording_computes(const struct kymo_record_options *options)
{
	for (size_t i = 0; i < options->n_specs; i++)
		if (kymo_spec_computes(&options->specs[i]))
			return true;
	return false;
}

bool recording_has_several(const struct recording *recording)
{
	const struct kymo_record_options *options = recording->options;

	return options->n_pids > 1 || (options->n_pids && options->follow && options->existing);
}

struct kymo_error *recording_check_any_met(const struct recording *recording, const struct target *target)
{
	if (!recording_has_several(recording) || recording->tree)
		return NULL;
	for (size_t i = 0; i < recording->n_inproc; i++) {
		struct kymo_error *error = kymo_probes_check_found(target->source->probes, i);

		if (!error)
			return NULL;
		kymo_error_destroy(error);
	}
	return kymo_error_create(KYMO_ERROR_NOT_FOUND, "it has mapped no file that has a probe");
}
