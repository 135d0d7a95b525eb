/* Copies of the stack. Private to arch/x86_64. */
#ifndef KYMO_ARCH_X86_64_COPY_H
#define KYMO_ARCH_X86_64_COPY_H

#include <stdint.h>

struct code;
struct kymo_fetch;
struct kymo_pad_env;
struct x86_pad_site;

/* rax = the stack pointer, r10 = the end of what can be read for certain from there on. rdx and r11 are changed. */
void x86_find_stack_end(struct code *c, const struct kymo_pad_env *env);

/* Find out how many bytes of the stack are copied, and compose what comes before them at r10 + r11 + `at`. All four
 * free registers are changed. */
void x86_compose_copy(struct code *c, const struct kymo_pad_env *env, const struct x86_pad_site *site,
		      const struct kymo_fetch *fetch, int32_t begin, uint32_t at);

#endif
