/* Sets of system calls, as users write them. */
#include "syscall/sets.h"

#include <ctype.h>
#include <regex.h>
#include <stdio.h>
#include <string.h>
#include <sys/param.h>

#include "base/cleanup.h"
#include "base/nearest.h"
#include "syscall/decode.h"
#include "syscall/names.h"

static const struct {
	const char *name;
	unsigned bit;
} classes[] = {
	{ "file", CLASS_FILE },       { "desc", CLASS_DESC },     { "process", CLASS_PROCESS },
	{ "network", CLASS_NETWORK }, { "signal", CLASS_SIGNAL }, { "ipc", CLASS_IPC },
	{ "memory", CLASS_MEMORY },   { "creds", CLASS_CREDS },   { "clock", CLASS_CLOCK },
	{ "net", CLASS_NETWORK },
};

/* strace's classes of calls that have the same purpose. */
static const struct {
	const char *name, *calls;
} families[] = {
	{ "stat", "stat" },
	{ "lstat", "lstat" },
	{ "fstat", "fstat,newfstatat" },
	{ "%stat", "stat,lstat,fstat,newfstatat,statx" },
	{ "statfs", "statfs" },
	{ "fstatfs", "fstatfs" },
	{ "%statfs", "statfs,fstatfs,ustat" },
	{ "pure", "getpid,getuid,getgid,geteuid,getegid,getppid,getpgrp,gettid" },
};

bool kymo_syscall_set_has(const struct kymo_syscall_set *set, uint64_t number)
{
	if (!kymo_syscall_name(number))
		return set->has_unknown;
	return set->bits[number / 64] >> (number % 64) & 1;
}

static void change_set(struct kymo_syscall_set *set, unsigned number, bool in)
{
	const uint64_t bit = 1ull << (number % 64);

	if (in)
		set->bits[number / 64] |= bit;
	else
		set->bits[number / 64] &= ~bit;
}

static void change_all(struct kymo_syscall_set *set, bool in)
{
	memset(set->bits, in ? 0xff : 0, sizeof(set->bits));
	set->has_unknown = in;
}

/* ---- what is nearest ------------------------------------------------------------------------- */

enum { NAME_MAX_SIZE = 48 };

/* Up to three names, or "". */
static void find_nearest(const char *item, size_t n, char *out, size_t size)
{
	unsigned found = 0;

	*out = '\0';
	if (!n || n >= NAME_MAX_SIZE)
		return;
	for (unsigned wanted = 1; wanted <= MAX(n / 3, 1) && found < 3; wanted++)
		for (unsigned i = 0; i < KYMO_SYSCALL_MAX && found < 3; i++) {
			const char *name = kymo_syscall_name(i);
			const size_t at = strlen(out);

			if (name && strlen(name) < NAME_MAX_SIZE &&
			    kymo_edit_distance(item, n, name, strlen(name)) == wanted)
				snprintf(out + at, size - at, "%s%s", found++ ? ", " : "", name);
		}
}

static struct kymo_error *unknown_name(const char *item, size_t n)
{
	char near[3 * (NAME_MAX_SIZE + 2)];

	find_nearest(item, n, near, sizeof(near));
	if (*near)
		return kymo_error_create(KYMO_ERROR_USAGE, "there is no system call '%.*s'; near are %s", (int)n, item,
					 near);
	return kymo_error_create(KYMO_ERROR_USAGE,
				 "there is no system call '%.*s'; a set has names, %%file and other classes, or /REGEX",
				 (int)n, item);
}

/* ---- items ----------------------------------------------------------------------------------- */

static struct kymo_error *change_item(struct kymo_syscall_set *set, const char *item, size_t n, bool in);

static bool change_family(struct kymo_syscall_set *set, const char *item, size_t n, bool in)
{
	for (size_t f = 0; f < kymo_countof(families); f++) {
		if (strlen(families[f].name) != n || memcmp(families[f].name, item, n))
			continue;
		for (const char *at = families[f].calls; *at; at += strcspn(at, ",") + (at[strcspn(at, ",")] == ','))
			kymo_error_destroy(change_item(set, at, strcspn(at, ","), in));
		return true;
	}
	return false;
}

static struct kymo_error *change_class(struct kymo_syscall_set *set, const char *item, size_t n, bool in)
{
	for (size_t c = 0; c < kymo_countof(classes); c++) {
		if (strlen(classes[c].name) != n || memcmp(classes[c].name, item, n))
			continue;
		for (unsigned i = 0; i < KYMO_SYSCALL_MAX; i++)
			if (syscall_classes(i) & classes[c].bit)
				change_set(set, i, in);
		return NULL;
	}
	if (change_family(set, item, n, in))
		return NULL;
	return kymo_error_create(KYMO_ERROR_USAGE,
				 "there is no class '%%%.*s'; there are %%file, %%desc, %%process, %%network, "
				 "%%signal, %%ipc, %%memory, %%creds, %%clock",
				 (int)n, item);
}

static struct kymo_error *change_regex(struct kymo_syscall_set *set, const char *item, size_t n, bool in)
{
	kymo_cleanup_free char *expression = strndup(item, n);
	char why[128];
	bool any = false;
	regex_t regex;
	int failed;

	if (!expression)
		return &kymo_error_no_memory;
	failed = regcomp(&regex, expression, REG_EXTENDED | REG_NOSUB);
	if (failed) {
		regerror(failed, &regex, why, sizeof(why));
		return kymo_error_create(KYMO_ERROR_USAGE, "'/%s' is no regular expression: %s", expression, why);
	}
	for (unsigned i = 0; i < KYMO_SYSCALL_MAX; i++)
		if (kymo_syscall_name(i) && !regexec(&regex, kymo_syscall_name(i), 0, NULL, 0)) {
			change_set(set, i, in);
			any = true;
		}
	regfree(&regex);
	return any ? NULL : kymo_error_create(KYMO_ERROR_USAGE, "'/%s' is found in no system call's name", expression);
}

static bool is_number(const char *item, size_t n, unsigned *ret)
{
	*ret = 0;
	for (size_t i = 0; i < n && i < 4; i++) {
		if (!isdigit((unsigned char)item[i]))
			return false;
		*ret = *ret * 10 + (unsigned)(item[i] - '0');
	}
	return n > 0 && n < 4;
}

static bool is_set_word(const char *item, size_t n, const char *word)
{
	return n == strlen(word) && !memcmp(item, word, n);
}

static bool is_class(const char *item, size_t n)
{
	for (size_t c = 0; c < kymo_countof(classes); c++)
		if (strlen(classes[c].name) == n && !memcmp(classes[c].name, item, n))
			return true;
	return false;
}

static struct kymo_error *change_item(struct kymo_syscall_set *set, const char *item, size_t n, bool in)
{
	const bool may_be_unknown = n > 1 && *item == '?'; /* strace's: no error where there is no such call */
	unsigned number;

	item += may_be_unknown;
	n -= may_be_unknown;
	if (n > 3 &&
	    !memcmp(item + n - 3, "@64", 3)) /* strace's: not the calls of 32 bits; they have the same names here */
		n -= 3;
	if (n > 3 && (!memcmp(item + n - 3, "@32", 3) || (n > 4 && !memcmp(item + n - 4, "@x32", 4))))
		return kymo_error_create(KYMO_ERROR_USAGE,
					 "'%.*s': a set has the calls of 64 and 32 bits alike; leave '@32' out", (int)n,
					 item);
	if (*item == '%')
		return change_class(set, item + 1, n - 1, in);
	if (is_set_word(item, n, "all") || is_set_word(item, n, "none")) {
		change_all(set, is_set_word(item, n, "all") == in);
		return NULL;
	}
	if (is_number(item, n, &number) && kymo_syscall_name(number)) {
		change_set(set, number, in);
		return NULL;
	}
	for (unsigned i = 0; i < KYMO_SYSCALL_MAX; i++)
		if (kymo_syscall_name(i) && is_set_word(item, n, kymo_syscall_name(i))) {
			change_set(set, i, in);
			return NULL;
		}
	if (is_class(item, n)) /* as in strace's older versions: -e trace=file */
		return change_class(set, item, n, in);
	return may_be_unknown ? NULL : unknown_name(item, n);
}

struct kymo_error *kymo_syscall_set_parse(const char *text, struct kymo_syscall_set *ret)
{
	const bool inverted = *text == '!';
	struct kymo_syscall_set set;
	struct kymo_error *error = NULL;
	const char *at = text + inverted;

	if (!at[strspn(at, ",")])
		return kymo_error_create(KYMO_ERROR_USAGE,
					 "the set '%s' has no system call: write names, %%file and other classes, or "
					 "/REGEX",
					 text);
	change_all(&set, inverted);
	for (;;) {
		const bool taken_out = at > text + inverted && *at == '!';
		const char *item = at + taken_out, *end;

		if (taken_out && inverted)
			return kymo_error_create(
				KYMO_ERROR_USAGE,
				"'!' at the beginning of a set inverts all of it; there is no second one, as in '%s'",
				at);
		end = strchrnul(item, ',');
		if (*item == '/')
			error = change_regex(&set, item + 1, (size_t)(end - item) - 1, inverted == taken_out);
		else if (end > item || taken_out) /* nothing between two commas is nothing, as strace has it */
			error = change_item(&set, item, (size_t)(end - item), inverted == taken_out);
		if (error || !*end)
			break;
		at = end + 1;
	}
	if (!error)
		*ret = set;
	return error;
}
