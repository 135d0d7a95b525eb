/* Sockets, their addresses and options. */
#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <stddef.h>
#include <string.h>
#include <sys/param.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <linux/if_ether.h>
#include <linux/netlink.h>

#include "syscall/decode.h"

#define ARG (d->call->args[arg])
#define PRINT(name) static void name(struct decode *d, unsigned arg, const void *data)

SHARED_NAMES(socket_families, "AF_???", NAME(AF_UNSPEC), NAME(AF_UNIX), NAME(AF_INET), NAME(AF_AX25), NAME(AF_IPX), NAME(AF_APPLETALK),
	     NAME(AF_NETROM), NAME(AF_BRIDGE), NAME(AF_ATMPVC), NAME(AF_X25), NAME(AF_INET6), NAME(AF_ROSE), NAME(AF_DECnet),
	     NAME(AF_NETBEUI), NAME(AF_SECURITY), NAME(AF_KEY), NAME(AF_NETLINK), NAME(AF_PACKET), NAME(AF_ASH), NAME(AF_ECONET),
	     NAME(AF_ATMSVC), NAME(AF_RDS), NAME(AF_SNA), NAME(AF_IRDA), NAME(AF_PPPOX), NAME(AF_WANPIPE), NAME(AF_LLC), NAME(AF_IB),
	     NAME(AF_MPLS), NAME(AF_CAN), NAME(AF_TIPC), NAME(AF_BLUETOOTH), NAME(AF_IUCV), NAME(AF_RXRPC), NAME(AF_ISDN), NAME(AF_PHONET),
	     NAME(AF_IEEE802154), NAME(AF_CAIF), NAME(AF_ALG), NAME(AF_NFC), NAME(AF_VSOCK), NAME(AF_KCM), NAME(AF_QIPCRTR), NAME(AF_SMC),
	     NAME(AF_XDP), { "AF_MCTP", 45 });
SHARED_NAMES(socket_levels, "SOL_??", NAME(SOL_IP), NAME(SOL_SOCKET), { "SOL_TCP", 6 }, { "SOL_UDP", 17 }, NAME(SOL_IPV6), NAME(SOL_ICMPV6),
	     { "SOL_SCTP", 132 }, { "SOL_UDPLITE", 136 }, NAME(SOL_RAW), NAME(SOL_X25), NAME(SOL_PACKET), NAME(SOL_ATM), NAME(SOL_AAL),
	     NAME(SOL_IRDA), { "SOL_NETLINK", 270 }, { "SOL_TIPC", 271 }, { "SOL_ALG", 279 }, { "SOL_KCM", 281 }, { "SOL_TLS", 282 },
	     { "SOL_XDP", 283 });
NAMES(types, "SOCK_???", NAME(SOCK_STREAM), NAME(SOCK_DGRAM), NAME(SOCK_RAW), NAME(SOCK_RDM), NAME(SOCK_SEQPACKET), NAME(SOCK_DCCP),
      NAME(SOCK_PACKET));
NAMES(type_flags, "SOCK_???", NAME(SOCK_CLOEXEC), NAME(SOCK_NONBLOCK));
NAMES(ip_protocols, "IPPROTO_???", NAME(IPPROTO_IP), NAME(IPPROTO_ICMP), NAME(IPPROTO_IGMP), NAME(IPPROTO_IPIP), NAME(IPPROTO_TCP),
      NAME(IPPROTO_EGP), NAME(IPPROTO_PUP), NAME(IPPROTO_UDP), NAME(IPPROTO_IDP), NAME(IPPROTO_TP), NAME(IPPROTO_DCCP), NAME(IPPROTO_IPV6),
      NAME(IPPROTO_RSVP), NAME(IPPROTO_GRE), NAME(IPPROTO_ESP), NAME(IPPROTO_AH), NAME(IPPROTO_ICMPV6), NAME(IPPROTO_MTP),
      NAME(IPPROTO_BEETPH), NAME(IPPROTO_ENCAP), NAME(IPPROTO_PIM), NAME(IPPROTO_COMP), NAME(IPPROTO_SCTP), NAME(IPPROTO_UDPLITE),
      NAME(IPPROTO_MPLS), NAME(IPPROTO_RAW), { "IPPROTO_MPTCP", 262 });
NAMES(netlinks, "NETLINK_???", NAME(NETLINK_ROUTE), NAME(NETLINK_UNUSED), NAME(NETLINK_USERSOCK), NAME(NETLINK_FIREWALL),
      NAME(NETLINK_SOCK_DIAG), NAME(NETLINK_NFLOG), NAME(NETLINK_XFRM), NAME(NETLINK_SELINUX), NAME(NETLINK_ISCSI), NAME(NETLINK_AUDIT),
      NAME(NETLINK_FIB_LOOKUP), NAME(NETLINK_CONNECTOR), NAME(NETLINK_NETFILTER), NAME(NETLINK_IP6_FW), NAME(NETLINK_DNRTMSG),
      NAME(NETLINK_KOBJECT_UEVENT), NAME(NETLINK_GENERIC), NAME(NETLINK_SCSITRANSPORT), NAME(NETLINK_ECRYPTFS), NAME(NETLINK_RDMA),
      NAME(NETLINK_CRYPTO), NAME(NETLINK_SMC));
NAMES(ethernet_protocols, "ETH_P_???", NAME(ETH_P_LOOP), NAME(ETH_P_IP), NAME(ETH_P_ARP), NAME(ETH_P_8021Q), NAME(ETH_P_IPV6),
      NAME(ETH_P_PAE), NAME(ETH_P_LLDP), NAME(ETH_P_ALL), NAME(ETH_P_802_2));
NAMES(shutdowns, "SHUT_???", NAME(SHUT_RD), NAME(SHUT_WR), NAME(SHUT_RDWR));
NAMES(socket_options, "SO_???", NAME(SO_DEBUG), NAME(SO_REUSEADDR), NAME(SO_TYPE), NAME(SO_ERROR), NAME(SO_DONTROUTE), NAME(SO_BROADCAST),
      NAME(SO_SNDBUF), NAME(SO_RCVBUF), NAME(SO_KEEPALIVE), NAME(SO_OOBINLINE), NAME(SO_NO_CHECK), NAME(SO_PRIORITY), NAME(SO_LINGER),
      NAME(SO_BSDCOMPAT), NAME(SO_REUSEPORT), NAME(SO_PASSCRED), NAME(SO_PEERCRED), NAME(SO_RCVLOWAT), NAME(SO_SNDLOWAT),
      { "SO_RCVTIMEO_OLD", 20 }, { "SO_SNDTIMEO_OLD", 21 }, NAME(SO_SECURITY_AUTHENTICATION), NAME(SO_SECURITY_ENCRYPTION_TRANSPORT),
      NAME(SO_SECURITY_ENCRYPTION_NETWORK), NAME(SO_BINDTODEVICE), NAME(SO_ATTACH_FILTER), NAME(SO_DETACH_FILTER), NAME(SO_PEERNAME),
      { "SO_TIMESTAMP_OLD", 29 }, NAME(SO_ACCEPTCONN), NAME(SO_PEERSEC), NAME(SO_SNDBUFFORCE), NAME(SO_RCVBUFFORCE), NAME(SO_PASSSEC),
      { "SO_TIMESTAMPNS_OLD", 35 }, NAME(SO_MARK), { "SO_TIMESTAMPING_OLD", 37 }, NAME(SO_PROTOCOL), NAME(SO_DOMAIN), NAME(SO_RXQ_OVFL),
      NAME(SO_WIFI_STATUS), NAME(SO_PEEK_OFF), NAME(SO_NOFCS), NAME(SO_LOCK_FILTER), NAME(SO_SELECT_ERR_QUEUE), NAME(SO_BUSY_POLL),
      NAME(SO_MAX_PACING_RATE), NAME(SO_BPF_EXTENSIONS), NAME(SO_INCOMING_CPU), NAME(SO_ATTACH_BPF), NAME(SO_ATTACH_REUSEPORT_CBPF),
      NAME(SO_ATTACH_REUSEPORT_EBPF), NAME(SO_CNX_ADVICE), { "SCM_TIMESTAMPING_OPT_STATS", 54 }, NAME(SO_MEMINFO),
      NAME(SO_INCOMING_NAPI_ID), NAME(SO_COOKIE), NAME(SO_PEERGROUPS), NAME(SO_ZEROCOPY), NAME(SO_TXTIME), NAME(SO_BINDTOIFINDEX),
      NAME(SO_TIMESTAMP_NEW), NAME(SO_TIMESTAMPNS_NEW), NAME(SO_TIMESTAMPING_NEW), NAME(SO_RCVTIMEO_NEW), NAME(SO_SNDTIMEO_NEW),
      NAME(SO_DETACH_REUSEPORT_BPF), NAME(SO_PREFER_BUSY_POLL), NAME(SO_BUSY_POLL_BUDGET), { "SO_NETNS_COOKIE", 71 }, { "SO_BUF_LOCK", 72 },
      { "SO_RESERVE_MEM", 73 }, { "SO_TXREHASH", 74 });
NAMES(tcp_options, "TCP_???", NAME(TCP_NODELAY), NAME(TCP_MAXSEG), NAME(TCP_CORK), NAME(TCP_KEEPIDLE), NAME(TCP_KEEPINTVL),
      NAME(TCP_KEEPCNT), NAME(TCP_SYNCNT), NAME(TCP_LINGER2), NAME(TCP_DEFER_ACCEPT), NAME(TCP_WINDOW_CLAMP), NAME(TCP_INFO),
      NAME(TCP_QUICKACK), NAME(TCP_CONGESTION), NAME(TCP_MD5SIG), NAME(TCP_THIN_LINEAR_TIMEOUTS), NAME(TCP_THIN_DUPACK),
      NAME(TCP_USER_TIMEOUT), NAME(TCP_REPAIR), NAME(TCP_REPAIR_QUEUE), NAME(TCP_QUEUE_SEQ), NAME(TCP_REPAIR_OPTIONS), NAME(TCP_FASTOPEN),
      NAME(TCP_TIMESTAMP), NAME(TCP_NOTSENT_LOWAT), NAME(TCP_CC_INFO), NAME(TCP_SAVE_SYN), NAME(TCP_SAVED_SYN), NAME(TCP_REPAIR_WINDOW),
      NAME(TCP_FASTOPEN_CONNECT), NAME(TCP_ULP), NAME(TCP_MD5SIG_EXT), NAME(TCP_FASTOPEN_KEY), NAME(TCP_FASTOPEN_NO_COOKIE),
      NAME(TCP_ZEROCOPY_RECEIVE), NAME(TCP_INQ), NAME(TCP_TX_DELAY));
NAMES(ip_options, "IP_???", NAME(IP_TOS), NAME(IP_TTL), NAME(IP_HDRINCL), NAME(IP_OPTIONS), NAME(IP_ROUTER_ALERT), NAME(IP_RECVOPTS),
      NAME(IP_RETOPTS), NAME(IP_PKTINFO), NAME(IP_PKTOPTIONS), NAME(IP_MTU_DISCOVER), NAME(IP_RECVERR), NAME(IP_RECVTTL), NAME(IP_RECVTOS),
      NAME(IP_MTU), NAME(IP_FREEBIND), NAME(IP_IPSEC_POLICY), NAME(IP_XFRM_POLICY), NAME(IP_PASSSEC), NAME(IP_TRANSPARENT),
      NAME(IP_ORIGDSTADDR), NAME(IP_MINTTL), NAME(IP_NODEFRAG), NAME(IP_CHECKSUM), NAME(IP_BIND_ADDRESS_NO_PORT), NAME(IP_RECVFRAGSIZE),
      { "IP_RECVERR_RFC4884", 26 }, NAME(IP_MULTICAST_IF), NAME(IP_MULTICAST_TTL), NAME(IP_MULTICAST_LOOP), NAME(IP_ADD_MEMBERSHIP),
      NAME(IP_DROP_MEMBERSHIP), NAME(IP_MULTICAST_ALL), NAME(IP_UNICAST_IF));
NAMES(ipv6_options, "IPV6_???", NAME(IPV6_ADDRFORM), NAME(IPV6_2292PKTINFO), NAME(IPV6_2292HOPOPTS), NAME(IPV6_2292DSTOPTS),
      NAME(IPV6_2292RTHDR), NAME(IPV6_2292PKTOPTIONS), NAME(IPV6_CHECKSUM), NAME(IPV6_2292HOPLIMIT), NAME(IPV6_NEXTHOP),
      { "IPV6_FLOWINFO", 11 }, NAME(IPV6_UNICAST_HOPS), NAME(IPV6_MULTICAST_IF), NAME(IPV6_MULTICAST_HOPS), NAME(IPV6_MULTICAST_LOOP),
      NAME(IPV6_JOIN_GROUP), NAME(IPV6_LEAVE_GROUP), NAME(IPV6_ROUTER_ALERT), NAME(IPV6_MTU_DISCOVER), NAME(IPV6_MTU), NAME(IPV6_RECVERR),
      NAME(IPV6_V6ONLY), NAME(IPV6_RECVPKTINFO), NAME(IPV6_PKTINFO), NAME(IPV6_RECVHOPLIMIT), NAME(IPV6_HOPLIMIT), NAME(IPV6_RECVTCLASS),
      NAME(IPV6_TCLASS), NAME(IPV6_FREEBIND));
NAMES(udp_options, "UDP_???", { "UDP_CORK", 1 }, { "UDP_ENCAP", 100 }, { "UDP_NO_CHECK6_TX", 101 }, { "UDP_NO_CHECK6_RX", 102 },
      { "UDP_SEGMENT", 103 }, { "UDP_GRO", 104 });
NAMES(netlink_options, "NETLINK_???", NAME(NETLINK_ADD_MEMBERSHIP), NAME(NETLINK_DROP_MEMBERSHIP), NAME(NETLINK_PKTINFO),
      NAME(NETLINK_BROADCAST_ERROR), NAME(NETLINK_NO_ENOBUFS), NAME(NETLINK_LISTEN_ALL_NSID), NAME(NETLINK_LIST_MEMBERSHIPS),
      NAME(NETLINK_CAP_ACK), NAME(NETLINK_EXT_ACK), NAME(NETLINK_GET_STRICT_CHK));

static const struct names *options_of(int level)
{
	switch (level) {
	case SOL_SOCKET:
		return &socket_options;
	case IPPROTO_TCP:
		return &tcp_options;
	case IPPROTO_UDP:
		return &udp_options;
	case SOL_IP:
		return &ip_options;
	case SOL_IPV6:
		return &ipv6_options;
	case SOL_NETLINK:
		return &netlink_options;
	default:
		return NULL;
	}
}

/* ---- addresses ----------------------------------------------------------------------------------------------------------- */

static void put_unix(struct decode *d, const struct sockaddr_un *un, size_t size)
{
	const size_t n = size - offsetof(struct sockaddr_un, sun_path);
	const bool is_abstract = n && !un->sun_path[0];

	puts_(d, "{sa_family=AF_UNIX");
	if (n) {
		puts_(d, is_abstract ? ", sun_path=@\"" : ", sun_path=\"");
		if (is_abstract)
			kymo_line_escape(d->text, un->sun_path + 1, n - 1, NULL);
		else
			kymo_line_escape(d->text, un->sun_path, strnlen(un->sun_path, n), NULL);
		puts_(d, "\"");
	}
	puts_(d, "}");
}

static void put_inet6(struct decode *d, const struct sockaddr_in6 *in, size_t size)
{
	char text[INET6_ADDRSTRLEN];

	put(d, "{sa_family=AF_INET6, sin6_port=htons(%u), sin6_flowinfo=htonl(%u), inet_pton(AF_INET6, \"%s\", &sin6_addr)",
	    ntohs(in->sin6_port), ntohl(in->sin6_flowinfo), inet_ntop(AF_INET6, &in->sin6_addr, text, sizeof(text)));
	if (size >= sizeof(*in))
		put(d, ", sin6_scope_id=%u", in->sin6_scope_id);
	puts_(d, "}");
}

void put_sockaddr(struct decode *d, uint64_t address, uint64_t size)
{
	union {
		struct sockaddr any;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
		struct sockaddr_un un;
		struct sockaddr_nl nl;
		char bytes[128];
	} a = { 0 };
	const size_t n = MIN(size, sizeof(a));

	if (n < sizeof(a.any.sa_family) || !fetch(d, address, &a, n)) {
		put_address(d, address);
	} else if (a.any.sa_family == AF_UNIX) {
		put_unix(d, &a.un, MIN(n, sizeof(a.un)));
	} else if (a.any.sa_family == AF_INET && n >= sizeof(a.in)) {
		put(d, "{sa_family=AF_INET, sin_port=htons(%u), sin_addr=inet_addr(\"%s\")}", ntohs(a.in.sin_port),
		    inet_ntoa(a.in.sin_addr));
	} else if (a.any.sa_family == AF_INET6 && n >= offsetof(struct sockaddr_in6, sin6_scope_id)) {
		put_inet6(d, &a.in6, n);
	} else if (a.any.sa_family == AF_NETLINK && n >= sizeof(a.nl)) {
		put(d, "{sa_family=AF_NETLINK, nl_pid=%d, nl_groups=%#08x}", (int)a.nl.nl_pid, a.nl.nl_groups);
	} else {
		puts_(d, "{sa_family=");
		put_name(d, &socket_families, a.any.sa_family);
		if (n > sizeof(a.any.sa_family)) {
			puts_(d, ", sa_data=\"");
			kymo_line_escape(d->text, a.any.sa_data, n - sizeof(a.any.sa_family), NULL);
			puts_(d, "\"");
		}
		puts_(d, "}");
	}
}

PRINT(print_sockaddr)
{
	put_sockaddr(d, ARG, (unsigned)d->call->args[arg + 1]);
}

/* The room for it stands in the next argument, and in saved[0] from the entry on, as the kernel writes what it took. */
PRINT(print_sockaddr_out)
{
	int size;

	if (!d->is_leaving) {
		d->call->saved[1] = fetch(d, d->call->args[arg + 1], &size, sizeof(size));
		d->call->saved[0] = d->call->saved[1] ? (uint64_t)size : 0;
		return;
	}
	if (call_failed(d) || !fetch(d, d->call->args[arg + 1], &size, sizeof(size)))
		put_address(d, ARG);
	else
		put_sockaddr(d, ARG, (uint64_t)MAX(MIN(size, (int)d->call->saved[0]), 0));
}

/* "[128 => 16]" */
PRINT(print_socklen_out)
{
	const int before = (int)d->call->saved[0];
	int size;

	if (!d->call->saved[1] || !fetch(d, ARG, &size, sizeof(size)))
		put_address(d, ARG);
	else if (call_failed(d) || size == before)
		put(d, "[%d]", before);
	else
		put(d, "[%d => %d]", before, size);
}

/* ---- sockets -------------------------------------------------------------------------------------------------------------- */

PRINT(print_family)
{
	put_name(d, &socket_families, (unsigned)ARG);
}
PRINT(print_shutdown)
{
	put_name(d, &shutdowns, (unsigned)ARG);
}
PRINT(print_accept_flags)
{
	put_flags(d, &type_flags, (unsigned)ARG);
}
PRINT(print_level)
{
	put_name(d, &socket_levels, (unsigned)ARG);
}

PRINT(print_type)
{
	const unsigned type = (unsigned)ARG & 0xf, flags = (unsigned)ARG & ~0xfu;

	put_name(d, &types, type);
	if (flags) {
		puts_(d, "|");
		put_flags(d, &type_flags, flags);
	}
}

PRINT(print_protocol)
{
	const int family = (int)d->call->args[0];
	const char *name;

	if (family == AF_INET || family == AF_INET6) {
		put_name(d, &ip_protocols, (unsigned)ARG);
	} else if (family == AF_NETLINK) {
		put_name(d, &netlinks, (unsigned)ARG);
	} else if (family == AF_PACKET) {
		name = name_of(&ethernet_protocols, ntohs((uint16_t)ARG));
		if (name)
			put(d, "htons(%s)", name);
		else
			put(d, "htons(%#x /* ETH_P_??? */)", ntohs((uint16_t)ARG));
	} else {
		put(d, "%u", (unsigned)ARG);
	}
}

/* ---- options ---------------------------------------------------------------------------------------------------------------- */

PRINT(print_option)
{
	const struct names *names = options_of((int)d->call->args[1]);

	if (names)
		put_name(d, names, (unsigned)ARG);
	else
		put(d, "%u", (unsigned)ARG);
}

static bool is_option(const struct decode *d, int name)
{
	return (int)d->call->args[1] == SOL_SOCKET && (int)d->call->args[2] == name;
}

static void put_error_number(struct decode *d, int number)
{
	const char *name = number ? kymo_syscall_errno(number) : NULL;

	if (name)
		put(d, "[%s]", name);
	else
		put(d, "[%d]", number);
}

/* The first `size` bytes of a value. */
static void put_option(struct decode *d, uint64_t address, int size)
{
	struct linger linger;
	struct ucred who;
	int value;

	if (size < 0 || !address || (!size && d->is_leaving && (is_option(d, SO_ERROR) || is_option(d, SO_LINGER) || is_option(d, SO_PEERCRED)))) {
		put_address(d, address);
	} else if (is_option(d, SO_LINGER) && size >= (int)sizeof(linger) && fetch(d, address, &linger, sizeof(linger))) {
		put(d, "{l_onoff=%d, l_linger=%d}", linger.l_onoff, linger.l_linger);
	} else if (is_option(d, SO_PEERCRED) && size >= (int)sizeof(who) && fetch(d, address, &who, sizeof(who))) {
		put(d, "{pid=%d, uid=", who.pid);
		put_id(d, who.uid);
		puts_(d, ", gid=");
		put_id(d, who.gid);
		puts_(d, "}");
	} else if (is_option(d, SO_ERROR) && d->is_leaving && size == sizeof(value) && fetch(d, address, &value, sizeof(value))) {
		put_error_number(d, value);
	} else if (size == sizeof(value) && fetch(d, address, &value, sizeof(value))) {
		put(d, "[%d]", value);
	} else if (size < (int)sizeof(value) && d->is_leaving) {
		put_hex_bytes(d, address, (uint64_t)size);
	} else if (size < (int)sizeof(value) && !is_option(d, SO_BINDTODEVICE)) {
		put_address(d, address);
	} else {
		put_bytes(d, address, (uint64_t)size);
	}
}

PRINT(print_option_value)
{
	put_option(d, ARG, (int)d->call->args[arg + 1]);
}

PRINT(print_option_out)
{
	int size;

	if (!d->is_leaving)
		print_sockaddr_out(d, arg, data);
	else if (call_failed(d) || !fetch(d, d->call->args[arg + 1], &size, sizeof(size)))
		put_address(d, ARG);
	else
		put_option(d, ARG, size);
}

const struct kind k_family[1] = { { print_family, NULL, 0 } };
const struct kind k_socket_type[1] = { { print_type, NULL, 0 } };
const struct kind k_protocol[1] = { { print_protocol, NULL, 0 } };
const struct kind k_sockaddr[1] = { { print_sockaddr, NULL, 0 } };
const struct kind k_sockaddr_out[1] = { { print_sockaddr_out, NULL, AT_EXIT | LOOKS_AT_ENTRY } };
const struct kind k_socklen_out[1] = { { print_socklen_out, NULL, AT_EXIT } };
const struct kind k_shutdown[1] = { { print_shutdown, NULL, 0 } };
const struct kind k_accept_flags[1] = { { print_accept_flags, NULL, 0 } };
const struct kind k_level[1] = { { print_level, NULL, 0 } };
const struct kind k_option[1] = { { print_option, NULL, 0 } };
const struct kind k_option_value[1] = { { print_option_value, NULL, 0 } };
const struct kind k_option_out[1] = { { print_option_out, NULL, AT_EXIT | LOOKS_AT_ENTRY } };
