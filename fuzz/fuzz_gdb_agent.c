/* Any bytes as an agent expression, and as commands that print: it ends, reads what it names and nothing else, and
 * leaves the result alone where it has none. If it has a form, that has the same value. */
#include "arch/fetch.h"
#include "fuzz.h"
#include "gdb/agent.h"
#include "gdb/agent_form.h"
#include "gdb/agent_print.h"

#define PC 0x401136

static bool read_register(void *data, unsigned int number, uint64_t *ret)
{
	*ret = number == 16 ? PC : number * UINT64_C(0x9e3779b97f4a7c15);
	return number < 30;
}

static bool read_memory(void *data, uint64_t address, void *ret, size_t size)
{
	check(size == 1 || size == 2 || size == 4 || size == 8);
	memset(ret, (int)address, size);
	return address % 7;
}

static bool load(void *data, uint64_t address, unsigned int size, uint64_t *ret)
{
	*ret = 0;
	return read_memory(data, address, ret, size);
}

static bool print(void *data, const char *format, size_t size, const uint64_t *args, size_t n)
{
	const struct gdb_agent_target memory = { .read_memory = read_memory };
	struct gdb_text text = { 0 };
	const bool is_good = gdb_agent_print(format, size, args, n, &memory, &text);

	check(is_good || !text.n);
	gdb_text_deinit(&text);
	return is_good;
}

static bool trace(void *data, uint64_t address, uint64_t size)
{
	return size % 11;
}

static bool get_variable(void *data, unsigned int number, uint64_t *ret)
{
	*ret = number;
	return number % 5;
}

static bool set_variable(void *data, unsigned int number, uint64_t value)
{
	return number % 5;
}

static bool trace_variable(void *data, unsigned int number)
{
	return number % 5;
}

static void compare(const uint8_t *data, size_t size, bool is_there, uint64_t value)
{
	uint64_t registers[KYMO_FETCH_REGISTERS], of_form;
	const struct kymo_form_input input = { .registers = registers, .load = load };
	struct kymo_form form;

	for (unsigned int i = 0; i < KYMO_FETCH_REGISTERS; i++)
		read_register(NULL, i, &registers[kymo_register_of_debugger(i)]);
	if (!gdb_agent_compile(data, size, PC, &form))
		return;
	check(kymo_form_check(&form, KYMO_FETCH_REGISTERS, 0));
	check(kymo_form_run(&form, &input, &of_form) == is_there);
	check(!is_there || of_form == value);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct gdb_agent_target target = { .read_register = read_register, .read_memory = read_memory };
	const struct gdb_agent_target commands = { .read_register = read_register,
						   .read_memory = read_memory,
						   .print = print,
						   .trace = trace,
						   .get_variable = get_variable,
						   .set_variable = set_variable,
						   .trace_variable = trace_variable };
	unsigned int left = GDB_AGENT_STEPS;
	uint64_t value = 0x6b796d6f;
	bool is_there;

	is_there = gdb_agent_evaluate(data, size, &target, &left, &value);
	check(is_there || value == 0x6b796d6f);
	compare(data, size, is_there, value);
	left = GDB_AGENT_STEPS;
	gdb_agent_execute(data, size, &commands, &left);
	return 0;
}
