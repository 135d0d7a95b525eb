#include "wire/shared.h"

int kymo_wire_header_is_sane(const struct kymo_wire_header *header, uint64_t address, uint64_t size)
{
	return header->magic == KYMO_WIRE_MAGIC && header->version == KYMO_WIRE_VERSION && header->address == address &&
	       header->size == size && header->journal_offset < size &&
	       header->journal_capacity <= (size - header->journal_offset) / sizeof(struct kymo_wire_site) &&
	       header->journal_capacity <= KYMO_WIRE_MAX_SITES && header->n_sites <= header->journal_capacity &&
	       header->trampolines_offset < size &&
	       (size - header->trampolines_offset) / sizeof(struct kymo_wire_trampolines) >=
		       KYMO_WIRE_MAX_TRAMPOLINES &&
	       header->n_trampolines <= KYMO_WIRE_MAX_TRAMPOLINES && header->n_regions <= KYMO_WIRE_MAX_REGIONS;
}
