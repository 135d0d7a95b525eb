#include "image.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "branch/raw.h"

__asm__(".text\n"
	".globl image_start, image_loop, image_back, image_if, image_call, image_syscall, image_after, image_return\n"
	".globl image_leaf, image_other, image_last, image_handler, image_end_of_handler, image_end\n"
	"image_start:	mov $3,%ecx\n"
	"image_loop:	call image_leaf\n"
	"image_back:	dec %ecx\n"
	"image_if:	jnz image_loop\n"
	"image_call:	call *%rax\n"
	"image_syscall:	syscall\n"
	"image_after:	jmp image_return\n"
	"		nop\n"
	"image_return:	ret\n"
	"image_leaf:	ret\n"
	"image_other:	jmp *%rdx\n"
	"image_last:	ret\n"
	"image_handler:	nop\n"
	"image_end_of_handler: ret\n"
	"image_end:\n");
static size_t read_code(uint64_t address, uint8_t *bytes, size_t size, void *data)
{
	const struct image_code *code = ((struct image_list *)data)->code;

	if (address < code->start || address >= code->end)
		return 0;
	if (size > code->end - address)
		size = code->end - address;
	memcpy(bytes, (const void *)(uintptr_t)address, size);
	return size;
}

void image_add(const struct kymo_branch *branch, bool is_gap, void *data)
{
	struct image_list *list = data;

	assert_true(!is_gap || branch->kind == KYMO_BRANCH_ENTER);
	assert_true(kymo_vec_push(&list->branches, *branch));
	list->n_gaps += is_gap;
}

struct image_list image_decode_beside(int (*decoder)(const struct branch_raw *raw), const void *bytes, size_t size,
				      const struct image_code *code)
{
	struct image_list list = { .code = code };
	/* So that a sanitizer sees what is read beyond it. */
	uint8_t *copy = malloc(size ? size : 1);
	const struct branch_raw raw = {
		.bytes = copy, .size = size, .read = read_code, .is_taken = image_add, .data = &list
	};

	assert_non_null(copy);
	memcpy(copy, bytes, size);
	assert_int_equal(decoder(&raw), 0);
	free(copy);
	return list;
}

struct image_list image_decode(int (*decoder)(const struct branch_raw *raw), const void *bytes, size_t size)
{
	const struct image_code code = { AT(image_start), AT(image_end) };

	return image_decode_beside(decoder, bytes, size, &code);
}

void image_check(struct image_list *list, const struct kymo_branch *expected, size_t n, size_t n_gaps)
{
	for (size_t i = 0; i < n && i < list->branches.n; i++) {
		const struct kymo_branch *found = &list->branches.items[i];

		if (found->from == expected[i].from && found->to == expected[i].to && found->kind == expected[i].kind)
			continue;
		printf("branch %zu: kind %d, %#lx to %#lx instead of kind %d, %#lx to %#lx; the image is at %#lx\n", i,
		       found->kind, found->from, found->to, expected[i].kind, expected[i].from, expected[i].to,
		       AT(image_start));
		fail();
	}
	assert_int_equal(list->branches.n, n);
	assert_int_equal(list->n_gaps, n_gaps);
	kymo_vec_deinit(&list->branches);
}
