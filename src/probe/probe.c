#include "probe/probe.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "arch/arch.h"
#include "base/cleanup.h"
#include "base/vec.h"
#include "probe/remove.h"
#include "proc/proc.h"

#define RECORDER_PATIENCE 500	/* times 10 ms */

/* ---- detach -------------------------------------------------------------------------------------------------------- */

/* Ask a live recorder to end its recording; it takes its probes out itself. */
static struct kymo_error *end_recorder(struct kymo_process *process, const struct kymo_remains *remains)
{
	pid_t recorder = (pid_t)remains->header.recorder_pid;
	kymo_cleanup_close int pidfd = (int)syscall(SYS_pidfd_open, recorder, 0);

	/* Looked at again, now that the number cannot come to mean somebody else. */
	if (!kymo_remains_have_recorder(remains))
		return NULL;
	if (syscall(SYS_pidfd_send_signal, pidfd, SIGTERM, NULL, 0) && errno != ESRCH)
		return kymo_error_errno(errno, "process %d is being recorded by kymo process %d, which cannot be told to stop",
					kymo_process_pid(process), recorder);
	for (int i = 0; i < RECORDER_PATIENCE && kymo_remains_have_recorder(remains); i++)
		nanosleep(&(struct timespec){ 0, 10000000 }, NULL);
	if (kymo_remains_have_recorder(remains))
		return kymo_error_create(KYMO_ERROR_BUSY, "kymo process %d, which records process %d, does not end; end it and try again",
					 recorder, kymo_process_pid(process));
	return NULL;
}

struct kymo_error *kymo_detach(pid_t pid, struct kymo_detach_result *ret)
{
	struct kymo_process *process = NULL;
	struct kymo_remains remains = { .found = false };
	struct kymo_error *error = kymo_process_open(pid, &process);

	if (!error)
		error = kymo_remains_read(process, &remains);
	if (!error && !remains.found)
		error = kymo_error_create(KYMO_ERROR_NOT_FOUND, "there is nothing of kymo's in process %d", pid);
	if (!error && kymo_remains_have_recorder(&remains))
		error = end_recorder(process, &remains);
	if (!error)
		error = kymo_remove(process, ret);
	kymo_remains_deinit(&remains);
	kymo_process_destroy(process);
	return error;
}

/* ---- status -------------------------------------------------------------------------------------------------------- */

static void copy_site(const struct kymo_wire_site *from, struct kymo_status_site *ret)
{
	ret->address = from->address;
	ret->event_id = from->event_id;
	snprintf(ret->name, sizeof(ret->name), "%.*s", (int)sizeof(ret->name) - 1, from->name);
	snprintf(ret->tactic, sizeof(ret->tactic), "%s",
		 from->tactic < KYMO_N_TACTICS ? kymo_tactic_name((enum kymo_tactic)from->tactic) : "?");
}

static struct kymo_error *fill_status(pid_t pid, const struct kymo_remains *remains, struct kymo_status *ret)
{
	struct kymo_status status = { .pid = pid };
	struct kymo_process_info info;
	struct kymo_error *error = kymo_process_info(pid, &info);

	if (error)
		return error;
	snprintf(status.comm, sizeof(status.comm), "%s", info.comm);
	snprintf(status.directory, sizeof(status.directory), "%s", remains->header.directory);
	status.recorder = kymo_remains_have_recorder(remains) ? (pid_t)remains->header.recorder_pid : 0;
	status.started_wall_ns = remains->header.started_wall_ns;
	status.recorded_bytes = remains->header.recorded_bytes;
	status.lost_events = remains->header.lost_events;
	status.sites = calloc(remains->n_sites ? remains->n_sites : 1, sizeof(*status.sites));
	if (!status.sites)
		return &kymo_error_no_memory;
	for (size_t i = 0; i < remains->n_sites; i++)
		if (remains->sites[i].event_id)	/* guards have none */
			copy_site(&remains->sites[i], &status.sites[status.n_sites++]);
	*ret = status;
	return NULL;
}

struct kymo_error *kymo_status(pid_t pid, struct kymo_status *ret)
{
	struct kymo_process *process = NULL;
	struct kymo_remains remains = { .found = false };
	struct kymo_error *error = kymo_process_look(pid, &process);

	if (!error)
		error = kymo_remains_read(process, &remains);
	if (!error && !remains.found)
		error = kymo_error_create(KYMO_ERROR_NOT_FOUND, "there is nothing of kymo's in process %d", pid);
	if (!error)
		error = fill_status(pid, &remains, ret);
	kymo_remains_deinit(&remains);
	kymo_process_destroy(process);
	return error;
}

void kymo_status_deinit(struct kymo_status *status)
{
	free(status->sites);
	*status = (struct kymo_status){ .pid = 0 };
}

static bool has_remains(pid_t pid)
{
	struct kymo_maps maps;
	struct kymo_error *error = kymo_maps_read(pid, &maps);
	bool found = false;

	if (error) {
		kymo_error_destroy(error);
		return false;
	}
	for (size_t i = 0; i < maps.n && !found; i++)
		found = !strcmp(maps.items[i].path, "/memfd:" KYMO_WIRE_MEMFD_NAME) && maps.items[i].offset == 0;
	kymo_maps_deinit(&maps);
	return found;
}

struct kymo_error *kymo_status_all(pid_t **ret, size_t *n)
{
	KYMO_VEC(pid_t) pids = { 0 };
	struct dirent *entry;
	DIR *proc = opendir("/proc");

	if (!proc)
		return kymo_error_errno(errno, "cannot list processes");
	while ((entry = readdir(proc))) {
		pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (pid > 0 && has_remains(pid) && !kymo_vec_push(&pids, pid)) {
			closedir(proc);
			kymo_vec_deinit(&pids);
			return &kymo_error_no_memory;
		}
	}
	closedir(proc);
	*ret = pids.items;
	*n = pids.n;
	return NULL;
}
