/* Probes on system calls: the `syscall` instructions of all files that a process has mapped, and the events that their
 * pads make. */
#include "probe/resolve/syscalls.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#include "arch/syscall_pad.h"
#include "base/cleanup.h"
#include "probe/code/cache.h"
#include "probe/code/code.h"
#include "probe/code/events.h"
#include "probe/code/modules.h"
#include "probe/probes.h"
#include "probe/site/refusals.h"
#include "probe/site/sites.h"
#include "probe/site/warning.h"
#include "probe/spec/spec.h"
#include "procfs/maps.h"
#include "sym/files.h"
#include "sym/functions.h"
#include "sym/module.h"

/* ---- events ---------------------------------------------------------------------------------- */

struct kymo_error *kymo_spec_make_syscalls(const char *text, const uint64_t numbers[KYMO_PAD_SYSCALLS / 64],
					   struct kymo_spec *ret)
{
	struct kymo_spec spec = { .text = strdup(text), .syscalls = calloc(KYMO_PAD_SYSCALLS / 64, sizeof(*numbers)) };

	if (!spec.text || !spec.syscalls) {
		kymo_spec_deinit(&spec);
		return &kymo_error_no_memory;
	}
	memcpy(spec.syscalls, numbers, KYMO_PAD_SYSCALLS / 8);
	*ret = spec;
	return NULL;
}

static bool has_number(const struct kymo_spec *spec, uint32_t number)
{
	return spec->syscalls[number / 64] >> number % 64 & 1;
}

#define FIELD(its_name, its_type) \
	{ \
		.name = (char *)(its_name), .type = (its_type) \
	}

static void fill_fields(struct kymo_probe_event *event, bool has_memory)
{
	static const struct kymo_event_field entry[] = {
		FIELD("arg1", KYMO_TYPE_X64), FIELD("arg2", KYMO_TYPE_X64),     FIELD("arg3", KYMO_TYPE_X64),
		FIELD("arg4", KYMO_TYPE_X64), FIELD("arg5", KYMO_TYPE_X64),     FIELD("arg6", KYMO_TYPE_X64),
		FIELD("sp", KYMO_TYPE_X64),   FIELD("memory", KYMO_TYPE_BYTES),
	};
	static const struct kymo_event_field leave[] = {
		FIELD("result", KYMO_TYPE_S64),
		FIELD("number", KYMO_TYPE_S64),
		FIELD("memory", KYMO_TYPE_BYTES),
	};
	const bool is_entry = event->kind == KYMO_EVENT_SYSCALL;

	event->n_fields = is_entry ? 6 : 1;
	if (has_memory)
		event->n_fields = is_entry ? kymo_countof(entry) : kymo_countof(leave);
	memcpy(event->fields, is_entry ? entry : leave, event->n_fields * sizeof(event->fields[0]));
}

struct kymo_error *kymo_events_add_syscalls(struct kymo_events *events, const struct kymo_spec *spec,
					    const char *(*name_of)(uint64_t number), bool has_memory)
{
	struct kymo_error *error = NULL;
	size_t first = 0;

	for (uint32_t i = 0; i <= KYMO_PAD_SYSCALLS && !error; i++) {
		const char *known = i < KYMO_PAD_SYSCALLS ? name_of(i) : "return";
		char number[16], name[64];
		struct kymo_probe_event event = {
			.kind = i < KYMO_PAD_SYSCALLS ? KYMO_EVENT_SYSCALL : KYMO_EVENT_SYSRET,
			.spec = spec,
			.name = name,
			.path = (char *)"",
			.symbol = (char *)"",
			.build_id = (char *)"",
			.offset = i,
		};
		size_t at;

		snprintf(number, sizeof(number), "%" PRIu32, i);
		snprintf(name, sizeof(name), "syscall:%s", known ? known : number);
		fill_fields(&event, has_memory);
		error = kymo_events_add(events, &event, &at);
		if (!i)
			first = at;
	}
	if (!error)
		probe_events_note_syscalls(events, first);
	return error;
}

bool probe_syscalls_fill(const struct kymo_events *events, const struct kymo_spec *spec, struct kymo_pad_syscalls *ret)
{
	size_t first = probe_events_syscalls(events), n;
	const struct kymo_probe_event *all = kymo_events_items(events, &n);

	if (first + KYMO_PAD_SYSCALLS >= n)
		return false;
	*ret = (struct kymo_pad_syscalls){ .first_id = all[first].id, .exit_id = all[first + KYMO_PAD_SYSCALLS].id };
	memcpy(ret->wanted, spec->syscalls, sizeof(ret->wanted));
	return true;
}

void probe_syscalls_use(struct kymo_events *events, const struct kymo_spec *spec)
{
	size_t first = probe_events_syscalls(events);

	for (uint32_t i = 0; i < KYMO_PAD_SYSCALLS; i++)
		if (has_number(spec, i))
			kymo_events_use(events, first + i);
	kymo_events_use(events, first + KYMO_PAD_SYSCALLS);
}

/* ---- sites ----------------------------------------------------------------------------------- */

bool probes_has_syscalls(const struct kymo_probes *probes)
{
	for (size_t i = 0; i < probes->wanted.n_specs; i++)
		if (probes->wanted.specs[i].syscalls)
			return true;
	return false;
}

/* Whether the instruction is in a guard's window, or so close before it that its jump would end there. */
static bool is_guarded(const struct kymo_plan *guards, int n, uint64_t vaddr)
{
	for (int i = 0; i < n; i++)
		if (vaddr - (guards[i].vaddr - (KYMO_JUMP_SIZE - 1)) < guards[i].window + (KYMO_JUMP_SIZE - 1u))
			return true;
	return false;
}

/* What is told of calls that guards are in the place of. */
static void tell_guarded(const struct kymo_probes *probes, const struct probe_module *module,
			 const bool *is_guarded_call)
{
	size_t first = probe_events_syscalls(probes->wanted.options.events), n, used = 0;
	const struct kymo_probe_event *all = kymo_events_items(probes->wanted.options.events, &n);
	char names[200] = "";

	for (size_t i = 0; i < KYMO_PAD_SYSCALLS && used < sizeof(names); i++)
		if (is_guarded_call[i])
			used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s", used ? ", " : "",
						 strchr(all[first + i].name, ':') + 1);
	if (used)
		probes_warn(probes, "calls of %s by %s are not recorded: kymo uses these locations itself", names,
			    module->path);
}

static struct kymo_error *add_site(struct kymo_probes *probes, const struct probe_meaning *meaning,
				   const struct kymo_syscall_site *at)
{
	struct kymo_module *module = probes->modules.items[meaning->module].module;
	kymo_cleanup_free char *name = NULL;
	struct probe_request request = { .vaddr = at->vaddr };
	char location[300];

	probes->per_spec.refused[meaning->spec].tried++;
	kymo_module_describe(module, at->vaddr, location, sizeof(location));
	if (at->reason)
		return probes_refuse_location(probes, meaning->spec, meaning->module, false, location, at->reason);
	if (asprintf(&name, "syscall in %s", location) < 0) {
		name = NULL;
		return &kymo_error_no_memory;
	}
	request.location = location;
	request.name = name;
	request.event = probe_events_syscalls(probes->wanted.options.events);
	return probes_add_request(probes, meaning, at->vaddr, &request);
}

struct kymo_error *probes_resolve_syscalls(struct kymo_probes *probes, const struct probe_meaning *meaning)
{
	const struct probe_module *module = &probes->modules.items[meaning->module];
	const struct kymo_spec *spec = &probes->wanted.specs[meaning->spec];
	const struct kymo_syscall_site *sites = NULL;
	const struct kymo_plan *guards = NULL;
	struct kymo_code *code;
	struct kymo_error *error = probes_code(probes, meaning->module, &code);
	int n_guards = 0;
	bool is_guarded_call[KYMO_PAD_SYSCALLS] = { false }, has_signal_return = false;
	size_t n = 0;

	probes->per_spec.met[meaning->spec] = true;
	if (!error)
		error = probe_cached_syscalls(module->file, &sites, &n);
	if (!error && !probes->wanted.options.no_rseq && kymo_name_matches_file("libc", module->path, NULL))
		error = probe_cached_guards(module->file, &guards, &n_guards);
	if (error)
		return error;
	for (size_t i = 0; i < n && !error; i++)
		if (sites[i].number >= 0 &&
		    !(sites[i].number < KYMO_PAD_SYSCALLS && has_number(spec, (uint32_t)sites[i].number)))
			continue;
		else if (sites[i].number == SYS_rt_sigreturn)
			has_signal_return = true;
		else if (!is_guarded(guards, n_guards, sites[i].vaddr))
			error = add_site(probes, meaning, &sites[i]);
		else if (sites[i].number >= 0)
			is_guarded_call[sites[i].number] = true;
	if (!error)
		tell_guarded(probes, module, is_guarded_call);
	/* No probe can be at them, whatever the file: told in the same words for each, so that users read it once. */
	if (!error && has_signal_return)
		probes_warn(probes,
			    "calls of rt_sigreturn are not recorded: unwinders know the end of a signal's handler by "
			    "its bytes");
	if (!error && kymo_module_cancels(module->module))
		probes_warn(probes,
			    "%s calls pthread_cancel: threads canceled during a recorded system call skip their "
			    "cleanup handlers (C++ destructors, locks of streams)",
			    module->path);
	return error;
}

void probes_tell_other_code(struct kymo_probes *probes, const struct kymo_maps *maps)
{
	size_t n = 0;

	for (size_t i = 0; i < maps->n; i++)
		n += maps->items[i].executable && (!*maps->items[i].path || maps->items[i].path[0] == '[') &&
		     strcmp(maps->items[i].path, "[vdso]") != 0 && strcmp(maps->items[i].path, "[vsyscall]") != 0;
	if (n && !probes->told_other_code)
		probes_warn(
			probes,
			"process %d has code in memory of no file: system calls that it makes there are not recorded",
			probes->pid);
	probes->told_other_code |= n > 0;
}
