#include "hub/thread/tracee.h"
#include "proc/request.h"
#include "proc/state.h"
#include "proc/thread.h"

const struct kymo_thread *kymo_process_threads(const struct kymo_process *process, size_t *n_ret)
{
	*n_ret = kymo_process_is_stopped(process) ? process->threads.n : 0;
	return process->threads.items;
}

int kymo_thread_rseq(struct kymo_process *process, size_t index, uint64_t *pointer_ret, uint32_t *signature_ret)
{
	struct kymo_tracee_facts facts;
	int err = kymo_joined_facts(process->joined, process->threads.items[index].tid, KYMO_FACT_RSEQ, &facts);

	if (!err)
		err = facts.rseq_error;
	if (err)
		return err;
	*pointer_ret = facts.rseq_pointer;
	*signature_ret = facts.rseq_signature;
	return 0;
}

bool kymo_thread_dispatches_calls(struct kymo_process *process, size_t index)
{
	struct kymo_tracee_facts facts;

	return !kymo_joined_facts(process->joined, process->threads.items[index].tid, KYMO_FACT_DISPATCH, &facts) &&
	       facts.dispatches_calls;
}

int kymo_thread_set_registers(struct kymo_process *process, size_t index, const struct user_regs_struct *registers)
{
	struct kymo_thread *thread = &process->threads.items[index];
	int err = kymo_joined_set_registers(process->joined, thread->tid, registers);

	if (!err)
		thread->registers = *registers;
	return err;
}

int kymo_thread_set_pc(struct kymo_process *process, size_t index, uint64_t pc)
{
	struct user_regs_struct registers = process->threads.items[index].registers;

	registers.rip = pc;
	return kymo_thread_set_registers(process, index, &registers);
}
