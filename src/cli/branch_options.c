#include "cli/branch_options.h"

#include <string.h>

#include "base/cleanup.h"
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
	static const char *const names[] = {
		[KYMO_RECORD_BRANCHES_AUTO] = "auto",     [KYMO_RECORD_BRANCHES_PT] = "pt",
		[KYMO_RECORD_BRANCHES_BTS] = "bts",       [KYMO_RECORD_BRANCHES_LBR] = "lbr",
		[KYMO_RECORD_BRANCHES_CLONES] = "clones", [KYMO_RECORD_BRANCHES_STEPS] = "steps",
	};

	for (size_t i = 0; i < kymo_countof(names); i++) {
		if (strcmp(text, names[i]) != 0)
			continue;
		recording->options.branch_source = (enum kymo_record_branch_source)i;
		recording->says_branch_source = true;
		return 0;
	}
	return cli_usage(recording->name, "--branch-source is auto, pt, bts, lbr, clones or steps, not '%s'", text);
}

/* Whether probes may be beside the source of branches: AUTO is clones then. */
static bool may_be_beside(const struct kymo_record_options *options)
{
	return options->branch_source == KYMO_RECORD_BRANCHES_CLONES ||
	       options->branch_source == KYMO_RECORD_BRANCHES_AUTO;
}

/* Of what the recorder counts or pairs, what branches do not go with; NULL: nothing. */
static const char *other_aggregation(const struct cli_recording *recording)
{
	for (size_t i = 0; i < recording->aggregations.items.n; i++) {
		const enum kymo_aggr_kind kind = recording->aggregations.items.items[i].kind;

		if (kind == KYMO_AGGR_UNTIL)
			continue;
		return kind < KYMO_AGGR_N_KINDS ? "--count and the like" : "durations and entry() of -r";
	}
	return recording->aggregations.items.n && !may_be_beside(&recording->options) ? "--until" : NULL;
}

/* What else was asked for, as the user has written it; NULL: nothing. */
static const char *other_request(const struct cli_recording *recording)
{
	const struct kymo_record_options *options = &recording->options;
	const char *aggregation = other_aggregation(recording);

	return aggregation                                           ? aggregation
	       : recording->syscalls_text && !may_be_beside(options) ? "-s"
	       : recording->specs.n && !may_be_beside(options)       ? "-p, -r and -m"
	       : options->n_snapshots                                ? "--snapshots"
	       : options->all                                        ? "--all"
	       : options->backend                                    ? "--backend"
	       : options->keep                                       ? "--keep"
	       : options->overwrite                                  ? "--overwrite"
	       : options->complete                                   ? "--complete"
	       : recording->specs.n                                  ? NULL
	       : recording->has_stacks                               ? "--stack"
	       : recording->says_buffer                              ? "--buffer"
	       : recording->says_debug_file                          ? "--debug-file"
	       : recording->stack_size                               ? "--stack-size"
	       : options->frame_pointers                             ? "--frame-pointers"
								     : NULL;
}

int cli_branches_check(struct cli_recording *recording)
{
	struct kymo_record_options *options = &recording->options;
	const bool by_clones = options->branch_source == KYMO_RECORD_BRANCHES_CLONES;
	const char *other;

	if (!recording->branches.n)
		return !options->tail && !recording->says_branch_source
			       ? -1
			       : cli_usage(recording->name, "%s is for branches: add -b SPEC, or leave it out",
					   options->tail ? "--tail" : "--branch-source");
	other = other_request(recording);
	if (other)
		return cli_usage(recording->name,
				 "branches (-b) are recorded by themselves, of one process and, by --follow, its "
				 "children: leave %s out%s",
				 other, recording->specs.n && !may_be_beside(options) ? ", or record by clones" : "");
	if (!options->command && recording->says_follow && options->follow && options->existing)
		return cli_usage(recording->name, "-b records no children that a process has already: to record those "
						  "that it makes from now on, add --no-existing to --follow");
	if (recording->specs.n && options->branch_source == KYMO_RECORD_BRANCHES_AUTO)
		options->branch_source = KYMO_RECORD_BRANCHES_CLONES;
	if (by_clones && recording->says_follow && options->follow && !recording->specs.n)
		return cli_usage(recording->name, "--branch-source clones records no children: leave --follow out");
	if (recording->specs.n && recording->says_follow && !options->follow)
		return cli_usage(recording->name, "with -b the probes of children are recorded, too: leave --no-follow "
						  "out");
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
