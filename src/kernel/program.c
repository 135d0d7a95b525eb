/*
 * The program of a probe does this:
 *
 *	is the gate open?					one word for all probes
 *	is the process one of those that are recorded?		its bit, where they are told apart
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
#include "wire/event.h"

/* ---- a probe --------------------------------------------------------------------------------- */

size_t kernel_sample_size(size_t n_args, bool names)
{
	return sizeof(struct kernel_sample) + 8 * n_args + (names ? KERNEL_NAME_SIZE : 0);
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

/* Argument `i` into its slot; r9 collects faults. */
static void fetch(struct kernel_code *c, const struct kymo_kernel_arg *arg, size_t i, int at)
{
	struct kernel_label done = { .n = 0 };

	if (arg->source == KYMO_KERNEL_IMMEDIATE || arg->source == KYMO_KERNEL_UNKNOWN) {
		emit(c, BPF_LD_IMM64(R1, arg->source == KYMO_KERNEL_IMMEDIATE ? (uint64_t)arg->value : 0));
		emit(c, BPF_STX_MEM(BPF_DW, FP, R1, at));
		if (arg->source == KYMO_KERNEL_UNKNOWN)
			emit(c, BPF_ALU64_IMM(BPF_OR, R9, 1 << i));
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
	emit(c, BPF_ALU64_IMM(BPF_OR, R9, 1 << i));
	here(c, &done);
}

static int check_program(const struct kernel_program *program)
{
	if (program->n_args > KYMO_EVENT_MAX_ARGS)
		return -EINVAL;
	for (size_t i = 0; i < program->n_args; i++) {
		const struct kymo_kernel_arg *arg = &program->args[i];

		if ((unsigned int)arg->type >= KYMO_N_TYPES || (unsigned int)arg->source > KYMO_KERNEL_UNKNOWN ||
		    arg->at % 8)
			return -EINVAL;
		if (arg->source != KYMO_KERNEL_IMMEDIATE && (arg->value < INT32_MIN || arg->value > INT32_MAX))
			return -EINVAL;
	}
	return 0;
}

int kernel_program_make(const struct kernel_program *program, struct bpf_insn out[KERNEL_PROGRAM_MAX])
{
	int size = (int)kernel_sample_size(program->n_args, program->names), sample = STACK_TOP - size;
	struct kernel_label leaving = { .n = 0 }, written = { .n = 0 };
	struct kernel_code c = { .insns = out, .max = KERNEL_PROGRAM_MAX, .err = check_program(program) };

	if (c.err)
		return c.err;
	emit(&c, BPF_MOV64_REG(R6, R1));
	emit(&c, BPF_LD_MAP_VALUE(R1, program->gate, 0));
	emit(&c, BPF_LDX_MEM(BPF_DW, R1, R1, 0));
	jump_if(&c, BPF_JEQ, R1, 0, &leaving);
	filter(&c, program, &leaving);
	store_ids(&c, &program->ids, sample + (int)offsetof(struct kernel_sample, tid), &leaving);
	find_ring(&c, program, &leaving);
	emit(&c, BPF_MOV64_IMM(R9, 0));
	for (size_t i = 0; i < program->n_args; i++)
		fetch(&c, &program->args[i], i, sample + (int)(sizeof(struct kernel_sample) + 8 * i));
	emit(&c, BPF_MOV64_REG(R1, R6));
	emit(&c, BPF_EMIT_CALL(BPF_FUNC_get_attach_cookie));
	emit(&c, BPF_ALU64_IMM(BPF_LSH, R9, 32));
	emit(&c, BPF_ALU64_REG(BPF_OR, R0, R9));
	emit(&c, BPF_STX_MEM(BPF_DW, FP, R0, sample + (int)offsetof(struct kernel_sample, id)));
	if (program->names) {
		stack_address(&c, R1, sample + (int)(sizeof(struct kernel_sample) + 8 * program->n_args));
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
