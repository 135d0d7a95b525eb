#include "gdb/trace.h"

#include <time.h>

uint64_t gdb_trace_now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000u + (uint64_t)now.tv_nsec / 1000u;
}

bool gdb_traces(const struct gdb_tracing *tracing, pid_t pid)
{
	return tracing->is_running && tracing->pid == pid;
}

bool gdb_traces_at(const struct gdb_tracing *tracing, pid_t pid, uint64_t address)
{
	for (size_t i = 0; i < tracing->points.n && gdb_traces(tracing, pid); i++)
		if (tracing->points.items[i]->is_in && tracing->points.items[i]->address == address)
			return true;
	return false;
}

void gdb_trace_note_end(struct gdb_tracing *tracing, enum gdb_trace_end end, unsigned int number, const char *failure)
{
	tracing->is_running = false;
	tracing->end = end;
	tracing->end_point = number;
	tracing->failure = failure;
	tracing->stop_us = gdb_trace_now_us();
	gdb_text_deinit(&tracing->draft);
}

void gdb_trace_lose(struct gdb_tracing *tracing, pid_t pid, const char *failure)
{
	if (!gdb_traces(tracing, pid))
		return;
	for (size_t i = 0; i < tracing->points.n; i++) {
		tracing->points.items[i]->is_in = false;
		tracing->points.items[i]->semaphore = 0;
	}
	tracing->markers.pid = 0; /* those are of the program that it was */
	gdb_trace_note_end(tracing, GDB_TRACE_FAILED, 0, failure);
}

/* ---- freeing --------------------------------------------------------------------------------- */

void gdb_trace_clear_point(struct gdb_tracepoint *point)
{
	for (size_t i = 0; i < point->actions.n; i++)
		free(point->actions.items[i].code);
	for (size_t i = 0; i < point->pieces.n; i++)
		free(point->pieces.items[i]);
	kymo_vec_deinit(&point->actions);
	kymo_vec_deinit(&point->pieces);
	free(point->condition);
	point->condition = NULL;
	point->kind = 0;
	point->has_step_part = false;
}

void gdb_trace_free_points(struct gdb_tracing *tracing)
{
	for (size_t i = 0; i < tracing->points.n; i++) {
		gdb_trace_clear_point(tracing->points.items[i]);
		free(tracing->points.items[i]);
	}
	kymo_vec_deinit(&tracing->points);
	tracing->n_text = tracing->next_point = tracing->next_piece = 0;
}

void gdb_trace_free_variables(struct gdb_tracing *tracing)
{
	for (size_t i = 0; i < tracing->variables.n; i++)
		free(tracing->variables.items[i].name);
	kymo_vec_deinit(&tracing->variables);
	tracing->next_variable = 0;
}

void gdb_trace_deinit(struct gdb_tracing *tracing)
{
	gdb_trace_free_points(tracing);
	gdb_trace_free_variables(tracing);
	kymo_vec_deinit(&tracing->regions);
	gdb_markers_deinit(&tracing->markers);
	gdb_trace_buffer_deinit(&tracing->buffer);
	gdb_text_deinit(&tracing->draft);
	free(tracing->user);
	free(tracing->notes);
	free(tracing->stop_notes);
}
