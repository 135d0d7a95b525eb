/*
 * ptrace() of tracers inside of the tree. The kernel has refused the call already: TRACEME, ATTACH and SEIZE by EPERM,
 * as all threads of the tree have a tracer, everything else by ESRCH, as that is another one. Here it is done after
 * all. What is asked of a thread's state is asked of the kernel, in the hub's name.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <unistd.h>

#include "kymo/engine.h"
#include "base/cleanup.h"
#include "nested/allow.h"
#include "nested/inner.h"
#include "nested/ptrace.h"
#include "nested/states.h"
#include "nested/stop.h"
#include "nested/table.h"

#define INNER_OPTIONS \
	(PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC | \
	 PTRACE_O_TRACEVFORKDONE | PTRACE_O_TRACEEXIT | PTRACE_O_EXITKILL)
#define REGISTERS_MAX 65536 /* of one set */
#define INFOS_MAX 32
#define MASK_SIZE 8

struct request {
	struct inner_thread *tracer, *thread;
	unsigned int number;
	uint64_t address, data;
};

static int64_t forward(const struct request *request, uint64_t address, void *data)
{
	long result = ptrace((enum __ptrace_request)request->number, request->thread->tid, (void *)address, data);

	return result < 0 ? -errno : result;
}

static int64_t give(const struct request *request, const void *data, size_t size)
{
	return kymo_engine_write(request->tracer->engine, request->data, data, size) ? -EFAULT : 0;
}

static int64_t fetch(const struct request *request, uint64_t address, void *ret, size_t size)
{
	return kymo_engine_read(request->tracer->engine, address, ret, size) ? -EFAULT : 0;
}

/* ---- memory and registers -------------------------------------------------------------------- */

static int64_t peek(const struct request *request)
{
	long word;

	errno = 0;
	word = ptrace((enum __ptrace_request)request->number, request->thread->tid, (void *)request->address, 0);
	return errno ? -errno : give(request, &word, sizeof(word));
}

static int64_t poke(const struct request *request)
{
	return forward(request, request->address, (void *)request->data);
}

static int64_t get_registers(const struct request *request)
{
	struct user_regs_struct registers;
	int64_t err = forward(request, 0, &registers);

	return err ? err : give(request, &registers, sizeof(registers));
}

static int64_t set_registers(const struct request *request)
{
	struct user_regs_struct registers;
	int64_t err = fetch(request, request->data, &registers, sizeof(registers));

	return err ? err : forward(request, 0, &registers);
}

static int64_t get_fp_registers(const struct request *request)
{
	struct user_fpregs_struct registers;
	int64_t err = forward(request, 0, &registers);

	return err ? err : give(request, &registers, sizeof(registers));
}

static int64_t set_fp_registers(const struct request *request)
{
	struct user_fpregs_struct registers;
	int64_t err = fetch(request, request->data, &registers, sizeof(registers));

	return err ? err : forward(request, 0, &registers);
}

static int64_t transfer_set(const struct request *request, const struct iovec *theirs, void *data)
{
	struct iovec ours = { data, theirs->iov_len < REGISTERS_MAX ? theirs->iov_len : REGISTERS_MAX };
	bool is_get = request->number == PTRACE_GETREGSET;
	struct iovec after = *theirs;
	int64_t err = is_get ? 0 : fetch(request, (uint64_t)theirs->iov_base, data, ours.iov_len);

	if (!err)
		err = forward(request, request->address, &ours);
	after.iov_len = ours.iov_len;
	if (!err && is_get &&
	    kymo_engine_write(request->tracer->engine, (uint64_t)theirs->iov_base, data, ours.iov_len))
		err = -EFAULT;
	return err ? err : give(request, &after, sizeof(after));
}

static int64_t transfer_register_set(const struct request *request)
{
	void *data = calloc(1, REGISTERS_MAX);
	struct iovec theirs;
	int64_t err;

	if (!data)
		return -ENOMEM;
	err = fetch(request, request->data, &theirs, sizeof(theirs));
	if (!err)
		err = transfer_set(request, &theirs, data);
	free(data);
	return err;
}

/* ---- signals and events ---------------------------------------------------------------------- */

static int64_t get_message(const struct request *request)
{
	return give(request, &request->thread->stop.message, sizeof(request->thread->stop.message));
}

static int64_t get_info(const struct request *request)
{
	return request->thread->stop.kind == INNER_GROUP
		       ? -EINVAL
		       : give(request, &request->thread->stop.info, sizeof(siginfo_t));
}

static int64_t set_info(const struct request *request)
{
	siginfo_t info;
	int64_t err = fetch(request, request->data, &info, sizeof(info));

	if (!err && request->thread->stop.kind == INNER_GROUP)
		err = -EINVAL;
	if (!err)
		request->thread->stop.info = info;
	return err;
}

static int64_t get_mask(const struct request *request)
{
	char mask[MASK_SIZE];
	int64_t err = request->address == MASK_SIZE ? forward(request, MASK_SIZE, mask) : -EINVAL;

	return err ? err : give(request, mask, sizeof(mask));
}

static int64_t set_mask(const struct request *request)
{
	char mask[MASK_SIZE];
	int64_t err = request->address == MASK_SIZE ? fetch(request, request->data, mask, sizeof(mask)) : -EINVAL;

	return err ? err : forward(request, MASK_SIZE, mask);
}

static int64_t peek_infos(const struct request *request)
{
	struct __ptrace_peeksiginfo_args args;
	siginfo_t infos[INFOS_MAX];
	int64_t n = fetch(request, request->address, &args, sizeof(args)), err;

	if (n)
		return n;
	if (args.nr > INFOS_MAX)
		args.nr = INFOS_MAX;
	n = forward(request, (uint64_t)&args, infos);
	if (n <= 0)
		return n;
	err = give(request, infos, (size_t)n * sizeof(*infos));
	return err ? err : n;
}

static int64_t get_call(const struct request *request)
{
	struct __ptrace_syscall_info info = { .op = PTRACE_SYSCALL_INFO_NONE };
	int64_t n = forward(request, sizeof(info), &info), err;

	if (n < 0)
		return n;
	if (request->thread->stop.kind != INNER_CALL) { /* the hub may have it at a call all the same */
		info.op = PTRACE_SYSCALL_INFO_NONE;
		n = offsetof(struct __ptrace_syscall_info, entry);
	}
	err = give(request, &info, request->address < (uint64_t)n ? request->address : (uint64_t)n);
	return err ? err : n;
}

static int64_t set_options(const struct request *request)
{
	if (request->data & ~(uint64_t)INNER_OPTIONS)
		return -EINVAL;
	request->thread->options = (unsigned int)request->data;
	return 0;
}

/* ---- running --------------------------------------------------------------------------------- */

static int64_t resume(const struct request *request)
{
	enum inner_mode mode = request->number == PTRACE_SYSCALL      ? INNER_TRACES_CALLS
			       : request->number == PTRACE_SINGLESTEP ? INNER_STEPS
								      : INNER_RUNS;

	return request->data > (unsigned int)SIGRTMAX ? -EIO : inner_resume(request->thread, mode, (int)request->data);
}

static int64_t detach(const struct request *request)
{
	if (request->data > (unsigned int)SIGRTMAX)
		return -EIO;
	inner_untrace(request->thread, (int)request->data);
	return 0;
}

static int64_t listen_to_group(const struct request *request)
{
	const struct inner_thread *thread = request->thread;

	if (!thread->is_seized || thread->stop.kind != INNER_EVENT || thread->stop.code >> 8 != PTRACE_EVENT_STOP)
		return -EIO;
	return inner_resume(request->thread, INNER_RUNS, 0);
}

static int64_t kill_tracee(const struct request *request)
{
	syscall(SYS_tgkill, request->thread->pid, request->thread->tid, SIGKILL);
	return 0;
}

static int64_t interrupt(const struct request *request)
{
	if (!request->thread->is_seized)
		return -EIO;
	inner_interrupt(request->thread);
	return 0;
}

static const struct {
	unsigned int number;
	int64_t (*run)(const struct request *request);
	bool runs; /* it need not be stopped */
} requests[] = {
	{ PTRACE_PEEKTEXT, peek, false },
	{ PTRACE_PEEKDATA, peek, false },
	{ PTRACE_PEEKUSER, peek, false },
	{ PTRACE_POKETEXT, poke, false },
	{ PTRACE_POKEDATA, poke, false },
	{ PTRACE_POKEUSER, poke, false },
	{ PTRACE_CONT, resume, false },
	{ PTRACE_SYSCALL, resume, false },
	{ PTRACE_SINGLESTEP, resume, false },
	{ PTRACE_KILL, kill_tracee, true },
	{ PTRACE_DETACH, detach, false },
	{ PTRACE_GETREGS, get_registers, false },
	{ PTRACE_SETREGS, set_registers, false },
	{ PTRACE_GETFPREGS, get_fp_registers, false },
	{ PTRACE_SETFPREGS, set_fp_registers, false },
	{ PTRACE_SETOPTIONS, set_options, false },
	{ PTRACE_GETEVENTMSG, get_message, false },
	{ PTRACE_GETSIGINFO, get_info, false },
	{ PTRACE_SETSIGINFO, set_info, false },
	{ PTRACE_GETREGSET, transfer_register_set, false },
	{ PTRACE_SETREGSET, transfer_register_set, false },
	{ PTRACE_INTERRUPT, interrupt, true },
	{ PTRACE_LISTEN, listen_to_group, false },
	{ PTRACE_PEEKSIGINFO, peek_infos, false },
	{ PTRACE_GETSIGMASK, get_mask, false },
	{ PTRACE_SETSIGMASK, set_mask, false },
	{ PTRACE_GET_SYSCALL_INFO, get_call, false },
};

static int64_t run_request(const struct request *request)
{
	for (size_t i = 0; i < kymo_countof(requests); i++) {
		if (requests[i].number != request->number)
			continue;
		return requests[i].runs || inner_is_stopped(request->thread) ? requests[i].run(request) : -ESRCH;
	}
	return -EIO;
}

/* ---- which process traces which ------------------------------------------------------------------------- */

/* Whether `thread` would trace itself, through others. */
static bool is_cycle(const struct inner_thread *tracer, const struct inner_thread *thread)
{
	for (; tracer; tracer = tracer->tracer)
		if (tracer->pid == thread->pid)
			return true;
	return false;
}

/* The parent is the thread that made the process, or another one of it where that has ended. */
static struct inner_thread *parent_of(const struct inner_thread *thread)
{
	struct inner_thread *maker = inner_find(thread->owner, thread->maker);
	struct inner_status status;

	if (!inner_read_status(thread->tid, &status))
		return NULL;
	return maker && maker->pid == status.parent ? maker : inner_find(thread->owner, status.parent);
}

static int64_t trace_me(struct inner_thread *thread)
{
	struct inner_thread *parent = thread->tracer ? NULL : parent_of(thread);

	if (!parent || parent->state == INNER_DEAD || is_cycle(parent, thread) ||
	    !inner_may_trace(parent->tid, thread->tid))
		return -EPERM;
	inner_trace(thread, parent, false, 0, false);
	return 0;
}

static int64_t attach_inner(const struct request *request)
{
	struct inner_thread *thread = request->thread;
	bool is_seize = request->number == PTRACE_SEIZE;

	if (thread->state == INNER_DEAD || thread->tracer || is_cycle(request->tracer, thread) ||
	    !inner_may_trace(request->tracer->tid, thread->tid))
		return -EPERM;
	if (is_seize && request->data & ~(uint64_t)INNER_OPTIONS)
		return -EINVAL;
	inner_trace(thread, request->tracer, is_seize, is_seize ? (unsigned int)request->data : 0, !is_seize);
	return 0;
}

void inner_ptrace_left(struct inner_thread *thread, int64_t result)
{
	const uint64_t *args = thread->call.args;
	struct request request = { thread, inner_find(thread->owner, (pid_t)args[1]), (unsigned int)args[0], args[2],
				   args[3] };
	int64_t emulated = result;

	if (result != -EPERM && result != -ESRCH)
		return;
	if (args[0] == PTRACE_TRACEME)
		emulated = trace_me(thread);
	else if (!request.thread)
		return;
	else if (args[0] == PTRACE_ATTACH || args[0] == PTRACE_SEIZE)
		emulated = attach_inner(&request);
	else if (request.thread->tracer == thread && request.thread->state != INNER_DEAD)
		emulated = run_request(&request);
	if (emulated != result)
		kymo_engine_set_result(thread->engine, emulated);
}
