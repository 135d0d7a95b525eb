/* Any bytes as a perf map: lines are what sym/perfmap.h says, and what is found has the address; a table of all lines
 * finds the same. */
#include "fuzz.h"
#include "sym/perfmap.h"
#include "sym/perftable.h"

#define COMPARED_MAX 1024 /* bytes, which have fewer lines than a search in a table looks at */

static void check_name(const char *name)
{
	size_t length = strnlen(name, KYMO_PERF_NAME_MAX);

	check(length < KYMO_PERF_NAME_MAX);
	for (size_t i = 0; i < length; i++)
		check((unsigned char)name[i] >= ' ' && name[i] != 0x7f);
}

/* `fd` becomes the table's. */
static void check_table(int fd, uint64_t address, const struct kymo_perf_function *expected)
{
	struct kymo_perf_table *table = kymo_perf_table_create(fd);
	uint64_t start = 0;
	const char *name;

	check(table);
	kymo_perf_table_read(table);
	check(!kymo_perf_table_read(table));
	name = kymo_perf_table_at(table, address, &start);
	check(!name == !expected);
	if (name)
		check(start == expected->start && !strcmp(name, expected->name));
	kymo_perf_table_destroy(table);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kymo_perf_function line, found;
	uint64_t address;
	bool is_found;
	int fd;

	if (size < sizeof(address))
		return 0;
	memcpy(&address, data, sizeof(address));
	data += sizeof(address);
	size -= sizeof(address);
	if (kymo_perf_map_parse((const char *)data, size, &line)) {
		check(line.size && line.start + line.size >= line.start);
		check_name(line.name);
		address = line.start;
	}
	fd = fuzz_file(data, size);
	if (fd < 0)
		return 0;
	is_found = !kymo_perf_map_find(fd, address, &found);
	if (is_found) {
		check(address >= found.start && address - found.start < found.size);
		check_name(found.name);
	}
	if (size <= COMPARED_MAX)
		check_table(fd, address, is_found ? &found : NULL);
	else
		close(fd);
	return 0;
}
