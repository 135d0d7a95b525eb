/* jobs PID: tell when a process is stopped and continued by job control, until it ends. */
#include <kymo/engine.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int done[2];

static unsigned int on_jctl(struct kymo_engine *engine, void *data, enum kymo_action action,
			    const struct kymo_jctl_report *report)
{
	printf("%d: %s\n", kymo_engine_pid(engine), strsignal(report->signal));
	fflush(stdout);
	return KYMO_ACTION_RESUME;
}

static void on_release(void *data)
{
	if (write(done[1], "", 1) < 0)
		perror("jobs");
}

int main(int argc, char **argv)
{
	static const struct kymo_engine_ops ops = { .size = sizeof(ops), .jctl = on_jctl, .release = on_release };
	struct kymo_engine *engine;
	struct kymo_hub *hub;
	char why[256], byte;
	int pid, err;

	if (argc != 2 || sscanf(argv[1], "%d", &pid) != 1)
		return fprintf(stderr, "usage: jobs PID\n"), 2;
	if (pipe(done) || kymo_hub_create(&hub))
		return fprintf(stderr, "jobs: nothing can be traced here\n"), 1;
	err = kymo_engine_attach(hub, pid, KYMO_ATTACH_CREATE, &ops, NULL, &engine);
	if (err) {
		kymo_hub_explain(pid, err, why, sizeof(why));
		fprintf(stderr, "jobs: %s\n", why);
		kymo_hub_destroy(hub);
		return 1;
	}
	kymo_engine_set_events(engine, KYMO_EVENT_JCTL);
	kymo_engine_put(engine);
	printf("watching\n");
	fflush(stdout);
	if (read(done[0], &byte, 1) < 0)
		perror("jobs");
	kymo_hub_destroy(hub);
	return 0;
}
