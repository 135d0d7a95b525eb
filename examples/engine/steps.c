/* steps COUNT COMMAND [ARGUMENT...]: execute COUNT instructions of the command one by one; then it runs on alone. Says
 * how many different ones they were. */
#include <kymo/engine.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

static long left, n;
static uint64_t *places;

/* Told before the first instruction, as the execve that begins the program has returned, and behind each step. */
static unsigned int on_quiesce(struct kymo_engine *engine, void *data, enum kymo_action action, unsigned int event)
{
	struct user_regs_struct registers;

	if (event == KYMO_EVENT_EXIT)
		left = 0;
	if (event || left == 0)
		return event == KYMO_EVENT_EXEC && left ? KYMO_ACTION_SINGLESTEP : KYMO_ACTION_RESUME;
	if (!kymo_engine_get_registers(engine, &registers))
		places[n++] = registers.rip;
	return --left ? KYMO_ACTION_SINGLESTEP : KYMO_ACTION_DETACH;
}

static int by_address(const void *a, const void *b)
{
	const uint64_t one = *(const uint64_t *)a, other = *(const uint64_t *)b;

	return (one > other) - (one < other);
}

static void print(void)
{
	long different = 0;

	qsort(places, (size_t)n, sizeof(*places), by_address);
	for (long i = 0; i < n; i++)
		different += !i || places[i] != places[i - 1];
	printf("%ld instructions, at %ld places\n", n, different);
}

int main(int argc, char **argv)
{
	static const struct kymo_engine_ops ops = { .size = sizeof(ops), .quiesce = on_quiesce };
	struct kymo_engine *engine = NULL;
	struct kymo_hub *hub = NULL;
	int err, status = 0;
	pid_t pid;

	if (argc < 3)
		return 2;
	left = atol(argv[1]);
	places = left > 0 ? calloc((size_t)left, sizeof(*places)) : NULL;
	if (!places)
		return 2;
	err = kymo_hub_create(&hub);
	if (!err)
		err = kymo_hub_launch(hub, 0, argv + 2, &pid);
	if (!err)
		err = kymo_engine_attach(hub, pid, KYMO_ATTACH_CREATE, &ops, NULL, &engine);
	if (!err)
		err = kymo_engine_set_events(engine, KYMO_EVENT_QUIESCE | KYMO_EVENT_EXEC | KYMO_EVENT_EXIT);
	if (!err)
		err = kymo_hub_start(hub, pid);
	if (!err)
		err = kymo_hub_wait(hub, pid, &status);
	if (!err)
		print();
	kymo_engine_put(engine);
	kymo_hub_destroy(hub);
	if (err)
		fprintf(stderr, "steps: %s: %s\n", argv[2], strerror(-err));
	return err ? 1 : WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
