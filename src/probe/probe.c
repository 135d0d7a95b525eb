#include "probe/probe.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "arch/plan.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/vec.h"
#include "probe/install/remove.h"
#include "probe/memory/recorders.h"
#include "probe/memory/sessions.h"
#include "proc/left_stub.h"
#include "proc/memory.h"
#include "proc/process.h"
#include "proc/stop.h"
#include "procfs/info.h"
#include "procfs/maps.h"
#include "wire/clones.h"

#define RECORDER_PATIENCE 500 /* times 10 ms */

/* ---- detach ---------------------------------------------------------------------------------- */

/* Ask a live recorder to end its recording; it takes its probes out itself. */
static struct kymo_error *end_recorder(const struct kymo_session *session, pid_t pid, pid_t *ended_ret)
{
	const pid_t recorder = kymo_session_recorder(session, pid);
	kymo_cleanup_close int pidfd = recorder > 0 ? (int)syscall(SYS_pidfd_open, recorder, 0) : -1;

	if (recorder == KYMO_RECORDER_ELSEWHERE)
		return kymo_error_create(KYMO_ERROR_BUSY,
					 "process %d is recorded from another PID namespace; end that recorder, or run "
					 "'kymo detach' there or on the host",
					 pid);
	/* Looked at again, now that the number cannot come to mean another process. */
	if (!recorder || kymo_session_recorder(session, pid) != recorder)
		return NULL;
	if (!kymo_session_knows_recorder(session, recorder))
		return kymo_error_create(
			KYMO_ERROR_PERMISSION,
			"process %d is being recorded by kymo process %d, which cannot be told to stop: you may not "
			"look at the latter, and all that says that it is a recorder is process %d",
			pid, recorder, pid);
	if (syscall(SYS_pidfd_send_signal, pidfd, SIGTERM, NULL, 0) && errno != ESRCH)
		return kymo_error_errno(errno,
					"process %d is being recorded by kymo process %d, which cannot be told to stop",
					pid, recorder);
	for (int i = 0; i < RECORDER_PATIENCE && kymo_session_has_recorder(session, pid); i++)
		nanosleep(&(struct timespec){ 0, 10000000 }, NULL);
	if (kymo_session_has_recorder(session, pid))
		return kymo_error_create(
			KYMO_ERROR_BUSY,
			"kymo process %d, which records process %d, does not end; end it and try again", recorder, pid);
	*ended_ret = recorder;
	return NULL;
}

/* All that live. */
static struct kymo_error *end_recorders(const struct kymo_session_list *list, pid_t pid,
					struct kymo_detach_result *result)
{
	struct kymo_error *error = NULL;

	result->recorders = calloc(list->n + 1, sizeof(*result->recorders));
	if (!result->recorders)
		return &kymo_error_no_memory;
	for (size_t i = 0; i < list->n && !error; i++) {
		if (kymo_session_has_recorder(&list->items[i], pid))
			error = end_recorder(&list->items[i], pid, &result->recorders[result->n_recorders]);
		result->n_recorders += result->recorders[result->n_recorders] != 0;
	}
	return error;
}

/*
 * What is there; if there is nothing. Threads that worked for a dead recorder may have come home by it (a stop that
 * fails brings no thread home). A thread that makes a system call for a dead recorder does not sleep in it.
 */
static struct kymo_error *read_sessions(struct kymo_process *process, struct kymo_session_list *ret)
{
	struct kymo_error *error = kymo_sessions_read(process, ret);

	if (error || ret->n || ret->has_strays || !kymo_has_awake_thread(kymo_process_pid(process)))
		return error;
	kymo_sessions_deinit(ret);
	kymo_error_destroy(kymo_process_stop(process));
	kymo_process_resume(process);
	return kymo_sessions_read(process, ret);
}

struct kymo_error *kymo_detach(pid_t pid, struct kymo_detach_result *ret)
{
	struct kymo_process *process = NULL;
	struct kymo_session_list list = { .n = 0 };
	struct kymo_detach_result ended = { .n_recorders = 0 };
	struct kymo_error *error = kymo_process_open(pid, &process);
	bool had_stub = false;

	if (!error)
		error = kymo_start_clear(process, &had_stub);
	if (!error)
		error = read_sessions(process, &list);
	if (!error && !list.n && !list.has_strays && !had_stub)
		error = kymo_error_create(KYMO_ERROR_NOT_FOUND, "process %d has no kymo probes", pid);
	if (!error)
		error = end_recorders(&list, pid, &ended);
	if (!error)
		error = kymo_remove(process, 0, ret);
	if (error) {
		free(ended.recorders);
	} else {
		ret->recorders = ended.recorders;
		ret->n_recorders = ended.n_recorders;
		ret->sites_restored += had_stub;
	}
	kymo_sessions_deinit(&list);
	kymo_process_destroy(process);
	return error;
}

/* ---- status ---------------------------------------------------------------------------------- */

static void copy_site(const struct kymo_wire_site *from, struct kymo_status_site *ret)
{
	ret->address = from->address;
	ret->event_id = from->event_id;
	snprintf(ret->name, sizeof(ret->name), "%.*s", (int)sizeof(ret->name) - 1, from->name);
	snprintf(ret->tactic, sizeof(ret->tactic), "%s",
		 from->tactic < KYMO_N_TACTICS ? kymo_tactic_name((enum kymo_tactic)from->tactic) : "?");
}

/* What the recorder lets threads have. It is the target's word. */
static uint64_t ring_bytes(struct kymo_process *process, const struct kymo_session *session)
{
	struct kymo_wire_arena arena;
	const uint64_t address = session->header.arena_address;

	if (!address || kymo_process_read(process, address, &arena, sizeof(arena)))
		return 0;
	return (uint64_t)(arena.ready < KYMO_WIRE_ARENA_RINGS ? arena.ready : KYMO_WIRE_ARENA_RINGS) *
	       KYMO_WIRE_ARENA_RING_SIZE;
}

static struct kymo_error *fill_status(pid_t pid, struct kymo_process *process, const struct kymo_session *session,
				      struct kymo_status *ret)
{
	struct kymo_status status = { .pid = pid };
	struct kymo_process_info info;
	struct kymo_error *error = kymo_process_info(pid, &info);

	if (error)
		return error;
	snprintf(status.comm, sizeof(status.comm), "%s", info.comm);
	snprintf(status.directory, sizeof(status.directory), "%s", session->header.directory);
	status.recorder = kymo_session_recorder(session, pid);
	status.started_wall_ns = session->header.started_wall_ns;
	status.recorded_bytes = session->header.recorded_bytes;
	status.lost_events = session->header.lost_events;
	status.sites = calloc(session->n_sites ? session->n_sites : 1, sizeof(*status.sites));
	if (!status.sites)
		return &kymo_error_no_memory;
	/* Those behind are in the journal already, and not in the text yet. */
	for (size_t i = 0; i < session->n_sites && i < session->header.n_installed; i++) {
		status.n_catches += session->sites[i].flags & KYMO_WIRE_CATCH && session->sites[i].patch_size;
		if (session->sites[i].event_id) /* guards, evicted instructions and catches have none */
			copy_site(&session->sites[i], &status.sites[status.n_sites++]);
	}
	status.ring_bytes = ring_bytes(process, session);
	*ret = status;
	return NULL;
}

struct kymo_error *kymo_status(pid_t pid, struct kymo_status **ret, size_t *n_ret)
{
	struct kymo_process *process = NULL;
	struct kymo_session_list list = { .n = 0 };
	struct kymo_error *error = kymo_process_look(pid, &process);
	kymo_cleanup_free struct kymo_status *all = NULL;

	if (!error)
		error = kymo_sessions_read(process, &list);
	if (!error && !list.n)
		error = kymo_error_create(
			KYMO_ERROR_NOT_FOUND, "process %d has no kymo probes%s", pid,
			list.has_strays ? ", only memory of a recorder that died as it began; 'kymo detach' removes it"
					: "");
	all = calloc(list.n ? list.n : 1, sizeof(*all));
	if (!error && !all)
		error = &kymo_error_no_memory;
	for (size_t i = 0; i < list.n && !error; i++)
		error = fill_status(pid, process, &list.items[i], &all[i]);
	if (error) {
		for (size_t i = 0; all && i < list.n; i++)
			kymo_status_deinit(&all[i]);
	} else {
		*n_ret = list.n;
		*ret = kymo_take(all);
	}
	kymo_sessions_deinit(&list);
	kymo_process_destroy(process);
	return error;
}

void kymo_status_deinit(struct kymo_status *status)
{
	free(status->sites);
	*status = (struct kymo_status){ .pid = 0 };
}

static bool has_sessions(pid_t pid)
{
	struct kymo_maps maps;
	struct kymo_error *error = kymo_maps_read(pid, &maps);
	bool found = false;

	if (error) {
		kymo_error_destroy(error);
		return false;
	}
	for (size_t i = 0; i < maps.n && !found; i++)
		found = kymo_is_shared_map(&maps.items[i]) && maps.items[i].offset == 0;
	kymo_maps_deinit(&maps);
	return found;
}

struct kymo_error *kymo_status_all(pid_t **ret, size_t *n_ret)
{
	KYMO_VEC(pid_t) pids = { 0 };
	struct dirent *entry;
	DIR *proc = opendir("/proc");

	if (!proc)
		return kymo_error_errno(errno, "cannot list processes");
	while ((entry = readdir(proc))) {
		pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (pid > 0 && has_sessions(pid) && !kymo_vec_push(&pids, pid)) {
			closedir(proc);
			kymo_vec_deinit(&pids);
			return &kymo_error_no_memory;
		}
	}
	closedir(proc);
	*ret = pids.items;
	*n_ret = pids.n;
	return NULL;
}
