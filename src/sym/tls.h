/* Where a module's thread-local variables are. Private to the room. */
#ifndef KYMO_SYM_TLS_H
#define KYMO_SYM_TLS_H

struct kymo_debug;
struct kymo_form;

/*
 * `form` is an offset into the thread-local block of the module that `debug` is of, as DWARF has it. It becomes the
 * address of what is there, of the thread that runs the form. It refers to the module's own data (KYMO_FORM_ADDRESS),
 * and faults where the thread has no such block yet. NULL, or why there is no such form: "is a thread-local variable
 * ...", which is static. Looks at all relocations of the module.
 */
const char *sym_tls_find(struct kymo_debug *debug, struct kymo_form *form);

#endif
