/* instead OLD NEW COMMAND [ARGUMENT...]: when the command opens file OLD it gets NEW. */
#include <kymo/engine.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define BELOW 1024 /* the stack, and what the ABI lets a function use below it */

static const char *old, *new;

static unsigned int on_entry(struct kymo_engine *engine, void *data, enum kymo_action action,
			     const struct kymo_syscall_report *call)
{
	const size_t size = strlen(old) + 1, new_size = strlen(new) + 1;
	const uint64_t room = call->sp - BELOW - new_size;
	uint64_t args[6];
	char path[4096];

	if (call->number != SYS_openat || size > sizeof(path) || kymo_engine_read(engine, call->args[1], path, size) ||
	    memcmp(path, old, size))
		return KYMO_ACTION_RESUME | KYMO_SYSCALL_RUN;
	memcpy(args, call->args, sizeof(args));
	args[1] = room;
	if (!kymo_engine_write(engine, room, new, new_size))
		kymo_engine_set_syscall(engine, call->number, args);
	return KYMO_ACTION_RESUME | KYMO_SYSCALL_RUN;
}

int main(int argc, char **argv)
{
	static const struct kymo_engine_ops ops = { .size = sizeof(ops), .syscall_entry = on_entry };
	struct kymo_engine *engine = NULL;
	struct kymo_hub *hub = NULL;
	int err, status = 0;
	pid_t pid;

	if (argc < 4)
		return 2;
	old = argv[1];
	new = argv[2];
	err = kymo_hub_create(&hub);
	if (!err)
		err = kymo_hub_launch(hub, 0, argv + 3, &pid);
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
		fprintf(stderr, "instead: %s: %s\n", argv[3], strerror(-err));
	return err ? 1 : WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
