#include "probe/site/warning.h"

#include <stdarg.h>
#include <stdio.h>

#include "probe/probes.h"

void probes_warn(const struct kymo_probes *probes, const char *format, ...)
{
	char sentence[2048];
	va_list args;

	if (!probes->wanted.options.warn)
		return;
	va_start(args, format);
	vsnprintf(sentence, sizeof(sentence), format, args);
	va_end(args);
	probes->wanted.options.warn(sentence, probes->wanted.options.data);
}
