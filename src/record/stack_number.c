#include "record/stack_number.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "aggr/frame_tree.h"
#include "arch/selectors.h"
#include "record/run.h"
#include "record/sources.h"
#include "stack/stack.h"
#include "wire/event.h"

/* ---- frames ---------------------------------------------------------------------------------- */

/* "git:0x23fc0", as a probe names a function that nothing else names, into `out`. */
static const char *unnamed(const struct kymo_stack_frame *frame, char *out, size_t size)
{
	const char *slash = strrchr(frame->file, '/');

	snprintf(out, size, "%s:0x%" PRIx64, slash ? slash + 1 : frame->file, frame->start);
	return out;
}

/* The function's name, or a made one where there is room for it: a large program has more functions than texts. */
static bool number_function(struct kymo_frame_tree *tree, const struct kymo_stack_frame *frame, uint32_t *ret)
{
	char name[NAME_MAX + sizeof(":0x0123456789abcdef")];

	return (frame->start && frame->file && kymo_frame_tree_text(tree, unnamed(frame, name, sizeof(name)), ret)) ||
	       kymo_frame_tree_text(tree, frame->function, ret);
}

/* 0 where there is no room for it, or for its names. */
static uint32_t number_of(struct kymo_frame_tree *tree, uint32_t caller, const struct kymo_stack_frame *frame)
{
	struct kymo_frame_node node = {
		.caller = caller,
		.what = frame->is_lost ? KYMO_CTF_FRAME_LOST : KYMO_CTF_FRAME_CODE,
		.place = sources_origin(frame),
		.offset = frame->offset,
		.address = frame->address,
	};

	return kymo_frame_tree_text(tree, frame->file, &node.file) && number_function(tree, frame, &node.function)
		       ? kymo_frame_tree_number(tree, &node)
		       : 0;
}

/* The number of the innermost of them, whose outermost one is called by frame `number`; 0 where there is no room. */
static uint32_t number_all(struct kymo_frame_tree *tree, const struct kymo_stack_frame *frames, size_t n,
			   uint32_t number)
{
	do {
		number = number_of(tree, number, &frames[--n]);
	} while (n && number);
	return number;
}

static struct kymo_stack_thread thread_of(const struct record_source *source, const struct kymo_wire_stack *at)
{
	return (struct kymo_stack_thread){
		.tid = source->pid,
		.pid = source->stack_number,
		.registers = { .rip = at->pc, .rsp = at->sp, .rbp = at->bp, .cs = KYMO_CODE_SELECTOR },
		.is_copy = true,
	};
}

/* ---- a copy ---------------------------------------------------------------------------------- */

/* What a record has of it. */
struct copy {
	struct kymo_wire_stack head;
	const uint8_t *bytes;
	uint64_t size;
	bool is_cut; /* more was wanted than is there */
};

static bool read_copy(void *context, uint64_t address, void *data, size_t size)
{
	struct copy *copy = context;
	const uint64_t at = address - copy->head.sp;

	if (at < copy->size && size <= copy->size - at) {
		memcpy(data, copy->bytes + at, size);
		return true;
	}
	copy->is_cut |= address >= copy->head.sp;
	return false;
}

static uint32_t number_copy(struct kymo_stacks *stacks, struct kymo_frame_tree *tree,
			    const struct record_source *source, const struct stack_bytes *stack, bool *is_known_ret)
{
	struct copy copy = { .bytes = stack->bytes + sizeof(copy.head), .size = stack->size - sizeof(copy.head) };
	struct kymo_stack_frame frames[KYMO_STACK_MAX];
	struct kymo_stack_thread thread;
	uint32_t number = 0;
	size_t n;

	memcpy(&copy.head, stack->bytes, sizeof(copy.head));
	thread = thread_of(source, &copy.head);
	thread.read = read_copy;
	thread.context = &copy;
	n = kymo_stacks_take(stacks, &thread, frames);
	*is_known_ret = n;
	if (stack->frames && n > stack->frames) {
		n = stack->frames;
	} else if (n && copy.is_cut) {
		number = kymo_frame_tree_number(
			tree, &(struct kymo_frame_node){ .what = KYMO_CTF_FRAME_CUT, .offset = copy.size });
		if (!number)
			return 0;
	}
	return n ? number_all(tree, frames, n, number) : 0;
}

/* ---- a chain --------------------------------------------------------------------------------- */

static bool read_nothing(void *context, uint64_t address, void *data, size_t size)
{
	return false;
}

static uint32_t number_chain(struct kymo_stacks *stacks, struct kymo_frame_tree *tree,
			     const struct record_source *source, const struct stack_bytes *stack, bool *is_known_ret)
{
	uint64_t returns[KYMO_WIRE_CHAIN_MAX];
	struct kymo_stack_frame frames[KYMO_STACK_MAX];
	struct kymo_stack_thread thread;
	struct kymo_stack_chain chain;
	struct kymo_wire_chain head;
	size_t n;

	memcpy(&head, stack->bytes, sizeof(head));
	memcpy(returns, stack->bytes + sizeof(head), stack->size - sizeof(head));
	chain = (struct kymo_stack_chain){ .returns = returns, .n = (stack->size - sizeof(head)) / sizeof(*returns) };
	memcpy(chain.words, head.words, sizeof(chain.words));
	thread = thread_of(source, &head.at);
	thread.chain = &chain;
	thread.read = read_nothing;
	n = kymo_stacks_take(stacks, &thread, frames);
	*is_known_ret = n;
	if (stack->frames && n > stack->frames)
		n = stack->frames;
	return n ? number_all(tree, frames, n, 0) : 0;
}

/* ---- both ------------------------------------------------------------------------------------ */

bool stack_bytes_are_one(const struct stack_bytes *stack)
{
	const size_t head = sizeof(struct kymo_wire_chain), word = sizeof(uint64_t);

	if (!stack->is_chain)
		return stack->size >= sizeof(struct kymo_wire_stack);
	return stack->size >= head && (stack->size - head) % word == 0 &&
	       (stack->size - head) / word <= KYMO_WIRE_CHAIN_MAX;
}

uint32_t stack_number(struct kymo_stacks *stacks, struct kymo_frame_tree *tree, const struct record_source *source,
		      const struct stack_bytes *stack, bool *is_known_ret)
{
	return stack->is_chain ? number_chain(stacks, tree, source, stack, is_known_ret)
			       : number_copy(stacks, tree, source, stack, is_known_ret);
}
