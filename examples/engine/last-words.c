/* last-words PID: wait until a process ends that is not a child of this one, and tell how. */
#include <kymo/engine.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int done[2];

static void print(const char *when, int status)
{
	if (WIFEXITED(status))
		printf("%s: exit status %d\n", when, WEXITSTATUS(status));
	else
		printf("%s: %s\n", when, strsignal(WTERMSIG(status)));
	fflush(stdout);
}

/* Registers and memory are there still. */
static unsigned int on_exit_event(struct kymo_engine *engine, void *data, enum kymo_action action,
				  const struct kymo_exit_report *report)
{
	print("ends", report->status);
	return KYMO_ACTION_RESUME;
}

/* An engine that returns DETACH gets no reap. */
static unsigned int on_death(struct kymo_engine *engine, void *data, const struct kymo_death_report *report)
{
	print("is dead", report->status);
	return KYMO_ACTION_RESUME;
}

static void on_reap(struct kymo_engine *engine, void *data, const struct kymo_reap_report *report)
{
	print("is gone", report->status);
}

/* After the last callback, whatever ended the engine. */
static void on_release(void *data)
{
	if (write(done[1], "", 1) < 0)
		perror("last-words");
}

int main(int argc, char **argv)
{
	static const struct kymo_engine_ops ops = {
		.size = sizeof(ops), .exit = on_exit_event, .death = on_death, .reap = on_reap, .release = on_release
	};
	struct kymo_engine *engine;
	struct kymo_hub *hub;
	char why[256], byte;
	int pid, err;

	if (argc != 2 || sscanf(argv[1], "%d", &pid) != 1)
		return fprintf(stderr, "usage: last-words PID\n"), 2;
	if (pipe(done) || kymo_hub_create(&hub))
		return fprintf(stderr, "last-words: nothing can be traced here\n"), 1;
	err = kymo_engine_attach(hub, pid, KYMO_ATTACH_CREATE, &ops, NULL, &engine);
	if (err) {
		kymo_hub_explain(pid, err, why, sizeof(why));
		fprintf(stderr, "last-words: %s\n", why);
	} else {
		kymo_engine_set_events(engine, KYMO_EVENT_EXIT | KYMO_EVENT_DEATH | KYMO_EVENT_REAP);
		kymo_engine_put(engine); /* the hub has one, until it is reaped */
		printf("waiting\n");
		fflush(stdout);
		if (read(done[0], &byte, 1) < 0)
			perror("last-words");
	}
	kymo_hub_destroy(hub);
	return err ? 1 : 0;
}
