#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/io.h"
#include "base/states.h"
#include "base/vec.h"
#include "hub/freeze/owner.h"
#include "proc/state.h"
#include "proc/thread.h"
#include "procfs/info.h"
#include "procfs/maps.h"
#include "procfs/memory.h"

/* What may follow what (docs/internals/following.md). A process that is frozen may be frozen anew, with more of its
 * threads. */
static const struct kymo_state_row states[] = {
	[PROCESS_RUNS] = { "runs", KYMO_STATE(PROCESS_RUNS) | KYMO_STATE(PROCESS_STOPPED) | KYMO_STATE(PROCESS_PAST) },
	[PROCESS_STOPPED] = { "stopped", KYMO_STATE(PROCESS_RUNS) | KYMO_STATE(PROCESS_STOPPED) |
						 KYMO_STATE(PROCESS_COMPLETE) | KYMO_STATE(PROCESS_PAST) },
	[PROCESS_COMPLETE] = { "stopped, with all its threads",
			       KYMO_STATE(PROCESS_RUNS) | KYMO_STATE(PROCESS_STOPPED) | KYMO_STATE(PROCESS_PAST) },
	[PROCESS_PAST] = { "past", 0 },
};

static const struct kymo_state_row phases[] = {
	[STARTUP_UNKNOWN] = { "unknown", KYMO_STATE(STARTUP_AT_EXEC) },
	[STARTUP_AT_EXEC] = { "at its exec", KYMO_STATE(STARTUP_RUNS) },
	[STARTUP_RUNS] = { "runs to its next event", KYMO_STATE(STARTUP_RUNS) | KYMO_STATE(STARTUP_TOLD) },
	[STARTUP_TOLD] = { "told", KYMO_STATE(STARTUP_RUNS) },
};

void kymo_process_set_state(struct kymo_process *process, enum process_state state)
{
	kymo_state_check("process", states, kymo_countof(states), process->state, state);
	process->state = state;
}

void kymo_process_set_startup(struct kymo_process *process, enum startup_phase phase)
{
	kymo_state_check("start of a process", phases, kymo_countof(phases), process->startup.phase, phase);
	process->startup.phase = phase;
}

void kymo_process_set_running(struct kymo_process *process)
{
	if (process->state != PROCESS_PAST)
		kymo_process_set_state(process, PROCESS_RUNS);
}

static struct kymo_error *create(pid_t pid, const struct kymo_memory *memory, struct kymo_process **ret)
{
	struct kymo_process *process = calloc(1, sizeof(*process));

	if (!process)
		return &kymo_error_no_memory;
	process->pid = pid;
	process->memory = *memory;
	*ret = process;
	return NULL;
}

struct kymo_error *kymo_process_create(pid_t pid, struct kymo_process **ret)
{
	struct kymo_memory memory;
	struct kymo_error *error = kymo_memory_init(pid, &memory);

	if (error)
		return error;
	error = create(pid, &memory, ret);
	if (error)
		kymo_memory_deinit(&memory);
	return error;
}

struct kymo_error *kymo_process_create_held(pid_t pid, struct kymo_process **ret, struct kymo_error **refusal_ret)
{
	struct kymo_memory memory;
	struct kymo_error *error = kymo_memory_init_held(pid, &memory, refusal_ret);

	if (error)
		return error;
	error = create(pid, &memory, ret);
	if (error) {
		kymo_memory_deinit(&memory);
		kymo_error_destroy(*refusal_ret);
		*refusal_ret = NULL;
	}
	return error;
}

static int open_program_of(pid_t tid)
{
	char name[64];

	snprintf(name, sizeof(name), "/proc/%d/exe", tid);
	return open(name, O_RDONLY | O_CLOEXEC);
}

/* The first thread may have ended before the others. */
static int open_program(pid_t pid)
{
	const int fd = open_program_of(pid);

	return fd < 0 && errno == ENOENT ? open_program_of(kymo_live_thread(pid)) : fd;
}

/* EI_CLASS and e_machine of the program. */
struct kymo_error *kymo_process_check_class(struct kymo_process *process)
{
	unsigned char ident[20];
	kymo_cleanup_close int fd = open_program(process->pid);

	if (fd < 0 && errno == ENOENT) /* threads of the kernel, which have none either, were refused before */
		return kymo_error_create(KYMO_ERROR_GONE, "process %d is ending", process->pid);
	if (fd < 0)
		return kymo_error_errno(errno, "cannot read the program of process %d", process->pid);
	if (kymo_pread_all(fd, ident, sizeof(ident), 0) || memcmp(ident, "\177ELF", 4))
		return NULL; /* binfmt_misc; the planner looks at the real files */
	if (ident[4] != 2 || ident[18] != 62)
		return kymo_error_create(KYMO_ERROR_BAD_DATA,
					 "process %d is not a 64-bit x86 program; kymo traces x86-64 programs only",
					 process->pid);
	return NULL;
}

void kymo_process_free(struct kymo_process *process)
{
	hub_owner_destroy(process->owner);
	kymo_memory_deinit(&process->memory);
	kymo_process_forget(process);
	kymo_vec_deinit(&process->threads);
	free(process);
}

void kymo_process_forget_maps(struct kymo_process *process)
{
	if (process->known.has_maps)
		kymo_maps_deinit(&process->known.maps);
	process->known.has_maps = false;
}

void kymo_process_forget(struct kymo_process *process)
{
	kymo_process_forget_maps(process);
	process->known.has_info = false;
	process->startup.harmless = 0;
}

struct kymo_thread *kymo_find_thread(const struct kymo_process *process, pid_t tid)
{
	for (size_t i = 0; i < process->threads.n; i++)
		if (process->threads.items[i].tid == tid)
			return &process->threads.items[i];
	return NULL;
}
