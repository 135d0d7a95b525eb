#include "aggr/stacks.h"

#include <stdlib.h>

void kymo_stack_deinit(struct stack *stack)
{
	for (size_t i = 0; i < stack->others.n; i++)
		free(stack->others.items[i].items);
	kymo_vec_deinit(&stack->others);
	kymo_vec_deinit(&stack->absent);
	free(stack->now.items);
	free(stack->over);
	*stack = (struct stack){ .over = NULL };
}

/* ---- one of them ----------------------------------------------------------------------------- */

bool kymo_frames_reserve(struct frames *frames)
{
	uint32_t size = frames->size ? frames->size * 2 : 8;
	struct frame *items;

	if (frames->n < frames->size)
		return true;
	items = reallocarray(NULL, size, sizeof(*items));
	if (!items)
		return false;
	for (uint32_t i = 0; i < frames->n; i++)
		items[i] = *kymo_frames_at(frames, i);
	free(frames->items);
	frames->items = items;
	frames->first = 0;
	frames->size = size;
	return true;
}

uint32_t kymo_frames_find(const struct frames *frames, uint32_t function, uint64_t stack_pointer)
{
	for (uint32_t height = frames->n; height; height--) {
		const struct frame *frame = kymo_frames_at(frames, height - 1);

		if (frame->stack_pointer > stack_pointer)
			return 0;
		if (frame->function == function && (!frame->stack_pointer || frame->stack_pointer == stack_pointer))
			return height;
	}
	return 0;
}

static bool has_seen(const struct frames *frames, uint64_t stack_pointer)
{
	return frames->high && stack_pointer >= frames->low && stack_pointer <= frames->high;
}

static void see_frame(struct frames *frames, uint64_t stack_pointer)
{
	if (!frames->high || stack_pointer < frames->low)
		frames->low = stack_pointer;
	if (stack_pointer > frames->high)
		frames->high = stack_pointer;
}

/* Bytes from what was seen of it. */
static uint64_t distance_of(const struct frames *frames, uint64_t stack_pointer)
{
	if (!frames->high)
		return UINT64_MAX;
	if (has_seen(frames, stack_pointer))
		return 0;
	return stack_pointer < frames->low ? frames->low - stack_pointer : stack_pointer - frames->high;
}

/* ---- one of several -------------------------------------------------------------------------- */

void kymo_stack_wake(struct stack *stack, size_t other)
{
	struct frames woken = stack->others.items[other];

	stack->clear = (struct piece){ 1, 0 };
	if (stack->now.n || (stack->is_foreseen && stack->now.n_pieces && stack->others.n <= EMPTY_MAX)) {
		stack->others.items[other] = stack->now;
	} else {
		free(stack->now.items);
		stack->others.items[other] = stack->others.items[--stack->others.n];
	}
	stack->now = woken;
}

/* The present one waits, and another one begins. If there are too many, the calls of the one that is dropped stay open.
 * */
static bool begin_stack(struct stack *stack)
{
	stack->clear = (struct piece){ 1, 0 };
	if (!stack->now.n) {
		stack->now.low = stack->now.high = 0;
		stack->now.n_pieces = 0;
		return true;
	}
	if (stack->others.n == MAX_STACKS)
		return true;
	if (!kymo_vec_push(&stack->others, stack->now))
		return false;
	stack->now = (struct frames){ .n = 0 };
	return true;
}

/* Whether another stack lies between what was seen of the present one and there. */
static bool is_cut_off(const struct stack *stack, uint64_t stack_pointer)
{
	for (size_t i = 0; i < stack->others.n; i++) {
		const struct frames *other = &stack->others.items[i];

		if (other->high &&
		    (stack_pointer < stack->now.low ? other->low < stack->now.low && other->high > stack_pointer
						    : other->high > stack->now.high && other->low < stack_pointer))
			return true;
	}
	return false;
}

bool kymo_stack_select(struct stack *stack, uint64_t stack_pointer)
{
	uint64_t to_now = distance_of(&stack->now, stack_pointer), least = UINT64_MAX;
	size_t nearest = 0;

	for (size_t i = 0; i < stack->others.n && to_now; i++) {
		uint64_t to_other = distance_of(&stack->others.items[i], stack_pointer);

		if (to_other >= least)
			continue;
		least = to_other;
		nearest = i;
	}
	if (to_now && !least)
		kymo_stack_wake(stack, nearest);
	else if (to_now < STACK_REACH && !is_cut_off(stack, stack_pointer))
		; /* it is the present one */
	else if (least < STACK_NEAR)
		kymo_stack_wake(stack, nearest);
	else if (!begin_stack(stack))
		return false;
	see_frame(&stack->now, stack_pointer);
	return true;
}

uint32_t kymo_stack_find(struct stack *stack, uint32_t function, uint64_t stack_pointer)
{
	uint32_t height = kymo_frames_find(&stack->now, function, stack_pointer);

	for (size_t i = 0; i < stack->others.n && !height; i++) {
		if (!has_seen(&stack->others.items[i], stack_pointer))
			continue;
		height = kymo_frames_find(&stack->others.items[i], function, stack_pointer);
		if (height)
			kymo_stack_wake(stack, i);
	}
	return height;
}

/* ---- calls that are taken for over ----------------------------------------------------------- */

void kymo_stack_end(struct stack *stack)
{
	const struct frame *frame = kymo_stack_at(stack, stack->now.n - 1);

	/* Without memory, its return will count as one without an entry. */
	if (!stack->over && frame->stack_pointer)
		stack->over = calloc(MAX_OVER, sizeof(*stack->over));
	if (stack->over && frame->stack_pointer)
		stack->over[stack->n_over++ & (MAX_OVER - 1)] = (struct over){ *frame, stack->moment };
	stack->now.n--;
}

static struct over *over_at(const struct stack *stack, uint64_t number)
{
	return &stack->over[number & (MAX_OVER - 1)];
}

/* The newest call like that, as a number; `*found_ret` says if there is one. */
static uint64_t find_over(const struct stack *stack, uint32_t function, uint64_t stack_pointer, bool *found_ret)
{
	const uint64_t oldest = stack->n_over > MAX_OVER ? stack->n_over - MAX_OVER : 0;

	*found_ret = false;
	for (uint64_t number = stack->over ? stack->n_over : 0; number > oldest; number--) {
		const struct frame *frame = &over_at(stack, number - 1)->frame;

		*found_ret = frame->stack_pointer == stack_pointer && frame->function == function;
		if (*found_ret)
			return number - 1;
	}
	return 0;
}

uint32_t kymo_stack_revive(struct stack *stack, uint32_t function, uint64_t stack_pointer, uint32_t *n_ret)
{
	bool is_found;
	const uint64_t first = find_over(stack, function, stack_pointer, &is_found);
	const uint64_t moment = is_found ? over_at(stack, first)->moment : 0;
	uint64_t end = first;

	if (!is_found || stack->others.n == MAX_STACKS)
		return 0;
	while (end < stack->n_over && over_at(stack, end)->moment == moment && over_at(stack, end)->frame.stack_pointer)
		end++;
	/* What was seen between its own calls and these was theirs. */
	if (stack->now.n && kymo_stack_at(stack, stack->now.n - 1)->stack_pointer > stack_pointer)
		stack->now.low = kymo_stack_at(stack, stack->now.n - 1)->stack_pointer;
	if (!begin_stack(stack))
		return 0;
	*n_ret = 0;
	for (uint64_t number = end; number-- > first && kymo_frames_reserve(&stack->now);) {
		struct frame *frame = &over_at(stack, number)->frame;

		stack->now.n++;
		*kymo_stack_at(stack, stack->now.n - 1) = *frame;
		see_frame(&stack->now, frame->stack_pointer);
		frame->stack_pointer = 0;
		++*n_ret;
	}
	return kymo_frames_find(&stack->now, function, stack_pointer);
}
