/* Stacks by the return addresses of a record: the location's caller is in one place of three, and never twice. */
#include "stack/stack.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"

#define SP UINT64_C(0x7ff000001000)
#define BP (SP + 256)

/* With a frame pointer; the same without a word on it; one that keeps two registers and has none; the outermost. */
__asm__(".text\n"
	".type framed, @function\n"
	"framed: .cfi_startproc\n push %rbp\n .cfi_def_cfa_offset 16\n .cfi_offset rbp, -16\n mov %rsp, %rbp\n"
	" .cfi_def_cfa_register rbp\n nop\n pop %rbp\n .cfi_def_cfa rsp, 8\n ret\n .cfi_endproc\n"
	".size framed, .-framed\n"
	".type bare, @function\n"
	"bare: push %rbp\n mov %rsp, %rbp\n nop\n pop %rbp\n ret\n"
	".size bare, .-bare\n"
	".type keeps, @function\n"
	"keeps: .cfi_startproc\n push %rbx\n .cfi_def_cfa_offset 16\n push %r12\n .cfi_def_cfa_offset 24\n nop\n"
	" pop %r12\n .cfi_def_cfa_offset 16\n pop %rbx\n .cfi_def_cfa_offset 8\n ret\n .cfi_endproc\n"
	".size keeps, .-keeps\n"
	".type outermost, @function\n"
	"outermost: .cfi_startproc\n .cfi_undefined rip\n nop\n ret\n .cfi_endproc\n"
	".size outermost, .-outermost\n"
	".type one, @function\n one: nop\n nop\n nop\n ret\n .size one, .-one\n"
	".type two, @function\n two: nop\n nop\n nop\n ret\n .size two, .-two\n"
	".type three, @function\n three: nop\n nop\n nop\n ret\n .size three, .-three\n");

extern const char framed[], bare[], keeps[], outermost[], one[], two[], three[];

static struct kymo_stacks *stacks;

static bool read_nothing(void *context, uint64_t address, void *data, size_t size)
{
	return false;
}

/* The functions of the frames, with blanks between. */
static const char *taken(const char *at, unsigned int offset, uint64_t bp, const struct kymo_stack_chain *chain)
{
	static char text[8 * KYMO_STACK_MAX];
	const struct kymo_stack_thread thread = {
		.tid = getpid(),
		.pid = getpid(),
		.registers = { .rip = (uint64_t)(uintptr_t)at + offset, .rsp = SP, .rbp = bp, .cs = 0x33 },
		.is_copy = true,
		.chain = chain,
		.read = read_nothing,
	};
	struct kymo_stack_frame frames[KYMO_STACK_MAX];
	const size_t n = kymo_stacks_take(stacks, &thread, frames);

	*text = 0;
	for (size_t i = 0; i < n; i++) {
		const char *name = frames[i].is_lost ? "lost" : frames[i].function ? frames[i].function : "?";

		assert_true(strlen(text) + strlen(name) + 2 < sizeof(text));
		strcat(strcat(text, i ? " " : ""), name);
		assert_int_equal(frames[i].is_return, i != 0);
	}
	return text;
}

#define RETURN_TO(function) ((uint64_t)(uintptr_t)(function) + 2)

static const char *taken_of(const char *at, unsigned int offset, uint64_t bp, const char *first, const char *second)
{
	const uint64_t returns[] = { RETURN_TO(two), RETURN_TO(three) };
	const struct kymo_stack_chain chain = { { first ? RETURN_TO(first) : 0, second ? RETURN_TO(second) : 0 },
						returns,
						kymo_countof(returns) };

	return taken(at, offset, bp, &chain);
}

static void test_a_function_that_is_entered_has_its_caller_at_the_stack_pointer(void **state)
{
	assert_string_equal(taken_of(framed, 0, BP, one, NULL), "framed one two three");
	assert_string_equal(taken_of(framed, 6, BP, one, NULL), "framed one two three"); /* and one that is left */
	assert_string_equal(taken_of(bare, 0, BP, one, NULL), "bare one two three");
	assert_string_equal(taken_of(keeps, 0, BP, one, NULL), "keeps one two three");
}

static void test_a_function_that_has_pushed_a_word_has_its_caller_behind_it(void **state)
{
	assert_string_equal(taken_of(framed, 1, BP, three, one), "framed one two three");
	assert_string_equal(taken_of(keeps, 1, BP, three, one), "keeps one two three");
}

/* What is at the stack pointer is the frame: the caller is in both. */
static void test_a_function_with_a_frame_pointer_has_its_caller_in_the_chain(void **state)
{
	assert_string_equal(taken_of(framed, 4, SP, three, two), "framed two three");
	assert_string_equal(taken_of(framed, 4, BP, one, one), "framed two three");
	assert_string_equal(taken_of(bare, 4, BP, one, one), "bare two three");
}

/* As the documentation says: its caller is nowhere. */
static void test_a_function_that_has_pushed_more_lacks_its_caller(void **state)
{
	assert_string_equal(taken_of(keeps, 3, BP, one, one), "keeps two three");
	assert_string_equal(taken_of(bare, 1, BP, three, one), "bare two three");
}

static void test_words_that_could_not_be_read_are_not_taken(void **state)
{
	assert_string_equal(taken_of(framed, 0, BP, NULL, NULL), "framed two three");
	assert_string_equal(taken_of(framed, 1, BP, NULL, NULL), "framed two three");
	assert_string_equal(taken_of(bare, 0, BP, NULL, one), "bare two three");
}

static void test_the_outermost_function_has_no_caller(void **state)
{
	assert_string_equal(taken_of(outermost, 0, BP, one, one), "outermost");
}

/* What is no code ends the stack, wherever it is. */
static void test_chains_of_anything_end(void **state)
{
	uint64_t returns[KYMO_STACK_MAX];
	struct kymo_stack_chain chain = { { 42, UINT64_MAX }, returns, 3 };

	returns[0] = RETURN_TO(one);
	returns[1] = 42;
	returns[2] = RETURN_TO(two);
	assert_string_equal(taken(framed, 4, BP, &chain), "framed one");
	assert_string_equal(taken(framed, 0, BP, &chain), "framed");
	assert_string_equal(taken(bare, 0, BP, &chain), "bare one");
	returns[0] = 0;
	assert_string_equal(taken(framed, 4, BP, &chain), "framed");
	returns[0] = UINT64_MAX;
	assert_string_equal(taken(framed, 4, BP, &chain), "framed");
	chain.n = 0;
	assert_string_equal(taken(framed, 4, BP, &chain), "framed");
	assert_string_equal(taken((const char *)42, 0, BP, &chain), "lost");
	for (chain.n = 0; chain.n < KYMO_STACK_MAX - 1; chain.n++)
		returns[chain.n] = RETURN_TO(one);
	assert_int_equal(strlen(taken(framed, 4, BP, &chain)), strlen("framed") + chain.n * strlen(" one"));
}

static int create(void **state)
{
	stacks = kymo_stacks_create();
	return stacks ? 0 : -1;
}

static int destroy(void **state)
{
	kymo_stacks_destroy(stacks);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_function_that_is_entered_has_its_caller_at_the_stack_pointer),
		cmocka_unit_test(test_a_function_that_has_pushed_a_word_has_its_caller_behind_it),
		cmocka_unit_test(test_a_function_with_a_frame_pointer_has_its_caller_in_the_chain),
		cmocka_unit_test(test_a_function_that_has_pushed_more_lacks_its_caller),
		cmocka_unit_test(test_words_that_could_not_be_read_are_not_taken),
		cmocka_unit_test(test_the_outermost_function_has_no_caller),
		cmocka_unit_test(test_chains_of_anything_end),
	};

	return cmocka_run_group_tests(tests, create, destroy);
}
