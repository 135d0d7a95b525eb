/* Any bytes as a perf map: lines are what sym.h says, and what is found has the address. */
#include "fuzz.h"
#include "sym/perfmap.h"

static void check_name(const char *name)
{
	size_t length = strnlen(name, KYMO_PERF_NAME_MAX);

	check(length < KYMO_PERF_NAME_MAX);
	for (size_t i = 0; i < length; i++)
		check((unsigned char)name[i] >= ' ' && name[i] != 0x7f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kymo_perf_function line, found;
	uint64_t address;
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
	if (!kymo_perf_map_find(fd, address, &found)) {
		check(address >= found.start && address - found.start < found.size);
		check_name(found.name);
	}
	close(fd);
	return 0;
}
