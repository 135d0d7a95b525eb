#include "report/calls.h"

#include <stdlib.h>
#include <string.h>

#include "report/losses.h"
#include "syscall/syscall.h"

/* Functions of a thread of which absent calls are remembered; beyond, their returns count as ones without an entry. */
#define MAX_ABSENT 64

struct kymo_error *kymo_calls_init(struct calls *calls, const struct kymo_ctf_reader *reader,
				   const struct threads *threads)
{
	*calls = (struct calls){
		.trace = kymo_ctf_reader_trace(reader), .reader = reader, .threads = threads,
	};
	return kymo_functions_init(&calls->functions, calls->trace);
}

void kymo_calls_deinit(struct calls *calls)
{
	for (size_t i = 0; i < calls->stacks.n; i++) {
		free(calls->stacks.items[i].frames);
		kymo_vec_deinit(&calls->stacks.items[i].absent);
	}
	kymo_vec_deinit(&calls->stacks);
	kymo_functions_deinit(&calls->functions);
	*calls = (struct calls){ 0 };
}

/* ---- losses ------------------------------------------------------------------------------------------------------ */

/* Take notice of the losses that have begun by `tsc`. The reader knows each before it gives a record behind its
 * beginning. */
static void take_losses(struct calls *calls, uint64_t tsc)
{
	size_t n;
	const struct kymo_ctf_loss *losses = kymo_ctf_reader_losses(calls->reader, &n);

	for (; calls->n_losses < n && losses[calls->n_losses].begin <= tsc; calls->n_losses++) {
		const struct kymo_ctf_loss *loss = &losses[calls->n_losses];

		if (kymo_loss_is_in_vforks(loss))
			continue;
		calls->has_loss = true;
		if (loss->end > calls->loss_end)
			calls->loss_end = loss->end;
		/* Where one loss follows the other no end of a span may ever come: a beginning will do. */
		if (loss->begin > calls->stale_before)
			calls->stale_before = loss->begin;
	}
	if (calls->has_loss && calls->loss_end < tsc && calls->loss_end >= calls->stale_before)
		calls->stale_before = calls->loss_end + 1;
	if (tsc > kymo_ctf_reader_damaged_since(calls->reader)) {
		calls->has_loss = true;
		calls->loss_end = UINT64_MAX;
	}
}

static bool is_over_loss(const struct calls *calls, const struct frame *frame)
{
	return calls->has_loss && calls->loss_end >= frame->begin;
}

/* ---- stacks ------------------------------------------------------------------------------------------------------ */

static void remember_absent(struct stack *stack, uint32_t function, enum step_kind kind)
{
	for (size_t i = 0; i < stack->absent.n; i++) {
		struct absent *absent = &stack->absent.items[i];

		if (absent->function == function && absent->kind == kind) {
			absent->count++;
			return;
		}
	}
	/* Without memory, or room, a return of it will count as one without an entry. */
	if (stack->absent.n < MAX_ABSENT)
		(void)kymo_vec_push(&stack->absent, (struct absent){ function, kind, 1 });
}

/* The outermost call leaves the stack. */
static void shift(struct calls *calls, size_t thread, struct stack *stack)
{
	const struct frame *frame = kymo_stack_at(stack, 0);
	struct function *function = &calls->functions.items[frame->function];
	bool over_loss = is_over_loss(calls, frame);

	if (over_loss)
		function->over_losses++;
	else
		function->too_deep++;
	remember_absent(stack, frame->function, over_loss ? STEP_LEAVE_OVER_LOSS : STEP_LEAVE_TOO_DEEP);
	if (calls->forgotten)
		calls->forgotten(calls->data, thread, frame);
	stack->first = (stack->first + 1) & (stack->size - 1);
	stack->n--;
}

/* The innermost call was left without a return. Times of calls within it are its caller's now. */
static void drop(struct calls *calls, size_t thread, struct stack *stack)
{
	const struct frame *frame = kymo_stack_at(stack, stack->n - 1);
	struct function *function = &calls->functions.items[frame->function];

	if (is_over_loss(calls, frame))
		function->over_losses++;
	else
		function->left++;
	if (stack->n > 1)
		kymo_stack_at(stack, stack->n - 2)->children_ns += frame->children_ns;
	if (calls->left)
		calls->left(calls->data, thread, frame);
	stack->n--;
}

static bool grow(struct stack *stack)
{
	uint32_t size = stack->size ? stack->size * 2 : 8;
	struct frame *frames = reallocarray(NULL, size, sizeof(*frames));

	if (!frames)
		return false;
	for (uint32_t i = 0; i < stack->n; i++)
		frames[i] = *kymo_stack_at(stack, i);
	free(stack->frames);
	stack->frames = frames;
	stack->first = 0;
	stack->size = size;
	return true;
}

/* The thread's stack, without calls that can't end any more or have become stale. NULL when memory is out. */
static struct stack *stack_of(struct calls *calls, size_t thread)
{
	const struct kymo_ctf_process *process = calls->threads->items.items[thread].process;
	struct stack *stack;

	while (calls->stacks.n <= thread)
		if (!kymo_vec_push(&calls->stacks, (struct stack){ .process = process }))
			return NULL;
	stack = &calls->stacks.items[thread];
	/* An exec: nothing of the old program returns. */
	while (stack->n && stack->process != process)
		drop(calls, thread, stack);
	stack->process = process;
	while (stack->n && kymo_stack_at(stack, 0)->begin < calls->stale_before)
		shift(calls, thread, stack);
	return stack;
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

static struct kymo_error *enter(struct calls *calls, size_t thread, struct stack *stack, const struct kymo_ctf_record *record,
				struct step *step)
{
	if (stack->n == MAX_DEPTH)
		shift(calls, thread, stack);
	if (stack->n == stack->size && !grow(stack))
		return &kymo_error_no_memory;
	stack->n++;
	step->kind = STEP_ENTER;
	step->entered = kymo_stack_at(stack, stack->n - 1);
	*step->entered = (struct frame){ .begin = record->tsc, .function = step->function };
	return NULL;
}

/* No call of the function is on the stack. */
static void leave_absent(struct stack *stack, struct function *function, struct step *step)
{
	step->kind = STEP_LEAVE_WITHOUT_ENTRY;
	for (size_t i = 0; i < stack->absent.n; i++) {
		struct absent *absent = &stack->absent.items[i];

		if (absent->function != step->function)
			continue;
		step->kind = absent->kind;
		if (!--absent->count)
			*absent = stack->absent.items[--stack->absent.n];
		return;
	}
	function->without_entry++;
}

static bool has_failed(const struct kymo_ctf_record *record)
{
	return record->event->n_fields && !(record->faults & 1) && record->values[0] > (uint64_t)-4096;
}

/*
 * The innermost system call that is open, and can have come back so; false where none is. A child of vfork that is not glibc's makes calls in the name of its parent's
 * thread, and its last one never returns: what does is the parent's, below it.
 */
static bool find_syscall(const struct calls *calls, const struct stack *stack, const struct kymo_ctf_record *record, uint32_t *function_ret)
{
	for (uint32_t i = stack->n; i-- > 0;) {
		const uint32_t function = kymo_stack_at(stack, i)->function;
		const struct function *found = &calls->functions.items[function];

		if (found->is_syscall && kymo_syscall_can_return(found->entry->offset, has_failed(record))) {
			*function_ret = function;
			return true;
		}
	}
	return false;
}

/*
 * The same where the record has the call's number, as the kernel has it: of one that has none any more (a signal handler's return) that is -1. There, a thread is in one
 * call at a time.
 */
static bool find_numbered(const struct calls *calls, const struct stack *stack, uint64_t number, uint32_t *function_ret)
{
	for (uint32_t i = stack->n; i-- > 0;) {
		const uint32_t function = kymo_stack_at(stack, i)->function;
		const struct function *found = &calls->functions.items[function];

		if (!found->is_syscall)
			continue;
		*function_ret = function;
		return number == UINT64_MAX || number == found->entry->offset;
	}
	return false;
}

static struct kymo_error *leave(struct calls *calls, size_t thread, struct stack *stack,
				const struct kymo_ctf_record *record, struct step *step)
{
	struct function *function = &calls->functions.items[step->function];
	uint32_t height = stack->n;

	while (height && kymo_stack_at(stack, height - 1)->function != step->function)
		height--;
	if (!height) {
		leave_absent(stack, function, step);
		return NULL;
	}
	while (stack->n > height)
		drop(calls, thread, stack);
	step->frame = *kymo_stack_at(stack, height - 1);
	step->has_frame = true;
	step->ns = record->tsc > step->frame.begin ?
			   kymo_ctf_duration_ns(calls->trace, record->tsc - step->frame.begin) : 0;
	stack->n--;
	if (stack->n)
		kymo_stack_at(stack, stack->n - 1)->children_ns += step->ns;
	if (is_over_loss(calls, &step->frame)) {
		step->kind = STEP_LEAVE_OVER_LOSS;
		function->over_losses++;
		return NULL;
	}
	step->kind = STEP_LEAVE;
	return kymo_function_add(function, step->ns, step->frame.children_ns) ? NULL : &kymo_error_no_memory;
}

struct kymo_error *kymo_calls_add(struct calls *calls, size_t thread, const struct kymo_ctf_record *record,
				  struct step *ret)
{
	const struct role *role = &calls->functions.roles[record->event - calls->trace->events];
	struct stack *stack;

	ret->kind = STEP_NONE;
	ret->has_frame = false;
	if (!calls->functions.n)
		return NULL;
	if (thread == NO_THREAD) {
		calls->other_threads += role->function != NO_FUNCTION;
		return NULL;
	}
	take_losses(calls, record->tsc);
	stack = stack_of(calls, thread);
	if (!stack)
		return &kymo_error_no_memory;
	ret->function = role->function;
	if (role->function == NO_FUNCTION)
		return NULL;
	if (role->is_sysret) {	/* without an entry, that was lost: nobody knows of what call */
		if (!(role->knows_number ? find_numbered(calls, stack, record->values[1], &ret->function) :
					   find_syscall(calls, stack, record, &ret->function)))
			return NULL;
		calls->functions.items[ret->function].errors += has_failed(record);
	}
	return role->is_entry ? enter(calls, thread, stack, record, ret) : leave(calls, thread, stack, record, ret);
}

/* Whether another thread has the tid behind this one. */
static bool has_successor(const struct calls *calls, const struct thread *thread)
{
	const struct kymo_ctf_trace *trace = calls->trace;

	return thread->entry && thread->entry + 1 < trace->threads + trace->n_threads &&
	       thread->entry[1].tid == thread->tid;
}

void kymo_calls_finish(struct calls *calls)
{
	calls->left = NULL;
	take_losses(calls, UINT64_MAX);
	for (size_t i = 0; i < calls->stacks.n; i++) {
		struct stack *stack = &calls->stacks.items[i];
		bool has_ended = has_successor(calls, &calls->threads->items.items[i]);

		while (stack->n) {
			const struct frame *frame = kymo_stack_at(stack, stack->n - 1);

			if (!has_ended && !is_over_loss(calls, frame)) {
				calls->functions.items[frame->function].open++;
				stack->n--;
				continue;
			}
			drop(calls, i, stack);
		}
	}
}
