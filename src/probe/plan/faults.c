/* The faults that a process handles itself, and what that means for plans. exchange.c takes probes out when they become
 * more. */
#include "probe/plan/faults.h"

#include <signal.h>

#include "arch/code.h"
#include "arch/plan.h"
#include "base/cleanup.h"
#include "probe/probes.h"

static const struct {
	int signal;
	unsigned int fault;
} signals[] = {
	{ SIGSEGV, KYMO_FAULT_MEMORY },
	{ SIGBUS, KYMO_FAULT_MEMORY },
	{ SIGFPE, KYMO_FAULT_ARITHMETIC },
	{ SIGILL, KYMO_FAULT_INSTRUCTION },
};

unsigned int kymo_faults_of(uint64_t handled)
{
	unsigned int faults = 0;

	for (size_t i = 0; i < kymo_countof(signals); i++)
		if (handled >> signals[i].signal & 1)
			faults |= signals[i].fault;
	return faults;
}

unsigned int kymo_faults_of_code(const struct kymo_module_code *code)
{
	return code->small_stacks.start < code->small_stacks.end ? KYMO_FAULT_ANY : 0;
}

unsigned int probes_watched_faults(const struct kymo_probes *probes, const struct kymo_module_code *code)
{
	return probes->wanted.options.displace_faulting ? 0 : probes->faults.watched | kymo_faults_of_code(code);
}

unsigned int probes_possible_faults(const struct kymo_probes *probes)
{
	return probes->wanted.options.displace_faulting ? 0 : KYMO_FAULT_ANY & ~probes->faults.watched;
}
