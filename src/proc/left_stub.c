#include "proc/left_stub.h"

#include <string.h>

#include "arch/start_stub.h"
#include "base/page.h"
#include "proc/linker.h"
#include "proc/memory.h"
#include "proc/start_stub.h"
#include "proc/state.h"
#include "proc/stop.h"
#include "procfs/maps.h"

#define ALIGNMENT 16

struct left_stub {
	uint64_t at, site;
};

/* What the process has in memory proves nothing: the file must have the call at one address, and zeros at the other. */
static bool is_of_file(struct kymo_process *process, const struct kymo_map *text, const struct left_stub *stub,
		       const uint8_t *call)
{
	static const uint8_t zeros[KYMO_START_STUB];
	const uint64_t from = stub->site - KYMO_START_BEFORE;
	uint8_t code[KYMO_START_CODE];

	if (kymo_process_read(process, from, code, sizeof(code)))
		return false;
	memcpy(code + KYMO_START_BEFORE, call, KYMO_START_CALL);
	return kymo_start_is_site(code) && kymo_is_of_mapped_file(process->pid, text, from, code, sizeof(code)) &&
	       kymo_is_of_mapped_file(process->pid, text, stub->at, zeros, sizeof(zeros));
}

/* In the last page of the linker's text. */
static bool find_in(struct kymo_process *process, const struct kymo_map *text, struct left_stub *ret)
{
	uint8_t bytes[KYMO_PAGE_SIZE], jump[KYMO_START_JUMP];
	const uint64_t page = text->end - sizeof(bytes);

	if (kymo_process_read(process, page, bytes, sizeof(bytes)))
		return false;
	for (uint64_t i = 0; i + KYMO_START_STUB <= sizeof(bytes); i += ALIGNMENT) {
		struct left_stub stub = { .at = page + i };

		if (!kymo_start_is_stub(bytes + i, stub.at, &stub.site, jump) ||
		    !kymo_start_is_within(text, stub.site, stub.at) || !is_of_file(process, text, &stub, bytes + i))
			continue;
		*ret = stub;
		return true;
	}
	return false;
}

static bool find(struct kymo_process *process, struct left_stub *ret)
{
	const uint64_t linker = kymo_linker_of(process->pid);
	const struct kymo_map *text;
	struct kymo_maps maps;
	struct kymo_error *error = kymo_process_maps(process, &maps);
	bool found;

	if (error) {
		kymo_error_destroy(error);
		return false;
	}
	text = kymo_start_text(&maps, linker);
	found = text && find_in(process, text, ret);
	kymo_maps_deinit(&maps);
	return found;
}

struct kymo_error *kymo_start_clear(struct kymo_process *process, bool *found_ret)
{
	struct left_stub stub;
	struct kymo_error *error;
	bool has_called;

	*found_ret = false;
	if (!find(process, &stub))
		return NULL;
	error = kymo_process_stop(process);
	if (!error && find(process, &stub))
		*found_ret = kymo_start_take_out(process, stub.at, stub.site, &has_called);
	kymo_process_resume(process);
	if (error && error->code == KYMO_ERROR_BUSY) { /* it starts, and its recorder lives */
		kymo_error_destroy(error);
		error = NULL;
	}
	return error;
}
