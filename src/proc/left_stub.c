#include "proc/left_stub.h"

#include <string.h>

#include "arch/start_stub.h"
#include "base/cleanup.h"
#include "base/page.h"
#include "proc/linker.h"
#include "proc/memory.h"
#include "proc/state.h"
#include "proc/stop.h"
#include "proc/stub_exit.h"
#include "proc/stub_site.h"
#include "procfs/maps.h"

struct left_stub {
	uint64_t at, site;
};

/* What the process has in memory proves nothing: the file must have the call at one address, and zeros at the other. */
static bool is_of_file(struct kymo_process *process, int file, const struct kymo_map *text,
		       const struct left_stub *stub, const uint8_t *call)
{
	const uint64_t from = stub->site - KYMO_START_BEFORE;
	uint8_t code[KYMO_START_CODE];

	if (kymo_process_read(process, from, code, sizeof(code)))
		return false;
	memcpy(code + KYMO_START_BEFORE, call, KYMO_START_CALL);
	return kymo_start_is_site(code) && kymo_is_of_file(file, text, from, code, sizeof(code)) &&
	       kymo_is_of_file(file, text, stub->at, kymo_start_zeros, sizeof(kymo_start_zeros));
}

/* In the last page of the linker's text. An error: there seems to be one, and the file can't be read. */
static struct kymo_error *find_in(struct kymo_process *process, const struct kymo_map *text, struct left_stub *ret,
				  bool *found_ret)
{
	kymo_cleanup_close int file = -1;
	uint8_t bytes[KYMO_PAGE_SIZE], jump[KYMO_START_JUMP];
	const uint64_t page = text->end - sizeof(bytes);

	if (kymo_process_read(process, page, bytes, sizeof(bytes)))
		return NULL;
	for (uint64_t i = 0; i + KYMO_START_STUB <= sizeof(bytes) && !*found_ret; i += KYMO_START_ALIGNMENT) {
		struct left_stub stub = { .at = page + i };
		struct kymo_error *error = NULL;

		if (!kymo_start_is_stub(bytes + i, stub.at, &stub.site, jump) ||
		    !kymo_start_is_within(text, stub.site, stub.at))
			continue;
		if (file < 0)
			error = kymo_open_mapped(process->pid, text, &file);
		if (error)
			return error;
		*found_ret = is_of_file(process, file, text, &stub, bytes + i);
		*ret = stub;
	}
	return NULL;
}

static struct kymo_error *find(struct kymo_process *process, struct left_stub *ret, bool *found_ret)
{
	const uint64_t linker = kymo_linker_of(process->pid);
	const struct kymo_map *text;
	struct kymo_maps maps;
	struct kymo_error *error = kymo_process_maps(process, &maps);

	*found_ret = false;
	if (error) {
		kymo_error_destroy(error);
		return NULL;
	}
	text = kymo_start_text(&maps, linker);
	error = text ? find_in(process, text, ret, found_ret) : NULL;
	kymo_maps_deinit(&maps);
	return error;
}

static struct kymo_error *take_out(struct kymo_process *process, bool *found_ret)
{
	struct left_stub stub;
	struct kymo_error *error = find(process, &stub, found_ret);
	bool has_called;

	if (error || !*found_ret || kymo_start_take_out(process, stub.at, stub.site, &has_called))
		return error;
	*found_ret = false;
	return kymo_error_create(KYMO_ERROR_BUSY,
				 "the start stub of an earlier recording is still in the dynamic linker of process %d",
				 process->pid);
}

struct kymo_error *kymo_start_clear(struct kymo_process *process, bool *found_ret)
{
	struct left_stub stub;
	struct kymo_error *error = find(process, &stub, found_ret);

	if (error || !*found_ret)
		return error;
	*found_ret = false;
	error = kymo_process_stop(process);
	if (error && error->code == KYMO_ERROR_BUSY) { /* it starts, and its recorder lives */
		kymo_error_destroy(error);
		error = NULL;
	} else if (!error) {
		error = take_out(process, found_ret);
	}
	kymo_process_resume(process);
	return error;
}
