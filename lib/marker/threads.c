#include "markers.h"

#include <sys/stat.h>

/* A directory's link count is 2 and one for each directory in it. */
bool kymo_lib_has_one_thread(void)
{
	struct stat threads;

	return stat("/proc/self/task", &threads) == 0 && threads.st_nlink == 3;
}
