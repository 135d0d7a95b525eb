/* wake TID SIGNAL: end the system call that a thread sleeps in, if it is one that fails with EINTR without a handler,
 * as epoll_wait; with a SIGNAL other than 0, send it that one, as if the kernel had. */
#include <kymo/engine.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

static atomic_bool is_woken;

/* INTERRUPT is done: the thread sees the end of its call when it goes on. */
static unsigned int on_quiesce(struct kymo_engine *engine, void *data, enum kymo_action action, unsigned int event)
{
	is_woken = is_woken || !event;
	return KYMO_ACTION_RESUME;
}

int main(int argc, char **argv)
{
	static const struct kymo_engine_ops ops = { .size = sizeof(ops), .quiesce = on_quiesce };
	siginfo_t info = { .si_code = SI_KERNEL };
	struct kymo_engine *engine;
	struct kymo_hub *hub;
	char why[256];
	int tid, err;

	if (argc != 3 || sscanf(argv[1], "%d", &tid) != 1 || sscanf(argv[2], "%d", &info.si_signo) != 1)
		return fprintf(stderr, "usage: wake TID SIGNAL\n"), 2;
	if (kymo_hub_create(&hub))
		return fprintf(stderr, "wake: nothing can be traced here\n"), 1;
	err = kymo_engine_attach(hub, tid, KYMO_ATTACH_CREATE, &ops, NULL, &engine);
	if (err) {
		kymo_hub_explain(tid, err, why, sizeof(why));
		fprintf(stderr, "wake: %s\n", why);
	} else {
		kymo_engine_set_events(engine, KYMO_EVENT_QUIESCE);
		err = info.si_signo ? kymo_engine_inject(engine, &info)
				    : kymo_engine_control(engine, KYMO_ACTION_INTERRUPT);
		while (!err && !info.si_signo && !is_woken && kymo_engine_tid(engine))
			usleep(1000);
		kymo_engine_put(engine);
	}
	kymo_hub_destroy(hub);
	return err ? 1 : 0;
}
