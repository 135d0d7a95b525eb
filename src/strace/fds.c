/*
 * What -yy shows of descriptors: addresses of sockets, numbers of devices, processes of pidfds. Sockets are found by
 * their inode: Internet sockets in the tables of the thread's network namespace. Unix sockets are asked of
 * NETLINK_SOCK_DIAG (sock_diag(7)), which sees kymo's own namespace.
 */
#include "strace/fds.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "strace/state.h"

/* ---- the Internet ---------------------------------------------------------------------------- */

/* "0100007F:1F90", as the tables have it: words in the machine's order. */
static bool read_address(const char *hex, char out[80], bool *is_any_ret)
{
	const char *colon = strchr(hex, ':');
	const bool is_v6 = colon && colon - hex == 32;
	char text[INET6_ADDRSTRLEN];
	uint32_t words[4] = { 0 };
	unsigned int port;

	if (!colon || (!is_v6 && colon - hex != 8) || sscanf(colon, ":%x", &port) != 1)
		return false;
	for (int i = 0; i < (is_v6 ? 4 : 1); i++)
		if (sscanf(hex + 8 * i, "%8x", &words[i]) != 1)
			return false;
	inet_ntop(is_v6 ? AF_INET6 : AF_INET, words, text, sizeof(text));
	snprintf(out, 80, is_v6 ? "[%s]:%u" : "%s:%u", text, port);
	*is_any_ret = !port && !words[0] && !words[1] && !words[2] && !words[3];
	return true;
}

static bool read_row(const char *row, uint64_t inode, struct kymo_line *text)
{
	char local[64], remote[64], from[80], to[80];
	bool is_any, is_listening;
	uint64_t found;

	if (sscanf(row, "%*s %63s %63s %*s %*s %*s %*s %*s %*s %" SCNu64, local, remote, &found) != 3 || found != inode)
		return false;
	if (!read_address(local, from, &is_any) || !read_address(remote, to, &is_listening))
		return false;
	kymo_line_printf(text, is_listening ? "[%s]" : "[%s->%s]", from, to);
	return true;
}

static bool find_in_table(pid_t tid, const char *table, uint64_t inode, struct kymo_line *text)
{
	kymo_cleanup_fclose FILE *file = NULL;
	char path[64], row[512];
	bool found = false;

	snprintf(path, sizeof(path), "/proc/%d/net/%s", tid, table);
	file = fopen(path, "re");
	while (file && !found && fgets(row, sizeof(row), file))
		found = read_row(row, inode, text);
	return found;
}

static const struct {
	const char *protocol, *table;
} tables[] = {
	{ "TCP", "tcp" },          { "TCPv6", "tcp6" },         { "UDP", "udp" }, { "UDPv6", "udp6" },
	{ "UDP-Lite", "udplite" }, { "UDPLITEv6", "udplite6" }, { "RAW", "raw" }, { "RAWv6", "raw6" },
	{ "PING", "icmp" },        { "PINGv6", "icmp6" },
};

/* ---- Unix ------------------------------------------------------------------------------------ */

struct unix_socket {
	char name[sizeof(((struct sockaddr_un *)0)->sun_path)];
	size_t n_name;
	uint32_t peer;
};

static void read_attributes(const struct nlmsghdr *header, struct unix_socket *ret)
{
	const struct unix_diag_msg *message = NLMSG_DATA(header);
	const struct rtattr *attribute = (const struct rtattr *)(message + 1);
	unsigned int left = (unsigned int)(header->nlmsg_len - NLMSG_LENGTH(sizeof(*message)));

	for (; RTA_OK(attribute, left); attribute = RTA_NEXT(attribute, left)) {
		const size_t n = RTA_PAYLOAD(attribute);

		if (attribute->rta_type == UNIX_DIAG_NAME && n <= sizeof(ret->name)) {
			memcpy(ret->name, RTA_DATA(attribute), n);
			ret->n_name = n;
		} else if (attribute->rta_type == UNIX_DIAG_PEER && n == sizeof(ret->peer)) {
			memcpy(&ret->peer, RTA_DATA(attribute), n);
		}
	}
}

static bool ask_for_unix(uint64_t inode, struct unix_socket *ret)
{
	const struct {
		struct nlmsghdr header;
		struct unix_diag_req request;
	} question = {
		{ .nlmsg_len = sizeof(question), .nlmsg_type = SOCK_DIAG_BY_FAMILY, .nlmsg_flags = NLM_F_REQUEST },
		{ .sdiag_family = AF_UNIX,
		  .udiag_ino = (uint32_t)inode,
		  .udiag_states = UINT32_MAX,
		  .udiag_show = UDIAG_SHOW_NAME | UDIAG_SHOW_PEER,
		  .udiag_cookie = { UINT32_MAX, UINT32_MAX } },
	};
	kymo_cleanup_close int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	_Alignas(struct nlmsghdr) char answer[4096];
	const struct nlmsghdr *header = (const struct nlmsghdr *)answer;
	ssize_t n;

	memset(ret, 0, sizeof(*ret));
	if (fd < 0 || send(fd, &question, sizeof(question), 0) != sizeof(question))
		return false;
	n = recv(fd, answer, sizeof(answer), MSG_DONTWAIT);
	if (n < (ssize_t)NLMSG_LENGTH(sizeof(struct unix_diag_msg)) || header->nlmsg_type != SOCK_DIAG_BY_FAMILY ||
	    header->nlmsg_len > (size_t)n)
		return false;
	read_attributes(header, ret);
	return true;
}

static bool put_unix(uint64_t inode, struct kymo_line *text)
{
	struct unix_socket found;

	if (!ask_for_unix(inode, &found) || (!found.peer && !found.n_name))
		return false;
	kymo_line_printf(text, "[%" PRIu64, inode);
	if (found.peer)
		kymo_line_printf(text, "->%u", found.peer);
	if (found.n_name) {
		const bool is_abstract = !found.name[0];

		kymo_line_puts(text, is_abstract ? ",@\"" : ",\"");
		kymo_line_escape(text, found.name + is_abstract,
				 is_abstract ? found.n_name - 1 : strnlen(found.name, found.n_name), "<>");
		kymo_line_puts(text, "\"");
	}
	kymo_line_puts(text, "]");
	return true;
}

/* ---- netlink --------------------------------------------------------------------------------- */

static bool put_netlink(pid_t tid, uint64_t inode, struct kymo_line *text)
{
	static const char *const families[] = {
		"ROUTE",   "UNUSED", "USERSOCK",      "FIREWALL",  "SOCK_DIAG", "NFLOG",  "XFRM",    "SELINUX",
		"ISCSI",   "AUDIT",  "FIB_LOOKUP",    "CONNECTOR", "NETFILTER", "IP6_FW", "DNRTMSG", "KOBJECT_UEVENT",
		"GENERIC", "0x11",   "SCSITRANSPORT", "ECRYPTFS",  "RDMA",      "CRYPTO", "SMC"
	};
	kymo_cleanup_fclose FILE *file = NULL;
	unsigned int family, port;
	char path[64], row[256];
	uint64_t found;

	snprintf(path, sizeof(path), "/proc/%d/net/netlink", tid);
	file = fopen(path, "re");
	while (file && fgets(row, sizeof(row), file)) {
		if (sscanf(row, "%*s %u %u %*s %*s %*s %*s %*s %*s %" SCNu64, &family, &port, &found) != 3 ||
		    found != inode)
			continue;
		if (family < kymo_countof(families))
			kymo_line_printf(text, "[%s:", families[family]);
		else
			kymo_line_printf(text, "[%#x:", family);
		kymo_line_printf(text, "%d]", (int)port);
		return true;
	}
	return false;
}

/* ---- descriptors ----------------------------------------------------------------------------- */

static bool put_socket(pid_t tid, const char *path, uint64_t inode, struct kymo_line *text)
{
	char protocol[64];
	const ssize_t n = getxattr(path, "system.sockprotoname", protocol, sizeof(protocol) - 1);

	if (n <= 0)
		return false;
	protocol[n] = '\0';
	kymo_line_printf(text, "<%s:", protocol);
	for (size_t i = 0; i < kymo_countof(tables); i++)
		if (!strcmp(tables[i].protocol, protocol) && find_in_table(tid, tables[i].table, inode, text))
			return true;
	if (!strncmp(protocol, "UNIX", 4) && put_unix(inode, text))
		return true;
	if (!strcmp(protocol, "NETLINK") && put_netlink(tid, inode, text))
		return true;
	kymo_line_printf(text, "[%" PRIu64 "]", inode);
	return true;
}

static bool put_device(const char *path, const char *link, size_t n, struct kymo_line *text)
{
	struct stat file;

	if (*link != '/' || stat(path, &file) || !(S_ISCHR(file.st_mode) || S_ISBLK(file.st_mode)))
		return false;
	kymo_line_puts(text, "<");
	kymo_line_escape(text, link, n, "<>");
	kymo_line_printf(text, "<%s %u:%u>", S_ISCHR(file.st_mode) ? "char" : "block", major(file.st_rdev),
			 minor(file.st_rdev));
	return true;
}

static bool put_pidfd(pid_t tid, int fd, struct kymo_line *text)
{
	kymo_cleanup_fclose FILE *file = NULL;
	char path[64], row[128];
	int pid = 0;

	snprintf(path, sizeof(path), "/proc/%d/fdinfo/%d", tid, fd);
	file = fopen(path, "re");
	while (file && fgets(row, sizeof(row), file) && sscanf(row, "Pid: %d", &pid) != 1)
		;
	if (pid)
		kymo_line_printf(text, "<pid:%d", pid);
	return pid;
}

bool strace_put_fd(void *context, int fd, const char *link, size_t n, struct kymo_line *text)
{
	const struct strace_thread *thread = context;
	const unsigned int wanted = thread->owner->request->look.fds;
	bool is_there = false;
	uint64_t inode;
	char path[64];

	if (fd < 0)
		return !(wanted & KYMO_STRACE_FD_PATH);
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", thread->tid, fd);
	if (wanted & KYMO_STRACE_FD_SOCKET && sscanf(link, "socket:[%" SCNu64, &inode) == 1)
		is_there = put_socket(thread->tid, path, inode, text);
	else if (wanted & KYMO_STRACE_FD_PIDFD && !strncmp(link, "anon_inode:[pidfd]", n))
		is_there = put_pidfd(thread->tid, fd, text);
	else if (wanted & KYMO_STRACE_FD_DEVICE)
		is_there = put_device(path, link, n, text);
	if (is_there)
		kymo_line_puts(text, ">");
	return is_there || !(wanted & KYMO_STRACE_FD_PATH);
}
