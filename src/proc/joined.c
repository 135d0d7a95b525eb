/*
 * The recorder's side of a freeze. The connection lives as long as the process is frozen. So whether the recorder
 * resumes the process, is killed, or sleeps for too long: the hub ends the freeze when the connection ends.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "arch/remote.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/io.h"
#include "base/page.h"
#include "base/vec.h"
#include "hub/freeze/freeze.h"
#include "hub/remote/client_calls.h"
#include "hub/remote/message.h"
#include "hub/remote/socket.h"
#include "hub/state.h"
#include "hub/thread/tracee.h"
#include "kymo/engine.h"
#include "proc/home.h"
#include "proc/joined.h"
#include "proc/request.h"
#include "proc/start_stub.h"
#include "proc/state.h"
#include "proc/thread.h"
#include "procfs/info.h"
#include "procfs/threads.h"

#define STOP_TIMEOUT_MS 2000

bool kymo_can_join(pid_t tracer)
{
	int socket;

	if (hub_socket_dial(tracer, &socket))
		return false;
	close(socket);
	return true;
}

static void destroy_joined(struct kymo_joined *joined)
{
	if (joined->owner)
		hub_freeze_drop(joined->owner);
	kymo_hub_destroy(joined->hub);
	kymo_vec_deinit(&joined->held);
	free(joined);
}

/* ---- stopping -------------------------------------------------------------------------------- */

static struct kymo_error *not_joined(const struct kymo_process *process, pid_t tracer, int err)
{
	char comm[16];

	return kymo_error_create(
		KYMO_ERROR_BUSY,
		"process %d is being traced by process %d, which lets no other tracer in (%s); detach it first",
		process->pid, kymo_process_of(tracer, comm),
		err == -EPROTO      ? "it is a kymo of another version"
		: err == -EPERM     ? "it is another user's"
		: err == -ETIMEDOUT ? "it does not answer"
				    : "it has just ended, or has too many clients");
}

struct kymo_error *kymo_not_seized(pid_t pid, int err)
{
	enum kymo_error_code code = err == -EBUSY || err == -EAGAIN ? KYMO_ERROR_BUSY
				    : err == -ESRCH                 ? KYMO_ERROR_GONE
				    : err == -EPERM                 ? KYMO_ERROR_PERMISSION
								    : KYMO_ERROR_FAILED;
	char text[512];

	kymo_hub_explain(err == -EBUSY ? kymo_traced_thread(pid) : pid, err, text, sizeof(text));
	return kymo_error_create(code, "%s", text);
}

/* By the hub of this thread, for a reason that has nothing to do with its clients. */
static struct kymo_error *not_stopped(struct kymo_process *process, int err, pid_t *busy_ret)
{
	if (!process->owner->takes || (err != -EBUSY && err != -EPERM))
		return kymo_error_errno(err, "cannot stop process %d", process->pid);
	if (busy_ret)
		*busy_ret = err == -EBUSY ? kymo_traced_thread(process->pid) : 0;
	return kymo_not_seized(process->pid, err);
}

static struct kymo_error *did_not_stop(struct kymo_process *process, pid_t tid)
{
	kymo_cleanup_free char *where = NULL;
	char name[64], state = kymo_thread_state(process->pid, tid);

	snprintf(name, sizeof(name), "/proc/%d/task/%d/wchan", process->pid, tid);
	if (kymo_read_file(AT_FDCWD, name, 4096, &where, NULL))
		where = NULL;
	return kymo_error_create(KYMO_ERROR_BUSY,
				 "thread %d of process %d did not stop within %d s (state %c%s%s: uninterruptible "
				 "sleep, or waiting for a vfork child); nothing was changed, try again later",
				 tid, process->pid, STOP_TIMEOUT_MS / 1000, state, where && *where ? ", in " : "",
				 where ? where : "");
}

static struct kymo_error *freeze_failed(struct kymo_process *process, pid_t tracer, const struct hub_message *reply,
					int err, pid_t *busy_ret)
{
	bool is_own = process->joined->owner;

	switch (err) {
	case -EBUSY:
		if (is_own && process->owner->takes)
			return not_stopped(process, err, busy_ret);
		return kymo_error_create(KYMO_ERROR_BUSY,
					 "process %d is being changed by another recorder, or another tracer than "
					 "process %d traces one of its threads; try again later",
					 process->pid, tracer);
	case -EAGAIN:
		return kymo_error_create(KYMO_ERROR_BUSY,
					 "thread %d of process %d is held by another client of its tracer, process %d, "
					 "at a system call or before a signal; try again later",
					 reply->tid, process->pid, tracer);
	case -ETIMEDOUT:
		return did_not_stop(process, reply->tid);
	case -EPIPE:
		return kymo_request_lost(process);
	default:
		if (is_own)
			return not_stopped(process, err, busy_ret);
		return kymo_error_errno(err, "process %d could not be stopped by process %d, which traces it",
					process->pid, tracer);
	}
}

/* All threads that the hub has frozen, in messages of as many as have room. */
static int read_held(struct kymo_joined *joined)
{
	kymo_cleanup_free struct hub_held *part = malloc(HUB_HELD_MAX * sizeof(*part));
	size_t n;

	if (!part)
		return -ENOMEM;
	do {
		struct hub_message message = { .type = HUB_HELD,
					       .word = joined->held.n,
					       .size = HUB_HELD_MAX * sizeof(*part) };
		int err = kymo_request(joined, &message, part);

		if (err)
			return err;
		for (n = 0; n < HUB_HELD_MAX && part[n].tid > 0; n++)
			if (!kymo_vec_push(&joined->held, part[n]))
				return -ENOMEM;
	} while (n == HUB_HELD_MAX);
	return joined->held.n ? 0 : -ESRCH;
}

/* The hub tells of those that are new first; here, as in /proc, the first thread is in front. */
static struct kymo_error *take_over(struct kymo_process *process)
{
	for (size_t i = process->joined->held.n; i-- > 0;) {
		const struct hub_held *held = &process->joined->held.items[i];
		struct kymo_thread thread = { .tid = held->tid, .registers = held->registers };

		if (!kymo_vec_push(&process->threads, thread))
			return &kymo_error_no_memory;
	}
	return NULL;
}

static void forget(struct kymo_process *process, pid_t tid)
{
	struct kymo_thread *thread = kymo_find_thread(process, tid);

	if (thread)
		*thread = process->threads.items[--process->threads.n];
}

/* Threads in which a recorder that is gone has left a remote call. */
static struct kymo_error *bring_all_home(struct kymo_process *process)
{
	for (size_t i = process->threads.n; i-- > 0;) {
		pid_t tid = process->threads.items[i].tid;
		struct kymo_error *error = kymo_remote_may_be_away(&process->threads.items[i].registers)
						   ? kymo_bring_home(process, tid)
						   : NULL;

		if (error && error->code != KYMO_ERROR_GONE)
			return error;
		if (error)
			forget(process, tid);
		kymo_error_destroy(error);
	}
	return NULL;
}

static struct kymo_error *freeze(struct kymo_process *process, pid_t tracer, pid_t second, bool *joined_ret,
				 pid_t *busy_ret)
{
	struct hub_message message = { .type = HUB_FREEZE,
				       .tid = process->pid,
				       .flags = second ? HUB_FREEZE_FIRST : 0,
				       .word = (uint64_t)second };
	struct kymo_error *error;
	int err;

	err = kymo_request(process->joined, &message, NULL);
	*joined_ret = err != -ENOENT; /* it has let go of the process meanwhile */
	if (err == -ENOENT)
		return NULL;
	if (err >= 0)
		err = read_held(process->joined);
	if (err == -ESRCH)
		return kymo_error_create(KYMO_ERROR_GONE,
					 second ? "the first thread of process %d has ended" : "process %d has ended",
					 process->pid);
	if (err)
		return freeze_failed(process, tracer, &message, err, busy_ret);
	error = take_over(process);
	return error ? error : bring_all_home(process);
}

struct kymo_error *kymo_joined_stop(struct kymo_process *process, pid_t second, bool *joined_ret)
{
	pid_t tracer = kymo_other_tracer(kymo_live_thread(process->pid));
	struct kymo_error *error;
	struct kymo_hub *hub;
	int err = tracer ? hub_connect_to(tracer, &hub) : -ENOENT;

	*joined_ret = err != -ENOENT;
	if (err == -ENOENT)
		return NULL;
	if (err)
		return not_joined(process, tracer, err);
	process->joined = calloc(1, sizeof(*process->joined));
	if (!process->joined) {
		kymo_hub_destroy(hub);
		return &kymo_error_no_memory;
	}
	process->joined->hub = hub;
	error = freeze(process, tracer, second, joined_ret, NULL);
	if (error || !*joined_ret)
		kymo_joined_resume(process);
	else if (process->state != PROCESS_PAST)
		kymo_process_set_state(process, PROCESS_STOPPED);
	return error;
}

struct kymo_error *kymo_joined_freeze(struct kymo_process *process, pid_t second, pid_t *busy_ret)
{
	struct kymo_error *error;
	bool is_there;

	if (!kymo_process_is_stopped(process))
		kymo_process_forget(process);
	if (process->state == PROCESS_COMPLETE)
		kymo_process_set_state(process, PROCESS_STOPPED);
	if (!process->joined)
		process->joined = calloc(1, sizeof(*process->joined));
	if (!process->joined)
		return &kymo_error_no_memory;
	process->joined->owner = process->owner;
	process->joined->held.n = process->threads.n = 0;
	error = freeze(process, gettid(), second, &is_there, busy_ret);
	if (error || !is_there)
		kymo_process_set_running(process);
	else if (process->state != PROCESS_PAST)
		kymo_process_set_state(process, PROCESS_STOPPED);
	if (kymo_process_is_stopped(process) && process->startup.stub != STUB_IS_OUT)
		kymo_start_stub_take(process);
	if (!error && !is_there)
		error = kymo_error_create(KYMO_ERROR_GONE, "process %d has ended", process->pid);
	return error;
}

void kymo_joined_resume(struct kymo_process *process)
{
	struct kymo_joined *joined = process->joined;

	kymo_process_forget(process);
	process->joined = NULL;
	process->threads.n = 0;
	kymo_process_set_running(process);
	destroy_joined(joined);
}
