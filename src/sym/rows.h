/*
 * What DWARF says of the registers at one address. Private to the room.
 */
#ifndef KYMO_SYM_ROWS_H
#define KYMO_SYM_ROWS_H

#include "sym/module_state.h"
#include "sym/unwind.h"

enum sym_rule_kind {
	SYM_RULE_SAME,          /* the caller's is this frame's */
	SYM_RULE_UNDEFINED,     /* of the return address: there is no caller */
	SYM_RULE_AT,            /* in memory at CFA + value */
	SYM_RULE_IS,            /* CFA + value */
	SYM_RULE_REGISTER,      /* register number `value`, plus `extra` where it is the CFA's */
	SYM_RULE_AT_EXPRESSION, /* in memory where the expression says */
	SYM_RULE_IS_EXPRESSION, /* what it says */
};

struct sym_rule {
	enum sym_rule_kind kind;
	int64_t value;
	union {
		int64_t extra;
		struct sym_rules expression; /* a part of the image */
	};
};

/* The CFA, canonical frame address, is the caller's stack pointer before its call. */
struct sym_row {
	uint64_t vaddr; /* of the caller */
	int err;        /* 0, or as kymo_module_unwind() has it */
	bool is_signal;
	uint64_t return_register;
	struct sym_rule cfa, registers[KYMO_FRAME_REGISTERS];
};

#endif
