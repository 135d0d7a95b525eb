/* Any text as a set of system calls: what is refused is a USAGE error with a sentence, what is accepted has what its
 * inverse has not. */
#include "fuzz.h"
#include "syscall/names.h"
#include "syscall/sets.h"

static void check_inverse(const char *text, const struct kymo_syscall_set *set)
{
	char *inverted = malloc(strlen(text) + 2);
	struct kymo_syscall_set other;
	struct kymo_error *error;

	if (!inverted)
		return;
	inverted[0] = '!';
	strcpy(inverted + 1, text);
	error = kymo_syscall_set_parse(inverted, &other);
	for (uint64_t i = 0; !error && i < KYMO_SYSCALL_MAX + 1; i++)
		check(kymo_syscall_set_has(set, i) != kymo_syscall_set_has(&other, i));
	kymo_error_destroy(error); /* a second "!" */
	free(inverted);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kymo_syscall_set set;
	struct kymo_error *error;
	char *text;

	/* What regcomp() makes of nested repetitions, a{255}{255}, is glibc's, and takes all memory. */
	if (size > 200 || memchr(data, '{', size) || !(text = malloc(size + 1)))
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	error = kymo_syscall_set_parse(text, &set);
	if (error)
		check(error->code == KYMO_ERROR_USAGE && error->message && *error->message);
	else if (*text != '!')
		check_inverse(text, &set);
	kymo_error_destroy(error);
	free(text);
	return 0;
}
