/*
 * Instructions of BPF by the names that the kernel's own sources give them (include/linux/filter.h there), which the
 * kernel's headers for programs leave out. Private to the room.
 */
#ifndef KYMO_KERNEL_INSTRUCTION_H
#define KYMO_KERNEL_INSTRUCTION_H

#include <linux/bpf.h>
#include <stdint.h>

/* As struct bpf_insn, with an offset that may turn out to be too large for that. */
struct instruction {
	uint8_t code, dst_reg, src_reg;
	int off;
	int32_t imm;
};

#define BPF_RAW_INSN(CODE, DST, SRC, OFF, IMM) \
	((struct instruction){ .code = (CODE), .dst_reg = (DST), .src_reg = (SRC), .off = (OFF), .imm = (IMM) })

#define BPF_MOV64_REG(DST, SRC) BPF_RAW_INSN(BPF_ALU64 | BPF_MOV | BPF_X, DST, SRC, 0, 0)
#define BPF_MOV64_IMM(DST, IMM) BPF_RAW_INSN(BPF_ALU64 | BPF_MOV | BPF_K, DST, 0, 0, IMM)
#define BPF_ALU64_REG(OP, DST, SRC) BPF_RAW_INSN(BPF_ALU64 | (OP) | BPF_X, DST, SRC, 0, 0)
#define BPF_ALU64_IMM(OP, DST, IMM) BPF_RAW_INSN(BPF_ALU64 | (OP) | BPF_K, DST, 0, 0, IMM)

#define BPF_LDX_MEM(SIZE, DST, SRC, OFF) BPF_RAW_INSN(BPF_LDX | BPF_MEM | (SIZE), DST, SRC, OFF, 0)
#define BPF_STX_MEM(SIZE, DST, SRC, OFF) BPF_RAW_INSN(BPF_STX | BPF_MEM | (SIZE), DST, SRC, OFF, 0)
#define BPF_ST_MEM(SIZE, DST, OFF, IMM) BPF_RAW_INSN(BPF_ST | BPF_MEM | (SIZE), DST, 0, OFF, IMM)
#define BPF_ATOMIC_OP(SIZE, OP, DST, SRC, OFF) BPF_RAW_INSN(BPF_STX | BPF_ATOMIC | (SIZE), DST, SRC, OFF, OP)

#define BPF_JMP_A(OFF) BPF_RAW_INSN(BPF_JMP | BPF_JA, 0, 0, OFF, 0)
#define BPF_JMP_REG(OP, DST, SRC, OFF) BPF_RAW_INSN(BPF_JMP | (OP) | BPF_X, DST, SRC, OFF, 0)
#define BPF_JMP_IMM(OP, DST, IMM, OFF) BPF_RAW_INSN(BPF_JMP | (OP) | BPF_K, DST, 0, OFF, IMM)
#define BPF_EMIT_CALL(FUNC) BPF_RAW_INSN(BPF_JMP | BPF_CALL, 0, 0, 0, FUNC)
#define BPF_EXIT_INSN() BPF_RAW_INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0)

/* Two slots each: the second one has the upper half of the number, or the offset in the map's value. */
#define BPF_LD_IMM64_RAW(DST, SRC, LOW, HIGH) \
	BPF_RAW_INSN(BPF_LD | BPF_DW | BPF_IMM, DST, SRC, 0, LOW), BPF_RAW_INSN(0, 0, 0, 0, HIGH)
#define BPF_LD_IMM64(DST, IMM) \
	BPF_LD_IMM64_RAW(DST, 0, (int32_t)(uint32_t)(uint64_t)(IMM), (int32_t)(uint32_t)((uint64_t)(IMM) >> 32))
#define BPF_LD_MAP_FD(DST, FD) BPF_LD_IMM64_RAW(DST, BPF_PSEUDO_MAP_FD, FD, 0)
#define BPF_LD_MAP_VALUE(DST, FD, OFF) BPF_LD_IMM64_RAW(DST, BPF_PSEUDO_MAP_VALUE, FD, (int32_t)(OFF))

#endif
