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
 * It may be preempted at any point (uprobe programs run with migration off and nothing else), and another thread's may
 * run on the same CPU meanwhile. So the sample is made on the stack, the ring takes it as a whole under its own lock,
 * and losses are added atomically. The sample has slots of 8 bytes, as the verifier wants stores to the stack aligned;
 * the reader packs them.
 */
#include "kernel/program.h"

#include <errno.h>
#include <string.h>

#include "kernel/attach.h"
#include "kernel/code.h"

/* ---- a probe --------------------------------------------------------------------------------- */

size_t kernel_sample_size(size_t n_args, bool names)
{
	return sizeof(struct kernel_sample) + 8 * n_args + (names ? KERNEL_NAME_SIZE : 0);
}

/* Leave unless the process is wanted. */
static void filter(struct code *c, const struct kernel_program *program, struct label *out)
{
	if (program->processes < 0)
		return;
	call(c, BPF_FUNC_get_current_pid_tgid);
	leave_unless_among(c, program->processes, out);
}

/* r8 = the ring, r7 = its state. */
static void find_ring(struct code *c, const struct kernel_program *program, struct label *out)
{
	struct label has_ring = { .n = 0 };

	call(c, BPF_FUNC_get_smp_processor_id);
	store(c, BPF_W, FP, STACK_TOP, R0);
	look_up(c, program->rings);
	jump_if(c, BPF_JNE, R0, 0, &has_ring);
	store_imm(c, BPF_W, FP, STACK_TOP, (int32_t)program->first_cpu);
	look_up(c, program->rings);
	jump_if(c, BPF_JEQ, R0, 0, out);
	here(c, &has_ring);
	move(c, R8, R0);
	look_up(c, program->state);
	jump_if(c, BPF_JEQ, R0, 0, out);
	move(c, R7, R0);
}

/* Argument `i` into its slot; r9 collects faults. */
static void fetch(struct code *c, const struct kymo_kernel_arg *arg, size_t i, int at)
{
	struct label done = { .n = 0 };

	if (arg->source == KYMO_KERNEL_IMMEDIATE || arg->source == KYMO_KERNEL_UNKNOWN) {
		set64(c, R1, arg->source == KYMO_KERNEL_IMMEDIATE ? (uint64_t)arg->value : 0);
		store(c, BPF_DW, FP, at, R1);
		if (arg->source == KYMO_KERNEL_UNKNOWN)
			emit(c, BPF_ALU64 | BPF_OR | BPF_K, R9, 0, 0, 1 << i);
		return;
	}
	load(c, BPF_DW, R3, R6, arg->at);
	if (arg->value)
		emit(c, BPF_ALU64 | BPF_ADD | BPF_K, R3, 0, 0, (int32_t)arg->value);
	if (arg->source == KYMO_KERNEL_REGISTER) {
		store(c, BPF_DW, FP, at, R3);
		return;
	}
	stack_address(c, R1, at);
	set(c, R2, 8);
	call(c, BPF_FUNC_probe_read_user); /* where it fails it stores zeroes */
	jump_if(c, BPF_JEQ, R0, 0, &done);
	emit(c, BPF_ALU64 | BPF_OR | BPF_K, R9, 0, 0, 1 << i);
	here(c, &done);
}

static int check(const struct kernel_program *program)
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
	struct label leaving = { .n = 0 }, written = { .n = 0 };
	struct code c = { .insns = out, .max = KERNEL_PROGRAM_MAX, .err = check(program) };

	if (c.err)
		return c.err;
	move(&c, R6, R1);
	set_value(&c, R1, program->gate, 0);
	load(&c, BPF_DW, R1, R1, 0);
	jump_if(&c, BPF_JEQ, R1, 0, &leaving);
	filter(&c, program, &leaving);
	store_ids(&c, &program->ids, sample + (int)offsetof(struct kernel_sample, tid), &leaving);
	find_ring(&c, program, &leaving);
	set(&c, R9, 0);
	for (size_t i = 0; i < program->n_args; i++)
		fetch(&c, &program->args[i], i, sample + (int)(sizeof(struct kernel_sample) + 8 * i));
	move(&c, R1, R6);
	call(&c, BPF_FUNC_get_attach_cookie);
	emit(&c, BPF_ALU64 | BPF_LSH | BPF_K, R9, 0, 0, 32);
	emit(&c, BPF_ALU64 | BPF_OR | BPF_X, R0, R9, 0, 0);
	store(&c, BPF_DW, FP, sample + (int)offsetof(struct kernel_sample, id), R0);
	if (program->names) {
		stack_address(&c, R1, sample + (int)(sizeof(struct kernel_sample) + 8 * program->n_args));
		set(&c, R2, KERNEL_NAME_SIZE);
		call(&c, BPF_FUNC_get_current_comm);
	}
	load(&c, BPF_DW, R1, R7, 0);
	store(&c, BPF_DW, FP, sample + (int)offsetof(struct kernel_sample, lost), R1);
	call(&c, BPF_FUNC_ktime_get_ns);
	store(&c, BPF_DW, FP, sample + (int)offsetof(struct kernel_sample, ns), R0);
	move(&c, R1, R8);
	stack_address(&c, R2, sample);
	set(&c, R3, size);
	set(&c, R4, BPF_RB_NO_WAKEUP); /* the recorder looks often enough by itself */
	call(&c, BPF_FUNC_ringbuf_output);
	jump_if(&c, BPF_JEQ, R0, 0, &written);
	count_one(&c, R7);
	here(&c, &written);
	here(&c, &leaving);
	leave(&c);
	return finish(&c);
}

/* ---- processes come and go ------------------------------------------------------------------- */

/* The process in r1 is among them from now on, or no longer. Several threads may say so at once: the number changes
 * with who has changed the bit. */
static void change_process(struct code *c, int processes, bool is_there)
{
	struct label same = { .n = 0 };

	find_bit(c, processes, KERNEL_PIDS);
	set(c, R4, 1);
	emit(c, BPF_ALU64 | BPF_LSH | BPF_X, R4, R1, 0, 0);
	move(c, R5, R4);
	if (!is_there)
		emit(c, BPF_ALU64 | BPF_XOR | BPF_K, R4, 0, 0, -1);
	emit(c, BPF_STX | BPF_ATOMIC | BPF_DW, R3, R4, 0, (is_there ? BPF_OR : BPF_AND) | BPF_FETCH);
	emit(c, BPF_ALU64 | BPF_AND | BPF_X, R4, R5, 0, 0);
	jump_if(c, is_there ? BPF_JNE : BPF_JEQ, R4, 0, &same);
	set_value(c, R3, processes, offsetof(struct kernel_processes, n));
	set(c, R1, is_there ? 1 : -1);
	emit(c, BPF_STX | BPF_ATOMIC | BPF_DW, R3, R1, 0, BPF_ADD);
	here(c, &same);
}

int kernel_fork_make(int processes, const struct kernel_task_layout *layout, struct bpf_insn out[KERNEL_PROGRAM_MAX])
{
	struct label leaving = { .n = 0 };
	struct code c = { .insns = out, .max = KERNEL_PROGRAM_MAX };

	load(&c, BPF_DW, R6, R1, 0); /* the parent */
	load(&c, BPF_DW, R7, R1, 8); /* the child: a thread of the same process, or a process */
	load(&c, BPF_W, R1, R6, (int)layout->tgid);
	jump_unless_bit(&c, processes, KERNEL_PIDS, &leaving);
	load(&c, BPF_W, R1, R7, (int)layout->tgid);
	change_process(&c, processes, true);
	here(&c, &leaving);
	leave(&c);
	return finish(&c);
}

int kernel_exit_make(int processes, const struct kernel_task_layout *layout, struct bpf_insn out[KERNEL_PROGRAM_MAX])
{
	struct label leaving = { .n = 0 };
	struct code c = { .insns = out, .max = KERNEL_PROGRAM_MAX };

	load(&c, BPF_DW, R6, R1, 0);
	load(&c, BPF_W, R1, R6, (int)layout->tgid);
	jump_unless_bit(&c, processes, KERNEL_PIDS, &leaving);
	load(&c, BPF_DW, R7, R6, (int)layout->signal);
	load(&c, BPF_W, R1, R7, (int)layout->live);
	jump_if(&c, BPF_JNE, R1, 0, &leaving);
	load(&c, BPF_W, R1, R6, (int)layout->tgid);
	change_process(&c, processes, false);
	here(&c, &leaving);
	leave(&c);
	return finish(&c);
}
