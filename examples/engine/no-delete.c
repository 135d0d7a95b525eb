/* no-delete COMMAND [ARGUMENT...]: the command may not remove or rename files; it is told "Operation not permitted".
 * Its children may. */
#include <errno.h>
#include <kymo/engine.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static bool is_forbidden(uint64_t number)
{
	return number == SYS_unlink || number == SYS_unlinkat || number == SYS_rmdir || number == SYS_rename ||
	       number == SYS_renameat || number == SYS_renameat2;
}

static unsigned int on_entry(struct kymo_engine *engine, void *data, enum kymo_action action,
			     const struct kymo_syscall_report *call)
{
	return KYMO_ACTION_RESUME | (is_forbidden(call->number) ? KYMO_SYSCALL_ABORT : KYMO_SYSCALL_RUN);
}

/* A call that is not made returns -ENOSYS, unless an engine changes that here. */
static unsigned int on_exit_of_call(struct kymo_engine *engine, void *data, enum kymo_action action,
				    const struct kymo_syscall_report *call)
{
	if (call->is_aborted)
		kymo_engine_set_result(engine, -EPERM);
	return KYMO_ACTION_RESUME;
}

int main(int argc, char **argv)
{
	static const struct kymo_engine_ops ops = { .size = sizeof(ops),
						    .syscall_entry = on_entry,
						    .syscall_exit = on_exit_of_call };
	struct kymo_engine *engine = NULL;
	struct kymo_hub *hub = NULL;
	int err, status = 0;
	pid_t pid;

	if (argc < 2)
		return 2;
	err = kymo_hub_create(&hub);
	if (!err)
		err = kymo_hub_launch(hub, 0, argv + 1, &pid);
	if (!err)
		err = kymo_engine_attach(hub, pid, KYMO_ATTACH_CREATE, &ops, NULL, &engine);
	if (!err)
		err = kymo_engine_set_events(engine, KYMO_EVENTS_SYSCALL);
	if (!err)
		err = kymo_hub_start(hub, pid);
	if (!err)
		err = kymo_hub_wait(hub, pid, &status);
	kymo_engine_put(engine);
	kymo_hub_destroy(hub);
	if (err)
		fprintf(stderr, "no-delete: %s: %s\n", argv[1], strerror(-err));
	return err ? 1 : WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
