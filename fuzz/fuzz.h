/* What fuzzers share. */
#ifndef KYMO_FUZZ_FUZZ_H
#define KYMO_FUZZ_FUZZ_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/io.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define check(condition) \
	do { \
		if (!(condition)) \
			abort(); \
	} while (0)

/* These bytes in a file of their own; its descriptor, or -1. */
static inline int fuzz_file(const void *bytes, size_t size)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	if (fd < 0 || !kymo_write_all(fd, bytes, size))
		return fd;
	close(fd);
	return -1;
}

#endif
