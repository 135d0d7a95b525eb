/*
 * System calls in the name of a stopped thread. The order of steps keeps the target safe at each of them:
 *
 *	1. write the frame to unused memory (below); a death then is harmless
 *	2. set the registers to `syscall; ret`, and the stack pointer to the frame; a death then: one call, then home
 *	3. block all signals; a death then: rt_sigreturn restores the frame's mask
 *	4. calls: set the registers, run to the call's exit
 *	5. restore the mask; a death then: as in 2
 *	6. restore the registers: the kernel restarts an interrupted system call, or makes it fail, when the thread is
 *	   resumed
 *	7. restore what lay where the frame was
 *
 * Unused memory: the low end of the initial thread's stack, which was in use only when that thread was deepest, if it
 * is not so deep now. Else below that thread's own stack pointer, if its whole mapping is the frame's as well. A small
 * stack may be carved out of a larger mapping (coroutines), so the second is the worse; in both cases the bytes are
 * kept and put back.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "arch/remote.h"
#include "arch/selectors.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "hub/thread/tracee.h"
#include "proc/caller.h"
#include "proc/call.h"
#include "proc/members.h"
#include "proc/memory.h"
#include "proc/request.h"
#include "proc/state.h"
#include "proc/thread.h"
#include "procfs/info.h"
#include "procfs/maps.h"

#define XSTATE_MAX (64u << 10)
#define GADGET_MAX 16
#define TEXT_MAX (64u << 20)
#define RED_ZONE 128

static struct kymo_error *scan_map(struct kymo_process *process, const struct kymo_map *map)
{
	size_t size = map->end - map->start > TEXT_MAX ? TEXT_MAX : map->end - map->start;
	kymo_cleanup_free uint8_t *bytes = malloc(size);

	if (!bytes)
		return &kymo_error_no_memory;
	if (!kymo_process_read(process, map->start, bytes, size))
		kymo_gadgets_scan(bytes, size, map->start, &process->remote.gadgets);
	return NULL;
}

/* Text that stays while calls are made: files' and the vDSO, not what a JIT compiler changes, and no pads, which a call
 * may be about to unmap. */
static bool has_lasting_text(const struct kymo_map *map)
{
	return map->executable && map->readable &&
	       (!strcmp(map->path, "[vdso]") || (map->path[0] == '/' && strncmp(map->path, "/memfd:", 7)));
}

/* Whether a gadget is (still) at `address`, in executable memory. */
static bool is_there(struct kymo_process *process, const struct kymo_maps *maps, uint64_t address,
		     uint64_t (*which)(const struct kymo_gadgets *gadgets))
{
	const struct kymo_map *map = kymo_maps_at(maps, address);
	struct kymo_gadgets gadgets = { 0 };
	uint8_t bytes[GADGET_MAX];

	if (!map || !has_lasting_text(map) || kymo_process_read(process, address, bytes, sizeof(bytes)))
		return false;
	kymo_gadgets_scan(bytes, sizeof(bytes), address, &gadgets);
	return which(&gadgets) == address;
}

static uint64_t syscall_of(const struct kymo_gadgets *gadgets)
{
	return gadgets->syscall;
}

static uint64_t sigreturn_of(const struct kymo_gadgets *gadgets)
{
	return gadgets->sigreturn;
}

/* Where the last process of the tree had them, in the same file. Its bytes are looked at here: the file may say what it
 * likes. */
static bool find_as_last(struct kymo_process *process, const struct kymo_maps *maps)
{
	const struct kymo_tree *tree = process->tree;
	struct kymo_gadgets gadgets = { 0 };

	for (size_t i = maps->n; tree && tree->gadgets.text.inode && i-- > 0;) {
		const struct kymo_map *map = &maps->items[i];

		if (!map->executable || !kymo_map_is_part(map, &tree->gadgets.text))
			continue;
		gadgets.syscall = map->start + tree->gadgets.syscall;
		gadgets.sigreturn = map->start + tree->gadgets.sigreturn;
		if (!is_there(process, maps, gadgets.syscall, syscall_of) ||
		    !is_there(process, maps, gadgets.sigreturn, sigreturn_of))
			return false;
		process->remote.gadgets = gadgets;
		return true;
	}
	return false;
}

static void keep_for_next(struct kymo_process *process, const struct kymo_maps *maps)
{
	const struct kymo_map *map = kymo_maps_at(maps, process->remote.gadgets.syscall);
	struct kymo_tree *tree = process->tree;

	if (!tree || !map || !map->inode || map != kymo_maps_at(maps, process->remote.gadgets.sigreturn))
		return;
	tree->gadgets.text = kymo_map_part(map);
	tree->gadgets.syscall = process->remote.gadgets.syscall - map->start;
	tree->gadgets.sigreturn = process->remote.gadgets.sigreturn - map->start;
}

static struct kymo_error *find_gadgets(struct kymo_process *process, const struct kymo_maps *maps)
{
	struct kymo_error *error = NULL;

	if (find_as_last(process, maps))
		return NULL;
	memset(&process->remote.gadgets, 0, sizeof(process->remote.gadgets));
	for (size_t i = maps->n; i-- > 0 && !error;) {
		const struct kymo_map *map = &maps->items[i];

		if (has_lasting_text(map) && !(process->remote.gadgets.syscall && process->remote.gadgets.sigreturn))
			error = scan_map(process, map);
	}
	if (!process->remote.gadgets.syscall)
		process->remote.gadgets.syscall = process->remote.own_syscall;
	if (!error)
		keep_for_next(process, maps);
	if (!error && !kymo_gadgets_complete(&process->remote.gadgets))
		error = kymo_error_create(KYMO_ERROR_UNSAFE,
					  "process %d has no instructions through which a system call could be made "
					  "safely (syscall; ret, and a way to rt_sigreturn)",
					  process->pid);
	return error;
}

/* Gadgets may go away with the library that they are in. */
static struct kymo_error *check_gadgets(struct kymo_process *process, const struct kymo_maps *maps)
{
	bool has_way_home = process->remote.gadgets.sigreturn &&
			    is_there(process, maps, process->remote.gadgets.sigreturn, sigreturn_of);

	if (has_way_home && is_there(process, maps, process->remote.gadgets.syscall, syscall_of))
		return NULL;
	if (has_way_home && process->remote.own_syscall) {
		process->remote.gadgets.syscall = process->remote.own_syscall;
		return NULL;
	}
	return find_gadgets(process, maps);
}

struct kymo_error *kymo_remote_prepare(struct kymo_process *process)
{
	struct kymo_maps maps;
	struct kymo_error *error = kymo_process_maps(process, &maps);

	if (error)
		return error;
	error = check_gadgets(process, &maps);
	kymo_maps_deinit(&maps);
	return error;
}

void kymo_remote_inherit(struct kymo_process *child, const struct kymo_process *maker, uint64_t syscall)
{
	child->remote.gadgets = maker->remote.gadgets;
	child->remote.own_syscall = syscall;
}

/* ---- a place for the frame ------------------------------------------------------------------- */

static bool is_stack(const struct kymo_map *map)
{
	return map && map->readable && map->writable && !map->shared;
}

/* Whether a recorder that is gone has left a frame there. Its thread may be on the way home, and not among the stopped
 * threads. */
static bool has_frame(struct kymo_process *process, uint64_t address, uint64_t size)
{
	kymo_cleanup_free uint8_t *bytes = malloc(size);

	return !bytes || kymo_process_read(process, address, bytes, size) || kymo_remote_has_frame(bytes, size);
}

/* Room of `size` bytes at the low end of the initial stack: the address after it, or 0. */
static uint64_t room_in_initial_stack(struct kymo_process *process, const struct kymo_maps *maps, uint64_t size)
{
	for (size_t i = 0; i < maps->n; i++) {
		const struct kymo_map *map = &maps->items[i];

		if (strcmp(map->path, "[stack]") || !is_stack(map))
			continue;
		for (size_t k = 0; k < process->threads.n; k++) {
			uint64_t rsp = process->threads.items[k].registers.rsp;

			if (rsp >= map->start && rsp < map->end && rsp - map->start < size + RED_ZONE)
				return 0;
		}
		return map->end - map->start >= size && !has_frame(process, map->start, size) ? map->start + size : 0;
	}
	return 0;
}

/* The same below the stack pointer of a thread. */
static uint64_t room_in_own_stack(const struct kymo_thread *thread, const struct kymo_maps *maps, uint64_t size)
{
	uint64_t top = thread->registers.rsp - RED_ZONE;
	const struct kymo_map *map = kymo_maps_at(maps, top - size);

	return is_stack(map) && map == kymo_maps_at(maps, top) ? top : 0;
}

/* ---- beginning ------------------------------------------------------------------------------- */

/* Write frame and scratch, with what was there kept for later; sp as kymo_remote_frame() gave it. */
static int write_call_frame(struct kymo_process *process, uint64_t sp, const uint8_t *frame, size_t size)
{
	uint8_t *kept = malloc(KYMO_REMOTE_SCRATCH + size);
	int err;

	if (!kept)
		return -ENOMEM;
	err = kymo_process_read(process, sp - KYMO_REMOTE_SCRATCH, kept, KYMO_REMOTE_SCRATCH + size);
	if (!err)
		err = kymo_process_write(process, sp, frame, size);
	if (err) {
		free(kept);
		return err;
	}
	process->remote.kept = kept;
	process->remote.n_kept = KYMO_REMOTE_SCRATCH + size;
	return 0;
}

/* Where the thread finds home if this process dies: to the call itself that it sleeps in, also if the kernel has
 * restarted that. */
static struct user_regs_struct home_of(struct kymo_process *process, const struct kymo_thread *thread)
{
	struct user_regs_struct home = thread->registers;
	uint8_t code[KYMO_REMOTE_NAME];

	if (kymo_remote_sleep(&home) == KYMO_REMOTE_SLEEPS_ONCE &&
	    !kymo_process_read(process, home.rip - sizeof(code), code, sizeof(code)))
		kymo_remote_name_call(&home, code);
	return home;
}

/* Write the frame for thread `index` below `top` and point its registers at a first, harmless call. */
static int begin_by(struct kymo_process *process, size_t index, const struct kymo_maps *maps)
{
	static const uint64_t no_args[6];
	const struct kymo_thread *thread = &process->threads.items[index];
	const struct user_regs_struct home = home_of(process, thread);
	kymo_cleanup_free uint8_t *xstate = malloc(XSTATE_MAX), *frame = malloc(XSTATE_MAX + KYMO_REMOTE_FRAME_MAX);
	struct kymo_tracee_facts facts;
	struct user_regs_struct call;
	uint64_t sp, room, top;
	size_t xstate_size;
	int size, err;

	if (!xstate || !frame)
		return -ENOMEM;
	err = kymo_joined_xstate(process->joined, thread->tid, xstate, XSTATE_MAX - 64, &xstate_size);
	if (!err)
		err = kymo_joined_facts(process->joined, thread->tid, KYMO_FACT_MASK, &facts);
	if (err)
		return err;
	room = KYMO_REMOTE_SCRATCH + xstate_size + KYMO_REMOTE_FRAME_MAX;
	top = room_in_initial_stack(process, maps, room);
	if (!top)
		top = room_in_own_stack(thread, maps, room);
	if (!top)
		return -ENOSPC;
	size = kymo_remote_frame(&home, top, xstate, xstate_size, facts.mask, &process->remote.gadgets, frame,
				 XSTATE_MAX + KYMO_REMOTE_FRAME_MAX, &sp);
	if (size < 0)
		return size;
	err = write_call_frame(process, sp, frame, (size_t)size);
	if (err)
		return err;
	kymo_remote_call(&thread->registers, &process->remote.gadgets, sp, SYS_getpid, no_args, &call);
	err = kymo_joined_begin_calls(process->joined, thread->tid, &call);
	if (err) {
		free(process->remote.kept);
		process->remote.kept = NULL;
		return err;
	}
	process->remote.active = true;
	process->remote.thread = index;
	process->remote.mask = facts.mask;
	process->remote.registers = thread->registers;
	process->remote.sp = sp;
	return 0;
}

/*
 * A thread inside of a restartable sequence is on its way to the abort handler: the kernel sends it there when it goes
 * on, because it was stopped. That would not happen after calls that are made from elsewhere, so it is done here.
 * False when that can't be done.
 */
static bool leave_sequence(struct kymo_process *process, size_t index)
{
	struct kymo_thread *thread = &process->threads.items[index];
	struct user_regs_struct left = thread->registers;
	struct {
		uint32_t version, flags;
		uint64_t start, size, abort;
	} sequence;
	uint64_t area, at;
	uint32_t signature;

	if (kymo_thread_rseq(process, index, &area, &signature) || !area ||
	    kymo_process_read(process, area + 8, &at, sizeof(at)) || !at)
		return true;
	if (kymo_process_read(process, at, &sequence, sizeof(sequence)))
		return false;
	if (thread->registers.rip - sequence.start >= sequence.size)
		return true;
	left.rip = sequence.abort;
	if (kymo_joined_set_registers(process->joined, thread->tid, &left))
		return false;
	thread->registers = left;
	return true;
}

/*
 * Whether a thread may make system calls for a recorder: no seccomp filter that might kill it, no 32-bit mode, no
 * shadow stack (the gadget's `ret` would not match). `reason` is for the user.
 */
static bool may_make_calls(struct kymo_process *process, size_t index, const char **reason)
{
	const struct kymo_thread *thread = &process->threads.items[index];
	struct kymo_process_info info;

	if (thread->tid == process->pid ? !kymo_process_status(process, &info)
					: !kymo_process_peek_status(thread->tid, &info))
		return false;
	if (info.seccomp)
		*reason = "a seccomp filter might kill it for the system calls that setting up memory takes";
	else if (kymo_thread_dispatches_calls(process, index))
		*reason = "it gets signals for system calls that are made outside of one range of addresses "
			  "(PR_SET_SYSCALL_USER_DISPATCH)";
	else if (info.shadow_stack)
		*reason = "it has a shadow stack";
	else if (thread->registers.cs != KYMO_CODE_SELECTOR)
		*reason = "it is in 32-bit mode";
	else if (!leave_sequence(process, index))
		*reason = "it is inside of a restartable sequence that cannot be read";
	else
		return true;
	return false;
}

static enum kymo_remote_sleep sleep_of(struct kymo_process *process, size_t index)
{
	const struct user_regs_struct home = home_of(process, &process->threads.items[index]);

	return kymo_remote_sleep(&home);
}

pid_t kymo_thread_for_calls_rather(struct kymo_process *process)
{
	enum kymo_remote_sleep best = KYMO_REMOTE_SLEEPS_ONCE;

	for (size_t i = 0; i < process->threads.n; i++) {
		enum kymo_remote_sleep sleep = sleep_of(process, i);

		best = sleep < best ? sleep : best;
	}
	return kymo_thread_rather_than(process->pid, best, process);
}

static struct kymo_error *begin_by_any(struct kymo_process *process, const struct kymo_maps *maps)
{
	const char *reason = "there is no room for a signal frame on any stack";

	for (enum kymo_remote_sleep sleep = KYMO_REMOTE_AWAKE; sleep <= KYMO_REMOTE_SLEEPS_ONCE; sleep++)
		for (size_t i = 0; i < process->threads.n; i++)
			if (sleep_of(process, i) == sleep && may_make_calls(process, i, &reason) &&
			    !begin_by(process, i, maps))
				return NULL;
	return kymo_error_create(KYMO_ERROR_UNSAFE,
				 "no thread of process %d can make system calls to set up memory: %s", process->pid,
				 reason);
}

struct kymo_error *kymo_remote_begin(struct kymo_process *process)
{
	struct kymo_maps maps;
	struct kymo_error *error;

	if (process->remote.active) {
		process->remote.n_nested++;
		return NULL;
	}
	process->remote.n_nested = 0;
	error = kymo_process_maps(process, &maps);
	if (error)
		return error;
	error = check_gadgets(process, &maps);
	if (!error)
		error = begin_by_any(process, &maps);
	kymo_maps_deinit(&maps);
	return error;
}

struct kymo_error *kymo_remote_syscall(struct kymo_process *process, long number, const uint64_t args[6],
				       int64_t *result_ret)
{
	pid_t tid = process->threads.items[process->remote.thread].tid;
	struct user_regs_struct registers;
	struct kymo_error *error;

	if (number != SYS_memfd_create && number != SYS_close)
		kymo_process_forget_maps(process);
	kymo_remote_call(&process->remote.registers, &process->remote.gadgets, process->remote.sp, number, args,
			 &registers);
	error = kymo_joined_call(process, tid, &registers, &registers);
	if (error && error->code == KYMO_ERROR_GONE)
		process->remote.active = false;
	if (!error)
		*result_ret = (int64_t)registers.rax;
	return error;
}

uint64_t kymo_remote_scratch(const struct kymo_process *process)
{
	return process->remote.sp - KYMO_REMOTE_SCRATCH;
}

struct kymo_error *kymo_remote_end(struct kymo_process *process)
{
	kymo_cleanup_free uint8_t *kept = NULL;
	struct kymo_error *error;

	if (process->remote.n_nested && process->remote.active) {
		process->remote.n_nested--;
		return NULL;
	}
	kept = kymo_take(process->remote.kept);
	if (!process->remote.active)
		return NULL;
	process->remote.active = false;
	error = kymo_joined_give_back(process, process->threads.items[process->remote.thread].tid);
	if (!error)
		kymo_process_write(process, process->remote.sp - KYMO_REMOTE_SCRATCH, kept, process->remote.n_kept);
	return error;
}
