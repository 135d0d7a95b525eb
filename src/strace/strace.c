#include "strace/strace.h"

#include <stdlib.h>
#include <unistd.h>

#include "strace/counts.h"
#include "strace/json.h"
#include "strace/lines.h"
#include "strace/state.h"
#include "strace/stream.h"

static const struct strace_sink *choose_sink(const struct kymo_strace_request *request)
{
	if (request->output.kind == KYMO_STRACE_TABLE)
		return NULL;
	return request->look.json ? &strace_json : &strace_lines;
}

struct kymo_error *kymo_strace_create(const struct kymo_strace_request *request, const struct kymo_strace_user *user,
				      int fd, struct kymo_strace **ret)
{
	struct kymo_strace *s = calloc(1, sizeof(*s));

	if (!s) {
		if (fd != STDERR_FILENO)
			close(fd);
		return &kymo_error_no_memory;
	}
	s->request = request;
	s->user = user;
	s->sink = choose_sink(request);
	s->tracing.done[0] = s->tracing.done[1] = -1;
	strace_delays_init(&s->tracing.delays);
	s->table = request->output.kind != KYMO_STRACE_LINES ? strace_counts_create() : NULL;
	if (strace_stream_open(s, fd) || (request->output.kind != KYMO_STRACE_LINES && !s->table)) {
		kymo_strace_destroy(s);
		return &kymo_error_no_memory;
	}
	*ret = s;
	return NULL;
}

/* The pipe stays: a signal may come until the end. */
void kymo_strace_destroy(struct kymo_strace *s)
{
	if (!s)
		return;
	strace_stream_close(s);
	strace_counts_destroy(s->table);
	strace_delays_deinit(&s->tracing.delays);
	free(s);
}

struct kymo_strace_result kymo_strace_result(const struct kymo_strace *s)
{
	return (struct kymo_strace_result){
		.write_error = s->stream.write_error,
		.is_stuck = s->stream.is_stuck,
		.is_incomplete = s->stream.is_incomplete,
		.cut = s->tracing.cut,
		.running = s->running,
	};
}

bool kymo_strace_finish(struct kymo_strace *s)
{
	if (s->table)
		strace_counts_print(s->table, &s->request->output.columns, s->request->look.json, s->stream.file);
	return !fflush(s->stream.file) && !ferror(s->stream.file);
}

void kymo_strace_close(struct kymo_strace *s)
{
	strace_stream_close(s);
}
