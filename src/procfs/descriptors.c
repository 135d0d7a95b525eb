#include "procfs/descriptors.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool kymo_has_descriptor(pid_t pid, const char *name)
{
	const size_t size = strlen(name);
	struct dirent *entry;
	bool has = false;
	char path[64];
	DIR *all;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	all = opendir(path);
	if (!all)
		return true;
	while (!has && (entry = readdir(all))) {
		char target[64];

		has = readlinkat(dirfd(all), entry->d_name, target, sizeof(target)) == (ssize_t)size &&
		      !memcmp(target, name, size);
	}
	closedir(all);
	return has;
}
