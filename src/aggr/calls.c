#include "aggr/calls.h"

#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 4096u
#define FIRST_SIZE 64u

struct call_thread {
	uint64_t key;
	bool is_used;
	struct stack stack;
};

/* A record that waits is a copy. */
static void free_record(const struct kymo_call_hit *hit)
{
	free((void *)(uintptr_t)hit->record);
}

void kymo_open_calls_deinit(struct kymo_open_calls *calls)
{
	for (size_t i = 0; i < calls->size; i++)
		if (calls->threads[i].is_used)
			kymo_stack_deinit(&calls->threads[i].stack);
	free(calls->threads);
	for (size_t i = 0; i < calls->waiting.items.n; i++)
		free_record(&calls->waiting.items.items[i]);
	kymo_waiting_deinit(&calls->waiting);
	kymo_entry_records_deinit(&calls->entries);
	*calls = (struct kymo_open_calls){ .size = 0 };
}

/* ---- threads --------------------------------------------------------------------------------- */

static uint64_t key_of(const struct kymo_call_hit *hit)
{
	return (uint32_t)hit->tid | (hit->is_span ? ((uint64_t)hit->function + 1) << 32 : 0);
}

static struct call_thread *find_call_thread(const struct kymo_open_calls *calls, uint64_t key)
{
	size_t at = (size_t)(key * 0x9e3779b97f4a7c15u >> 32) & (calls->size - 1);

	while (calls->threads[at].is_used && calls->threads[at].key != key)
		at = (at + 1) & (calls->size - 1);
	return &calls->threads[at];
}

static bool grow_calls(struct kymo_open_calls *calls)
{
	struct kymo_open_calls grown = { .size = calls->size ? calls->size * 2 : FIRST_SIZE };

	grown.threads = calloc(grown.size, sizeof(*grown.threads));
	if (!grown.threads)
		return false;
	for (size_t i = 0; i < calls->size; i++)
		if (calls->threads[i].is_used)
			*find_call_thread(&grown, calls->threads[i].key) = calls->threads[i];
	free(calls->threads);
	calls->threads = grown.threads;
	calls->size = grown.size;
	return true;
}

static struct stack *stack_of(struct kymo_open_calls *calls, uint64_t key)
{
	struct call_thread *thread;

	if (2 * (calls->n_threads + 1) > calls->size && !grow_calls(calls))
		return NULL;
	thread = find_call_thread(calls, key);
	calls->n_threads += !thread->is_used;
	thread->is_used = true;
	thread->key = key;
	return &thread->stack;
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* The thread has entered a function at that stack pointer: what is there, and below it, is over. */
static void unwind(struct stack *stack, uint64_t stack_pointer)
{
	stack->moment++;
	while (stack->now.n && kymo_stack_at(stack, stack->now.n - 1)->stack_pointer <= stack_pointer)
		kymo_stack_end(stack);
}

/* The outermost call leaves a stack that is full. */
static void shift_stack(struct stack *stack)
{
	stack->now.first = (stack->now.first + 1) & (stack->now.size - 1);
	stack->now.n--;
}

/* ---- records of entries ---------------------------------------------------------------------- */

/* Calls that are open, while their records are copied. */
struct copying {
	const struct kymo_entry_records *from;
	struct kymo_entry_records to;
	uint64_t n_forgotten;
};

static bool copy_record(struct copying *copying, struct frame *frame)
{
	const uint32_t n = frame->record_size;

	if (!n)
		return true;
	if (copying->to.n + n > KYMO_ENTRY_RECORDS_MAX) {
		frame->record_size = 0;
		copying->n_forgotten++;
		return true;
	}
	if (!kymo_entry_records_have_room(&copying->to, n) && !kymo_entry_records_grow(&copying->to, n))
		return false;
	frame->record_at =
		kymo_entry_records_put(&copying->to, kymo_entry_records_get(copying->from, frame->record_at), n);
	return true;
}

static bool copy_frames(struct copying *copying, struct frames *frames)
{
	for (uint32_t i = 0; i < frames->n; i++)
		if (!copy_record(copying, &frames->items[(frames->first + i) & (frames->size - 1)]))
			return false;
	return true;
}

/* Calls that are taken for over may come back. */
static bool copy_stack(struct copying *copying, struct stack *stack)
{
	const uint64_t n_over = stack->n_over < MAX_OVER ? stack->n_over : MAX_OVER;
	bool done = copy_frames(copying, &stack->now);

	for (size_t i = 0; done && i < stack->others.n; i++)
		done = copy_frames(copying, &stack->others.items[i]);
	for (uint64_t i = 0; done && stack->over && i < n_over; i++)
		done = copy_record(copying, &stack->over[i].frame);
	return done;
}

/* Forget records of calls that have ended. What was copied when memory runs out is lost with all the others. */
static bool make_room(struct kymo_open_calls *calls, uint32_t n)
{
	struct copying copying = { .from = &calls->entries };
	bool done = true;

	for (size_t i = 0; done && i < calls->size; i++)
		if (calls->threads[i].is_used)
			done = copy_stack(&copying, &calls->threads[i].stack);
	done = done && kymo_entry_records_grow(&copying.to, n);
	calls->n_forgotten += copying.n_forgotten;
	kymo_entry_records_deinit(&calls->entries);
	calls->entries = copying.to;
	return done;
}

static struct kymo_error *enter_call(struct kymo_open_calls *calls, struct stack *stack,
				     const struct kymo_call_hit *hit)
{
	struct frame *frame;

	if (!hit->is_span) {
		if (!kymo_stack_select(stack, hit->stack_pointer))
			return &kymo_error_no_memory;
		unwind(stack, hit->stack_pointer);
	}
	if (stack->now.n == DEPTH_MAX)
		shift_stack(stack);
	if (!kymo_frames_reserve(&stack->now) ||
	    (hit->record && !kymo_entry_records_have_room(&calls->entries, hit->record_size) &&
	     !make_room(calls, hit->record_size)))
		return &kymo_error_no_memory;
	stack->now.n++;
	frame = kymo_stack_at(stack, stack->now.n - 1);
	*frame = (struct frame){
		.begin = hit->tsc,
		.stack_pointer = hit->stack_pointer,
		.function = hit->function,
		.kept_faults = hit->faults,
		.kept_stack = hit->stack,
		.record_event = hit->event,
	};
	if (hit->record) {
		frame->record_at = kymo_entry_records_put(&calls->entries, hit->record, hit->record_size);
		frame->record_size = hit->record_size;
	}
	memcpy(frame->kept, hit->values, sizeof(frame->kept));
	return NULL;
}

static void leave_call(struct kymo_open_calls *calls, struct stack *stack, const struct kymo_call_hit *hit,
		       kymo_call_ended ended, void *data)
{
	uint32_t height = hit->is_span ? stack->now.n : kymo_stack_find(stack, hit->function, hit->stack_pointer),
		 n = 0;
	struct frame frame;

	if (!height && !hit->is_span)
		height = kymo_stack_revive(stack, hit->function, hit->stack_pointer, &n);
	if (!height) {
		ended(data, KYMO_CALL_WITHOUT_ENTRY, NULL, hit);
		return;
	}
	stack->moment++;
	while (stack->now.n > height)
		kymo_stack_end(stack);
	frame = *kymo_stack_at(stack, height - 1);
	stack->now.n--;
	ended(data, calls->loss_end && calls->loss_end >= frame.begin ? KYMO_CALL_OVER_LOSS : KYMO_CALL_RETURNED,
	      &frame, hit);
}

static struct kymo_error *take_call(struct kymo_open_calls *calls, const struct kymo_call_hit *hit,
				    kymo_call_ended ended, void *data)
{
	struct stack *stack;

	if (hit->loss_end) {
		if (hit->loss_end > calls->loss_end)
			calls->loss_end = hit->loss_end;
		return NULL;
	}
	stack = stack_of(calls, key_of(hit));
	if (!stack)
		return &kymo_error_no_memory;
	if (hit->is_entry)
		return enter_call(calls, stack, hit);
	leave_call(calls, stack, hit, ended, data);
	return NULL;
}

/* ---- in the order of time -------------------------------------------------------------------- */

struct kymo_error *kymo_open_calls_add(struct kymo_open_calls *calls, const struct kymo_call_hit *hit)
{
	uint8_t *record = hit->record ? malloc(hit->record_size) : NULL;
	struct kymo_call_hit *copy = hit->record && !record ? NULL : kymo_waiting_add(&calls->waiting, hit);

	if (!copy) {
		free(record);
		return &kymo_error_no_memory;
	}
	if (record)
		memcpy(record, hit->record, hit->record_size);
	copy->record = record;
	copy->record_size = record ? hit->record_size : 0;
	calls->n_bytes += copy->record_size;
	return NULL;
}

struct kymo_error *kymo_open_calls_settle(struct kymo_open_calls *calls, uint64_t tsc, kymo_call_ended ended,
					  void *data)
{
	struct kymo_waiting *waiting = &calls->waiting;
	struct kymo_error *error = NULL;
	struct kymo_call_hit *hit;

	if (!kymo_waiting_begin(waiting))
		return &kymo_error_no_memory;
	while (!error && (hit = kymo_waiting_oldest(waiting)) != NULL &&
	       (hit->tsc < tsc || waiting->n > KYMO_CALLS_WAITING_MAX || calls->n_bytes > KYMO_CALLS_BYTES_MAX)) {
		error = take_call(calls, hit, ended, data);
		calls->n_bytes -= hit->record_size;
		free_record(hit);
		kymo_waiting_pop(waiting);
	}
	kymo_waiting_end(waiting);
	return error;
}
