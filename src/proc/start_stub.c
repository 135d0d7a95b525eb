#include "proc/start_stub.h"

#include "arch/selectors.h"
#include "arch/start_stub.h"
#include "hub/own_signal.h"
#include "hub/thread/task.h"
#include "hub/thread/tracee.h"
#include "proc/batch.h"
#include "proc/members.h"
#include "proc/memory.h"
#include "proc/request.h"
#include "proc/state.h"
#include "proc/stub_exit.h"
#include "proc/stub_site.h"
#include "proc/thread.h"
#include "procfs/confined.h"
#include "procfs/info.h"
#include "procfs/maps.h"

/* ---- whether it may -------------------------------------------------------------------------- */

/* Another engine would see calls and signals that are not the program's, or step through them. */
static struct task *task_without_others(const struct kymo_process *process)
{
	struct task *task = hub_find(process->tree->hub, process->pid);

	return task && task->engines.n == 1 && !task->process->has_filter && !task->process->space ? task : NULL;
}

/* A signal that is ignored by default, and comes at once. Nothing of the program has run, so it has no handler. */
static int choose_signal(struct kymo_process *process)
{
	struct kymo_tracee_facts facts;

	if (kymo_joined_facts(process->joined, process->pid, KYMO_FACT_MASK, &facts))
		return 0;
	return kymo_harmless_signal(facts.mask);
}

/* A seccomp filter might end it for the signal. A security module might refuse the signal, and calls would be missed.
 */
static bool may_call(struct kymo_process *process)
{
	struct kymo_process_info info;

	return kymo_process_status(process, &info) && !info.seccomp &&
	       process->threads.items[0].registers.cs == KYMO_CODE_SELECTOR && !kymo_is_confined(process->pid);
}

/* ---- in and out ------------------------------------------------------------------------------ */

/* All of the stub before the jump to it. */
static bool write_both(struct kymo_process *process, uint64_t site, uint64_t at, int signal)
{
	uint8_t stub[KYMO_START_STUB], jump[KYMO_START_JUMP];

	if (kymo_start_make_stub(at, site, (uint8_t)signal, stub, jump) ||
	    kymo_process_write(process, at, stub, sizeof(stub)))
		return false;
	if (!kymo_process_write(process, site, jump, sizeof(jump)))
		return true;
	kymo_process_write(process, at, kymo_start_zeros, sizeof(kymo_start_zeros));
	return false;
}

void kymo_start_stub_put(struct kymo_process *process)
{
	struct task *task =
		kymo_process_is_stopped(process) && process->threads.n == 1 ? task_without_others(process) : NULL;
	const struct kymo_map *text;
	struct kymo_maps maps;
	struct kymo_error *error;
	uint64_t site, at;
	int signal;

	/* Without DT_DEBUG a program that makes no calls is taken to be linked. */
	if (!task || !process->joined || process->remote.active || process->startup.wants_no_stub ||
	    !process->startup.debug || !may_call(process))
		return;
	signal = choose_signal(process);
	error = signal ? kymo_process_maps(process, &maps) : NULL;
	if (error || !signal) {
		kymo_error_destroy(error);
		return;
	}
	text = kymo_start_text(&maps, process->startup.linker);
	if (text && kymo_start_find(process, text, &site, &at) && write_both(process, site, at, signal)) {
		process->startup.stub = STUB_IS_AWAITED;
		process->startup.stub_at = at;
		process->startup.stub_signal = signal;
		process->startup.stub_site = site;
		hub_own_signal_expect(task->engines.items[0], signal, kymo_start_told_at(at));
	}
	kymo_maps_deinit(&maps);
}

void kymo_start_stub_take(struct kymo_process *process)
{
	const uint64_t at = process->startup.stub_at, site = process->startup.stub_site;
	bool is_told, has_called = false;

	if (!process->threads.n)
		return;
	is_told = process->threads.items[0].registers.rip == kymo_start_told_at(at);
	if (is_told && process->startup.has_come && process->threads.n == 1)
		process->startup.harmless = process->startup.stub_signal;
	process->startup.has_come = false;
	process->startup.stub = kymo_start_take_out(process, at, site, &has_called) ? STUB_IS_OUT : STUB_IS_IN;
	process->startup.owes_tls |= has_called && process->threads.items[0].registers.fs_base != 0;
	/* A stop of another kind may have come before that of the signal. */
	if (process->startup.stub == STUB_IS_OUT)
		hub_own_signal_move(process->tree->hub, process->pid, is_told ? site + KYMO_START_CALL : 0);
}
