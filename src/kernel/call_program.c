/*
 * A sample of a system call that is known to be small is made in the ring itself (call_ring.h). Others are made in
 * memory of the CPU's own, and handed to the ring as a whole: programs at these tracepoints run with preemption off,
 * and none runs within another. From where room is taken in the ring to where the sample is made known no way leads
 * out. Registers and slots are in call_sample.h.
 *
 * The registers of the call are loaded one by one, as the kernel allows in programs of type TRACING that know its
 * types: copying all of them by a helper would cost more than all the rest.
 */
#include "kernel/call_program.h"

#include <errno.h>

#include "kernel/call_copies.h"
#include "kernel/call_sample.h"

/* r1 = the CPU's line of the ring. */
static void find_line(struct kernel_code *c, const struct kernel_call_program *program)
{
	emit(c, BPF_EMIT_CALL(BPF_FUNC_get_smp_processor_id));
	emit(c, BPF_ALU64_IMM(BPF_AND, R0, (int32_t)program->ring.n_lines - 1));
	emit(c, BPF_ALU64_IMM(BPF_MUL, R0, sizeof(struct call_ring_line)));
	emit(c, BPF_LD_MAP_VALUE(R1, program->ring.fd, CALL_RING_LINES));
	emit(c, BPF_ALU64_REG(BPF_ADD, R1, R0));
}

/* Whether the filter asks for the thread's identity, and what it learns is what samples carry. */
static bool knows_ids(const struct kernel_call_program *program)
{
	return (program->processes >= 0 || program->thread) && !program->ids.ns_ino && !program->ids.not_tgid;
}

/* Where the ids of the thread are that samples carry. */
enum ids { UNKNOWN, IN_R9, IN_LINE };

/* What is known of the event before there is a sample; the program's argument in r1. */
static void begin_program(struct kernel_code *c, const struct kernel_call_program *program, enum kernel_call_what what,
			  enum ids ids, struct kernel_label *out)
{
	emit(c, BPF_LDX_MEM(BPF_DW, R2, R1, 0));
	emit(c, BPF_STX_MEM(BPF_DW, FP, R2, POINTER));
	emit(c, BPF_LDX_MEM(BPF_DW, R2, R1, what == KERNEL_CALL_END ? 0 : 8));
	emit(c, BPF_STX_MEM(BPF_DW, FP, R2, VALUE));
	if (ids == UNKNOWN) {
		store_ids(c, &program->ids, IDS, out);
		return;
	}
	if (ids == IN_LINE) {
		find_line(c, program);
		emit(c, BPF_LDX_MEM(BPF_DW, R9, R1, offsetof(struct call_ring_line, ids)));
	}
	emit(c, BPF_STX_MEM(BPF_DW, FP, R9, IDS));
}

static void take_scratch(struct kernel_code *c, const struct kernel_call_program *program, struct kernel_label *out)
{
	emit(c, BPF_EMIT_CALL(BPF_FUNC_get_smp_processor_id));
	emit(c, BPF_STX_MEM(BPF_W, FP, R0, STACK_TOP));
	look_up(c, program->scratch);
	jump_if(c, BPF_JEQ, R0, 0, out);
	emit(c, BPF_MOV64_REG(R6, R0));
}

static int shift_of_sections(const struct call_ring_shape *ring)
{
	return __builtin_ctz(ring->size / CALL_RING_SECTIONS);
}

/* dst = the section that the position in dst is in. */
static void find_section(struct kernel_code *c, const struct call_ring_shape *ring, uint8_t dst)
{
	emit(c, BPF_ALU64_IMM(BPF_RSH, dst, shift_of_sections(ring)));
}

/* dst = where `firsts` is of the section in `section`, which is lost. */
static void find_first(struct kernel_code *c, const struct call_ring_shape *ring, uint8_t dst, uint8_t section)
{
	emit(c, BPF_ALU64_IMM(BPF_AND, section, CALL_RING_SECTIONS - 1));
	emit(c, BPF_ALU64_IMM(BPF_LSH, section, 3));
	emit(c, BPF_LD_MAP_VALUE(dst, ring->fd, offsetof(struct call_ring_head, firsts)));
	emit(c, BPF_ALU64_REG(BPF_ADD, dst, section));
}

/* To `none` where some CPU is writing below the position in r2. r1, r3, r4 are lost. */
static void check_begun(struct kernel_code *c, const struct call_ring_shape *ring, struct kernel_label *none)
{
	int loop;

	emit(c, BPF_LD_MAP_VALUE(R1, ring->fd, CALL_RING_LINES));
	emit(c, BPF_MOV64_IMM(R3, (int32_t)ring->n_lines));
	loop = c->n;
	emit(c, BPF_LDX_MEM(BPF_DW, R4, R1, offsetof(struct call_ring_line, begun)));
	jump_if_both(c, BPF_JLT, R4, R2, none);
	emit(c, BPF_ALU64_IMM(BPF_ADD, R1, sizeof(struct call_ring_line)));
	emit(c, BPF_ALU64_IMM(BPF_ADD, R3, -1));
	emit(c, BPF_JMP_IMM(BPF_JNE, R3, 0, loop - c->n - 1));
}

/* r3 = the bytes between the tail, in r4, and the head, in r2; the ring is in r5. */
static void measure(struct kernel_code *c)
{
	emit(c, BPF_LDX_MEM(BPF_DW, R4, R5,
			    offsetof(struct call_ring_head, tail))); /* first: it must not be past that head */
	emit(c, BPF_LDX_MEM(BPF_DW, R2, R5, offsetof(struct call_ring_head, head)));
	emit(c, BPF_MOV64_REG(R3, R2));
	emit(c, BPF_ALU64_REG(BPF_SUB, R3, R4));
}

/* The oldest section goes; the tail that was looked at is in r4, the ring in r5. All but r5 is lost. */
static void drop_section(struct kernel_code *c, const struct call_ring_shape *ring, struct kernel_label *none)
{
	emit(c, BPF_MOV64_REG(R0, R4));
	emit(c, BPF_MOV64_REG(R3, R4));
	find_section(c, ring, R3);
	emit(c, BPF_ALU64_IMM(BPF_ADD, R3, 1));
	emit(c, BPF_MOV64_REG(R4, R3));
	find_first(c, ring, R1, R4);
	emit(c, BPF_LDX_MEM(BPF_DW, R2, R1, 0));
	emit(c, BPF_MOV64_REG(R4, R2));
	find_section(c, ring, R4);
	jump_if_both(c, BPF_JNE, R4, R3, none);
	check_begun(c, ring, none);
	emit(c, BPF_ATOMIC_OP(BPF_DW, BPF_CMPXCHG, R5, R2, offsetof(struct call_ring_head, tail)));
}

/* The record that comes next begins where the one at r1, of `size` bytes or as many as are in r7, ends. r0 and r2 to r4
 * are lost. */
static void note_first(struct kernel_code *c, const struct call_ring_shape *ring, int32_t size)
{
	struct kernel_label same = { .n = 0 };

	emit(c, BPF_MOV64_REG(R2, R1));
	find_section(c, ring, R2);
	emit(c, BPF_MOV64_REG(R3, R1));
	if (size)
		emit(c, BPF_ALU64_IMM(BPF_ADD, R3, size));
	else
		emit(c, BPF_ALU64_REG(BPF_ADD, R3, R7));
	emit(c, BPF_MOV64_REG(R4, R3));
	find_section(c, ring, R4);
	jump_if_both(c, BPF_JEQ, R2, R4, &same);
	find_first(c, ring, R0, R4);
	emit(c, BPF_STX_MEM(BPF_DW, R0, R3, 0));
	here(c, &same);
}

/* dst = room for `size` bytes, or as many as are in r7 where that is 0; behind it publish() has to be come to. */
static void take_room(struct kernel_code *c, const struct kernel_call_program *program, uint8_t dst, int32_t size,
		      struct kernel_label *out)
{
	const struct call_ring_shape *ring = &program->ring;
	struct kernel_label none = { .n = 0 }, has_room = { .n = 0 };

	find_line(c, program);
	emit(c, BPF_STX_MEM(BPF_DW, FP, R1, LINE));
	emit(c, BPF_LD_MAP_VALUE(R5, ring->fd, 0));
	emit(c, BPF_LDX_MEM(BPF_DW, R3, R1, offsetof(struct call_ring_line, begun)));
	jump_if(c, BPF_JNE, R3, (int32_t)CALL_RING_IDLE, &none);
	measure(c);
	jump_if(c, BPF_JLE, R3, (int32_t)ring->capacity, &has_room);
	for (int i = 0; ring->overwrite && i < 2; i++) { /* the first may be all but read */
		drop_section(c, ring, &none);
		emit(c, BPF_LDX_MEM(BPF_DW, R1, FP, LINE));
		measure(c);
		jump_if(c, BPF_JLE, R3, (int32_t)ring->capacity, &has_room);
	}
	here(c, &none);
	emit(c, BPF_MOV64_IMM(R1, 1));
	emit(c, BPF_ATOMIC_OP(BPF_DW, BPF_ADD, R5, R1, offsetof(struct call_ring_head, lost)));
	jump(c, out);
	here(c, &has_room);
	emit(c, BPF_STX_MEM(BPF_DW, R1, R2, offsetof(struct call_ring_line, begun)));
	if (size)
		emit(c, BPF_MOV64_IMM(R1, size));
	else
		emit(c, BPF_MOV64_REG(R1, R7));
	emit(c, BPF_ATOMIC_OP(BPF_DW, BPF_ADD | BPF_FETCH, R5, R1, offsetof(struct call_ring_head, head)));
	if (ring->overwrite)
		note_first(c, ring, size);
	emit(c, BPF_ALU64_IMM(BPF_AND, R1, (int32_t)(ring->size - 8)));
	emit(c, BPF_LD_MAP_VALUE(dst, ring->fd, (int)CALL_RING_BYTES(ring->n_lines)));
	emit(c, BPF_ALU64_REG(BPF_ADD, dst, R1));
}

static void publish(struct kernel_code *c)
{
	emit(c, BPF_LDX_MEM(BPF_DW, R1, FP, LINE));
	emit(c, BPF_ST_MEM(BPF_DW, R1, offsetof(struct call_ring_line, begun), (int32_t)CALL_RING_IDLE));
}

static void fill_sample(struct kernel_code *c, const struct kernel_call_program *program, enum kernel_call_what what)
{
	emit(c, BPF_EMIT_CALL(BPF_FUNC_get_smp_processor_id));
	emit(c, BPF_STX_MEM(BPF_W, R6, R0, AT(cpu)));
	emit(c, BPF_LD_MAP_VALUE(R1, program->ring.fd, offsetof(struct call_ring_head, lost)));
	emit(c, BPF_LDX_MEM(BPF_DW, R1, R1, 0));
	emit(c, BPF_STX_MEM(BPF_DW, R6, R1, AT(lost)));
	emit(c, BPF_ST_MEM(BPF_W, R6, AT(what), (int32_t)what));
	emit(c, BPF_ST_MEM(BPF_W, R6, AT(is_incomplete), 0));
	emit(c, BPF_LDX_MEM(BPF_DW, R1, FP, IDS));
	emit(c, BPF_STX_MEM(BPF_DW, R6, R1, AT(tid)));
	emit(c, BPF_LDX_MEM(BPF_DW, R1, FP, VALUE));
	emit(c, BPF_STX_MEM(BPF_DW, R6, R1, AT(value)));
	if (program->names) {
		emit(c, BPF_MOV64_REG(R1, R6));
		emit(c, BPF_ALU64_IMM(BPF_ADD, R1, AT(name)));
		emit(c, BPF_MOV64_IMM(R2, KERNEL_NAME_SIZE));
		emit(c, BPF_EMIT_CALL(BPF_FUNC_get_current_comm));
	}
	if (program->has_times) {
		emit(c, BPF_EMIT_CALL(BPF_FUNC_ktime_get_ns));
		emit(c, BPF_STX_MEM(BPF_DW, R6, R0, AT(ns)));
	} else {
		emit(c, BPF_ST_MEM(BPF_DW, R6, AT(ns), 0));
	}
}

/* Bytes of a sample without copies. */
static int32_t plain_size(const struct kernel_call_program *program, enum kernel_call_what what)
{
	if (program->names)
		return AT(copies);
	return what == KERNEL_CALL_LEAVE || what == KERNEL_CALL_END ? AT(words) : AT(name);
}

static void set_size(struct kernel_code *c, int32_t size)
{
	emit(c, BPF_ST_MEM(BPF_W, R6, AT(stride), size));
	emit(c, BPF_ST_MEM(BPF_W, R6, AT(size), size));
}

/* `size` bytes of the kernel's memory from the pointer in `slot`, plus `offset`, into the sample. */
static void copy_from_kernel(struct kernel_code *c, int at, int size, int slot, int offset)
{
	emit(c, BPF_MOV64_REG(R1, R6));
	emit(c, BPF_ALU64_IMM(BPF_ADD, R1, at));
	emit(c, BPF_MOV64_IMM(R2, size));
	emit(c, BPF_LDX_MEM(BPF_DW, R3, FP, slot));
	emit(c, BPF_ALU64_IMM(BPF_ADD, R3, offset));
	emit(c, BPF_EMIT_CALL(BPF_FUNC_probe_read_kernel)); /* where it fails it stores zeroes */
}

/* Whether the call that the thread is in is one of 32 bits; its task_struct is in r0. */
static void note_mode(struct kernel_code *c, const struct kernel_call_program *program)
{
	emit(c, BPF_LDX_MEM(BPF_W, R1, R0, (int)program->task.mode));
	emit(c, BPF_ALU64_IMM(BPF_AND, R1, program->layout->is_32_bits));
	emit(c, BPF_STX_MEM(BPF_DW, FP, R1, IS_I386));
}

/* From the registers that r2 points to, `size` bytes each. */
static void load_args(struct kernel_code *c, const uint16_t at[], uint8_t size)
{
	for (int i = 0; i < KERNEL_CALL_STACK_POINTER; i++) {
		emit(c, BPF_LDX_MEM(size, R1, R2, at[i]));
		emit(c, BPF_STX_MEM(BPF_DW, R6, R1, AT(words) + 8 * i));
	}
}

/* What of the registers is wanted, into the sample; `may_be_i386`: the call's mode was noted. */
static void load_registers(struct kernel_code *c, const struct kernel_call_program *program, enum kernel_call_what what,
			   bool has_words, bool may_be_i386)
{
	const struct kymo_call_layout *layout = program->layout;
	struct kernel_label done = { .n = 0 }, is_native = { .n = 0 };

	emit(c, BPF_LDX_MEM(BPF_DW, R2, FP, POINTER));
	if (what == KERNEL_CALL_LEAVE) {
		emit(c, BPF_LDX_MEM(BPF_DW, R1, R2, layout->number));
		emit(c, BPF_STX_MEM(BPF_DW, R6, R1, AT(number)));
	}
	if (has_words) {
		emit(c, BPF_LDX_MEM(BPF_DW, R1, R2, layout->stack_pointer));
		emit(c, BPF_STX_MEM(BPF_DW, R6, R1, AT(words) + 8 * KERNEL_CALL_STACK_POINTER));
	}
	if (may_be_i386) {
		emit(c, BPF_LDX_MEM(BPF_DW, R1, FP, IS_I386));
		emit(c, BPF_STX_MEM(BPF_H, R6, R1, AT(is_i386)));
		jump_if(c, BPF_JEQ, R1, 0, &is_native);
		if (has_words)
			load_args(c, layout->args32, BPF_W);
		jump(c, &done);
		here(c, &is_native);
	}
	if (has_words)
		load_args(c, layout->args, BPF_DW);
	here(c, &done);
}

/* What is added to the count of threads that are to be copied for again; r0 is the result of a change of the table: 0
 * if there was one. */
static void count_noted(struct kernel_code *c, const struct kernel_call_program *program, int32_t change)
{
	struct kernel_label none = { .n = 0 };

	jump_if(c, BPF_JNE, R0, 0, &none);
	emit(c, BPF_LD_MAP_VALUE(R2, program->ring.fd, 0));
	emit(c, BPF_MOV64_IMM(R1, change));
	emit(c, BPF_ATOMIC_OP(BPF_DW, BPF_ADD, R2, R1, offsetof(struct call_ring_head, noted)));
	here(c, &none);
}

/* The thread's key at STACK_TOP. */
static void forget_noted(struct kernel_code *c, const struct kernel_call_program *program)
{
	emit(c, BPF_LD_MAP_FD(R1, program->again));
	stack_address(c, R2, STACK_TOP);
	emit(c, BPF_EMIT_CALL(BPF_FUNC_map_delete_elem));
	count_noted(c, program, -1);
}

/* A sample of r7 bytes that is larger than records of this ring may be is lost. */
static void check_size(struct kernel_code *c, const struct kernel_call_program *program, struct kernel_label *out)
{
	struct kernel_label fits = { .n = 0 };

	if (program->ring.record_max >= CALL_RING_RECORD_MAX)
		return;
	jump_if(c, BPF_JLE, R7, (int32_t)program->ring.record_max, &fits);
	emit(c, BPF_LD_MAP_VALUE(R5, program->ring.fd, 0));
	emit(c, BPF_MOV64_IMM(R1, 1));
	emit(c, BPF_ATOMIC_OP(BPF_DW, BPF_ADD, R5, R1, offsetof(struct call_ring_head, lost)));
	jump(c, out);
	here(c, &fits);
}

/* From memory of the CPU's own. */
static void hand_over(struct kernel_code *c, const struct kernel_call_program *program, struct kernel_label *out)
{
	jump_if(c, BPF_JGT, R7, KERNEL_CALL_SCRATCH, out);
	check_size(c, program, out);
	emit(c, BPF_STX_MEM(BPF_W, R6, R7, AT(stride)));
	emit(c, BPF_STX_MEM(BPF_W, R6, R7, AT(size)));
	take_room(c, program, R8, 0, out);
	emit(c, BPF_MOV64_REG(R1, R8));
	emit(c, BPF_MOV64_REG(R2, R7));
	emit(c, BPF_MOV64_REG(R3, R6));
	emit(c, BPF_EMIT_CALL(BPF_FUNC_probe_read_kernel));
	publish(c);
}

/* ---- a call ---------------------------------------------------------------------------------- */

/* The key is the machine's id of the thread. */
static void key_of_thread(struct kernel_code *c)
{
	emit(c, BPF_EMIT_CALL(BPF_FUNC_get_current_pid_tgid));
	emit(c, BPF_STX_MEM(BPF_W, FP, R0, STACK_TOP));
}

static void note_incomplete(struct kernel_code *c, const struct kernel_call_program *program)
{
	struct kernel_label complete = { .n = 0 };

	emit(c, BPF_LDX_MEM(BPF_W, R1, R6, AT(is_incomplete)));
	jump_if(c, BPF_JEQ, R1, 0, &complete);
	key_of_thread(c);
	emit(c, BPF_ST_MEM(BPF_W, FP, REST, 1));
	emit(c, BPF_LD_MAP_FD(R1, program->again));
	stack_address(c, R2, STACK_TOP);
	stack_address(c, R3, REST);
	emit(c, BPF_MOV64_IMM(R4, BPF_NOEXIST));
	emit(c, BPF_EMIT_CALL(BPF_FUNC_map_update_elem));
	count_noted(c, program, 1);
	here(c, &complete);
}

/* The sample is at r6. */
static void make_copies(struct kernel_code *c, const struct kernel_call_program *program, enum kernel_call_what what,
			const struct kymo_copy *copies, size_t n)
{
	fill_sample(c, program, what);
	load_registers(c, program, what, n || what == KERNEL_CALL_ENTER, !n);
	emit(c, BPF_MOV64_IMM(R7, AT(copies)));
	for (size_t i = 0; i < n; i++)
		call_copy_make(c, &copies[i]);
	if (what == KERNEL_CALL_ENTER && n)
		note_incomplete(c, program);
}

int kernel_call_make(const struct kernel_call_program *program, enum kernel_call_what what,
		     const struct kymo_copy *copies, size_t n, struct bpf_insn *out)
{
	const int32_t room = call_copies_room(copies, n);
	struct kernel_code c = { .insns = out, .max = KERNEL_CALL_PROGRAM_MAX };
	struct kernel_label leaving = { .n = 0 };

	emit(&c, BPF_MOV64_REG(R6, R1));
	if (!n) {
		emit(&c, BPF_EMIT_CALL(BPF_FUNC_get_current_task_btf));
		note_mode(&c, program);
	}
	emit(&c, BPF_MOV64_REG(R1, R6));
	begin_program(&c, program, what, knows_ids(program) ? IN_LINE : UNKNOWN, &leaving);
	if (room >= 0) {
		take_room(&c, program, R6, AT(copies) + room, &leaving);
		emit(&c, BPF_ST_MEM(BPF_W, R6, AT(stride), AT(copies) + room));
		make_copies(&c, program, what, copies, n);
		emit(&c, BPF_STX_MEM(BPF_W, R6, R7, AT(size)));
		publish(&c);
	} else {
		take_scratch(&c, program, &leaving);
		make_copies(&c, program, what, copies, n);
		hand_over(&c, program, &leaving);
	}
	here(&c, &leaving);
	leave(&c);
	return finish(&c);
}

/* ---- which program --------------------------------------------------------------------------- */

/* r9 = the thread's pid and tgid, as get_current_pid_tgid() has them. One function of the kernel's tells that, and
 * whether its call is one of 32 bits. */
static void look_at_task(struct kernel_code *c, const struct kernel_call_program *program)
{
	emit(c, BPF_EMIT_CALL(BPF_FUNC_get_current_task_btf));
	emit(c, BPF_LDX_MEM(BPF_W, R9, R0, (int)program->task.tgid));
	emit(c, BPF_ALU64_IMM(BPF_LSH, R9, 32));
	emit(c, BPF_LDX_MEM(BPF_W, R1, R0, (int)program->task.pid));
	emit(c, BPF_ALU64_REG(BPF_OR, R9, R1));
	note_mode(c, program);
	emit(c, BPF_MOV64_REG(R0, R9));
}

/* Pid and tgid are in r0, and in r9. */
static enum ids leave_unless_wanted(struct kernel_code *c, const struct kernel_call_program *program,
				    struct kernel_label *out)
{
	if (program->thread) {
		emit(c, BPF_MOV64_REG(R1, R0));
		emit(c, BPF_ALU64_IMM(BPF_LSH, R1, 32));
		emit(c, BPF_ALU64_IMM(BPF_RSH, R1, 32));
		jump_if(c, BPF_JNE, R1, program->thread, out);
	}
	if (program->processes >= 0)
		leave_unless_among(c, program->processes, out);
	return knows_ids(program) ? IN_R9 : UNKNOWN;
}

static enum ids filter(struct kernel_code *c, const struct kernel_call_program *program, struct kernel_label *out)
{
	if (program->processes < 0 && !program->thread)
		return UNKNOWN;
	emit(c, BPF_EMIT_CALL(BPF_FUNC_get_current_pid_tgid));
	emit(c, BPF_MOV64_REG(R9, R0));
	return leave_unless_wanted(c, program, out);
}

/* To the program number r8 of the array, or on where there is none. It runs on this CPU, and no other in between: the
 * line tells it whose call that is. */
static void go_to(struct kernel_code *c, const struct kernel_call_program *program, int calls)
{
	if (knows_ids(program)) {
		find_line(c, program);
		emit(c, BPF_STX_MEM(BPF_DW, R1, R9, offsetof(struct call_ring_line, ids)));
	}
	emit(c, BPF_MOV64_REG(R1, R6));
	emit(c, BPF_LD_MAP_FD(R2, calls));
	emit(c, BPF_MOV64_REG(R3, R8));
	emit(c, BPF_EMIT_CALL(BPF_FUNC_tail_call));
}

/* The program's argument is in r6. */
static void make_plain(struct kernel_code *c, const struct kernel_call_program *program, enum kernel_call_what what,
		       enum ids ids, struct kernel_label *leaving)
{
	emit(c, BPF_MOV64_REG(R1, R6));
	begin_program(c, program, what, ids, leaving);
	take_room(c, program, R6, plain_size(program, what), leaving);
	set_size(c, plain_size(program, what));
	fill_sample(c, program, what);
	load_registers(c, program, what, what == KERNEL_CALL_ENTER, true);
	publish(c);
}

int kernel_call_pick(const struct kernel_call_program *program, int calls, bool is_leaving, struct bpf_insn *out)
{
	struct kernel_code c = { .insns = out, .max = KERNEL_CALL_PROGRAM_MAX };
	struct kernel_label leaving = { .n = 0 }, known = { .n = 0 }, first = { .n = 0 }, by_number = { .n = 0 };
	struct kernel_label is_native = { .n = 0 }, not_plain = { .n = 0 };
	enum ids ids;

	emit(&c, BPF_MOV64_REG(R6, R1));
	look_at_task(&c, program);
	ids = leave_unless_wanted(&c, program, &leaving);
	if (is_leaving) {
		emit(&c, BPF_LDX_MEM(BPF_DW, R1, R6, 0));
		emit(&c, BPF_LDX_MEM(BPF_DW, R8, R1, program->layout->number));
	} else {
		emit(&c, BPF_LDX_MEM(BPF_DW, R8, R6, 8));
	}
	jump_if(&c, BPF_JLT, R8, KERNEL_CALL_NUMBERS - 1, &known);
	emit(&c, BPF_MOV64_IMM(R8, KERNEL_CALL_NUMBERS - 1));
	here(&c, &known);
	if (is_leaving) {
		emit(&c, BPF_LD_MAP_VALUE(R1, program->ring.fd, 0));
		emit(&c, BPF_LDX_MEM(BPF_DW, R1, R1, offsetof(struct call_ring_head, noted)));
		jump_if(&c, BPF_JEQ, R1, 0, &first);
		key_of_thread(&c);
		look_up(&c, program->again);
		jump_if(&c, BPF_JEQ, R0, 0, &first);
		forget_noted(&c, program);
		emit(&c, BPF_LDX_MEM(BPF_DW, R1, FP,
				     IS_I386)); /* after the exec of a 32-bit program: its number is another call's */
		jump_if(&c, BPF_JNE, R1, 0, &first);
		emit(&c, BPF_ALU64_IMM(BPF_ADD, R8, KERNEL_CALL_NUMBERS));
		go_to(&c, program, calls);
		emit(&c, BPF_ALU64_IMM(BPF_ADD, R8, -KERNEL_CALL_NUMBERS));
		here(&c, &first);
	}
	jump_if(&c, BPF_JEQ, R8, KERNEL_CALL_NUMBERS - 1, &by_number);
	emit(&c, BPF_MOV64_REG(R1, R8));
	if (is_leaving)
		emit(&c, BPF_ALU64_IMM(BPF_ADD, R1, KERNEL_CALL_PLAIN_EXIT));
	emit(&c, BPF_LDX_MEM(BPF_DW, R2, FP, IS_I386));
	jump_if(&c, BPF_JEQ, R2, 0, &is_native);
	emit(&c, BPF_ALU64_IMM(BPF_ADD, R1, KERNEL_CALL_PLAIN_I386));
	here(&c, &is_native);
	jump_unless_bit(&c, program->plain, KERNEL_CALL_PLAIN, &not_plain);
	make_plain(&c, program, is_leaving ? KERNEL_CALL_LEAVE : KERNEL_CALL_ENTER, ids, &leaving);
	jump(&c, &leaving);
	here(&c, &not_plain);
	emit(&c, BPF_LDX_MEM(BPF_DW, R1, FP, IS_I386)); /* programs that copy are for 64-bit calls */
	jump_if(&c, BPF_JNE, R1, 0, &leaving);
	here(&c, &by_number);
	go_to(&c, program, calls);
	here(&c, &leaving);
	leave(&c);
	return finish(&c);
}

/* ---- signals and ends ------------------------------------------------------------------------ */

/* The number is the tracepoint's first argument, the siginfo its second one: 0 and 1 for what has none. */
int kernel_call_signal_make(const struct kernel_call_program *program, struct bpf_insn *out)
{
	struct kernel_code c = { .insns = out, .max = KERNEL_CALL_PROGRAM_MAX };
	struct kernel_label leaving = { .n = 0 };
	enum ids ids;

	emit(&c, BPF_MOV64_REG(R6, R1));
	ids = filter(&c, program, &leaving);
	emit(&c, BPF_MOV64_REG(R1, R6));
	begin_program(&c, program, KERNEL_CALL_SIGNAL, ids, &leaving);
	take_room(&c, program, R6, plain_size(program, KERNEL_CALL_SIGNAL), &leaving);
	set_size(&c, plain_size(program, KERNEL_CALL_SIGNAL));
	fill_sample(&c, program, KERNEL_CALL_SIGNAL);
	copy_from_kernel(&c, AT(words), KERNEL_SIGINFO_SIZE, VALUE, 0);
	emit(&c, BPF_LDX_MEM(BPF_DW, R1, FP, POINTER));
	emit(&c, BPF_STX_MEM(BPF_DW, R6, R1, AT(value)));
	publish(&c);
	here(&c, &leaving);
	leave(&c);
	return finish(&c);
}

int kernel_call_end_make(const struct kernel_call_program *program, uint32_t status_at, struct bpf_insn *out)
{
	struct kernel_code c = { .insns = out, .max = KERNEL_CALL_PROGRAM_MAX };
	struct kernel_label leaving = { .n = 0 };
	enum ids ids;

	emit(&c, BPF_MOV64_REG(R6, R1));
	ids = filter(&c, program, &leaving);
	emit(&c, BPF_MOV64_REG(R1, R6));
	begin_program(&c, program, KERNEL_CALL_END, ids, &leaving);
	key_of_thread(&c);
	forget_noted(&c, program);
	take_room(&c, program, R6, plain_size(program, KERNEL_CALL_END), &leaving);
	set_size(&c, plain_size(program, KERNEL_CALL_END));
	fill_sample(&c, program, KERNEL_CALL_END);
	emit(&c, BPF_ST_MEM(BPF_DW, R6, AT(value), 0));
	copy_from_kernel(&c, AT(value), 4, POINTER, (int)status_at);
	publish(&c);
	here(&c, &leaving);
	leave(&c);
	return finish(&c);
}
