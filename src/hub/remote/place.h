/* Where hubs are found: a socket each, in a directory of their user's. */
#ifndef KYMO_HUB_REMOTE_PLACE_H
#define KYMO_HUB_REMOTE_PLACE_H

#include <sys/types.h>

struct hub_place {
	int socket; /* that listens */
	int directory;
	char name[32]; /* in it */
};

/* A socket for the hub whose thread is `tid`. A negative errno. */
int hub_place_open(pid_t tid, struct hub_place *ret);
void hub_place_close(struct hub_place *place);

/* A socket that is connected to the hub whose thread is `tid`. -ENOENT: it serves nobody; -EPERM: it is not ours to
 * use, or not what it seems; -EAGAIN: too many want to. */
int hub_place_dial(pid_t tid, int *ret);

/* Whether the process at the other end is of this user, or one of us two is root's. `pid` (0: any) is who it should be.
 */
int hub_place_check_peer(int socket, pid_t pid);

#endif
