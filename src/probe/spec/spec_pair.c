#include "probe/spec/spec_pair.h"

/* Of the entry of a function, or of several. */
static bool is_entry(const struct kymo_spec *spec)
{
	return spec->file && spec->symbol && !spec->offset && !spec->every_instruction && !spec->is_return;
}

void kymo_specs_pair(struct kymo_spec *specs, size_t n)
{
	bool has_entry = false, has_return = false;

	for (size_t i = 0; i < n; i++) {
		has_entry |= is_entry(&specs[i]);
		has_return |= specs[i].is_return;
	}
	for (size_t i = 0; i < n; i++)
		specs[i].is_paired = has_entry && has_return && (specs[i].is_return || is_entry(&specs[i])) &&
				     specs[i].n_args + !!specs[i].stack_size < KYMO_EVENT_MAX_ARGS;
}
