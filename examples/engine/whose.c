/* whose PID: the engines of a process' threads, whoever has them: thread, owner, mask. */
#include <kymo/engine.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
	static struct kymo_engine_info infos[1000];
	pid_t pid = argc > 1 ? atoi(argv[1]) : 0;
	struct kymo_hub *hub;
	size_t n = 0;
	int err = kymo_hub_connect(pid, &hub);

	if (!err) {
		err = kymo_hub_list(hub, pid, infos, 1000, &n);
		kymo_hub_destroy(hub);
	}
	if (err) {
		fprintf(stderr, "whose: %s\n", strerror(-err));
		return 1;
	}
	for (size_t i = 0; i < n && i < 1000; i++)
		printf("%d %d 0x%x%s\n", infos[i].tid, infos[i].owner, infos[i].events, infos[i].wants == KYMO_ACTION_STOP ? " held" : "");
	return 0;
}
