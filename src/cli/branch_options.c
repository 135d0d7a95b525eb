#include "cli/branch_options.h"

#include <string.h>

#include "cli/numbers.h"
#include "cli/output.h"

#define TAIL_DEFAULT 4096u
#define TAIL_MAX (1u << 20)

int cli_branches_add(struct cli_recording *recording, const char *text)
{
	struct kymo_branch_spec spec;
	struct kymo_error *error = kymo_branch_spec_parse(text, &spec);

	if (error)
		return cli_fail(recording->name, error);
	if (kymo_vec_push(&recording->branches, spec))
		return 0;
	kymo_branch_spec_deinit(&spec);
	return cli_fail(recording->name, &kymo_error_no_memory);
}

int cli_branches_take_tail(struct cli_recording *recording, const char *text)
{
	uint64_t n;

	if (!cli_parse_number(text, &n) || !n || n > TAIL_MAX)
		return cli_usage(recording->name, "--tail takes a number of branches up to %u, not '%s'", TAIL_MAX,
				 text);
	recording->options.tail = (size_t)n;
	return 0;
}

int cli_branches_take_source(struct cli_recording *recording, const char *text)
{
	if (strcmp(text, "steps") && strcmp(text, "clones"))
		return cli_usage(recording->name, "--branch-source is steps or clones, not '%s'", text);
	recording->options.by_clones = !strcmp(text, "clones");
	return 0;
}

/* What else was asked for, as the user has written it; NULL: nothing. */
static const char *other_request(const struct cli_recording *recording)
{
	const struct kymo_record_options *options = &recording->options;

	return recording->syscalls_text          ? "-s"
	       : recording->aggregations.items.n ? "--count, --until and the like"
	       : recording->specs.n              ? "-p, -r and -m"
	       : options->all                    ? "--all"
	       : options->backend                ? "--backend"
	       : options->keep                   ? "--keep"
	       : options->overwrite              ? "--overwrite"
	       : options->complete               ? "--complete"
	       : recording->has_stacks           ? "--stack"
	       : recording->says_buffer          ? "--buffer"
	       : recording->says_debug_file      ? "--debug-file"
	       : recording->stack_size           ? "--stack-size"
	       : options->frame_pointers         ? "--frame-pointers"
						 : NULL;
}

int cli_branches_check(struct cli_recording *recording)
{
	struct kymo_record_options *options = &recording->options;
	const char *other;

	if (!recording->branches.n)
		return !options->tail && !options->by_clones
			       ? -1
			       : cli_usage(recording->name, "%s is for branches: add -b SPEC, or leave it out",
					   options->tail ? "--tail" : "--branch-source");
	other = other_request(recording);
	if (other)
		return cli_usage(recording->name,
				 "branches (-b) are recorded by themselves, of one process and, by --follow, its "
				 "children: leave %s out",
				 other);
	if (!options->command && recording->says_follow && options->follow && options->existing)
		return cli_usage(recording->name, "-b records no children that a process has already: to record those "
						  "that it makes from now on, add --no-existing to --follow");
	if (options->by_clones && !options->command)
		return cli_usage(recording->name, "--branch-source clones is for a command that kymo launches: clones "
						  "are put in before it runs");
	if (options->by_clones && recording->says_follow && options->follow)
		return cli_usage(recording->name, "--branch-source clones records no children: leave --follow out");
	options->branches = recording->branches.items;
	options->n_branches = recording->branches.n;
	if (!options->tail)
		options->tail = TAIL_DEFAULT;
	return -1;
}

void cli_branches_deinit(struct cli_recording *recording)
{
	for (size_t i = 0; i < recording->branches.n; i++)
		kymo_branch_spec_deinit(&recording->branches.items[i]);
	kymo_vec_deinit(&recording->branches);
}
