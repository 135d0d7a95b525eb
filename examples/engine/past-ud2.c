/* past-ud2 COMMAND [ARGUMENT...]: if the command runs into a ud2 instruction, which compilers put into unreachable
 * code, it goes on after it. */
#include <kymo/engine.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

static unsigned int on_signal(struct kymo_engine *engine, void *data, enum kymo_action action,
			      struct kymo_signal_report *report)
{
	struct user_regs_struct registers;
	unsigned char code[2];

	if (report->info.si_signo != SIGILL || kymo_engine_get_registers(engine, &registers) ||
	    kymo_engine_read(engine, registers.rip, code, sizeof(code)) || memcmp(code, "\x0f\x0b", sizeof(code)))
		return KYMO_ACTION_RESUME | report->verdict;
	registers.rip += sizeof(code);
	kymo_engine_set_registers(engine, &registers);
	printf("went past a ud2\n");
	return KYMO_ACTION_RESUME | KYMO_SIGNAL_IGN;
}

int main(int argc, char **argv)
{
	static const struct kymo_engine_ops ops = { .size = sizeof(ops), .signal = on_signal };
	struct kymo_engine *engine = NULL;
	struct kymo_hub *hub = NULL;
	int err, status = 0;
	pid_t pid;

	if (argc < 2)
		return 2;
	err = kymo_hub_create(&hub);
	if (!err)
		err = kymo_hub_launch(hub, 0, argv + 1, &pid);
	if (!err)
		err = kymo_engine_attach(hub, pid, KYMO_ATTACH_CREATE, &ops, NULL, &engine);
	if (!err)
		err = kymo_engine_set_events(engine, KYMO_EVENTS_SIGNAL);
	if (!err)
		err = kymo_hub_start(hub, pid);
	if (!err)
		err = kymo_hub_wait(hub, pid, &status);
	kymo_engine_put(engine);
	kymo_hub_destroy(hub);
	if (err)
		fprintf(stderr, "past-ud2: %s: %s\n", argv[1], strerror(-err));
	return err ? 1 : WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
