#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "kymo/engine.h"
#include "proc/launch.h"
#include "proc/reach.h"
#include "procfs/info.h"

enum { AGAIN_TRIES = 100, JOIN_TRIES = 10, RIGHTS_TRIES = 3, HUB_TRIES = 200 /* while it ends */, NAP_NS = 20000000 };

/* Again, where the process has become another program meanwhile. */
static int attach_reached(const struct kymo_reach *reach, pid_t *busy_ret)
{
	int err = reach->attach(reach->data, busy_ret);

	for (int i = 0; i < AGAIN_TRIES && err == -EAGAIN && !reach->is_given_up(reach->data); i++) {
		nanosleep(&(struct timespec){ 0, NAP_NS }, NULL);
		err = reach->attach(reach->data, busy_ret);
	}
	return err;
}

int kymo_hub_reach(const struct kymo_reach *reach)
{
	pid_t busy;
	int err, why, n_refusals = 0;
	bool is_in;

	for (int i = 1;; i++) {
		err = reach->open(reach->data);
		if (!err)
			err = attach_reached(reach, &busy);
		if (err != -EBUSY)
			return err;
		reach->close(reach->data);
		why = kymo_hub_connect(busy, reach->hub);
		is_in = !why;
		if (is_in)
			why = attach_reached(reach, &busy);
		if (!why)
			return 0;
		/* The hub asks for what the kernel would ask for. It also refuses where it lets the process go just
		 * then. */
		if (is_in && why == -EPERM && ++n_refusals == RIGHTS_TRIES)
			return why;
		reach->close(reach->data);
		if (i >= (why == -EPIPE ? HUB_TRIES : JOIN_TRIES) || reach->is_given_up(reach->data) ||
		    (!is_in && why == -EPERM) || why == -EPROTO || why == -ETIMEDOUT)
			return is_in && why == -EPERM ? why : err;
		nanosleep(&(struct timespec){ 0, NAP_NS }, NULL);
	}
}

struct kymo_error *kymo_trace_error(pid_t pid, int err)
{
	char why[256];

	if (err == -EPERM || err == -EBUSY || err == -EAGAIN) {
		kymo_hub_explain(pid, err, why, sizeof(why));
		return kymo_error_create(err == -EPERM ? KYMO_ERROR_PERMISSION : KYMO_ERROR_BUSY,
					 "cannot trace process %d: %s", pid, why);
	}
	return kymo_error_errno(err, "cannot trace process %d", pid);
}

struct kymo_error *kymo_begin_error(int err)
{
	struct kymo_process_info self;
	struct kymo_error *error;
	char comm[16];
	pid_t tracer;

	if (err != -EPERM)
		return kymo_error_errno(err, "cannot begin to trace");
	error = kymo_process_info(gettid(), &self);
	if (error)
		return error;
	if (!self.tracer)
		return kymo_error_create(KYMO_ERROR_PERMISSION,
					 "cannot begin to trace: nothing may be traced from here; a container's "
					 "seccomp filter or a security module forbids it");
	tracer = kymo_process_of(self.tracer, comm);
	return kymo_error_create(KYMO_ERROR_PERMISSION,
				 "cannot begin to trace: process %d (%s) traces this one, with what it starts; %s",
				 tracer, comm,
				 strcmp(comm, "kymo") ? "let it detach first"
						      : "record it with --no-follow, as a recording follows all that "
							"its command starts, or trace from outside");
}
