/* Lists of the machine: where they end early. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "gdb/osdata.h"
#include "gdb/state.h"
#include "gdb/xfer.h"

enum { DESCRIPTORS = 14000, LIST_MAX = 16 << 20, ITEM_MAX = 64 << 10 };

static const char *const types[] = { "cpus", "files", "processes", "procgroups", "threads", "types", "" };

static struct gdb_words words(const char *text)
{
	return (struct gdb_words){ text, text + strlen(text) };
}

static bool is_called_off_after(const void *data)
{
	int *left = (int *)data;

	return !(*left)--;
}

static size_t count(const struct gdb_text *document, const char *what)
{
	size_t n = 0;

	for (const char *at = document->items; at && *at; n += at != NULL)
		if ((at = strstr(at, what)))
			at += strlen(what);
	return n;
}

static bool list(const char *type, size_t limit, int asks, struct gdb_text *document)
{
	const struct gdb_osdata_terms terms = { limit, is_called_off_after, &asks };
	const struct gdb_words name = words(type);
	bool is_whole;

	gdb_text_clear(document);
	is_whole = gdb_list_osdata(&name, &terms, document);
	gdb_text_bytes(document, "", 1);
	assert_false(document->has_failed);
	return is_whole;
}

static void a_list_that_is_called_off_ends(void **state)
{
	struct gdb_text document = { 0 };

	for (size_t i = 0; i < kymo_countof(types); i++) {
		assert_false(list(types[i], LIST_MAX, 0, &document));
		assert_int_equal(count(&document, "<item>"), 0);
		if (strcmp(types[i], "cpus") != 0) /* there may be one */
			assert_false(list(types[i], LIST_MAX, 2, &document));
		assert_in_range(count(&document, "<item>"), 0, 2);
		assert_true(list(types[i], LIST_MAX, -1, &document));
		assert_true(count(&document, "<item>") > 0);
	}
	gdb_text_deinit(&document);
}

static void a_list_that_is_full_says_so_in_its_last_item(void **state)
{
	struct gdb_text document = { 0 };

	for (size_t i = 0; i < kymo_countof(types); i++) {
		const char *last;

		assert_true(list(types[i], 1, -1, &document));
		assert_int_equal(count(&document, "<item>"), 1);
		assert_int_equal(count(&document, "<column name="), count(&document, ">...</column>"));
		assert_non_null(last = strstr(document.items, "</item></osdata>\n"));
		assert_int_equal(strlen(last), strlen("</item></osdata>\n"));
	}
	gdb_text_deinit(&document);
}

/* As a packet asks for it. */
static void ask(struct kymo_gdb *gdb, const char *packet, struct gdb_text *reply)
{
	struct gdb_words at = words(packet);

	gdb_text_clear(reply);
	gdb_transfer_osdata(gdb, &at, reply);
	gdb_text_bytes(reply, "", 1);
}

static void a_stub_ends_a_list_with_its_client(void **state)
{
	struct kymo_gdb gdb = { .ends_waits = -1 };
	struct gdb_text reply = { 0 };
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	gdb.client = ends[0];
	ask(&gdb, "read:processes:0,100", &reply);
	assert_memory_equal(reply.items, "m<osdata ", 9);
	close(ends[1]);
	ask(&gdb, "read:processes:0,100", &reply);
	assert_string_equal(reply.items, "E01");
	close(ends[0]);
	gdb_text_deinit(&reply);
	gdb_text_deinit(&gdb.document);
}

static void a_stub_s_list_has_a_limit(void **state)
{
	struct kymo_gdb gdb = { .client = -1, .ends_waits = -1 };
	struct gdb_text reply = { 0 };
	struct rlimit limit;
	char name[250];
	int fd;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	if (limit.rlim_max < DESCRIPTORS + 100) {
		print_message("it may not have %d descriptors\n", DESCRIPTORS);
		skip();
	}
	limit.rlim_cur = limit.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	memset(name, '&', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	assert_true((fd = memfd_create(name, MFD_CLOEXEC)) >= 0);
	for (int i = 0; i < DESCRIPTORS; i++)
		assert_true(dup(fd) > 0);
	ask(&gdb, "read:files:0,100", &reply);
	assert_int_equal(*reply.items, 'm');
	assert_in_range(gdb.document.n, LIST_MAX, LIST_MAX + 2 * ITEM_MAX);
	assert_non_null(memmem(gdb.document.items + gdb.document.n - 40, 40, ">...</column></item></osdata>\n", 30));
	close_range((unsigned int)fd, UINT32_MAX, 0);
	gdb_text_deinit(&reply);
	gdb_text_deinit(&gdb.document);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_list_that_is_called_off_ends),
		cmocka_unit_test(a_list_that_is_full_says_so_in_its_last_item),
		cmocka_unit_test(a_stub_ends_a_list_with_its_client),
		cmocka_unit_test(a_stub_s_list_has_a_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
