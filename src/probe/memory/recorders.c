/* The recorders of a process: a kymo that has the memfd mapped. A header that names another process is not believed. */
#include "probe/memory/recorders.h"

#include <dirent.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "probe/memory/program.h"
#include "procfs/info.h"
#include "procfs/maps.h"
#include "procfs/pidns.h"

/* Whether it has memory of that inode mapped, and what `does_count` says of the mapping. `unknown_ret`: this user may
 * not look at that process. */
static bool has_mapped(pid_t pid, uint64_t inode, bool (*does_count)(const struct kymo_map *map), bool *unknown_ret)
{
	struct kymo_maps maps;
	struct kymo_error *error = kymo_maps_read(pid, &maps);
	bool found = false;

	*unknown_ret = error && error->code == KYMO_ERROR_PERMISSION;
	if (error) {
		kymo_error_destroy(error);
		return false;
	}
	for (size_t i = 0; i < maps.n; i++)
		found |= maps.items[i].inode == inode && does_count(&maps.items[i]);
	kymo_maps_deinit(&maps);
	return found && kymo_is_kymo(pid, NULL);
}

/* The mapping alone is no proof, as many programs map what another process sends to them. A kymo that is recorded
 * itself has the memory, too, but as a target, which cannot write it. */
static bool is_recorders_map(const struct kymo_map *map)
{
	return kymo_is_shared_map(map) && map->writable && map->shared;
}

/* Whether it is the process that the header names: its number in its own PID namespace, and when it began, which any
 * user may read of any process. So no other one is waited for, whatever it does to those that look at its memory. */
static bool is_named(const struct kymo_wire_header *header, pid_t pid)
{
	struct kymo_process_info info;

	return kymo_process_peek(pid, &info) && info.start_time == header->recorder_start &&
	       info.inner_pid == (pid_t)header->recorder_pid && info.state != 'Z';
}

/* Whether the header's number means the recorder here: in another PID namespace it is another process's, or none's. Of
 * a process that this user may not look at, number and start time must do. */
static bool is_as_it_says(const struct kymo_session *session)
{
	const pid_t pid = (pid_t)session->header.recorder_pid;
	bool unknown;

	return is_named(&session->header, pid) &&
	       (has_mapped(pid, session->inode, kymo_is_shared_map, &unknown) || unknown);
}

/* The kymo that has the memory and may write it, in a PID namespace below ours. */
static pid_t find_below(const struct kymo_session *session)
{
	kymo_cleanup_closedir DIR *proc = opendir("/proc");
	struct dirent *entry;

	while (proc && (entry = readdir(proc))) {
		const pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
		bool unknown;

		if (pid > 0 && pid != getpid() && is_named(&session->header, pid) &&
		    (has_mapped(pid, session->inode, is_recorders_map, &unknown) || unknown))
			return pid;
	}
	return 0;
}

/* Whether the header is of this process. Its number is the one that the recorder knows. */
static bool is_target(const struct kymo_wire_header *header, pid_t recorder, pid_t pid)
{
	return header->target_pid == (uint32_t)pid || header->target_pid == (uint32_t)kymo_pid_there(recorder, pid);
}

/* A forked child has the header of its parent. If it is recorded, too, the recorder reads its data. */
static bool is_adopted(const struct kymo_session *session, pid_t recorder)
{
	bool unknown;

	return session->is_adopted && session->data_inode &&
	       (has_mapped(recorder, session->data_inode, kymo_is_data_map, &unknown) || unknown);
}

pid_t kymo_session_recorder(const struct kymo_session *session, pid_t pid)
{
	const struct kymo_wire_header *header = &session->header;
	pid_t recorder;

	if (!header->recorder_pid)
		return 0;
	recorder = is_as_it_says(session) ? (pid_t)header->recorder_pid : find_below(session);
	if (!recorder) /* a forked child that is not recorded has no data */
		return session->data && header->recorder_pidns && !kymo_sees_pidns(header->recorder_pidns)
			       ? KYMO_RECORDER_ELSEWHERE
			       : 0;
	return is_target(header, recorder, pid) || is_adopted(session, recorder) ? recorder : 0;
}

bool kymo_session_has_recorder(const struct kymo_session *session, pid_t pid)
{
	return kymo_session_recorder(session, pid) != 0;
}

bool kymo_session_knows_recorder(const struct kymo_session *session, pid_t recorder)
{
	bool unknown;

	return has_mapped(recorder, session->inode, kymo_is_shared_map, &unknown);
}
