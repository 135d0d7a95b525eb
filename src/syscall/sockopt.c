/* Options of sockets: a row of the table says how the value of one is shown. */
#include "syscall/sockopt.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <linux/icmp.h>
#include <linux/if_packet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/param.h>
#include <sys/socket.h>

#include "syscall/address.h"
#include "syscall/call.h"
#include "syscall/constants.h"
#include "syscall/errors.h"
#include "syscall/packet_filter.h"
#include "syscall/print.h"
#include "syscall/socket.h"
#include "syscall/sockopt_names.h"

SHARED_NAMES(socket_levels, "SOL_??", NAME(SOL_IP), NAME(SOL_SOCKET), { "SOL_TCP", 6 }, { "SOL_UDP", 17 },
	     NAME(SOL_IPV6), NAME(SOL_ICMPV6), { "SOL_SCTP", 132 }, { "SOL_UDPLITE", 136 }, NAME(SOL_RAW),
	     { "SOL_IPX", 256 }, { "SOL_AX25", 257 }, { "SOL_ATALK", 258 }, { "SOL_NETROM", 259 }, { "SOL_ROSE", 260 },
	     { "SOL_DECNET", 261 }, NAME(SOL_X25), NAME(SOL_PACKET), NAME(SOL_ATM), NAME(SOL_AAL), NAME(SOL_IRDA),
	     { "SOL_NETBEUI", 267 }, { "SOL_LLC", 268 }, { "SOL_DCCP", 269 }, { "SOL_NETLINK", 270 },
	     { "SOL_TIPC", 271 }, { "SOL_RXRPC", 272 }, { "SOL_PPPOL2TP", 273 }, { "SOL_BLUETOOTH", 274 },
	     { "SOL_PNPIPE", 275 }, { "SOL_RDS", 276 }, { "SOL_IUCV", 277 }, { "SOL_CAIF", 278 }, { "SOL_ALG", 279 },
	     { "SOL_NFC", 280 }, { "SOL_KCM", 281 }, { "SOL_TLS", 282 }, { "SOL_XDP", 283 });
NAMES(icmp_types, "ICMP_???", NAME(ICMP_ECHOREPLY), NAME(ICMP_DEST_UNREACH), NAME(ICMP_SOURCE_QUENCH),
      NAME(ICMP_REDIRECT), NAME(ICMP_ECHO), NAME(ICMP_TIME_EXCEEDED), NAME(ICMP_PARAMETERPROB), NAME(ICMP_TIMESTAMP),
      NAME(ICMP_TIMESTAMPREPLY), NAME(ICMP_INFO_REQUEST), NAME(ICMP_INFO_REPLY), NAME(ICMP_ADDRESS),
      NAME(ICMP_ADDRESSREPLY));
NAMES(memberships, "PACKET_MR_???", NAME(PACKET_MR_MULTICAST), NAME(PACKET_MR_PROMISC), NAME(PACKET_MR_ALLMULTI),
      NAME(PACKET_MR_UNICAST));
NAMES(rehashes, "SOCK_TXREHASH_???", { "SOCK_TXREHASH_DISABLED", 0 }, { "SOCK_TXREHASH_ENABLED", 1 },
      { "SOCK_TXREHASH_DEFAULT", 255 });

enum {
	VALUE_MAX = 136,      /* of the structures below: group_req */
	TXREHASH = 74,        /* SO_TXREHASH, of Linux 6.0 */
	LIST_MEMBERSHIPS = 9, /* NETLINK_LIST_MEMBERSHIPS */
};

/* ---- values ---------------------------------------------------------------------------------- */

/* Of a structure of 32-bit members. */
struct member {
	const char *name;
	void (*show)(struct decode *d, uint32_t value);
};

static void put_process(struct decode *d, uint32_t value)
{
	put_pid(d, (int)value);
}

static void put_signed(struct decode *d, uint32_t value)
{
	put(d, "%d", (int)value);
}
static void put_unsigned(struct decode *d, uint32_t value)
{
	put(d, "%u", value);
}

static const struct member linger_members[] = { { "l_onoff", put_signed }, { "l_linger", put_signed }, { NULL, NULL } };
static const struct member credential_members[] = {
	{ "pid", put_process }, { "uid", put_id }, { "gid", put_id }, { NULL, NULL }
};
static const struct member ring_members[] = { { "tp_block_size", put_unsigned },
					      { "tp_block_nr", put_unsigned },
					      { "tp_frame_size", put_unsigned },
					      { "tp_frame_nr", put_unsigned },
					      { NULL, NULL } };
static const struct member statistics_members[] = { { "tp_packets", put_unsigned },
						    { "tp_drops", put_unsigned },
						    { "tp_freeze_q_cnt", put_unsigned },
						    { NULL, NULL } };

/* The first `size` bytes: a member of which there is a part is shown as bytes. */
static void put_structure(struct decode *d, const struct member *member, const unsigned char *bytes, size_t size)
{
	puts_(d, "{");
	for (size_t at = 0; member->name && at < size; member++, at += sizeof(uint32_t)) {
		uint32_t value;

		put(d, "%s%s=", at ? ", " : "", member->name);
		if (size - at < sizeof(value)) {
			puts_(d, "\"");
			for (size_t i = at; i < size; i++)
				put(d, "\\x%02x", bytes[i]);
			puts_(d, "\"");
			break;
		}
		memcpy(&value, bytes + at, sizeof(value));
		member->show(d, value);
	}
	puts_(d, "}");
}

void put_credentials(struct decode *d, const void *ucred)
{
	put_structure(d, credential_members, ucred, sizeof(struct ucred));
}

static void put_option_number(struct decode *d, const void *bytes)
{
	put(d, "[%d]", *(const int *)bytes);
}

static void put_error_number(struct decode *d, const void *bytes)
{
	const int number = *(const int *)bytes;
	const char *name = number ? kymo_syscall_errno(number) : NULL;

	puts_(d, "[");
	if (name)
		put_constant(d, name, number);
	else
		put(d, "%u", (unsigned)number);
	puts_(d, "]");
}

static void put_rehash(struct decode *d, const void *bytes)
{
	const int value = *(const int *)bytes;
	const char *name = name_of(&rehashes, (unsigned)value);

	puts_(d, "[");
	if (name)
		put_constant(d, name, value);
	else
		put(d, d->target->style.constants == KYMO_CONSTANTS_NUMBERS ? "%d" : "%d /* SOCK_TXREHASH_??? */",
		    value);
	puts_(d, "]");
}

static void put_membership(struct decode *d, const void *bytes)
{
	puts_(d, "{imr_multiaddr=");
	put_inet_address(d, bytes);
	puts_(d, ", imr_interface=");
	put_inet_address(d, (const char *)bytes + 4);
	puts_(d, "}");
}

static void put_membership6(struct decode *d, const void *bytes)
{
	const struct ipv6_mreq *request = bytes;

	puts_(d, "{");
	put_inet6_address(d, &request->ipv6mr_multiaddr, "ipv6mr_multiaddr");
	puts_(d, ", ipv6mr_interface=");
	put_interface(d, request->ipv6mr_interface);
	puts_(d, "}");
}

static void put_group(struct decode *d, const void *bytes)
{
	const struct group_req *request = bytes;

	puts_(d, "{gr_interface=");
	put_interface(d, request->gr_interface);
	puts_(d, ", gr_group=");
	put_sockaddr_bytes(d, &request->gr_group, sizeof(request->gr_group));
	puts_(d, "}");
}

static void put_packet_membership(struct decode *d, const void *bytes)
{
	const struct packet_mreq *request = bytes;
	const size_t n = MIN((size_t)request->mr_alen, sizeof(request->mr_address));

	puts_(d, "{mr_ifindex=");
	put_interface(d, (unsigned)request->mr_ifindex);
	puts_(d, ", mr_type=");
	put_name(d, &memberships, request->mr_type);
	put(d, ", mr_alen=%u, mr_address=", request->mr_alen);
	if (begin_form(d, request->mr_address, n)) {
		for (size_t i = 0; i < n; i++)
			put(d, "%s%02x", i ? ":" : "", request->mr_address[i]);
		end_form(d);
	}
	puts_(d, "}");
}

/* The types that are dropped; where most are, the types that are not, after "~". */
static void put_icmp_filter(struct decode *d, const void *bytes)
{
	const uint32_t filter = *(const uint32_t *)bytes;
	const bool is_inverted = __builtin_popcount(filter) > 16;
	const uint32_t shown = is_inverted ? ~filter : filter;
	bool any = false;

	puts_(d, is_inverted ? "~[" : "[");
	for (unsigned type = 0; type < 32; type++) {
		if (!(shown >> type & 1))
			continue;
		puts_(d, any ? " " : "");
		put_name(d, &icmp_types, type);
		any = true;
	}
	puts_(d, "]");
}

static void put_group_number(struct decode *d, const void *bytes)
{
	put(d, "%u", *(const unsigned *)bytes);
}

/* ---- options --------------------------------------------------------------------------------- */

struct value {
	int level, option;
	bool is_set, is_asked; /* by which call */
	bool is_exact;         /* not more than `size` bytes */
	uint16_t size;
	const struct member *members; /* of which fewer may be asked for; or */
	void (*show)(struct decode *d, const void *bytes);
};

static const struct value values[] = {
	{ .level = SOL_SOCKET, .option = SO_ERROR, .is_asked = true, .size = 4, .show = put_error_number },
	{ .level = SOL_SOCKET, .option = TXREHASH, .is_set = true, .is_asked = true, .size = 4, .show = put_rehash },
	{ .level = SOL_SOCKET,
	  .option = SO_LINGER,
	  .is_set = true,
	  .is_asked = true,
	  .size = 8,
	  .members = linger_members },
	{ .level = SOL_SOCKET, .option = SO_PEERCRED, .is_asked = true, .size = 12, .members = credential_members },
	{ .level = SOL_SOCKET,
	  .option = SO_ATTACH_FILTER,
	  .is_set = true,
	  .is_exact = true,
	  .size = 16,
	  .show = put_socket_program },
	{ .level = SOL_SOCKET,
	  .option = SO_ATTACH_REUSEPORT_CBPF,
	  .is_set = true,
	  .is_exact = true,
	  .size = 16,
	  .show = put_socket_program },
	{ .level = SOL_IP, .option = IP_ADD_MEMBERSHIP, .is_set = true, .size = 8, .show = put_membership },
	{ .level = SOL_IP, .option = IP_DROP_MEMBERSHIP, .is_set = true, .size = 8, .show = put_membership },
	{ .level = SOL_IP, .option = MCAST_JOIN_GROUP, .is_set = true, .size = 136, .show = put_group },
	{ .level = SOL_IP, .option = MCAST_LEAVE_GROUP, .is_set = true, .size = 136, .show = put_group },
	{ .level = SOL_IPV6, .option = MCAST_JOIN_GROUP, .is_set = true, .size = 136, .show = put_group },
	{ .level = SOL_IPV6, .option = MCAST_LEAVE_GROUP, .is_set = true, .size = 136, .show = put_group },
	{ .level = SOL_IPV6, .option = IPV6_JOIN_GROUP, .is_set = true, .size = 20, .show = put_membership6 },
	{ .level = SOL_IPV6, .option = IPV6_LEAVE_GROUP, .is_set = true, .size = 20, .show = put_membership6 },
	{ .level = SOL_IPV6, .option = IPV6_JOIN_ANYCAST, .is_set = true, .size = 20, .show = put_membership6 },
	{ .level = SOL_IPV6, .option = IPV6_LEAVE_ANYCAST, .is_set = true, .size = 20, .show = put_membership6 },
	{ .level = SOL_RAW,
	  .option = ICMP_FILTER,
	  .is_set = true,
	  .is_asked = true,
	  .size = 4,
	  .show = put_icmp_filter },
	{ .level = SOL_PACKET,
	  .option = PACKET_ADD_MEMBERSHIP,
	  .is_set = true,
	  .is_exact = true,
	  .size = 16,
	  .show = put_packet_membership },
	{ .level = SOL_PACKET,
	  .option = PACKET_DROP_MEMBERSHIP,
	  .is_set = true,
	  .is_exact = true,
	  .size = 16,
	  .show = put_packet_membership },
	{ .level = SOL_PACKET,
	  .option = PACKET_RX_RING,
	  .is_set = true,
	  .is_exact = true,
	  .size = 16,
	  .members = ring_members },
	{ .level = SOL_PACKET,
	  .option = PACKET_TX_RING,
	  .is_set = true,
	  .is_exact = true,
	  .size = 16,
	  .members = ring_members },
	{ .level = SOL_PACKET,
	  .option = PACKET_STATISTICS,
	  .is_asked = true,
	  .size = 12,
	  .members = statistics_members },
};

/* Options of SOL_SOCKET whose value is a number. The kernel ignores bytes after it. */
static const uint8_t numbers[] = {
	SO_DEBUG,
	SO_REUSEADDR,
	SO_DONTROUTE,
	SO_BROADCAST,
	SO_SNDBUF,
	SO_RCVBUF,
	SO_KEEPALIVE,
	SO_OOBINLINE,
	SO_NO_CHECK,
	SO_PRIORITY,
	SO_BSDCOMPAT,
	SO_REUSEPORT,
	SO_PASSCRED,
	SO_RCVLOWAT,
	SO_SNDLOWAT,
	SO_DETACH_FILTER,
	SO_TIMESTAMP_OLD,
	SO_ACCEPTCONN,
	SO_SNDBUFFORCE,
	SO_RCVBUFFORCE,
	SO_PASSSEC,
	SO_TIMESTAMPNS_OLD,
	SO_MARK,
	SO_TIMESTAMPING_OLD,
	SO_RXQ_OVFL,
	SO_WIFI_STATUS,
	SO_PEEK_OFF,
	SO_NOFCS,
	SO_LOCK_FILTER,
	SO_SELECT_ERR_QUEUE,
	SO_BUSY_POLL,
	SO_INCOMING_CPU,
	SO_CNX_ADVICE,
	SO_INCOMING_NAPI_ID,
	SO_ZEROCOPY,
	SO_TIMESTAMP_NEW,
	SO_TIMESTAMPNS_NEW,
	SO_TIMESTAMPING_NEW,
	SO_DETACH_REUSEPORT_BPF,
	SO_PREFER_BUSY_POLL,
	SO_BUSY_POLL_BUDGET,
	73 /* SO_RESERVE_MEM */,
	75 /* SO_RCVMARK */,
};

static const struct value socket_number = { .size = 4, .show = put_option_number };

static const struct value *option_value(int level, int option, bool is_asked)
{
	for (size_t i = 0; i < kymo_countof(values); i++)
		if (values[i].level == level && values[i].option == option &&
		    (is_asked ? values[i].is_asked : values[i].is_set))
			return &values[i];
	for (size_t i = 0; i < kymo_countof(numbers) && level == SOL_SOCKET; i++)
		if (numbers[i] == option)
			return &socket_number;
	return level == SOL_NETLINK && !is_asked ? &socket_number : NULL;
}

/* `size` bytes of a structure, or a number. What getsockopt gives may be a part of it. */
static void put_value(struct decode *d, const struct value *value, uint64_t address, int size)
{
	_Alignas(16) unsigned char bytes[VALUE_MAX];
	const size_t n = size > 0 ? MIN((size_t)size, (size_t)value->size) : 0;
	const bool is_part = n < value->size;

	if (!n || (is_part && !d->is_output) || (value->is_exact && size != value->size) ||
	    !fetch(d, address, bytes, n))
		put_address(d, address);
	else if (value->members)
		put_structure(d, value->members, bytes, n);
	else if (is_part)
		put_hex_bytes(d, address, n);
	else
		value->show(d, bytes);
}

/* Of an option that is not known: the number that most of them are, or bytes. */
static void put_unknown(struct decode *d, uint64_t address, int size)
{
	int number;

	if (d->is_output && size <= 0)
		put_address(d, address);
	else if (size == sizeof(number) && fetch(d, address, &number, sizeof(number)))
		put(d, "[%d]", number);
	else
		put_bytes(d, address, (unsigned)size);
}

/* netlink writes whole numbers, whatever room there is. */
static void put_netlink_value(struct decode *d, int option, uint64_t address, int size)
{
	int number;

	if (option == LIST_MEMBERSHIPS && size > 0)
		put_array(d, address, (unsigned)size / sizeof(unsigned), sizeof(unsigned), put_group_number);
	else if (size > 0 && fetch(d, address, &number, sizeof(number)))
		put(d, "[%d]", number);
	else
		put_address(d, address);
}

static void put_option(struct decode *d, uint64_t address, int size)
{
	const int level = (int)d->call->args[1], option = (int)d->call->args[2];
	const struct value *value = option_value(level, option, d->is_output);

	if (!address)
		put_address(d, address);
	else if (d->is_output && level == SOL_SOCKET && option == SO_GET_FILTER)
		put_socket_filter(d, address, (unsigned)size); /* which counts instructions */
	else if (value)
		put_value(d, value, address, size);
	else if (d->is_output && level == SOL_NETLINK)
		put_netlink_value(d, option, address, size);
	else
		put_unknown(d, address, size);
}

PRINT(print_option)
{
	const struct names *names = socket_option_names((int)d->call->args[1], (int)ARG, data != NULL);

	if (names)
		put_name(d, names, (unsigned)ARG);
	else
		put(d, "%u", (unsigned)ARG);
}

PRINT(print_option_value)
{
	put_option(d, ARG, (int)d->call->args[arg + 1]);
}

/* The room for it is saved at the entry, for k_socklen_out. */
PRINT(print_option_out)
{
	int size;

	if (!d->is_leaving) {
		d->call->saved[1] = fetch(d, d->call->args[arg + 1], &size, sizeof(size));
		d->call->saved[0] = d->call->saved[1] ? (uint64_t)size : 0;
	} else if (call_failed(d) || !fetch(d, d->call->args[arg + 1], &size, sizeof(size))) {
		put_address(d, ARG);
	} else {
		put_option(d, ARG, size);
	}
}

const struct kind k_level[1] = { { print_name, &socket_levels, 0 } };
const struct kind k_option[1] = { { print_option, NULL, 0 } };
const struct kind k_option_asked[1] = { { print_option, "", 0 } };
const struct kind k_option_value[1] = { { print_option_value, NULL, 0 } };
const struct kind k_option_out[1] = { { print_option_out, NULL, AT_EXIT | LOOKS_AT_ENTRY } };
