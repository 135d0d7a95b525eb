/* Control messages: what sendmsg and recvmsg carry beside the data. */
#include "syscall/control.h"

#include <inttypes.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/param.h>
#include <sys/socket.h>
#include <time.h>
#include <linux/errqueue.h>

#include "syscall/address.h"
#include "syscall/constants.h"
#include "syscall/line.h"
#include "syscall/print.h"
#include "syscall/socket.h"
#include "syscall/sockopt.h"
#include "syscall/time.h"

enum {
	CONTROL_MAX = 128 * 1024, /* net.core.optmem_max as the kernel has it: more is refused */
	LABEL_MAX = 4096,
	CMSG_SECURITY = 3,
};

NAMES(socket_messages, "SCM_???", NAME(SCM_RIGHTS), NAME(SCM_CREDENTIALS), { "SCM_SECURITY", 3 },
      { "SO_TIMESTAMP_OLD", 29 }, { "SO_TIMESTAMPNS_OLD", 35 }, { "SO_TIMESTAMPING_OLD", 37 }, { "SO_WIFI_STATUS", 41 },
      { "SCM_TIMESTAMPING_OPT_STATS", 54 }, { "SCM_TIMESTAMPING_PKTINFO", 58 }, { "SO_TXTIME", 61 },
      { "SO_TIMESTAMP_NEW", 63 }, { "SO_TIMESTAMPNS_NEW", 64 }, { "SO_TIMESTAMPING_NEW", 65 });
NAMES(ip_messages, "IP_???", NAME(IP_TOS), NAME(IP_TTL), { "SCM_SECURITY", 3 }, NAME(IP_RECVOPTS), NAME(IP_RETOPTS),
      NAME(IP_PKTINFO), NAME(IP_RECVERR), NAME(IP_ORIGDSTADDR), { "IP_CHECKSUM", 23 });

/* ---- what a message holds: `size` bytes at `address` ----------------------------------------- */

static void put_descriptor(struct decode *d, const void *bytes)
{
	put_fd(d, *(const int *)bytes);
}

static void put_control_number(struct decode *d, const void *bytes)
{
	put(d, "%u", *(const unsigned *)bytes);
}

static void put_byte(struct decode *d, const void *bytes)
{
	put(d, "%#x", *(const unsigned char *)bytes);
}

static void put_rights(struct decode *d, uint64_t address, uint64_t size)
{
	put_array(d, address, size / sizeof(int), sizeof(int), put_descriptor);
}

static void put_numbers(struct decode *d, uint64_t address, uint64_t size)
{
	put_array(d, address, size / sizeof(int), sizeof(int), put_control_number);
}

static void put_byte_array(struct decode *d, uint64_t address, uint64_t size)
{
	put_array(d, address, size, 1, put_byte);
}

static void put_ucred(struct decode *d, uint64_t address, uint64_t size)
{
	struct ucred who;

	if (fetch_or_put(d, address, &who, sizeof(who)))
		put_credentials(d, &who);
}

/* A label is shown whole, whatever -s says. */
static void put_label(struct decode *d, uint64_t address, uint64_t size)
{
	char label[LABEL_MAX];

	if (!fetch_or_put(d, address, label, MIN(size, sizeof(label))))
		return;
	puts_(d, "\"");
	kymo_line_escape(d->text, label, MIN(size, sizeof(label)), NULL);
	puts_(d, size > sizeof(label) ? "\"..." : "\"");
}

static void put_time(struct decode *d, uint64_t address, uint64_t size)
{
	if (size < sizeof(struct timeval))
		puts_(d, "???");
	else
		put_timeval_at(d, address);
}

static void put_time_ns(struct decode *d, uint64_t address, uint64_t size)
{
	if (size < sizeof(struct timespec))
		puts_(d, "???");
	else
		put_timespec_at(d, address);
}

/* The software's time, an unused one, and the hardware's. */
static void put_times(struct decode *d, uint64_t address, uint64_t size)
{
	if (size < 3 * sizeof(struct timespec))
		puts_(d, "???");
	else
		put_array(d, address, 3, sizeof(struct timespec), put_timespec);
}

static void put_packet_info(struct decode *d, uint64_t address, uint64_t size)
{
	struct in_pktinfo info;

	if (!fetch_or_put(d, address, &info, sizeof(info)))
		return;
	puts_(d, "{ipi_ifindex=");
	put_interface(d, (unsigned)info.ipi_ifindex);
	puts_(d, ", ipi_spec_dst=");
	put_inet_address(d, &info.ipi_spec_dst);
	puts_(d, ", ipi_addr=");
	put_inet_address(d, &info.ipi_addr);
	puts_(d, "}");
}

struct error {
	struct sock_extended_err err;
	struct sockaddr_in offender;
};

static void put_error(struct decode *d, uint64_t address, uint64_t size)
{
	struct error e;

	if (!fetch_or_put(d, address, &e, sizeof(e)))
		return;
	put(d, "{ee_errno=%u, ee_origin=%u, ee_type=%u, ee_code=%u, ee_info=%u, ee_data=%u, offender=", e.err.ee_errno,
	    e.err.ee_origin, e.err.ee_type, e.err.ee_code, e.err.ee_info, e.err.ee_data);
	put_sockaddr_bytes(d, &e.offender, sizeof(e.offender));
	puts_(d, "}");
}

static const struct {
	int level, type;
	uint16_t size; /* fewer bytes are not shown */
	void (*show)(struct decode *d, uint64_t address, uint64_t size);
} contents[] = {
	{ SOL_SOCKET, SCM_RIGHTS, sizeof(int), put_rights },
	{ SOL_SOCKET, SCM_CREDENTIALS, sizeof(struct ucred), put_ucred },
	{ SOL_SOCKET, CMSG_SECURITY, 1, put_label },
	{ SOL_SOCKET, 29, 1, put_time },
	{ SOL_SOCKET, 35, 1, put_time_ns },
	{ SOL_SOCKET, 37, 1, put_times },
	{ SOL_SOCKET, 63, 1, put_time },
	{ SOL_SOCKET, 64, 1, put_time_ns },
	{ SOL_SOCKET, 65, 1, put_times },
	{ SOL_IP, IP_TOS, 1, put_byte_array },
	{ SOL_IP, IP_TTL, sizeof(int), put_numbers },
	{ SOL_IP, CMSG_SECURITY, 1, put_label },
	{ SOL_IP, IP_RECVOPTS, 1, put_byte_array },
	{ SOL_IP, IP_RETOPTS, 1, put_byte_array },
	{ SOL_IP, IP_PKTINFO, sizeof(struct in_pktinfo), put_packet_info },
	{ SOL_IP, IP_RECVERR, sizeof(struct error), put_error },
	{ SOL_IP, IP_ORIGDSTADDR, sizeof(struct sockaddr_in), put_sockaddr },
	{ SOL_IP, 23, sizeof(int), put_numbers },
};

static void put_content(struct decode *d, int level, int type, uint64_t address, uint64_t size)
{
	for (size_t i = 0; i < kymo_countof(contents); i++) {
		if (contents[i].level != level || contents[i].type != type)
			continue;
		if (size < contents[i].size)
			return;
		puts_(d, ", cmsg_data=");
		contents[i].show(d, address, size);
		return;
	}
	if (!size)
		return;
	puts_(d, ", cmsg_data=");
	put_bytes(d, address, size);
}

/* ---- messages -------------------------------------------------------------------------------- */

/* `length` bytes of it are there. */
static void put_one(struct decode *d, const struct cmsghdr *header, uint64_t address, uint64_t length)
{
	put(d, "{cmsg_len=%zu, cmsg_level=", header->cmsg_len);
	put_name(d, &socket_levels, (unsigned)header->cmsg_level);
	puts_(d, ", cmsg_type=");
	if (header->cmsg_level == SOL_SOCKET)
		put_name(d, &socket_messages, (unsigned)header->cmsg_type);
	else if (header->cmsg_level == SOL_IP)
		put_name(d, &ip_messages, (unsigned)header->cmsg_type);
	else
		put(d, "%#x", (unsigned)header->cmsg_type);
	if (length > sizeof(*header))
		put_content(d, header->cmsg_level, header->cmsg_type, address + sizeof(*header),
			    length - sizeof(*header));
	puts_(d, "}");
}

/* How far it is to the next, past its header at least; `rest` where there is none. */
static uint64_t step_of(const struct cmsghdr *header, uint64_t rest)
{
	const uint64_t length = MAX(header->cmsg_len, sizeof(*header));

	return length > rest ? rest : MIN((length + 7) & ~7ull, rest);
}

void put_control(struct decode *d, uint64_t address, uint64_t size)
{
	const uint64_t read = MIN(size, (uint64_t)CONTROL_MAX);
	struct cmsghdr header;

	if (size < sizeof(header) || !fetch(d, address, &header, sizeof(header))) {
		put_address(d, address);
		return;
	}
	puts_(d, "[");
	for (uint64_t at = 0, n = 0; at < read; n++) {
		const uint64_t rest = read - at;

		puts_(d, n ? ", " : "");
		if (n >= d->target->string_size) {
			puts_(d, "...");
			break;
		}
		if (rest < sizeof(header) || (n && header.cmsg_len < sizeof(header)) ||
		    !fetch(d, address + at, &header, sizeof(header))) {
			put(d, "... /* 0x%" PRIx64 " */", address + at);
			break;
		}
		put_one(d, &header, address + at, MIN(header.cmsg_len, rest));
		at += step_of(&header, rest);
	}
	puts_(d, size > read ? ", ...]" : "]");
}
