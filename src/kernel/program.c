/*
 * The program of a probe does this:
 *
 *	is the gate open?					one word for all probes
 *	is the process one of those that are recorded?		its bit, where they are told apart
 *	does the filter let it through?				its values lie below the sample
 *	the CPU's ring and its state				ring and count are found by the same key
 *	ids, arguments, cookie, losses, name			into a sample on the stack
 *	the time						last, so that samples are nearly in order
 *	bpf_ringbuf_output()					or one more loss
 *
 * It may be preempted at any point, as uprobe programs run with only migration off. Another thread's may run on the
 * same CPU meanwhile. So the sample is made on the stack, the ring takes it as a whole under its own lock, and losses
 * are added atomically. The sample has slots of 8 bytes, as the verifier wants stores to the stack aligned; the reader
 * packs them.
 */
#include "kernel/program.h"

#include <errno.h>
#include <string.h>

#include "kernel/attach.h"
#include "kernel/code.h"
#include "kernel/form.h"
#include "wire/event.h"

/* ---- a probe --------------------------------------------------------------------------------- */

size_t kernel_slot_size(enum kymo_type type, uint16_t limit)
{
	return type == KYMO_TYPE_STRING ? ((size_t)limit + 2 + 7) / 8 * 8 : 8;
}

size_t kernel_sample_size(bool names)
{
	return sizeof(struct kernel_sample) + (names ? KERNEL_NAME_SIZE : 0);
}

static size_t size_of_sample(const struct kernel_program *program)
{
	size_t size = kernel_sample_size(program->names);

	for (size_t i = 0; i < program->n_args; i++)
		size += kernel_slot_size(program->args[i].type, program->args[i].limit);
	return size;
}

/* Leave unless the process is wanted. */
static void filter(struct kernel_code *c, const struct kernel_program *program, struct kernel_label *out)
{
	if (program->processes < 0)
		return;
	emit(c, BPF_EMIT_CALL(BPF_FUNC_get_current_pid_tgid));
	leave_unless_among(c, program->processes, out);
}

/* r8 = the ring, r7 = its state. */
static void find_ring(struct kernel_code *c, const struct kernel_program *program, struct kernel_label *out)
{
	struct kernel_label has_ring = { .n = 0 };

	emit(c, BPF_EMIT_CALL(BPF_FUNC_get_smp_processor_id));
	emit(c, BPF_STX_MEM(BPF_W, FP, R0, STACK_TOP));
	look_up(c, program->rings);
	jump_if(c, BPF_JNE, R0, 0, &has_ring);
	emit(c, BPF_ST_MEM(BPF_W, FP, STACK_TOP, (int32_t)program->first_cpu));
	look_up(c, program->rings);
	jump_if(c, BPF_JEQ, R0, 0, out);
	here(c, &has_ring);
	emit(c, BPF_MOV64_REG(R8, R0));
	look_up(c, program->state);
	jump_if(c, BPF_JEQ, R0, 0, out);
	emit(c, BPF_MOV64_REG(R7, R0));
}

/* Where the sample and what is below it lie, relative to the frame pointer. */
struct frame {
	int sample, ids, stack;
};

static void note_fault(struct kernel_code *c, size_t i)
{
	emit(c, BPF_ALU64_IMM(BPF_OR, R9, 1 << i));
}

/* The string at the address in r0, of which a byte more than its limit tells that it is longer. */
static void fetch_string(struct kernel_code *c, const struct kymo_kernel_arg *arg, int at, struct kernel_label *fault)
{
	emit(c, BPF_MOV64_REG(R3, R0));
	stack_address(c, R1, at);
	emit(c, BPF_MOV64_IMM(R2, arg->limit + 2));
	emit(c, BPF_EMIT_CALL(BPF_FUNC_probe_read_user_str));
	jump_if(c, BPF_JSLT, R0, 0, fault);
}

/* r1 to r3 for a read of the bytes that the form wants, up to `most` of them, to `at`. */
static void set_wanted(struct kernel_code *c, const struct frame *frame, int at, int32_t most)
{
	emit(c, BPF_LDX_MEM(BPF_DW, R2, FP, frame->stack + KERNEL_FORM_WANTED));
	emit(c, BPF_JMP_IMM(BPF_JLE, R2, most, 1));
	emit(c, BPF_MOV64_IMM(R2, most));
	emit(c, BPF_LDX_MEM(BPF_DW, R3, FP, frame->stack));
	stack_address(c, R1, at);
}

/* The string of the bytes that are wanted at an address, into zeros. The kernel reads them as a whole, or else up to a
 * NUL, for which it takes a byte more. */
static void fetch_wanted(struct kernel_code *c, const struct kymo_kernel_arg *arg, const struct frame *frame, int at,
			 struct kernel_label *fault)
{
	struct kernel_label done = { .n = 0 };

	set_wanted(c, frame, at, arg->limit + 1);
	jump_if(c, BPF_JEQ, R2, 0, &done);
	emit(c, BPF_EMIT_CALL(BPF_FUNC_probe_read_user));
	jump_if(c, BPF_JEQ, R0, 0, &done);
	set_wanted(c, frame, at, arg->limit + 1);
	emit(c, BPF_ALU64_IMM(BPF_ADD, R2, 1));
	emit(c, BPF_EMIT_CALL(BPF_FUNC_probe_read_user_str));
	jump_if(c, BPF_JSLT, R0, 0, fault);
	here(c, &done);
}

static void fetch_form(struct kernel_code *c, const struct kymo_kernel_arg *arg, size_t i, const struct frame *frame,
		       int at)
{
	const size_t size = kernel_slot_size(arg->type, arg->limit);
	struct kernel_label fault = { .n = 0 }, done = { .n = 0 };

	/* What a string leaves of its slot is not to be what was on the kernel's stack. */
	for (size_t k = 0; k < size; k += 8)
		emit(c, BPF_ST_MEM(BPF_DW, FP, at + (int)k, 0));
	kernel_form_emit(c, arg->form, frame->stack, frame->ids, &fault);
	if (arg->type == KYMO_TYPE_STRING && kymo_form_has(arg->form->form, KYMO_FORM_WANT, NULL))
		fetch_wanted(c, arg, frame, at, &fault);
	else if (arg->type == KYMO_TYPE_STRING)
		fetch_string(c, arg, at, &fault);
	else
		emit(c, BPF_STX_MEM(BPF_DW, FP, R0, at));
	if (!fault.n)
		return;
	jump(c, &done);
	here(c, &fault);
	note_fault(c, i);
	here(c, &done);
}

/* Argument `i` into its slot; r9 collects faults. */
static void fetch(struct kernel_code *c, const struct kymo_kernel_arg *arg, size_t i, const struct frame *frame, int at)
{
	struct kernel_label done = { .n = 0 };

	if (arg->source == KYMO_KERNEL_FORM) {
		fetch_form(c, arg, i, frame, at);
		return;
	}
	if (arg->source == KYMO_KERNEL_IMMEDIATE || arg->source == KYMO_KERNEL_UNKNOWN) {
		emit(c, BPF_LD_IMM64(R1, arg->source == KYMO_KERNEL_IMMEDIATE ? (uint64_t)arg->value : 0));
		emit(c, BPF_STX_MEM(BPF_DW, FP, R1, at));
		if (arg->source == KYMO_KERNEL_UNKNOWN)
			note_fault(c, i);
		return;
	}
	emit(c, BPF_LDX_MEM(BPF_DW, R3, R6, arg->at));
	if (arg->value)
		emit(c, BPF_ALU64_IMM(BPF_ADD, R3, (int32_t)arg->value));
	if (arg->source == KYMO_KERNEL_REGISTER) {
		emit(c, BPF_STX_MEM(BPF_DW, FP, R3, at));
		return;
	}
	stack_address(c, R1, at);
	emit(c, BPF_MOV64_IMM(R2, 8));
	emit(c, BPF_EMIT_CALL(BPF_FUNC_probe_read_user)); /* where it fails it stores zeroes */
	jump_if(c, BPF_JEQ, R0, 0, &done);
	note_fault(c, i);
	here(c, &done);
}

static bool is_sound_place(enum kymo_kernel_source source, uint16_t at, int64_t value)
{
	return (unsigned int)source <= KYMO_KERNEL_UNKNOWN && !(at % 8) &&
	       (source == KYMO_KERNEL_IMMEDIATE || (value >= INT32_MIN && value <= INT32_MAX));
}

static bool is_sound_form(const struct kymo_kernel_form *form)
{
	if (!kymo_form_check(form->form, UINT8_MAX, UINT8_MAX) || kymo_kernel_form_refusal(form->form))
		return false;
	for (uint32_t i = 0; i < form->form->n; i++)
		if (!is_sound_place(form->places[i].source, form->places[i].at, form->places[i].value))
			return false;
	return true;
}

static bool is_sound_arg(const struct kymo_kernel_arg *arg)
{
	if (arg->source == KYMO_KERNEL_FORM)
		return (arg->type == KYMO_TYPE_STRING || (unsigned int)arg->type < KYMO_N_TYPES) &&
		       is_sound_form(arg->form);
	return (unsigned int)arg->type < KYMO_N_TYPES && is_sound_place(arg->source, arg->at, arg->value);
}

static int check_program(const struct kernel_program *program)
{
	size_t strings = 0;

	if (program->n_args > KYMO_EVENT_MAX_ARGS || (program->filter && !is_sound_form(program->filter)))
		return -EINVAL;
	for (size_t i = 0; i < program->n_args; i++) {
		const struct kymo_kernel_arg *arg = &program->args[i];

		if (!is_sound_arg(arg))
			return -EINVAL;
		if (arg->type == KYMO_TYPE_STRING)
			strings += kernel_slot_size(arg->type, arg->limit);
	}
	return strings <= KYMO_KERNEL_STRINGS_MAX ? 0 : -E2BIG;
}

/* Leave unless the filter has a value, and that is not 0. */
static void ask_filter(struct kernel_code *c, const struct kernel_program *program, const struct frame *frame,
		       struct kernel_label *out)
{
	if (!program->filter)
		return;
	kernel_form_emit(c, program->filter, frame->stack, frame->ids, out);
	jump_if(c, BPF_JEQ, R0, 0, out);
}

int kernel_program_make(const struct kernel_program *program, struct bpf_insn out[KERNEL_PROGRAM_MAX])
{
	const int size = (int)size_of_sample(program), sample = STACK_TOP - size;
	const struct frame frame = { sample, sample + (int)offsetof(struct kernel_sample, tid),
				     sample - KERNEL_FORM_STACK };
	int at = sample + (int)sizeof(struct kernel_sample);
	struct kernel_label leaving = { .n = 0 }, written = { .n = 0 };
	struct kernel_code c = { .insns = out, .max = KERNEL_PROGRAM_MAX, .err = check_program(program) };

	if (c.err)
		return c.err;
	emit(&c, BPF_MOV64_REG(R6, R1));
	emit(&c, BPF_LD_MAP_VALUE(R1, program->gate, 0));
	emit(&c, BPF_LDX_MEM(BPF_DW, R1, R1, 0));
	jump_if(&c, BPF_JEQ, R1, 0, &leaving);
	filter(&c, program, &leaving);
	store_ids(&c, &program->ids, frame.ids, &leaving);
	ask_filter(&c, program, &frame, &leaving);
	find_ring(&c, program, &leaving);
	emit(&c, BPF_MOV64_IMM(R9, 0));
	for (size_t i = 0; i < program->n_args; i++) {
		fetch(&c, &program->args[i], i, &frame, at);
		at += (int)kernel_slot_size(program->args[i].type, program->args[i].limit);
	}
	emit(&c, BPF_MOV64_REG(R1, R6));
	emit(&c, BPF_EMIT_CALL(BPF_FUNC_get_attach_cookie));
	emit(&c, BPF_ALU64_IMM(BPF_AND, R0, KYMO_EVENT_ID_MAX));
	emit(&c, BPF_ALU64_IMM(BPF_LSH, R9, 32));
	emit(&c, BPF_ALU64_REG(BPF_OR, R0, R9));
	emit(&c, BPF_STX_MEM(BPF_DW, FP, R0, sample + (int)offsetof(struct kernel_sample, id)));
	if (program->names) {
		stack_address(&c, R1, at);
		emit(&c, BPF_MOV64_IMM(R2, KERNEL_NAME_SIZE));
		emit(&c, BPF_EMIT_CALL(BPF_FUNC_get_current_comm));
	}
	emit(&c, BPF_LDX_MEM(BPF_DW, R1, R7, 0));
	emit(&c, BPF_STX_MEM(BPF_DW, FP, R1, sample + (int)offsetof(struct kernel_sample, lost)));
	emit(&c, BPF_EMIT_CALL(BPF_FUNC_ktime_get_ns));
	emit(&c, BPF_STX_MEM(BPF_DW, FP, R0, sample + (int)offsetof(struct kernel_sample, ns)));
	emit(&c, BPF_MOV64_REG(R1, R8));
	stack_address(&c, R2, sample);
	emit(&c, BPF_MOV64_IMM(R3, size));
	emit(&c, BPF_MOV64_IMM(R4, BPF_RB_NO_WAKEUP)); /* the recorder looks often enough by itself */
	emit(&c, BPF_EMIT_CALL(BPF_FUNC_ringbuf_output));
	jump_if(&c, BPF_JEQ, R0, 0, &written);
	count_one(&c, R7);
	here(&c, &written);
	here(&c, &leaving);
	leave(&c);
	return finish(&c);
}
