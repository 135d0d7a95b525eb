#include "branch/perf.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/page.h"

#define DEVICES "/sys/bus/event_source/devices"
#define AUX_MIN (UINT64_C(64) << 10)
#define AUX_MAX (UINT64_C(4) << 20)
#define SAMPLES_MAX (UINT64_C(512) << 10)
#define LBR_ENTRIES 16 /* where the kernel does not say how many a processor has */

static const struct source {
	const char *name;
	const char *device;
	unsigned int bytes;   /* that a branch takes in the buffer, about */
	unsigned int record;  /* bytes: the buffer ends after a whole number of such */
	const char *paranoid; /* the most that lets a user in */
} sources[KYMO_BRANCH_HARDWARE] = {
	[KYMO_BRANCH_PT] = { "Intel PT", "intel_pt", 4, 1, "2" },
	[KYMO_BRANCH_BTS] = { "BTS", "intel_bts", 24, 24, "1" },
	[KYMO_BRANCH_LBR] = { "LBR", "cpu", 64, 1, "2" },
};

struct branch_perf {
	enum kymo_branch_hardware which;
	int fd;
	struct perf_event_mmap_page *page;
	size_t mapped; /* bytes at `page` */
	uint8_t *buffer;
	size_t size;
};

/* ---- what the kernel offers ------------------------------------------------------------------ */

/* A number in a file of sysfs or /proc; false: there is none. */
static bool read_number(const char *path, long *ret)
{
	kymo_cleanup_free char *text = NULL;

	if (kymo_read_file(AT_FDCWD, path, 64, &text, NULL))
		return false;
	*ret = strtol(text, NULL, 10);
	return true;
}

static bool device_number(enum kymo_branch_hardware which, const char *name, long *ret)
{
	char path[128];

	snprintf(path, sizeof(path), DEVICES "/%s/%s", sources[which].device, name);
	return read_number(path, ret);
}

/* Samples come before the processor has overwritten the oldest branch of the one before. The event counts branches that
 * were not taken, too. */
static uint64_t sample_period(void)
{
	long n;

	if (!device_number(KYMO_BRANCH_LBR, "caps/branches", &n) || n < 4)
		n = LBR_ENTRIES;
	return (uint64_t)n * 3 / 4;
}

static int describe(enum kymo_branch_hardware which, struct perf_event_attr *attr)
{
	long type;

	*attr = (struct perf_event_attr){ .size = sizeof(*attr), .exclude_kernel = 1, .exclude_hv = 1 };
	if (which != KYMO_BRANCH_LBR) {
		if (!device_number(which, "type", &type))
			return -ENOENT;
		attr->type = (uint32_t)type;
		return 0;
	}
	attr->type = PERF_TYPE_HARDWARE;
	attr->config = PERF_COUNT_HW_BRANCH_INSTRUCTIONS;
	attr->sample_type = PERF_SAMPLE_BRANCH_STACK;
	attr->branch_sample_type = PERF_SAMPLE_BRANCH_USER | PERF_SAMPLE_BRANCH_ANY;
	attr->sample_period = sample_period();
	attr->write_backward = 1;
	return 0;
}

/* ---- buffers --------------------------------------------------------------------------------- */

static size_t power_between(uint64_t wanted, uint64_t min, uint64_t max)
{
	uint64_t size = min;

	while (size < wanted && size < max)
		size *= 2;
	return (size_t)size;
}

/* What is mapped without PROT_WRITE is overwritten by the kernel when it is full. */
static int map_aux(struct branch_perf *perf, size_t size)
{
	void *buffer;

	perf->mapped = 2 * KYMO_PAGE_SIZE;
	perf->page = mmap(NULL, perf->mapped, PROT_READ | PROT_WRITE, MAP_SHARED, perf->fd, 0);
	if (perf->page == MAP_FAILED) {
		perf->page = NULL;
		return -errno;
	}
	perf->page->aux_offset = perf->mapped;
	perf->page->aux_size = size;
	buffer = mmap(NULL, size, PROT_READ, MAP_SHARED, perf->fd, (off_t)perf->mapped);
	if (buffer == MAP_FAILED)
		return -errno;
	perf->buffer = buffer;
	perf->size = size;
	return 0;
}

static int map_samples(struct branch_perf *perf, size_t size)
{
	perf->mapped = KYMO_PAGE_SIZE + size;
	perf->page = mmap(NULL, perf->mapped, PROT_READ, MAP_SHARED, perf->fd, 0);
	if (perf->page == MAP_FAILED) {
		perf->page = NULL;
		return -errno;
	}
	perf->buffer = (uint8_t *)perf->page + KYMO_PAGE_SIZE;
	perf->size = size;
	return 0;
}

int branch_perf_open(enum kymo_branch_hardware which, pid_t tid, size_t tail, struct branch_perf **ret)
{
	struct branch_perf *perf = calloc(1, sizeof(*perf));
	const bool is_lbr = which == KYMO_BRANCH_LBR;
	const size_t size =
		power_between((uint64_t)tail * sources[which].bytes, AUX_MIN, is_lbr ? SAMPLES_MAX : AUX_MAX);
	struct perf_event_attr attr;
	int err = perf ? describe(which, &attr) : -ENOMEM;

	if (err) {
		free(perf);
		return err;
	}
	perf->which = which;
	perf->fd = (int)syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (perf->fd < 0)
		err = -errno;
	else
		err = is_lbr ? map_samples(perf, size) : map_aux(perf, size);
	if (err && perf->fd >= 0 && (err == -EPERM || err == -ENOMEM))
		err = -ENOBUFS;
	if (err)
		branch_perf_close(perf);
	else
		*ret = perf;
	return err;
}

void branch_perf_close(struct branch_perf *perf)
{
	if (!perf)
		return;
	if (perf->buffer && perf->which != KYMO_BRANCH_LBR)
		munmap(perf->buffer, perf->size);
	if (perf->page)
		munmap(perf->page, perf->mapped);
	if (perf->fd >= 0)
		close(perf->fd);
	free(perf);
}

/* ---- reading --------------------------------------------------------------------------------- */

bool branch_perf_unwind(const uint8_t *ring, size_t size, size_t head, uint8_t *bytes)
{
	bool is_full = false;

	head %= size;
	memcpy(bytes, ring + head, size - head);
	memcpy(bytes + size - head, ring, head);
	/* The kernel gives zeros, and nothing that is recorded has many of them. */
	for (size_t i = 0; i < 64 && i < size - head && !is_full; i++)
		is_full = bytes[i];
	return is_full;
}

int branch_perf_read(struct branch_perf *perf, uint8_t **bytes, size_t *size, bool *is_overwritten)
{
	const bool is_lbr = perf->which == KYMO_BRANCH_LBR;
	const size_t used = perf->size - perf->size % sources[perf->which].record;
	uint8_t *copy = malloc(used);
	uint64_t head;

	if (!copy)
		return -ENOMEM;
	ioctl(perf->fd, PERF_EVENT_IOC_DISABLE, 0);
	head = __atomic_load_n(is_lbr ? &perf->page->data_head : &perf->page->aux_head, __ATOMIC_ACQUIRE);
	*is_overwritten = branch_perf_unwind(perf->buffer, used, (size_t)(head % used), copy);
	if (is_lbr)
		*is_overwritten = true; /* samples never have all */
	*bytes = copy;
	*size = used;
	return 0;
}

/* ---- sentences ------------------------------------------------------------------------------- */

int branch_perf_paranoid(void)
{
	long paranoid = 0;

	(void)read_number("/proc/sys/kernel/perf_event_paranoid", &paranoid);
	return (int)paranoid;
}

struct kymo_error *branch_perf_refusal(enum kymo_branch_hardware which, int err, int paranoid)
{
	const struct source *source = &sources[which];

	switch (-err) {
	case ENOENT:
	case ENODEV:
		return kymo_error_create(KYMO_ERROR_NOT_FOUND,
					 "%s is not available: the kernel offers none (" DEVICES
					 "/%s); the processor has none, or a virtual machine hides it",
					 source->name, source->device);
	case EOPNOTSUPP:
		return kymo_error_create(KYMO_ERROR_NOT_FOUND,
					 "%s is not available: the counters of this processor record no branches",
					 source->name);
	case EACCES:
	case EPERM:
		return kymo_error_create(KYMO_ERROR_PERMISSION,
					 "the kernel does not let this user have %s: kernel.perf_event_paranoid is %d, "
					 "and has to be %s or less, or kymo needs the capability CAP_PERFMON",
					 source->name, paranoid, source->paranoid);
	case EBUSY:
		return kymo_error_create(KYMO_ERROR_BUSY, "%s is in use by another tracer of this machine",
					 source->name);
	case ENOBUFS:
		return kymo_error_create(KYMO_ERROR_PERMISSION,
					 "the kernel locks no more memory for buffers of %s: raise "
					 "kernel.perf_event_mlock_kb or 'ulimit -l'",
					 source->name);
	case ENOSYS:
		return kymo_error_create(KYMO_ERROR_NOT_FOUND,
					 "%s can't be decoded: the library libipt.so.2 is not installed", source->name);
	default:
		return kymo_error_errno(err, "the kernel does not record branches by %s", source->name);
	}
}
