/* Running a launched program through its first moments, from one event to the next. linker.c knows what the events are.
 */
#include "base/error.h"
#include "base/io.h"
#include "proc/follow.h"
#include "proc/frozen.h"
#include "proc/linker.h"
#include "proc/members.h"
#include "proc/start_stub.h"
#include "proc/startup.h"
#include "proc/state.h"
#include "proc/tree.h"

void kymo_process_startup_without_stub(struct kymo_process *process)
{
	process->startup.wants_no_stub = true;
}

struct kymo_error *kymo_process_startup_on(struct kymo_process *process)
{
	struct kymo_tree_event event = { .kind = KYMO_TREE_STARTUP, .process = process, .tid = process->pid };
	struct kymo_error *error = process->startup.phase == STARTUP_UNKNOWN ? kymo_startup_begin(process) : NULL;

	if (error)
		return error;
	if (!process->startup.linker || process->startup.owes_tls) {
		event.startup = process->startup.owes_tls ? KYMO_STARTUP_TLS : KYMO_STARTUP_LOADED;
		process->startup.owes_tls = false;
		kymo_tree_tell(process->tree, &event);
		return NULL;
	}
	if (process->startup.phase == STARTUP_AT_EXEC)
		kymo_start_stub_put(process);
	process->startup.moment_ns = kymo_now_ns() + KYMO_STARTUP_MOMENT_NS;
	kymo_follow_start(process);
	kymo_frozen_run(process);
	return NULL;
}

static struct kymo_error *startup_in_tree(struct kymo_process *process, enum kymo_startup_event *ret)
{
	struct kymo_error *error = kymo_process_startup_on(process);
	unsigned int spins = 0;

	while (!error && !kymo_tree_take_startup(process, ret)) {
		bool has_any = kymo_tree_pump(process->tree);

		spins = has_any ? 0 : spins + 1;
		if (!has_any || kymo_tree_tells_of_next(process->tree))
			kymo_tree_doze(process->tree, spins);
	}
	return error;
}

struct kymo_error *kymo_process_startup(struct kymo_process *process, enum kymo_startup_event *ret)
{
	struct kymo_error *error = process->startup.phase == STARTUP_UNKNOWN ? kymo_startup_begin(process) : NULL;

	if (error)
		return error;
	if (!process->tree)
		error = kymo_tree_create_alone(process);
	return error ? error : startup_in_tree(process, ret);
}
