/* opens COMMAND [ARGUMENT...]: what files the command opens, as strace -e openat shows it. Other calls don't stop it,
 * and so it ends with us. */
#include <kymo/engine.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* A string may end right before a page that is not there. */
static void read_path(struct kymo_engine *engine, uint64_t address, char *path, size_t size)
{
	size_t n = 0;

	while (n + 1 < size && !kymo_engine_read(engine, address + n, path + n, 1) && path[n])
		n++;
	path[n] = '\0';
}

static unsigned int on_exit_of_call(struct kymo_engine *engine, void *data, enum kymo_action action,
				    const struct kymo_syscall_report *call)
{
	char path[4096];

	if (!call->is_entry_known || call->number != SYS_openat)
		return KYMO_ACTION_RESUME;
	read_path(engine, call->args[1], path, sizeof(path));
	if (call->is_error)
		printf("%s: %s\n", path, strerror((int)-call->result));
	else
		printf("%s: descriptor %lld\n", path, (long long)call->result);
	return KYMO_ACTION_RESUME;
}

int main(int argc, char **argv)
{
	static const struct kymo_engine_ops ops = { .size = sizeof(ops), .syscall_exit = on_exit_of_call };
	uint64_t picked[KYMO_CALL_NUMBERS / 64] = { [SYS_openat / 64] = 1ull << SYS_openat % 64 };
	struct kymo_engine *engine = NULL;
	struct kymo_hub *hub = NULL;
	int err, status = 0;
	pid_t pid;

	if (argc < 2)
		return 2;
	err = kymo_hub_create(&hub);
	if (!err)
		err = kymo_hub_launch_picking(hub, 0, argv + 1, picked, &pid);
	if (!err)
		err = kymo_engine_attach(hub, pid, KYMO_ATTACH_CREATE, &ops, NULL, &engine);
	if (!err)
		err = kymo_engine_set_events(engine, KYMO_EVENTS_SYSCALL | KYMO_MASK_PICKED_CALLS);
	if (!err)
		err = kymo_hub_start(hub, pid);
	if (!err)
		err = kymo_hub_wait(hub, pid, &status);
	kymo_engine_put(engine);
	kymo_hub_destroy(hub);
	if (err)
		fprintf(stderr, "opens: %s: %s\n", argv[1], strerror(-err));
	return err ? 1 : WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
