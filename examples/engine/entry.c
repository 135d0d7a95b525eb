/*
 * entry COMMAND [ARGUMENT...]: says when the command comes to its entry point, by a breakpoint there. By a debug
 * register it says when the command first writes below its stack pointer then, as a call does.
 */
#include <elf.h>
#include <kymo/engine.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

/* The kernel has put it on the stack of the new program. */
static uint64_t entry_of(pid_t pid)
{
	uint64_t entry = 0;
	char name[64];
	Elf64_auxv_t item;
	FILE *file;

	snprintf(name, sizeof(name), "/proc/%d/auxv", pid);
	file = fopen(name, "r");
	while (file && fread(&item, sizeof(item), 1, file) == 1)
		if (item.a_type == AT_ENTRY)
			entry = item.a_un.a_val;
	if (file)
		fclose(file);
	return entry;
}

static unsigned int on_exec(struct kymo_engine *engine, void *data, enum kymo_action action,
			    const struct kymo_exec_report *report)
{
	int err = kymo_engine_insert_breakpoint(engine, entry_of(kymo_engine_pid(engine)));

	if (err)
		printf("no breakpoint: %s\n", strerror(-err));
	return KYMO_ACTION_RESUME;
}

static unsigned int on_signal(struct kymo_engine *engine, void *data, enum kymo_action action,
			      struct kymo_signal_report *report)
{
	struct user_regs_struct registers;
	unsigned int slot;

	if (report->trap == KYMO_TRAP_BREAKPOINT && !kymo_engine_get_registers(engine, &registers)) {
		printf("at the entry point: %s\n", registers.rip == report->address ? "yes" : "no");
		kymo_engine_remove_breakpoint(engine, report->address);
		if (kymo_engine_watch(engine, KYMO_WATCH_WRITE, (registers.rsp - 8) & ~7ull, 8, &slot))
			printf("no watching\n");
	} else if (report->trap == KYMO_TRAP_WATCH) {
		printf("has written to its stack\n");
		kymo_engine_unwatch(engine, report->slot);
	}
	return KYMO_ACTION_RESUME | report->verdict;
}

int main(int argc, char **argv)
{
	static const struct kymo_engine_ops ops = { .size = sizeof(ops), .exec = on_exec, .signal = on_signal };
	struct kymo_engine *engine = NULL;
	struct kymo_hub *hub = NULL;
	int err, status = 0;
	pid_t pid;

	if (argc < 2)
		return 2;
	setvbuf(stdout, NULL, _IOLBF, 0);
	err = kymo_hub_create(&hub);
	if (!err)
		err = kymo_hub_launch(hub, 0, argv + 1, &pid);
	if (!err)
		err = kymo_engine_attach(hub, pid, KYMO_ATTACH_CREATE | KYMO_ATTACH_BREAKPOINTS, &ops, NULL, &engine);
	if (!err)
		err = kymo_engine_set_events(engine, KYMO_EVENT_EXEC | KYMO_EVENT_SIGNAL);
	if (!err)
		err = kymo_hub_start(hub, pid);
	if (!err)
		err = kymo_hub_wait(hub, pid, &status);
	kymo_engine_put(engine);
	kymo_hub_destroy(hub);
	if (err)
		fprintf(stderr, "entry: %s: %s\n", argv[1], strerror(-err));
	return err ? 1 : WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
