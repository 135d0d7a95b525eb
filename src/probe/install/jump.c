#include "probe/install/jump.h"

#include <string.h>

#include "probe/coexist/link.h"
#include "probe/plan/allocate.h"
#include "probe/probes.h"
#include "probe/site/sites.h"
#include "proc/memory.h"

bool probes_leads_to_pad(const struct kymo_probes *probes, const struct probe_site *site)
{
	uint8_t patch[KYMO_PATCH_MAX], now[KYMO_PATCH_MAX];

	return !probes_patch_of(site, patch) &&
	       !kymo_process_read(probes->process, site->address, now, site->plan.patch_size) &&
	       !memcmp(now, patch, site->plan.patch_size) &&
	       (!site->plan.trampoline || probe_jump_at(probes->process, site->link) == site->pad + site->layout.entry);
}
