/* Code of forms. Private to arch/x86_64. */
#ifndef KYMO_ARCH_X86_64_FORM_H
#define KYMO_ARCH_X86_64_FORM_H

#include <stdbool.h>

struct code;
struct kymo_form;
struct kymo_pad_env;
struct label;
struct x86_pad_site;

/* Whether code can be made of it, and that writes nothing. */
bool x86_form_is_valid(const struct kymo_form *form);

/* Whether code can be made of it, and that writes memory. */
bool x86_store_is_valid(const struct kymo_form *form);

/* rax = the value of a valid form; a jump to `fault` where it has none. rdx is changed, and what is below the frame.
 */
void x86_emit_form(struct code *c, const struct kymo_pad_env *env, const struct x86_pad_site *site,
		   const struct kymo_form *form, bool retval_is_known, struct label *fault);

#endif
