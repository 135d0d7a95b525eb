/* beside PID: count the system calls of a process, until the end of the input, beside other programs that do the same:
 * the first one serves its hub, the others connect to that. It stays until they have gone. */
#include <errno.h>
#include <kymo/engine.h>
#include <stdio.h>

static unsigned int on_entry(struct kymo_engine *engine, void *data, enum kymo_action action,
			     const struct kymo_syscall_report *report)
{
	++*(unsigned long *)data;
	return KYMO_ACTION_RESUME;
}

int main(int argc, char **argv)
{
	static const struct kymo_engine_ops ops = { .size = sizeof(ops), .syscall_entry = on_entry };
	unsigned long calls = 0;
	struct kymo_hub *hub;
	char why[256];
	int pid, err;

	if (argc != 2 || sscanf(argv[1], "%d", &pid) != 1)
		return fprintf(stderr, "usage: beside PID\n"), 2;
	if (kymo_hub_create(&hub))
		return fprintf(stderr, "beside: nothing can be traced here\n"), 1;
	kymo_hub_serve(hub);
	err = kymo_engine_attach_process(hub, pid, 0, &ops, &calls, KYMO_EVENTS_SYSCALL, NULL);
	if (err == -EBUSY) { /* another party has it: another hub, perhaps */
		kymo_hub_destroy(hub);
		hub = NULL;
		if (!kymo_hub_connect(pid, &hub))
			err = kymo_engine_attach_process(hub, pid, 0, &ops, &calls, KYMO_EVENTS_SYSCALL, NULL);
	}
	if (err) {
		kymo_hub_explain(pid, err, why, sizeof(why));
		fprintf(stderr, "beside: %s\n", why);
		kymo_hub_destroy(hub);
		return 1;
	}
	printf("begins\n");
	fflush(stdout);
	while (getchar() != EOF)
		;
	err = kymo_hub_failure(hub);
	if (!err && kymo_hub_clients(hub)) {
		printf("stays for %u\n", kymo_hub_clients(hub));
		fflush(stdout);
		kymo_hub_hand_over(hub, -1, -1);
	}
	kymo_hub_destroy(hub);
	printf("%lu calls%s\n", calls, err ? ", and then the hub was gone" : "");
	return err ? 1 : 0;
}
