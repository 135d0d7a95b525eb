/* Where hubs are found: a socket each, in a directory of their user's. */
#ifndef KYMO_HUB_REMOTE_SOCKET_H
#define KYMO_HUB_REMOTE_SOCKET_H

#include <sys/types.h>

struct hub_socket {
	int socket; /* that listens */
	int directory;
	char name[32]; /* in it */
};

/* A socket for the hub whose thread is `tid`. A negative errno. */
int hub_socket_open(pid_t tid, struct hub_socket *ret);
void hub_socket_close(struct hub_socket *listener);

/* A socket that is connected to the hub whose thread is `tid`. -ENOENT: that process serves no clients; -EPERM:
 * the socket is another user's, or in a directory that others can enter; -EAGAIN: too many processes are about to
 * connect. */
int hub_socket_dial(pid_t tid, int *ret);

/* Whether the process at the other end is this user's, or one of the two is root's. `pid` (0: any) is its
 * expected id. */
int hub_socket_check_peer(int socket, pid_t pid);

#endif
