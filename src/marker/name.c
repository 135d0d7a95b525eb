#include "marker/name.h"

#include <stdio.h>
#include <string.h>

#include "marker/fields.h"

/* "redis-server" of /usr/bin/redis-server, "libz" of /lib/libz.so.1: as functions' events have it. */
static int stem_of(const char *path, const char **ret)
{
	const char *name = strrchr(path, '/'), *end;

	name = name ? name + 1 : path;
	end = strstr(name, ".so");
	*ret = name;
	return (int)(end && end > name ? (size_t)(end - name) : strlen(name));
}

char *kymo_marker_event_name(const char *module_path, bool is_sdt, const char *provider, const char *name)
{
	const char *stem;
	char *event;
	int length = stem_of(module_path, &stem), n;

	if (is_sdt || strcmp(provider, "kymo") != 0)
		n = asprintf(&event, "%s:%s", provider, name);
	else
		n = asprintf(&event, "%.*s:%s", length, stem, name);
	return n < 0 ? NULL : event;
}
