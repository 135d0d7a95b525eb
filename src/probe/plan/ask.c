#include "probe/plan/ask.h"

#include <stdio.h>

#include "arch/plan.h"
#include "probe/code/code.h"
#include "probe/coexist/text.h"
#include "probe/options.h"
#include "probe/plan/faults.h"
#include "probe/plan/planning.h"
#include "probe/plan/pool.h"
#include "probe/probes.h"
#include "probe/site/sites.h"
#include "probe/spec/spec.h"
#include "probe/threads/reading.h"

#define SHARED_PAGES_MAX 2048 /* with trampolines, for the sake of other tools' breakpoints: 8 MiB of the target's */

static void look(void *data, uint64_t vaddr, uint8_t *bytes, size_t size)
{
	const struct planning *planning = data;

	probe_text_look(&planning->probes->text, planning->bias + vaddr, bytes, size);
}

static bool is_locked(void *data, uint64_t vaddr, size_t size)
{
	const struct planning *planning = data;

	return probe_text_is(&planning->probes->text, TEXT_LOCKED, planning->bias + vaddr, size) ||
	       probe_text_is(&planning->probes->text, TEXT_WANTED, planning->bias + vaddr, size);
}

static bool is_unsteady(void *data, uint64_t vaddr, size_t size)
{
	const struct planning *planning = data;

	return probe_text_is(&planning->probes->text, TEXT_UNSTEADY, planning->bias + vaddr, size);
}

static uint64_t reserve(void *data, uint64_t low, uint64_t high, size_t size)
{
	struct planning *planning = data;
	uint64_t found = probe_pool_reserve(&planning->pool, planning->bias + low, planning->bias + high, size);

	return found ? found - planning->bias : 0;
}

static void release(void *data, uint64_t vaddr, size_t size)
{
	struct planning *planning = data;

	probe_pool_release(&planning->pool, planning->bias + vaddr, size);
}

static uint32_t more_stack(const struct kymo_probes *probes, const struct probe_site *site)
{
	uint32_t most = 0;

	for (size_t i = 0; i < site->requests.n && !probes->wanted.options.traps; i++) {
		const uint32_t takes = probes_reads_stack(&probes->wanted.specs[site->requests.items[i].spec]);

		most = takes > most ? takes : most;
	}
	return most;
}

int probes_ask_planner(struct planning *planning, const struct probe_site *site, struct kymo_code *code,
		       struct kymo_plan plans[KYMO_PLANS_MAX], size_t *n_ret, char *reasons, size_t size)
{
	const struct kymo_plan_room room = {
		.data = planning,
		.look = look,
		.is_locked = is_locked,
		.is_unsteady = is_unsteady,
		.reserve = reserve,
		.release = release,
		.watched_faults = probes_watched_faults(planning->probes, &code->code),
		.possible_faults = probes_possible_faults(planning->probes),
		.is_alone = planning->probes->faults.is_alone,
		.shares_entries = planning->pool.pages.n < SHARED_PAGES_MAX,
		.more_stack = more_stack(planning->probes, site),
	};
	struct kymo_refusal refusals[KYMO_N_TACTICS];
	size_t n = 0, used = 0;
	int err = kymo_plan(&code->code, code->map, &room, site->address - planning->bias, plans, n_ret, refusals, &n);

	reasons[0] = '\0';
	for (size_t i = 0; err && i < n && used < size; i++) {
		const char *tactic = refusals[i].tactic == KYMO_TACTIC_NONE ? "" : kymo_tactic_name(refusals[i].tactic);
		int wrote = snprintf(reasons + used, size - used, "%s%s%s%s", used ? "; " : "", tactic,
				     *tactic ? ": " : "", refusals[i].reason);

		if (wrote > 0)
			used += (size_t)wrote;
	}
	return err;
}
