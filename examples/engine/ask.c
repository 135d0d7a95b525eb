/* ask COMMAND [ARGUMENT...]: before a signal ends the command, the user is asked: "y" lets it, a number is another
 * signal instead, all else takes it away. */
#include <kymo/engine.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Answering takes long, and a callback must not: it has the thread held, and leaves the rest to main(). */
static unsigned int on_signal(struct kymo_engine *engine, void *data, enum kymo_action action,
			      struct kymo_signal_report *report)
{
	if (report->kind != KYMO_EVENT_SIGNAL_TERM)
		return KYMO_ACTION_RESUME | report->verdict;
	write(*(int *)data, &report->info.si_signo, sizeof(int));
	return KYMO_ACTION_STOP | report->verdict;
}

static void on_reap(struct kymo_engine *engine, void *data, const struct kymo_reap_report *report)
{
	close(*(int *)data);
}

static int ask(struct kymo_engine *engine, int number)
{
	siginfo_t info = { .si_code = SI_KERNEL };
	struct kymo_examiner examiner;
	char answer[32] = "";
	int err;

	printf("%s? ", strsignal(number));
	fflush(stdout);
	fgets(answer, sizeof(answer), stdin);
	kymo_engine_barrier(engine); /* its answer holds then */
	err = kymo_engine_prepare_examine(engine, &examiner);
	info.si_signo = atoi(answer);
	if (!err && *answer != 'y')
		err = kymo_engine_set_signal(engine, info.si_signo, &info);
	kymo_engine_control(engine, KYMO_ACTION_RESUME);
	return err;
}

int main(int argc, char **argv)
{
	static const struct kymo_engine_ops ops = { .size = sizeof(ops), .signal = on_signal, .reap = on_reap };
	struct kymo_engine *engine = NULL;
	struct kymo_hub *hub = NULL;
	int err, number, status = 0, ends[2];
	pid_t pid;

	if (argc < 2 || pipe(ends))
		return 2;
	err = kymo_hub_create(&hub);
	if (!err)
		err = kymo_hub_launch(hub, 0, argv + 1, &pid);
	if (!err)
		err = kymo_engine_attach(hub, pid, KYMO_ATTACH_CREATE, &ops, &ends[1], &engine);
	if (!err)
		err = kymo_engine_set_events(engine, KYMO_EVENTS_SIGNAL | KYMO_EVENT_REAP);
	if (!err)
		err = kymo_hub_start(hub, pid);
	while (!err && read(ends[0], &number, sizeof(number)) == sizeof(number))
		err = ask(engine, number);
	if (!err)
		err = kymo_hub_wait(hub, pid, &status);
	kymo_engine_put(engine);
	kymo_hub_destroy(hub);
	if (err)
		fprintf(stderr, "ask: %s: %s\n", argv[1], strerror(-err));
	return err ? 1 : WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
