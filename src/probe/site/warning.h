/* Sentences for the user. Private to the room. */
#ifndef KYMO_PROBE_SITE_WARNING_H
#define KYMO_PROBE_SITE_WARNING_H

struct kymo_probes;

void probes_warn(const struct kymo_probes *probes, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
