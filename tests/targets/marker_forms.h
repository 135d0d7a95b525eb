/*
 * Functions with markers in a header, for marker_forms.c and marker_forms.cc, and what both say to marker_by_hand.c.
 */
#ifndef MARKER_FORMS_H
#define MARKER_FORMS_H

#include <kymo/marker.h>

#ifdef __cplusplus
extern "C" {
#endif
/* All of it, once; the result does not depend on markers being on, off, or compiled away. */
unsigned int forms_run(void);

/* Arguments that were evaluated. Counted by forms_evaluate(), which returns what it is given. */
extern int forms_evaluated;
int forms_evaluate(int x);
#ifdef __cplusplus
}
#endif

static inline int forms_static_inline(int a, const char *s)
{
	int sum = a * 3;

	MARK(static_inline, "a=%d s=%s", a, s);
	return sum + s[0];
}

/* It has copies where it is inlined, and one more. */
inline int forms_inline(int a);
inline int forms_inline(int a)
{
	MARK(inline_function, "%d", a);
	return a ^ 0x55;
}

#endif
