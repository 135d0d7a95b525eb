/*
 * A sample of a system call is made in the ring itself (call_ring.h) where it is known to be small, else in memory of
 * the CPU's own, and handed to the ring as a whole: programs at these tracepoints run with preemption off, and none
 * runs within another. From where room is taken in the ring to where the sample is made known no way leads out.
 * Registers and slots are in call_sample.h.
 *
 * The registers that a call is made with are loaded one by one, as the kernel lets programs of type TRACING do that
 * know its types: copying all of them by a helper would cost more than all the rest.
 */
#include "kernel/call_program.h"

#include <errno.h>

#include "kernel/call_copies.h"
#include "kernel/call_sample.h"

/* r1 = the CPU's line of the ring. */
static void find_line(struct code *c, const struct kernel_call_program *program)
{
	call(c, BPF_FUNC_get_smp_processor_id);
	emit(c, BPF_ALU64 | BPF_AND | BPF_K, R0, 0, 0, (int32_t)program->ring.n_lines - 1);
	emit(c, BPF_ALU64 | BPF_MUL | BPF_K, R0, 0, 0, sizeof(struct call_ring_line));
	set_value(c, R1, program->ring.fd, CALL_RING_LINES);
	add_register(c, R1, R0);
}

/* Whether the filter asks who it is, and what it learns is what samples carry. */
static bool knows_ids(const struct kernel_call_program *program)
{
	return (program->processes >= 0 || program->thread) && !program->ids.ns_ino && !program->ids.not_tgid;
}

/* Where the ids of the thread are that samples carry. */
enum ids { UNKNOWN, IN_R9, IN_LINE };

/* What of the event is to be had before there is a sample; the program's argument in r1. */
static void begin(struct code *c, const struct kernel_call_program *program, enum kernel_call_what what, enum ids ids,
		  struct label *out)
{
	load(c, BPF_DW, R2, R1, 0);
	store(c, BPF_DW, FP, POINTER, R2);
	load(c, BPF_DW, R2, R1, what == KERNEL_CALL_END ? 0 : 8);
	store(c, BPF_DW, FP, VALUE, R2);
	if (ids == UNKNOWN) {
		store_ids(c, &program->ids, IDS, out);
		return;
	}
	if (ids == IN_LINE) {
		find_line(c, program);
		load(c, BPF_DW, R9, R1, offsetof(struct call_ring_line, ids));
	}
	store(c, BPF_DW, FP, IDS, R9);
}

static void take_scratch(struct code *c, const struct kernel_call_program *program, struct label *out)
{
	call(c, BPF_FUNC_get_smp_processor_id);
	store(c, BPF_W, FP, STACK_TOP, R0);
	look_up(c, program->scratch);
	jump_if(c, BPF_JEQ, R0, 0, out);
	move(c, R6, R0);
}

static int shift_of_sections(const struct call_ring_shape *ring)
{
	return __builtin_ctz(ring->size / CALL_RING_SECTIONS);
}

/* dst = the section that the position in dst is in. */
static void find_section(struct code *c, const struct call_ring_shape *ring, uint8_t dst)
{
	emit(c, BPF_ALU64 | BPF_RSH | BPF_K, dst, 0, 0, shift_of_sections(ring));
}

/* dst = where `firsts` is of the section in `section`, which is lost. */
static void find_first(struct code *c, const struct call_ring_shape *ring, uint8_t dst, uint8_t section)
{
	emit(c, BPF_ALU64 | BPF_AND | BPF_K, section, 0, 0, CALL_RING_SECTIONS - 1);
	emit(c, BPF_ALU64 | BPF_LSH | BPF_K, section, 0, 0, 3);
	set_value(c, dst, ring->fd, offsetof(struct call_ring_head, firsts));
	add_register(c, dst, section);
}

/* To `none` where some CPU is writing below the position in r2. r1, r3, r4 are lost. */
static void check_begun(struct code *c, const struct call_ring_shape *ring, struct label *none)
{
	int loop;

	set_value(c, R1, ring->fd, CALL_RING_LINES);
	set(c, R3, (int32_t)ring->n_lines);
	loop = c->n;
	load(c, BPF_DW, R4, R1, offsetof(struct call_ring_line, begun));
	jump_if_both(c, BPF_JLT, R4, R2, none);
	add(c, R1, sizeof(struct call_ring_line));
	add(c, R3, -1);
	emit(c, BPF_JMP | BPF_JNE | BPF_K, R3, 0, loop - c->n - 1, 0);
}

/* r3 = the bytes between the tail, in r4, and the head, in r2; the ring is in r5. */
static void measure(struct code *c)
{
	load(c, BPF_DW, R4, R5, offsetof(struct call_ring_head, tail)); /* first: it must not be past that head */
	load(c, BPF_DW, R2, R5, offsetof(struct call_ring_head, head));
	move(c, R3, R2);
	subtract_register(c, R3, R4);
}

/* The oldest section goes; the tail that was looked at is in r4, the ring in r5. All but r5 is lost. */
static void drop_section(struct code *c, const struct call_ring_shape *ring, struct label *none)
{
	move(c, R0, R4);
	move(c, R3, R4);
	find_section(c, ring, R3);
	add(c, R3, 1);
	move(c, R4, R3);
	find_first(c, ring, R1, R4);
	load(c, BPF_DW, R2, R1, 0);
	move(c, R4, R2);
	find_section(c, ring, R4);
	jump_if_both(c, BPF_JNE, R4, R3, none);
	check_begun(c, ring, none);
	emit(c, BPF_STX | BPF_ATOMIC | BPF_DW, R5, R2, offsetof(struct call_ring_head, tail), BPF_CMPXCHG);
}

/* The record that comes next begins where the one at r1, of `size` bytes or as many as are in r7, ends. r0 and r2 to r4
 * are lost. */
static void note_first(struct code *c, const struct call_ring_shape *ring, int32_t size)
{
	struct label same = { .n = 0 };

	move(c, R2, R1);
	find_section(c, ring, R2);
	move(c, R3, R1);
	if (size)
		add(c, R3, size);
	else
		add_register(c, R3, R7);
	move(c, R4, R3);
	find_section(c, ring, R4);
	jump_if_both(c, BPF_JEQ, R2, R4, &same);
	find_first(c, ring, R0, R4);
	store(c, BPF_DW, R0, 0, R3);
	here(c, &same);
}

/* dst = room for `size` bytes, or as many as are in r7 where that is 0; behind it publish() has to be come to. */
static void take_room(struct code *c, const struct kernel_call_program *program, uint8_t dst, int32_t size,
		      struct label *out)
{
	const struct call_ring_shape *ring = &program->ring;
	struct label none = { .n = 0 }, has_room = { .n = 0 };

	find_line(c, program);
	store(c, BPF_DW, FP, LINE, R1);
	set_value(c, R5, ring->fd, 0);
	load(c, BPF_DW, R3, R1, offsetof(struct call_ring_line, begun));
	jump_if(c, BPF_JNE, R3, (int32_t)CALL_RING_IDLE, &none);
	measure(c);
	jump_if(c, BPF_JLE, R3, (int32_t)ring->capacity, &has_room);
	for (int i = 0; ring->overwrite && i < 2; i++) { /* the first may be all but read */
		drop_section(c, ring, &none);
		load(c, BPF_DW, R1, FP, LINE);
		measure(c);
		jump_if(c, BPF_JLE, R3, (int32_t)ring->capacity, &has_room);
	}
	here(c, &none);
	set(c, R1, 1);
	emit(c, BPF_STX | BPF_ATOMIC | BPF_DW, R5, R1, offsetof(struct call_ring_head, lost), BPF_ADD);
	jump(c, out);
	here(c, &has_room);
	store(c, BPF_DW, R1, offsetof(struct call_ring_line, begun), R2);
	if (size)
		set(c, R1, size);
	else
		move(c, R1, R7);
	emit(c, BPF_STX | BPF_ATOMIC | BPF_DW, R5, R1, offsetof(struct call_ring_head, head), BPF_ADD | BPF_FETCH);
	if (ring->overwrite)
		note_first(c, ring, size);
	emit(c, BPF_ALU64 | BPF_AND | BPF_K, R1, 0, 0, (int32_t)(ring->size - 8));
	set_value(c, dst, ring->fd, (int)CALL_RING_BYTES(ring->n_lines));
	add_register(c, dst, R1);
}

static void publish(struct code *c)
{
	load(c, BPF_DW, R1, FP, LINE);
	store_imm(c, BPF_DW, R1, offsetof(struct call_ring_line, begun), (int32_t)CALL_RING_IDLE);
}

static void fill(struct code *c, const struct kernel_call_program *program, enum kernel_call_what what)
{
	call(c, BPF_FUNC_get_smp_processor_id);
	store(c, BPF_W, R6, AT(cpu), R0);
	set_value(c, R1, program->ring.fd, offsetof(struct call_ring_head, lost));
	load(c, BPF_DW, R1, R1, 0);
	store(c, BPF_DW, R6, AT(lost), R1);
	store_imm(c, BPF_W, R6, AT(what), (int32_t)what);
	store_imm(c, BPF_W, R6, AT(is_incomplete), 0);
	load(c, BPF_DW, R1, FP, IDS);
	store(c, BPF_DW, R6, AT(tid), R1);
	load(c, BPF_DW, R1, FP, VALUE);
	store(c, BPF_DW, R6, AT(value), R1);
	if (program->names) {
		move(c, R1, R6);
		add(c, R1, AT(name));
		set(c, R2, KERNEL_NAME_SIZE);
		call(c, BPF_FUNC_get_current_comm);
	}
	if (program->has_times) {
		call(c, BPF_FUNC_ktime_get_ns);
		store(c, BPF_DW, R6, AT(ns), R0);
	} else {
		store_imm(c, BPF_DW, R6, AT(ns), 0);
	}
}

/* Bytes of a sample without copies. */
static int32_t plain_size(const struct kernel_call_program *program, enum kernel_call_what what)
{
	if (program->names)
		return AT(copies);
	return what == KERNEL_CALL_LEAVE || what == KERNEL_CALL_END ? AT(words) : AT(name);
}

static void set_size(struct code *c, int32_t size)
{
	store_imm(c, BPF_W, R6, AT(stride), size);
	store_imm(c, BPF_W, R6, AT(size), size);
}

/* `size` bytes of the kernel's memory from the pointer in `slot`, plus `offset`, into the sample. */
static void copy_from_kernel(struct code *c, int at, int size, int slot, int offset)
{
	move(c, R1, R6);
	add(c, R1, at);
	set(c, R2, size);
	load(c, BPF_DW, R3, FP, slot);
	add(c, R3, offset);
	call(c, BPF_FUNC_probe_read_kernel); /* where it fails it stores zeroes */
}

/* Whether the call that the thread is in is one of 32 bits; its task_struct is in r0. */
static void note_mode(struct code *c, const struct kernel_call_program *program)
{
	load(c, BPF_W, R1, R0, (int)program->task.mode);
	emit(c, BPF_ALU64 | BPF_AND | BPF_K, R1, 0, 0, program->layout->is_32_bits);
	store(c, BPF_DW, FP, IS_I386, R1);
}

/* From the registers that r2 points to, `size` bytes each. */
static void load_args(struct code *c, const uint16_t at[], uint8_t size)
{
	for (int i = 0; i < KERNEL_CALL_STACK_POINTER; i++) {
		load(c, size, R1, R2, at[i]);
		store(c, BPF_DW, R6, AT(words) + 8 * i, R1);
	}
}

/* What of the registers is wanted, into the sample; `may_be_i386`: the call's mode was noted. */
static void load_registers(struct code *c, const struct kernel_call_program *program, enum kernel_call_what what,
			   bool has_words, bool may_be_i386)
{
	const struct kymo_call_layout *layout = program->layout;
	struct label done = { .n = 0 }, is_native = { .n = 0 };

	load(c, BPF_DW, R2, FP, POINTER);
	if (what == KERNEL_CALL_LEAVE) {
		load(c, BPF_DW, R1, R2, layout->number);
		store(c, BPF_DW, R6, AT(number), R1);
	}
	if (has_words) {
		load(c, BPF_DW, R1, R2, layout->stack_pointer);
		store(c, BPF_DW, R6, AT(words) + 8 * KERNEL_CALL_STACK_POINTER, R1);
	}
	if (may_be_i386) {
		load(c, BPF_DW, R1, FP, IS_I386);
		store(c, BPF_H, R6, AT(is_i386), R1);
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
static void count_noted(struct code *c, const struct kernel_call_program *program, int32_t change)
{
	struct label none = { .n = 0 };

	jump_if(c, BPF_JNE, R0, 0, &none);
	set_value(c, R2, program->ring.fd, 0);
	set(c, R1, change);
	emit(c, BPF_STX | BPF_ATOMIC | BPF_DW, R2, R1, offsetof(struct call_ring_head, noted), BPF_ADD);
	here(c, &none);
}

/* The thread's key at STACK_TOP. */
static void forget_noted(struct code *c, const struct kernel_call_program *program)
{
	set_map(c, R1, program->again);
	stack_address(c, R2, STACK_TOP);
	call(c, BPF_FUNC_map_delete_elem);
	count_noted(c, program, -1);
}

/* A sample of r7 bytes that is larger than records of this ring may be is lost. */
static void check_size(struct code *c, const struct kernel_call_program *program, struct label *out)
{
	struct label fits = { .n = 0 };

	if (program->ring.record_max >= CALL_RING_RECORD_MAX)
		return;
	jump_if(c, BPF_JLE, R7, (int32_t)program->ring.record_max, &fits);
	set_value(c, R5, program->ring.fd, 0);
	set(c, R1, 1);
	emit(c, BPF_STX | BPF_ATOMIC | BPF_DW, R5, R1, offsetof(struct call_ring_head, lost), BPF_ADD);
	jump(c, out);
	here(c, &fits);
}

/* From memory of the CPU's own. */
static void hand_over(struct code *c, const struct kernel_call_program *program, struct label *out)
{
	jump_if(c, BPF_JGT, R7, KERNEL_CALL_SCRATCH, out);
	check_size(c, program, out);
	store(c, BPF_W, R6, AT(stride), R7);
	store(c, BPF_W, R6, AT(size), R7);
	take_room(c, program, R8, 0, out);
	move(c, R1, R8);
	move(c, R2, R7);
	move(c, R3, R6);
	call(c, BPF_FUNC_probe_read_kernel);
	publish(c);
}

/* ---- a call ---------------------------------------------------------------------------------- */

/* The key is the machine's id of the thread. */
static void key_of_thread(struct code *c)
{
	call(c, BPF_FUNC_get_current_pid_tgid);
	store(c, BPF_W, FP, STACK_TOP, R0);
}

static void note_incomplete(struct code *c, const struct kernel_call_program *program)
{
	struct label complete = { .n = 0 };

	load(c, BPF_W, R1, R6, AT(is_incomplete));
	jump_if(c, BPF_JEQ, R1, 0, &complete);
	key_of_thread(c);
	store_imm(c, BPF_W, FP, REST, 1);
	set_map(c, R1, program->again);
	stack_address(c, R2, STACK_TOP);
	stack_address(c, R3, REST);
	set(c, R4, BPF_NOEXIST);
	call(c, BPF_FUNC_map_update_elem);
	count_noted(c, program, 1);
	here(c, &complete);
}

/* The sample is at r6. */
static void make_copies(struct code *c, const struct kernel_call_program *program, enum kernel_call_what what,
			const struct kymo_copy *copies, size_t n)
{
	fill(c, program, what);
	load_registers(c, program, what, n || what == KERNEL_CALL_ENTER, !n);
	set(c, R7, AT(copies));
	for (size_t i = 0; i < n; i++)
		call_copy_make(c, &copies[i]);
	if (what == KERNEL_CALL_ENTER && n)
		note_incomplete(c, program);
}

int kernel_call_make(const struct kernel_call_program *program, enum kernel_call_what what,
		     const struct kymo_copy *copies, size_t n, struct bpf_insn *out)
{
	const int32_t room = call_copies_room(copies, n);
	struct code c = { .insns = out, .max = KERNEL_CALL_PROGRAM_MAX };
	struct label leaving = { .n = 0 };

	move(&c, R6, R1);
	if (!n) {
		call(&c, BPF_FUNC_get_current_task_btf);
		note_mode(&c, program);
	}
	move(&c, R1, R6);
	begin(&c, program, what, knows_ids(program) ? IN_LINE : UNKNOWN, &leaving);
	if (room >= 0) {
		take_room(&c, program, R6, AT(copies) + room, &leaving);
		store_imm(&c, BPF_W, R6, AT(stride), AT(copies) + room);
		make_copies(&c, program, what, copies, n);
		store(&c, BPF_W, R6, AT(size), R7);
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
static void look_at_task(struct code *c, const struct kernel_call_program *program)
{
	call(c, BPF_FUNC_get_current_task_btf);
	load(c, BPF_W, R9, R0, (int)program->task.tgid);
	emit(c, BPF_ALU64 | BPF_LSH | BPF_K, R9, 0, 0, 32);
	load(c, BPF_W, R1, R0, (int)program->task.pid);
	emit(c, BPF_ALU64 | BPF_OR | BPF_X, R9, R1, 0, 0);
	note_mode(c, program);
	move(c, R0, R9);
}

/* Pid and tgid are in r0, and in r9. */
static enum ids leave_unless_wanted(struct code *c, const struct kernel_call_program *program, struct label *out)
{
	if (program->thread) {
		move(c, R1, R0);
		emit(c, BPF_ALU64 | BPF_LSH | BPF_K, R1, 0, 0, 32);
		emit(c, BPF_ALU64 | BPF_RSH | BPF_K, R1, 0, 0, 32);
		jump_if(c, BPF_JNE, R1, program->thread, out);
	}
	if (program->processes >= 0)
		leave_unless_among(c, program->processes, out);
	return knows_ids(program) ? IN_R9 : UNKNOWN;
}

static enum ids filter(struct code *c, const struct kernel_call_program *program, struct label *out)
{
	if (program->processes < 0 && !program->thread)
		return UNKNOWN;
	call(c, BPF_FUNC_get_current_pid_tgid);
	move(c, R9, R0);
	return leave_unless_wanted(c, program, out);
}

/* To the program number r8 of the array, or on where there is none. It runs on this CPU, and no other in between: the
 * line tells it whose call that is. */
static void go_to(struct code *c, const struct kernel_call_program *program, int calls)
{
	if (knows_ids(program)) {
		find_line(c, program);
		store(c, BPF_DW, R1, offsetof(struct call_ring_line, ids), R9);
	}
	move(c, R1, R6);
	set_map(c, R2, calls);
	move(c, R3, R8);
	call(c, BPF_FUNC_tail_call);
}

/* The program's argument is in r6. */
static void make_plain(struct code *c, const struct kernel_call_program *program, enum kernel_call_what what,
		       enum ids ids, struct label *leaving)
{
	move(c, R1, R6);
	begin(c, program, what, ids, leaving);
	take_room(c, program, R6, plain_size(program, what), leaving);
	set_size(c, plain_size(program, what));
	fill(c, program, what);
	load_registers(c, program, what, what == KERNEL_CALL_ENTER, true);
	publish(c);
}

int kernel_call_pick(const struct kernel_call_program *program, int calls, bool is_leaving, struct bpf_insn *out)
{
	struct code c = { .insns = out, .max = KERNEL_CALL_PROGRAM_MAX };
	struct label leaving = { .n = 0 }, known = { .n = 0 }, first = { .n = 0 }, by_number = { .n = 0 };
	struct label is_native = { .n = 0 }, not_plain = { .n = 0 };
	enum ids ids;

	move(&c, R6, R1);
	look_at_task(&c, program);
	ids = leave_unless_wanted(&c, program, &leaving);
	if (is_leaving) {
		load(&c, BPF_DW, R1, R6, 0);
		load(&c, BPF_DW, R8, R1, program->layout->number);
	} else {
		load(&c, BPF_DW, R8, R6, 8);
	}
	jump_if(&c, BPF_JLT, R8, KERNEL_CALL_NUMBERS - 1, &known);
	set(&c, R8, KERNEL_CALL_NUMBERS - 1);
	here(&c, &known);
	if (is_leaving) {
		set_value(&c, R1, program->ring.fd, 0);
		load(&c, BPF_DW, R1, R1, offsetof(struct call_ring_head, noted));
		jump_if(&c, BPF_JEQ, R1, 0, &first);
		key_of_thread(&c);
		look_up(&c, program->again);
		jump_if(&c, BPF_JEQ, R0, 0, &first);
		forget_noted(&c, program);
		load(&c, BPF_DW, R1, FP,
		     IS_I386); /* behind the exec of a 32-bit program: its number is another call's */
		jump_if(&c, BPF_JNE, R1, 0, &first);
		add(&c, R8, KERNEL_CALL_NUMBERS);
		go_to(&c, program, calls);
		add(&c, R8, -KERNEL_CALL_NUMBERS);
		here(&c, &first);
	}
	jump_if(&c, BPF_JEQ, R8, KERNEL_CALL_NUMBERS - 1, &by_number);
	move(&c, R1, R8);
	if (is_leaving)
		add(&c, R1, KERNEL_CALL_PLAIN_EXIT);
	load(&c, BPF_DW, R2, FP, IS_I386);
	jump_if(&c, BPF_JEQ, R2, 0, &is_native);
	add(&c, R1, KERNEL_CALL_PLAIN_I386);
	here(&c, &is_native);
	jump_unless_bit(&c, program->plain, KERNEL_CALL_PLAIN, &not_plain);
	make_plain(&c, program, is_leaving ? KERNEL_CALL_LEAVE : KERNEL_CALL_ENTER, ids, &leaving);
	jump(&c, &leaving);
	here(&c, &not_plain);
	load(&c, BPF_DW, R1, FP, IS_I386); /* programs that copy are for 64-bit calls */
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
	struct code c = { .insns = out, .max = KERNEL_CALL_PROGRAM_MAX };
	struct label leaving = { .n = 0 };
	enum ids ids;

	move(&c, R6, R1);
	ids = filter(&c, program, &leaving);
	move(&c, R1, R6);
	begin(&c, program, KERNEL_CALL_SIGNAL, ids, &leaving);
	take_room(&c, program, R6, plain_size(program, KERNEL_CALL_SIGNAL), &leaving);
	set_size(&c, plain_size(program, KERNEL_CALL_SIGNAL));
	fill(&c, program, KERNEL_CALL_SIGNAL);
	copy_from_kernel(&c, AT(words), KERNEL_SIGINFO_SIZE, VALUE, 0);
	load(&c, BPF_DW, R1, FP, POINTER);
	store(&c, BPF_DW, R6, AT(value), R1);
	publish(&c);
	here(&c, &leaving);
	leave(&c);
	return finish(&c);
}

int kernel_call_end_make(const struct kernel_call_program *program, uint32_t status_at, struct bpf_insn *out)
{
	struct code c = { .insns = out, .max = KERNEL_CALL_PROGRAM_MAX };
	struct label leaving = { .n = 0 };
	enum ids ids;

	move(&c, R6, R1);
	ids = filter(&c, program, &leaving);
	move(&c, R1, R6);
	begin(&c, program, KERNEL_CALL_END, ids, &leaving);
	key_of_thread(&c);
	forget_noted(&c, program);
	take_room(&c, program, R6, plain_size(program, KERNEL_CALL_END), &leaving);
	set_size(&c, plain_size(program, KERNEL_CALL_END));
	fill(&c, program, KERNEL_CALL_END);
	store_imm(&c, BPF_DW, R6, AT(value), 0);
	copy_from_kernel(&c, AT(value), 4, POINTER, (int)status_at);
	publish(&c);
	here(&c, &leaving);
	leave(&c);
	return finish(&c);
}
