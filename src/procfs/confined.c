#include "procfs/confined.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/io.h"

#define LABEL_MAX 65536

static bool begins(const char *text, const char *word, const char *ends)
{
	const size_t size = strlen(word);

	return !strncmp(text, word, size) && strchr(ends, text[size]);
}

bool kymo_is_unconfined_label(const char *label)
{
	const char *type = strchr(label, ':');

	if (!type)
		return !*label || begins(label, "unconfined", "\n");
	type = strchr(type + 1, ':'); /* user:role:type:level */
	return type && begins(type + 1, "unconfined_t", ":\n");
}

/* Whether a module has them, which is so from boot on. Read once: programs are looked at at each exec. */
static bool are_there_labels(void)
{
	enum { UNKNOWN, NONE, SOME };
	static _Atomic int known;
	kymo_cleanup_free char *label = NULL;
	int err;

	if (known == UNKNOWN) {
		err = kymo_read_file(AT_FDCWD, "/proc/self/attr/current", LABEL_MAX, &label, NULL);
		known = err == -EINVAL || err == -ENOENT ? NONE : SOME;
	}
	return known == SOME;
}

bool kymo_is_confined(pid_t pid)
{
	kymo_cleanup_free char *label = NULL;
	char name[64];

	if (!are_there_labels())
		return false;
	snprintf(name, sizeof(name), "/proc/%d/attr/current", pid);
	return kymo_read_file(AT_FDCWD, name, LABEL_MAX, &label, NULL) || !kymo_is_unconfined_label(label);
}
