/* Frames of stacks: each once, and without those that have no name any more. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdio.h>

#include "aggr/frame_tree.h"

static uint32_t add(struct kymo_frame_tree *tree, uint32_t caller, const char *function, uint64_t offset)
{
	return kymo_frame_tree_number(tree, &(struct kymo_frame_node){
						    .caller = caller,
						    .function = kymo_strings_number(&tree->texts, function),
						    .offset = offset,
					    });
}

static const char *function_of(const struct kymo_frame_tree *tree, uint32_t number)
{
	return kymo_strings_text(&tree->texts, kymo_frame_at(tree, number)->function);
}

static void test_each_frame_is_there_once(void **state)
{
	struct kymo_frame_tree tree = { 0 };
	const uint32_t outer = add(&tree, 0, "main", 1), inner = add(&tree, outer, "f", 2);

	assert_int_equal(add(&tree, 0, "main", 1), outer);
	assert_int_equal(add(&tree, outer, "f", 2), inner);
	assert_int_not_equal(add(&tree, outer, "f", 3), inner);
	assert_int_not_equal(add(&tree, 0, "f", 2), inner);
	assert_int_equal(kymo_frame_at(&tree, outer)->depth, 1);
	assert_int_equal(kymo_frame_at(&tree, inner)->depth, 2);
	assert_null(kymo_frame_at(&tree, 0));
	assert_null(kymo_frame_at(&tree, 5));
	kymo_frame_tree_deinit(&tree);
}

static void test_frames_without_a_name_go_and_callers_stay(void **state)
{
	struct kymo_frame_tree tree = { 0 };
	uint32_t numbers[5] = { 0 };
	const uint32_t gone = add(&tree, 0, "gone", 1), outer = add(&tree, 0, "main", 1),
		       leaf = add(&tree, gone, "leaf", 1), f = add(&tree, outer, "f", 2), g = add(&tree, f, "g", 3);

	numbers[g - 1] = 1;
	assert_true(kymo_frame_tree_prune(&tree, numbers));
	assert_int_equal(tree.nodes.n, 3);
	assert_int_equal(tree.texts.items.n, 3);
	assert_int_equal(numbers[gone - 1], 0);
	assert_int_equal(numbers[leaf - 1], 0);
	assert_string_equal(function_of(&tree, numbers[g - 1]), "g");
	assert_int_equal(kymo_frame_at(&tree, numbers[g - 1])->caller, numbers[f - 1]);
	assert_int_equal(kymo_frame_at(&tree, numbers[f - 1])->caller, numbers[outer - 1]);
	assert_int_equal(kymo_frame_at(&tree, numbers[g - 1])->depth, 3);
	assert_int_equal(add(&tree, numbers[outer - 1], "f", 2), numbers[f - 1]);
	assert_int_equal(add(&tree, 0, "gone", 1), 4);
	kymo_frame_tree_deinit(&tree);
}

static void test_all_frames_may_go(void **state)
{
	struct kymo_frame_tree tree = { 0 };
	uint32_t numbers[1] = { 0 };

	add(&tree, 0, "main", 1);
	assert_true(kymo_frame_tree_prune(&tree, numbers));
	assert_int_equal(tree.nodes.n, 0);
	assert_int_equal(add(&tree, 0, "main", 1), 1);
	kymo_frame_tree_deinit(&tree);
}

/* A frame whose name has no room gets no number: it would be shown without one. */
static void test_a_name_without_room_is_told(void **state)
{
	struct kymo_frame_tree tree = { 0 };
	uint32_t text;
	char name[16];

	for (unsigned int i = 0; i < KYMO_STRINGS_MAX; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		assert_true(kymo_frame_tree_text(&tree, name, &text));
	}
	assert_true(kymo_frame_tree_text(&tree, "f7", &text));
	assert_int_equal(text, 8);
	assert_true(kymo_frame_tree_text(&tree, NULL, &text));
	assert_int_equal(text, 0);
	assert_false(kymo_frame_tree_text(&tree, "another", &text));
	kymo_frame_tree_deinit(&tree);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_frame_is_there_once),
		cmocka_unit_test(test_frames_without_a_name_go_and_callers_stay),
		cmocka_unit_test(test_all_frames_may_go),
		cmocka_unit_test(test_a_name_without_room_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
