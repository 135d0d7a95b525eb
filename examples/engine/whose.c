/* whose PID: the engines of a process' threads, of all processes: thread, owner, mask. */
#include <errno.h>
#include <kymo/engine.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
	static struct kymo_engine_info infos[1000];
	struct kymo_hub *hub;
	size_t n = 0;
	int pid, err;

	if (argc != 2 || sscanf(argv[1], "%d", &pid) != 1)
		return fprintf(stderr, "usage: whose PID\n"), 2;
	err = kymo_hub_connect(pid, &hub);
	if (!err) {
		err = kymo_hub_list(hub, pid, infos, 1000, &n);
		kymo_hub_destroy(hub);
	}
	if (err) {
		fprintf(stderr, "whose: process %d: %s\n", pid,
			err == -ENOENT ? "nobody traces it, or nobody who lets others in" : strerror(-err));
		return 1;
	}
	for (size_t i = 0; i < n && i < 1000; i++)
		printf("%d %d 0x%x%s\n", infos[i].tid, infos[i].owner, infos[i].events,
		       infos[i].wants == KYMO_ACTION_STOP ? " held" : "");
	return 0;
}
