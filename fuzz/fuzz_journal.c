/* A header as a target might show it to `kymo detach`: what passes the check has its journal inside of the mapping. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "wire/shared.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kymo_wire_header header = { .magic = KYMO_WIRE_MAGIC, .version = KYMO_WIRE_VERSION };
	uint64_t mapped = 1 << 20, end;

	if (size < 8)
		return 0;
	memcpy((uint8_t *)&header + offsetof(struct kymo_wire_header, recorder_pid), data,
	       size < sizeof(header) - offsetof(struct kymo_wire_header, recorder_pid)
		       ? size
		       : sizeof(header) - offsetof(struct kymo_wire_header, recorder_pid));
	if (data[0] & 1) {
		header.address = 0x1000;
		header.size = mapped;
	}
	if (!kymo_wire_header_is_sane(&header, 0x1000, mapped))
		return 0;
	if (__builtin_mul_overflow(header.n_sites, sizeof(struct kymo_wire_site), &end) ||
	    __builtin_add_overflow(end, header.journal_offset, &end) || end > mapped)
		abort();
	return 0;
}
