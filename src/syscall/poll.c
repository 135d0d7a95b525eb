/* Waiting for descriptors: poll, select, epoll, eventfd. */
#include "syscall/poll.h"

#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/param.h>
#include <sys/syscall.h>

#include "syscall/constants.h"
#include "syscall/decode.h"
#include "syscall/print.h"
#include "syscall/signal.h"
#include "syscall/time.h"

NAMES(poll_events, "POLL???", NAME(POLLIN), NAME(POLLPRI), NAME(POLLOUT), NAME(POLLERR), NAME(POLLHUP), NAME(POLLNVAL),
      NAME(POLLRDNORM), NAME(POLLRDBAND), NAME(POLLWRNORM), NAME(POLLWRBAND), NAME(POLLMSG), NAME(POLLREMOVE),
      NAME(POLLRDHUP));
NAMES(epoll_flags, "EPOLL_???", NAME(EPOLL_CLOEXEC));
NAMES(epoll_operations, "EPOLL_CTL_???", NAME(EPOLL_CTL_ADD), NAME(EPOLL_CTL_DEL), NAME(EPOLL_CTL_MOD));
NAMES(epoll_events, "EPOLL???", NAME(EPOLLIN), NAME(EPOLLPRI), NAME(EPOLLOUT), NAME(EPOLLERR), NAME(EPOLLHUP),
      { "EPOLLNVAL", 0x20 }, NAME(EPOLLRDNORM), NAME(EPOLLRDBAND), NAME(EPOLLWRNORM), NAME(EPOLLWRBAND), NAME(EPOLLMSG),
      NAME(EPOLLRDHUP), NAME(EPOLLEXCLUSIVE), NAME(EPOLLWAKEUP), NAME(EPOLLONESHOT), NAME(EPOLLET));
NAMES(eventfd_flags, "EFD_???", NAME(EFD_SEMAPHORE), NAME(EFD_CLOEXEC), NAME(EFD_NONBLOCK));

enum { N_FDS_MAX = 1 << 16, N_FDS_SHOWN = 1024 }; /* each may have a path after it */

/* ---- poll ------------------------------------------------------------------------------------ */

static void put_pollfd(struct decode *d, const void *bytes)
{
	struct pollfd fd;

	memcpy(&fd, bytes, sizeof(fd));
	puts_(d, "{fd=");
	put_fd(d, fd.fd);
	if (fd.fd >= 0) {
		puts_(d, ", events=");
		put_flags(d, &poll_events, (uint16_t)fd.events);
	}
	puts_(d, "}");
}

PRINT(print_pollfds)
{
	put_array(d, ARG, (unsigned)d->call->args[1], sizeof(struct pollfd), put_pollfd);
}

static void put_left(struct decode *d, uint64_t address, bool is_timespec, const char *before)
{
	char time[16];

	if (!fetch(d, address, time, sizeof(time)))
		return;
	put(d, "%sleft ", before);
	if (is_timespec)
		put_timespec(d, time);
	else
		put_timeval(d, time);
}

static void put_revents(struct decode *d)
{
	const uint64_t address = d->call->args[0], n = (unsigned)d->call->args[1];
	unsigned shown = 0;
	struct pollfd fd;

	puts_(d, "[");
	for (uint64_t i = 0; i < n && fetch(d, address + i * sizeof(fd), &fd, sizeof(fd)); i++) {
		if (!fd.revents)
			continue;
		puts_(d, shown ? ", " : "");
		if (shown++ >= shown_elements(d)) {
			puts_(d, "...");
			break;
		}
		puts_(d, "{fd=");
		put_fd(d, fd.fd);
		puts_(d, ", revents=");
		put_flags(d, &poll_events, (uint16_t)fd.revents);
		puts_(d, "}");
	}
	puts_(d, "]");
}

/* Where memory can't be read at all, as in a trace, the number is all there is. */
static bool is_hidden(struct decode *d, uint64_t address)
{
	return address && !fetch(d, address, &(char){ 0 }, 1);
}

void result_poll(struct decode *d)
{
	put(d, "%" PRId64, d->call->result);
	if (!d->call->result) {
		puts_(d, " (Timeout)");
		return;
	}
	if (is_hidden(d, d->call->args[0]))
		return;
	puts_(d, " (");
	put_revents(d);
	if (d->call->number == SYS_ppoll)
		put_left(d, d->call->args[2], true, ", ");
	puts_(d, ")");
}

/* ---- select ---------------------------------------------------------------------------------- */

/* A set of the first `args[0]` descriptors; false where there is none, or it can't be read. */
static bool read_fdset(struct decode *d, uint64_t address, uint64_t set[N_FDS_MAX / 64], unsigned *n)
{
	const int wanted = (int)d->call->args[0];

	*n = (unsigned)MIN(MAX(wanted, 0), N_FDS_MAX);
	memset(set, 0, N_FDS_MAX / 8);
	return wanted >= 0 && address && (!*n || fetch(d, address, set, (*n + 63) / 64 * 8));
}

/* "[3 5]", with `before`, and nothing at all for an empty one if it is the result. */
static bool put_fdset(struct decode *d, uint64_t address, const char *before)
{
	uint64_t set[N_FDS_MAX / 64];
	unsigned n, shown = 0;

	if (!read_fdset(d, address, set, &n)) {
		if (!before)
			put_address(d, address);
		return false;
	}
	if (!before)
		puts_(d, "[");
	for (unsigned fd = 0; fd < n; fd++) {
		if (!(set[fd / 64] >> (fd % 64) & 1))
			continue;
		puts_(d, shown ? " " : before ? before : "");
		if (shown++ == N_FDS_SHOWN) {
			puts_(d, "...");
			break;
		}
		put_fd(d, (int)fd);
	}
	if (!before || shown)
		puts_(d, "]");
	return shown;
}

PRINT(print_fdset)
{
	put_fdset(d, ARG, NULL);
}

void result_select(struct decode *d)
{
	static const char *const words[3][2] = { { " (in [", ", in [" },
						 { " (out [", ", out [" },
						 { " (except [", ", except [" } };
	bool any = false;
	size_t before;

	put(d, "%" PRId64, d->call->result);
	if (!d->call->result) {
		puts_(d, " (Timeout)");
		return;
	}
	if (is_hidden(d, d->call->args[1]) || is_hidden(d, d->call->args[2]) || is_hidden(d, d->call->args[3]))
		return;
	before = d->text->n;
	for (unsigned i = 0; i < 3; i++)
		any |= put_fdset(d, d->call->args[1 + i], words[i][any]);
	put_left(d, d->call->args[4], d->call->number == SYS_pselect6, any ? ", " : " (");
	puts_(d, d->text->n > before ? ")" : " ()");
}

PRINT(print_pselect_mask)
{
	uint64_t mask[2]; /* address and size */

	if (!fetch(d, ARG, mask, sizeof(mask))) {
		put_address(d, ARG);
		return;
	}
	puts_(d, "{sigmask=");
	put_sigset_at(d, mask[0], mask[1]);
	put(d, ", sigsetsize=%" PRIu64 "}", mask[1]);
}

/* ---- epoll and eventfd ----------------------------------------------------------------------- */

static void put_event(struct decode *d, const void *bytes)
{
	struct epoll_event event;

	memcpy(&event, bytes, sizeof(event));
	puts_(d, "{events=");
	put_flags(d, &epoll_events, event.events);
	put(d, ", data={u32=%u, u64=%" PRIu64 "}}", event.data.u32, (uint64_t)event.data.u64);
}

PRINT(print_event)
{
	struct epoll_event event;

	if ((int)d->call->args[1] == EPOLL_CTL_DEL)
		put_address(d, ARG);
	else if (fetch_or_put(d, ARG, &event, sizeof(event)))
		put_event(d, &event);
}

PRINT(print_events)
{
	if (call_failed(d))
		put_address(d, ARG);
	else
		put_array(d, ARG, (uint64_t)d->call->result, sizeof(struct epoll_event), put_event);
}

const struct kind k_pollfds[1] = { { print_pollfds, NULL, 0 } };
const struct kind k_fdset[1] = { { print_fdset, NULL, 0 } };
const struct kind k_pselect_mask[1] = { { print_pselect_mask, NULL, 0 } };
const struct kind k_epoll_flags[1] = { { print_flags, &epoll_flags, 0 } };
const struct kind k_epoll_op[1] = { { print_name, &epoll_operations, 0 } };
const struct kind k_epoll_event[1] = { { print_event, NULL, 0 } };
const struct kind k_epoll_events[1] = { { print_events, NULL, AT_EXIT } };
const struct kind k_eventfd_flags[1] = { { print_flags, &eventfd_flags, 0 } };
