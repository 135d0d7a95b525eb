/* Sockets for clients. */
#ifndef KYMO_GDB_LISTEN_H
#define KYMO_GDB_LISTEN_H

#include <stddef.h>

#include "base/error.h"

struct kymo_gdb_socket {
	int fd;
	int port;            /* of TCP; 0: a Unix socket */
	char *path, *folder; /* of a Unix socket, which are removed with it */
};

/* A Unix socket in a directory of its own, for this user alone. */
struct kymo_error *kymo_gdb_listen_privately(struct kymo_gdb_socket *ret);

/* TCP: "PORT", ":PORT" and "localhost:PORT" listen on loopback, "HOST:PORT" where that host is; 0 is any port.
 * "tcp4:" and "tcp6:" before it choose the protocol; "[::1]" is a host. */
struct kymo_error *kymo_gdb_listen_tcp(const char *address, struct kymo_gdb_socket *ret);
void kymo_gdb_socket_deinit(struct kymo_gdb_socket *socket);

/* The next client; of a Unix socket, of this user or root. `wake` (may be -1) ends the wait: -1 in `ret`. The peer's
 * name is for messages, where it is wanted. */
struct kymo_error *kymo_gdb_accept(const struct kymo_gdb_socket *socket, int wake, int *ret, char *peer_ret,
				   size_t size);

#endif
