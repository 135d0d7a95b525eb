/* rate PID N: count the system calls of a process' first thread until there were N; then leave it, by the book. */
#include <errno.h>
#include <kymo/engine.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

static unsigned int on_entry(struct kymo_engine *engine, void *n, enum kymo_action action,
			     const struct kymo_syscall_report *call)
{
	++*(_Atomic long *)n;
	return KYMO_ACTION_RESUME | KYMO_SYSCALL_RUN;
}

int main(int argc, char **argv)
{
	static const struct kymo_engine_ops ops = { .size = sizeof(ops), .syscall_entry = on_entry };
	_Atomic long n = 0; /* on the stack: no callback may come when main() is left */
	struct kymo_engine *engine;
	struct kymo_hub *hub;
	long wanted, then;
	char why[256];
	int pid, err;

	if (argc != 3 || sscanf(argv[1], "%d", &pid) != 1 || sscanf(argv[2], "%ld", &wanted) != 1)
		return fprintf(stderr, "usage: rate PID N\n"), 2;
	if (kymo_hub_create(&hub))
		return fprintf(stderr, "rate: nothing can be traced here\n"), 1;
	err = kymo_engine_attach(hub, pid, KYMO_ATTACH_CREATE, &ops, &n, &engine);
	if (err) {
		kymo_hub_explain(pid, err, why, sizeof(why));
		fprintf(stderr, "rate: %s\n", why);
		kymo_hub_destroy(hub);
		return 1;
	}
	kymo_engine_set_events(engine, KYMO_EVENT_SYSCALL_ENTRY);
	while (n < wanted && kymo_engine_tid(engine))
		usleep(1000);

	/* No more of these. -EINPROGRESS: one is being told just now, and barrier waits for it. */
	err = kymo_engine_set_events(engine, 0);
	if (err == -EINPROGRESS)
		err = kymo_engine_barrier(engine);
	then = n;
	usleep(10000);
	printf("%s calls, and %s later\n", then >= wanted ? "enough" : "too few", n == then ? "none" : "some");

	err = kymo_engine_control(engine, KYMO_ACTION_DETACH);
	printf("detach: %s\n", err == 0 || err == -EINPROGRESS ? "done" : "gone before");
	printf("barrier: %s\n", kymo_engine_barrier(engine) == -ESRCH ? "nothing comes any more" : "?");
	kymo_engine_put(engine);
	kymo_hub_destroy(hub);
	return 0;
}
