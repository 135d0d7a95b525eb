#include "gdb/listen.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"

#define SOCKET_NAME "socket"

void kymo_gdb_socket_deinit(struct kymo_gdb_socket *socket)
{
	if (socket->fd >= 0)
		close(socket->fd);
	if (socket->path)
		unlink(socket->path);
	if (socket->folder)
		rmdir(socket->folder);
	free(socket->path);
	free(socket->folder);
	*socket = (struct kymo_gdb_socket){ .fd = -1 };
}

/* ---- a Unix socket --------------------------------------------------------------------------- */

/* A directory that this user owns and no other user may change. In /tmp, only the owner of a file may rename it. */
static bool is_own_directory(const char *path)
{
	kymo_cleanup_close int fd = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat info;

	return fd >= 0 && !fstat(fd, &info) && info.st_uid == geteuid() && !(info.st_mode & 022);
}

/* In the directory itself, whatever its path leads to meanwhile. No other user may enter it, so none connects before
 * the mode is set. */
static int bind_unix(int fd, const char *folder)
{
	kymo_cleanup_close int directory = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct stat info;

	if (directory < 0 || fstat(directory, &info))
		return -errno;
	if (info.st_uid != geteuid() || info.st_mode & 077)
		return -EPERM;
	snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/" SOCKET_NAME, directory);
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) || fchmodat(directory, SOCKET_NAME, 0600, 0) ||
	    listen(fd, 1))
		return -errno;
	return 0;
}

struct kymo_error *kymo_gdb_listen_privately(struct kymo_gdb_socket *ret)
{
	const char *run = getenv("XDG_RUNTIME_DIR");
	struct kymo_gdb_socket it = { .fd = -1 };
	struct kymo_error *error;
	int err;

	if (!run || *run != '/' || strlen(run) > 64 || !is_own_directory(run))
		run = "/tmp";
	if (asprintf(&it.folder, "%s/kymo-gdb-XXXXXX", run) < 0)
		return &kymo_error_no_memory;
	if (!mkdtemp(it.folder)) { /* mode 0700 */
		error = kymo_error_errno(errno, "cannot make the directory %s", it.folder);
		free(it.folder);
		return error;
	}
	if (asprintf(&it.path, "%s/" SOCKET_NAME, it.folder) < 0)
		it.path = NULL;
	it.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	err = !it.path ? -ENOMEM : it.fd < 0 ? -errno : bind_unix(it.fd, it.folder);
	if (err) {
		error = kymo_error_errno(err, "cannot listen at %s", it.path ? it.path : it.folder);
		kymo_gdb_socket_deinit(&it);
		return error;
	}
	*ret = it;
	return NULL;
}

/* ---- TCP ------------------------------------------------------------------------------------- */

/* "tcp6:" and its like, which are taken off. */
static int take_family(const char **text)
{
	static const struct {
		const char *prefix;
		int family;
	} prefixes[] = { { "tcp:", AF_UNSPEC }, { "tcp4:", AF_INET }, { "tcp6:", AF_INET6 } };

	for (size_t i = 0; i < kymo_countof(prefixes); i++) {
		const size_t n = strlen(prefixes[i].prefix);

		if (strncmp(*text, prefixes[i].prefix, n))
			continue;
		*text += n;
		return prefixes[i].family;
	}
	return AF_UNSPEC;
}

/* The host without the brackets of "[::1]". */
static char *bare(char *host)
{
	const size_t n = strlen(host);

	if (n < 2 || host[0] != '[' || host[n - 1] != ']')
		return host;
	host[n - 1] = '\0';
	return host + 1;
}

/* The host, or loopback where none is named. Scripts know the words after the colon from gdbserver. */
static struct kymo_error *resolve(const char *text, struct addrinfo **ret)
{
	struct addrinfo hints = { .ai_family = take_family(&text), .ai_socktype = SOCK_STREAM };
	kymo_cleanup_free char *host = strdup(text);
	const char *port, *name;
	char *colon;
	int err;

	if (!host)
		return &kymo_error_no_memory;
	colon = strrchr(host, ':');
	port = colon ? colon + 1 : host;
	if (colon)
		*colon = '\0';
	if (!*port || strspn(port, "0123456789") != strlen(port) || strlen(port) > 5 || atoi(port) > 65535)
		return kymo_error_create(KYMO_ERROR_USAGE, "'%s' is no PORT or HOST:PORT", text);
	name = colon && *host ? bare(host) : hints.ai_family == AF_INET6 ? "::1" : "127.0.0.1";
	if (hints.ai_family == AF_UNSPEC && !strcmp(name, "localhost"))
		hints.ai_family = AF_INET;
	err = getaddrinfo(name, port, &hints, ret);
	return err ? kymo_error_create(KYMO_ERROR_USAGE, "%s: cannot resolve name: %s", text, gai_strerror(err)) : NULL;
}

static int bind_tcp(int fd, const struct addrinfo *address, int *port_ret)
{
	struct sockaddr_storage bound;
	socklen_t size = sizeof(bound);
	const int on = 1;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, address->ai_addr, address->ai_addrlen) || listen(fd, 1) ||
	    getsockname(fd, (struct sockaddr *)&bound, &size))
		return -errno;
	*port_ret = ntohs(bound.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&bound)->sin6_port
						      : ((struct sockaddr_in *)&bound)->sin_port);
	return 0;
}

struct kymo_error *kymo_gdb_listen_tcp(const char *address, struct kymo_gdb_socket *ret)
{
	struct kymo_gdb_socket it = { .fd = -1 };
	struct addrinfo *info = NULL;
	struct kymo_error *error = resolve(address, &info);
	int err;

	if (error)
		return error;
	it.fd = socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	err = it.fd < 0 ? -errno : bind_tcp(it.fd, info, &it.port);
	freeaddrinfo(info);
	if (err) {
		kymo_gdb_socket_deinit(&it);
		return kymo_error_create(KYMO_ERROR_BUSY, "cannot listen at %s.\nCan't bind address: %s.", address,
					 strerror(-err));
	}
	*ret = it;
	return NULL;
}

/* ---- clients --------------------------------------------------------------------------------- */

/* The directory keeps other users out already; root may be let in. */
static bool is_welcome(int fd)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) && (peer.uid == geteuid() || peer.uid == 0);
}

static void name_peer(const struct sockaddr_storage *address, socklen_t size, char *ret, size_t max)
{
	char host[NI_MAXHOST], port[NI_MAXSERV];

	if ((address->ss_family != AF_INET && address->ss_family != AF_INET6) ||
	    getnameinfo((const struct sockaddr *)address, size, host, sizeof(host), port, sizeof(port),
			NI_NUMERICHOST | NI_NUMERICSERV))
		snprintf(ret, max, "a local client");
	else
		snprintf(ret, max, "%s, port %s", host, port);
}

/* A client whose machine is gone says nothing: the kernel asks, so that threads don't stand for ever. */
static void set_keepalive(int fd)
{
	static const struct {
		int level, name, value;
	} options[] = {
		{ IPPROTO_TCP, TCP_NODELAY, 1 },   { SOL_SOCKET, SO_KEEPALIVE, 1 },
		{ IPPROTO_TCP, TCP_KEEPIDLE, 30 }, { IPPROTO_TCP, TCP_KEEPINTVL, 10 },
		{ IPPROTO_TCP, TCP_KEEPCNT, 3 },   { IPPROTO_TCP, TCP_USER_TIMEOUT, 60000 },
	};

	for (size_t i = 0; i < kymo_countof(options); i++)
		setsockopt(fd, options[i].level, options[i].name, &options[i].value, sizeof(options[i].value));
}

static bool wait_for_client(int fd, int wake)
{
	struct pollfd fds[] = { { .fd = fd, .events = POLLIN }, { .fd = wake, .events = POLLIN } };

	while (!fds[0].revents && !fds[1].revents)
		if (poll(fds, kymo_countof(fds), -1) < 0)
			fds[0].revents = fds[1].revents = 0;
	return fds[0].revents; /* a client that has come first is served, and what it has said is heard */
}

struct kymo_error *kymo_gdb_accept(const struct kymo_gdb_socket *sock, int wake, int *ret, char *peer_ret, size_t size)
{
	for (;;) {
		struct sockaddr_storage address = { .ss_family = AF_UNSPEC };
		socklen_t n = sizeof(address);
		int fd;

		if (!wait_for_client(sock->fd, wake)) {
			*ret = -1;
			return NULL;
		}
		fd = accept4(sock->fd, (struct sockaddr *)&address, &n, SOCK_CLOEXEC);
		if (fd < 0 && (errno == EINTR || errno == ECONNABORTED || errno == EAGAIN))
			continue;
		if (fd < 0)
			return kymo_error_errno(errno, "cannot accept a client");
		if (sock->path && !is_welcome(fd)) {
			close(fd);
			continue;
		}
		if (!sock->path)
			set_keepalive(fd);
		if (peer_ret)
			name_peer(&address, n, peer_ret, size);
		*ret = fd;
		return NULL;
	}
}
