/* Names of functions as users write them. */
#ifndef KYMO_SYM_PATTERN_H
#define KYMO_SYM_PATTERN_H

#include <stdbool.h>

struct kymo_pattern;

/* NULL when memory is out. */
struct kymo_pattern *kymo_pattern_create(const char *text);
void kymo_pattern_destroy(struct kymo_pattern *pattern);

/* Whether it means the function of that mangled name; what a quick look rules out is not demangled. */
bool kymo_pattern_means(const struct kymo_pattern *pattern, const char *name);

/* Whether it means the function of that demangled name. */
bool kymo_pattern_matches(const struct kymo_pattern *pattern, const char *demangled);

#endif
