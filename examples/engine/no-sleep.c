/* no-sleep COMMAND [ARGUMENT...]: the command never waits for time to pass: sleeping is made another call, which gives
 * the processor away. */
#include <kymo/engine.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static unsigned int on_entry(struct kymo_engine *engine, void *data, enum kymo_action action,
			     const struct kymo_syscall_report *call)
{
	static const uint64_t none[6];

	if (call->number == SYS_nanosleep || call->number == SYS_clock_nanosleep)
		kymo_engine_set_syscall(engine, SYS_sched_yield, none);
	return KYMO_ACTION_RESUME | KYMO_SYSCALL_RUN;
}

int main(int argc, char **argv)
{
	static const struct kymo_engine_ops ops = { .size = sizeof(ops), .syscall_entry = on_entry };
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
		err = kymo_engine_set_events(engine, KYMO_EVENT_SYSCALL_ENTRY);
	if (!err)
		err = kymo_hub_start(hub, pid);
	if (!err)
		err = kymo_hub_wait(hub, pid, &status);
	kymo_engine_put(engine);
	kymo_hub_destroy(hub);
	if (err)
		fprintf(stderr, "no-sleep: %s: %s\n", argv[1], strerror(-err));
	return err ? 1 : WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
