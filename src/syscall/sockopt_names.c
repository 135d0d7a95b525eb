/* Names of socket options, by level, from the kernel's headers: <linux/in.h>, <linux/tcp.h>, <linux/if_packet.h>, … */
#include "syscall/sockopt_names.h"

#include "syscall/constants.h"
#include "syscall/socket.h"

/* clang-format off */
NAMES(ip_questions, "IP_???",
      { "IPT_SO_GET_INFO", 64 }, { "IPT_SO_GET_ENTRIES", 65 }, { "IPT_SO_GET_REVISION_MATCH", 66 },
      { "IPT_SO_GET_REVISION_TARGET", 67 }, { "ARPT_SO_GET_INFO", 96 }, { "ARPT_SO_GET_ENTRIES", 97 },
      { "ARPT_SO_GET_REVISION_TARGET", 99 }, { "EBT_SO_GET_INFO", 128 }, { "EBT_SO_GET_ENTRIES", 129 },
      { "EBT_SO_GET_INIT_INFO", 130 }, { "EBT_SO_GET_INIT_ENTRIES", 131 });
NAMES(ip_options, "IP_???",
      { "IP_TOS", 1 }, { "IP_TTL", 2 }, { "IP_HDRINCL", 3 }, { "IP_OPTIONS", 4 }, { "IP_ROUTER_ALERT", 5 },
      { "IP_RECVOPTS", 6 }, { "IP_RETOPTS", 7 }, { "IP_PKTINFO", 8 }, { "IP_PKTOPTIONS", 9 },
      { "IP_MTU_DISCOVER", 10 }, { "IP_RECVERR", 11 }, { "IP_RECVTTL", 12 }, { "IP_RECVTOS", 13 }, { "IP_MTU", 14 },
      { "IP_FREEBIND", 15 }, { "IP_IPSEC_POLICY", 16 }, { "IP_XFRM_POLICY", 17 }, { "IP_PASSSEC", 18 },
      { "IP_TRANSPARENT", 19 }, { "IP_ORIGDSTADDR", 20 }, { "IP_MINTTL", 21 }, { "IP_NODEFRAG", 22 },
      { "IP_CHECKSUM", 23 }, { "IP_BIND_ADDRESS_NO_PORT", 24 }, { "IP_RECVFRAGSIZE", 25 },
      { "IP_RECVERR_RFC4884", 26 }, { "IP_MULTICAST_IF", 32 }, { "IP_MULTICAST_TTL", 33 },
      { "IP_MULTICAST_LOOP", 34 }, { "IP_ADD_MEMBERSHIP", 35 }, { "IP_DROP_MEMBERSHIP", 36 },
      { "IP_UNBLOCK_SOURCE", 37 }, { "IP_BLOCK_SOURCE", 38 }, { "IP_ADD_SOURCE_MEMBERSHIP", 39 },
      { "IP_DROP_SOURCE_MEMBERSHIP", 40 }, { "IP_MSFILTER", 41 }, { "MCAST_JOIN_GROUP", 42 },
      { "MCAST_BLOCK_SOURCE", 43 }, { "MCAST_UNBLOCK_SOURCE", 44 }, { "MCAST_LEAVE_GROUP", 45 },
      { "MCAST_JOIN_SOURCE_GROUP", 46 }, { "MCAST_LEAVE_SOURCE_GROUP", 47 }, { "MCAST_MSFILTER", 48 },
      { "IP_MULTICAST_ALL", 49 }, { "IP_UNICAST_IF", 50 }, { "IPT_SO_SET_REPLACE", 64 },
      { "IPT_SO_SET_ADD_COUNTERS", 65 }, { "ARPT_SO_SET_REPLACE", 96 }, { "ARPT_SO_SET_ADD_COUNTERS", 97 },
      { "EBT_SO_SET_ENTRIES", 128 }, { "EBT_SO_SET_COUNTERS", 129 });
NAMES(socket_questions, "SO_???",
      { "SO_GET_FILTER", 26 });
NAMES(socket_options, "SO_???",
      { "SO_DEBUG", 1 }, { "SO_REUSEADDR", 2 }, { "SO_TYPE", 3 }, { "SO_ERROR", 4 }, { "SO_DONTROUTE", 5 },
      { "SO_BROADCAST", 6 }, { "SO_SNDBUF", 7 }, { "SO_RCVBUF", 8 }, { "SO_KEEPALIVE", 9 }, { "SO_OOBINLINE", 10 },
      { "SO_NO_CHECK", 11 }, { "SO_PRIORITY", 12 }, { "SO_LINGER", 13 }, { "SO_BSDCOMPAT", 14 },
      { "SO_REUSEPORT", 15 }, { "SO_PASSCRED", 16 }, { "SO_PEERCRED", 17 }, { "SO_RCVLOWAT", 18 },
      { "SO_SNDLOWAT", 19 }, { "SO_RCVTIMEO_OLD", 20 }, { "SO_SNDTIMEO_OLD", 21 },
      { "SO_SECURITY_AUTHENTICATION", 22 }, { "SO_SECURITY_ENCRYPTION_TRANSPORT", 23 },
      { "SO_SECURITY_ENCRYPTION_NETWORK", 24 }, { "SO_BINDTODEVICE", 25 }, { "SO_ATTACH_FILTER", 26 },
      { "SO_DETACH_FILTER", 27 }, { "SO_PEERNAME", 28 }, { "SO_TIMESTAMP_OLD", 29 }, { "SO_ACCEPTCONN", 30 },
      { "SO_PEERSEC", 31 }, { "SO_SNDBUFFORCE", 32 }, { "SO_RCVBUFFORCE", 33 }, { "SO_PASSSEC", 34 },
      { "SO_TIMESTAMPNS_OLD", 35 }, { "SO_MARK", 36 }, { "SO_TIMESTAMPING_OLD", 37 }, { "SO_PROTOCOL", 38 },
      { "SO_DOMAIN", 39 }, { "SO_RXQ_OVFL", 40 }, { "SO_WIFI_STATUS", 41 }, { "SO_PEEK_OFF", 42 }, { "SO_NOFCS", 43 },
      { "SO_LOCK_FILTER", 44 }, { "SO_SELECT_ERR_QUEUE", 45 }, { "SO_BUSY_POLL", 46 }, { "SO_MAX_PACING_RATE", 47 },
      { "SO_BPF_EXTENSIONS", 48 }, { "SO_INCOMING_CPU", 49 }, { "SO_ATTACH_BPF", 50 },
      { "SO_ATTACH_REUSEPORT_CBPF", 51 }, { "SO_ATTACH_REUSEPORT_EBPF", 52 }, { "SO_CNX_ADVICE", 53 },
      { "SO_MEMINFO", 55 }, { "SO_INCOMING_NAPI_ID", 56 }, { "SO_COOKIE", 57 }, { "SO_PEERGROUPS", 59 },
      { "SO_ZEROCOPY", 60 }, { "SO_TXTIME", 61 }, { "SO_BINDTOIFINDEX", 62 }, { "SO_TIMESTAMP_NEW", 63 },
      { "SO_TIMESTAMPNS_NEW", 64 }, { "SO_TIMESTAMPING_NEW", 65 }, { "SO_RCVTIMEO_NEW", 66 },
      { "SO_SNDTIMEO_NEW", 67 }, { "SO_DETACH_REUSEPORT_BPF", 68 }, { "SO_PREFER_BUSY_POLL", 69 },
      { "SO_BUSY_POLL_BUDGET", 70 }, { "SO_NETNS_COOKIE", 71 }, { "SO_BUF_LOCK", 72 }, { "SO_RESERVE_MEM", 73 },
      { "SO_TXREHASH", 74 }, { "SO_TXREHASH", 74 }, { "SO_RCVMARK", 75 });
NAMES(tcp_options, "TCP_???",
      { "TCP_NODELAY", 1 }, { "TCP_MAXSEG", 2 }, { "TCP_CORK", 3 }, { "TCP_KEEPIDLE", 4 }, { "TCP_KEEPINTVL", 5 },
      { "TCP_KEEPCNT", 6 }, { "TCP_SYNCNT", 7 }, { "TCP_LINGER2", 8 }, { "TCP_DEFER_ACCEPT", 9 },
      { "TCP_WINDOW_CLAMP", 10 }, { "TCP_INFO", 11 }, { "TCP_QUICKACK", 12 }, { "TCP_CONGESTION", 13 },
      { "TCP_MD5SIG", 14 }, { "TCP_COOKIE_TRANSACTIONS", 15 }, { "TCP_THIN_LINEAR_TIMEOUTS", 16 },
      { "TCP_THIN_DUPACK", 17 }, { "TCP_USER_TIMEOUT", 18 }, { "TCP_REPAIR", 19 }, { "TCP_REPAIR_QUEUE", 20 },
      { "TCP_QUEUE_SEQ", 21 }, { "TCP_REPAIR_OPTIONS", 22 }, { "TCP_FASTOPEN", 23 }, { "TCP_TIMESTAMP", 24 },
      { "TCP_NOTSENT_LOWAT", 25 }, { "TCP_CC_INFO", 26 }, { "TCP_SAVE_SYN", 27 }, { "TCP_SAVED_SYN", 28 },
      { "TCP_REPAIR_WINDOW", 29 }, { "TCP_FASTOPEN_CONNECT", 30 }, { "TCP_ULP", 31 }, { "TCP_MD5SIG_EXT", 32 },
      { "TCP_FASTOPEN_KEY", 33 }, { "TCP_FASTOPEN_NO_COOKIE", 34 }, { "TCP_ZEROCOPY_RECEIVE", 35 }, { "TCP_INQ", 36 },
      { "TCP_TX_DELAY", 37 });
NAMES(udp_options, "UDP_???",
      { "UDP_CORK", 1 }, { "UDP_ENCAP", 100 }, { "UDP_NO_CHECK6_TX", 101 }, { "UDP_NO_CHECK6_RX", 102 },
      { "UDP_SEGMENT", 103 }, { "UDP_GRO", 104 });
NAMES(ipv6_questions, "IPV6_???",
      { "IP6T_SO_GET_INFO", 64 }, { "IP6T_SO_GET_ENTRIES", 65 }, { "IP6T_SO_GET_REVISION_MATCH", 68 },
      { "IP6T_SO_GET_REVISION_TARGET", 69 });
NAMES(ipv6_options, "IPV6_???",
      { "IPV6_ADDRFORM", 1 }, { "IPV6_2292PKTINFO", 2 }, { "IPV6_2292HOPOPTS", 3 }, { "IPV6_2292DSTOPTS", 4 },
      { "IPV6_2292RTHDR", 5 }, { "IPV6_2292PKTOPTIONS", 6 }, { "IPV6_CHECKSUM", 7 }, { "IPV6_2292HOPLIMIT", 8 },
      { "IPV6_NEXTHOP", 9 }, { "IPV6_AUTHHDR", 10 }, { "IPV6_FLOWINFO", 11 }, { "IPV6_UNICAST_HOPS", 16 },
      { "IPV6_MULTICAST_IF", 17 }, { "IPV6_MULTICAST_HOPS", 18 }, { "IPV6_MULTICAST_LOOP", 19 },
      { "IPV6_ADD_MEMBERSHIP", 20 }, { "IPV6_DROP_MEMBERSHIP", 21 }, { "IPV6_ROUTER_ALERT", 22 },
      { "IPV6_MTU_DISCOVER", 23 }, { "IPV6_MTU", 24 }, { "IPV6_RECVERR", 25 }, { "IPV6_V6ONLY", 26 },
      { "IPV6_JOIN_ANYCAST", 27 }, { "IPV6_LEAVE_ANYCAST", 28 }, { "IPV6_MULTICAST_ALL", 29 },
      { "IPV6_ROUTER_ALERT_ISOLATE", 30 }, { "IPV6_RECVERR_RFC4884", 31 }, { "IPV6_FLOWLABEL_MGR", 32 },
      { "IPV6_FLOWINFO_SEND", 33 }, { "IPV6_IPSEC_POLICY", 34 }, { "IPV6_XFRM_POLICY", 35 }, { "IPV6_HDRINCL", 36 },
      { "MCAST_JOIN_GROUP", 42 }, { "MCAST_BLOCK_SOURCE", 43 }, { "MCAST_UNBLOCK_SOURCE", 44 },
      { "MCAST_LEAVE_GROUP", 45 }, { "MCAST_JOIN_SOURCE_GROUP", 46 }, { "MCAST_LEAVE_SOURCE_GROUP", 47 },
      { "MCAST_MSFILTER", 48 }, { "IPV6_RECVPKTINFO", 49 }, { "IPV6_PKTINFO", 50 }, { "IPV6_RECVHOPLIMIT", 51 },
      { "IPV6_HOPLIMIT", 52 }, { "IPV6_RECVHOPOPTS", 53 }, { "IPV6_HOPOPTS", 54 }, { "IPV6_RTHDRDSTOPTS", 55 },
      { "IPV6_RECVRTHDR", 56 }, { "IPV6_RTHDR", 57 }, { "IPV6_RECVDSTOPTS", 58 }, { "IPV6_DSTOPTS", 59 },
      { "IPV6_RECVPATHMTU", 60 }, { "IPV6_PATHMTU", 61 }, { "IPV6_DONTFRAG", 62 }, { "IPV6_USE_MIN_MTU", 63 },
      { "IP6T_SO_SET_REPLACE", 64 }, { "IP6T_SO_SET_ADD_COUNTERS", 65 }, { "IPV6_RECVTCLASS", 66 },
      { "IPV6_TCLASS", 67 }, { "IPV6_AUTOFLOWLABEL", 70 }, { "IPV6_ADDR_PREFERENCES", 72 },
      { "IPV6_MINHOPCOUNT", 73 }, { "IPV6_ORIGDSTADDR", 74 }, { "IPV6_TRANSPARENT", 75 }, { "IPV6_UNICAST_IF", 76 },
      { "IPV6_RECVFRAGSIZE", 77 }, { "IPV6_FREEBIND", 78 });
NAMES(sctp_options, "SCTP_???",
      { "SCTP_RTOINFO", 0 }, { "SCTP_ASSOCINFO", 1 }, { "SCTP_INITMSG", 2 }, { "SCTP_NODELAY", 3 },
      { "SCTP_AUTOCLOSE", 4 }, { "SCTP_SET_PEER_PRIMARY_ADDR", 5 }, { "SCTP_PRIMARY_ADDR", 6 },
      { "SCTP_ADAPTATION_LAYER", 7 }, { "SCTP_DISABLE_FRAGMENTS", 8 }, { "SCTP_PEER_ADDR_PARAMS", 9 },
      { "SCTP_DEFAULT_SEND_PARAM", 10 }, { "SCTP_EVENTS", 11 }, { "SCTP_I_WANT_MAPPED_V4_ADDR", 12 },
      { "SCTP_MAXSEG", 13 }, { "SCTP_STATUS", 14 }, { "SCTP_GET_PEER_ADDR_INFO", 15 }, { "SCTP_DELAYED_SACK", 16 },
      { "SCTP_CONTEXT", 17 }, { "SCTP_FRAGMENT_INTERLEAVE", 18 }, { "SCTP_PARTIAL_DELIVERY_POINT", 19 },
      { "SCTP_MAX_BURST", 20 }, { "SCTP_AUTH_CHUNK", 21 }, { "SCTP_HMAC_IDENT", 22 }, { "SCTP_AUTH_KEY", 23 },
      { "SCTP_AUTH_ACTIVE_KEY", 24 }, { "SCTP_AUTH_DELETE_KEY", 25 }, { "SCTP_PEER_AUTH_CHUNKS", 26 },
      { "SCTP_LOCAL_AUTH_CHUNKS", 27 }, { "SCTP_GET_ASSOC_NUMBER", 28 }, { "SCTP_GET_ASSOC_ID_LIST", 29 },
      { "SCTP_AUTO_ASCONF", 30 }, { "SCTP_PEER_ADDR_THLDS", 31 }, { "SCTP_RECVRCVINFO", 32 },
      { "SCTP_RECVNXTINFO", 33 }, { "SCTP_DEFAULT_SNDINFO", 34 }, { "SCTP_AUTH_DEACTIVATE_KEY", 35 },
      { "SCTP_REUSE_PORT", 36 }, { "SCTP_PEER_ADDR_THLDS_V2", 37 }, { "SCTP_SOCKOPT_BINDX_ADD", 100 },
      { "SCTP_SOCKOPT_BINDX_REM", 101 }, { "SCTP_SOCKOPT_PEELOFF", 102 }, { "SCTP_GET_PEER_ADDRS_NUM_OLD", 103 },
      { "SCTP_GET_PEER_ADDRS_OLD", 104 }, { "SCTP_GET_LOCAL_ADDRS_NUM_OLD", 105 },
      { "SCTP_GET_LOCAL_ADDRS_OLD", 106 }, { "SCTP_SOCKOPT_CONNECTX_OLD", 107 }, { "SCTP_GET_PEER_ADDRS", 108 },
      { "SCTP_GET_LOCAL_ADDRS", 109 }, { "SCTP_SOCKOPT_CONNECTX", 110 }, { "SCTP_SOCKOPT_CONNECTX3", 111 },
      { "SCTP_GET_ASSOC_STATS", 112 }, { "SCTP_PR_SUPPORTED", 113 }, { "SCTP_DEFAULT_PRINFO", 114 },
      { "SCTP_PR_ASSOC_STATUS", 115 }, { "SCTP_PR_STREAM_STATUS", 116 }, { "SCTP_RECONFIG_SUPPORTED", 117 },
      { "SCTP_ENABLE_STREAM_RESET", 118 }, { "SCTP_RESET_STREAMS", 119 }, { "SCTP_RESET_ASSOC", 120 },
      { "SCTP_ADD_STREAMS", 121 }, { "SCTP_SOCKOPT_PEELOFF_FLAGS", 122 }, { "SCTP_STREAM_SCHEDULER", 123 },
      { "SCTP_STREAM_SCHEDULER_VALUE", 124 }, { "SCTP_INTERLEAVING_SUPPORTED", 125 }, { "SCTP_SENDMSG_CONNECT", 126 },
      { "SCTP_EVENT", 127 }, { "SCTP_ASCONF_SUPPORTED", 128 }, { "SCTP_AUTH_SUPPORTED", 129 },
      { "SCTP_ECN_SUPPORTED", 130 }, { "SCTP_EXPOSE_POTENTIALLY_FAILED_STATE", 131 },
      { "SCTP_REMOTE_UDP_ENCAPS_PORT", 132 }, { "SCTP_PLPMTUD_PROBE_INTERVAL", 133 });
NAMES(raw_options, "RAW_???",
      { "ICMP_FILTER", 1 });
NAMES(ipx_options, "IPX_???",
      { "IPX_TYPE", 1 });
NAMES(ax25_options, "AX25_???",
      { "AX25_WINDOW", 1 }, { "AX25_T1", 2 }, { "AX25_N2", 3 }, { "AX25_T3", 4 }, { "AX25_T2", 5 },
      { "AX25_BACKOFF", 6 }, { "AX25_EXTSEQ", 7 }, { "AX25_PIDINCL", 8 }, { "AX25_IDLE", 9 }, { "AX25_PACLEN", 10 },
      { "AX25_IAMDIGI", 12 }, { "SO_BINDTODEVICE", 25 });
NAMES(packet_options, "PACKET_???",
      { "PACKET_ADD_MEMBERSHIP", 1 }, { "PACKET_DROP_MEMBERSHIP", 2 }, { "PACKET_RECV_OUTPUT", 3 },
      { "PACKET_RX_RING", 5 }, { "PACKET_STATISTICS", 6 }, { "PACKET_COPY_THRESH", 7 }, { "PACKET_AUXDATA", 8 },
      { "PACKET_ORIGDEV", 9 }, { "PACKET_VERSION", 10 }, { "PACKET_HDRLEN", 11 }, { "PACKET_RESERVE", 12 },
      { "PACKET_TX_RING", 13 }, { "PACKET_LOSS", 14 }, { "PACKET_VNET_HDR", 15 }, { "PACKET_TX_TIMESTAMP", 16 },
      { "PACKET_TIMESTAMP", 17 }, { "PACKET_FANOUT", 18 }, { "PACKET_TX_HAS_OFF", 19 }, { "PACKET_QDISC_BYPASS", 20 },
      { "PACKET_ROLLOVER_STATS", 21 }, { "PACKET_FANOUT_DATA", 22 }, { "PACKET_IGNORE_OUTGOING", 23 });
NAMES(irda_options, "IRLMP_???",
      { "IRLMP_ENUMDEVICES", 1 }, { "IRLMP_IAS_SET", 2 }, { "IRLMP_IAS_QUERY", 3 }, { "IRLMP_HINTS_SET", 4 },
      { "IRLMP_QOS_SET", 5 }, { "IRLMP_QOS_GET", 6 }, { "IRLMP_MAX_SDU_SIZE", 7 }, { "IRLMP_IAS_GET", 8 },
      { "IRLMP_IAS_DEL", 9 }, { "IRLMP_HINT_MASK_SET", 10 }, { "IRLMP_WAITDEVICE", 11 });
NAMES(llc_options, "LLC_OPT_???",
      { "LLC_OPT_UNKNOWN", 0 }, { "LLC_OPT_RETRY", 1 }, { "LLC_OPT_SIZE", 2 }, { "LLC_OPT_ACK_TMR_EXP", 3 },
      { "LLC_OPT_P_TMR_EXP", 4 }, { "LLC_OPT_REJ_TMR_EXP", 5 }, { "LLC_OPT_BUSY_TMR_EXP", 6 },
      { "LLC_OPT_TX_WIN", 7 }, { "LLC_OPT_RX_WIN", 8 }, { "LLC_OPT_PKTINFO", 9 });
NAMES(dccp_options, "DCCP_SOCKOPT_???",
      { "DCCP_SOCKOPT_PACKET_SIZE", 1 }, { "DCCP_SOCKOPT_SERVICE", 2 }, { "DCCP_SOCKOPT_CHANGE_L", 3 },
      { "DCCP_SOCKOPT_CHANGE_R", 4 }, { "DCCP_SOCKOPT_GET_CUR_MPS", 5 }, { "DCCP_SOCKOPT_SERVER_TIMEWAIT", 6 },
      { "DCCP_SOCKOPT_SEND_CSCOV", 10 }, { "DCCP_SOCKOPT_RECV_CSCOV", 11 }, { "DCCP_SOCKOPT_AVAILABLE_CCIDS", 12 },
      { "DCCP_SOCKOPT_CCID", 13 }, { "DCCP_SOCKOPT_TX_CCID", 14 }, { "DCCP_SOCKOPT_RX_CCID", 15 },
      { "DCCP_SOCKOPT_QPOLICY_ID", 16 }, { "DCCP_SOCKOPT_QPOLICY_TXQLEN", 17 }, { "DCCP_SOCKOPT_CCID_RX_INFO", 128 });
NAMES(netlink_options, "NETLINK_???",
      { "NETLINK_ADD_MEMBERSHIP", 1 }, { "NETLINK_DROP_MEMBERSHIP", 2 }, { "NETLINK_PKTINFO", 3 },
      { "NETLINK_BROADCAST_ERROR", 4 }, { "NETLINK_NO_ENOBUFS", 5 }, { "NETLINK_RX_RING", 6 },
      { "NETLINK_TX_RING", 7 }, { "NETLINK_LISTEN_ALL_NSID", 8 }, { "NETLINK_LIST_MEMBERSHIPS", 9 },
      { "NETLINK_CAP_ACK", 10 }, { "NETLINK_EXT_ACK", 11 }, { "NETLINK_GET_STRICT_CHK", 12 });
NAMES(tipc_options, "TIPC_???",
      { "TIPC_IMPORTANCE", 127 }, { "TIPC_SRC_DROPPABLE", 128 }, { "TIPC_DEST_DROPPABLE", 129 },
      { "TIPC_CONN_TIMEOUT", 130 }, { "TIPC_NODE_RECVQ_DEPTH", 131 }, { "TIPC_SOCK_RECVQ_DEPTH", 132 },
      { "TIPC_MCAST_BROADCAST", 133 }, { "TIPC_MCAST_REPLICAST", 134 }, { "TIPC_GROUP_JOIN", 135 },
      { "TIPC_GROUP_LEAVE", 136 }, { "TIPC_SOCK_RECVQ_USED", 137 }, { "TIPC_NODELAY", 138 });
NAMES(rxrpc_options, "RXRPC_???",
      { "RXRPC_SECURITY_KEY", 1 }, { "RXRPC_SECURITY_KEYRING", 2 }, { "RXRPC_EXCLUSIVE_CONNECTION", 3 },
      { "RXRPC_MIN_SECURITY_LEVEL", 4 }, { "RXRPC_UPGRADEABLE_SERVICE", 5 }, { "RXRPC_SUPPORTED_CMSG", 6 });
NAMES(pppol2tp_options, "PPPOL2TP_SO_???",
      { "PPPOL2TP_SO_DEBUG", 1 }, { "PPPOL2TP_SO_RECVSEQ", 2 }, { "PPPOL2TP_SO_SENDSEQ", 3 },
      { "PPPOL2TP_SO_LNSMODE", 4 }, { "PPPOL2TP_SO_REORDERTO", 5 });
NAMES(bluetooth_options, "BT_???",
      { "BT_SECURITY", 4 }, { "BT_DEFER_SETUP", 7 }, { "BT_FLUSHABLE", 8 }, { "BT_POWER", 9 },
      { "BT_CHANNEL_POLICY", 10 }, { "BT_VOICE", 11 }, { "BT_SNDMTU", 12 }, { "BT_RCVMTU", 13 });
NAMES(pnpipe_options, "PNPIPE_???",
      { "PNPIPE_ENCAP", 1 }, { "PNPIPE_IFINDEX", 2 }, { "PNPIPE_HANDLE", 3 }, { "PNPIPE_INITSTATE", 4 });
NAMES(rds_options, "RDS_???",
      { "RDS_CANCEL_SENT_TO", 1 }, { "RDS_GET_MR", 2 }, { "RDS_FREE_MR", 3 }, { "RDS_BARRIER", 4 },
      { "RDS_RECVERR", 5 }, { "RDS_CONG_MONITOR", 6 }, { "RDS_GET_MR_FOR_DEST", 7 }, { "SO_RDS_TRANSPORT", 8 },
      { "SO_RDS_MSG_RXPATH_LATENCY", 10 }, { "SO_TIMESTAMP_OLD", 29 });
NAMES(iucv_options, "SO_???",
      { "SO_IPRMDATA_MSG", 128 });
NAMES(caif_options, "CAIFSO_???",
      { "CAIFSO_LINK_SELECT", 127 }, { "CAIFSO_REQ_PARAM", 128 }, { "CAIFSO_RSP_PARAM", 129 });
NAMES(alg_options, "ALG_???",
      { "ALG_SET_KEY", 1 }, { "ALG_SET_IV", 2 }, { "ALG_SET_OP", 3 }, { "ALG_SET_AEAD_ASSOCLEN", 4 },
      { "ALG_SET_AEAD_AUTHSIZE", 5 }, { "ALG_SET_DRBG_ENTROPY", 6 });
NAMES(nfc_options, "NFC_LLCP_???",
      { "NFC_LLCP_RW", 0 }, { "NFC_LLCP_MIUX", 1 }, { "NFC_LLCP_REMOTE_MIU", 2 }, { "NFC_LLCP_REMOTE_LTO", 3 },
      { "NFC_LLCP_REMOTE_RW", 4 });
NAMES(kcm_options, "KCM_???",
      { "KCM_RECV_DISABLE", 1 });
NAMES(tls_options, "TLS_???",
      { "TLS_TX", 1 }, { "TLS_RX", 2 });
NAMES(xdp_options, "XDP_???",
      { "XDP_MMAP_OFFSETS", 1 }, { "XDP_RX_RING", 2 }, { "XDP_TX_RING", 3 }, { "XDP_UMEM_REG", 4 },
      { "XDP_UMEM_FILL_RING", 5 }, { "XDP_UMEM_COMPLETION_RING", 6 }, { "XDP_STATISTICS", 7 }, { "XDP_OPTIONS", 8 });
/* clang-format on */

static const struct {
	int level;
	const struct names *names;
	const struct names *asked; /* what getsockopt calls otherwise; or NULL */
} levels[] = {
	{ 0, &ip_options, &ip_questions },
	{ 1, &socket_options, &socket_questions },
	{ 6, &tcp_options, NULL },
	{ 17, &udp_options, NULL },
	{ 41, &ipv6_options, &ipv6_questions },
	{ 132, &sctp_options, NULL },
	{ 255, &raw_options, NULL },
	{ 256, &ipx_options, NULL },
	{ 257, &ax25_options, NULL },
	{ 263, &packet_options, NULL },
	{ 266, &irda_options, NULL },
	{ 268, &llc_options, NULL },
	{ 269, &dccp_options, NULL },
	{ 270, &netlink_options, NULL },
	{ 271, &tipc_options, NULL },
	{ 272, &rxrpc_options, NULL },
	{ 273, &pppol2tp_options, NULL },
	{ 274, &bluetooth_options, NULL },
	{ 275, &pnpipe_options, NULL },
	{ 276, &rds_options, NULL },
	{ 277, &iucv_options, NULL },
	{ 278, &caif_options, NULL },
	{ 279, &alg_options, NULL },
	{ 280, &nfc_options, NULL },
	{ 281, &kcm_options, NULL },
	{ 282, &tls_options, NULL },
	{ 283, &xdp_options, NULL },
};

const struct names *socket_option_names(int level, int option, bool is_asked)
{
	for (size_t i = 0; i < kymo_countof(levels); i++) {
		if (levels[i].level != level)
			continue;
		if (is_asked && levels[i].asked && name_of(levels[i].asked, (unsigned)option))
			return levels[i].asked;
		return levels[i].names;
	}
	return NULL;
}
