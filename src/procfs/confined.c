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

bool kymo_is_confined(pid_t pid)
{
	kymo_cleanup_free char *label = NULL;
	char name[64];
	int err;

	snprintf(name, sizeof(name), "/proc/%d/attr/current", pid);
	err = kymo_read_file(AT_FDCWD, name, LABEL_MAX, &label, NULL);
	if (err)
		return err != -EINVAL && err != -ENOENT; /* no module has labels */
	return !kymo_is_unconfined_label(label);
}
