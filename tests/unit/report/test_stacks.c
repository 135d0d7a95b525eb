/* Frames of hostile traces, folding, and the page of a flame graph. */
#include "report/flame.h"
#include "report/folds.h"
#include "report/frames.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct kymo_ctf_field fields[] = {
	{ (char[]){ "id" }, KYMO_TYPE_U32, NULL, 0, NULL, false },
	{ (char[]){ "caller" }, KYMO_TYPE_U32, NULL, 0, NULL, false },
	{ (char[]){ "what" }, KYMO_TYPE_U8, NULL, 0, NULL, false },
	{ (char[]){ "file" }, KYMO_TYPE_STRING, NULL, 0, NULL, false },
	{ (char[]){ "function" }, KYMO_TYPE_STRING, NULL, 0, NULL, false },
	{ (char[]){ "offset" }, KYMO_TYPE_U64, NULL, 0, NULL, false },
	{ (char[]){ "address" }, KYMO_TYPE_X64, NULL, 0, NULL, false },
	{ (char[]){ "place" }, KYMO_TYPE_U32, NULL, 0, NULL, false },
};

static struct kymo_ctf_field source_fields[] = {
	{ (char[]){ "place" }, KYMO_TYPE_U32, NULL, 0, NULL, false },
	{ (char[]){ "inlined" }, KYMO_TYPE_U8, NULL, 0, NULL, false },
	{ (char[]){ "function" }, KYMO_TYPE_STRING, NULL, 0, NULL, false },
	{ (char[]){ "file" }, KYMO_TYPE_STRING, NULL, 0, NULL, false },
	{ (char[]){ "line" }, KYMO_TYPE_U32, NULL, 0, NULL, false },
};

/* As older traces have them. */
static void take(struct kymo_frame_tree *rows, uint64_t id, uint64_t caller, uint64_t what, const char *file,
		 const char *function)
{
	const struct kymo_ctf_event event = { .kind = KYMO_CTF_FRAME,
					      .fields = fields,
					      .n_fields = KYMO_CTF_FRAME_PLACE };
	const struct kymo_ctf_record record = {
		.event = &event, .values = { id, caller, what, (uintptr_t)file, (uintptr_t)function, 512 }
	};

	assert_true(kymo_frame_rows_take(rows, &record));
}

static void take_at(struct kymo_frame_tree *rows, uint64_t id, uint64_t caller, const char *function, uint64_t place)
{
	const struct kymo_ctf_event event = { .kind = KYMO_CTF_FRAME,
					      .fields = fields,
					      .n_fields = KYMO_CTF_FRAME_FIELDS };
	const struct kymo_ctf_record record = {
		.event = &event, .values = { id, caller, 0, (uintptr_t) "/srv/app", (uintptr_t)function, 0, 64, place }
	};

	assert_true(kymo_frame_rows_take(rows, &record));
}

static void take_source(struct kymo_frame_tree *rows, uint64_t place, bool is_inlined, const char *function,
			const char *file, uint64_t line)
{
	const struct kymo_ctf_event event = { .kind = KYMO_CTF_SOURCE,
					      .fields = source_fields,
					      .n_fields = KYMO_CTF_SOURCE_FIELDS };
	const struct kymo_ctf_record record = {
		.event = &event, .values = { place, is_inlined, (uintptr_t)function, (uintptr_t)file, line }
	};

	assert_true(kymo_frame_rows_take(rows, &record));
}

static void check_name(const struct kymo_frame_tree *rows, uint64_t number, const char *expected)
{
	char *name = kymo_frame_name(rows, kymo_frame_at(rows, number), true);

	assert_string_equal(name, expected);
	free(name);
}

static void frames_have_names(void **state)
{
	struct kymo_frame_tree rows = { 0 };

	take(&rows, 1, 0, 0, "/usr/bin/app", "main");
	take(&rows, 2, 1, 0, "/usr/bin/app", "_ZN3box3putIiEEvPT_");
	take(&rows, 3, 1, 0, "/usr/lib/liba.so.1", "");
	take(&rows, 4, 1, 0, "[vdso]", "");
	take(&rows, 5, 1, 0, "", "");
	take(&rows, 6, 0, 1, "", "");
	take(&rows, 7, 0, 2, "", "");
	take(&rows, 8, 1, 0, "a", "e\x1b[2J\xff");
	check_name(&rows, 1, "main");
	check_name(&rows, 2, "box::put<int>(int*)");
	check_name(&rows, 3, "[liba.so.1]");
	check_name(&rows, 4, "[vdso]");
	check_name(&rows, 5, "[no file]");
	check_name(&rows, 6, "[unknown]");
	check_name(&rows, 7, "[stack cut at 512 bytes]");
	check_name(&rows, 8, "e\\x1b[2J\\xff");
	kymo_frame_tree_deinit(&rows);
}

/* Loops, gaps and depths without end are no frames, or frames without a caller. */
static void hostile_frames_end(void **state)
{
	struct kymo_frame_tree rows = { 0 };

	take(&rows, 7, 0, 0, "", "gap");
	take(&rows, UINT32_MAX, 0, 0, "", "gap");
	take(&rows, 0, 0, 0, "", "none");
	assert_int_equal(rows.nodes.n, 0);
	take(&rows, 1, 1, 0, "", "its own caller");
	take(&rows, 2, 9, 0, "", "called by one to come");
	for (uint32_t i = 3; i < 3000; i++)
		take(&rows, i, i - 1, 77, "", "deep");
	assert_int_equal(rows.nodes.n, 2999);
	for (uint32_t i = 1; i <= rows.nodes.n; i++) {
		const struct kymo_frame_node *row = kymo_frame_at(&rows, i);

		assert_true(row->caller < i && row->depth <= FRAMES_DEPTH_MAX);
	}
	assert_null(kymo_frame_at(&rows, 0));
	assert_null(kymo_frame_at(&rows, 3000));
	kymo_frame_tree_deinit(&rows);
}

static char *stack_of(const struct kymo_frame_tree *rows, uint64_t number)
{
	struct page page = { .unicode = true };
	char *text = NULL;
	size_t size;

	page.out = open_memstream(&text, &size);
	assert_non_null(page.out);
	kymo_stack_write(&page, rows, number, 2);
	fclose(page.out);
	return text;
}

static void inlined_functions_are_frames(void **state)
{
	struct kymo_frame_tree rows = { 0 };
	char *text;

	take_at(&rows, 1, 0, "main", 1);
	take_at(&rows, 2, 1, "work", 3);
	take_at(&rows, 3, 2, "leaf", 0);
	take_source(&rows, 1, false, "main", "/src/app.c", 7);
	take_source(&rows, 3, true, "_ZN3box3putIiEEvPT_", "/src/box.h", 12);
	take_source(&rows, 3, true, "", "", 0);
	take_source(&rows, 3, false, "work", "\x1b[2J.c", 9);
	text = stack_of(&rows, 3);
	assert_string_equal(text, "  leaf (/srv/app)\n"
				  "  box::put<int>(int*) (inlined) (/srv/app) at box.h:12\n"
				  "  [no name] (inlined) (/srv/app)\n"
				  "  work (/srv/app) at \\x1b[2J.c:9\n"
				  "  main (/srv/app) at app.c:7\n");
	free(text);
	kymo_frame_tree_deinit(&rows);
}

/* Sources out of order, of no place, without end, and after the frame's own function. */
static void hostile_sources_end(void **state)
{
	struct kymo_frame_tree rows = { 0 };
	uint32_t n;

	take_at(&rows, 1, 0, "main", 2);
	take_at(&rows, 2, 1, "far", UINT32_MAX);
	take_source(&rows, 0, true, "none", "", 0);
	take_source(&rows, UINT32_MAX, true, "far", "", 0);
	assert_int_equal(rows.places.n, 0);
	for (int i = 0; i < 1000; i++)
		take_source(&rows, 2, true, "deep", "a.c", 1);
	take_source(&rows, 1, true, "late", "", 0);
	assert_non_null(kymo_frame_sources(&rows, kymo_frame_at(&rows, 1), &n));
	assert_int_equal(n, 64);
	assert_null(kymo_frame_sources(&rows, kymo_frame_at(&rows, 2), &n));
	take_source(&rows, 3, false, "own", "", 0);
	take_source(&rows, 3, true, "after", "", 0);
	assert_int_equal(rows.places.items[2].n, 1);
	kymo_frame_tree_deinit(&rows);
}

static char *flame_of(const struct folds *folds, const char *title)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	assert_null(kymo_flame_write(folds, title, "Note.", out));
	fclose(out);
	return text;
}

static void names_are_escaped_in_pages(void **state)
{
	struct folds folds;
	uint32_t main_at, odd;
	char *page;

	assert_true(kymo_folds_init(&folds));
	main_at = kymo_folds_find(&folds, 0, "main");
	odd = kymo_folds_find(&folds, main_at, "</text><script>\"a\" & 'b'");
	assert_int_equal(kymo_folds_find(&folds, main_at, "</text><script>\"a\" & 'b'"), odd);
	folds.items.items[main_at].self = 1;
	folds.items.items[odd].self = 3;
	kymo_folds_sum(&folds);
	assert_int_equal(folds.items.items[0].total, 4);
	page = flame_of(&folds, "<b>&\"'");
	assert_non_null(strstr(page, "<h1>&lt;b&gt;&amp;&quot;&#39;</h1>"));
	assert_non_null(strstr(page, "<svg class=\"box\" x=\"0.0000%\" y=\"0\" width=\"75.0000%\" height=\"18\" "
				     "data-x=\"0.000000000\" data-w=\"0.750000000\" data-d=\"2\" "
				     "data-n=\"&lt;/text&gt;&lt;script&gt;&quot;a&quot; &amp; &#39;b&#39;\">"
				     "<title>&lt;/text&gt;&lt;script&gt;&quot;a&quot; &amp; &#39;b&#39; (3 records, "
				     "75.00%)</title>"));
	assert_null(strstr(page, "<b>"));
	assert_null(strstr(page, "</text><script>\""));
	free(page);
	kymo_folds_deinit(&folds);
}

static void a_page_without_records_is_whole(void **state)
{
	struct folds folds;
	char *page;

	assert_true(kymo_folds_init(&folds));
	kymo_folds_sum(&folds);
	page = flame_of(&folds, "nothing");
	assert_null(strstr(page, "nan"));
	assert_non_null(strstr(page, "</html>"));
	free(page);
	kymo_folds_deinit(&folds);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_have_names),
		cmocka_unit_test(hostile_frames_end),
		cmocka_unit_test(inlined_functions_are_frames),
		cmocka_unit_test(hostile_sources_end),
		cmocka_unit_test(names_are_escaped_in_pages),
		cmocka_unit_test(a_page_without_records_is_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
