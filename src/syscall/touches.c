/* Whether a call has to do with a file: -P. As in strace's pathtrace.c, a call does that names it, or a descriptor of
 * it, also one in the sets that it waits for. */
#include "syscall/touches.h"

#include <poll.h>
#include <string.h>
#include <sys/param.h>

#include "base/page.h"
#include "syscall/call.h"
#include "syscall/decode.h"
#include "syscall/poll.h"
#include "syscall/table.h"

enum { N_FDS_MAX = 1 << 16, N_AT_ONCE = 64 };

static bool is_path(const struct kymo_syscall_target *target, uint64_t address, const char *path)
{
	const size_t n = strlen(path) + 1;
	kymo_cleanup_free char *read = address ? malloc(n) : NULL;
	size_t got = 0;

	while (read && got < n) {
		const size_t wanted = kymo_page_part(address + got, n - got);

		if (target->read(target->context, address + got, read + got, wanted) < wanted)
			return false;
		got += wanted;
	}
	return read && !memcmp(read, path, n);
}

static bool is_fd(const struct kymo_syscall_target *target, int fd, const char *path)
{
	char link[4096];
	size_t n;

	if (fd < 0 || !target->fd_path)
		return false;
	n = target->fd_path(target->context, fd, link, sizeof(link));
	return n == strlen(path) && !memcmp(link, path, n);
}

/* Elements that can't be read end the list, as they end the call. */
static bool is_in_pollfds(const struct kymo_syscall_target *target, uint64_t address, unsigned n, const char *path)
{
	struct pollfd fds[N_AT_ONCE];

	n = MIN(n, N_FDS_MAX);
	for (unsigned first = 0; address && first < n; first += N_AT_ONCE) {
		const size_t wanted = MIN(n - first, N_AT_ONCE) * sizeof(*fds);
		const size_t got = target->read(target->context, address + first * sizeof(*fds), fds, wanted);

		for (unsigned i = 0; i < got / sizeof(*fds); i++)
			if (is_fd(target, fds[i].fd, path))
				return true;
		if (got < wanted)
			break;
	}
	return false;
}

static bool is_in_fdset(const struct kymo_syscall_target *target, uint64_t address, int n, const char *path)
{
	uint64_t words[N_AT_ONCE];

	n = MIN(n, N_FDS_MAX);
	for (int first = 0; address && first < n; first += N_AT_ONCE * 64) {
		const int here = MIN(n - first, N_AT_ONCE * 64);
		const size_t wanted = (size_t)(here + 63) / 64 * sizeof(*words);

		if (target->read(target->context, address + (unsigned)first / 8, words, wanted) < wanted)
			break;
		for (int fd = 0; fd < here; fd++)
			if ((words[fd / 64] >> (fd % 64) & 1) && is_fd(target, first + fd, path))
				return true;
	}
	return false;
}

static bool touches(const struct kymo_syscall_call *call, const struct kymo_syscall_target *target, unsigned arg,
		    const struct kind *kind, const char *path)
{
	const uint64_t value = call->args[arg];

	if (kind == k_pollfds)
		return is_in_pollfds(target, value, (unsigned)call->args[1], path);
	if (kind == k_fdset)
		return is_in_fdset(target, value, (int)call->args[0], path);
	return ((kind->when & IS_PATH) && is_path(target, value, path)) ||
	       ((kind->when & IS_FD) && is_fd(target, (int)value, path));
}

bool kymo_syscall_touches(const struct kymo_syscall_call *call, const struct kymo_syscall_target *target,
			  const char *path)
{
	const struct syscall_row *row = syscall_row(call->number);

	for (unsigned i = 0; row && i < 6 && row->args[i]; i++)
		if (touches(call, target, i, row->args[i], path))
			return true;
	return false;
}
