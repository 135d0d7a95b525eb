#include "aggr/choice.h"

#include <stdlib.h>

/* Calls of stacks that wait, and do not return, are passed over in search of one that does: so many for an entry. */
#define DEAD_MAX 4096u
#define NOW SIZE_MAX

/* How well a stack fits a stack pointer. */
struct fit {
	size_t which;      /* in `others`, or NOW */
	bool is_known;     /* it was seen there before, or right above */
	uint64_t distance; /* to the call above it, or where there is none, to what was seen of the stack */
};

/* ---- pieces ---------------------------------------------------------------------------------- */

static uint64_t distance_to(const struct piece *piece, uint64_t stack_pointer)
{
	if (stack_pointer < piece->low)
		return piece->low - stack_pointer;
	return stack_pointer > piece->high ? stack_pointer - piece->high : 0;
}

/* The piece that is nearest; NULL: the stack has none. */
static struct piece *nearest_piece(struct frames *frames, uint64_t stack_pointer)
{
	struct piece *nearest = NULL;

	for (uint32_t i = 0; i < frames->n_pieces; i++)
		if (!nearest || distance_to(&frames->pieces[i], stack_pointer) < distance_to(nearest, stack_pointer))
			nearest = &frames->pieces[i];
	return nearest;
}

static void see_piece(struct frames *frames, uint64_t stack_pointer)
{
	struct piece *nearest = nearest_piece(frames, stack_pointer);

	if (!nearest || (distance_to(nearest, stack_pointer) > STACK_GAP && frames->n_pieces < STACK_PIECES)) {
		frames->pieces[frames->n_pieces++] = (struct piece){ stack_pointer, stack_pointer };
	} else {
		if (stack_pointer < nearest->low)
			nearest->low = stack_pointer;
		if (stack_pointer > nearest->high)
			nearest->high = stack_pointer;
	}
	if (!frames->high || stack_pointer < frames->low)
		frames->low = stack_pointer;
	if (stack_pointer > frames->high)
		frames->high = stack_pointer;
}

/* ---- which one ------------------------------------------------------------------------------- */

/* False: the call is not on that stack. */
static bool fit_stack(struct stack *stack, size_t which, uint64_t stack_pointer, uint32_t leaves, uint32_t *left,
		      struct fit *ret)
{
	struct frames *frames = which == NOW ? &stack->now : &stack->others.items[which];
	const struct piece *nearest = nearest_piece(frames, stack_pointer);

	*ret = (struct fit){ .which = which, .distance = UINT64_MAX };
	if (nearest)
		ret->distance = distance_to(nearest, stack_pointer);
	ret->is_known = !ret->distance;
	/* Of stacks that are known there, one with a call near above it is better than one that is empty. */
	if (ret->is_known)
		ret->distance = STACK_CLOSE;
	for (uint32_t height = frames->n; height; height--) {
		const struct frame *frame = kymo_frames_at(frames, height - 1);

		if (!frame->stack_pointer)
			continue;
		if (frame->stack_pointer > stack_pointer) {
			ret->distance = frame->stack_pointer - stack_pointer;
			ret->is_known |= ret->distance < STACK_GAP;
			return frame->until <= stack->number || frame->until > (leaves & ~LEAVES_NEVER);
		}
		if (kymo_frame_returns(stack, frame) || (which != NOW && !*left))
			return false;
		*left -= which != NOW;
	}
	return true;
}

static bool is_better(const struct fit *a, const struct fit *b)
{
	return a->is_known != b->is_known ? a->is_known : a->distance < b->distance;
}

/* Between which stack pointers no other stack was seen, around one on the present stack. */
static void find_clear(struct stack *stack, uint64_t stack_pointer)
{
	stack->clear = (struct piece){ 0, UINT64_MAX };
	for (size_t i = 0; i < stack->others.n; i++) {
		const struct frames *other = &stack->others.items[i];

		for (uint32_t k = 0; k < other->n_pieces; k++) {
			const struct piece *piece = &other->pieces[k];

			if (!distance_to(piece, stack_pointer))
				stack->clear = (struct piece){ 1, 0 };
			else if (piece->high < stack_pointer && piece->high >= stack->clear.low)
				stack->clear.low = piece->high + 1;
			else if (piece->low > stack_pointer && piece->low <= stack->clear.high)
				stack->clear.high = piece->low - 1;
		}
	}
}

static bool is_clear(const struct stack *stack, uint64_t stack_pointer)
{
	return stack_pointer >= stack->clear.low && stack_pointer <= stack->clear.high;
}

/* Another stack begins. If there are too many, one without calls is forgotten; if there is none, the present one goes
 * on. */
static bool begin_another(struct stack *stack)
{
	size_t empty = 0;

	stack->clear = (struct piece){ 1, 0 };
	if (!stack->now.n && !stack->now.n_pieces)
		return true;
	if (stack->others.n < MAX_STACKS) {
		if (!kymo_vec_push(&stack->others, stack->now))
			return false;
		stack->now = (struct frames){ .n = 0 };
		return true;
	}
	while (empty < stack->others.n && stack->others.items[empty].n)
		empty++;
	if (empty == stack->others.n)
		return true;
	free(stack->others.items[empty].items);
	stack->others.items[empty] = stack->now;
	stack->now = (struct frames){ .n = 0 };
	return true;
}

bool kymo_stack_choose(struct stack *stack, uint64_t stack_pointer, uint32_t leaves)
{
	uint32_t left = DEAD_MAX;
	struct fit fit, best;
	bool has_best = fit_stack(stack, NOW, stack_pointer, leaves, &left, &best) &&
			(best.is_known || best.distance < STACK_REACH);

	if (has_best && is_clear(stack, stack_pointer) &&
	    (best.is_known || is_clear(stack, stack_pointer + best.distance))) {
		see_piece(&stack->now, stack_pointer);
		return true;
	}
	for (size_t i = 0; i < stack->others.n; i++) {
		if (!fit_stack(stack, i, stack_pointer, leaves, &left, &fit) ||
		    (!fit.is_known && fit.distance >= STACK_CLOSE) || (has_best && !is_better(&fit, &best)))
			continue;
		best = fit;
		has_best = true;
	}
	if (!has_best) {
		if (!begin_another(stack))
			return false;
	} else if (best.which != NOW) {
		kymo_stack_wake(stack, best.which);
	}
	see_piece(&stack->now, stack_pointer);
	find_clear(stack, stack_pointer);
	return true;
}
