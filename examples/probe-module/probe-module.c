/*
 * A probe module: loaded at run time, it connects probes to markers that it knows by name and format; unloaded, it
 * disconnects them.
 */
#include <kymo/marker_probe.h>

#include <stdio.h>
#include <string.h>

static void say(const struct kymo_marker_info *marker, const char *text)
{
	printf("%s: %s\n", marker->name, text);
	fflush(stdout);
}

static void probe_begin(const struct kymo_marker_info *marker, void *data, va_list arguments)
{
	char text[32];

	snprintf(text, sizeof(text), "%d to do", va_arg(arguments, int));
	say(marker, text);
}

static void probe_event(const struct kymo_marker_info *marker, void *data, va_list arguments)
{
	unsigned int *n_events = data;
	int number = va_arg(arguments, int);
	char text[128];

	++*n_events;
	snprintf(text, sizeof(text), "%d is %s", number, va_arg(arguments, const char *));
	say(marker, text);
}

static void probe_end(const struct kymo_marker_info *marker, void *data, va_list arguments)
{
	char text[32];

	snprintf(text, sizeof(text), "%u events", *(unsigned int *)data);
	say(marker, text);
}

static unsigned int n_events;

static const struct {
	const char *name, *format;
	kymo_marker_probe *probe;
} probes[] = {
	{ "subsys_begin", "n=%d", probe_begin },
	{ "subsys_event", "%d %s", probe_event },
	{ "subsys_end", NULL, probe_end },
};

#define N_PROBES (sizeof(probes) / sizeof(probes[0]))

__attribute__((constructor)) static void load(void)
{
	for (size_t i = 0; i < N_PROBES; i++) {
		int status = kymo_marker_set_probe(probes[i].name, probes[i].format, probes[i].probe, &n_events,
						   KYMO_MARKER_CALL | KYMO_MARKER_PENDING);
		if (status < 0)
			fprintf(stderr, "%s: %s\n", probes[i].name, strerror(-status));
	}
}

/* When the last of these has returned no thread is in a probe, and none will be: the loader may unmap this object. */
__attribute__((destructor)) static void unload(void)
{
	for (size_t i = 0; i < N_PROBES; i++)
		kymo_marker_disable_probe(probes[i].name, probes[i].probe, &n_events, KYMO_MARKER_CALL);
}
