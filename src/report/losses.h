/*
 * Losses added up, and near ones joined, for people.
 */
#ifndef KYMO_REPORT_LOSSES_H
#define KYMO_REPORT_LOSSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctf/ctf.h"

struct loss_total {
	uint64_t events, packets;
	uint64_t in_vforks; /* of the events, hits of vfork children before their exec */
};

struct loss_total kymo_losses_total(const struct kymo_ctf_loss *losses, size_t n);

/* Hits of vfork children: no other thread's records are missing. */
static inline bool kymo_loss_is_in_vforks(const struct kymo_ctf_loss *loss)
{
	return loss->cpu == KYMO_CTF_NO_CPU;
}

/*
 * Join losses (sorted by time) that are less than `distance` ticks apart into spans, at most `size` of them; what does
 * not fit goes into the last one. Returns how many spans there are.
 */
size_t kymo_losses_join(const struct kymo_ctf_loss *losses, size_t n, uint64_t distance, struct kymo_ctf_loss *ret,
			size_t size);

#endif
