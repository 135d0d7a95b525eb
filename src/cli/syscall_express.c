/* What -e takes: sets of calls, signals, results, and what strace calls qualifiers. */
#include "cli/syscall_express.h"

#include <string.h>

#include "base/cleanup.h"
#include "cli/numbers.h"
#include "cli/output.h"
#include "cli/syscall_words.h"
#include "strace/inject.h"
#include "syscall/sets.h"
#include "syscall/signal_names.h"

#define COMMAND "syscalls"

/* The next item of a list with commas; false: there is none. */
static bool next_item(const char **at, const char **item, size_t *n)
{
	if (!**at)
		return false;
	*item = *at;
	*n = strcspn(*at, ",");
	*at += *n + ((*at)[*n] == ',');
	return true;
}

static bool is_item(const char *item, size_t n, const char *word)
{
	return strlen(word) == n && !memcmp(item, word, n);
}

struct bit {
	const char *word;
	unsigned int bit;
};

/* A list of words, "all", "none", "!LIST": the bits that it means; false, and the user is told. */
static bool read_bits(const char *qualifier, const char *text, const struct bit *bits, size_t n_bits, unsigned int *ret)
{
	const bool is_inverted = *text == '!';
	unsigned int all = 0, found = 0;
	const char *at = text + is_inverted, *item;
	size_t n, i;

	for (i = 0; i < n_bits; i++)
		all |= bits[i].bit;
	while (next_item(&at, &item, &n)) {
		for (i = 0; i < n_bits && !is_item(item, n, bits[i].word); i++)
			;
		if (i == n_bits && !is_item(item, n, "all") && !is_item(item, n, "none")) {
			cli_usage(COMMAND, "-e %s: there is no '%.*s'; 'kymo help %s' has the words", qualifier, (int)n,
				  item, COMMAND);
			return false;
		}
		found |= i < n_bits ? bits[i].bit : is_item(item, n, "all") ? all : 0;
	}
	*ret = is_inverted ? all & ~found : found;
	return true;
}

/* ---- sets of calls --------------------------------------------------------------------------- */

static int take_set(struct cli_syscall_words *words, const char *text)
{
	struct kymo_error *error = kymo_syscall_set_parse(text, &words->request.which.set);

	return error ? cli_fail(COMMAND, error) : -1;
}

static int take_whole(struct cli_syscall_words *words, const char *text)
{
	struct kymo_syscall_set abbreviated;
	struct kymo_error *error = kymo_syscall_set_parse(text, &abbreviated);

	if (error)
		return cli_fail(COMMAND, error);
	for (size_t i = 0; i < kymo_countof(abbreviated.bits); i++)
		words->request.look.whole.bits[i] = ~abbreviated.bits[i];
	return -1;
}

static int take_raw(struct cli_syscall_words *words, const char *text)
{
	struct kymo_error *error = kymo_syscall_set_parse(text, &words->request.look.raw);

	return error ? cli_fail(COMMAND, error) : -1;
}

/* ---- signals, results ------------------------------------------------------------------------ */

static bool find_signal(const char *item, size_t n, int *ret)
{
	char word[32], name[32];
	uint64_t number;

	if (n >= sizeof(word))
		return false;
	memcpy(word, item, n);
	word[n] = '\0';
	if (cli_parse_number(word, &number)) {
		*ret = (int)number;
		return number >= 1 && number <= 64;
	}
	for (*ret = 1; *ret <= 64; ++*ret) {
		const char *known = kymo_signal_name(*ret, name);

		if (!strcasecmp(word, known) || (!strncmp(known, "SIG", 3) && !strcasecmp(word, known + 3)))
			return true;
	}
	return false;
}

static int take_signals(struct cli_syscall_words *words, const char *text)
{
	const bool is_inverted = *text == '!';
	const char *at = text + is_inverted, *item;
	uint64_t found = 0;
	int signal;
	size_t n;

	while (next_item(&at, &item, &n)) {
		if (is_item(item, n, "all"))
			found = UINT64_MAX;
		else if (find_signal(item, n, &signal))
			found |= 1ull << (signal - 1);
		else if (!is_item(item, n, "none"))
			return cli_usage(COMMAND, "-e signal: there is no signal '%.*s'", (int)n, item);
	}
	words->request.which.hidden_signals = is_inverted ? found : ~found;
	return -1;
}

enum { SUCCESSFUL = 1, FAILED = 2, UNFINISHED = 4, UNAVAILABLE = 8, DETACHED = 16 };

static int take_status(struct cli_syscall_words *words, const char *text)
{
	static const struct bit bits[] = {
		{ "successful", SUCCESSFUL },   { "failed", FAILED },     { "unfinished", UNFINISHED },
		{ "unavailable", UNAVAILABLE }, { "detached", DETACHED },
	};
	struct kymo_strace_request *request = &words->request;
	unsigned int wanted;

	if (!read_bits("status", text, bits, kymo_countof(bits), &wanted))
		return 2;
	request->which.hides_good = !(wanted & SUCCESSFUL);
	request->which.hides_failed = !(wanted & FAILED);
	request->which.hides_unfinished = !(wanted & (UNFINISHED | UNAVAILABLE));
	return -1;
}

/* ---- what is injected ------------------------------------------------------------------------ */

static int add_injection(struct cli_syscall_words *words, const char *text)
{
	struct kymo_error *error = kymo_strace_injections_add(&words->injections, text);

	words->request.target.injections = words->injections;
	return error ? cli_fail(COMMAND, error) : -1;
}

/* As inject, and the error is ENOSYS where none is named. */
static int take_fault(struct cli_syscall_words *words, const char *text)
{
	kymo_cleanup_free char *whole = NULL;

	if (strstr(text, ":error=") || strstr(text, ":retval="))
		return add_injection(words, text);
	if (asprintf(&whole, "%s:error=ENOSYS", text) < 0)
		return cli_fail(COMMAND, &kymo_error_no_memory);
	return add_injection(words, whole);
}

/* ---- messages, descriptors, ids -------------------------------------------------------------- */

static int take_quiet(struct cli_syscall_words *words, const char *text)
{
	static const struct bit bits[] = {
		{ "attach", 1 },
		{ "exit", KYMO_STRACE_QUIET_EXIT },
		{ "exits", KYMO_STRACE_QUIET_EXIT },
		{ "path-resolution", 1 },
		{ "path-resolve", 1 },
		{ "path", 1 },
		{ "personality", KYMO_STRACE_QUIET_MODE },
		{ "thread-execve", KYMO_STRACE_QUIET_EXEC },
		{ "thread-exec", KYMO_STRACE_QUIET_EXEC },
		{ "superseded", KYMO_STRACE_QUIET_EXEC },
	};

	return read_bits("quiet", text, bits, kymo_countof(bits), &words->request.which.quiet) ? -1 : 2;
}

static int take_fds(struct cli_syscall_words *words, const char *text)
{
	static const struct bit bits[] = {
		{ "path", KYMO_STRACE_FD_PATH },
		{ "socket", KYMO_STRACE_FD_SOCKET },
		{ "dev", KYMO_STRACE_FD_DEVICE },
		{ "pidfd", KYMO_STRACE_FD_PIDFD },
	};

	return read_bits("decode-fds", text, bits, kymo_countof(bits), &words->request.look.fds) ? -1 : 2;
}

static int take_pids(struct cli_syscall_words *words, const char *text)
{
	static const struct bit bits[] = { { "comm", KYMO_STRACE_PID_COMM }, { "pidns", KYMO_STRACE_PID_NAMESPACE } };

	return read_bits("decode-pids", text, bits, kymo_countof(bits), &words->request.look.pids) ? -1 : 2;
}

/* ---- qualifiers ------------------------------------------------------------------------------ */

static int refuse_word(struct cli_syscall_words *words, const char *text)
{
	return cli_usage(COMMAND, "-e verbose, read, write and kvm are strace's, and kymo has nothing like them; -s "
				  "SIZE shows more of what is read and written");
}

static const struct {
	const char *word;
	int (*take)(struct cli_syscall_words *words, const char *text);
} qualifiers[] = {
	{ "trace", take_set },        { "t", take_set },           { "abbrev", take_whole },
	{ "a", take_whole },          { "raw", take_raw },         { "x", take_raw },
	{ "signal", take_signals },   { "signals", take_signals }, { "s", take_signals },
	{ "status", take_status },    { "inject", add_injection }, { "fault", take_fault },
	{ "quiet", take_quiet },      { "silent", take_quiet },    { "silence", take_quiet },
	{ "q", take_quiet },          { "decode-fds", take_fds },  { "decode-fd", take_fds },
	{ "decode-pids", take_pids }, { "decode-pid", take_pids }, { "verbose", refuse_word },
	{ "v", refuse_word },         { "read", refuse_word },     { "reads", refuse_word },
	{ "r", refuse_word },         { "write", refuse_word },    { "writes", refuse_word },
	{ "w", refuse_word },         { "kvm", refuse_word },
};

int cli_syscall_words_qualify(struct cli_syscall_words *words, const char *qualifier, const char *text)
{
	for (size_t i = 0; i < kymo_countof(qualifiers); i++)
		if (!strcmp(qualifiers[i].word, qualifier))
			return qualifiers[i].take(words, text);
	return take_set(words, text);
}

int cli_syscall_words_express(struct cli_syscall_words *words, const char *text)
{
	const size_t n = strcspn(text, "=");

	for (size_t i = 0; text[n] && i < kymo_countof(qualifiers); i++)
		if (is_item(text, n, qualifiers[i].word))
			return qualifiers[i].take(words, text + n + 1);
	return take_set(words, text);
}
