#include "gdb/tell.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gdb/breakpoints.h"
#include "gdb/registers.h"
#include "gdb/signals.h"
#include "gdb/thread.h"

bool gdb_is_disabled(const struct kymo_gdb *gdb, const char *name)
{
	const char *at = gdb->options.no_packet;
	const size_t n = strlen(name);

	while (at && *at) {
		const size_t n_word = strcspn(at, ",");

		if (n_word == n && !strncmp(at, name, n))
			return true;
		if (n_word == 7 && !strncmp(at, "threads", 7) &&
		    (!strcmp(name, "vCont") || !strcmp(name, "Tthread") || !strcmp(name, "qC") ||
		     !strcmp(name, "qfThreadInfo")))
			return true;
		at += n_word + (at[n_word] == ',');
	}
	return false;
}

void gdb_say(const struct kymo_gdb *gdb, const char *format, ...)
{
	char sentence[PATH_MAX + 64];
	va_list args;

	if (!gdb->options.say)
		return;
	va_start(args, format);
	vsnprintf(sentence, sizeof(sentence), format, args);
	va_end(args);
	gdb->options.say(gdb->options.data, sentence);
}

static void tell_path(pid_t pid, struct gdb_text *reply)
{
	char link[64], path[PATH_MAX];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/%d/exe", pid);
	n = readlink(link, path, sizeof(path));
	gdb_text_put(reply, "exec:");
	gdb_text_hex(reply, path, n > 0 ? (size_t)n : 0);
	gdb_text_put(reply, ";");
}

static void tell_child(const struct gdb_thread *thread, const char *name, struct gdb_text *reply)
{
	const pid_t child = thread->event.child;

	gdb_text_format(reply, "%s:", name);
	gdb_put_id(thread->gdb, reply, child, child);
	gdb_text_put(reply, ";");
}

static void tell_watch(const struct gdb_thread *thread, struct gdb_text *reply)
{
	if (thread->event.watch == GDB_BREAK_HARDWARE && thread->gdb->has_hwbreak)
		gdb_text_put(reply, "hwbreak:;");
	else if (thread->event.watch != GDB_BREAK_HARDWARE)
		gdb_text_format(reply, "%s:%lx;", thread->event.watch == GDB_WATCH_ACCESS ? "awatch" : "watch",
				thread->event.address);
}

/* Why it has stopped, where that is more than a signal. */
static void tell_reason(const struct gdb_thread *thread, struct gdb_text *reply)
{
	switch (thread->event.kind) {
	case GDB_EVENT_BREAK:
		if (thread->gdb->has_swbreak)
			gdb_text_put(reply, "swbreak:;");
		return;
	case GDB_EVENT_WATCH:
		tell_watch(thread, reply);
		return;
	case GDB_EVENT_FORK:
		tell_child(thread, "fork", reply);
		return;
	case GDB_EVENT_VFORK:
		tell_child(thread, "vfork", reply);
		return;
	case GDB_EVENT_VFORK_DONE:
		gdb_text_put(reply, "vforkdone:;");
		return;
	case GDB_EVENT_EXEC:
		tell_path(thread->process->pid, reply);
		return;
	case GDB_EVENT_ENTRY:
		gdb_text_format(reply, "syscall_entry:%lx;", thread->event.number);
		return;
	case GDB_EVENT_RETURN:
		gdb_text_format(reply, "syscall_return:%lx;", thread->event.number);
		return;
	case GDB_EVENT_CREATED:
		gdb_text_put(reply, "create:;");
		return;
	case GDB_EVENT_NONE:
	case GDB_EVENT_SIGNAL:
	case GDB_EVENT_STEP:
	case GDB_EVENT_INTERRUPT:
		return;
	}
}

void gdb_tell_stop(struct gdb_thread *thread, struct gdb_text *reply)
{
	const int signal = thread->event.kind == GDB_EVENT_NONE ? GDB_SIGNAL_TRAP : gdb_signal_of(thread->event.signal);

	if (gdb_is_disabled(thread->gdb, "T")) {
		gdb_text_format(reply, "S%02x", (unsigned int)signal);
		return;
	}
	gdb_text_format(reply, "T%02x", (unsigned int)signal);
	tell_reason(thread, reply);
	gdb_put_expedited(thread, reply);
	if (gdb_is_disabled(thread->gdb, "Tthread"))
		return;
	gdb_text_put(reply, "thread:");
	gdb_put_id(thread->gdb, reply, thread->process->pid, thread->tid);
	gdb_text_put(reply, ";");
}

void gdb_tell_end(const struct kymo_gdb *gdb, const struct gdb_end *end, struct gdb_text *reply)
{
	const bool is_signal = WIFSIGNALED(end->status);
	const int code = is_signal ? gdb_signal_of(WTERMSIG(end->status)) : WEXITSTATUS(end->status);

	if (end->tid) {
		gdb_text_format(reply, "w%02x;p%x.%x", (unsigned int)WEXITSTATUS(end->status), (unsigned int)end->pid,
				(unsigned int)end->tid);
		return;
	}
	if (gdb->options.says_no_ends)
		; /* as gdbserver has it by stdio */
	else if (is_signal)
		gdb_say(gdb, "Child terminated with signal = 0x%x (%s)", code, strsignal(WTERMSIG(end->status)));
	else
		gdb_say(gdb, "Child exited with status %d", code);
	gdb_text_format(reply, "%c%02x", is_signal ? 'X' : 'W', (unsigned int)code);
	if (gdb->has_multiprocess)
		gdb_text_format(reply, ";process:%x", (unsigned int)end->pid);
}
