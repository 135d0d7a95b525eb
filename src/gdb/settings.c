#include "gdb/settings.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "gdb/events.h"
#include "gdb/packet.h"
#include "gdb/signals.h"
#include "gdb/thread.h"

enum { VARIABLE_MAX = 32768, CALLS_MAX = 1024 };

/* ---- signals --------------------------------------------------------------------------------- */

/* "e;10;14": gdb's numbers. Those that the kernel has none for are none of ours. */
static bool take_signals(struct gdb_words *words, uint64_t *ret)
{
	uint64_t mask = 0;
	int signal, number;

	while (!gdb_words_are_over(words)) {
		if (!gdb_take_int(words, &signal))
			return false;
		number = gdb_signal_to(signal);
		if (number)
			mask |= 1ull << (number - 1);
		if (!gdb_take_char(words, ';') && !gdb_words_are_over(words))
			return false;
	}
	*ret = mask;
	return true;
}

void gdb_pass_signals(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	gdb_text_put(reply, take_signals(words, &gdb->passed) ? "OK" : "E01");
}

void gdb_program_signals(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	const bool is_good = take_signals(words, &gdb->for_program);

	gdb->knows_for_program |= is_good;
	gdb_text_put(reply, is_good ? "OK" : "E01");
}

/* ---- events ---------------------------------------------------------------------------------- */

static void set_masks(const struct kymo_gdb *gdb, const struct gdb_process *process)
{
	for (size_t i = 0; i < gdb->threads.n; i++)
		if (gdb->threads.items[i]->process == process && !gdb->threads.items[i]->is_dead)
			gdb_set_mask(gdb->threads.items[i]);
}

/* "0", "1", "1;0;1f". */
void gdb_catch_calls(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	const struct gdb_thread *thread = gdb_general_thread(gdb);
	struct gdb_process *process = thread ? thread->process : NULL;
	const bool is_on = gdb_take_char(words, '1'), catches_all = is_on && gdb_words_are_over(words);
	bool is_good = process && (is_on || gdb_take_char(words, '0'));
	kymo_cleanup_free uint64_t *numbers = calloc(CALLS_MAX, sizeof(*numbers));
	size_t n = 0;

	while (is_good && !gdb_words_are_over(words))
		is_good =
			numbers && n < CALLS_MAX && gdb_take_char(words, ';') && gdb_take_number(words, &numbers[n++]);
	if (!is_good || !kymo_vec_reserve(&process->calls, n)) {
		gdb_text_put(reply, "E01");
		return;
	}
	process->calls.n = 0;
	for (size_t i = 0; i < n; i++)
		kymo_vec_push(&process->calls, numbers[i]);
	process->catches_calls = is_on;
	process->catches_all_calls = catches_all;
	set_masks(gdb, process);
	gdb_text_put(reply, "OK");
}

static bool take_bool(struct gdb_words *words, bool *ret)
{
	const bool is_on = gdb_take_char(words, '1');

	if ((!is_on && !gdb_take_char(words, '0')) || !gdb_words_are_over(words))
		return false;
	*ret = is_on;
	return true;
}

void gdb_tell_threads(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	gdb_text_put(reply, take_bool(words, &gdb->wants_threads) ? "OK" : "E01");
}

/* ---- launching ------------------------------------------------------------------------------- */

void gdb_disable_randomization(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	bool is_off = false;
	const bool is_good = take_bool(words, &is_off);

	if (is_good)
		gdb->lets_randomize = !is_off;
	gdb_text_put(reply, is_good ? "OK" : "E01");
}

/* Words of a program arrive one by one, so a shell would find nothing to do with them. */
void gdb_with_shell(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	bool is_on;

	gdb_text_put(reply, take_bool(words, &is_on) ? "OK" : "E01");
}

void gdb_free_environment(struct kymo_gdb *gdb)
{
	for (size_t i = 0; gdb->environment && gdb->environment[i]; i++)
		free(gdb->environment[i]);
	free(gdb->environment);
	gdb->environment = NULL;
}

static size_t count(char *const *environment)
{
	size_t n = 0;

	while (environment[n])
		n++;
	return n;
}

/* Without the variable of that name, and with room for one more. */
static char **copy_without(char *const *from, const char *name)
{
	char **copy = calloc(count(from) + 2, sizeof(*copy));
	const size_t n_name = strlen(name);
	size_t n = 0;

	for (size_t i = 0; copy && from[i]; i++) {
		if (!strncmp(from[i], name, n_name) && from[i][n_name] == '=')
			continue;
		copy[n] = strdup(from[i]);
		n += copy[n] != NULL;
	}
	return copy;
}

/* "NAME" goes; "NAME=VALUE" (`text`) comes, if that is one. */
static bool change(struct kymo_gdb *gdb, const char *name, const char *text)
{
	char **copy = copy_without(gdb->environment ? gdb->environment : environ, name);

	if (!copy)
		return false;
	if (text)
		copy[count(copy)] = strdup(text);
	gdb_free_environment(gdb);
	gdb->environment = copy;
	return true;
}

void gdb_set_variable(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	kymo_cleanup_free char *text = malloc(VARIABLE_MAX);
	kymo_cleanup_free char *name = NULL;
	bool is_good = text && gdb_take_hex_string(words, text, VARIABLE_MAX) && gdb_words_are_over(words) &&
		       strchr(text, '=') && *text != '=';

	if (is_good)
		name = strndup(text, strcspn(text, "="));
	gdb_text_put(reply, name && change(gdb, name, text) ? "OK" : "E01");
}

void gdb_unset_variable(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	kymo_cleanup_free char *name = malloc(VARIABLE_MAX);
	bool is_good = name && gdb_take_hex_string(words, name, VARIABLE_MAX) && gdb_words_are_over(words) && *name &&
		       !strchr(name, '=');

	gdb_text_put(reply, is_good && change(gdb, name, NULL) ? "OK" : "E01");
}

void gdb_reset_variables(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	gdb_free_environment(gdb);
	gdb_text_put(reply, "OK");
}

void gdb_set_folder(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	char folder[PATH_MAX];
	const bool is_good = gdb_take_hex_string(words, folder, sizeof(folder)) && gdb_words_are_over(words);

	if (is_good)
		strcpy(gdb->folder, folder);
	gdb_text_put(reply, is_good ? "OK" : "E01");
}

/* ---- features -------------------------------------------------------------------------------- */

static bool is_word(const struct gdb_words *word, const char *text)
{
	return gdb_words_left(word) == strlen(text) && !memcmp(word->at, text, strlen(text));
}

/* ":multiprocess+;swbreak+;…": what the client can. */
void gdb_support(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	const struct {
		const char *name;
		bool *has;
	} features[] = {
		{ "multiprocess+", &gdb->has_multiprocess }, { "fork-events+", &gdb->has_forks },
		{ "vfork-events+", &gdb->has_vforks },       { "exec-events+", &gdb->has_execs },
		{ "no-resumed+", &gdb->has_no_resumed },     { "swbreak+", &gdb->has_swbreak },
		{ "hwbreak+", &gdb->has_hwbreak },
	};

	gdb_take_char(words, ':');
	while (!gdb_words_are_over(words)) {
		const struct gdb_words word = gdb_take_until(words, ';');

		for (size_t i = 0; i < kymo_countof(features); i++)
			*features[i].has |= is_word(&word, features[i].name);
	}
	gdb_text_format(reply,
			"PacketSize=%x;QStartNoAckMode+;multiprocess+;vContSupported+;ConditionalBreakpoints+;"
			"BreakpointCommands+;"
			"swbreak+;"
			"hwbreak+;"
			"fork-events+;vfork-events+;exec-events+;no-resumed+;QNonStop+;QThreadEvents+;QCatchSyscalls+;"
			"QPassSignals+;QProgramSignals+;QDisableRandomization+;QStartupWithShell+;"
			"QEnvironmentHexEncoded+;QEnvironmentUnset+;QEnvironmentReset+;QSetWorkingDir+;"
			"qXfer:features:read+;qXfer:auxv:read+;qXfer:libraries-svr4:read+;qXfer:exec-file:read+;"
			"qXfer:threads:read+;qXfer:siginfo:read+;qXfer:siginfo:write+;qXfer:osdata:read+;"
			"qXfer:btrace:read+;qXfer:btrace-conf:read+;Qbtrace:bts+;Qbtrace:off+;Qbtrace-conf:bts:size+;"
			"ConditionalTracepoints+;TraceStateVariables+;TracepointSource+;EnableDisableTracepoints+;"
			"InstallInTrace+;FastTracepoints+;StaticTracepoints+;DisconnectedTracing+;QTBuffer:size+;"
			"tracenz+;qXfer:traceframe-info:read+;binary-upload+",
			GDB_PACKET_MAX - 1);
}
