/*
 * Two recordings of one process (docs/design/clones.md): the probes' is in when the files of a command are linked, or
 * first of all in a process that runs. The clones' goes in then, with gates behind the pads at entries. It leaves
 * first. The tree is that of the probes.
 */
#include "record/beside.h"

#include <stdlib.h>

#include "branch/branch.h"
#include "probe/install/exchange.h"
#include "proc/tree.h"
#include "record/branch_parts.h"
#include "record/clones.h"
#include "record/clones_open.h"
#include "record/recording.h"

/* Of the command; or NULL. */
static struct kymo_probes *probes_of(const struct recording_run *run)
{
	struct kymo_probes *probes = NULL;

	for (size_t i = 0; i < run->sources.n && !probes; i++)
		if (run->sources.items[i]->process == run->process && !run->sources.items[i]->lender)
			probes = run->sources.items[i]->probes;
	return probes;
}

bool recording_is_beside(const struct recording *recording)
{
	return recording->wanted.options->n_branches && recording->wanted.options->n_specs;
}

struct kymo_error *beside_check(struct recording *recording)
{
	if (!recording_is_beside(recording))
		return NULL;
	return recording->wanted.options->command ? clones_check(recording->run.process)
						  : clones_check_running(recording->run.process);
}

struct kymo_error *beside_open(struct recording *recording)
{
	struct recording_run *run = &recording->run;
	struct kymo_error *error = recording_is_beside(recording) ? clones_create(recording, &run->clones) : NULL;

	return error || !run->clones
		       ? error
		       : recording_open_branches(recording, KYMO_RECORD_BRANCHES_CLONES, run->clones, &run->branches);
}

struct kymo_error *beside_put_in(struct recording *recording)
{
	struct recording_run *run = &recording->run;

	return run->branches ? clones_put_in(run->clones, run->branches, probes_of(run)) : NULL;
}

struct kymo_error *beside_describe(struct recording *recording)
{
	return recording_is_beside(recording) ? recording_describe_branches(recording, KYMO_RECORD_BRANCHES_CLONES)
					      : NULL;
}

struct kymo_error *beside_begin(struct recording *recording)
{
	const bool is_launched = recording->wanted.options->command;

	return recording->run.branches && is_launched ? kymo_branches_begin(recording->run.branches) : NULL;
}

void beside_note(struct recording *recording, const struct kymo_tree_event *event)
{
	if (recording->run.clones)
		clones_note(recording->run.clones, event);
}

void beside_heed(struct recording *recording)
{
	struct recording_run *run = &recording->run;
	const struct kymo_probes *probes = run->branches ? probes_of(run) : NULL;

	if (!run->branches)
		return;
	clones_heed_handlers(run->clones, probes && kymo_probes_wait_for_clones(probes));
	recording_tell_branch_warnings(recording, run->branches);
}

struct kymo_error *beside_leave(struct recording *recording, struct kymo_process *process)
{
	struct recording_run *run = &recording->run;

	if (!run->clones)
		return NULL;
	if (process == run->process)
		return clones_leave(run->clones);
	clones_leave_child(run->clones, process);
	return NULL;
}

struct kymo_error *beside_end(struct recording *recording)
{
	struct recording_run *run = &recording->run;

	if (!run->branches)
		return NULL;
	clones_tell_sunk(run->clones);
	recording_end_branches(recording, run->branches);
	return recording_write_branches(recording, run->branches);
}

void beside_destroy(struct recording *recording)
{
	kymo_branches_destroy(recording->run.branches);
	clones_destroy(recording->run.clones);
	recording->run.branches = NULL;
	recording->run.clones = NULL;
}
