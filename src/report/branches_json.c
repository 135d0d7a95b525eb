#include "report/branches_json.h"

#include <inttypes.h>
#include <sys/wait.h>

#include "base/json.h"
#include "report/branches.h"
#include "report/history.h"
#include "syscall/signal_names.h"

static void write_member(FILE *out, const char *name, const char *text)
{
	if (!*text)
		return;
	fprintf(out, ", \"%s\": ", name);
	kymo_json_string(out, text);
}

static void write_location(FILE *out, const char *name, const struct history *history, uint32_t number)
{
	const struct history_code *code = number ? &history->codes.items[number - 1] : NULL;

	if (!code)
		return;
	fprintf(out, ", \"%s\": {\"address\": \"0x%" PRIx64 "\"", name, code->address);
	write_member(out, "file", code->file);
	write_member(out, "function", code->function);
	if (*code->function)
		fprintf(out, ", \"offset\": %" PRIu64, code->offset);
	if (*code->file)
		fprintf(out, ", \"linked\": \"0x%" PRIx64 "\"", code->linked);
	write_member(out, "source", code->source);
	fputc('}', out);
}

static void write_end(FILE *out, const struct history *history, const struct history_thread *thread)
{
	char name[32];

	if (thread->status == -1)
		return;
	if (WIFSIGNALED(thread->status)) {
		fputs(", \"signal\": ", out);
		kymo_json_string(out, kymo_signal_name(WTERMSIG(thread->status), name));
	} else {
		fprintf(out, ", \"status\": %d", WEXITSTATUS(thread->status));
	}
	if (!WIFSIGNALED(thread->status) || (uint32_t)WTERMSIG(thread->status) != thread->signal)
		return;
	write_location(out, "at", history, thread->at);
	if (thread->address)
		fprintf(out, ", \"fault\": \"0x%" PRIx64 "\"", thread->address);
}

static void write_thread_json(FILE *out, const struct history *history, const struct history_thread *thread,
			      size_t last)
{
	const size_t n = thread->branches.n, from = last && n > last ? n - last : 0;

	fprintf(out, "{\"tid\": %d, \"pid\": %d, \"name\": ", thread->tid, thread->pid);
	kymo_json_string(out, thread->name);
	if (thread->is_overwritten)
		fputs(", \"taken\": null, \"overwritten\": true", out);
	else
		fprintf(out, ", \"taken\": %" PRIu64, thread->taken);
	fprintf(out, ", \"kept\": %" PRIu64, thread->kept);
	write_end(out, history, thread);
	fputs(", \"branches\": [", out);
	for (size_t i = from; i < n; i++) {
		const struct history_branch *branch = &thread->branches.items[i];

		fprintf(out, "%s\n   {\"kind\": \"%s\", \"time_ns\": %" PRIu64, i > from ? "," : "",
			kymo_history_kind(branch->kind), kymo_ctf_wall_ns(history->trace, branch->tsc));
		if (branch->event) {
			fputs(", \"event\": ", out);
			kymo_json_string(out, history->events.items[branch->event - 1]);
		}
		write_location(out, "from", history, branch->from);
		write_location(out, "to", history, branch->to);
		fputc('}', out);
	}
	fputs("]}", out);
}

static void write_env(FILE *out, const struct history *history, const char *name, const char *key)
{
	const char *value = kymo_ctf_trace_env(history->trace, key);

	fprintf(out, ", \"%s\": ", name);
	kymo_json_string(out, value ? value : "");
}

struct kymo_error *kymo_branches_json_write(FILE *out, const struct history *history,
					    const struct kymo_branches_view *view, const char *dir)
{
	bool comma = false;

	fputs("{\"directory\": ", out);
	kymo_json_string(out, dir);
	write_env(out, history, "command", "command");
	write_env(out, history, "source", KYMO_ENV_BRANCHES);
	write_env(out, history, "chosen", KYMO_ENV_BRANCHES_CHOSEN);
	write_env(out, history, "unseen", KYMO_ENV_BRANCHES_UNSEEN);
	fprintf(out, ", \"senseless\": %" PRIu64 ", \"threads\": [", history->n_senseless);
	for (size_t i = 0; i < history->threads.n; i++) {
		if (view->thread && history->threads.items[i].tid != view->thread)
			continue;
		fputs(comma ? ",\n  " : "\n  ", out);
		write_thread_json(out, history, &history->threads.items[i], view->last);
		comma = true;
	}
	fputs("]}\n", out);
	return NULL;
}
