/* Why a thread can't be attached to, as a sentence. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "kymo/engine.h"
#include "procfs/info.h"

static void explain_busy(const struct kymo_process_info *info, pid_t tid, char *text, size_t size)
{
	char comm[16];
	const pid_t tracer = kymo_process_of(info->tracer, comm);

	if (!info->tracer || !*comm)
		snprintf(text, size, "another process was tracing thread %d of process %d; try again", tid, info->tgid);
	else
		snprintf(text, size, "thread %d of process %d is being traced by process %d (%s); let it detach first",
			 tid, info->tgid, tracer, comm);
}

void kymo_hub_explain(pid_t tid, int err, char *text, size_t size)
{
	struct kymo_process_info info;
	struct kymo_error *error = kymo_process_info(tid, &info);

	if (err == -EBUSY && !error)
		explain_busy(&info, tid, text, size);
	else if (err == -ESRCH)
		snprintf(text, size, error ? "there is no process %d" : "process %d is ending", tid);
	else if (err == -EPERM && !error && (info.tgid == getpid()))
		snprintf(text, size, "%d is this process, which cannot trace itself", tid);
	else if (err == -EPERM && !error && info.is_kernels)
		snprintf(text, size, "process %d (%s) is a thread of the kernel, which cannot be traced", tid,
			 info.comm);
	else if (err == -EPERM)
		snprintf(text, size, "process %d does not let you trace it; try as its user or as root%s", tid,
			 access("/proc/sys/kernel/yama/ptrace_scope", R_OK)
				 ? ""
				 : " (kernel.yama.ptrace_scope restricts tracing here)");
	else if (err == -EAGAIN)
		snprintf(text, size,
			 "process %d executes another program, or a thread of it that a tracer lets go has not "
			 "stopped yet; try again",
			 tid);
	else if (err == -EBADR)
		snprintf(text, size,
			 "the size in struct kymo_engine_ops is less than the %zu bytes of this library; set it to "
			 "sizeof(struct kymo_engine_ops), and build with the kymo/engine.h of this library",
			 sizeof(struct kymo_engine_ops));
	else if (err == -E2BIG)
		snprintf(text, size,
			 "the size in struct kymo_engine_ops is more than the %zu bytes of this library; build with "
			 "the kymo/engine.h of this library",
			 sizeof(struct kymo_engine_ops));
	else
		snprintf(text, size, "cannot trace process %d: %s", tid, strerror(err < 0 ? -err : err));
	kymo_error_destroy(error);
}
