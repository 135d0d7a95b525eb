/* Any bytes as an agent expression: it ends, reads what it names and nothing else, and leaves the result alone where it
 * has none. */
#include "fuzz.h"
#include "gdb/agent.h"

static bool read_register(void *data, unsigned int number, uint64_t *ret)
{
	*ret = number * UINT64_C(0x9e3779b97f4a7c15);
	return number < 30;
}

static bool read_memory(void *data, uint64_t address, void *ret, size_t size)
{
	check(size == 1 || size == 2 || size == 4 || size == 8);
	memset(ret, (int)address, size);
	return address % 7;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct gdb_agent_target target = { read_register, read_memory, NULL };
	unsigned int left = GDB_AGENT_STEPS;
	uint64_t value = 0x6b796d6f;

	if (!gdb_agent_evaluate(data, size, &target, &left, &value))
		check(value == 0x6b796d6f);
	return 0;
}
