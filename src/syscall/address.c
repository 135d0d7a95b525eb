/* Addresses of sockets. */
#include "syscall/address.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <linux/if_arp.h>
#include <linux/if_ether.h>
#include <linux/if_alg.h>
#include <linux/if_packet.h>
#include <linux/if_xdp.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/param.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <linux/vm_sockets.h>

#include "syscall/call.h"
#include "syscall/constants.h"
#include "syscall/line.h"
#include "syscall/print.h"
#include "syscall/socket.h"

/* clang-format off */
NAMES(ethernet_protocols, "ETH_P_???",
      NAME(ETH_P_LOOP), NAME(ETH_P_PUP), NAME(ETH_P_PUPAT), NAME(ETH_P_TSN), NAME(ETH_P_ERSPAN2), NAME(ETH_P_IP),
      NAME(ETH_P_X25), NAME(ETH_P_ARP), NAME(ETH_P_BPQ), NAME(ETH_P_IEEEPUP), NAME(ETH_P_IEEEPUPAT),
      NAME(ETH_P_BATMAN), NAME(ETH_P_DEC), NAME(ETH_P_DNA_DL), NAME(ETH_P_DNA_RC), NAME(ETH_P_DNA_RT),
      NAME(ETH_P_LAT), NAME(ETH_P_DIAG), NAME(ETH_P_CUST), NAME(ETH_P_SCA), NAME(ETH_P_TEB), NAME(ETH_P_RARP),
      NAME(ETH_P_ATALK), NAME(ETH_P_AARP), NAME(ETH_P_8021Q), NAME(ETH_P_ERSPAN), NAME(ETH_P_IPX), NAME(ETH_P_IPV6),
      NAME(ETH_P_PAUSE), NAME(ETH_P_SLOW), NAME(ETH_P_WCCP), NAME(ETH_P_MPLS_UC), NAME(ETH_P_MPLS_MC),
      NAME(ETH_P_ATMMPOA), NAME(ETH_P_PPP_DISC), NAME(ETH_P_PPP_SES), NAME(ETH_P_LINK_CTL), NAME(ETH_P_ATMFATE),
      NAME(ETH_P_PAE), NAME(ETH_P_PROFINET), NAME(ETH_P_REALTEK), NAME(ETH_P_AOE), NAME(ETH_P_ETHERCAT),
      NAME(ETH_P_8021AD), NAME(ETH_P_802_EX1), NAME(ETH_P_PREAUTH), NAME(ETH_P_TIPC), NAME(ETH_P_LLDP),
      NAME(ETH_P_MRP), NAME(ETH_P_MACSEC), NAME(ETH_P_8021AH), NAME(ETH_P_MVRP), NAME(ETH_P_1588), NAME(ETH_P_NCSI),
      NAME(ETH_P_PRP), NAME(ETH_P_CFM), NAME(ETH_P_FCOE), NAME(ETH_P_IBOE), NAME(ETH_P_TDLS), NAME(ETH_P_FIP),
      NAME(ETH_P_80221), NAME(ETH_P_HSR), NAME(ETH_P_NSH), NAME(ETH_P_LOOPBACK), NAME(ETH_P_QINQ1),
      NAME(ETH_P_QINQ2), NAME(ETH_P_QINQ3), NAME(ETH_P_EDSA), NAME(ETH_P_DSA_8021Q), NAME(ETH_P_DSA_A5PSW),
      NAME(ETH_P_IFE), NAME(ETH_P_AF_IUCV), NAME(ETH_P_802_3_MIN), NAME(ETH_P_802_3), NAME(ETH_P_AX25),
      NAME(ETH_P_ALL), NAME(ETH_P_802_2), NAME(ETH_P_SNAP), NAME(ETH_P_DDCMP), NAME(ETH_P_WAN_PPP),
      NAME(ETH_P_PPP_MP), NAME(ETH_P_LOCALTALK), NAME(ETH_P_CAN), NAME(ETH_P_CANFD), NAME(ETH_P_CANXL),
      NAME(ETH_P_PPPTALK), NAME(ETH_P_TR_802_2), NAME(ETH_P_MOBITEX), NAME(ETH_P_CONTROL), NAME(ETH_P_IRDA),
      NAME(ETH_P_ECONET), NAME(ETH_P_HDLC), NAME(ETH_P_ARCNET), NAME(ETH_P_DSA), NAME(ETH_P_TRAILER),
      NAME(ETH_P_PHONET), NAME(ETH_P_IEEE802154), NAME(ETH_P_CAIF), NAME(ETH_P_XDSA), NAME(ETH_P_MAP),
      NAME(ETH_P_MCTP));
NAMES(hardware_types, "ARPHRD_???",
      NAME(ARPHRD_NETROM), NAME(ARPHRD_ETHER), NAME(ARPHRD_EETHER), NAME(ARPHRD_AX25), NAME(ARPHRD_PRONET),
      NAME(ARPHRD_CHAOS), NAME(ARPHRD_IEEE802), NAME(ARPHRD_ARCNET), NAME(ARPHRD_APPLETLK), NAME(ARPHRD_DLCI),
      NAME(ARPHRD_ATM), NAME(ARPHRD_METRICOM), NAME(ARPHRD_IEEE1394), NAME(ARPHRD_EUI64), NAME(ARPHRD_INFINIBAND),
      NAME(ARPHRD_SLIP), NAME(ARPHRD_CSLIP), NAME(ARPHRD_SLIP6), NAME(ARPHRD_CSLIP6), NAME(ARPHRD_RSRVD),
      NAME(ARPHRD_ADAPT), NAME(ARPHRD_ROSE), NAME(ARPHRD_X25), NAME(ARPHRD_HWX25), NAME(ARPHRD_CAN),
      NAME(ARPHRD_MCTP), NAME(ARPHRD_PPP), NAME(ARPHRD_CISCO), NAME(ARPHRD_LAPB), NAME(ARPHRD_DDCMP),
      NAME(ARPHRD_RAWHDLC), NAME(ARPHRD_RAWIP), NAME(ARPHRD_TUNNEL), NAME(ARPHRD_TUNNEL6), NAME(ARPHRD_FRAD),
      NAME(ARPHRD_SKIP), NAME(ARPHRD_LOOPBACK), NAME(ARPHRD_LOCALTLK), NAME(ARPHRD_FDDI), NAME(ARPHRD_BIF),
      NAME(ARPHRD_SIT), NAME(ARPHRD_IPDDP), NAME(ARPHRD_IPGRE), NAME(ARPHRD_PIMREG), NAME(ARPHRD_HIPPI),
      NAME(ARPHRD_ASH), NAME(ARPHRD_ECONET), NAME(ARPHRD_IRDA), NAME(ARPHRD_FCPP), NAME(ARPHRD_FCAL),
      NAME(ARPHRD_FCPL), NAME(ARPHRD_FCFABRIC), NAME(ARPHRD_IEEE802_TR), NAME(ARPHRD_IEEE80211),
      NAME(ARPHRD_IEEE80211_PRISM), NAME(ARPHRD_IEEE80211_RADIOTAP), NAME(ARPHRD_IEEE802154),
      NAME(ARPHRD_IEEE802154_MONITOR), NAME(ARPHRD_PHONET), NAME(ARPHRD_PHONET_PIPE), NAME(ARPHRD_CAIF),
      NAME(ARPHRD_IP6GRE), NAME(ARPHRD_NETLINK), NAME(ARPHRD_6LOWPAN), NAME(ARPHRD_VSOCKMON), NAME(ARPHRD_VOID),
      NAME(ARPHRD_NONE));
/* clang-format on */
NAMES(packet_types, "PACKET_???", NAME(PACKET_HOST), NAME(PACKET_BROADCAST), NAME(PACKET_MULTICAST),
      NAME(PACKET_OTHERHOST), NAME(PACKET_OUTGOING), NAME(PACKET_LOOPBACK));

NAMES(machines, "VMADDR_CID_???", NAME(VMADDR_CID_HYPERVISOR), { "VMADDR_CID_LOCAL", 1 }, NAME(VMADDR_CID_HOST),
      { "VMADDR_CID_ANY", UINT32_MAX });
NAMES(machine_flags, "VMADDR_FLAG_???", { "VMADDR_FLAG_TO_HOST", 1 });
NAMES(xdp_flags, "XDP_???", { "XDP_SHARED_UMEM", 1 }, { "XDP_COPY", 2 }, { "XDP_ZEROCOPY", 4 },
      { "XDP_USE_NEED_WAKEUP", 8 });
enum { KERN_DRIVER_ONLY = 0x1000 };

enum { LOOPBACK_INDEX = 1 }; /* the kernel's LOOPBACK_IFINDEX */

void put_interface(struct decode *d, unsigned index)
{
	if (index == LOOPBACK_INDEX)
		put_constant(d, "if_nametoindex(\"lo\")", index);
	else
		put(d, "%u", index);
}

/* ---- unix ------------------------------------------------------------------------------------ */

static void put_unix(struct decode *d, const struct sockaddr_un *un, size_t size)
{
	const size_t n = size - offsetof(struct sockaddr_un, sun_path);
	const bool is_abstract = n && !un->sun_path[0];

	if (!n)
		return;
	puts_(d, is_abstract ? ", sun_path=@\"" : ", sun_path=\"");
	if (is_abstract)
		kymo_line_escape(d->text, un->sun_path + 1, n - 1, NULL);
	else
		kymo_line_escape(d->text, un->sun_path, strnlen(un->sun_path, n), NULL);
	puts_(d, "\"");
}

/* ---- internet -------------------------------------------------------------------------------- */

void put_inet_address(struct decode *d, const void *bytes)
{
	char text[INET_ADDRSTRLEN];

	if (!begin_form(d, bytes, sizeof(struct in_addr)))
		return;
	put(d, "inet_addr(\"%s\")", inet_ntop(AF_INET, bytes, text, sizeof(text)));
	end_form(d);
}

void put_inet6_address(struct decode *d, const void *bytes, const char *member)
{
	const bool is_alone = d->target->style.constants == KYMO_CONSTANTS_NAMES;
	char text[INET6_ADDRSTRLEN];

	if (!is_alone)
		put(d, "%s=", member);
	if (!begin_form(d, bytes, sizeof(struct in6_addr)))
		return;
	put(d, "inet_pton(AF_INET6, \"%s\"", inet_ntop(AF_INET6, bytes, text, sizeof(text)));
	if (is_alone)
		put(d, ", &%s", member);
	puts_(d, ")");
	end_form(d);
}

static void put_port(struct decode *d, const char *name, uint16_t port)
{
	put(d, ", %s=", name);
	if (!begin_form(d, &port, sizeof(port)))
		return;
	put(d, "htons(%u)", ntohs(port));
	end_form(d);
}

static void put_inet(struct decode *d, const struct sockaddr_in *in)
{
	put_port(d, "sin_port", in->sin_port);
	puts_(d, ", sin_addr=");
	put_inet_address(d, &in->sin_addr);
}

/* A scope is an interface where the address is one of the link. */
static void put_inet6(struct decode *d, const struct sockaddr_in6 *in, size_t size)
{
	put_port(d, "sin6_port", in->sin6_port);
	puts_(d, ", sin6_flowinfo=");
	if (begin_form(d, &in->sin6_flowinfo, sizeof(in->sin6_flowinfo))) {
		put(d, "htonl(%u)", ntohl(in->sin6_flowinfo));
		end_form(d);
	}
	puts_(d, ", ");
	put_inet6_address(d, &in->sin6_addr, "sin6_addr");
	if (size <= offsetof(struct sockaddr_in6, sin6_scope_id))
		return;
	puts_(d, ", sin6_scope_id=");
	if (IN6_IS_ADDR_LINKLOCAL(&in->sin6_addr) || IN6_IS_ADDR_MC_LINKLOCAL(&in->sin6_addr))
		put_interface(d, in->sin6_scope_id);
	else
		put(d, "%u", in->sin6_scope_id);
}

/* ---- netlink, packets ------------------------------------------------------------------------ */

static void put_netlink(struct decode *d, const struct sockaddr_nl *nl)
{
	if (nl->nl_pad)
		put(d, ", nl_pad=%#x", nl->nl_pad);
	puts_(d, ", nl_pid=");
	put_pid(d, (int)nl->nl_pid);
	put(d, ", nl_groups=%#08x", nl->nl_groups);
}

static void put_byte_list(struct decode *d, const unsigned char *bytes, size_t n, bool has_more)
{
	puts_(d, "[");
	for (size_t i = 0; i < n; i++)
		put(d, "%s%#02x", i ? ", " : "", bytes[i]);
	puts_(d, has_more ? ", ...]" : "]");
}

void put_ethernet_protocol(struct decode *d, uint16_t protocol)
{
	const char *name = name_of(&ethernet_protocols, ntohs(protocol));

	if (!begin_form(d, &protocol, sizeof(protocol)))
		return;
	if (name)
		put(d, "htons(%s)", name);
	else
		put(d, "htons(%#x /* %s */)", ntohs(protocol), ethernet_protocols.unknown);
	end_form(d);
}

/* Some hardware has addresses that are longer than `sll_addr`. */
static void put_packet(struct decode *d, const struct sockaddr_ll *ll, size_t size)
{
	const size_t n = MIN((size_t)ll->sll_halen, size - offsetof(struct sockaddr_ll, sll_addr));

	puts_(d, ", sll_protocol=");
	put_ethernet_protocol(d, ll->sll_protocol);
	puts_(d, ", sll_ifindex=");
	put_interface(d, (unsigned)ll->sll_ifindex);
	puts_(d, ", sll_hatype=");
	put_name(d, &hardware_types, ll->sll_hatype);
	puts_(d, ", sll_pkttype=");
	put_name(d, &packet_types, ll->sll_pkttype);
	put(d, ", sll_halen=%u", ll->sll_halen);
	if (!n)
		return;
	puts_(d, ", sll_addr=");
	put_byte_list(d, ll->sll_addr, n, ll->sll_halen > n);
}

/* ---- machines, XDP, ciphers ------------------------------------------------------------------ */

struct machine {
	uint16_t family, reserved;
	uint32_t port, cid;
	uint8_t flags, zero[3];
};

static void put_machine(struct decode *d, const struct machine *vm)
{
	const char *name = name_of(&machines, vm->cid);

	if (vm->reserved)
		put(d, ", svm_reserved1=%#x", vm->reserved);
	puts_(d, ", svm_cid=");
	if (name)
		put_hex_constant(d, name, vm->cid);
	else
		put(d, "%#x", vm->cid);
	puts_(d, ", svm_port=");
	if (vm->port == VMADDR_PORT_ANY)
		put_hex_constant(d, "VMADDR_PORT_ANY", vm->port);
	else
		put(d, "%#x", vm->port);
	puts_(d, ", svm_flags=");
	put_flags(d, &machine_flags, vm->flags);
	if (vm->zero[0] || vm->zero[1] || vm->zero[2])
		put(d, ", svm_zero=\"\\x%02x\\x%02x\\x%02x\"", vm->zero[0], vm->zero[1], vm->zero[2]);
}

/* The descriptor means something with XDP_SHARED_UMEM only. */
static void put_xdp(struct decode *d, const struct sockaddr_xdp *xdp)
{
	puts_(d, ", sxdp_flags=");
	put_flags(d, &xdp_flags, xdp->sxdp_flags);
	puts_(d, ", sxdp_ifindex=");
	put_interface(d, xdp->sxdp_ifindex);
	put(d, ", sxdp_queue_id=%u", xdp->sxdp_queue_id);
	if (xdp->sxdp_flags & 1) {
		puts_(d, ", sxdp_shared_umem_fd=");
		put_fd(d, (int)xdp->sxdp_shared_umem_fd);
	} else if (xdp->sxdp_shared_umem_fd) {
		put(d, ", sxdp_shared_umem_fd=%#x", xdp->sxdp_shared_umem_fd);
	}
}

/* A name within room for it and its NUL. */
static void put_name_within(struct decode *d, const char *name, size_t room)
{
	const size_t n = strnlen(name, room);

	puts_(d, "\"");
	kymo_line_escape(d->text, name, n < room ? n : room - 1, NULL);
	puts_(d, n < room ? "\"" : "\"...");
}

static void put_crypto_flags(struct decode *d, const char *name, uint32_t flags)
{
	const uint32_t rest = flags & ~(uint32_t)KERN_DRIVER_ONLY;

	put(d, ", %s=%#x", name, flags);
	if (!flags || d->target->style.constants == KYMO_CONSTANTS_NUMBERS)
		return;
	if (flags == rest)
		puts_(d, " /* CRYPTO_ALG_??? */");
	else if (rest)
		put(d, " /* CRYPTO_ALG_KERN_DRIVER_ONLY|%#x */", rest);
	else
		puts_(d, " /* CRYPTO_ALG_KERN_DRIVER_ONLY */");
}

/* The name may be longer than the structure has it. */
static void put_cipher(struct decode *d, const struct sockaddr_alg *alg, size_t size)
{
	puts_(d, ", salg_type=");
	put_name_within(d, (const char *)alg->salg_type, sizeof(alg->salg_type));
	put_crypto_flags(d, "salg_feat", alg->salg_feat);
	put_crypto_flags(d, "salg_mask", alg->salg_mask);
	puts_(d, ", salg_name=");
	put_name_within(d, (const char *)alg + offsetof(struct sockaddr_alg, salg_name),
			size - offsetof(struct sockaddr_alg, salg_name));
}

/* ---- IPX, X.25, AX.25 ------------------------------------------------------------------------ */

struct ipx {
	uint16_t family, port;
	uint32_t network;
	uint8_t node[6], type, zero;
};

static void put_ipx(struct decode *d, const struct ipx *ipx)
{
	put_port(d, "sipx_port", ipx->port);
	put(d, ", sipx_network=htonl(%#x), sipx_node=", ntohl(ipx->network));
	put_byte_list(d, ipx->node, sizeof(ipx->node), false);
	put(d, ", sipx_type=%#02x", ipx->type);
	if (ipx->zero)
		put(d, ", sipx_zero=%#02x", ipx->zero);
}

enum {
	X25_DIGITS = 15,
	X25_SIZE = 2 + X25_DIGITS + 1,
	AX25_SIZE = 16, /* family, a call sign, and how many more there are, aligned */
	AX25_COUNT_AT = 12,
	CALL_SIZE = 7, /* six letters and the station's number, all shifted by one */
	DIGIPEATERS_MAX = 8,
};

static void put_x25(struct decode *d, const char *digits)
{
	puts_(d, ", sx25_addr={x25_addr=");
	put_name_within(d, digits, X25_DIGITS + 1);
	puts_(d, "}");
}

/* "CALL-3"; a call sign with other characters is shown as bytes, and its text in a comment where that is printable. */
static void put_call_sign(struct decode *d, const unsigned char *call)
{
	static const unsigned char none[CALL_SIZE] = { ' ' << 1, ' ' << 1, ' ' << 1, ' ' << 1, ' ' << 1, ' ' << 1, 0 };
	char letters[CALL_SIZE] = "";
	const enum kymo_constants style = d->target->style.constants;
	bool is_right = !(call[6] & ~0x1e), is_shown = true, is_alone;
	size_t n = CALL_SIZE - 1;

	if (style == KYMO_CONSTANTS_NAMES && !memcmp(call, none, sizeof(none))) {
		puts_(d, "*");
		return;
	}
	while (n && call[n - 1] >> 1 == ' ')
		n--;
	for (size_t i = 0; i < CALL_SIZE - 1; i++) {
		letters[i] = (char)(call[i] >> 1);
		is_shown &= isprint((unsigned char)letters[i]) != 0;
		is_right &= !(call[i] & 1) &&
			    (i >= n || isupper((unsigned char)letters[i]) || isdigit((unsigned char)letters[i]));
	}
	letters[n] = '\0';
	is_shown &= !strpbrk(letters, "*/");
	is_alone = is_right && n && style == KYMO_CONSTANTS_NAMES;
	is_shown &= !is_right || !n || style != KYMO_CONSTANTS_NUMBERS;
	if (!is_alone) {
		puts_(d, "{ax25_call=\"");
		for (size_t i = 0; i < CALL_SIZE; i++)
			put(d, "\\x%02x", call[i]);
		puts_(d, is_shown ? "\"} /* " : "\"}");
	}
	if (is_shown)
		put(d, "%s-%u%s", letters, call[6] >> 1 & 15u, is_alone ? "" : " */");
}

static void put_ax25(struct decode *d, const unsigned char *bytes, size_t size)
{
	const size_t room = MIN((size - AX25_SIZE) / CALL_SIZE, (size_t)DIGIPEATERS_MAX);
	int count;

	memcpy(&count, bytes + AX25_COUNT_AT, sizeof(count));
	puts_(d, size == AX25_SIZE && !count ? ", sax25_call=" : ", fsa_ax25={sax25_call=");
	put_call_sign(d, bytes + 2);
	put(d, ", sax25_ndigis=%d", count);
	if (size == AX25_SIZE && !count)
		return;
	puts_(d, "}");
	if (count > 0) {
		const size_t wanted = MIN((size_t)count, (size_t)DIGIPEATERS_MAX), n = MIN(wanted, room);

		puts_(d, ", fsa_digipeater=[");
		for (size_t i = 0; i < n; i++) {
			puts_(d, i ? ", " : "");
			put_call_sign(d, bytes + AX25_SIZE + i * CALL_SIZE);
		}
		puts_(d, n == wanted ? "]" : n ? ", ...]" : "...]");
	}
	if (size > AX25_SIZE + room * CALL_SIZE)
		puts_(d, ", ...");
}

/* ---- all ------------------------------------------------------------------------------------- */

/* The members of an address after its family; false where it is of none that is known here, or too short for it. */
static bool put_members(struct decode *d, const void *bytes, unsigned family, size_t size)
{
	if (family == AF_UNIX)
		put_unix(d, bytes, MIN(size, sizeof(struct sockaddr_un)));
	else if (family == AF_INET && size >= sizeof(struct sockaddr_in))
		put_inet(d, bytes);
	else if (family == AF_INET6 && size >= offsetof(struct sockaddr_in6, sin6_scope_id))
		put_inet6(d, bytes, size);
	else if (family == AF_NETLINK && size >= sizeof(struct sockaddr_nl))
		put_netlink(d, bytes);
	else if (family == AF_PACKET && size >= sizeof(struct sockaddr_ll))
		put_packet(d, bytes, size);
	else if (family == AF_VSOCK && size >= sizeof(struct machine))
		put_machine(d, bytes);
	else if (family == AF_XDP && size >= sizeof(struct sockaddr_xdp))
		put_xdp(d, bytes);
	else if (family == AF_ALG && size > offsetof(struct sockaddr_alg, salg_name))
		put_cipher(d, bytes, size);
	else if (family == AF_IPX && size >= sizeof(struct ipx))
		put_ipx(d, bytes);
	else if (family == AF_X25 && size >= X25_SIZE)
		put_x25(d, (const char *)bytes + 2);
	else if (family == AF_AX25 && size >= AX25_SIZE)
		put_ax25(d, bytes, size);
	else
		return false;
	return true;
}

void put_sockaddr_bytes(struct decode *d, const void *bytes, size_t size)
{
	_Alignas(8) char copy[SOCKADDR_MAX] = { 0 };
	uint16_t family;

	if (size < sizeof(family)) {
		puts_(d, "???");
		return;
	}
	memcpy(copy, bytes, MIN(size, sizeof(copy)));
	memcpy(&family, copy, sizeof(family));
	puts_(d, "{sa_family=");
	put_name(d, &socket_families, family);
	if (!put_members(d, copy, family, MIN(size, sizeof(copy))) && size > sizeof(family)) {
		puts_(d, ", sa_data=\"");
		kymo_line_escape(d->text, copy + sizeof(family), MIN(size, sizeof(copy)) - sizeof(family), NULL);
		puts_(d, "\"");
	}
	puts_(d, "}");
}

void put_sockaddr(struct decode *d, uint64_t address, uint64_t size)
{
	char bytes[SOCKADDR_MAX];
	const size_t n = MIN(size, sizeof(bytes));

	if (n < sizeof(uint16_t) || !fetch(d, address, bytes, n))
		put_address(d, address);
	else
		put_sockaddr_bytes(d, bytes, n);
}
