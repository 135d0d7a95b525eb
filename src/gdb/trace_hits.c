#include "gdb/trace_hits.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/page.h"
#include "gdb/agent.h"
#include "gdb/btrace.h"
#include "gdb/registers.h"
#include "gdb/thread.h"
#include "gdb/trace_run.h"
#include "gdb/trace_variables.h"

enum {
	PIECE = 32768,      /* bytes of memory that are read at a time */
	POPPED_MAX = 64,    /* instructions that are executed in place of steps, one after the other */
	MISSING_MAX = 256,  /* pages of a hit that are not mapped; what comes after them is not collected */
	HIT_MAX = 16 << 20, /* bytes of blocks that a hit has; what comes after them is not collected */
};

/* One hit of a tracepoint, or one step for it. */
struct collector {
	struct gdb_thread *thread;
	struct gdb_tracing *tracing;
	struct user_regs_struct registers;
	unsigned int left;      /* instructions of agent expressions */
	unsigned int n_missing; /* pages that were not mapped */
	size_t n_taken;         /* bytes of blocks, of all tracepoints at an address */
	bool is_full;
	bool is_cut; /* the frame has not all that it should have */
};

/* ---- blocks ---------------------------------------------------------------------------------- */

/* Whether a hit may have that much more. */
static bool may_take(struct collector *it, size_t n)
{
	const bool may = n <= HIT_MAX - it->n_taken;

	it->is_cut |= !may;
	return may;
}

/* Blocks are whole, or not there: the size of all of one is taken before its first byte. */
static bool take(struct collector *it, size_t n)
{
	if (!may_take(it, n))
		return false;
	it->is_full |= it->tracing->draft.n + n > it->tracing->buffer.size;
	it->n_taken += it->is_full ? 0 : n;
	return !it->is_full;
}

static void put_bytes(struct collector *it, const void *bytes, size_t n)
{
	gdb_text_bytes(&it->tracing->draft, bytes, n);
	it->is_full |= it->tracing->draft.has_failed;
}

static void put_head(struct collector *it, char kind, uint64_t number, size_t size)
{
	uint8_t head[9] = { (uint8_t)kind };

	for (size_t i = 0; i < size; i++)
		head[1 + i] = (uint8_t)(number >> (8 * i));
	put_bytes(it, head, 1 + size);
}

static void put_memory(struct collector *it, uint64_t address, const uint8_t *bytes, size_t n)
{
	const uint8_t length[2] = { (uint8_t)n, (uint8_t)(n >> 8) };

	if (!take(it, GDB_TRACE_MEMORY_HEAD + n))
		return;
	put_head(it, 'M', address, 8);
	put_bytes(it, length, sizeof(length));
	put_bytes(it, bytes, n);
}

/* Memory that is larger than a block has several. What is not mapped is not collected. */
static void collect_memory(struct collector *it, uint64_t address, uint64_t size)
{
	uint8_t bytes[PIECE];

	while (size && !it->is_full && it->n_missing < MISSING_MAX) {
		size_t n = size < PIECE ? (size_t)size : PIECE;

		if (!may_take(it, GDB_TRACE_MEMORY_HEAD + n))
			return;
		if (kymo_engine_read(it->thread->engine, address, bytes, n)) {
			n = kymo_page_part(address, n);
			if (kymo_engine_read(it->thread->engine, address, bytes, n)) {
				it->n_missing++;
				address += n;
				size -= n;
				continue;
			}
		}
		put_memory(it, address, bytes, n);
		address += n;
		size -= n;
	}
	it->is_cut |= size && !it->is_full;
}

static void collect_registers(struct collector *it)
{
	struct gdb_text block = { 0 };

	gdb_put_register_block(it->thread, &block);
	it->is_full |= block.has_failed;
	if (block.n == it->tracing->buffer.registers_size && take(it, 1 + block.n)) {
		put_bytes(it, "R", 1);
		put_bytes(it, block.items, block.n);
	}
	gdb_text_deinit(&block);
}

/* ---- expressions ----------------------------------------------------------------------------- */

static bool read_register(void *data, unsigned int number, uint64_t *ret)
{
	const struct collector *it = data;

	return gdb_register_of(it->thread, &it->registers, number, ret);
}

static bool read_traced_memory(void *data, uint64_t address, void *ret, size_t size)
{
	const struct collector *it = data;

	return !kymo_engine_read(it->thread->engine, address, ret, size);
}

static bool trace_memory(void *data, uint64_t address, uint64_t size)
{
	collect_memory(data, address, size);
	return true;
}

static bool get_variable(void *data, unsigned int number, uint64_t *ret)
{
	const struct collector *it = data;
	int64_t value;

	if (!gdb_get_variable(it->tracing, number, &value))
		return false;
	*ret = (uint64_t)value;
	return true;
}

static bool set_variable(void *data, unsigned int number, uint64_t value)
{
	const struct collector *it = data;

	return gdb_set_variable_to(it->tracing, number, (int64_t)value);
}

static bool trace_variable(void *data, unsigned int number)
{
	struct collector *it = data;
	uint64_t value;

	if (!get_variable(data, number, &value))
		return false;
	if (take(it, GDB_TRACE_VARIABLE_SIZE)) {
		put_head(it, 'V', number, 4);
		put_bytes(it, &value, sizeof(value));
	}
	return true;
}

static struct gdb_agent_target target_of(struct collector *it)
{
	return (struct gdb_agent_target){ .read_register = read_register,
					  .read_memory = read_traced_memory,
					  .data = it,
					  .trace = trace_memory,
					  .get_variable = get_variable,
					  .set_variable = set_variable,
					  .trace_variable = trace_variable };
}

/* ---- frames ---------------------------------------------------------------------------------- */

/* False: an expression cannot be evaluated. */
static bool do_action(struct collector *it, const struct gdb_trace_action *action)
{
	const struct gdb_agent_target target = target_of(it);
	uint64_t base = 0;

	switch (action->what) {
	case GDB_COLLECTS_REGISTERS:
		collect_registers(it);
		return true;
	case GDB_COLLECTS_MEMORY:
		if (action->base >= 0 && !read_register(it, (unsigned int)action->base, &base))
			return false;
		collect_memory(it, base + action->address, action->size);
		return true;
	case GDB_COLLECTS_EXPRESSION:
		return gdb_agent_execute(action->code, action->size, &target, &it->left);
	}
	return true;
}

/* A frame, of the hit or of a step. False: the run has ended. */
static bool make_frame(struct collector *it, struct gdb_tracepoint *point, bool is_of_step)
{
	struct gdb_tracing *tracing = it->tracing;
	struct kymo_gdb *gdb = it->thread->gdb;
	bool is_good = true;

	gdb_text_clear(&tracing->draft);
	it->is_cut = false;
	for (size_t i = 0; i < point->actions.n && is_good && !it->is_full; i++)
		if (point->actions.items[i].is_of_step == is_of_step)
			is_good = do_action(it, &point->actions.items[i]);
	if (it->is_full || !gdb_trace_buffer_add(&tracing->buffer, point->number, it->registers.rip,
						 tracing->draft.items, tracing->draft.n)) {
		tracing->n_lost++;
		gdb_trace_end_run(gdb, GDB_TRACE_FULL, 0, NULL);
		return false;
	}
	point->n_bytes += GDB_TRACE_FRAME_HEAD + tracing->draft.n;
	tracing->n_cut += it->is_cut;
	if (!is_good)
		gdb_trace_end_run(gdb, GDB_TRACE_FAILED, point->number, "an action cannot be evaluated");
	return is_good;
}

/* ---- hits ------------------------------------------------------------------------------------ */

static bool begin_collecting(struct gdb_thread *thread, struct collector *it)
{
	it->thread = thread;
	it->tracing = &thread->gdb->tracing;
	it->left = GDB_AGENT_STEPS; /* for all tracepoints at an address */
	return !kymo_engine_get_registers(thread->engine, &it->registers);
}

/* A condition that cannot be evaluated ends the run, as the protocol has it. */
static bool holds(struct collector *it, const struct gdb_tracepoint *point)
{
	const struct gdb_agent_target target = target_of(it);
	uint64_t value;

	if (!point->condition)
		return true;
	gdb_text_clear(&it->tracing->draft);
	if (gdb_agent_evaluate(point->condition, point->condition_size, &target, &it->left, &value))
		return value;
	gdb_trace_end_run(it->thread->gdb, GDB_TRACE_FAILED, point->number, "the condition cannot be evaluated");
	return false;
}

static void begin_steps(struct gdb_thread *thread, struct gdb_tracepoint *point)
{
	const struct gdb_trace_step step = { .point = point };

	if (thread->trace_steps.n == GDB_TRACE_STEPS_MAX || !gdb_btrace_walk(thread) ||
	    !kymo_vec_push(&thread->trace_steps, step)) {
		thread->gdb->tracing.n_lost += point->n_steps;
		return;
	}
	gdb_set_mask(thread);
}

static void hit(struct collector *it, struct gdb_tracepoint *point)
{
	struct gdb_thread *thread = it->thread;

	if (!holds(it, point))
		return;
	point->n_hits++;
	if (!make_frame(it, point, false))
		return;
	if (point->n_passes && point->n_hits >= point->n_passes)
		gdb_trace_end_run(thread->gdb, GDB_TRACE_PASSED, point->number, NULL);
	else if (point->n_steps)
		begin_steps(thread, point);
}

bool gdb_trace_hit(struct gdb_thread *thread, uint64_t address)
{
	struct gdb_tracing *tracing = &thread->gdb->tracing;
	struct collector it = { 0 };

	if (!gdb_traces_at(tracing, thread->process->pid, address))
		return false;
	if (!begin_collecting(thread, &it)) {
		tracing->n_lost++;
		return true;
	}
	for (size_t i = 0; i < tracing->points.n && tracing->is_running; i++)
		if (tracing->points.items[i]->is_in && tracing->points.items[i]->address == address)
			hit(&it, tracing->points.items[i]);
	thread->trace_pc = it.registers.rip;
	return true;
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* A thread that was only stopped has not moved. */
static bool has_stepped(const struct gdb_thread *thread, uint64_t pc)
{
	return pc != thread->trace_pc || (!thread->is_asked && !thread->needs_watches && !thread->is_trace_at_call_end);
}

/* Frames of the tracepoints that have it step. */
static void note_step(struct collector *it)
{
	struct gdb_thread *thread = it->thread;
	size_t n = 0;

	thread->trace_pc = it->registers.rip;
	for (size_t i = 0; i < thread->trace_steps.n; i++) {
		struct gdb_trace_step step = thread->trace_steps.items[i];

		if (!make_frame(it, step.point, true))
			return; /* the run has ended, and no thread has steps to make */
		if (++step.n_done < step.point->n_steps)
			thread->trace_steps.items[n++] = step;
	}
	thread->trace_steps.n = n;
}

void gdb_trace_stepped(struct gdb_thread *thread, unsigned int event)
{
	struct collector it = { 0 };

	if (!thread->trace_steps.n || thread->is_stopped || (event && event != KYMO_EVENT_SYSCALL_EXIT))
		return;
	if (!gdb_traces(&thread->gdb->tracing, thread->process->pid)) {
		thread->trace_steps.n = 0;
		return;
	}
	if (!begin_collecting(thread, &it) || !has_stepped(thread, it.registers.rip))
		return;
	thread->is_trace_at_call_end = event;
	note_step(&it);
}

/* An instruction that pops flags is not left to a step: it is executed here, as one. */
static bool pop(struct gdb_thread *thread)
{
	struct collector it = { 0 };

	if (!thread->trace_steps.n || !gdb_btrace_pop(thread))
		return false;
	thread->is_trace_at_call_end = false;
	if (gdb_traces(&thread->gdb->tracing, thread->process->pid) && begin_collecting(thread, &it))
		note_step(&it);
	return true;
}

enum kymo_action gdb_trace_action(struct gdb_thread *thread)
{
	for (int i = 0; i < POPPED_MAX && pop(thread); i++)
		;
	return thread->trace_steps.n ? gdb_btrace_step(thread) : gdb_btrace_action(thread);
}
