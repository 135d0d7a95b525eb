/* The head of a packet in a stream file. */
#ifndef KYMO_CTF_PACKET_H
#define KYMO_CTF_PACKET_H

#include <stdint.h>

#define KYMO_CTF_MAGIC 0xC1FC1FC1u

/* The `cpu_id` of a stream without records, which tells of hits in vfork children: they run in their parent's memory
 * until they execute something, and are counted only. */
#define KYMO_CTF_NO_CPU UINT32_MAX

/* Packet header and packet context, as the TSDL declares them; packed, little endian. Sizes in bits, as CTF wants them.
 */
struct kymo_ctf_packet {
	uint32_t magic;
	uint8_t uuid[16];
	uint32_t stream_id;        /* 0 */
	uint64_t content_size;     /* bits, this header included */
	uint64_t packet_size;      /* bits */
	uint64_t timestamp_begin;  /* TSC, <= the first record's */
	uint64_t timestamp_end;    /* TSC, >= the last record's */
	uint64_t events_discarded; /* running total of the stream up to the end of this packet */
	uint64_t packet_seq_num;   /* running number in the stream; a gap is overwritten packets */
	uint32_t cpu_id;
} __attribute__((packed));

#endif
