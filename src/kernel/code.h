/* What BPF programs are written with: an instruction a call. Private to the room. */
#ifndef KYMO_KERNEL_CODE_H
#define KYMO_KERNEL_CODE_H

#include <errno.h>

#include "kernel/instruction.h"
#include "kernel/program.h"

#define STACK_TOP (-8) /* scratch: keys */

enum { R0, R1, R2, R3, R4, R5, R6, R7, R8, R9, FP }; /* BPF_REG_0 to BPF_REG_9, BPF_REG_FP */

#define MAX_LABEL_USES 256

struct kernel_code {
	struct bpf_insn *insns;
	int max;
	int n;
	int err;
};

/* Jumps that wait for their target. */
struct kernel_label {
	int at[MAX_LABEL_USES];
	int n;
};

static inline void emit_all(struct kernel_code *c, const struct instruction *instructions, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct instruction *from = &instructions[i];

		if (c->n >= c->max || from->off != (int16_t)from->off) {
			c->err = -ENOSPC;
			return;
		}
		c->insns[c->n++] = (struct bpf_insn){
			.code = from->code,
			.dst_reg = from->dst_reg & 15,
			.src_reg = from->src_reg & 15,
			.off = (int16_t)from->off,
			.imm = from->imm,
		};
	}
}

/* Append what one of the macros of instruction.h stands for. */
#define emit(c, ...) \
	emit_all(c, (const struct instruction[]){ __VA_ARGS__ }, \
		 sizeof((const struct instruction[]){ __VA_ARGS__ }) / sizeof(struct instruction))

static inline void stack_address(struct kernel_code *c, uint8_t dst, int offset)
{
	emit(c, BPF_MOV64_REG(dst, FP));
	emit(c, BPF_ALU64_IMM(BPF_ADD, dst, offset));
}

/* The jump's offset is filled in by here(). */
static inline void emit_jump(struct kernel_code *c, struct kernel_label *label, struct instruction jump)
{
	if (label->n == MAX_LABEL_USES) {
		c->err = -ENOSPC;
		return;
	}
	label->at[label->n++] = c->n;
	emit(c, jump);
}

static inline void jump_if(struct kernel_code *c, uint8_t op, uint8_t reg, int32_t imm, struct kernel_label *label)
{
	emit_jump(c, label, BPF_JMP_IMM(op, reg, imm, 0));
}

static inline void jump_if_both(struct kernel_code *c, uint8_t op, uint8_t reg, uint8_t other,
				struct kernel_label *label)
{
	emit_jump(c, label, BPF_JMP_REG(op, reg, other, 0));
}

static inline void jump(struct kernel_code *c, struct kernel_label *label)
{
	emit_jump(c, label, BPF_JMP_A(0));
}

static inline void here(struct kernel_code *c, const struct kernel_label *label)
{
	for (int i = 0; i < label->n && !c->err; i++)
		c->insns[label->at[i]].off = (int16_t)(c->n - label->at[i] - 1);
}

static inline void leave(struct kernel_code *c)
{
	emit(c, BPF_MOV64_IMM(R0, 0));
	emit(c, BPF_EXIT_INSN());
}

/* r0 = the element of `map` for the u32 key at STACK_TOP, or NULL. */
static inline void look_up(struct kernel_code *c, int map)
{
	emit(c, BPF_LD_MAP_FD(R1, map));
	stack_address(c, R2, STACK_TOP);
	emit(c, BPF_EMIT_CALL(BPF_FUNC_map_lookup_elem));
}

static inline void count_one(struct kernel_code *c, uint8_t state)
{
	emit(c, BPF_MOV64_IMM(R1, 1));
	emit(c, BPF_ATOMIC_OP(BPF_DW, BPF_ADD, state, R1, 0));
}

/* The only element of `map` begins with `n` bits, a power of two: r3 = the word of number r1, r1 = its bit there.
 * Changes r2. */
static inline void find_bit(struct kernel_code *c, int map, int32_t n)
{
	emit(c, BPF_ALU64_IMM(BPF_AND, R1, n - 1));
	emit(c, BPF_MOV64_REG(R2, R1));
	emit(c, BPF_ALU64_IMM(BPF_RSH, R2, 6));
	emit(c, BPF_ALU64_IMM(BPF_LSH, R2, 3));
	emit(c, BPF_LD_MAP_VALUE(R3, map, 0));
	emit(c, BPF_ALU64_REG(BPF_ADD, R3, R2));
	emit(c, BPF_ALU64_IMM(BPF_AND, R1, 63));
}

/* Jump if that bit is not set. Changes r2 to r4. */
static inline void jump_unless_bit(struct kernel_code *c, int map, int32_t n, struct kernel_label *label)
{
	find_bit(c, map, n);
	emit(c, BPF_LDX_MEM(BPF_DW, R4, R3, 0));
	emit(c, BPF_ALU64_REG(BPF_RSH, R4, R1));
	emit(c, BPF_ALU64_IMM(BPF_AND, R4, 1));
	jump_if(c, BPF_JEQ, R4, 0, label);
}

/* Leave unless the process of pid and tgid in r0 is among `processes`. */
static inline void leave_unless_among(struct kernel_code *c, int processes, struct kernel_label *out)
{
	emit(c, BPF_MOV64_REG(R1, R0));
	emit(c, BPF_ALU64_IMM(BPF_RSH, R1, 32));
	jump_unless_bit(c, processes, KERNEL_PIDS, out);
}

static inline int finish(const struct kernel_code *c)
{
	return c->err ? c->err : c->n;
}

/* tid and pid at `at`. A process that is not in the namespace is named by the machine's ids. */
static inline void store_ids(struct kernel_code *c, const struct kernel_ids *ids, int at, struct kernel_label *out)
{
	struct kernel_label done = { .n = 0 };

	if (ids->ns_ino) {
		emit(c, BPF_LD_IMM64(R1, ids->ns_dev));
		emit(c, BPF_LD_IMM64(R2, ids->ns_ino));
		stack_address(c, R3, at);
		emit(c, BPF_MOV64_IMM(R4, sizeof(struct bpf_pidns_info)));
		emit(c, BPF_EMIT_CALL(BPF_FUNC_get_ns_current_pid_tgid));
		jump_if(c, BPF_JEQ, R0, 0, &done);
	}
	emit(c, BPF_EMIT_CALL(BPF_FUNC_get_current_pid_tgid));
	emit(c, BPF_STX_MEM(BPF_DW, FP, R0, at));
	here(c, &done);
	if (ids->not_tgid) {
		emit(c, BPF_LDX_MEM(BPF_W, R1, FP, at + 4));
		jump_if(c, BPF_JEQ, R1, ids->not_tgid, out);
	}
}

#endif
