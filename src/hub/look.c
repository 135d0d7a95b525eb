/* Looking at threads and changing them: registers, memory, system calls. */
#include <errno.h>
#include <sys/ptrace.h>

#include "arch/remote.h"
#include "hub/engine.h"
#include "hub/look.h"
#include "hub/state.h"
#include "hub/thread/frozen.h"
#include "hub/thread/request.h"
#include "hub/thread/status.h"
#include "hub/thread/task.h"
#include "hub/thread/tracee.h"
#include "hub/trap/break.h"
#include "hub/trap/breakpoint.h"
#include "hub/trap/break.h"
#include "hub/trap/text.h"
#include "kymo/engine.h"
#include "procfs/memory.h"

#ifndef PTRACE_SET_SYSCALL_INFO /* Linux 6.16 */
#define PTRACE_SET_SYSCALL_INFO 0x4212
#endif

/* ---- from outside of callbacks --------------------------------------------------------------- */

static int prepare(const struct kymo_engine *engine, struct kymo_examiner *ret)
{
	const struct task *task = engine->task;

	if (engine->is_detached || !task || task->end.was_told)
		return -ESRCH;
	if (engine->wants != KYMO_ACTION_STOP)
		return -EINVAL;
	if (task->state != TASK_STOPPED || task->is_in_event || task->remote_call)
		return -EAGAIN;
	ret->stop = task->stop_serial;
	return 0;
}

int hub_local_prepare_examine(struct kymo_engine *engine, struct kymo_examiner *ret)
{
	int err;

	pthread_mutex_lock(&engine->hub->lock);
	err = prepare(engine, ret);
	pthread_mutex_unlock(&engine->hub->lock);
	return err;
}

struct finish {
	struct kymo_engine *engine;
	uint64_t stop;
};

/* The hub may not know yet that it was killed. */
static bool has_woken(struct kymo_hub *hub, struct task *task)
{
	unsigned long message;
	int status;

	hub_wait_for_spared(hub);
	return task->resumed.is_fetched || hub_fetch(hub, task, 0, &status) ||
	       ptrace(PTRACE_GETEVENTMSG, task->tid, 0, &message);
}

static int finish_look(struct kymo_hub *hub, void *argument)
{
	const struct finish *finish = argument;
	struct task *task = finish->engine->task;

	if (finish->engine->is_detached || !task || task->end.was_told)
		return -ESRCH;
	if (task->state != TASK_STOPPED || task->stop_serial != finish->stop || has_woken(hub, task))
		return -EAGAIN;
	return 0;
}

int hub_local_finish_examine(struct kymo_engine *engine, const struct kymo_examiner *examiner)
{
	struct finish argument = { engine, examiner->stop };

	return hub_call(engine->hub, finish_look, &argument);
}

/* ---- registers ------------------------------------------------------------------------------- */

struct access {
	struct kymo_engine *engine;
	struct user_regs_struct *registers;
	uint64_t number;
	const uint64_t *args;
	int64_t result;
	int signal;
	const siginfo_t *info;
};

static int check_stopped(const struct kymo_engine *engine)
{
	if (engine->is_detached || !engine->task || engine->task->state == TASK_ENDING)
		return -ESRCH;
	return engine->task->state == TASK_STOPPED && !engine->task->remote_call ? 0 : -EAGAIN;
}

/* Of a thread that makes remote calls for a recording: what it gets back then. */
static struct user_regs_struct *saved_of(const struct kymo_engine *engine)
{
	return !engine->is_detached && engine->task ? hub_own_registers(engine->task) : NULL;
}

static int get_registers(struct kymo_hub *hub, void *argument)
{
	struct access *access = argument;
	const struct user_regs_struct *saved = saved_of(access->engine);
	int err;

	if (saved) {
		*access->registers = *saved;
		return 0;
	}
	err = check_stopped(access->engine);
	return err ? err : kymo_get_registers(access->engine->task->tid, access->registers);
}

int hub_local_get_registers(struct kymo_engine *engine, struct user_regs_struct *ret)
{
	struct access access = { .engine = engine, .registers = ret };

	return hub_call(engine->hub, get_registers, &access);
}

static int set_registers(struct kymo_hub *hub, void *argument)
{
	struct access *access = argument;
	struct user_regs_struct *saved = saved_of(access->engine);
	int err = saved ? 0 : check_stopped(access->engine);

	if (!err && access->registers->rip != access->engine->task->traps.told.rip)
		hub_breakpoint_passed(access->engine->task);
	if (saved) {
		*saved = *access->registers;
		return 0;
	}
	return err ? err : kymo_set_registers(access->engine->task->tid, access->registers);
}

int hub_local_set_registers(struct kymo_engine *engine, const struct user_regs_struct *registers)
{
	struct access access = { .engine = engine, .registers = (struct user_regs_struct *)(uintptr_t)registers };

	return hub_call(engine->hub, set_registers, &access);
}

/* ---- signals --------------------------------------------------------------------------------- */

static int set_signal(struct kymo_hub *hub, void *argument)
{
	struct access *access = argument;
	struct task *task = access->engine->task;
	int err = check_stopped(access->engine);

	if (!err && task->stop != STOP_SIGNAL)
		err = -EINVAL;
	if (!err && access->signal && ptrace(PTRACE_SETSIGINFO, task->tid, 0, access->info))
		err = -errno;
	if (!err)
		task->signal = access->signal;
	return err;
}

int hub_local_set_signal(struct kymo_engine *engine, int signal, const siginfo_t *info)
{
	struct access access = { .engine = engine, .signal = signal, .info = info };

	return hub_call(engine->hub, set_signal, &access);
}

/* ---- system calls ---------------------------------------------------------------------------- */

static int get_info(pid_t tid, struct __ptrace_syscall_info *ret)
{
	return ptrace(PTRACE_GET_SYSCALL_INFO, tid, (void *)sizeof(*ret), ret) < 0 ? -errno : 0;
}

static int set_info(pid_t tid, const struct __ptrace_syscall_info *info)
{
	return ptrace((enum __ptrace_request)PTRACE_SET_SYSCALL_INFO, tid, (void *)sizeof(*info), info) < 0 ? -errno
													    : 0;
}

static int set_call_in_registers(pid_t tid, uint64_t number, const uint64_t args[6])
{
	struct user_regs_struct registers;
	int err = kymo_get_registers(tid, &registers);

	if (err)
		return err;
	kymo_remote_set_call(&registers, number, args);
	return kymo_set_registers(tid, &registers);
}

int hub_set_call(struct task *task, uint64_t number, const uint64_t args[6])
{
	struct __ptrace_syscall_info info;
	int err = get_info(task->tid, &info);

	if (err)
		return err;
	info.entry.nr = number;
	for (int i = 0; i < 6; i++)
		info.entry.args[i] = args[i];
	err = set_info(task->tid, &info);
	return err == -EIO || err == -EINVAL ? set_call_in_registers(task->tid, number, args) : err;
}

static int set_syscall(struct kymo_hub *hub, void *argument)
{
	struct access *access = argument;
	struct task *task = access->engine->task;
	int err = check_stopped(access->engine);

	if (!err && task->stop != STOP_ENTRY)
		err = -EINVAL;
	if (!err)
		err = hub_set_call(task, access->number, access->args);
	if (err)
		return err;
	task->call.number = access->number;
	for (int i = 0; i < 6; i++)
		task->call.args[i] = access->args[i];
	return 0;
}

int hub_local_set_syscall(struct kymo_engine *engine, uint64_t number, const uint64_t args[6])
{
	struct access access = { .engine = engine, .number = number, .args = args };

	return hub_call(engine->hub, set_syscall, &access);
}

/* As the kernel tells them apart. */
static bool is_error(int64_t result)
{
	return result < 0 && result >= -4095;
}

static int set_result_in_registers(pid_t tid, int64_t result)
{
	struct user_regs_struct registers;
	int err = kymo_get_registers(tid, &registers);

	if (err)
		return err;
	kymo_remote_set_result(&registers, result);
	return kymo_set_registers(tid, &registers);
}

static int set_result(struct kymo_hub *hub, void *argument)
{
	struct access *access = argument;
	struct task *task = access->engine->task;
	int err = check_stopped(access->engine);
	struct __ptrace_syscall_info info;

	if (!err && task->stop != STOP_EXIT)
		err = -EINVAL;
	if (!err)
		err = get_info(task->tid, &info);
	if (err)
		return err;
	info.exit.rval = access->result;
	info.exit.is_error = is_error(access->result);
	err = set_info(task->tid, &info);
	if (err == -EIO || err == -EINVAL)
		err = set_result_in_registers(task->tid, access->result);
	if (err)
		return err;
	task->call.result = access->result;
	task->call.is_error = info.exit.is_error;
	return 0;
}

int hub_local_set_result(struct kymo_engine *engine, int64_t result)
{
	struct access access = { .engine = engine, .result = result };

	return hub_call(engine->hub, set_result, &access);
}

enum task_stop hub_read_call(struct task *task)
{
	struct kymo_syscall_report *call = &task->call;
	struct __ptrace_syscall_info info = { .op = PTRACE_SYSCALL_INFO_NONE };

	if (get_info(task->tid, &info))
		return STOP_EVENT; /* it was killed */
	call->arch = info.arch;
	call->ip = info.instruction_pointer;
	call->sp = info.stack_pointer;
	if (info.op == PTRACE_SYSCALL_INFO_ENTRY ||
	    info.op == PTRACE_SYSCALL_INFO_SECCOMP) { /* which has the same in the same places */
		call->number = info.entry.nr;
		for (int i = 0; i < 6; i++)
			call->args[i] = info.entry.args[i];
		call->is_aborted = call->is_error = false;
		call->result = 0;
		return STOP_ENTRY;
	}
	if (info.op != PTRACE_SYSCALL_INFO_EXIT)
		return STOP_EVENT;
	call->result = info.exit.rval;
	call->is_error = info.exit.is_error;
	return STOP_EXIT;
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* The memory that it has now, with a reference. After an exec it is another one. */
static struct hub_memory *get_memory(struct kymo_engine *engine, int *err_ret)
{
	struct hub_memory *memory = NULL;

	pthread_mutex_lock(&engine->hub->lock);
	if (engine->task && !engine->is_detached) {
		memory = hub_memory_of(engine->task->process);
		*err_ret = -EPERM;
	} else {
		*err_ret = -ESRCH;
	}
	if (memory)
		atomic_fetch_add(&memory->refs, 1);
	pthread_mutex_unlock(&engine->hub->lock);
	return memory;
}

bool hub_has_breakpoints(struct kymo_engine *engine)
{
	bool has;

	pthread_mutex_lock(&engine->hub->lock);
	has = engine->task && engine->task->process->space;
	pthread_mutex_unlock(&engine->hub->lock);
	return has;
}

/* If there are breakpoints: none is put in or taken out meanwhile. */
static bool access_space(struct kymo_engine *engine, uint64_t address, void *to, const void *from, size_t size,
			 int *err_ret)
{
	struct hub_space *space;

	pthread_mutex_lock(&engine->hub->lock);
	space = engine->task && !engine->is_detached ? engine->task->process->space : NULL;
	if (space)
		*err_ret = to ? hub_space_read(space, address, to, size)
			      : hub_space_write(engine->hub, space, address, from, size);
	pthread_mutex_unlock(&engine->hub->lock);
	return space != NULL;
}

static int result_of(int err)
{
	return err == -EBADF ? -EPERM : err;
}

int hub_local_read(struct kymo_engine *engine, uint64_t address, void *data, size_t size)
{
	struct hub_memory *memory;
	int err;

	if (access_space(engine, address, data, NULL, size, &err))
		return result_of(err);
	memory = get_memory(engine, &err);
	if (memory)
		err = result_of(kymo_memory_read(&memory->opened, address, data, size));
	hub_memory_put(memory);
	return err;
}

int hub_local_write(struct kymo_engine *engine, uint64_t address, const void *data, size_t size)
{
	struct hub_memory *memory;
	int err;

	if (access_space(engine, address, NULL, data, size, &err))
		return result_of(err);
	memory = get_memory(engine, &err);
	if (memory)
		err = result_of(kymo_memory_write(&memory->opened, address, data, size));
	hub_memory_put(memory);
	return err;
}
