/*
 * main [PROBE-MODULE [TIMES]]: let the marked module work; once without, and so often with a probe module that is
 * loaded for it.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "marked.h"

static int work_with(const char *path)
{
	void *module = dlopen(path, RTLD_NOW);

	if (!module) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	marked_work(3);
	dlclose(module);
	return 0;
}

int main(int argc, char **argv)
{
	int times = argc > 1 ? argc > 2 ? atoi(argv[2]) : 1 : 0;

	for (int i = 0; i < times; i++) {
		marked_work(3);
		if (work_with(argv[1]))
			return 1;
		puts("unloaded");
		fflush(stdout);
	}
	marked_work(3);
	return 0;
}
