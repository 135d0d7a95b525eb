/* Sockets: what makes them, binds and connects them. */
#include "syscall/socket.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/param.h>
#include <sys/socket.h>
#include <linux/netlink.h>

#include "syscall/address.h"
#include "syscall/constants.h"
#include "syscall/print.h"

SHARED_NAMES(socket_families, "AF_???", NAME(AF_UNSPEC), NAME(AF_UNIX), NAME(AF_INET), NAME(AF_AX25), NAME(AF_IPX),
	     NAME(AF_APPLETALK), NAME(AF_NETROM), NAME(AF_BRIDGE), NAME(AF_ATMPVC), NAME(AF_X25), NAME(AF_INET6),
	     NAME(AF_ROSE), NAME(AF_DECnet), NAME(AF_NETBEUI), NAME(AF_SECURITY), NAME(AF_KEY), NAME(AF_NETLINK),
	     NAME(AF_PACKET), NAME(AF_ASH), NAME(AF_ECONET), NAME(AF_ATMSVC), NAME(AF_RDS), NAME(AF_SNA), NAME(AF_IRDA),
	     NAME(AF_PPPOX), NAME(AF_WANPIPE), NAME(AF_LLC), NAME(AF_IB), NAME(AF_MPLS), NAME(AF_CAN), NAME(AF_TIPC),
	     NAME(AF_BLUETOOTH), NAME(AF_IUCV), NAME(AF_RXRPC), NAME(AF_ISDN), NAME(AF_PHONET), NAME(AF_IEEE802154),
	     NAME(AF_CAIF), NAME(AF_ALG), NAME(AF_NFC), NAME(AF_VSOCK), NAME(AF_KCM), NAME(AF_QIPCRTR), NAME(AF_SMC),
	     NAME(AF_XDP), { "AF_MCTP", 45 });
NAMES(types, "SOCK_???", NAME(SOCK_STREAM), NAME(SOCK_DGRAM), NAME(SOCK_RAW), NAME(SOCK_RDM), NAME(SOCK_SEQPACKET),
      NAME(SOCK_DCCP), NAME(SOCK_PACKET));
NAMES(type_flags, "SOCK_???", NAME(SOCK_CLOEXEC), NAME(SOCK_NONBLOCK));
NAMES(ip_protocols, "IPPROTO_???", NAME(IPPROTO_IP), NAME(IPPROTO_ICMP), NAME(IPPROTO_IGMP), NAME(IPPROTO_IPIP),
      NAME(IPPROTO_TCP), NAME(IPPROTO_EGP), NAME(IPPROTO_PUP), NAME(IPPROTO_UDP), NAME(IPPROTO_IDP), NAME(IPPROTO_TP),
      NAME(IPPROTO_DCCP), NAME(IPPROTO_IPV6), NAME(IPPROTO_RSVP), NAME(IPPROTO_GRE), NAME(IPPROTO_ESP),
      NAME(IPPROTO_AH), NAME(IPPROTO_ICMPV6), NAME(IPPROTO_MTP), NAME(IPPROTO_BEETPH), NAME(IPPROTO_ENCAP),
      NAME(IPPROTO_PIM), NAME(IPPROTO_COMP), NAME(IPPROTO_SCTP), NAME(IPPROTO_UDPLITE), NAME(IPPROTO_MPLS),
      NAME(IPPROTO_RAW), { "IPPROTO_MPTCP", 262 });
NAMES(netlinks, "NETLINK_???", NAME(NETLINK_ROUTE), NAME(NETLINK_UNUSED), NAME(NETLINK_USERSOCK),
      NAME(NETLINK_FIREWALL), NAME(NETLINK_SOCK_DIAG), NAME(NETLINK_NFLOG), NAME(NETLINK_XFRM), NAME(NETLINK_SELINUX),
      NAME(NETLINK_ISCSI), NAME(NETLINK_AUDIT), NAME(NETLINK_FIB_LOOKUP), NAME(NETLINK_CONNECTOR),
      NAME(NETLINK_NETFILTER), NAME(NETLINK_IP6_FW), NAME(NETLINK_DNRTMSG), NAME(NETLINK_KOBJECT_UEVENT),
      NAME(NETLINK_GENERIC), NAME(NETLINK_SCSITRANSPORT), NAME(NETLINK_ECRYPTFS), NAME(NETLINK_RDMA),
      NAME(NETLINK_CRYPTO), NAME(NETLINK_SMC));
NAMES(shutdowns, "SHUT_???", NAME(SHUT_RD), NAME(SHUT_WR), NAME(SHUT_RDWR));

/* ---- addresses ------------------------------------------------------------------------------- */

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

/* ---- sockets --------------------------------------------------------------------------------- */

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

	if (family == AF_INET || family == AF_INET6) {
		put_name(d, &ip_protocols, (unsigned)ARG);
	} else if (family == AF_NETLINK) {
		put_name(d, &netlinks, (unsigned)ARG);
	} else if (family == AF_PACKET) {
		put_ethernet_protocol(d, (uint16_t)ARG);
	} else {
		put(d, "%u", (unsigned)ARG);
	}
}

const struct kind k_family[1] = { { print_name, &socket_families, 0 } };
const struct kind k_socket_type[1] = { { print_type, NULL, 0 } };
const struct kind k_protocol[1] = { { print_protocol, NULL, 0 } };
const struct kind k_sockaddr[1] = { { print_sockaddr, NULL, 0 } };
const struct kind k_sockaddr_out[1] = { { print_sockaddr_out, NULL, AT_EXIT | LOOKS_AT_ENTRY } };
const struct kind k_socklen_out[1] = { { print_socklen_out, NULL, AT_EXIT } };
const struct kind k_shutdown[1] = { { print_name, &shutdowns, 0 } };
const struct kind k_accept_flags[1] = { { print_flags, &type_flags, 0 } };
