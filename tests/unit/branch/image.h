/* Code that a processor might have recorded, and the branches that decoders make of what it has written. */
#ifndef KYMO_TESTS_BRANCH_IMAGE_H
#define KYMO_TESTS_BRANCH_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "branch/branch.h"

struct branch_raw;

/* Labels of the code; image.c has it. */
extern const uint8_t image_start[], image_loop[], image_back[], image_if[], image_call[], image_syscall[],
	image_after[], image_return[], image_leaf[], image_other[], image_last[], image_handler[],
	image_end_of_handler[], image_end[];

#define AT(label) ((uint64_t)(uintptr_t)(label))
#define ELSEWHERE UINT64_C(0x123456)
#define KERNEL UINT64_C(0xffffffff81000000)

/* From one address to another. */
struct image_code {
	uint64_t start, end;
};

struct image_list {
	const struct image_code *code;
	KYMO_VEC(struct kymo_branch) branches;
	size_t n_gaps;
};

/* A callback of branch_raw; `data` is a struct image_list. */
void image_add(const struct kymo_branch *branch, bool is_gap, void *data);

/* The branches that are in these bytes, beside that code. */
struct image_list image_decode_beside(int (*decoder)(const struct branch_raw *raw), const void *bytes, size_t size,
				      const struct image_code *code);

/* The same beside the code of the labels. */
struct image_list image_decode(int (*decoder)(const struct branch_raw *raw), const void *bytes, size_t size);

/* The list has exactly these, and is freed. */
void image_check(struct image_list *list, const struct kymo_branch *expected, size_t n, size_t n_gaps);

#define CHECK(list, expected, n_gaps) image_check(&(list), expected, sizeof(expected) / sizeof((expected)[0]), n_gaps)
#define BRANCH(what, source, destination) \
	{ \
		.kind = KYMO_BRANCH_##what, .from = source, .to = destination \
	}

#endif
