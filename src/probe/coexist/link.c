#include "probe/coexist/link.h"

#include "arch/plan.h"
#include "proc/memory.h"

uint64_t probe_jump_by(probe_link_read *read, void *data, uint64_t address)
{
	uint8_t jump[KYMO_JUMP_SIZE];

	return read(data, address, jump, sizeof(jump)) ? 0 : kymo_jump_target(address, jump);
}

bool probe_leads_to_link_by(probe_link_read *read, void *data, uint64_t address, size_t patch_size, uint64_t link)
{
	uint8_t hop[KYMO_SHORT_JUMP_SIZE];
	uint64_t near = 0;

	if (!read(data, address, hop, sizeof(hop)))
		near = kymo_short_jump_target(address, hop);
	if (near && probe_jump_by(read, data, near) == link)
		return true;
	for (size_t i = 0; link != address && i < patch_size + KYMO_JUMP_SIZE; i++)
		if (probe_jump_by(read, data, address + i) == link)
			return true;
	return link == address;
}

static int read_process(void *data, uint64_t address, void *ret, size_t size)
{
	return kymo_process_read(data, address, ret, size);
}

uint64_t probe_jump_at(struct kymo_process *process, uint64_t address)
{
	return probe_jump_by(read_process, process, address);
}

bool probe_leads_to_link(struct kymo_process *process, uint64_t address, size_t patch_size, uint64_t link)
{
	return probe_leads_to_link_by(read_process, process, address, patch_size, link);
}
