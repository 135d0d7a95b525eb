/* Whether this machine has debug registers that do something: some hypervisors keep what is written and raise nothing.
 */
#ifndef TESTS_HUB_DEBUG_REGISTERS_H
#define TESTS_HUB_DEBUG_REGISTERS_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

/* A child writes to a word that its first debug register watches: by ptrace alone, without anything of kymo's. */
static inline bool debug_registers_work(void)
{
	static volatile int word;
	const unsigned long writes_of_4_bytes = 1 | 0xdul << 16; /* Intel SDM volume 3, 18.2.4 */
	int status = 0;
	pid_t child = fork();

	if (!child) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		raise(SIGSTOP);
		word = 1;
		_exit(0);
	}
	if (child < 0 || waitpid(child, &status, 0) != child || !WIFSTOPPED(status))
		return false;
	ptrace(PTRACE_POKEUSER, child, offsetof(struct user, u_debugreg[0]), &word);
	ptrace(PTRACE_POKEUSER, child, offsetof(struct user, u_debugreg[7]), writes_of_4_bytes);
	ptrace(PTRACE_CONT, child, NULL, NULL);
	if (waitpid(child, &status, 0) != child || !WIFSTOPPED(status))
		return false;
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	return true;
}

#define SKIP_WITHOUT_DEBUG_REGISTERS() \
	do { \
		if (!debug_registers_work()) { \
			print_message( \
				"skipped: this machine raises no debug exceptions; ptrace alone sees none either\n"); \
			skip(); \
		} \
	} while (0)

#endif
