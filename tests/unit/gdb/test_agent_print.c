/* What commands of breakpoints print: as printf, where that has the same conversion. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "gdb/agent_print.h"

#define MEMORY_AT 0x1000u

static const char memory[256] = "a name"; /* as much as is read at once */

static bool read_memory(void *data, uint64_t address, void *ret, size_t size)
{
	if (address < MEMORY_AT || size > sizeof(memory) || address - MEMORY_AT > sizeof(memory) - size)
		return false;
	memcpy(ret, memory + (address - MEMORY_AT), size);
	return true;
}

static const struct gdb_agent_target target = { .read_memory = read_memory };

static bool print(const char *format, const uint64_t *args, size_t n, struct gdb_text *out)
{
	gdb_text_clear(out);
	gdb_text_put(out, "before ");
	return gdb_agent_print(format, strlen(format), args, n, &target, out);
}

static void is_as_printf(const char *format, uint64_t value, bool is_long)
{
	struct gdb_text out = { 0 };
	char expected[256];
	int n;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	n = is_long ? snprintf(expected, sizeof(expected), format, (long)value)
		    : snprintf(expected, sizeof(expected), format, (int)value);
#pragma GCC diagnostic pop
	print_message("%s of %lx\n", format, (unsigned long)value);
	assert_true(print(format, &value, 1, &out));
	assert_int_equal(out.n, 7 + n);
	assert_memory_equal(out.items + 7, expected, (size_t)n);
	gdb_text_deinit(&out);
}

static void integers(void **state)
{
	static const char *const flags[] = { "", "-", "+", " ", "#", "0", "-0", "+0", "#0", "-#", "+-" };
	static const char *const widths[] = { "", "1", "12", ".0", ".3", "9.4", "2.7" };
	static const uint64_t values[] = { 0, 1, 8, 255, 0x7fffffff, 0x80000000, UINT64_MAX, INT64_MAX };
	static const char types[] = "diuoxX";

	for (size_t i = 0; i < kymo_countof(flags); i++)
		for (size_t k = 0; k < kymo_countof(widths); k++)
			for (const char *type = types; *type; type++)
				for (size_t v = 0; v < kymo_countof(values); v++) {
					char format[32];

					snprintf(format, sizeof(format), "<%%%s%s%c>", flags[i], widths[k], *type);
					is_as_printf(format, values[v], false);
					snprintf(format, sizeof(format), "<%%%s%sl%c>", flags[i], widths[k], *type);
					is_as_printf(format, values[v], true);
				}
	is_as_printf("%hd", 0x18000, false);
	is_as_printf("%hhu", 0x1ff, false);
	is_as_printf("%zd%%", 5, true);
	is_as_printf("%-3c|", 'k', false);
	is_as_printf("%3c|", 'k', false);
}

static void texts(void **state)
{
	static const struct {
		const char *format;
		uint64_t value;
		const char *text;
	} rows[] = {
		{ "%s", MEMORY_AT, "a name" },
		{ "%10s|", MEMORY_AT, "    a name|" },
		{ "%-10s|", MEMORY_AT, "a name    |" },
		{ "%.3s|", MEMORY_AT, "a n|" },
		{ "%s", 0, "(null)" },
		{ "%s", 7, "(fault)" },
		{ "%p", 0x1234, "0x1234" },
		{ "%8p", 0, "   (nil)" },
		{ "\\\"%d\\\"\\t\\\\\\101\\n", 3, "\"3\"\t\\A\n" },
		{ "100%% \\045%d", 3, "100% %3" },
	};
	struct gdb_text out = { 0 };

	for (size_t i = 0; i < kymo_countof(rows); i++) {
		print_message("%s\n", rows[i].format);
		assert_true(print(rows[i].format, &rows[i].value, 1, &out));
		assert_int_equal(out.n, 7 + strlen(rows[i].text));
		assert_memory_equal(out.items + 7, rows[i].text, strlen(rows[i].text));
	}
	gdb_text_deinit(&out);
}

/* Nothing of them is printed. */
static void what_is_wrong(void **state)
{
	static const char *const rows[] = {
		"",    "none", "%d %d", "text %", "%5",     "%f",     "%ls",
		"%lc", "%*d",  "%n",    "%d \\",  "%d \\q", "%9999d", "%.5000d",
	};
	struct gdb_text out = { 0 };

	for (size_t i = 0; i < kymo_countof(rows); i++) {
		const uint64_t value = 5;

		print_message("%s\n", rows[i]);
		assert_false(print(rows[i], &value, 1, &out));
		assert_int_equal(out.n, 7);
	}
	gdb_text_deinit(&out);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(integers),
		cmocka_unit_test(texts),
		cmocka_unit_test(what_is_wrong),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
