#include "record/recording.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe/code/events.h"
#include "proc/process.h"
#include "proc/tree.h"
#include "record/aggregate.h"
#include "record/beside.h"
#include "record/branch_writer.h"
#include "record/kernel.h"
#include "record/mixed.h"
#include "record/stacks.h"
#include "record/targets.h"
#include "strace/recorded/source.h"
#include "trace/kernel_stream.h"

static const struct recording_run not_begun = { .go = -1 };

/* Those of branches come first: their ids are known. */
static struct kymo_error *create_events(struct recording *recording)
{
	struct kymo_error *error = kymo_events_create(&recording->run.events);

	return error || !recording_is_beside(recording) ? error : branch_writer_describe(recording->run.events);
}

struct kymo_error *recording_init(const struct kymo_record_options *options, struct recording *ret)
{
	*ret = (struct recording){
		.wanted.options = options,
		.run = not_begun,
		.output.begin = kymo_clock_sample(),
	};
	return create_events(ret);
}

void recording_end_run(struct recording *recording)
{
	struct recording_run *run = &recording->run;
	struct kymo_process *process = run->process;

	beside_destroy(recording);
	if (run->targets.n)
		process = NULL; /* it is among them */
	while (run->targets.n)
		kymo_error_destroy(recording_drop_target(recording, run->targets.items[0]));
	kymo_call_source_destroy(run->calls);
	recording_kernel_destroy(run->kernel);
	kymo_kernel_pool_destroy(run->pool);
	kymo_process_destroy(process);
	if (run->go >= 0)
		close(run->go);
	kymo_tree_destroy(run->tree);
	kymo_events_destroy(run->events);
	free(run->lacking);
	kymo_vec_deinit(&run->targets);
	kymo_vec_deinit(&run->sources);
	kymo_error_destroy(run->drain_error);
	*run = not_begun;
}

/* All but the files. */
static void end_output(struct recording *recording)
{
	aggregate_end(recording);
	stacks_end(recording);
	kymo_vec_deinit(&recording->output.described);
}

static void end_warnings(struct recording *recording)
{
	recording_release_warnings(recording, false);
	kymo_vec_deinit(&recording->warnings.told);
}

void recording_deinit(struct recording *recording)
{
	struct recording_wanted *wanted = &recording->wanted;

	recording_end_run(recording);
	end_output(recording);
	if (recording->output.exists)
		kymo_trace_deinit(&recording->output.files);
	for (size_t i = 0; wanted->reasons && i < wanted->options->n_specs; i++)
		free(wanted->reasons[i]);
	free(wanted->reasons);
	free(wanted->specs);
	kymo_error_destroy(wanted->refusal);
	end_warnings(recording);
}

struct kymo_error *recording_begin_anew(struct recording *recording, enum kymo_record_backend backend)
{
	struct recording_output *output = &recording->output;
	const bool exists = output->exists;
	struct kymo_error *error;

	recording_release_warnings(recording, false);
	recording_end_command(recording);
	output->exists = false; /* nothing is written of the attempt */
	recording_end_run(recording);
	end_output(recording);
	end_warnings(recording);
	*output = (struct recording_output){ .files = output->files, .exists = exists, .begin = output->begin };
	recording->result = (struct kymo_record_result){ 0 };
	recording->wanted.backend = backend;
	if (exists)
		kymo_trace_restart(&output->files);
	error = create_events(recording);
	if (!error)
		error = aggregate_begin(recording);
	if (!error)
		error = stacks_begin(recording);
	return error ? error : recording_divide(recording);
}

void recording_end_command(struct recording *recording)
{
	struct recording_run *run = &recording->run;
	int status;

	if (run->child && !run->has_begun) {
		close(run->go);
		run->go = -1;
		waitpid(run->child, &status, 0);
	}
	if (!run->process || !recording->wanted.options->command || run->has_begun ||
	    kymo_process_ended(run->process, &status))
		return;
	kymo_process_kill(run->process);
}
