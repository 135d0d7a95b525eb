#include "report/calls.h"

#include <stdlib.h>
#include <string.h>

#include "aggr/choice.h"
#include "report/losses.h"
#include "report/sysrets.h"

/* Functions of a thread of which absent calls are remembered; beyond, their returns count as ones without an entry. */
#define MAX_ABSENT 64
#define FIRST_MAX 16     /* entries of a thread that may show that another one has ended */
#define UNOWNED_MAX 1024 /* returns in turn that no call of another thread was found for */

struct kymo_error *kymo_calls_init(struct calls *calls, const struct kymo_ctf_reader *reader,
				   const struct threads *threads)
{
	*calls = (struct calls){
		.trace = kymo_ctf_reader_trace(reader),
		.reader = reader,
		.threads = threads,
	};
	return kymo_functions_init(&calls->functions, calls->trace);
}

void kymo_calls_deinit(struct calls *calls)
{
	for (size_t i = 0; i < calls->stacks.n; i++)
		kymo_stack_deinit(&calls->stacks.items[i]);
	kymo_vec_deinit(&calls->stacks);
	kymo_spans_deinit(&calls->spans);
	kymo_functions_deinit(&calls->functions);
	*calls = (struct calls){ 0 };
}

void kymo_calls_foresee(struct calls *calls, struct fates *fates)
{
	calls->fates = fates;
	calls->foresees = fates && fates->is_known;
}

void kymo_calls_filter(struct calls *calls, const struct filter *filter)
{
	calls->filter = filter;
	for (size_t i = 0; i < calls->functions.n; i++)
		calls->functions.items[i].is_hidden = !kymo_filter_has_event(filter, calls->functions.items[i].entry);
}

bool kymo_calls_count(const struct calls *calls, const struct function *function, uint64_t tsc)
{
	return !function->is_hidden && (!calls->filter || kymo_filter_has_time(calls->filter, tsc));
}

/* ---- losses ---------------------------------------------------------------------------------- */

/* Take notice of the losses that have begun by `tsc`. The reader knows each before it gives a record after its
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

static bool is_over_loss_since(const struct calls *calls, uint64_t begin)
{
	return calls->has_loss && calls->loss_end >= begin;
}

static bool is_over_loss(const struct calls *calls, const struct frame *frame)
{
	return is_over_loss_since(calls, frame->begin);
}

/* ---- stacks ---------------------------------------------------------------------------------- */

static void remember_absent(struct stack *stack, uint32_t function, int kind)
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
static void shift_stack(struct calls *calls, size_t thread, struct stack *stack)
{
	const struct frame *frame = kymo_stack_at(stack, 0);
	struct function *function = &calls->functions.items[frame->function];
	bool over_loss = is_over_loss(calls, frame);

	if (over_loss)
		function->over_losses += kymo_calls_count(calls, function, frame->begin);
	else
		function->too_deep += kymo_calls_count(calls, function, frame->begin);
	remember_absent(stack, frame->function, over_loss ? STEP_LEAVE_OVER_LOSS : STEP_LEAVE_TOO_DEEP);
	if (calls->forgotten)
		calls->forgotten(calls->data, thread, frame);
	stack->now.first = (stack->now.first + 1) & (stack->now.size - 1);
	stack->now.n--;
}

/* The innermost call was left without a return. Times of calls within it are its caller's now. */
static void drop_call(struct calls *calls, size_t thread, struct stack *stack)
{
	const struct frame *frame = kymo_stack_at(stack, stack->now.n - 1);
	struct function *function = &calls->functions.items[frame->function];

	if (!kymo_calls_count(calls, function, frame->begin))
		;
	else if (is_over_loss(calls, frame))
		function->over_losses++;
	else if (frame->stack_pointer)
		function->unwound++;
	else
		function->left++;
	if (stack->now.n > 1)
		kymo_stack_at(stack, stack->now.n - 2)->children_ns += frame->children_ns;
	if (calls->left)
		calls->left(calls->data, thread, frame);
	kymo_stack_end(stack);
}

/* The thread was seen at that stack pointer: what is below it on the present stack is over, and with `inclusive` what
 * is there, too. */
static void unwind(struct calls *calls, size_t thread, struct stack *stack, uint64_t stack_pointer, bool inclusive)
{
	uint32_t keep = stack->now.n;

	/* Calls of which nothing is known go with those around them. */
	for (uint32_t height = stack->now.n; height; height--) {
		uint64_t at = kymo_stack_at(stack, height - 1)->stack_pointer;

		if (at > stack_pointer || (at == stack_pointer && !inclusive) ||
		    kymo_frame_returns(stack, kymo_stack_at(stack, height - 1)))
			break;
		if (at)
			keep = height - 1;
	}
	stack->moment++;
	while (stack->now.n > keep)
		drop_call(calls, thread, stack);
}

static void drop_all(struct calls *calls, size_t thread, struct stack *stack)
{
	stack->is_foreseen = false; /* stacks without calls are not kept */
	for (;;) {
		while (stack->now.n)
			drop_call(calls, thread, stack);
		if (!stack->others.n)
			return;
		kymo_stack_wake(stack, stack->others.n - 1);
	}
}

static bool has_entered_at(const struct frames *frames, uint64_t stack_pointer)
{
	if (stack_pointer < frames->low || stack_pointer > frames->high)
		return false;
	for (uint32_t i = 0; i < frames->n; i++)
		if (kymo_frames_at(frames, i)->stack_pointer == stack_pointer)
			return true;
	return false;
}

/*
 * A new thread may get the stack of one that has ended. Where it enters a function with a stack pointer that another
 * thread's call has, that call is over, and those within it: the thread has left them, by pthread_exit() or because it
 * was canceled. Only the first entries of a thread are compared with all others' calls.
 */
static void end_calls_of_ended(struct calls *calls, size_t thread, uint64_t stack_pointer)
{
	struct stack *own = &calls->stacks.items[thread];

	if (own->n_first == FIRST_MAX)
		return;
	own->n_first++;
	for (size_t i = 0; i < calls->stacks.n; i++) {
		struct stack *stack = &calls->stacks.items[i];
		size_t other = 0;

		if (i == thread || !stack->process || stack->process != own->process)
			continue;
		if (!has_entered_at(&stack->now, stack_pointer)) {
			while (other < stack->others.n && !has_entered_at(&stack->others.items[other], stack_pointer))
				other++;
			if (other == stack->others.n)
				continue;
			kymo_stack_wake(stack, other);
		}
		unwind(calls, i, stack, stack_pointer, true);
	}
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
	if (stack->process != process)
		drop_all(calls, thread, stack);
	stack->process = process;
	stack->is_foreseen = calls->foresees;
	while (stack->now.n && kymo_stack_at(stack, 0)->begin < calls->stale_before)
		shift_stack(calls, thread, stack);
	return stack;
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* The fate of the record's call if it is an entry, and they are known, or 0. */
static uint32_t next_fate(struct calls *calls, struct stack *stack, const struct role *role,
			  const struct kymo_ctf_record *record)
{
	const enum fate_part part = kymo_fates_part(role, record);
	size_t entry;

	calls->number += part != FATE_NONE && calls->number < UINT32_MAX;
	stack->number = calls->number;
	if (part != FATE_ENTRY)
		return 0;
	entry = calls->n_entries++;
	return entry < calls->fates->leaves.n ? calls->fates->leaves.items[entry] : 0;
}

/* The thread is at an entry: go to the stack that it is on, and end what is over there. False when memory is out. */
static bool arrive(struct calls *calls, size_t thread, struct stack *stack, uint64_t stack_pointer, uint32_t leaves)
{
	if (!(stack->is_foreseen ? kymo_stack_choose(stack, stack_pointer, leaves)
				 : kymo_stack_select(stack, stack_pointer)))
		return false;
	unwind(calls, thread, stack, stack_pointer, true);
	end_calls_of_ended(calls, thread, stack_pointer);
	return true;
}

static struct kymo_error *enter_call(struct calls *calls, size_t thread, struct stack *stack,
				     const struct kymo_ctf_record *record, uint32_t leaves, struct step *step)
{
	if (stack->now.n == MAX_DEPTH)
		shift_stack(calls, thread, stack);
	if (!kymo_frames_reserve(&stack->now))
		return &kymo_error_no_memory;
	stack->now.n++;
	step->kind = STEP_ENTER;
	step->entered = kymo_stack_at(stack, stack->now.n - 1);
	*step->entered = (struct frame){
		.begin = record->tsc,
		.stack_pointer = kymo_ctf_stack_pointer(record),
		.function = step->function,
		.leaves = leaves,
	};
	if (!leaves)
		return NULL;
	if (kymo_frame_returns(stack, step->entered))
		step->entered->until = leaves;
	else if (stack->now.n > 1)
		step->entered->until = kymo_stack_at(stack, stack->now.n - 2)->until;
	return NULL;
}

/* No call of the function is on the stack. */
static void leave_absent(struct stack *stack, struct function *function, bool is_counted, struct step *step)
{
	step->kind = STEP_LEAVE_WITHOUT_ENTRY;
	for (size_t i = 0; i < stack->absent.n; i++) {
		struct absent *absent = &stack->absent.items[i];

		if (absent->function != step->function)
			continue;
		step->kind = (enum step_kind)absent->kind;
		if (!--absent->count)
			*absent = stack->absent.items[--stack->absent.n];
		return;
	}
	function->without_entry += is_counted;
}

/* The innermost call of the function on the present stack. */
static uint32_t find_innermost(const struct stack *stack, uint32_t function)
{
	uint32_t height = stack->now.n;

	while (height && kymo_stack_at(stack, height - 1)->function != function)
		height--;
	return height;
}

/* The call that the record ends, by its stack pointer: its height, or 0. */
static uint32_t find_call(struct calls *calls, struct stack *stack, uint32_t function, uint64_t stack_pointer)
{
	uint32_t height = kymo_stack_find(stack, function, stack_pointer), n = 0;
	uint32_t revived = height ? 0 : kymo_stack_revive(stack, function, stack_pointer, &n);

	if (revived && calls->fates && !calls->functions.items[function].is_partial &&
	    !is_over_loss(calls, kymo_stack_at(stack, revived - 1)))
		calls->fates->is_needed = true;
	for (uint32_t i = 0; i < n; i++) {
		struct function *of = &calls->functions.items[kymo_stack_at(stack, i)->function];

		if (!kymo_calls_count(calls, of, kymo_stack_at(stack, i)->begin))
			continue;
		if (!is_over_loss(calls, kymo_stack_at(stack, i)))
			of->unwound -= of->unwound > 0;
		else
			of->over_losses -= of->over_losses > 0;
	}
	return height ? height : revived;
}

static bool has_call(const struct frames *frames, uint32_t function, uint64_t stack_pointer)
{
	const uint32_t height = kymo_frames_find(frames, function, stack_pointer);

	return height && kymo_frames_at(frames, height - 1)->stack_pointer == stack_pointer;
}

/* A coroutine may have gone on in another thread of its process: the one whose call it is, or `thread` where none has
 * it. */
static size_t find_owner(const struct calls *calls, size_t thread, uint32_t function, uint64_t stack_pointer)
{
	for (size_t i = 0; i < calls->stacks.n; i++) {
		const struct stack *stack = &calls->stacks.items[i];

		if (i == thread || !stack->process || stack->process != calls->stacks.items[thread].process)
			continue;
		if (has_call(&stack->now, function, stack_pointer))
			return i;
		for (size_t k = 0; k < stack->others.n; k++)
			if (has_call(&stack->others.items[k], function, stack_pointer))
				return i;
	}
	return thread;
}

static struct kymo_error *leave_call(struct calls *calls, size_t thread, struct stack *stack,
				     const struct kymo_ctf_record *record, struct step *step)
{
	struct function *function = &calls->functions.items[step->function];
	uint64_t stack_pointer = kymo_ctf_stack_pointer(record);
	uint32_t height;

	if (stack_pointer && function->n_unowned < UNOWNED_MAX &&
	    !kymo_stack_find(stack, step->function, stack_pointer)) {
		const size_t owner = find_owner(calls, thread, step->function, stack_pointer);

		function->n_unowned = owner == thread ? function->n_unowned + 1 : 0;
		thread = owner;
		stack = &calls->stacks.items[thread];
	}
	height = stack_pointer ? find_call(calls, stack, step->function, stack_pointer)
			       : find_innermost(stack, step->function);
	if (!height) {
		leave_absent(stack, function, kymo_calls_count(calls, function, record->tsc), step);
		return NULL;
	}
	stack->moment++;
	while (stack->now.n > height)
		drop_call(calls, thread, stack);
	step->frame = *kymo_stack_at(stack, height - 1);
	step->has_frame = true;
	step->ns = record->tsc > step->frame.begin ? kymo_ctf_duration_ns(calls->trace, record->tsc - step->frame.begin)
						   : 0;
	stack->now.n--;
	if (stack->now.n)
		kymo_stack_at(stack, stack->now.n - 1)->children_ns += step->ns;
	if (is_over_loss(calls, &step->frame)) {
		step->kind = STEP_LEAVE_OVER_LOSS;
		function->over_losses += kymo_calls_count(calls, function, step->frame.begin);
		return NULL;
	}
	step->kind = STEP_LEAVE;
	if (!kymo_calls_count(calls, function, step->frame.begin))
		return NULL;
	return kymo_function_add(function, step->ns, step->frame.children_ns) ? NULL : &kymo_error_no_memory;
}

/* ---- pairs of markers ------------------------------------------------------------------------ */

/* What is open was left: its end does not come any more. */
static void drop_spans(struct calls *calls, struct span_stack *stack, size_t n)
{
	struct function *function = &calls->functions.items[stack->function];

	for (size_t i = 0; i < n; i++) {
		const uint64_t begin = stack->begins.items[i];

		if (!kymo_calls_count(calls, function, begin))
			continue;
		function->over_losses += is_over_loss_since(calls, begin);
		function->left += !is_over_loss_since(calls, begin);
	}
	stack->begins.n -= n;
	memmove(stack->begins.items, stack->begins.items + n, stack->begins.n * sizeof(stack->begins.items[0]));
}

static bool end_span(struct calls *calls, struct span_stack *stack, uint64_t tsc)
{
	struct function *function = &calls->functions.items[stack->function];
	uint64_t begin;

	if (!stack->begins.n) {
		function->without_entry += kymo_calls_count(calls, function, tsc);
		return true;
	}
	begin = stack->begins.items[--stack->begins.n];
	if (!kymo_calls_count(calls, function, begin))
		return true;
	if (is_over_loss_since(calls, begin)) {
		function->over_losses++;
		return true;
	}
	return kymo_function_add(function, tsc > begin ? kymo_ctf_duration_ns(calls->trace, tsc - begin) : 0, 0);
}

static struct kymo_error *add_span(struct calls *calls, size_t thread, const struct role *role,
				   const struct kymo_ctf_record *record)
{
	const struct kymo_ctf_process *process = calls->threads->items.items[thread].process;
	struct span_stack *stack = kymo_spans_find(&calls->spans, thread, role->function);

	if (!stack)
		return &kymo_error_no_memory;
	/* An exec: nothing that the old program began ends. */
	if (stack->begins.n && stack->process != process)
		drop_spans(calls, stack, stack->begins.n);
	stack->process = process;
	if (!role->is_entry)
		return end_span(calls, stack, record->tsc) ? NULL : &kymo_error_no_memory;
	if (stack->begins.n == MAX_DEPTH)
		drop_spans(calls, stack, MAX_DEPTH / 2);
	return kymo_vec_push(&stack->begins, record->tsc) ? NULL : &kymo_error_no_memory;
}

static void finish_spans(struct calls *calls)
{
	for (size_t i = 0; i < calls->spans.stacks.n; i++) {
		const struct span_stack *stack = &calls->spans.stacks.items[i];
		struct function *function = &calls->functions.items[stack->function];

		for (size_t k = 0; k < stack->begins.n; k++) {
			const uint64_t begin = stack->begins.items[k];

			if (!kymo_calls_count(calls, function, begin))
				continue;
			function->over_losses += is_over_loss_since(calls, begin);
			function->open += !is_over_loss_since(calls, begin);
		}
	}
}

/* ---- records --------------------------------------------------------------------------------- */

struct kymo_error *kymo_calls_add(struct calls *calls, size_t thread, const struct kymo_ctf_record *record,
				  struct step *ret)
{
	const struct role *role = &calls->functions.roles[record->event - calls->trace->events];
	struct stack *stack;
	uint32_t leaves;

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
	if (role->is_span)
		return add_span(calls, thread, role, record);
	leaves = calls->foresees ? next_fate(calls, stack, role, record) : 0;
	if (record->event->kind == KYMO_CTF_ENTRY && !role->is_second && kymo_ctf_stack_pointer(record) &&
	    !arrive(calls, thread, stack, kymo_ctf_stack_pointer(record), leaves))
		return &kymo_error_no_memory;
	if (role->function == NO_FUNCTION)
		return NULL;
	if (role->is_sysret) { /* without an entry, that was lost: of an unknown call */
		if (!kymo_sysret_find(&calls->functions, stack, role, record, &ret->function))
			return NULL;
		calls->functions.items[ret->function].errors +=
			kymo_sysret_has_failed(record) &&
			kymo_calls_count(calls, &calls->functions.items[ret->function], record->tsc);
	}
	return role->is_entry ? enter_call(calls, thread, stack, record, leaves, ret)
			      : leave_call(calls, thread, stack, record, ret);
}

/* Whether another thread has the tid after this one. */
static bool has_successor(const struct calls *calls, const struct thread *thread)
{
	const struct kymo_ctf_trace *trace = calls->trace;

	return thread->entry && thread->entry + 1 < trace->threads + trace->n_threads &&
	       thread->entry[1].tid == thread->tid;
}

/* Count what is open on the present stack. */
static void finish_stack(struct calls *calls, size_t thread, struct stack *stack, bool has_ended)
{
	while (stack->now.n) {
		const struct frame *frame = kymo_stack_at(stack, stack->now.n - 1);

		if (has_ended || is_over_loss(calls, frame)) {
			drop_call(calls, thread, stack);
			continue;
		}
		calls->functions.items[frame->function].open +=
			kymo_calls_count(calls, &calls->functions.items[frame->function], frame->begin);
		stack->now.n--;
	}
}

void kymo_calls_finish(struct calls *calls)
{
	calls->left = NULL;
	take_losses(calls, UINT64_MAX);
	finish_spans(calls);
	for (size_t i = 0; i < calls->stacks.n; i++) {
		struct stack *stack = &calls->stacks.items[i];
		bool has_ended = has_successor(calls, &calls->threads->items.items[i]);

		stack->is_foreseen = false;
		finish_stack(calls, i, stack, has_ended);
		while (stack->others.n) {
			kymo_stack_wake(stack, stack->others.n - 1);
			finish_stack(calls, i, stack, has_ended);
		}
	}
}
