/*
 * A sample of a system call is made in memory of the CPU's own, and handed to the ring as a whole: programs at these
 * tracepoints run with preemption off, and none runs within another. Registers throughout:
 *
 *	r6	the sample
 *	r7	where its next copy goes; at most ROOM when a copy begins
 *	r8, r9	address and size of what is copied
 *
 * The registers that a call is made with are loaded one by one, as the kernel lets programs of type TRACING do that know its types: copying
 * all of them by a helper would cost more than all the rest.
 *
 * Memory that is not there yet, as a page of the file that nobody has touched, can't be had here: programs don't wait for it.
 * What fails at the entry is noted, and copied once more at the exit, when the kernel itself has read it.
 */
#include "kernel/call_program.h"

#include <errno.h>

#include "kernel/code.h"

enum { PAGE = 4096, LOWEST = 4096, PAGES_MAX = KYMO_COPY_SIZE_MAX / PAGE + 1 };

#define HEADER ((int)sizeof(struct kymo_copied))
#define ROOM (KERNEL_CALL_SCRATCH - PAGES_MAX * (PAGE + HEADER + 8) - 64)

/* Below STACK_TOP. */
enum {
	IDS = STACK_TOP - 8,
	POINTER = IDS - 8,	/* the tracepoint's first argument */
	VALUE = POINTER - 8,	/* its second one */
	REST = VALUE - 8,
	COUNT = REST - 8,
	ARRAY = COUNT - 8,
	FIELDS = ARRAY - 8 * 8, /* of what was copied last */
};

#define AT(member) ((int)offsetof(struct kernel_call, member))

/* What of the event is to be had before there is a sample; its losses' count is in r7 then. Pid and tgid are in r9, if `has_ids`; the program's argument in r1. */
static void begin(struct code *c, const struct kernel_call_program *program, enum kernel_call_what what, bool has_ids, struct label *out)
{
	load(c, BPF_DW, R2, R1, 0);
	store(c, BPF_DW, FP, POINTER, R2);
	load(c, BPF_DW, R2, R1, what == KERNEL_CALL_END ? 0 : 8);
	store(c, BPF_DW, FP, VALUE, R2);
	if (has_ids && !program->ids.ns_ino && !program->ids.not_tgid)
		store(c, BPF_DW, FP, IDS, R9);
	else
		store_ids(c, &program->ids, IDS, out);
	store_imm(c, BPF_W, FP, STACK_TOP, 0);
	look_up(c, program->state);
	jump_if(c, BPF_JEQ, R0, 0, out);
	move(c, R7, R0);
}

static void take_scratch(struct code *c, const struct kernel_call_program *program, struct label *out)
{
	call(c, BPF_FUNC_get_smp_processor_id);
	store(c, BPF_W, FP, STACK_TOP, R0);
	look_up(c, program->scratch);
	jump_if(c, BPF_JEQ, R0, 0, out);
	move(c, R6, R0);
}

/* Behind it the sample has to be submitted. */
static void take_room(struct code *c, const struct kernel_call_program *program, int32_t size, struct label *out)
{
	struct label has_room = { .n = 0 };

	set_map(c, R1, program->ring);
	set(c, R2, size);
	set(c, R3, 0);
	call(c, BPF_FUNC_ringbuf_reserve);
	move(c, R6, R0);
	jump_if(c, BPF_JNE, R0, 0, &has_room);
	count_one(c, R7);
	jump(c, out);
	here(c, &has_room);
}

static void fill(struct code *c, const struct kernel_call_program *program, enum kernel_call_what what)
{
	call(c, BPF_FUNC_get_smp_processor_id);
	store(c, BPF_W, R6, AT(cpu), R0);
	load(c, BPF_DW, R1, R7, 0);
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

/* The arguments, the stack pointer and the number, into the sample. */
static void load_words(struct code *c, const struct kernel_call_program *program)
{
	const struct kymo_call_layout *layout = program->layout;

	load(c, BPF_DW, R2, FP, POINTER);
	for (int i = 0; i < KERNEL_CALL_WORDS; i++) {
		const int at = i < KERNEL_CALL_STACK_POINTER ? layout->args[i] : i == KERNEL_CALL_NUMBER ? layout->number : layout->stack_pointer;

		load(c, BPF_DW, R1, R2, at);
		store(c, BPF_DW, R6, AT(words) + 8 * i, R1);
	}
	set(c, R7, AT(words) + 8 * KERNEL_CALL_WORDS);
}

/* What is added to the count of threads that are to be copied for again; r0 is the result of a change of the table: 0 if there was one. */
static void count_noted(struct code *c, const struct kernel_call_program *program, int32_t change)
{
	struct label none = { .n = 0 };

	jump_if(c, BPF_JNE, R0, 0, &none);
	store_imm(c, BPF_W, FP, STACK_TOP, 0);
	look_up(c, program->state);
	jump_if(c, BPF_JEQ, R0, 0, &none);
	set(c, R1, change);
	emit(c, BPF_STX | BPF_ATOMIC | BPF_DW, R0, R1, offsetof(struct kernel_state, noted), BPF_ADD);
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

static void hand_over(struct code *c, const struct kernel_call_program *program, struct label *out)
{
	struct label written = { .n = 0 };

	jump_if(c, BPF_JGT, R7, KERNEL_CALL_SCRATCH, out);
	set_map(c, R1, program->ring);
	move(c, R2, R6);
	move(c, R3, R7);
	set(c, R4, BPF_RB_NO_WAKEUP);
	call(c, BPF_FUNC_ringbuf_output);
	jump_if(c, BPF_JEQ, R0, 0, &written);
	store_imm(c, BPF_W, FP, STACK_TOP, 0);
	look_up(c, program->state);
	jump_if(c, BPF_JEQ, R0, 0, &written);
	count_one(c, R0);
	here(c, &written);
}

/* ---- copies --------------------------------------------------------------------------------------------------------- */

/* An argument, or KYMO_COPY_STACK. */
static void load_register(struct code *c, uint8_t dst, unsigned arg)
{
	load(c, BPF_DW, dst, R6, AT(words) + 8 * (int)arg);
}

/*
 * The verifier follows each path with what it knows of r7 on that one, unless it knows the same on all of them: so it is made to
 * forget, by way of the map's memory. Without that, a vector takes it a second.
 */
static void check_room(struct code *c, struct label *failed)
{
	store(c, BPF_DW, R6, AT(position), R7);
	load(c, BPF_DW, R7, R6, AT(position));
	jump_if(c, BPF_JGT, R7, ROOM, failed);
}

/* r9 bytes from r8 on, of which the verifier knows that they are at most `PAGE`, then the first `n_fields` words of them to the stack. */
static void copy_piece(struct code *c, unsigned n_fields, struct label *failed)
{
	move(c, R1, R6);
	add_register(c, R1, R7);
	store(c, BPF_DW, R1, 0, R8);
	store(c, BPF_W, R1, 8, R9);
	add(c, R1, HEADER);
	move(c, R2, R9);
	move(c, R3, R8);
	call(c, BPF_FUNC_probe_read_user);
	jump_if(c, BPF_JNE, R0, 0, failed);
	if (n_fields) {
		move(c, R1, R6);
		add_register(c, R1, R7);
	}
	for (unsigned i = 0; i < n_fields; i++) {
		load(c, BPF_DW, R2, R1, HEADER + 8 * (int)i);
		store(c, BPF_DW, FP, FIELDS + 8 * (int)i, R2);
	}
	add_register(c, R7, R9);
	add(c, R7, HEADER + 7);
	emit(c, BPF_ALU64 | BPF_AND | BPF_K, R7, 0, 0, ~7);
}

/* r9 bytes from r8 on, at most `max`, page by page: the next one may not be there. */
static void copy_bytes(struct code *c, unsigned max, struct label *failed)
{
	struct label done = { .n = 0 };
	const unsigned n = (max + PAGE - 1) / PAGE + 1;

	jump_if(c, BPF_JLT, R8, LOWEST, &done);
	check_room(c, failed);
	for (unsigned i = 0; i < n; i++) {
		struct label within = { .n = 0 };

		jump_if(c, BPF_JEQ, R9, 0, &done);
		store(c, BPF_DW, FP, REST, R9);
		move(c, R2, R8);
		emit(c, BPF_ALU64 | BPF_AND | BPF_K, R2, 0, 0, PAGE - 1);
		set(c, R1, PAGE);
		subtract_register(c, R1, R2);
		jump_if_both(c, BPF_JLE, R9, R1, &within);
		move(c, R9, R1);
		here(c, &within);
		jump_if(c, BPF_JGT, R9, PAGE, &done);
		copy_piece(c, 0, failed);
		add_register(c, R8, R9);
		load(c, BPF_DW, R1, FP, REST);
		subtract_register(c, R1, R9);
		move(c, R9, R1);
	}
	here(c, &done);
}

/* The same, with r9 cut to `max`. */
static void copy_at_most(struct code *c, unsigned max, struct label *failed)
{
	struct label fits = { .n = 0 };

	jump_if(c, BPF_JLE, R9, (int32_t)max, &fits);
	set(c, R9, (int32_t)max);
	here(c, &fits);
	copy_bytes(c, max, failed);
}

/* The NUL that the kernel ends a longer string with is not the string's. */
static void copy_string(struct code *c, unsigned max, struct label *failed)
{
	struct label done = { .n = 0 }, whole = { .n = 0 };

	jump_if(c, BPF_JLT, R8, LOWEST, &done);
	check_room(c, failed);
	move(c, R1, R6);
	add_register(c, R1, R7);
	add(c, R1, HEADER);
	set(c, R2, (int32_t)max);
	move(c, R3, R8);
	call(c, BPF_FUNC_probe_read_user_str);
	jump_if(c, BPF_JGT, R0, (int32_t)max, failed); /* negative ones, too */
	jump_if(c, BPF_JEQ, R0, 0, failed);
	jump_if(c, BPF_JNE, R0, (int32_t)max, &whole);
	add(c, R0, -1);
	here(c, &whole);
	move(c, R1, R6);
	add_register(c, R1, R7);
	store(c, BPF_DW, R1, 0, R8);
	store(c, BPF_W, R1, 8, R0);
	add_register(c, R7, R0);
	add(c, R7, HEADER + 7);
	emit(c, BPF_ALU64 | BPF_AND | BPF_K, R7, 0, 0, ~7);
	here(c, &done);
}

/* r9 elements from r8 on. */
static void copy_vector(struct code *c, unsigned max, struct label *failed)
{
	struct label done = { .n = 0 };

	jump_if(c, BPF_JLT, R8, LOWEST, &done);
	store(c, BPF_DW, FP, COUNT, R9);
	store(c, BPF_DW, FP, ARRAY, R8);
	for (int i = 0; i < KYMO_COPY_ELEMENTS; i++) {
		load(c, BPF_DW, R1, FP, COUNT);
		jump_if(c, BPF_JLE, R1, i, &done);
		check_room(c, failed);
		load(c, BPF_DW, R8, FP, ARRAY);
		add(c, R8, 16 * i);
		set(c, R9, 16);
		copy_piece(c, 2, failed);
		load(c, BPF_DW, R8, FP, FIELDS);
		load(c, BPF_DW, R9, FP, FIELDS + 8);
		copy_at_most(c, max, failed);
	}
	here(c, &done);
}

enum { MESSAGE_SIZE = 56, NAME_MAX_ = 128, CONTROL_MAX = 512 };

static void copy_message(struct code *c, unsigned max, struct label *failed)
{
	struct label done = { .n = 0 };

	jump_if(c, BPF_JLT, R8, LOWEST, &done);
	check_room(c, failed);
	set(c, R9, MESSAGE_SIZE);
	copy_piece(c, 6, failed);
	load(c, BPF_DW, R8, FP, FIELDS);
	load(c, BPF_W, R9, FP, FIELDS + 8);
	copy_at_most(c, NAME_MAX_, failed);
	load(c, BPF_DW, R8, FP, FIELDS + 32);
	load(c, BPF_DW, R9, FP, FIELDS + 40);
	copy_at_most(c, CONTROL_MAX, failed);
	load(c, BPF_DW, R8, FP, FIELDS + 16);
	load(c, BPF_DW, R9, FP, FIELDS + 24);
	copy_vector(c, max, failed);
	here(c, &done);
}

static void copy_strings(struct code *c, unsigned max, struct label *failed)
{
	struct label done = { .n = 0 };

	jump_if(c, BPF_JLT, R8, LOWEST, &done);
	store(c, BPF_DW, FP, ARRAY, R8);
	for (int i = 0; i <= KYMO_COPY_ELEMENTS; i++) {
		check_room(c, failed);
		load(c, BPF_DW, R8, FP, ARRAY);
		add(c, R8, 8 * i);
		set(c, R9, 8);
		copy_piece(c, 1, failed);
		load(c, BPF_DW, R8, FP, FIELDS);
		jump_if(c, BPF_JEQ, R8, 0, &done);
		if (i < KYMO_COPY_ELEMENTS)
			copy_string(c, max, failed);
	}
	here(c, &done);
}

/* r8 = where, r9 = how many. */
static void load_range(struct code *c, const struct kymo_copy *copy, struct label *done, struct label *failed)
{
	const int size = copy->size ? copy->size : 1;

	load_register(c, R8, copy->arg);
	jump_if(c, BPF_JLT, R8, LOWEST, done);
	add(c, R8, copy->offset);
	if (copy->is_pointer) {
		stack_address(c, R1, ARRAY);
		set(c, R2, 8);
		move(c, R3, R8);
		call(c, BPF_FUNC_probe_read_user);
		jump_if(c, BPF_JNE, R0, 0, failed);
		load(c, BPF_DW, R8, FP, ARRAY);
	}
	if (copy->times == KYMO_COPY_ONCE) {
		set(c, R9, size);
		return;
	}
	if (copy->times == KYMO_COPY_RESULT) {
		load(c, BPF_DW, R9, R6, AT(value));
		jump_if(c, BPF_JSLE, R9, 0, done);
	} else {
		load_register(c, R9, copy->times - 1u);
	}
	if (copy->what == KYMO_COPY_BYTES) {
		struct label fits = { .n = 0 };

		jump_if(c, BPF_JLE, R9, copy->max / size, &fits);
		set(c, R9, copy->max / size);
		here(c, &fits);
		emit(c, BPF_ALU64 | BPF_MUL | BPF_K, R9, 0, 0, size);
	}
}

static void make_copy(struct code *c, const struct kymo_copy *copy)
{
	struct label done = { .n = 0 }, failed = { .n = 0 };

	load_range(c, copy, &done, &failed);
	switch (copy->what) {
	case KYMO_COPY_BYTES:
		copy_bytes(c, copy->times ? copy->max : copy->size, &failed);
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
	store_imm(c, BPF_W, R6, AT(is_incomplete), 1);
	here(c, &done);
}

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

int kernel_call_make(const struct kernel_call_program *program, enum kernel_call_what what, const struct kymo_copy *copies, size_t n,
		     struct bpf_insn *out)
{
	struct code c = { .insns = out, .max = KERNEL_CALL_PROGRAM_MAX };
	struct label leaving = { .n = 0 };

	begin(&c, program, what, false, &leaving);
	take_scratch(&c, program, &leaving);
	fill(&c, program, what);
	load_words(&c, program);
	for (size_t i = 0; i < n; i++)
		make_copy(&c, &copies[i]);
	if (what == KERNEL_CALL_ENTER && n)
		note_incomplete(&c, program);
	hand_over(&c, program, &leaving);
	here(&c, &leaving);
	leave(&c);
	return finish(&c);
}

/* ---- which program ---------------------------------------------------------------------------------------------------- */

/* Leave unless the thread is wanted. Whether its pid and tgid are in r9 then. */
static bool filter(struct code *c, const struct kernel_call_program *program, struct label *out)
{
	if (program->processes < 0 && !program->thread)
		return false;
	call(c, BPF_FUNC_get_current_pid_tgid);
	move(c, R9, R0);
	if (program->thread) {
		move(c, R1, R0);
		emit(c, BPF_ALU64 | BPF_LSH | BPF_K, R1, 0, 0, 32);
		emit(c, BPF_ALU64 | BPF_RSH | BPF_K, R1, 0, 0, 32);
		jump_if(c, BPF_JNE, R1, program->thread, out);
	}
	if (program->processes >= 0)
		leave_unless_among(c, program->processes, out);
	return true;
}

/* To the program number r8 of the array, or on where there is none. */
static void go_to(struct code *c, int calls)
{
	move(c, R1, R6);
	set_map(c, R2, calls);
	move(c, R3, R8);
	call(c, BPF_FUNC_tail_call);
}

/* In the ring itself, as its size is known; the program's argument is in r6. */
static void make_plain(struct code *c, const struct kernel_call_program *program, enum kernel_call_what what, bool has_ids, struct label *leaving)
{
	move(c, R1, R6);
	begin(c, program, what, has_ids, leaving);
	take_room(c, program, AT(words) + 8 * KERNEL_CALL_WORDS, leaving);
	fill(c, program, what);
	load_words(c, program);
	move(c, R1, R6);
	set(c, R2, BPF_RB_NO_WAKEUP);
	call(c, BPF_FUNC_ringbuf_submit);
}

int kernel_call_pick(const struct kernel_call_program *program, int calls, bool is_leaving, struct bpf_insn *out)
{
	struct code c = { .insns = out, .max = KERNEL_CALL_PROGRAM_MAX };
	struct label leaving = { .n = 0 }, known = { .n = 0 }, first = { .n = 0 }, by_number = { .n = 0 };
	bool has_ids;

	move(&c, R6, R1);
	has_ids = filter(&c, program, &leaving);
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
		store_imm(&c, BPF_W, FP, STACK_TOP, 0);
		look_up(&c, program->state);
		jump_if(&c, BPF_JEQ, R0, 0, &first);
		load(&c, BPF_DW, R1, R0, offsetof(struct kernel_state, noted));
		jump_if(&c, BPF_JEQ, R1, 0, &first);
		key_of_thread(&c);
		look_up(&c, program->again);
		jump_if(&c, BPF_JEQ, R0, 0, &first);
		forget_noted(&c, program);
		add(&c, R8, KERNEL_CALL_NUMBERS);
		go_to(&c, calls);
		add(&c, R8, -KERNEL_CALL_NUMBERS);
		here(&c, &first);
	}
	jump_if(&c, BPF_JEQ, R8, KERNEL_CALL_NUMBERS - 1, &by_number);
	move(&c, R1, R8);
	if (is_leaving)
		add(&c, R1, KERNEL_CALL_PLAIN / 2);
	jump_unless_bit(&c, program->plain, KERNEL_CALL_PLAIN, &by_number);
	make_plain(&c, program, is_leaving ? KERNEL_CALL_LEAVE : KERNEL_CALL_ENTER, has_ids, &leaving);
	jump(&c, &leaving);
	here(&c, &by_number);
	go_to(&c, calls);
	here(&c, &leaving);
	leave(&c);
	return finish(&c);
}

/* ---- signals and ends --------------------------------------------------------------------------------------------------- */

/* The number is the tracepoint's first argument, the siginfo its second one: 0 and 1 for what has none. */
int kernel_call_signal_make(const struct kernel_call_program *program, struct bpf_insn *out)
{
	struct code c = { .insns = out, .max = KERNEL_CALL_PROGRAM_MAX };
	struct label leaving = { .n = 0 };

	move(&c, R6, R1);
	filter(&c, program, &leaving);
	move(&c, R1, R6);
	begin(&c, program, KERNEL_CALL_SIGNAL, false, &leaving);
	take_scratch(&c, program, &leaving);
	fill(&c, program, KERNEL_CALL_SIGNAL);
	copy_from_kernel(&c, AT(words), KERNEL_SIGINFO_SIZE, VALUE, 0);
	load(&c, BPF_DW, R1, FP, POINTER);
	store(&c, BPF_DW, R6, AT(value), R1);
	set(&c, R7, AT(words) + KERNEL_SIGINFO_SIZE);
	hand_over(&c, program, &leaving);
	here(&c, &leaving);
	leave(&c);
	return finish(&c);
}

int kernel_call_end_make(const struct kernel_call_program *program, uint32_t status_at, struct bpf_insn *out)
{
	struct code c = { .insns = out, .max = KERNEL_CALL_PROGRAM_MAX };
	struct label leaving = { .n = 0 };

	move(&c, R6, R1);
	filter(&c, program, &leaving);
	move(&c, R1, R6);
	begin(&c, program, KERNEL_CALL_END, false, &leaving);
	take_scratch(&c, program, &leaving);
	fill(&c, program, KERNEL_CALL_END);
	store_imm(&c, BPF_DW, R6, AT(value), 0);
	copy_from_kernel(&c, AT(value), 4, POINTER, (int)status_at);
	key_of_thread(&c);
	forget_noted(&c, program);
	set(&c, R7, AT(words));
	hand_over(&c, program, &leaving);
	here(&c, &leaving);
	leave(&c);
	return finish(&c);
}
