/* Whether a site is as it was written. Private to the room. */
#ifndef KYMO_PROBE_INSTALL_JUMP_H
#define KYMO_PROBE_INSTALL_JUMP_H

#include <stdbool.h>

struct kymo_probes;
struct probe_site;

/* Whether the text at a planned site has what its plan writes, and that leads to its pad. False where the text can't be
 * read. Two recordings that join at a site have pads of their own: it leads to one of them only. */
bool probes_leads_to_pad(const struct kymo_probes *probes, const struct probe_site *site);

#endif
