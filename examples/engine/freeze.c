/* freeze PID: hold all threads of a process, show where they stand, and let them run on at the end of the input. No
 * process is told of it, unlike SIGSTOP. */
#include <dirent.h>
#include <errno.h>
#include <kymo/engine.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const struct kymo_engine_ops ops = { .size = sizeof(ops) }; /* asks for no events */

/* STOP takes effect some time; then registers and memory are steady, if `finish` says so. */
static void hold(struct kymo_engine *engine)
{
	struct user_regs_struct registers;
	struct kymo_examiner examiner;
	int err = kymo_engine_control(engine, KYMO_ACTION_STOP);

	while (!err || err == -EINPROGRESS || err == -EAGAIN) {
		err = kymo_engine_prepare_examine(engine, &examiner);
		if (!err)
			err = kymo_engine_get_registers(engine, &registers);
		if (!err)
			err = kymo_engine_finish_examine(engine, &examiner);
		if (!err)
			break;
		usleep(1000);
	}
	if (err)
		printf("%d has ended\n", kymo_engine_tid(engine));
	else
		printf("%d stands at 0x%llx\n", kymo_engine_tid(engine), registers.rip);
}

int main(int argc, char **argv)
{
	struct kymo_engine *engine;
	struct dirent *entry;
	struct kymo_hub *hub;
	char path[64], why[256];
	int pid, err;
	DIR *tasks;

	if (argc != 2 || sscanf(argv[1], "%d", &pid) != 1)
		return fprintf(stderr, "usage: freeze PID\n"), 2;
	if (kymo_hub_create(&hub))
		return fprintf(stderr, "freeze: nothing can be traced here\n"), 1;
	err = kymo_engine_attach_process(hub, pid, 0, &ops, NULL, 0, NULL);
	if (err) {
		kymo_hub_explain(pid, err, why, sizeof(why));
		fprintf(stderr, "freeze: %s\n", why);
		kymo_hub_destroy(hub);
		return 1;
	}
	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	tasks = opendir(path);
	while (tasks && (entry = readdir(tasks)))
		if (!kymo_engine_attach(hub, atoi(entry->d_name), KYMO_ATTACH_MATCH_OPS, &ops, NULL, &engine)) {
			hold(engine);
			kymo_engine_put(engine);
		}
	if (tasks)
		closedir(tasks);
	printf("all are held\n");
	fflush(stdout);
	while (getchar() != EOF)
		;
	kymo_engine_detach_all(hub, &ops, NULL); /* they are no longer held */
	kymo_hub_destroy(hub);
	return 0;
}
