#include "strace/delays.h"

#include "base/io.h"
#include "kymo/engine.h"

void strace_delays_init(struct strace_delays *delays)
{
	*delays = (struct strace_delays){ 0 };
	pthread_mutex_init(&delays->lock, NULL);
}

void strace_delays_deinit(struct strace_delays *delays)
{
	kymo_vec_deinit(&delays->items);
	pthread_mutex_destroy(&delays->lock);
}

/* ---- on the hub's thread --------------------------------------------------------------------- */

bool strace_delays_add(struct strace_delays *delays, struct kymo_engine *engine, uint64_t ns)
{
	const struct strace_delay item = { engine, kymo_now_ns() + ns };
	bool is_in;

	pthread_mutex_lock(&delays->lock);
	is_in = kymo_vec_push(&delays->items, item);
	if (is_in)
		kymo_engine_get(engine);
	pthread_mutex_unlock(&delays->lock);
	return is_in;
}

void strace_delays_drop(struct strace_delays *delays, struct kymo_engine *engine)
{
	bool is_found = false;

	pthread_mutex_lock(&delays->lock);
	for (size_t i = 0; i < delays->items.n && !is_found; i++)
		if (delays->items.items[i].engine == engine) {
			delays->items.items[i] = delays->items.items[--delays->items.n];
			is_found = true;
		}
	pthread_mutex_unlock(&delays->lock);
	if (is_found)
		kymo_engine_put(engine);
}

/* ---- on the main thread ---------------------------------------------------------------------- */

/* One whose time is over, with its reference; else NULL, and when the next one's is. */
static struct kymo_engine *take_due(struct strace_delays *delays, uint64_t now, uint64_t *next_ret)
{
	struct kymo_engine *engine = NULL;

	*next_ret = UINT64_MAX;
	pthread_mutex_lock(&delays->lock);
	for (size_t i = 0; i < delays->items.n && !engine; i++) {
		const struct strace_delay *item = &delays->items.items[i];

		if (item->until_ns <= now) {
			engine = item->engine;
			delays->items.items[i] = delays->items.items[--delays->items.n];
		} else if (item->until_ns < *next_ret) {
			*next_ret = item->until_ns;
		}
	}
	pthread_mutex_unlock(&delays->lock);
	return engine;
}

uint64_t strace_delays_end(struct strace_delays *delays, uint64_t now)
{
	struct kymo_engine *engine;
	uint64_t next;

	while ((engine = take_due(delays, now, &next))) {
		kymo_engine_control(engine, KYMO_ACTION_RESUME); /* ESRCH: it was killed meanwhile */
		kymo_engine_put(engine);
	}
	return next;
}
