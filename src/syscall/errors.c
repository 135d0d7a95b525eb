/* Errors of system calls: those that programs see, and those within the kernel. */
#include "syscall/errors.h"

#include <string.h>

#include "syscall/call.h"
#include "syscall/decode.h"
#include "syscall/line.h"

/* Errors within the kernel: a tracer sees them, programs do not. */
static const struct {
	int number;
	const char *name, *sentence;
} restarts[] = {
	{ 512, "ERESTARTSYS", "To be restarted if SA_RESTART is set" },
	{ 513, "ERESTARTNOINTR", "To be restarted" },
	{ 514, "ERESTARTNOHAND", "To be restarted if no handler" },
	{ 516, "ERESTART_RESTARTBLOCK", "Interrupted by signal" },
};

const char *kymo_syscall_errno(int number)
{
	for (size_t i = 0; i < kymo_countof(restarts); i++)
		if (restarts[i].number == number)
			return restarts[i].name;
	return strerrorname_np(number);
}

bool kymo_syscall_failed(const struct kymo_syscall_call *call)
{
	return call->result < 0 && call->result >= -4095;
}

void syscall_put_error(struct kymo_line *text, int number)
{
	const char *name = strerrorname_np(number);

	for (size_t i = 0; i < kymo_countof(restarts); i++)
		if (restarts[i].number == number) {
			kymo_line_printf(text, "? %s (%s)", restarts[i].name, restarts[i].sentence);
			return;
		}
	if (name)
		kymo_line_printf(text, "-1 %s (%s)", name, strerrordesc_np(number));
	else
		kymo_line_printf(text, "-1 (errno %d)", number);
}
