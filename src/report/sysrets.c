#include "report/sysrets.h"

#include "syscall/call.h"

/*
 * The innermost system call that is open, and can have come back so; false where none is. A child of vfork that is not
 * glibc's makes calls in the name of its parent's thread, and its last one never returns: what does is the parent's,
 * below it.
 */
static bool find_syscall(const struct functions *functions, const struct frames *frames,
			 const struct kymo_ctf_record *record, uint32_t *function_ret)
{
	for (uint32_t i = frames->n; i-- > 0;) {
		const uint32_t function = kymo_frames_at(frames, i)->function;
		const struct function *found = &functions->items[function];

		if (found->is_syscall &&
		    kymo_syscall_can_return(found->entry->offset, kymo_sysret_has_failed(record))) {
			*function_ret = function;
			return true;
		}
	}
	return false;
}

/*
 * The same where the record has the call's number, as the kernel has it: of one that has none any more (a signal
 * handler's return) that is -1. There, a thread is in one call at a time.
 */
static bool find_numbered(const struct functions *functions, const struct frames *frames, uint64_t number,
			  uint32_t *function_ret)
{
	for (uint32_t i = frames->n; i-- > 0;) {
		const uint32_t function = kymo_frames_at(frames, i)->function;
		const struct function *found = &functions->items[function];

		if (!found->is_syscall)
			continue;
		*function_ret = function;
		return number == UINT64_MAX || number == found->entry->offset;
	}
	return false;
}

bool kymo_sysret_find(const struct functions *functions, struct stack *stack, const struct role *role,
		      const struct kymo_ctf_record *record, uint32_t *function_ret)
{
	const struct frames *frames = &stack->now;

	for (size_t i = 0;; i++) {
		if (role->knows_number ? find_numbered(functions, frames, record->values[1], function_ret)
				       : find_syscall(functions, frames, record, function_ret)) {
			if (i)
				kymo_stack_wake(stack, i - 1);
			return true;
		}
		if (i == stack->others.n)
			return false;
		frames = &stack->others.items[i];
	}
}
