/*
 * Memory that is copied into a sample.
 *
 * Memory that is not present yet, such as an untouched page of the file, is not available here: programs don't wait for
 * it. What fails at the entry is noted, and copied once more at the exit, when the kernel itself has read it.
 */
#include "kernel/call_copies.h"

#include <errno.h>
#include <sys/param.h>

#include "base/page.h"
#include "kernel/call_sample.h"

enum {
	PAGE = KYMO_PAGE_SIZE,
	LOWEST = 4096,
	PAGES_MAX = KYMO_COPY_SIZE_MAX / PAGE + 1,
	SMALL = 512, /* copies that are made in the ring: room for all that there may be is taken before it is known how
			much there is */
};

#define HEADER ((int)sizeof(struct kymo_copied))
#define ROOM (KERNEL_CALL_SCRATCH - PAGES_MAX * (PAGE + HEADER + 8) - 64)

/* An argument, or KYMO_COPY_STACK. */
static void load_register(struct kernel_code *c, uint8_t dst, unsigned arg)
{
	emit(c, BPF_LDX_MEM(BPF_DW, dst, R6, AT(words) + 8 * (int)arg));
}

/*
 * The verifier follows each path with what it knows of r7 on that one, unless it knows the same on all of them: so it
 * is made to forget, by way of the map's memory. Without that, a vector takes it a second.
 */
static void check_room(struct kernel_code *c, struct kernel_label *failed)
{
	emit(c, BPF_STX_MEM(BPF_W, R6, R7, AT(position)));
	emit(c, BPF_LDX_MEM(BPF_W, R7, R6, AT(position)));
	jump_if(c, BPF_JGT, R7, ROOM, failed);
}

/* Where the next copy begins: its header. */
static void begin_piece(struct kernel_code *c)
{
	emit(c, BPF_MOV64_REG(R1, R6));
	emit(c, BPF_ALU64_REG(BPF_ADD, R1, R7));
	emit(c, BPF_STX_MEM(BPF_DW, R1, R8, 0));
	emit(c, BPF_STX_MEM(BPF_W, R1, R9, 8));
}

static void end_piece(struct kernel_code *c)
{
	emit(c, BPF_ALU64_REG(BPF_ADD, R7, R9));
	emit(c, BPF_ALU64_IMM(BPF_ADD, R7, HEADER + 7));
	emit(c, BPF_ALU64_IMM(BPF_AND, R7, ~7));
}

/* Copy r9 bytes from r8 on (the verifier knows that they are at most `PAGE`), then their first `n_fields` words to the
 * stack. */
static void copy_piece(struct kernel_code *c, unsigned n_fields, struct kernel_label *failed)
{
	begin_piece(c);
	emit(c, BPF_ALU64_IMM(BPF_ADD, R1, HEADER));
	emit(c, BPF_MOV64_REG(R2, R9));
	emit(c, BPF_MOV64_REG(R3, R8));
	emit(c, BPF_EMIT_CALL(BPF_FUNC_probe_read_user));
	jump_if(c, BPF_JNE, R0, 0, failed);
	if (n_fields) {
		emit(c, BPF_MOV64_REG(R1, R6));
		emit(c, BPF_ALU64_REG(BPF_ADD, R1, R7));
	}
	for (unsigned i = 0; i < n_fields; i++) {
		emit(c, BPF_LDX_MEM(BPF_DW, R2, R1, HEADER + 8 * (int)i));
		emit(c, BPF_STX_MEM(BPF_DW, FP, R2, FIELDS + 8 * (int)i));
	}
	end_piece(c);
}

/*
 * The same of up to BUFFER_SIZE bytes, by way of the stack. Where the kernel is to copy to, it checks
 * (HARDENED_USERCOPY): a stack at once, what it has mapped, as the ring, by some functions more. What follows in the
 * sample is overwritten: the next copy comes there, or nothing.
 */
static void copy_to_stack(struct kernel_code *c, struct kernel_label *failed)
{
	for (int i = 0; i < BUFFER_SIZE; i += 8)
		emit(c, BPF_ST_MEM(BPF_DW, FP, BUFFER + i, 0));
	stack_address(c, R1, BUFFER);
	emit(c, BPF_MOV64_REG(R2, R9));
	emit(c, BPF_MOV64_REG(R3, R8));
	emit(c, BPF_EMIT_CALL(BPF_FUNC_probe_read_user));
	jump_if(c, BPF_JNE, R0, 0, failed);
	begin_piece(c);
	for (int i = 0; i < BUFFER_SIZE; i += 8) {
		emit(c, BPF_LDX_MEM(BPF_DW, R2, FP, BUFFER + i));
		emit(c, BPF_STX_MEM(BPF_DW, R1, R2, HEADER + i));
	}
	end_piece(c);
}

/* r9 bytes from r8 on, at most `max`, page by page: the next one may not be there. The first piece goes by way of the
 * stack if it `is_small`. */
static void copy_bytes(struct kernel_code *c, unsigned max, bool is_small, struct kernel_label *failed)
{
	struct kernel_label done = { .n = 0 };
	const unsigned n = (max + PAGE - 1) / PAGE + 1;

	jump_if(c, BPF_JLT, R8, LOWEST, &done);
	check_room(c, failed);
	for (unsigned i = 0; i < n; i++) {
		struct kernel_label within = { .n = 0 };

		jump_if(c, BPF_JEQ, R9, 0, &done);
		emit(c, BPF_STX_MEM(BPF_DW, FP, R9, REST));
		emit(c, BPF_MOV64_REG(R2, R8));
		emit(c, BPF_ALU64_IMM(BPF_AND, R2, PAGE - 1));
		emit(c, BPF_MOV64_IMM(R1, PAGE));
		emit(c, BPF_ALU64_REG(BPF_SUB, R1, R2));
		jump_if_both(c, BPF_JLE, R9, R1, &within);
		emit(c, BPF_MOV64_REG(R9, R1));
		here(c, &within);
		jump_if(c, BPF_JGT, R9, is_small && !i ? BUFFER_SIZE : PAGE, &done);
		if (is_small && !i)
			copy_to_stack(c, failed);
		else
			copy_piece(c, 0, failed);
		emit(c, BPF_ALU64_REG(BPF_ADD, R8, R9));
		emit(c, BPF_LDX_MEM(BPF_DW, R1, FP, REST));
		emit(c, BPF_ALU64_REG(BPF_SUB, R1, R9));
		emit(c, BPF_MOV64_REG(R9, R1));
	}
	here(c, &done);
}

/* The same, with r9 cut to `max`. */
static void copy_at_most(struct kernel_code *c, unsigned max, struct kernel_label *failed)
{
	struct kernel_label fits = { .n = 0 };

	jump_if(c, BPF_JLE, R9, (int32_t)max, &fits);
	emit(c, BPF_MOV64_IMM(R9, (int32_t)max));
	here(c, &fits);
	copy_bytes(c, max, false, failed);
}

/* The NUL that the kernel ends a longer string with is not the string's. */
static void copy_string(struct kernel_code *c, unsigned max, struct kernel_label *failed)
{
	struct kernel_label done = { .n = 0 }, whole = { .n = 0 };

	jump_if(c, BPF_JLT, R8, LOWEST, &done);
	check_room(c, failed);
	emit(c, BPF_MOV64_REG(R1, R6));
	emit(c, BPF_ALU64_REG(BPF_ADD, R1, R7));
	emit(c, BPF_ALU64_IMM(BPF_ADD, R1, HEADER));
	emit(c, BPF_MOV64_IMM(R2, (int32_t)max));
	emit(c, BPF_MOV64_REG(R3, R8));
	emit(c, BPF_EMIT_CALL(BPF_FUNC_probe_read_user_str));
	jump_if(c, BPF_JGT, R0, (int32_t)max, failed); /* negative ones, too */
	jump_if(c, BPF_JEQ, R0, 0, failed);
	jump_if(c, BPF_JNE, R0, (int32_t)max, &whole);
	emit(c, BPF_ALU64_IMM(BPF_ADD, R0, -1));
	here(c, &whole);
	emit(c, BPF_MOV64_REG(R9, R0));
	begin_piece(c);
	end_piece(c);
	here(c, &done);
}

/* r9 elements from r8 on. */
static void copy_vector(struct kernel_code *c, unsigned max, struct kernel_label *failed)
{
	struct kernel_label done = { .n = 0 };

	jump_if(c, BPF_JLT, R8, LOWEST, &done);
	emit(c, BPF_STX_MEM(BPF_DW, FP, R9, COUNT));
	emit(c, BPF_STX_MEM(BPF_DW, FP, R8, ARRAY));
	for (int i = 0; i < KYMO_COPY_ELEMENTS; i++) {
		emit(c, BPF_LDX_MEM(BPF_DW, R1, FP, COUNT));
		jump_if(c, BPF_JLE, R1, i, &done);
		check_room(c, failed);
		emit(c, BPF_LDX_MEM(BPF_DW, R8, FP, ARRAY));
		emit(c, BPF_ALU64_IMM(BPF_ADD, R8, 16 * i));
		emit(c, BPF_MOV64_IMM(R9, 16));
		copy_piece(c, 2, failed);
		emit(c, BPF_LDX_MEM(BPF_DW, R8, FP, FIELDS));
		emit(c, BPF_LDX_MEM(BPF_DW, R9, FP, FIELDS + 8));
		copy_at_most(c, max, failed);
	}
	here(c, &done);
}

enum { MESSAGE_SIZE = 56, NAME_MAX_ = 128, CONTROL_MAX = 512 };

static void copy_message(struct kernel_code *c, unsigned max, struct kernel_label *failed)
{
	struct kernel_label done = { .n = 0 };

	jump_if(c, BPF_JLT, R8, LOWEST, &done);
	check_room(c, failed);
	emit(c, BPF_MOV64_IMM(R9, MESSAGE_SIZE));
	copy_piece(c, 6, failed);
	emit(c, BPF_LDX_MEM(BPF_DW, R8, FP, FIELDS));
	emit(c, BPF_LDX_MEM(BPF_W, R9, FP, FIELDS + 8));
	copy_at_most(c, NAME_MAX_, failed);
	emit(c, BPF_LDX_MEM(BPF_DW, R8, FP, FIELDS + 32));
	emit(c, BPF_LDX_MEM(BPF_DW, R9, FP, FIELDS + 40));
	copy_at_most(c, CONTROL_MAX, failed);
	emit(c, BPF_LDX_MEM(BPF_DW, R8, FP, FIELDS + 16));
	emit(c, BPF_LDX_MEM(BPF_DW, R9, FP, FIELDS + 24));
	copy_vector(c, max, failed);
	here(c, &done);
}

static void copy_strings(struct kernel_code *c, unsigned max, struct kernel_label *failed)
{
	struct kernel_label done = { .n = 0 };

	jump_if(c, BPF_JLT, R8, LOWEST, &done);
	emit(c, BPF_STX_MEM(BPF_DW, FP, R8, ARRAY));
	for (int i = 0; i <= KYMO_COPY_ELEMENTS; i++) {
		check_room(c, failed);
		emit(c, BPF_LDX_MEM(BPF_DW, R8, FP, ARRAY));
		emit(c, BPF_ALU64_IMM(BPF_ADD, R8, 8 * i));
		emit(c, BPF_MOV64_IMM(R9, 8));
		copy_piece(c, 1, failed);
		emit(c, BPF_LDX_MEM(BPF_DW, R8, FP, FIELDS));
		jump_if(c, BPF_JEQ, R8, 0, &done);
		if (i < KYMO_COPY_ELEMENTS)
			copy_string(c, max, failed);
	}
	here(c, &done);
}

static int most_bytes(const struct kymo_copy *copy)
{
	return copy->times ? copy->max : copy->size;
}

/* r8 = where, r9 = how many. */
static void load_range(struct kernel_code *c, const struct kymo_copy *copy, struct kernel_label *done,
		       struct kernel_label *failed)
{
	const int size = copy->size ? copy->size : 1;

	load_register(c, R8, copy->arg);
	jump_if(c, BPF_JLT, R8, LOWEST, done);
	emit(c, BPF_ALU64_IMM(BPF_ADD, R8, copy->offset));
	if (copy->is_pointer) {
		stack_address(c, R1, BUFFER);
		emit(c, BPF_MOV64_IMM(R2, 8));
		emit(c, BPF_MOV64_REG(R3, R8));
		emit(c, BPF_EMIT_CALL(BPF_FUNC_probe_read_user));
		jump_if(c, BPF_JNE, R0, 0, failed);
		emit(c, BPF_LDX_MEM(BPF_DW, R8, FP, BUFFER));
	}
	if (copy->times == KYMO_COPY_ONCE) {
		emit(c, BPF_MOV64_IMM(R9, size));
		return;
	}
	if (copy->times == KYMO_COPY_RESULT) {
		emit(c, BPF_LDX_MEM(BPF_DW, R9, R6, AT(value)));
		jump_if(c, BPF_JSLE, R9, 0, done);
	} else {
		load_register(c, R9, copy->times - 1u);
	}
	if (copy->what == KYMO_COPY_BYTES) {
		struct kernel_label fits = { .n = 0 };

		jump_if(c, BPF_JLE, R9, copy->max / size, &fits);
		emit(c, BPF_MOV64_IMM(R9, copy->max / size));
		here(c, &fits);
		emit(c, BPF_ALU64_IMM(BPF_MUL, R9, size));
	}
}

void call_copy_make(struct kernel_code *c, const struct kymo_copy *copy)
{
	struct kernel_label done = { .n = 0 }, failed = { .n = 0 };

	load_range(c, copy, &done, &failed);
	switch (copy->what) {
	case KYMO_COPY_BYTES:
		copy_bytes(c, most_bytes(copy), most_bytes(copy) <= BUFFER_SIZE, &failed);
		break;
	case KYMO_COPY_STRING:
		copy_string(c, copy->max, &failed);
		break;
	case KYMO_COPY_VECTOR:
		copy_vector(c, copy->max, &failed);
		break;
	case KYMO_COPY_MESSAGE:
		copy_message(c, copy->max, &failed);
		break;
	case KYMO_COPY_STRINGS:
		copy_strings(c, copy->max, &failed);
		break;
	default:
		c->err = -EINVAL;
	}
	jump(c, &done);
	here(c, &failed);
	emit(c, BPF_ST_MEM(BPF_W, R6, AT(is_incomplete), 1));
	here(c, &done);
}

int32_t call_copies_room(const struct kymo_copy *copies, size_t n)
{
	int32_t room = 0;

	for (size_t i = 0; i < n && room <= SMALL; i++) {
		const struct kymo_copy *copy = &copies[i];

		if (copy->what == KYMO_COPY_BYTES) /* they may lie in two pages */
			room += MAX(most_bytes(copy), BUFFER_SIZE) + 2 * (HEADER + 7);
		else if (copy->what == KYMO_COPY_STRING)
			room += copy->max + HEADER + 7;
		else
			return -1;
	}
	return room <= SMALL ? (room + 7) & ~7 : -1;
}
