/* What BPF programs are written with: an instruction a call. Private to the room. */
#ifndef KYMO_KERNEL_CODE_H
#define KYMO_KERNEL_CODE_H

#include <errno.h>

#include "kernel/program.h"

#define STACK_TOP (-8) /* scratch: keys */

enum { R0, R1, R2, R3, R4, R5, R6, R7, R8, R9, FP };

#define MAX_LABEL_USES 256

struct code {
	struct bpf_insn *insns;
	int max;
	int n;
	int err;
};

/* Jumps that wait for their target. */
struct label {
	int at[MAX_LABEL_USES];
	int n;
};

static inline void emit(struct code *c, uint8_t op, uint8_t dst, uint8_t src, int offset, int32_t imm)
{
	if (c->n >= c->max || offset < INT16_MIN || offset > INT16_MAX) {
		c->err = -ENOSPC;
		return;
	}
	c->insns[c->n++] =
		(struct bpf_insn){ .code = op, .dst_reg = dst, .src_reg = src, .off = (int16_t)offset, .imm = imm };
}

static inline void move(struct code *c, uint8_t dst, uint8_t src)
{
	emit(c, BPF_ALU64 | BPF_MOV | BPF_X, dst, src, 0, 0);
}

static inline void set(struct code *c, uint8_t dst, int32_t value)
{
	emit(c, BPF_ALU64 | BPF_MOV | BPF_K, dst, 0, 0, value);
}

static inline void set64(struct code *c, uint8_t dst, uint64_t value)
{
	emit(c, BPF_LD | BPF_DW | BPF_IMM, dst, 0, 0, (int32_t)(uint32_t)value);
	emit(c, 0, 0, 0, 0, (int32_t)(uint32_t)(value >> 32));
}

static inline void set_map(struct code *c, uint8_t dst, int fd)
{
	emit(c, BPF_LD | BPF_DW | BPF_IMM, dst, BPF_PSEUDO_MAP_FD, 0, fd);
	emit(c, 0, 0, 0, 0, 0);
}

/* dst = the memory of the only element of an array. */
static inline void set_value(struct code *c, uint8_t dst, int fd, int offset)
{
	emit(c, BPF_LD | BPF_DW | BPF_IMM, dst, BPF_PSEUDO_MAP_VALUE, 0, fd);
	emit(c, 0, 0, 0, 0, offset);
}

static inline void load(struct code *c, uint8_t size, uint8_t dst, uint8_t src, int offset)
{
	emit(c, BPF_LDX | BPF_MEM | size, dst, src, offset, 0);
}

static inline void store(struct code *c, uint8_t size, uint8_t dst, int offset, uint8_t src)
{
	emit(c, BPF_STX | BPF_MEM | size, dst, src, offset, 0);
}

static inline void store_imm(struct code *c, uint8_t size, uint8_t dst, int offset, int32_t value)
{
	emit(c, BPF_ST | BPF_MEM | size, dst, 0, offset, value);
}

static inline void add(struct code *c, uint8_t dst, int32_t value)
{
	emit(c, BPF_ALU64 | BPF_ADD | BPF_K, dst, 0, 0, value);
}

static inline void add_register(struct code *c, uint8_t dst, uint8_t src)
{
	emit(c, BPF_ALU64 | BPF_ADD | BPF_X, dst, src, 0, 0);
}

static inline void subtract_register(struct code *c, uint8_t dst, uint8_t src)
{
	emit(c, BPF_ALU64 | BPF_SUB | BPF_X, dst, src, 0, 0);
}

static inline void stack_address(struct code *c, uint8_t dst, int offset)
{
	move(c, dst, FP);
	add(c, dst, offset);
}

static inline void call(struct code *c, int32_t helper)
{
	emit(c, BPF_JMP | BPF_CALL, 0, 0, 0, helper);
}

static inline void jump_if(struct code *c, uint8_t op, uint8_t reg, int32_t imm, struct label *label)
{
	if (label->n == MAX_LABEL_USES) {
		c->err = -ENOSPC;
		return;
	}
	label->at[label->n++] = c->n;
	emit(c, BPF_JMP | op | BPF_K, reg, 0, 0, imm);
}

static inline void jump_if_both(struct code *c, uint8_t op, uint8_t reg, uint8_t other, struct label *label)
{
	if (label->n == MAX_LABEL_USES) {
		c->err = -ENOSPC;
		return;
	}
	label->at[label->n++] = c->n;
	emit(c, BPF_JMP | op | BPF_X, reg, other, 0, 0);
}

static inline void jump(struct code *c, struct label *label)
{
	jump_if(c, BPF_JA, 0, 0, label);
}

static inline void here(struct code *c, const struct label *label)
{
	for (int i = 0; i < label->n && !c->err; i++)
		c->insns[label->at[i]].off = (int16_t)(c->n - label->at[i] - 1);
}

static inline void leave(struct code *c)
{
	set(c, R0, 0);
	emit(c, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
}

/* r0 = the element of `map` for the u32 key at STACK_TOP, or NULL. */
static inline void look_up(struct code *c, int map)
{
	set_map(c, R1, map);
	stack_address(c, R2, STACK_TOP);
	call(c, BPF_FUNC_map_lookup_elem);
}

static inline void count_one(struct code *c, uint8_t state)
{
	set(c, R1, 1);
	emit(c, BPF_STX | BPF_ATOMIC | BPF_DW, state, R1, 0, BPF_ADD);
}

/* The only element of `map` begins with `n` bits, a power of two: r3 = the word of number r1, r1 = its bit there.
 * Changes r2. */
static inline void find_bit(struct code *c, int map, int32_t n)
{
	emit(c, BPF_ALU64 | BPF_AND | BPF_K, R1, 0, 0, n - 1);
	move(c, R2, R1);
	emit(c, BPF_ALU64 | BPF_RSH | BPF_K, R2, 0, 0, 6);
	emit(c, BPF_ALU64 | BPF_LSH | BPF_K, R2, 0, 0, 3);
	set_value(c, R3, map, 0);
	add_register(c, R3, R2);
	emit(c, BPF_ALU64 | BPF_AND | BPF_K, R1, 0, 0, 63);
}

/* Jump if that bit is not set. Changes r2 to r4. */
static inline void jump_unless_bit(struct code *c, int map, int32_t n, struct label *label)
{
	find_bit(c, map, n);
	load(c, BPF_DW, R4, R3, 0);
	emit(c, BPF_ALU64 | BPF_RSH | BPF_X, R4, R1, 0, 0);
	emit(c, BPF_ALU64 | BPF_AND | BPF_K, R4, 0, 0, 1);
	jump_if(c, BPF_JEQ, R4, 0, label);
}

/* Leave unless the process of pid and tgid in r0 is among `processes`. */
static inline void leave_unless_among(struct code *c, int processes, struct label *out)
{
	move(c, R1, R0);
	emit(c, BPF_ALU64 | BPF_RSH | BPF_K, R1, 0, 0, 32);
	jump_unless_bit(c, processes, KERNEL_PIDS, out);
}

static inline int finish(const struct code *c)
{
	return c->err ? c->err : c->n;
}

/* tid and pid at `at`. A process that is not in the namespace is named by the machine's ids. */
static inline void store_ids(struct code *c, const struct kernel_ids *ids, int at, struct label *out)
{
	struct label done = { .n = 0 };

	if (ids->ns_ino) {
		set64(c, R1, ids->ns_dev);
		set64(c, R2, ids->ns_ino);
		stack_address(c, R3, at);
		set(c, R4, sizeof(struct bpf_pidns_info));
		call(c, BPF_FUNC_get_ns_current_pid_tgid);
		jump_if(c, BPF_JEQ, R0, 0, &done);
	}
	call(c, BPF_FUNC_get_current_pid_tgid);
	store(c, BPF_DW, FP, at, R0);
	here(c, &done);
	if (ids->not_tgid) {
		load(c, BPF_W, R1, FP, at + 4);
		jump_if(c, BPF_JEQ, R1, ids->not_tgid, out);
	}
}

#endif
