/*
 * Reference: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, appendix A: opcode maps. What is
 * not in the tables is decoded: what takes another prefix than 66 and REX, vectors of AVX, what is invalid in some
 * form.
 */
#include "arch/x86_64/plain.h"

#include <stdbool.h>

/* What follows an opcode. */
enum form {
	DECODE,     /* not plain */
	ALONE,      /* nothing */
	BYTE,       /* an immediate of 8 bits */
	WORD,       /* one of 16 or 32 bits, by the operand's size */
	WIDE,       /* the same, and of 64 bits with REX.W */
	MODRM,      /* an operand */
	MEMORY,     /* an operand, no register */
	MODRM_BYTE, /* an operand and an immediate */
	MODRM_WORD,
	FIRST_BYTE, /* the same, where the other three bits of the ModRM byte are 0 */
	FIRST_WORD,
	TEST_BYTE, /* an immediate with 0 alone; 1 is not documented */
	TEST_WORD,
	STEP,      /* inc, dec */
	STEP_PUSH, /* inc, dec, push; between them are calls and jumps */
	BIT_BYTE,  /* bt, bts, btr, btc */
};

#define ROW(form) form, form, form, form, form, form, form, form
#define ALU MODRM, MODRM, MODRM, MODRM, BYTE, WORD, DECODE, DECODE

static const uint8_t one_byte[256] = {
	ALU,         ALU,                                                                      /* add, or */
	ALU,         ALU,                                                                      /* adc, sbb */
	ALU,         ALU,                                                                      /* and, sub */
	ALU,         ALU,                                                                      /* xor, cmp */
	ROW(DECODE), ROW(DECODE),                                                              /* REX */
	ROW(ALONE),  ROW(ALONE),                                                               /* push, pop */
	DECODE,      DECODE,      DECODE,      MODRM,      DECODE, DECODE, DECODE,     DECODE, /* movsxd */
	WORD,        MODRM_WORD,  BYTE,        MODRM_BYTE, DECODE, DECODE, DECODE,     DECODE, /* push, imul */
	ROW(DECODE), ROW(DECODE),                                                              /* jcc */
	MODRM_BYTE,  MODRM_WORD,  DECODE,      MODRM_BYTE, MODRM,  MODRM,  MODRM,      MODRM, /* add … cmp, test, xchg
											       */
	MODRM,       MODRM,       MODRM,       MODRM,      DECODE, MEMORY, DECODE,     DECODE, /* mov, lea */
	ROW(ALONE),                                                                            /* nop, xchg */
	ALONE,       ALONE,       DECODE,      DECODE,     DECODE, DECODE, DECODE,     DECODE, /* cdqe, cqo */
	ROW(DECODE), BYTE,        WORD,        DECODE,     DECODE, DECODE, DECODE,     DECODE,     DECODE, /* test */
	ROW(BYTE),   ROW(WIDE),                                                                            /* mov */
	MODRM_BYTE,  MODRM_BYTE,  DECODE,      DECODE,     DECODE, DECODE, FIRST_BYTE, FIRST_WORD, /* shifts, mov */
	DECODE,      ALONE,       DECODE,      DECODE,     DECODE, DECODE, DECODE,     DECODE,     /* leave */
	MODRM,       MODRM,       MODRM,       MODRM,      DECODE, DECODE, DECODE,     DECODE,     /* shifts */
	ROW(DECODE), ROW(DECODE), ROW(DECODE), DECODE,     DECODE, DECODE, DECODE,     DECODE,     DECODE,
	TEST_BYTE,   TEST_WORD, /* test, not, neg, mul, div */
	DECODE,      DECODE,      DECODE,      DECODE,     DECODE, DECODE, STEP,       STEP_PUSH,
};

/* After 0f. */
static const uint8_t two_bytes[256] = {
	[0x10] = MODRM,      [0x11] = MODRM, /* movups, movupd */
	[0x1f] = MODRM,                      /* nop */
	[0x28] = MODRM,      [0x29] = MODRM, /* movaps, movapd */
	[0x40] = ROW(MODRM), ROW(MODRM),     /* cmovcc */
	[0x54] = MODRM,      [0x57] = MODRM, /* andps, xorps */
	[0x6e] = MODRM,      MODRM,          /* movd, movq, movdqa */
	[0x7e] = MODRM,      MODRM,          [0x90] = ROW(MODRM),
	ROW(MODRM),                                 /* setcc */
	[0xa3] = MODRM,      MODRM_BYTE,     MODRM, /* bt, shld */
	[0xab] = MODRM,      MODRM_BYTE,     MODRM, /* bts, shrd */
	[0xaf] = MODRM,                             /* imul */
	[0xb3] = MODRM,                             /* btr */
	[0xb6] = MODRM,      MODRM,                 /* movzx */
	[0xba] = BIT_BYTE,   MODRM,                 /* btc */
	[0xbe] = MODRM,      MODRM,                 /* movsx */
	[0xef] = MODRM,                             /* pxor */
};

/* Bytes of an operand, with its ModRM byte; 0 where it is relative to RIP, or not all there. */
static size_t operand_size(const uint8_t *bytes, size_t size)
{
	static const uint8_t displacement[] = { 0, 1, 4, 0 };
	unsigned int mod, rm;
	size_t n = 1;

	if (!size)
		return 0;
	mod = bytes[0] >> 6;
	rm = bytes[0] & 7;
	if (mod == 3)
		return n;
	if (mod == 0 && rm == 5)
		return 0;
	if (rm == 4) {
		if (size < 2)
			return 0;
		n++;
		if (mod == 0 && (bytes[1] & 7) == 5)
			return n + 4;
	}
	return n + displacement[mod];
}

/* Bytes of the immediate after an operand, or -1 where the instruction is not plain. */
static int immediate_size(enum form form, uint8_t modrm, int word)
{
	unsigned int other = modrm >> 3 & 7;

	switch (form) {
	case MODRM:
		return 0;
	case MEMORY:
		return modrm >> 6 == 3 ? -1 : 0;
	case MODRM_BYTE:
		return 1;
	case MODRM_WORD:
		return word;
	case FIRST_BYTE:
		return other ? -1 : 1;
	case FIRST_WORD:
		return other ? -1 : word;
	case TEST_BYTE:
		return other == 1 ? -1 : other ? 0 : 1;
	case TEST_WORD:
		return other == 1 ? -1 : other ? 0 : word;
	case STEP:
		return other < 2 ? 0 : -1;
	case STEP_PUSH:
		return other < 2 || other == 6 ? 0 : -1;
	case BIT_BYTE:
		return other >= 4 ? 1 : -1;
	default:
		return -1;
	}
}

size_t x86_plain_length(const uint8_t *bytes, size_t size)
{
	bool is_short = size && bytes[0] == 0x66, is_wide = false;
	size_t at = is_short, operand;
	enum form form;
	int word, immediate;

	if (at < size && (bytes[at] & 0xf0) == 0x40)
		is_wide = bytes[at++] & 8;
	if (at < size && bytes[at] == 0x0f) {
		if (++at == size)
			return 0;
		form = two_bytes[bytes[at++]];
	} else if (at < size) {
		form = one_byte[bytes[at++]];
	} else {
		return 0;
	}
	word = is_short && !is_wide ? 2 : 4;
	switch (form) {
	case DECODE:
		return 0;
	case ALONE:
		break;
	case BYTE:
		at += 1;
		break;
	case WORD:
		at += (size_t)word;
		break;
	case WIDE:
		at += is_wide ? 8 : (size_t)word;
		break;
	default:
		operand = operand_size(bytes + at, size - at);
		immediate = operand ? immediate_size(form, bytes[at], word) : -1;
		if (immediate < 0)
			return 0;
		at += operand + (size_t)immediate;
	}
	return at <= size ? at : 0;
}
