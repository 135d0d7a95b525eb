/* A recording of branches, from its beginning to its end. */
#include "branch/branch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "arch/clones.h"
#include "base/cleanup.h"
#include "branch/chosen.h"
#include "branch/clones.h"
#include "branch/hardware.h"
#include "branch/state.h"
#include "branch/steps.h"
#include "branch/thread.h"
#include "hub/launch.h"
#include "kymo/engine.h"
#include "proc/reach.h"
#include "procfs/info.h"
#include "procfs/maps.h"
#include "wire/shared.h"

/* ---- beginning ------------------------------------------------------------------------------- */

static int open_own(void *data)
{
	struct kymo_branches *branches = data;

	return kymo_hub_create(&branches->hub);
}

static int attach_process(void *data, pid_t *busy_ret)
{
	struct kymo_branches *branches = data;
	const int err = branches->options.hardware ? branch_hardware_attach_process(branches)
						   : branch_steps_attach_process(branches);

	if (err == -EBUSY)
		*busy_ret = kymo_traced_thread(branches->pid);
	return err;
}

static void close_hub(void *data)
{
	struct kymo_branches *branches = data;

	kymo_hub_destroy(branches->hub);
	branches->hub = NULL;
	branches->n_threads = 0;
}

static bool is_given_up(void *data)
{
	const struct kymo_branches *branches = data;

	return branches->options.is_given_up && branches->options.is_given_up(branches->options.data);
}

static struct kymo_error *launch(struct kymo_branches *branches)
{
	struct kymo_error *error = branches->is_all ? NULL : branch_check_files(branches);
	int err;

	if (error)
		return error;
	err = open_own(branches);
	if (err)
		return kymo_begin_error(err);
	err = kymo_hub_launch(branches->hub, 0, branches->options.command, &branches->pid);
	if (err)
		return kymo_error_errno(err, "cannot run %s", branches->options.command[0]);
	err = branches->options.hardware ? branch_hardware_attach(branches, branches->pid)
					 : branch_steps_attach(branches, branches->pid);
	return err ? kymo_trace_error(branches->pid, err) : NULL;
}

/* What stands in a pad of a recording writes into a ring by a restartable sequence, which no stepped thread gets
 * through. */
static struct kymo_error *check_pads(struct kymo_branches *branches)
{
	kymo_cleanup(kymo_maps_deinit) struct kymo_maps maps = { 0 };
	struct kymo_error *error = kymo_maps_read(branches->pid, &maps);
	bool has = false;

	for (size_t i = 0; i < maps.n; i++)
		has |= kymo_wire_is_own_path(maps.items[i].path);
	kymo_error_destroy(error); /* attaching will say why */
	if (!has)
		return NULL;
	return kymo_error_create(
		KYMO_ERROR_BUSY,
		"process %d has probes of a recording in it, whose code cannot be stepped through: end "
		"that recording ('kymo status' shows it), or take them out with 'kymo detach %d'",
		branches->pid, branches->pid);
}

/* Before anything is attached to: a file that is mapped later may have what is wanted, but a process that runs has
 * mostly mapped what it will. */
static struct kymo_error *check_specs(struct kymo_branches *branches)
{
	struct branch_space *unnumbered = NULL;
	uint32_t number = 0;

	if (branch_spaces_read(&branches->spaces, branches->pid, &number, &unnumbered)) {
		branch_space_destroy(unnumbered);
		return NULL; /* attaching will say why */
	}
	if (!branch_choose(branches, branch_space_of(&branches->spaces, number)))
		return &kymo_error_no_memory;
	return branch_check_met(branches);
}

static struct kymo_error *join_hub(struct kymo_branches *branches)
{
	const struct kymo_reach reach = {
		.hub = &branches->hub,
		.data = branches,
		.open = open_own,
		.attach = attach_process,
		.close = close_hub,
		.is_given_up = is_given_up,
	};
	struct kymo_error *error = branches->options.hardware ? NULL : check_pads(branches);
	int err;

	if (!error && !branches->is_all)
		error = check_specs(branches);
	if (error)
		return error;
	err = kymo_hub_reach(&reach);
	if (err == -EPERM && !branches->hub)
		return kymo_begin_error(err);
	return err ? kymo_trace_error(branches->pid, err) : NULL;
}

/* What is mapped does not change any more, as far as clones go. */
static struct kymo_error *look_at_clones(struct kymo_branches *branches)
{
	branches->hub = branches->options.clones->hub;
	return branches->is_all ? NULL : check_specs(branches);
}

bool kymo_branches_is_chosen(const struct kymo_branches *branches, uint64_t address)
{
	return branches->is_all || branch_is_chosen(branch_space_of(&branches->spaces, 1), address);
}

struct kymo_error *kymo_branches_add_clones(struct kymo_branches *branches, const struct kymo_clones *clones,
					    uint64_t bias, uint32_t first_site)
{
	for (size_t i = 0; i < kymo_clones_n(clones); i++) {
		uint32_t at;
		const struct kymo_clone *clone = kymo_clones_at(clones, i, &at);

		if (!kymo_vec_push(&branches->functions, (struct branch_function){ clone, bias, first_site + at }))
			return &kymo_error_no_memory;
	}
	return NULL;
}

bool kymo_branches_clones_are_to_go(const struct kymo_branches *branches)
{
	return branches->are_clones_to_go;
}

void kymo_branches_clones_have_gone(struct kymo_branches *branches)
{
	branches->are_clones_out = true;
}

struct kymo_error *kymo_branches_open(const struct kymo_branches_options *options, struct kymo_branches **ret)
{
	struct kymo_branches *branches = calloc(1, sizeof(*branches));
	struct kymo_error *error;

	if (!branches)
		return &kymo_error_no_memory;
	branches->options = *options;
	branches->begin_stamp = options->stamp();
	branches->met = calloc(options->n_specs + 1, sizeof(*branches->met));
	branches->named = branch_name_files(options->specs, options->n_specs);
	for (size_t i = 0; i < options->n_specs; i++)
		branches->is_all |= !options->specs[i].file;
	branches->pid = options->command ? 0 : kymo_process_of(options->pid, NULL);
	error = !branches->met || !branches->named ? &kymo_error_no_memory
		: options->clones                  ? look_at_clones(branches)
		: options->command                 ? launch(branches)
						   : join_hub(branches);
	if (error)
		kymo_branches_destroy(branches);
	else
		*ret = branches;
	return error;
}

struct kymo_error *kymo_branches_begin(struct kymo_branches *branches)
{
	const int err = branches->is_begun          ? 0
			: branches->options.clones  ? branch_clones_attach(branches)
			: branches->options.command ? kymo_hub_start(branches->hub, branches->pid)
						    : 0;

	branches->is_begun = true;
	return err ? kymo_trace_error(branches->pid, err) : NULL;
}

/* ---- ending ---------------------------------------------------------------------------------- */

void kymo_branches_end(struct kymo_branches *branches)
{
	int status;

	if (!branches->hub)
		return;
	if (branches->options.clones) {
		branch_clones_detach(branches);
		branches->hub = NULL;
		return;
	}
	if (branches->options.command && branches->pid && !branches->is_begun)
		kymo_hub_kill(branches->hub, branches->pid); /* let go, it would run unrecorded */
	if (branches->options.hardware)
		branch_hardware_detach(branches);
	else
		branch_steps_detach(branches);
	if (!branches->options.command) {
		kymo_hub_destroy(branches->hub);
	} else if (kymo_hub_close(branches->hub, branches->pid, &status)) {
		branches->status = status;
		branches->has_ended = true;
	}
	branches->hub = NULL;
}

void kymo_branches_destroy(struct kymo_branches *branches)
{
	if (!branches)
		return;
	kymo_branches_end(branches);
	branch_threads_deinit(branches);
	branch_spaces_deinit(&branches->spaces);
	kymo_vec_deinit(&branches->functions);
	free(branches->met);
	free(branches->named);
	free(branches);
}

/* ---- what it has ----------------------------------------------------------------------------- */

pid_t kymo_branches_pid(const struct kymo_branches *branches)
{
	return branches->pid;
}

bool kymo_branches_has_threads(const struct kymo_branches *branches)
{
	return branches->n_threads > 0 && !(branches->hub && kymo_hub_failure(branches->hub));
}

uint64_t kymo_branches_taken(const struct kymo_branches *branches)
{
	return branches->n_taken;
}

bool kymo_branches_are_overwritten(const struct kymo_branches *branches)
{
	return branches->is_overwritten;
}

bool kymo_branches_command_ended(const struct kymo_branches *branches, int *status_ret)
{
	if (!branches->options.command || !branches->has_ended)
		return false;
	*status_ret = branches->status;
	return true;
}

struct kymo_error *kymo_branches_check_met(const struct kymo_branches *branches)
{
	return branch_check_met(branches);
}

const char *kymo_branches_warning(struct kymo_branches *branches)
{
	static const char *const sentences[BRANCH_WARNINGS] = {
		[BRANCH_WARNING_THREAD] = "a thread or child process could not be attached to: its branches "
					  "are not recorded",
		[BRANCH_WARNING_BREAKPOINTS] = "some of the chosen functions could not get a breakpoint: what enters "
					       "them from other code is not recorded",
		[BRANCH_WARNING_MEMORY] = "memory was out: some branches are not recorded",
		[BRANCH_WARNING_PAD] = "a thread came to a probe of another recording, whose code cannot be stepped "
				       "through: its branches are not recorded from there on",
		[BRANCH_WARNING_HUB] =
			"the kymo that traced the process, and let this one in, has ended: what came then is not "
			"recorded",
		[BRANCH_WARNING_32_BITS] = "a thread executes 32-bit code: its branches are not recorded, as kymo "
					   "understands 64-bit code only",
		[BRANCH_WARNING_FORGOTTEN] = "the branches of the threads that ended first were dropped: those of all "
					     "ended threads have 256 MiB; a smaller --tail keeps more threads",
		[BRANCH_WARNING_SHORT] = "some threads keep fewer branches than --tail says: those of all threads "
					 "that run have 1 GiB",
		[BRANCH_WARNING_SPACES] = "the program has mapped and unmapped code too often: branches after that "
					  "have addresses and no names",
		[BRANCH_WARNING_FILES] = "the program has mapped too many files: branches in some of them have no "
					 "function names",
		[BRANCH_WARNING_LOST] = "at some places of a history the processor has lost branches, or their code is "
					"not known: what follows is shown as entered anew",
		[BRANCH_WARNING_RECORDER] = "the kernel does not let kymo record some threads: their branches are not "
					    "recorded",
		[BRANCH_WARNING_GAP] = "at some places of a history blocks are missing: what follows is shown as "
				       "entered anew",
	};

	if (branches->hub && branches->n_threads > 0 && kymo_hub_failure(branches->hub))
		branches_warn(branches, BRANCH_WARNING_HUB);
	for (unsigned int i = 0; i < BRANCH_WARNINGS; i++) {
		if (!(branches->warnings & ~branches->told & 1u << i))
			continue;
		branches->told |= 1u << i;
		return sentences[i];
	}
	return NULL;
}

size_t kymo_branches_threads(const struct kymo_branches *branches)
{
	return branches->threads.n;
}

void kymo_branches_thread(const struct kymo_branches *branches, size_t i, struct kymo_branch_thread *ret)
{
	const struct branch_thread *thread = branches->threads.items[i];
	/* It went on after others. */
	const bool is_last = thread->has_ended || !thread->signal;
	const size_t kept = branch_ring_kept(&thread->ring);

	*ret = (struct kymo_branch_thread){
		.tid = thread->tid,
		.pid = thread->process->pid,
		.taken = thread->ring.n - thread->n_anchors,
		.is_overwritten = thread->is_overwritten,
		.kept = kept,
		.has_ended = thread->has_ended,
		.status = thread->status,
		.signal = is_last ? thread->signal : 0,
		.at = thread->at,
		.at_space = thread->at_space,
		.address = thread->address,
	};
	for (size_t k = 0; k < kept && thread->n_anchors; k++)
		ret->n_anchors += branch_ring_at(&thread->ring, k)->kind == KYMO_BRANCH_ANCHOR;
	memcpy(ret->name, thread->name, sizeof(ret->name));
}

const struct kymo_branch *kymo_branches_at(const struct kymo_branches *branches, size_t i, size_t k)
{
	return branch_ring_at(&branches->threads.items[i]->ring, k);
}
