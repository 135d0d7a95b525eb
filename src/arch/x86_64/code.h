/*
 * A small assembler: bytes into a buffer, labels, and the few forms that pads are made of. Errors stick (`full`, `far`)
 * and are looked at once, at the end. Private to arch/x86_64.
 */
#ifndef KYMO_ARCH_X86_64_CODE_H
#define KYMO_ARCH_X86_64_CODE_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R8, R9, R10, R11, R12, R13, R14, R15, RIP, RFLAGS };

struct code {
	uint8_t *out;
	size_t size, n;
	uint64_t address; /* runtime address of out[0] */
	int32_t lowered;  /* bytes that the stack pointer is below the pad's frame, from which slots are counted */
	bool full, far;
};

/* What is returned of code that was emitted: -ENOSPC: `out` is too small; -ERANGE: a jump does not reach. */
static inline int code_error(const struct code *c)
{
	return c->full ? -ENOSPC : c->far ? -ERANGE : 0;
}

static inline void bytes(struct code *c, const void *data, size_t n)
{
	if (n > c->size - c->n) {
		c->full = true;
		return;
	}
	memcpy(c->out + c->n, data, n);
	c->n += n;
}

#define EMIT(c, ...) \
	do { \
		static const uint8_t literal_[] = { __VA_ARGS__ }; \
		bytes(c, literal_, sizeof(literal_)); \
	} while (0)

static inline void byte(struct code *c, unsigned int value)
{
	uint8_t one = (uint8_t)value;

	bytes(c, &one, 1);
}

static inline void imm32(struct code *c, int64_t value)
{
	int32_t four = (int32_t)value;

	bytes(c, &four, 4);
}

static inline void imm64(struct code *c, uint64_t value)
{
	bytes(c, &value, 8);
}

static inline void rel32_to(struct code *c, uint64_t target)
{
	int64_t distance = (int64_t)(target - (c->address + c->n + 4));

	if (distance != (int32_t)distance)
		c->far = true;
	imm32(c, distance);
}

/* A forward branch: emitted with a hole, closed at its label. */
struct label {
	uint32_t at[72];
	unsigned int n;
};

static inline void branch(struct code *c, struct label *label, const char *opcode, size_t size)
{
	bytes(c, opcode, size);
	if (label->n == sizeof(label->at) / sizeof(label->at[0])) {
		c->full = true;
		return;
	}
	label->at[label->n++] = (uint32_t)c->n;
	imm32(c, 0);
}

#define JMP(c, l) branch(c, l, "\xe9", 1)
#define JA(c, l) branch(c, l, "\x0f\x87", 2)
#define JAE(c, l) branch(c, l, "\x0f\x83", 2)
#define JB(c, l) branch(c, l, "\x0f\x82", 2)
#define JE(c, l) branch(c, l, "\x0f\x84", 2)
#define JNE(c, l) branch(c, l, "\x0f\x85", 2)

static inline void bind(struct code *c, struct label *label)
{
	for (unsigned int i = 0; i < label->n; i++) {
		int32_t distance = (int32_t)(c->n - (label->at[i] + 4));

		if (label->at[i] + 4 <= c->size)
			memcpy(c->out + label->at[i], &distance, 4);
	}
	label->n = 0;
}

static inline void jump_back(struct code *c, size_t to)
{
	byte(c, 0xe9);
	imm32(c, (int64_t)to - (int64_t)(c->n + 4));
}

static inline void branch_back(struct code *c, const char *opcode, size_t size, size_t to)
{
	bytes(c, opcode, size);
	imm32(c, (int64_t)to - (int64_t)(c->n + 4));
}

/* The operand disp(%rsp) after an opcode, with `reg`, or with the rest of the opcode in its place. */
static inline void rsp_operand(struct code *c, unsigned int reg, int32_t disp)
{
	bool is_short;

	disp += c->lowered;
	is_short = disp == (int8_t)disp;
	byte(c, (is_short ? 0x44u : 0x84u) | (reg & 7) << 3);
	byte(c, 0x24);
	if (is_short)
		byte(c, (uint8_t)disp);
	else
		imm32(c, disp);
}

/* `opcode` with `reg` and disp(%rsp), 64 bits: 0x89 stores, 0x8b loads, 0x8d is lea */
static inline void rsp_slot(struct code *c, unsigned int opcode, unsigned int reg, int32_t disp)
{
	byte(c, 0x48 | (reg >> 3) << 2);
	byte(c, opcode);
	rsp_operand(c, reg, disp);
}

/* mov %reg (of `size` bytes), disp8(%r10,%r11) */
static inline void store(struct code *c, unsigned int reg, unsigned int size, unsigned int disp)
{
	if (size == 2)
		byte(c, 0x66);
	byte(c, 0x43 | (size == 8) << 3 | (reg >> 3) << 2);
	byte(c, size == 1 ? 0x88 : 0x89);
	byte(c, 0x44 | (reg & 7) << 3);
	byte(c, 0x1a);
	byte(c, disp);
}

static inline void movabs(struct code *c, unsigned int reg, uint64_t value)
{
	byte(c, 0x48 | reg >> 3);
	byte(c, 0xb8 | (reg & 7));
	imm64(c, value);
}

/* `opcode` with `reg` and disp32(%rip), which is to mean `target`; `immediate` bytes follow. */
static inline void rip_to(struct code *c, const char *opcode, size_t size, uint64_t target, unsigned int immediate)
{
	bytes(c, opcode, size);
	rel32_to(c, target - immediate);
}

/* cmpb $value,target(%rip) */
static inline void compare_byte(struct code *c, uint64_t target, uint8_t value)
{
	rip_to(c, "\x80\x3d", 2, target, 1);
	byte(c, value);
}

#endif
