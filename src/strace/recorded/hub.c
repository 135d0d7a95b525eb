/*
 * All threads' engines have the source for their data: the writer knows which thread is in which call.
 *
 * Callbacks run on the hub's thread, or, of a hub that was joined, on one of ours, one at a time. They share the writer
 * and the trace with the recorder's thread, which closes packets now and then: `lock` is for these, and for `error`.
 * No thread calls the hub while it holds it. Engines of strace/engine.c see the same events, and print each call from
 * the memory of its process, with a state for each thread.
 */
#include "strace/recorded/hub.h"

#include <errno.h>
#include <linux/audit.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/cleanup.h"
#include "base/vec.h"
#include "hub/launch.h"
#include "kymo/engine.h"
#include "proc/reach.h"
#include "procfs/info.h"
#include "strace/recorded/writer.h"
#include "syscall/call.h"
#include "syscall/copies.h"
#include "syscall/names.h"
#include "trace/clock.h"

#define SEEN (KYMO_EVENTS_SYSCALL | KYMO_EVENT_CLONE | KYMO_EVENT_EXEC | KYMO_EVENT_DEATH | KYMO_EVENT_REAP)
#define OURS (KYMO_ATTACH_EXCLUSIVE | KYMO_ATTACH_MATCH_OPS | KYMO_ATTACH_MATCH_DATA)

enum { MEMORY_SIZE = UINT16_MAX & ~7 }; /* of a record: wire/copy.h, and room for its length */

struct hub_source {
	struct kymo_call_source base; /* the first member */
	struct kymo_call_source_options options;
	struct kymo_hub *hub;
	pid_t pid; /* the command, or the process */
	bool is_command;
	_Atomic int n_threads;  /* with an engine of ours, that have not ended */
	_Atomic int status;     /* the command's */
	_Atomic bool has_ended; /* the command */
	_Atomic int missed;     /* why a child is not followed, a positive errno; or 0 */
	_Atomic bool has_i386;  /* 32-bit calls were seen */
	bool told_missed;
	bool is_shared; /* others are connected to the hub, which is of this process, at the end */
	pthread_mutex_t lock;
	struct strace_writer *writer;
	struct kymo_trace *output; /* NULL: nothing is recorded, not yet or not any more */
	struct kymo_error *error;  /* why not any more */
	/* Of callbacks alone. */
	uint64_t last_tsc;
	KYMO_VEC(pid_t) executed; /* threads that have begun another program, and have yet to leave execve */
	uint8_t memory[MEMORY_SIZE];
};

/* ---- records --------------------------------------------------------------------------------- */

/* Later than the last one: records of one stream are in this order. */
static uint64_t stamp(struct hub_source *source)
{
	const uint64_t now = kymo_clock_tsc();

	source->last_tsc = now > source->last_tsc ? now : source->last_tsc + 1;
	return source->last_tsc;
}

/* What changes a thread's name is seen where it does so itself. */
static bool may_be_renamed(const struct kymo_kernel_call *call)
{
	return call->event == KYMO_KERNEL_CALL_LEFT &&
	       (call->number == SYS_prctl || kymo_syscall_replaces_memory(call->number));
}

static void record(struct hub_source *source, struct kymo_kernel_call *call, uint64_t tsc)
{
	bool is_known, is_renamed = may_be_renamed(call);
	char name[16];

	pthread_mutex_lock(&source->lock);
	if (source->output && !source->error) {
		is_known = strace_writer_knows(source->writer, call->tid, call->pid);
		if (is_renamed || !is_known) {
			kymo_read_comm(call->tid, name);
			call->name = *name ? name : NULL;
		}
		if (call->event == KYMO_KERNEL_CALL_ENDED || strace_writer_wants(source->writer, call->number))
			source->error = strace_writer_add(source->writer, source->output, call, tsc);
		else if (is_known && is_renamed)
			source->error = strace_writer_rename(source->writer, source->output, call, tsc);
	}
	pthread_mutex_unlock(&source->lock);
}

static int recorded_read_memory(void *context, uint64_t address, void *out, size_t size)
{
	return kymo_engine_read(context, address, out, size);
}

/* Structures of 32-bit programs are laid out otherwise: those are recorded without memory. */
static void copy_memory(struct hub_source *source, struct kymo_engine *engine, struct kymo_kernel_call *call,
			bool is_leaving)
{
	struct kymo_copying copying = {
		.args = call->args,
		.stack_pointer = call->stack_pointer,
		.result = call->result,
		.read = recorded_read_memory,
		.context = engine,
		.bytes = source->memory,
		.capacity = sizeof(source->memory),
	};
	struct kymo_copy copies[KYMO_COPIES_MAX];

	kymo_copies_make(&copying, copies,
			 kymo_syscall_copies(call->number, is_leaving, source->options.string_size, copies));
	call->copies = (struct kymo_copies){ source->memory, copying.size };
}

static bool take_executed(struct hub_source *source, pid_t tid)
{
	for (size_t i = 0; i < source->executed.n; i++) {
		if (source->executed.items[i] != tid)
			continue;
		source->executed.items[i] = source->executed.items[--source->executed.n];
		return true;
	}
	return false;
}

/* After an exec the report is that of the new program, and may be another architecture's than the call was. */
static uint64_t number_of(struct hub_source *source, const struct kymo_syscall_report *report, pid_t tid,
			  bool is_leaving)
{
	enum { I386_EXECVE = 11 };

	if (is_leaving && take_executed(source, tid))
		return report->number == SYS_execve || report->number == I386_EXECVE ? SYS_execve : SYS_execveat;
	return report->arch == AUDIT_ARCH_I386 ? kymo_syscall_from_i386(report->number) : report->number;
}

static void see_call(struct hub_source *source, struct kymo_engine *engine, const struct kymo_syscall_report *report,
		     bool is_leaving)
{
	const uint64_t tsc = stamp(source);
	struct kymo_kernel_call call = {
		.event = is_leaving ? KYMO_KERNEL_CALL_LEFT : KYMO_KERNEL_CALL_ENTERED,
		.tid = kymo_engine_tid(engine),
		.pid = kymo_engine_pid(engine),
		.stack_pointer = report->sp,
		.result = is_leaving ? report->result : 0,
	};
	bool is_wanted;

	call.number = number_of(source, report, call.tid, is_leaving);
	memcpy(call.args, report->args, sizeof(call.args));
	is_wanted = strace_writer_wants(source->writer, call.number);
	if (is_wanted && report->arch == AUDIT_ARCH_I386)
		source->has_i386 = true;
	else if (is_wanted)
		copy_memory(source, engine, &call, is_leaving);
	if (is_wanted || may_be_renamed(&call))
		record(source, &call, tsc);
}

/* ---- callbacks ------------------------------------------------------------------------------- */

static unsigned int recorded_on_entry(struct kymo_engine *engine, void *data, enum kymo_action action,
				      const struct kymo_syscall_report *report)
{
	see_call(data, engine, report, false);
	return KYMO_ACTION_RESUME | KYMO_SYSCALL_RUN;
}

/* A call whose entry was not reported has begun before, or a child returns from its parent's call. */
static unsigned int recorded_on_exit_of_call(struct kymo_engine *engine, void *data, enum kymo_action action,
					     const struct kymo_syscall_report *report)
{
	if (report->is_entry_known)
		see_call(data, engine, report, true);
	else
		take_executed(data, kymo_engine_tid(engine));
	return KYMO_ACTION_RESUME;
}

static int attach_thread(struct hub_source *source, pid_t tid);

static unsigned int recorded_on_clone(struct kymo_engine *engine, void *data, enum kymo_action action,
				      const struct kymo_clone_report *report)
{
	struct hub_source *source = data;
	int err;

	if (report->kind != KYMO_CLONE_THREAD && !source->options.follow)
		return KYMO_ACTION_RESUME;
	err = attach_thread(source, report->child);
	if (err && err != -ESRCH && err != -EEXIST)
		source->missed = -err;
	return KYMO_ACTION_RESUME;
}

static unsigned int recorded_on_exec(struct kymo_engine *engine, void *data, enum kymo_action action,
				     const struct kymo_exec_report *report)
{
	struct hub_source *source = data;

	kymo_vec_push(&source->executed,
		      kymo_engine_tid(engine)); /* where memory is out the number is the new architecture's */
	return KYMO_ACTION_RESUME;
}

static unsigned int recorded_on_death(struct kymo_engine *engine, void *data, const struct kymo_death_report *report)
{
	struct hub_source *source = data;
	struct kymo_kernel_call end = { .event = KYMO_KERNEL_CALL_ENDED,
					.tid = kymo_engine_tid(engine),
					.pid = kymo_engine_pid(engine) };

	take_executed(source, end.tid);
	record(source, &end, stamp(source));
	return KYMO_ACTION_RESUME;
}

static void recorded_on_reap(struct kymo_engine *engine, void *data, const struct kymo_reap_report *report)
{
	struct hub_source *source = data;

	source->n_threads--;
	if (report->superseded_by || kymo_engine_tid(engine) != source->pid)
		return;
	source->status = report->status;
	source->has_ended = true;
}

static const struct kymo_engine_ops engine_ops = {
	.size = sizeof(engine_ops),
	.clone = recorded_on_clone,
	.exec = recorded_on_exec,
	.syscall_entry = recorded_on_entry,
	.syscall_exit = recorded_on_exit_of_call,
	.death = recorded_on_death,
	.reap = recorded_on_reap,
};

/* ---- whose calls ----------------------------------------------------------------------------- */

/* A negative errno of kymo_engine_attach(). */
static int attach_thread(struct hub_source *source, pid_t tid)
{
	struct kymo_engine *engine;
	int err;

	err = kymo_engine_attach(source->hub, tid, KYMO_ATTACH_CREATE | OURS, &engine_ops, source, &engine);
	if (err)
		return err;
	source->n_threads++; /* it is not told its end before it has a mask */
	err = kymo_engine_set_events(engine, SEEN);
	if (err) {
		source->n_threads--;
		kymo_engine_control(engine, KYMO_ACTION_DETACH);
	}
	kymo_engine_put(engine);
	return err == -EALREADY ? -ESRCH : err;
}

static int recorded_open_own(void *data)
{
	struct hub_source *source = data;
	int err = kymo_hub_create(&source->hub);

	if (!err)
		kymo_hub_serve(source->hub); /* if that is not possible, later tracers are told that the process is
						being traced */
	return err;
}

static int attach_process(void *data, pid_t *busy_ret)
{
	struct hub_source *source = data;
	size_t n;
	int err = kymo_engine_attach_process(source->hub, source->pid, OURS, &engine_ops, source, SEEN, &n);

	if (!err)
		source->n_threads += (int)n;
	if (err == -EBUSY)
		*busy_ret = kymo_traced_thread(source->pid);
	return err;
}

static void recorded_close_hub(void *data)
{
	struct hub_source *source = data;

	kymo_hub_destroy(source->hub);
	source->hub = NULL;
	source->n_threads = 0;
}

static bool recorded_is_given_up(void *data)
{
	const struct hub_source *source = data;

	return *source->options.stop;
}

static struct kymo_error *recorded_launch_command(struct hub_source *source, char *const *command)
{
	int err = recorded_open_own(source);

	if (err)
		return kymo_begin_error(err);
	err = kymo_hub_launch(source->hub, 0, command, &source->pid);
	if (err)
		return kymo_error_errno(err, "cannot run %s", command[0]);
	err = attach_thread(source, source->pid);
	return err ? kymo_trace_error(source->pid, err) : NULL;
}

static struct kymo_error *join_tree(struct hub_source *source)
{
	const struct kymo_reach reach = {
		.hub = &source->hub,
		.data = source,
		.open = recorded_open_own,
		.attach = attach_process,
		.close = recorded_close_hub,
		.is_given_up = recorded_is_given_up,
	};
	int err = kymo_hub_reach(&reach);

	if (err == -EPERM && !source->hub)
		return kymo_begin_error(err);
	return err ? kymo_trace_error(source->pid, err) : NULL;
}

/* ---- the source ------------------------------------------------------------------------------ */

static struct kymo_error *begin_calls(struct kymo_call_source *calls, struct kymo_trace *output)
{
	struct hub_source *source = (struct hub_source *)calls;
	int err;

	pthread_mutex_lock(&source->lock);
	source->output = output;
	pthread_mutex_unlock(&source->lock);
	err = source->is_command ? kymo_hub_start(source->hub, source->pid) : 0;
	return err ? kymo_trace_error(source->pid, err) : NULL;
}

static void warn_missing(const struct hub_source *source, const char *sentence)
{
	if (source->options.warn)
		source->options.warn(sentence, source->options.data);
}

static void tell_missed(struct hub_source *source)
{
	char sentence[200];

	if (source->missed && !source->told_missed) {
		source->told_missed = true;
		snprintf(sentence, sizeof(sentence), "a child could not be followed (%s): its calls are not recorded",
			 strerror(source->missed));
		warn_missing(source, sentence);
	}
	if (source->has_i386)
		strace_writer_tell_i386(source->writer);
}

/* The hub that was joined may have ended, or have let go of us. */
static struct kymo_error *check_hub(const struct hub_source *source)
{
	const int err = source->n_threads > 0 ? kymo_hub_failure(source->hub) : 0;

	if (!err)
		return NULL;
	return kymo_error_create(KYMO_ERROR_GONE, "what process %d did from here on is not recorded: %s", source->pid,
				 err == -ETIMEDOUT ? "this kymo was too slow for the kymo process that traces it"
						   : "the kymo that traced it, and let this one in, has ended");
}

static struct kymo_error *take_error(struct hub_source *source)
{
	struct kymo_error *error;

	pthread_mutex_lock(&source->lock);
	error = source->error;
	if (error)
		source->output = NULL;
	source->error = NULL;
	pthread_mutex_unlock(&source->lock);
	return error;
}

/* Records are written as they are made. */
static struct kymo_error *drain_calls(struct kymo_call_source *calls, struct kymo_trace *output, bool *is_empty_ret)
{
	struct hub_source *source = (struct hub_source *)calls;
	struct kymo_error *error = take_error(source);

	*is_empty_ret = true;
	tell_missed(source);
	return error ? error : check_hub(source);
}

static struct kymo_error *flush_calls(struct kymo_call_source *calls, struct kymo_trace *output)
{
	struct hub_source *source = (struct hub_source *)calls;
	struct kymo_error *error = NULL;

	pthread_mutex_lock(&source->lock);
	if (source->output && !source->error)
		error = strace_writer_flush(source->writer, output);
	pthread_mutex_unlock(&source->lock);
	return error;
}

/* A command may end until it is no longer traced; after that the caller waits for it. A hub that others have joined
 * stays for them. */
static void let_go(struct hub_source *source)
{
	int status;

	kymo_engine_detach_all(source->hub, &engine_ops, source);
	source->is_shared = kymo_hub_hand_over(source->hub, -1, 0) == -EAGAIN;
	if (!source->is_command || source->is_shared)
		return;
	if (kymo_hub_close(source->hub, source->pid, &status)) {
		source->status = status;
		source->has_ended = true;
	}
	source->hub = NULL;
}

static struct kymo_error *finish_calls(struct kymo_call_source *calls, struct kymo_trace *output)
{
	struct hub_source *source = (struct hub_source *)calls;
	struct kymo_error *error;

	let_go(source);
	tell_missed(source);
	pthread_mutex_lock(&source->lock);
	error = source->error;
	source->error = NULL;
	if (!error && source->output)
		error = strace_writer_finish(source->writer, output, 0);
	source->output = NULL; /* threads that were slow to be detached report nothing more */
	pthread_mutex_unlock(&source->lock);
	return error;
}

static struct kymo_hub *share(struct kymo_call_source *calls)
{
	struct hub_source *source = (struct hub_source *)calls;

	return source->is_shared ? kymo_take(source->hub) : NULL;
}

static uint64_t lost(const struct kymo_call_source *calls)
{
	return 0;
}

static bool has_processes(const struct kymo_call_source *calls)
{
	return ((const struct hub_source *)calls)->n_threads > 0;
}

static bool command_ended(const struct kymo_call_source *calls, int *status_ret)
{
	const struct hub_source *source = (const struct hub_source *)calls;

	if (!source->is_command || !source->has_ended)
		return false;
	*status_ret = source->status;
	return true;
}

static void destroy_calls(struct kymo_call_source *calls)
{
	struct hub_source *source = (struct hub_source *)calls;

	kymo_hub_destroy(source->hub);
	strace_writer_destroy(source->writer);
	kymo_error_destroy(source->error);
	kymo_vec_deinit(&source->executed);
	pthread_mutex_destroy(&source->lock);
	free(source);
}

static const struct kymo_call_source_ops ops = {
	.begin = begin_calls,
	.drain = drain_calls,
	.flush = flush_calls,
	.finish = finish_calls,
	.lost = lost,
	.has_processes = has_processes,
	.command_ended = command_ended,
	.share = share,
	.destroy = destroy_calls,
};

/* The writer exists before any thread runs: engines ask it. */
static struct kymo_error *set_up_hub(struct hub_source *source, char *const *command)
{
	struct kymo_error *error = NULL;

	if (command)
		error = recorded_launch_command(source, command);
	source->options.pid = source->pid;
	if (!error)
		error = strace_writer_create(&source->options, strace_writer_buffer(&source->options), &source->writer);
	return error || command ? error : join_tree(source);
}

struct kymo_error *kymo_call_source_open_hub(const struct kymo_call_source_options *options, char *const *command,
					     pid_t *pid_ret, struct kymo_call_source **ret)
{
	struct hub_source *source = calloc(1, sizeof(*source));
	struct kymo_error *error;

	if (!source)
		return &kymo_error_no_memory;
	source->base.ops = &ops;
	source->options = *options;
	source->options.is_command = source->is_command = command;
	source->pid =
		command ? 0
			: kymo_process_of(options->pid,
					  NULL); /* as for other ways, the id of any thread stands for its process */
	pthread_mutex_init(&source->lock, NULL);
	error = set_up_hub(source, command);
	if (error) {
		destroy_calls(&source->base);
		return error;
	}
	*pid_ret = source->pid;
	*ret = &source->base;
	return NULL;
}
