/* gdb's agent expressions, as gdb 13 compiles them (`maint agent-eval`), and by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "arch/fetch.h"
#include "gdb/agent.h"
#include "gdb/agent_form.h"

#define MEMORY_AT 0x1000u

static const uint8_t memory[16] = { 0x80, 0xff, 0xfe, 0x7f, 1, 2, 3, 4, 5, 6, 7, 8, 'k', 'y', 'm', 'o' };

static bool read_register(void *data, unsigned int number, uint64_t *ret)
{
	*ret = number == 7 ? MEMORY_AT : (uint64_t) - (int64_t)number;
	return number < 24;
}

static bool read_memory(void *data, uint64_t address, void *ret, size_t size)
{
	if (address < MEMORY_AT || address - MEMORY_AT > sizeof(memory) - size)
		return false;
	memcpy(ret, memory + (address - MEMORY_AT), size);
	return true;
}

static const struct gdb_agent_target target = { .read_register = read_register, .read_memory = read_memory };

static size_t bytes_of(const char *text, uint8_t *ret)
{
	size_t n = 0;

	for (unsigned int byte; sscanf(text, " %2x", &byte) == 1; text += 2 + (text[2] == ' '))
		ret[n++] = (uint8_t)byte;
	return n;
}

static bool load(void *data, uint64_t address, unsigned int size, uint64_t *ret)
{
	*ret = 0;
	return read_memory(data, address, ret, size);
}

/* False: it has no form. */
static bool evaluate_form(const uint8_t *code, size_t size, bool *is_there, uint64_t *ret)
{
	uint64_t registers[KYMO_FETCH_REGISTERS];
	const struct kymo_form_input input = { .registers = registers, .load = load };
	struct kymo_form form;

	for (unsigned int i = 0; i < KYMO_FETCH_REGISTERS; i++)
		read_register(NULL, i, &registers[kymo_register_of_debugger(i)]);
	if (!gdb_agent_compile(code, size, 0, &form))
		return false;
	*is_there = kymo_form_run(&form, &input, ret);
	return true;
}

/* They leave more than one value, have an instruction that no form has, one that is never executed, or jump back. */
static const char *const without_form[] = {
	"22 01 22 02 22 03 32 02 27",    "22 01 22 02 22 03 33 27", "22 01 22 02 22 03 33 29 27",
	"22 01 22 02 22 03 33 29 29 27", "21 00 05 22 07 22 09 27", "22 0a 28 0e 20 00 0e 22 01 03 21 00 02 27 27",
};

static bool has_form(const char *code)
{
	for (size_t i = 0; i < kymo_countof(without_form); i++)
		if (!strcmp(code, without_form[i]))
			return false;
	return true;
}

static void values(void **state)
{
	static const struct {
		const char *code;
		uint64_t value;
	} rows[] = {
		{ "22 05 27", 5 },
		{ "23 01 02 27", 0x102 },
		{ "24 01 02 03 04 27", 0x1020304 },
		{ "25 ff 02 03 04 05 06 07 08 27", 0xff02030405060708 },
		{ "22 07 22 05 02 27", 12 },
		{ "22 05 22 07 03 27", (uint64_t)-2 },
		{ "22 05 22 07 04 27", 35 },
		{ "22 f9 16 08 22 02 05 27", (uint64_t)-3 },
		{ "22 f9 16 08 22 02 07 27", (uint64_t)-1 },
		{ "22 f9 16 08 22 02 06 27", 0x7ffffffffffffffc },
		{ "22 09 22 04 08 27", 1 },
		{ "25 80 00 00 00 00 00 00 00 22 ff 16 08 05 27", UINT64_C(1) << 63 }, /* the least one by -1 */
		{ "25 80 00 00 00 00 00 00 00 22 ff 16 08 07 27", 0 },
		{ "22 01 22 3f 09 27", UINT64_C(1) << 63 },
		{ "22 01 22 40 09 27", 0 },
		{ "22 f8 16 08 22 01 0a 27", (uint64_t)-4 },
		{ "22 f8 16 08 22 40 0a 27", UINT64_MAX },
		{ "22 f8 16 08 22 00 0a 27", (uint64_t)-8 },
		{ "22 f8 16 08 22 3f 0b 27", 1 },
		{ "22 00 0e 27", 1 },
		{ "22 09 0e 27", 0 },
		{ "22 0c 22 0a 0f 27", 8 },
		{ "22 0c 22 0a 10 27", 14 },
		{ "22 0c 22 0a 11 27", 6 },
		{ "22 00 12 27", UINT64_MAX },
		{ "22 05 22 05 13 27", 1 },
		{ "22 ff 16 08 22 01 14 27", 1 },
		{ "22 ff 16 08 22 01 15 27", 0 },
		{ "22 80 16 08 27", (uint64_t)-128 },
		{ "23 01 80 2a 08 27", 0x80 },
		{ "23 01 80 2a 00 27", 0x180 },
		{ "23 01 80 16 40 27", 0x180 },
		{ "23 10 00 17 27", 0x80 },
		{ "23 10 00 18 27", 0xff80 },
		{ "23 10 00 19 27", 0x7ffeff80 },
		{ "23 10 00 1a 27", 0x040302017ffeff80 },
		{ "26 00 03 27", (uint64_t)-3 },
		{ "26 00 07 22 0c 02 17 22 6b 13 27", 1 }, /* ((char *)$rsp)[12] == 'k' */
		{ "22 01 22 02 2b 03 27", 1 },
		{ "22 05 28 04 27", 25 },
		{ "22 05 22 06 29 27", 5 },
		{ "22 01 22 02 22 03 32 02 27", 1 },
		{ "22 01 22 02 22 03 33 27", 2 }, /* 3 1 2 */
		{ "22 01 22 02 22 03 33 29 27", 1 },
		{ "22 01 22 02 22 03 33 29 29 27", 3 },
		{ "22 01 20 00 08 22 07 27 22 09 27", 9 }, /* if_goto */
		{ "22 00 20 00 08 22 07 27 22 09 27", 7 },
		{ "21 00 05 22 07 22 09 27", 9 },                      /* goto */
		{ "22 0a 28 0e 20 00 0e 22 01 03 21 00 02 27 27", 0 }, /* while (n) n--; n */
	};

	for (size_t i = 0; i < kymo_countof(rows); i++) {
		uint8_t code[64];
		unsigned int left = GDB_AGENT_STEPS;
		uint64_t value = 0, of_form = 0;
		bool is_there = false;
		size_t size;

		print_message("%s\n", rows[i].code);
		size = bytes_of(rows[i].code, code);
		assert_true(gdb_agent_evaluate(code, size, &target, &left, &value));
		assert_int_equal(value, rows[i].value);
		assert_int_equal(evaluate_form(code, size, &is_there, &of_form), has_form(rows[i].code));
		if (has_form(rows[i].code)) {
			assert_true(is_there);
			assert_int_equal(of_form, rows[i].value);
		}
	}
}

static void what_has_no_value(void **state)
{
	static const char *const rows[] = {
		"",
		"27",                /* nothing on the stack */
		"22",                /* half an instruction */
		"22 05",             /* no end */
		"02 27",             /* nothing to add */
		"22 01 02 27",       /* one thing to add */
		"22 01 22 00 05 27", /* divisions by zero */
		"22 01 22 00 06 27",
		"22 01 22 00 07 27",
		"22 01 22 00 08 27",
		"22 00 17 27",    /* memory that is not there */
		"23 10 0d 19 27", /* … at its end */
		"26 00 18 27",    /* a register that there is not */
		"22 01 32 01 27", /* below the stack */
		"22 01 22 02 33 27",
		"22 01 2b 27",
		"28 27",
		"29 27",
		"21 00 00",    /* without end */
		"21 00 09 27", /* outside */
		"22 01 20 ff ff 27",
		"22 01 21 00 00", /* a stack without end */
		"01 27",          /* instructions that are not known */
		"22 01 0c 27",
		"2c 00 00 27",
		"34 00 00 00 27",
		"ff 27",
	};

	for (size_t i = 0; i < kymo_countof(rows); i++) {
		uint8_t code[64];
		unsigned int left = GDB_AGENT_STEPS;
		uint64_t value = 7;
		bool is_there = false;
		size_t size;

		print_message("%s\n", rows[i]);
		size = bytes_of(rows[i], code);
		assert_false(gdb_agent_evaluate(code, size, &target, &left, &value));
		assert_int_equal(value, 7);
		assert_false(evaluate_form(code, size, &is_there, &value) && is_there);
	}
}

struct printed {
	char text[64];
	size_t n;
};

static bool print(void *data, const char *format, size_t size, const uint64_t *args, size_t n)
{
	struct printed *printed = data;

	assert_int_equal(strlen(format), size);
	printed->n += (size_t)snprintf(printed->text + printed->n, sizeof(printed->text) - printed->n, "%s:", format);
	for (size_t i = 0; i < n; i++)
		printed->n += (size_t)snprintf(printed->text + printed->n, sizeof(printed->text) - printed->n, "%lu,",
					       (unsigned long)args[i]);
	return true;
}

/* A function and a channel are above the arguments, of which the first is above the others. */
static void commands(void **state)
{
	static const struct {
		const char *code, *text;
		bool is_good;
	} rows[] = {
		{ "22 07 22 05 22 00 22 00 34 02 00 02 61 00 27", "a:5,7,", true },
		{ "22 00 22 00 34 00 00 01 00 22 09 22 00 22 00 34 01 00 02 62 00 27", ":b:9,", true },
		{ "27", "", true },
		{ "22 00 34 00 00 02 61 00 27", "", false },       /* no channel */
		{ "22 00 22 00 34 01 00 02 61 00 27", "", false }, /* no argument */
		{ "22 00 22 00 34 00 00 02 61 62 27", "", false }, /* no end of the text */
		{ "22 00 22 00 34 00 00 00 27", "", false },
		{ "22 00 22 00 34 00 00 09 61 00 27", "", false }, /* longer than all */
		{ "22 00 22 00 34 00 00 02 61 00", "a:", false },
	};

	for (size_t i = 0; i < kymo_countof(rows); i++) {
		struct printed printed = { .n = 0 };
		const struct gdb_agent_target printer = {
			.read_register = read_register, .read_memory = read_memory, .data = &printed, .print = print
		};
		unsigned int left = GDB_AGENT_STEPS;
		uint64_t value;
		uint8_t code[64];
		const size_t size = bytes_of(rows[i].code, code);

		print_message("%s\n", rows[i].code);
		assert_int_equal(gdb_agent_execute(code, size, &printer, &left), rows[i].is_good);
		assert_string_equal(printed.text, rows[i].text);
		assert_false(gdb_agent_evaluate(code, size, &target, &left, &value)); /* a condition prints nothing */
	}
}

/* ---- tracepoints ----------------------------------------------------------------------------- */

struct seen {
	struct {
		uint64_t address, size;
	} areas[4];
	size_t n, n_variables;
	uint64_t variable;
};

static bool trace(void *data, uint64_t address, uint64_t size)
{
	struct seen *seen = data;

	seen->areas[seen->n].address = address;
	seen->areas[seen->n++].size = size;
	return true;
}

static bool get_variable(void *data, unsigned int number, uint64_t *ret)
{
	*ret = ((struct seen *)data)->variable;
	return number == 2;
}

static bool set_variable(void *data, unsigned int number, uint64_t value)
{
	((struct seen *)data)->variable = value;
	return number == 2;
}

static bool trace_variable(void *data, unsigned int number)
{
	((struct seen *)data)->n_variables++;
	return number == 2;
}

static void what_tracepoints_collect(void **state)
{
	static const struct {
		const char *code;
		bool is_good;
		uint64_t address, size, variable;
	} rows[] = {
		{ "23 10 00 22 08 0c 27", true, 0x1000, 8, 5 },        /* trace */
		{ "23 10 02 0d 04 29 27", true, 0x1002, 4, 5 },        /* trace_quick: the address stays */
		{ "23 10 02 30 01 02 29 27", true, 0x1002, 0x102, 5 }, /* trace16 */
		{ "23 10 00 22 03 2f 27", true, 0x1000, 3, 5 },        /* tracenz: no zero before the limit */
		{ "23 10 00 22 ff 2f 27", true, 0x1000, 16, 5 },       /* … before memory that is not there */
		{ "2c 00 02 22 01 02 2d 00 02 2e 00 02 29 27", true, 0, 0, 6 }, /* $v += 1 */
		{ "2c 00 03 27", false, 0, 0, 5 },
		{ "22 01 0c 27", false, 0, 0, 5 },
		{ "0d 04 27", false, 0, 0, 5 },
		{ "2d 00 02 27", false, 0, 0, 5 },
		{ "2e 00", false, 0, 0, 5 },
	};

	for (size_t i = 0; i < kymo_countof(rows); i++) {
		struct seen seen = { .variable = 5 };
		const struct gdb_agent_target tracing = { .read_register = read_register,
							  .read_memory = read_memory,
							  .data = &seen,
							  .trace = trace,
							  .get_variable = get_variable,
							  .set_variable = set_variable,
							  .trace_variable = trace_variable };
		unsigned int left = GDB_AGENT_STEPS;
		uint8_t code[64];
		const size_t size = bytes_of(rows[i].code, code);

		assert_int_equal(gdb_agent_execute(code, size, &tracing, &left), rows[i].is_good);
		assert_int_equal(seen.n, rows[i].size > 0);
		assert_int_equal(seen.areas[0].address, rows[i].address);
		assert_int_equal(seen.areas[0].size, rows[i].size);
		assert_int_equal(seen.variable, rows[i].variable);
		left = GDB_AGENT_STEPS;
		assert_false(gdb_agent_execute(code, size, &target, &left)); /* a condition has none of these */
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(values),
		cmocka_unit_test(what_has_no_value),
		cmocka_unit_test(commands),
		cmocka_unit_test(what_tracepoints_collect),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
