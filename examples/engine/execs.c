/* execs COMMAND [ARGUMENT...]: what programs the command and all that it starts execute. The death of this process
 * kills all of them: KYMO_LAUNCH_EXITKILL. */
#include <kymo/engine.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define EVENTS (KYMO_EVENT_CLONE | KYMO_EVENT_EXEC)

static const struct kymo_engine_ops ops;

/* The child has not run yet, and runs on when all engines have answered. */
static unsigned int on_clone(struct kymo_engine *engine, void *hub, enum kymo_action action,
			     const struct kymo_clone_report *report)
{
	struct kymo_engine *child;

	if (!kymo_engine_attach(hub, report->child, KYMO_ATTACH_CREATE, &ops, hub, &child)) {
		kymo_engine_set_events(child, EVENTS);
		kymo_engine_put(child);
	}
	return KYMO_ACTION_RESUME;
}

static unsigned int on_exec(struct kymo_engine *engine, void *hub, enum kymo_action action,
			    const struct kymo_exec_report *report)
{
	char link[64], program[4096];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/%d/exe", kymo_engine_pid(engine));
	n = readlink(link, program, sizeof(program));
	printf("%d: %.*s\n", kymo_engine_pid(engine), n < 0 ? 0 : (int)n, program);
	fflush(stdout);
	return KYMO_ACTION_RESUME;
}

static const struct kymo_engine_ops ops = { .size = sizeof(ops), .clone = on_clone, .exec = on_exec };

int main(int argc, char **argv)
{
	struct kymo_engine *engine = NULL;
	struct kymo_hub *hub = NULL;
	int err, status = 0;
	pid_t pid;

	if (argc < 2)
		return 2;
	err = kymo_hub_create(&hub);
	if (!err)
		err = kymo_hub_launch(hub, KYMO_LAUNCH_EXITKILL, argv + 1, &pid);
	if (!err)
		err = kymo_engine_attach(hub, pid, KYMO_ATTACH_CREATE, &ops, hub, &engine);
	if (!err)
		err = kymo_engine_set_events(engine, EVENTS);
	if (!err)
		err = kymo_hub_start(hub, pid);
	if (!err)
		err = kymo_hub_wait(hub, pid, &status);
	kymo_engine_put(engine);
	kymo_hub_destroy(hub);
	if (err)
		fprintf(stderr, "execs: %s: %s\n", argv[1], strerror(-err));
	return err ? 1 : WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
