#include "report/losses.h"

struct loss_total kymo_losses_total(const struct kymo_ctf_loss *losses, size_t n)
{
	struct loss_total total = { 0 };

	for (size_t i = 0; i < n; i++) {
		total.events += losses[i].events;
		total.packets += losses[i].packets;
		if (kymo_loss_is_in_vforks(&losses[i]))
			total.in_vforks += losses[i].events;
	}
	return total;
}

size_t kymo_losses_join(const struct kymo_ctf_loss *losses, size_t n, uint64_t distance, struct kymo_ctf_loss *ret,
			size_t size)
{
	size_t n_spans = 0;

	for (size_t i = 0; i < n; i++) {
		struct kymo_ctf_loss *last = n_spans ? &ret[n_spans - 1] : NULL;
		bool near = last && (losses[i].begin <= last->end || losses[i].begin - last->end < distance);

		if (!last || (!near && n_spans < size)) {
			ret[n_spans++] = losses[i];
			continue;
		}
		if (losses[i].end > last->end)
			last->end = losses[i].end;
		last->events += losses[i].events;
		last->packets += losses[i].packets;
	}
	return n_spans;
}
