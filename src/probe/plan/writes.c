#include "probe/plan/writes.h"

#include <errno.h>
#include <string.h>

#include "probe/code/modules.h"
#include "probe/probes.h"
#include "probe/site/refusals.h"
#include "probe/site/sites.h"
#include "probe/spec/spec.h"
#include "probe/spec/spec_write.h"
#include "sym/unwind.h"

#define STACK 0x7000 /* an address that the frame below takes for its stack */
#define CALLER 0x4000

/* Of an entry only what the call has put there is read. */
static bool read_top(void *context, uint64_t address, uint64_t *ret)
{
	*ret = CALLER;
	return address == STACK;
}

/*
 * Why a `ret` at the entry of the function would not lead to its caller, or NULL. Its call frame information is asked
 * for the caller: that must be the address on top of the stack, with all registers as they are.
 */
static const char *cannot_return(struct kymo_module *module, uint64_t vaddr)
{
	struct kymo_frame frame = { .is_exact = true }, before;
	int err;

	for (unsigned int i = 0; i < KYMO_FRAME_REGISTERS; i++)
		frame.registers[i] = 0x100 + i;
	frame.registers[KYMO_FRAME_RSP] = STACK;
	frame.registers[KYMO_FRAME_PC] = vaddr;
	before = frame;
	err = module ? kymo_module_unwind(module, vaddr, &frame, read_top, NULL) : -ENOENT;
	if (err == -ENOENT)
		return "its file has no call frame information for it, which would say that it can return at once";
	before.registers[KYMO_FRAME_RSP] = STACK + 8;
	before.registers[KYMO_FRAME_PC] = CALLER;
	if (err || memcmp(frame.registers, before.registers, sizeof(before.registers)) != 0)
		return "by its call frame information it is not entered by a call, so it cannot return";
	return NULL;
}

static const char *why_not(const struct kymo_probes *probes, const struct probe_site *site,
			   const struct probe_request *request, bool is_joined, bool has_writer)
{
	if (is_joined)
		return "another recording has a probe here, and one that writes has to be the first";
	if (site->is_watch)
		return "kymo itself has a probe here, and one that writes has to be alone";
	if (has_writer)
		return "another probe writes here";
	if (probes->wanted.specs[request->spec].leaves_function)
		return cannot_return(probes->modules.items[site->module].module, request->vaddr);
	return NULL;
}

struct kymo_error *probes_refuse_writes(struct kymo_probes *probes, struct probe_site *site, bool is_joined)
{
	struct kymo_error *error = NULL;
	bool has_writer = false;

	for (size_t i = 0; i < site->requests.n && !error && !probes->wanted.options.traps; i++) {
		struct probe_request *request = &site->requests.items[i];
		const char *why;

		if (request->is_refused || !kymo_spec_writes(&probes->wanted.specs[request->spec]))
			continue;
		if (site->watches == PROBE_WATCH_LIMITS && site->is_watch) { /* what the user wants comes first */
			site->is_watch = false;
			site->was_watch = true;
		}
		why = why_not(probes, site, request, is_joined, has_writer);
		if (why)
			error = probes_refuse_request(probes, site, request, why);
		else
			has_writer = true;
	}
	return error;
}
