/* Vectors of buffers, and the messages that are made of them. */
#include "syscall/iovec.h"

#include <inttypes.h>
#include <string.h>
#include <sys/param.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "syscall/address.h"
#include "syscall/constants.h"
#include "syscall/control.h"
#include "syscall/names.h"
#include "syscall/print.h"
#include "syscall/socket.h"
#include "syscall/time.h"

enum { UNKNOWN = -1 };

NAMES(message_flags, "MSG_???", { "MSG_OOB", 1 }, { "MSG_PEEK", 2 }, { "MSG_DONTROUTE", 4 }, { "MSG_CTRUNC", 8 },
      { "MSG_PROBE", 0x10 }, { "MSG_TRUNC", 0x20 }, { "MSG_DONTWAIT", 0x40 }, { "MSG_EOR", 0x80 },
      { "MSG_WAITALL", 0x100 }, { "MSG_FIN", 0x200 }, { "MSG_SYN", 0x400 }, { "MSG_CONFIRM", 0x800 },
      { "MSG_RST", 0x1000 }, { "MSG_ERRQUEUE", 0x2000 }, { "MSG_NOSIGNAL", 0x4000 }, { "MSG_MORE", 0x8000 },
      { "MSG_WAITFORONE", 0x10000 }, { "MSG_SENDPAGE_NOTLAST", 0x20000 }, { "MSG_BATCH", 0x40000 },
      { "MSG_NO_SHARED_FRAGS", 0x80000 }, { "MSG_ZEROCOPY", 0x4000000 }, { "MSG_FASTOPEN", 0x20000000 },
      { "MSG_CMSG_CLOEXEC", 0x40000000 }, { "MSG_CMSG_COMPAT", 0x80000000 });

/* ---- iovec ----------------------------------------------------------------------------------- */

void put_iovec(struct decode *d, uint64_t address, uint64_t n, uint64_t limit, bool with_data)
{
	struct iovec iov;

	if (!address || (n && !fetch(d, address, &iov, sizeof(iov)))) {
		put_address(d, address);
		return;
	}
	puts_(d, "[");
	for (uint64_t i = 0; i < n; i++) {
		puts_(d, i ? ", " : "");
		if (!fetch(d, address + i * sizeof(iov), &iov, sizeof(iov))) {
			put(d, "... /* 0x%" PRIx64 " */", address + i * sizeof(iov));
			break;
		}
		if (i >= shown_elements(d)) {
			puts_(d, "...");
			break;
		}
		puts_(d, "{iov_base=");
		if (with_data)
			put_bytes(d, (uint64_t)iov.iov_base, MIN(limit, iov.iov_len));
		else
			put_address(d, (uint64_t)iov.iov_base);
		put(d, ", iov_len=%zu}", iov.iov_len);
		limit -= limit == UINT64_MAX ? 0 : MIN(limit, iov.iov_len);
	}
	puts_(d, "]");
}

PRINT(print_iovec_in)
{
	put_iovec(d, ARG, (unsigned)d->call->args[arg + 1], UINT64_MAX, true);
}
PRINT(print_iovec_plain)
{
	put_iovec(d, ARG, d->call->args[arg + 1], 0, false);
}

PRINT(print_iovec_out)
{
	put_iovec(d, ARG, d->call->args[arg + 1], (uint64_t)d->call->result, !call_failed(d));
}

/* ---- messages -------------------------------------------------------------------------------- */

/* `name_size` is what the caller said before the call; the kernel writes what it is. */
static void put_message(struct decode *d, const struct msghdr *m, int name_size, uint64_t limit)
{
	puts_(d, "{msg_name=");
	put_sockaddr(d, (uint64_t)m->msg_name, (uint64_t)MAX((int)MIN(m->msg_namelen, (unsigned)name_size), 0));
	put(d, ", msg_namelen=%d", name_size);
	if ((int)m->msg_namelen != name_size)
		put(d, " => %d", (int)m->msg_namelen);
	puts_(d, ", msg_iov=");
	put_iovec(d, (uint64_t)m->msg_iov, m->msg_iovlen, limit, true);
	put(d, ", msg_iovlen=%zu", m->msg_iovlen);
	if (m->msg_controllen) {
		puts_(d, ", msg_control=");
		put_control(d, (uint64_t)m->msg_control, m->msg_controllen);
	}
	put(d, ", msg_controllen=%zu, msg_flags=", m->msg_controllen);
	put_flags(d, &message_flags, (unsigned)m->msg_flags);
	puts_(d, "}");
}

PRINT(print_message_in)
{
	struct msghdr m;

	if (fetch_or_put(d, ARG, &m, sizeof(m)))
		put_message(d, &m, (int)m.msg_namelen, UINT64_MAX);
}

PRINT(print_message_out)
{
	struct msghdr m;
	const bool there = fetch(d, ARG, &m, sizeof(m));

	if (!d->is_leaving)
		d->call->saved[0] = there ? m.msg_namelen : 0;
	else if (!there)
		put_address(d, ARG);
	else if (call_failed(d))
		put(d, "{msg_namelen=%d}", (int)m.msg_namelen);
	else
		put_message(d, &m, (int)d->call->saved[0], (uint64_t)d->call->result);
}

/* `name_sizes` are those that the caller said, of the first ones, where they are known; or NULL. */
static void put_messages(struct decode *d, uint64_t address, uint64_t n, bool with_length, const int32_t *name_sizes)
{
	struct mmsghdr m;

	if (!address || (n && !fetch(d, address, &m, sizeof(m)))) {
		put_address(d, address);
		return;
	}
	puts_(d, "[");
	for (uint64_t i = 0; i < n; i++) {
		const uint64_t at = address + i * sizeof(m);
		int name_size;

		puts_(d, i ? ", " : "");
		if (!fetch(d, at, &m, sizeof(m))) {
			put(d, "... /* 0x%" PRIx64 " */", at);
			break;
		}
		if (i >= shown_elements(d)) {
			puts_(d, "...");
			break;
		}
		name_size = name_sizes && i < KYMO_SYSCALL_NAME_SIZES ? name_sizes[i] : UNKNOWN;
		puts_(d, "{msg_hdr=");
		put_message(d, &m.msg_hdr, name_size == UNKNOWN ? (int)m.msg_hdr.msg_namelen : name_size,
			    with_length ? m.msg_len : UINT64_MAX);
		if (with_length)
			put(d, ", msg_len=%u", m.msg_len);
		puts_(d, "}");
	}
	puts_(d, "]");
}

/* All were given; as many were sent as the call returns, and these have their length. */
PRINT(print_messages_in)
{
	if (call_failed(d))
		put_messages(d, ARG, (unsigned)d->call->args[arg + 1], false, NULL);
	else
		put_messages(d, ARG, (uint64_t)d->call->result, true, NULL);
}

/* The kernel writes how long each name is over how much room there was. */
static void save_name_sizes(struct decode *d, uint64_t address, uint64_t n)
{
	struct mmsghdr m;

	for (uint64_t i = 0; i < MIN(n, KYMO_SYSCALL_NAME_SIZES); i++) {
		const bool there = fetch(d, address + i * sizeof(m), &m, sizeof(m));

		d->call->name_sizes[i] = there ? (int32_t)m.msg_hdr.msg_namelen : UNKNOWN;
	}
}

PRINT(print_messages_out)
{
	if (!d->is_leaving)
		save_name_sizes(d, ARG, (unsigned)d->call->args[arg + 1]);
	else if (call_failed(d))
		put_address(d, ARG);
	else
		put_messages(d, ARG, (uint64_t)d->call->result, true, d->call->name_sizes);
}

/* The call writes what is left where it found the limit. */
PRINT(print_receive_limit)
{
	if (!d->is_leaving)
		d->call->saved[1] = fetch(d, ARG, &d->call->saved[0], sizeof(uint64_t)) &&
						    fetch(d, ARG + 8, &d->call->saved[1], sizeof(uint64_t))
					    ? d->call->saved[1]
					    : UINT64_MAX;
	else if (d->call->saved[1] == UINT64_MAX)
		put_address(d, ARG);
	else
		put_timespec(d, d->call->saved);
}

const struct kind k_iovec_in[1] = { { print_iovec_in, NULL, 0 } };
const struct kind k_iovec_out[1] = { { print_iovec_out, NULL, AT_EXIT } };
const struct kind k_iovec_plain[1] = { { print_iovec_plain, NULL, 0 } };
const struct kind k_msg_in[1] = { { print_message_in, NULL, 0 } };
const struct kind k_msg_out[1] = { { print_message_out, NULL, AT_EXIT | LOOKS_AT_ENTRY } };
const struct kind k_mmsg_in[1] = { { print_messages_in, NULL, AT_EXIT } };
const struct kind k_mmsg_out[1] = { { print_messages_out, NULL, AT_EXIT | LOOKS_AT_ENTRY } };
const struct kind k_receive_limit[1] = { { print_receive_limit, NULL, AT_EXIT | LOOKS_AT_ENTRY } };
const struct kind k_msg_flags[1] = { { print_flags, &message_flags, 0 } };

void result_recvmmsg(struct decode *d)
{
	char time[16];

	put(d, "%" PRId64, d->call->result);
	if (!d->call->result) {
		puts_(d, " (Timeout)");
	} else if (fetch(d, d->call->args[4], time, sizeof(time))) {
		puts_(d, " (left ");
		put_timespec(d, time);
		puts_(d, ")");
	}
}
