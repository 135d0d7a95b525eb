/*
 * Modules that come and go. Each command ends with 0 when all was as it must be, and prints one line of JSON.
 *
 *	comings MODULE TIMES	a marked module is loaded and unloaded, with a probe waiting for it, while another
 *				thread connects and disconnects
 *	two MODULE OTHER	two modules with a marker of one name and different formats are told apart
 *	unload OBJECT SECONDS	the object of a probe is unloaded right after the probe was disconnected, under load
 */
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <time.h>

#include <kymo/marker.h>
#include <kymo/marker_probe.h>

#include "../target.h"

#define CALL KYMO_MARKER_CALL
#define PENDING KYMO_MARKER_PENDING

static atomic_bool stop;

static void *load(const char *path)
{
	void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);

	if (!module)
		dprintf(STDERR_FILENO, "%s\n", dlerror());
	CHECK(module);
	return module;
}

static void (*work_of(void *module))(int)
{
	void (*work)(int);
	void *symbol = dlsym(module, "module_work");

	CHECK(symbol);
	memcpy(&work, &symbol, sizeof(work));
	return work;
}

/* ---- comings --------------------------------------------------------------------------------- */

static atomic_ulong sum, calls, others;

static void add(const struct kymo_marker_info *marker, void *data, va_list arguments)
{
	int value = va_arg(arguments, int);

	if (value >= 0) { /* constructors and destructors pass it, too */
		atomic_fetch_add(&sum, (unsigned long)value);
		atomic_fetch_add(&calls, 1);
	}
}

static void count(const struct kymo_marker_info *marker, void *data, va_list arguments)
{
	CHECK(strcmp(va_arg(arguments, const char *), "other") == 0);
	atomic_fetch_add(&others, 1);
}

static void *connect_others(void *unused)
{
	while (!atomic_load(&stop)) {
		CHECK(kymo_marker_set_probe("module_other", NULL, count, NULL, CALL | PENDING) == 0);
		CHECK(kymo_marker_disable_probe("module_other", count, NULL, CALL) == 0);
	}
	return NULL;
}

static int tell(const struct kymo_marker_info *marker, void *data)
{
	unsigned int *n = data;

	*n += strcmp(marker->name, "module_event") == 0;
	return 0;
}

static unsigned int n_known(void)
{
	unsigned int n = 0;

	CHECK(kymo_marker_for_each(tell, &n) == 0);
	return n;
}

static int comings(const char *path, long times)
{
	pthread_t thread;

	CHECK(kymo_marker_set_probe("module_event", "value=%d", add, NULL, CALL) == -ENOENT);
	CHECK(kymo_marker_set_probe("module_event", "value=%d", add, NULL, CALL | PENDING) == 0);
	CHECK(pthread_create(&thread, NULL, connect_others, NULL) == 0);
	for (long i = 0; i < times; i++) {
		void *module = load(path);
		CHECK(n_known() == 3);
		work_of(module)(7);
		CHECK(dlclose(module) == 0);
		/* The other thread may have found it before it had told, and hold it for a moment more. */
		while (n_known() != 0)
			sched_yield();
	}
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
	CHECK(atomic_load(&sum) == 7ul * (unsigned long)times);
	/* Disconnected while the module is there, and while it is not. */
	void *module = load(path);
	CHECK(kymo_marker_disable_probe("module_event", add, NULL, CALL) == 0);
	work_of(module)(7);
	CHECK(kymo_marker_set_probe("module_event", NULL, add, NULL, CALL) == 0);
	work_of(module)(1);
	CHECK(dlclose(module) == 0);
	CHECK(kymo_marker_disable_probe("module_event", add, NULL, CALL) == 0);
	module = load(path);
	work_of(module)(7);
	CHECK(dlclose(module) == 0);
	CHECK(atomic_load(&sum) == 7ul * (unsigned long)times + 1);
	printf("{\"calls\": %lu}\n", atomic_load(&calls));
	return 0;
}

/* ---- two ------------------------------------------------------------------------------------- */

static char told[8][256];
static unsigned int n_told;

static int list(const struct kymo_marker_info *marker, void *data)
{
	const char *slash = strrchr(marker->module, '/');

	if (strcmp(marker->name, "module_event") == 0 && n_told < 8)
		snprintf(told[n_told++], sizeof(told[0]), "%s %s %u", slash ? slash + 1 : marker->module,
			 marker->format, marker->n_probes);
	return 0;
}

static int two(const char *path, const char *other_path)
{
	void *module = load(path), *other = load(other_path);

	CHECK(kymo_marker_set_probe("module_event", "other=%d", add, NULL, CALL) == 0);
	CHECK(kymo_marker_set_probe("module_event", "third=%d", count, NULL, CALL) == -EINVAL);
	work_of(module)(1);
	work_of(other)(10);
	CHECK(atomic_load(&sum) == 10);
	CHECK(kymo_marker_for_each(list, NULL) == 0);
	CHECK(kymo_marker_set_probe("module_event", NULL, add, &sum, CALL) == 0);
	work_of(module)(100);
	work_of(other)(1000);
	CHECK(atomic_load(&sum) == 2110);
	dlclose(module);
	work_of(other)(10000);
	CHECK(atomic_load(&sum) == 22110);
	dlclose(other);
	printf("[");
	for (unsigned int i = 0; i < n_told; i++)
		printf("%s\"%s\"", i ? ", " : "", told[i]);
	printf("]\n");
	return 0;
}

/* ---- unload ---------------------------------------------------------------------------------- */

static void *pass(void *unused)
{
	for (unsigned int i = 0; !atomic_load_explicit(&stop, memory_order_relaxed); i++)
		MARK(load, "%u", i);
	return NULL;
}

static int unload(const char *path, long seconds)
{
	struct timespec begin, now;
	pthread_t threads[8];
	unsigned long n = 0, n_calls = 0;

	for (int i = 0; i < 8; i++)
		CHECK(pthread_create(&threads[i], NULL, pass, NULL) == 0);
	clock_gettime(CLOCK_MONOTONIC, &begin);
	do {
		kymo_marker_probe *probe;
		void *object = load(path), *symbol = dlsym(object, "object_probe");
		atomic_ulong *object_calls = dlsym(object, "object_calls");
		CHECK(symbol && object_calls);
		memcpy(&probe, &symbol, sizeof(probe));
		CHECK(kymo_marker_set_probe("load", "%u", probe, NULL, CALL) == 0);
		while (n % 4 == 0 && atomic_load(object_calls) < 8)
			sched_yield();
		CHECK(kymo_marker_disable_probe("load", probe, NULL, CALL) == 0);
		n_calls += atomic_load(object_calls);
		CHECK(dlclose(object) == 0);
		CHECK(!dlopen(path, RTLD_NOW | RTLD_NOLOAD));
		n++;
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (now.tv_sec - begin.tv_sec < seconds);
	atomic_store(&stop, true);
	for (int i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
	printf("{\"unloads\": %lu, \"calls\": %lu}\n", n, n_calls);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 4 && strcmp(argv[1], "comings") == 0)
		return comings(argv[2], number(argv[3]));
	if (argc == 4 && strcmp(argv[1], "two") == 0)
		return two(argv[2], argv[3]);
	if (argc == 4 && strcmp(argv[1], "unload") == 0)
		return unload(argv[2], number(argv[3]));
	return 2;
}
