/* references PID: how engines are found, told apart, and how long they live. */
#include <errno.h>
#include <kymo/engine.h>
#include <stdio.h>
#include <string.h>

static void on_release(void *data)
{
	printf("%s is released\n", (char *)data);
}

int main(int argc, char **argv)
{
	static const struct kymo_engine_ops ops = { .size = sizeof(ops), .release = on_release };
	static char one[] = "one", other[] = "other";
	struct kymo_engine *engine, *found;
	struct kymo_hub *hub;
	char why[256];
	size_t n = 0;
	int pid, err;

	if (argc != 2 || sscanf(argv[1], "%d", &pid) != 1)
		return fprintf(stderr, "usage: references PID\n"), 2;
	if (kymo_hub_create(&hub))
		return fprintf(stderr, "references: nothing can be traced here\n"), 1;
	if (kymo_engine_attach(hub, pid, 0, NULL, NULL, &found) == -ENOENT)
		printf("there is none yet\n");
	err = kymo_engine_attach(hub, pid, KYMO_ATTACH_CREATE, &ops, one, &engine);
	if (err) {
		kymo_hub_explain(pid, err, why, sizeof(why));
		fprintf(stderr, "references: %s\n", why);
		kymo_hub_destroy(hub);
		return 1;
	}
	if (kymo_engine_attach(hub, pid, KYMO_ATTACH_CREATE | KYMO_ATTACH_EXCLUSIVE | KYMO_ATTACH_MATCH_OPS, &ops,
			       other, &found) == -EEXIST)
		printf("nobody else with these callbacks\n");
	if (!kymo_engine_attach(hub, pid, KYMO_ATTACH_MATCH_DATA, NULL, one, &found))
		printf("%s is found by its data\n", found == engine ? "it" : "another");
	kymo_engine_put(found);
	kymo_engine_attach_process(hub, pid, 0, &ops, other, 0, &n);
	printf("%zu more of all threads\n", n);

	kymo_engine_get(engine); /* a second reference of ours */
	printf("%zu detached\n", kymo_engine_detach_all(hub, &ops, one));
	kymo_engine_put(engine);
	printf("detached, and there: %s\n", kymo_engine_tid(engine) ? "attached" : "of no thread");
	kymo_engine_put(engine); /* our last one; the hub may have one a moment longer */
	kymo_hub_destroy(hub);
	return 0;
}
