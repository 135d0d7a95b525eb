/* A module whose code is one function. */
#ifndef KYMO_TESTS_ARCH_ALONE_H
#define KYMO_TESTS_ARCH_ALONE_H

#include "arch/plan.h"

struct alone {
	struct kymo_span text;
	struct kymo_extent function;
	uint64_t entry;
	struct kymo_module_code code;
};

/* `size` bytes at `at`, of which `function` are a function that is entered at `entry`. `ret` must not move. */
static inline void alone_init(struct alone *ret, uint64_t at, const void *bytes, size_t size,
			      struct kymo_extent function, uint64_t entry)
{
	ret->text = (struct kymo_span){ at, bytes, size };
	ret->function = function;
	ret->entry = entry;
	ret->code = (struct kymo_module_code){
		.text = &ret->text,
		.n_text = 1,
		.functions = &ret->function,
		.n_functions = 1,
		.entries = &ret->entry,
		.n_entries = 1,
		.position_independent = true,
	};
}

#endif
